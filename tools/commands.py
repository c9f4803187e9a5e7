"""Asks a tool for its commands: names, help texts, parameters.

The tool is imported in a process of its own (`python tools/commands.py seesaw.cli:app` prints
JSON), so that a broken or a heavy one touches nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from workspace import Package, plain_environment


@dataclass(frozen=True)
class Parameter:
    """An argument or an option of a command."""

    name: str
    is_option: bool
    flags: list[str]
    help: str
    hidden: bool
    required: bool


@dataclass(frozen=True)
class Command:
    """One command: the words to type, the whole help page, and its parameters."""

    name: str
    help: str
    page: str
    parameters: list[Parameter]


def commands(package: Package) -> list[Command]:
    """List every command of a tool that is not hidden: `seesaw` itself, `seesaw plan`, ..."""
    found = subprocess.run(
        [sys.executable, __file__, package.target],
        env=plain_environment() | {"PYTHONPATH": os.pathsep.join(package.search_path)},
        check=False,
        capture_output=True,
        text=True,
    )
    if found.returncode != 0:
        raise RuntimeError(f"{package.target} cannot be imported:\n{found.stderr}")
    return [
        Command(row["name"], row["help"], row["page"], [Parameter(**p) for p in row["parameters"]])
        for row in json.loads(found.stdout)
    ]


def _describe(command: Any, name: str, parent: Any = None) -> list[dict[str, Any]]:
    """Describe a command and those below it, parent first."""
    context = command.context_class(
        command, info_name=name, parent=parent, **command.context_settings
    )
    row = {
        "name": context.command_path,
        "help": command.help or "",
        "page": command.get_help(context),
        "parameters": [
            {
                "name": parameter.name,
                "is_option": parameter.param_type_name == "option",
                "flags": [*parameter.opts, *parameter.secondary_opts],
                "help": getattr(parameter, "help", None) or "",
                "hidden": getattr(parameter, "hidden", False),
                "required": parameter.required,
            }
            for parameter in command.params
        ],
    }
    below = [
        _describe(child, child_name, context)
        for child_name, child in getattr(command, "commands", {}).items()
        if not child.hidden
    ]
    return [row, *(described for rows in below for described in rows)]


def main() -> None:
    """Print the commands of the tool that the command line names."""
    import typer

    module, _, attribute = sys.argv[1].partition(":")
    app = getattr(import_module(module), attribute)
    json.dump(_describe(typer.main.get_command(app), app.tool), sys.stdout)


if __name__ == "__main__":
    main()

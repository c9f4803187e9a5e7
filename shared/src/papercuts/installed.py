"""Which papercuts tools are installed: in this environment, and by `uv tool install`.

Only the metadata of installed packages is read; nothing of a tool is imported or run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Literal

from papercuts.log import get_logger

logger = get_logger(__name__)

GROUP = "papercuts.tools"
Source = Literal["environment", "uv tool"]

_UV_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Tool:
    """One installed tool.

    `command` is the path of its command, None where it is missing; `location` is the environment
    that holds it, and `source` how that was found.
    """

    name: str
    version: str
    summary: str
    command: str | None
    location: str
    source: Source


def installed_tools() -> list[Tool]:
    """List the tools of this environment, then those of uv's tool environments, each by name."""
    here = Path(sys.prefix)
    found = list(_tools(distributions(), here, "environment", Path(sysconfig.get_path("scripts"))))
    for environment in _uv_environments():
        if environment.resolve() == here.resolve():
            continue
        packages = [str(path) for path in sorted(environment.glob("lib/python3*/site-packages"))]
        found += _tools(distributions(path=packages), environment, "uv tool", environment / "bin")
    # The first of a name is the one that Python finds; a package may also lie shadowed behind it.
    first = {(tool.location, tool.name): tool for tool in reversed(found)}
    return sorted(first.values(), key=lambda tool: (tool.source, tool.name, tool.location))


def _tools(
    packages: Iterable[Distribution], environment: Path, source: Source, scripts: Path
) -> Iterator[Tool]:
    for package in packages:
        try:
            names = [entry.name for entry in package.entry_points if entry.group == GROUP]
            metadata = package.metadata
        except (OSError, ValueError) as error:
            logger.warning("unreadable package metadata in %s: %s", environment, error)
            continue
        if names and "Version" not in metadata:
            # What an uninstall that was cut short leaves; the other tools still count.
            logger.warning("%s in %s has no metadata", ", ".join(names), environment)
            continue
        for name in names:
            command = _command(name, environment, scripts)
            # Before Python 3.12 this mapping had no `get`.
            summary = metadata["Summary"] if "Summary" in metadata else ""  # noqa: SIM401
            yield Tool(name, metadata["Version"], summary, command, str(environment), source)


def _command(name: str, environment: Path, scripts: Path) -> str | None:
    """Find a tool's command: the link that uv made for the PATH, else the environment's own."""
    for path in (*_uv_links(name, environment), scripts / name):
        if os.access(path, os.X_OK) and path.is_file():
            return str(path)
    return None


def _uv_links(name: str, environment: Path) -> list[Path]:
    import tomllib

    try:
        receipt = tomllib.loads((environment / "uv-receipt.toml").read_text(encoding="utf-8"))
        entries = receipt["tool"]["entrypoints"]
        return [Path(entry["install-path"]) for entry in entries if entry["name"] == name]
    except (OSError, ValueError, KeyError, TypeError):
        return []  # not made by uv, or by a uv that writes other receipts


def _uv_environments() -> list[Path]:
    folder = uv_tool_folder()
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if (path / "pyvenv.cfg").is_file())


def uv_tool_folder() -> Path:
    """Give the folder in which uv keeps its tools' environments: what uv says, else its default."""
    uv = shutil.which("uv")
    if uv is not None:
        try:
            done = subprocess.run(
                [uv, "tool", "dir", "--color", "never"],
                capture_output=True, text=True, timeout=_UV_TIMEOUT_S, check=False,
            )  # fmt: skip
            if done.returncode == 0 and done.stdout.strip():
                return Path(done.stdout.strip())
            logger.debug("uv tool dir: exit %d: %s", done.returncode, done.stderr.strip())
        except (OSError, subprocess.TimeoutExpired) as error:
            logger.debug("uv tool dir: %s", error)
    if chosen := os.environ.get("UV_TOOL_DIR"):
        return Path(chosen)
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "uv" / "tools"

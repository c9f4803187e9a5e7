"""The tools under test, found by themselves, and an environment to run them in."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from running import Runner, readings

from workspace import packages, tools

LAUNCHER = """\
#!{python}
import sys

sys.path[:0] = {search_path}
from {module} import {attribute}

if __name__ == "__main__":  # as an installer writes it: worker processes import this file
    sys.exit({attribute}())
"""


@pytest.fixture(scope="session")
def tool_env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment like a user's: tools first on the PATH, an empty home, no colours."""
    binaries = tmp_path_factory.mktemp("bin")
    for package in packages():
        module, _, attribute = package.target.partition(":")
        launcher = binaries / package.command
        launcher.write_text(
            LAUNCHER.format(
                python=sys.executable,
                search_path=package.search_path,
                module=module,
                attribute=attribute,
            )
        )
        launcher.chmod(0o755)
    home = tmp_path_factory.mktemp("home")
    # A user's Python keeps its compiled files and buffers what it prints to a pipe.
    dropped = {"PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "FORCE_COLOR", "PAPERCUTS_CACHE"}
    kept = {n: v for n, v in os.environ.items() if n not in dropped and not n.startswith("XDG_")}
    path = os.pathsep.join([str(binaries), str(Path(sys.executable).parent), os.environ["PATH"]])
    return kept | {"HOME": str(home), "PATH": path, "NO_COLOR": "1", "COLUMNS": "80"}


@pytest.fixture
def run(tool_env: dict[str, str], tmp_path: Path) -> Runner:
    """Runs commands in an empty folder."""
    return Runner(tmp_path, tool_env)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test every tool (`tool`), these and `papercuts` (`package`), or every `reading`."""
    found: dict[str, list[Any]] = {"tool": tools(), "package": packages(), "reading": readings()}
    for name, values in found.items():
        if name in metafunc.fixturenames:
            ids = [str(v) if name == "reading" else v.command for v in values]
            metafunc.parametrize(name, values, ids=ids, scope="module")

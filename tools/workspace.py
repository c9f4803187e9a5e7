"""The packages of this workspace, found from their `pyproject.toml`: one place to ask for them."""

from __future__ import annotations

import os
import subprocess
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SHARED = "papercuts"


@dataclass(frozen=True)
class Package:
    """One installable package: a tool, or the shared package."""

    folder: Path

    @cached_property
    def pyproject(self) -> dict[str, Any]:
        """The parsed `pyproject.toml`."""
        return tomllib.loads((self.folder / "pyproject.toml").read_text(encoding="utf-8"))

    @property
    def project(self) -> dict[str, Any]:
        """The table `[project]`."""
        table: dict[str, Any] = self.pyproject["project"]
        return table

    @property
    def distribution(self) -> str:
        """The name under which it is installed: `papercuts-seesaw`."""
        return str(self.project["name"])

    @cached_property
    def command(self) -> str:
        """The name of its one console script: `seesaw`."""
        scripts = self.project.get("scripts", {})
        if len(scripts) != 1:
            raise SystemExit(f"{self.folder}/pyproject.toml: one console script, not {scripts}")
        return str(next(iter(scripts)))

    @property
    def target(self) -> str:
        """What the console script calls: `seesaw.cli:app`."""
        return str(self.project["scripts"][self.command])

    @property
    def module(self) -> str:
        """The import package: `seesaw`."""
        return self.target.partition(".")[0]

    @property
    def source(self) -> Path:
        """The folder of the import package."""
        return self.folder / "src" / self.module

    @property
    def search_path(self) -> list[str]:
        """The folders from which it can be imported though it is not installed."""
        return [str(self.folder / "src"), str(ROOT / "shared" / "src")]

    @property
    def readme(self) -> Path:
        """Its README."""
        return self.folder / "README.md"

    @cached_property
    def paper(self) -> dict[str, Any]:
        """The parsed `paper.toml`; empty for the shared package, which is of no paper."""
        path = self.source / "paper.toml"
        return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def tools(root: Path = ROOT) -> list[Package]:
    """List every tool, by name."""
    return [Package(path.parent) for path in sorted(root.glob("packages/*/pyproject.toml"))]


def shared(root: Path = ROOT) -> Package:
    """Give the shared package."""
    return Package(root / "shared")


def packages(root: Path = ROOT) -> list[Package]:
    """List the shared package and every tool."""
    return [shared(root), *tools(root)]


def own_files(folder: Path) -> list[Path]:
    """List the files below `folder` that git tracks or would add: no caches, no builds."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=folder,
        check=True,
        capture_output=True,
    ).stdout
    paths = {folder / os.fsdecode(name) for name in listed.split(b"\0") if name}
    return sorted(path for path in paths if path.is_file())


def copy_files(folder: Path, target: Path) -> Path:
    """Copy `own_files(folder)` to the same places below `target`; give `target`."""
    for path in own_files(folder):
        copy = target / path.relative_to(folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
        copy.chmod(path.stat().st_mode)
    return target


def plain_environment() -> dict[str, str]:
    """Give the environment in which help is printed: 80 columns, no colour, whatever runs this."""
    colours = {"FORCE_COLOR", "CLICOLOR_FORCE", "PY_COLORS", "GITHUB_ACTIONS"}
    kept = {name: value for name, value in os.environ.items() if name not in colours}
    return kept | {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}

"""The rules of the house that can be read from the files: imports, names, versions, sizes."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest

from commands import commands
from workspace import ROOT, own_files, shared, tools

SOURCES = [path for path in own_files(ROOT) if path.suffix == ".py"]


def imported(path):
    """The top-level names of the modules that a file imports, wherever it does so."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def test_no_file_imports_click():
    # Typer brings its own; another one's exceptions and contexts are not the ones it raises.
    assert [path for path in SOURCES if "click" in imported(path)] == []


def test_no_tool_imports_another(package):
    others = {tool.module for tool in tools()} - {package.module}
    crossing = {
        str(path.relative_to(ROOT)): imported(path) & others
        for path in package.folder.rglob("*.py")
        if imported(path) & others
    }
    assert crossing == {}


def test_one_name_for_folder_command_and_import(tool):
    name = tool.command
    assert tool.folder.name == tool.module == name
    assert tool.distribution == f"papercuts-{name}"
    assert tool.target == f"{name}.cli:app"
    assert tool.project["entry-points"]["papercuts.tools"] == {name: tool.target}
    assert tool.pyproject["tool"]["uv"]["sources"]["papercuts"] == {"workspace": True}


def test_one_version_for_all(package):
    version = shared().project["version"]
    assert package.project["version"] == version
    assert package.project["requires-python"] == ">=3.11,<3.14"
    if package.distribution != "papercuts":
        required = [d for d in package.project["dependencies"] if re.match(r"papercuts\b", d)]
        assert [re.sub(r"\[.*?\]", "", d) for d in required] == [f"papercuts=={version}"]


def test_every_dependency_has_a_lower_bound(package):
    extras = package.project.get("optional-dependencies", {})
    named = [*package.project["dependencies"], *(d for group in extras.values() for d in group)]
    assert [d for d in named if not re.search(r">=|==", d)] == []


def test_the_paper_is_told_in_full(tool):
    keys = {"title", "authors", "venue", "year", "url", "summary", "bibtex"}
    assert keys - set(tool.paper) == set()
    assert {"arxiv", "openreview", "doi"} & set(tool.paper)
    assert str(tool.paper["year"]) in tool.paper["bibtex"]


def test_every_tool_has_its_commands(tool):
    names = {command.name.removeprefix(f"{tool.command} ") for command in commands(tool)}
    assert {"demo", "bench", "schema"} - names == set()


def test_the_package_is_typed_and_lazy(package, run):
    assert (package.source / "py.typed").exists()
    code = f"import {package.module}\nprint(*sys.modules)"
    loaded = {name.partition(".")[0] for name in run.python(package, code).text.split()}
    assert package.module in loaded
    assert not loaded & {"numpy", "rich", "scipy", "torch", "typer"}


def test_unknown_names_of_the_package_are_attribute_errors(tool, run):
    code = f"""
import {tool.module} as package
try:
    package.no_such_name
except AttributeError as error:
    print(error)
"""
    assert "no_such_name" in run.python(tool, code).text


def test_no_file_is_longer_than_400_lines(package):
    long = {
        str(path.relative_to(ROOT)): count
        for path in package.source.rglob("*.py")
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > 400
    }
    assert long == {}


def test_test_folders_are_no_packages():
    assert [p for p in SOURCES if p.name == "__init__.py" and "tests" in p.parts] == []


@pytest.mark.parametrize(
    ("place", "banned"),
    [
        ("packages/x/src/x/cli.py", True),
        ("packages/x/src/x/__init__.py", True),
        ("shared/src/papercuts/app.py", True),
        ("packages/x/src/x/method.py", False),
        ("packages/x/tests/test_x.py", False),
    ],
)
def test_ruff_bans_heavy_imports_where_a_command_starts(place, banned):
    code = '"""A file."""\n\nimport torch\n\nprint_ = torch\n'
    checked = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--stdin-filename", place, "-"],
        input=code,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ("TID253" in checked.stdout) is banned, checked.stdout + checked.stderr

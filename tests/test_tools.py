"""The scripts in `tools/`: a new tool is a good one from its first minute, and the rest of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib

import pytest

import changed
import new_tool
from workspace import ROOT, copy_files, tools

NAME = "littlenum"


@pytest.mark.parametrize("name", ["littlenum", "x2", "a1b2"])
def test_good_names(name):
    assert new_tool.fault_of(name) == ""


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("", "lower-case"),
        ("Upper", "lower-case"),
        ("2fast", "lower-case"),
        ("with_bar", "lower-case"),
        ("with-dash", "lower-case"),
        ("../x", "lower-case"),
        ("lambda", "Python's own"),
        ("match", "Python's own"),
        ("json", "standard library"),
        ("papercuts", "taken"),
        ("toolname", "taken"),
        ("numpy", "installed numpy"),
    ],
)
def test_bad_names(name, fault, capsys):
    assert fault in new_tool.fault_of(name)
    assert new_tool.main([name]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_an_existing_tool_is_left_alone(tool, capsys):
    before = tool.readme.read_bytes()
    assert new_tool.main([tool.command]) == 73
    assert f"packages/{tool.command} exists already" in capsys.readouterr().err
    assert tool.readme.read_bytes() == before


def test_a_tool_is_entered_in_its_place():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    known = [tool.command for tool in tools()]
    for name in ("aaa", "zzz"):
        entered = new_tool.enter(text, name)
        config = tomllib.loads(entered)
        assert config["tool"]["uv"]["sources"][f"papercuts-{name}"] == {"workspace": True}
        added = sorted(set(entered.splitlines()) - set(text.splitlines()))
        assert added == [f'    "papercuts-{name}",', f"papercuts-{name} = {{ workspace = true }}"]
        names = [
            line.partition("=")[0].strip()
            for line in entered.splitlines()
            if "workspace = t" in line
        ]
        assert names == ["papercuts", *(f"papercuts-{n}" for n in sorted([*known, name]))]
        dev = [
            entry.partition(">")[0].partition("[")[0]
            for entry in config["dependency-groups"]["dev"]
        ]
        assert dev == sorted(dev)


def test_whose_slow_tests_a_change_calls_for():
    names = ["alpha", "beta"]
    paths = ["packages/beta/src/beta/cli.py", "shared/README.md", "README.md"]
    assert changed.owners(paths, names) == ["papercuts", "beta"]
    assert changed.owners(["tests/test_docs.py"], names) == ["workspace"]
    assert changed.owners(["packages/gone/README.md", "CHANGELOG.md"], names) == []


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """An empty repository that `changed` looks at, and a way to commit a file to it."""
    monkeypatch.setattr(changed, "ROOT", tmp_path)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)

    def git(*arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(
            ["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True
        )

    def commit(name):
        (tmp_path / name).write_text(name)
        git("add", "--all")
        git("commit", "--message", name)

    git("init", "--initial-branch", "main")
    commit.git = git
    return commit


def test_a_first_commit_has_nothing_before_it(repository):
    repository("a")
    assert changed.default_reference() is None


def test_without_a_remote_the_commit_before_counts(repository, tmp_path):
    repository("a")
    repository("b")
    (tmp_path / "new").write_text("git does not know it yet")
    assert changed.changed_paths(changed.default_reference()) == ["b", "new"]


def test_a_branch_counts_from_where_it_left_the_remote(repository):
    repository("a")
    repository.git("update-ref", "refs/remotes/origin/main", "HEAD")
    repository("b")
    repository("c")
    assert changed.changed_paths(changed.default_reference()) == ["b", "c"]


def test_an_unknown_commit_is_an_error(repository):
    repository("a")
    with pytest.raises(ValueError, match="no commit nowhere"):
        changed.changed_paths("nowhere")


# A new tool, in a copy of the workspace


@pytest.fixture(scope="module")
def new_workspace(tmp_path_factory):
    """A copy of the workspace with a new tool, and an environment where it counts as installed."""
    copy = copy_files(ROOT, tmp_path_factory.mktemp("workspace"))
    subprocess.run(["git", "init", "--quiet"], cwd=copy, check=True)
    subprocess.run([sys.executable, "tools/new_tool.py", NAME], cwd=copy, check=True)
    project = tomllib.loads((copy / "packages" / NAME / "pyproject.toml").read_text())["project"]
    installed = copy / "site" / f"papercuts_{NAME}-{project['version']}.dist-info"
    installed.mkdir(parents=True)
    needed = "".join(f"Requires-Dist: {name}\n" for name in project["dependencies"])
    (installed / "METADATA").write_text(
        f"Metadata-Version: 2.4\nName: {project['name']}\nVersion: {project['version']}\n{needed}"
    )
    path = [copy / "site", copy / "packages" / NAME / "src", copy / "shared" / "src"]
    return copy, os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path))}


def in_workspace(new_workspace, *argv):
    copy, env = new_workspace
    ended = subprocess.run(argv, cwd=copy, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.slow
def test_a_new_tool_is_clean(new_workspace):
    folder = f"packages/{NAME}"
    in_workspace(new_workspace, "ruff", "check", folder, "tools/template")
    in_workspace(new_workspace, "ruff", "format", "--check", folder, "tools/template")
    in_workspace(new_workspace, "mypy", f"{folder}/src")


@pytest.mark.slow
def test_a_new_tool_has_manners(new_workspace):
    unwritten = f"tests/test_docs.py::test_nothing_of_the_template_is_left_unwritten[{NAME}]"
    files = ["manners", "house", "docs", "readme", "licences"]
    said = in_workspace(
        new_workspace,
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs"),
        *("--tool", NAME, "--deselect", unwritten, "packages"),
        *(f"tests/test_{name}.py" for name in files),
    )
    assert " passed" in said
    assert "skipped" not in said


@pytest.mark.slow
def test_a_new_tool_says_what_is_left_to_write(new_workspace):
    copy, env = new_workspace
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "tests/test_docs.py", "-k", f"unwritten and {NAME}"],
        cwd=copy,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert f"packages/{NAME}/README.md" in ended.stdout


@pytest.mark.needs("just")
def test_every_recipe_can_be_read():
    listed = subprocess.run(
        ["just", "--list"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    recipes = {line.split()[0] for line in listed.splitlines()[1:]}
    assert recipes >= {
        "setup", "test", "test-slow", "lint", "fmt", "demo", "bench", "new", "docs", "catalogue",
    }  # fmt: skip


@pytest.mark.needs("sh")
def test_uvw_runs_the_uv_on_the_path(run):
    (run.folder / "bin").mkdir()
    fake = run.folder / "bin" / "uv"
    fake.write_text('#!/bin/sh\necho "uv ran with $*"\n')
    fake.chmod(0o755)
    uvw = shutil.copy(ROOT / "tools" / "uvw", run.folder / "uvw")
    result = run.bash(f'PATH=bin:$PATH; "{uvw}" run --flag "two words"')
    assert result.text == "uv ran with run --flag two words\n"

"""Each tool installs alone, in the ways its README tells, and brings what it needs and no more.

Everything here is slow and takes distributions from the index, or from uv's cache.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import catalogue
from workspace import ROOT, copy_files, packages, shared

pytestmark = pytest.mark.slow

UVW = ROOT / "tools" / "uvw"
IMPORT_ALL = """
import importlib, json, pkgutil, sys
missing = {}
package = importlib.import_module(sys.argv[1])
for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    try:
        importlib.import_module(found.name)
    except ModuleNotFoundError as error:
        missing[found.name] = error.name.partition(".")[0]
json.dump(missing, sys.stdout)
"""


def uv(*argv, env):
    ended = subprocess.run(
        [UVW, *argv], cwd="/", env=env, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture
def stranger(tmp_path):
    """The environment of somebody with an empty home; only what was downloaded is shared."""
    inherited = ("VIRTUAL_ENV", "PYTHON", "XDG_", "UV_")
    env = {n: v for n, v in os.environ.items() if not n.startswith(inherited)}
    cache = uv("cache", "dir", env=dict(os.environ)).strip()
    home = tmp_path / "home"
    home.mkdir()
    return env | {
        "HOME": str(home),
        "UV_CACHE_DIR": cache,
        "UV_PYTHON": sys.executable,
        "UV_PYTHON_DOWNLOADS": "never",
    }


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """The folder of the wheels of all packages."""
    folder = tmp_path_factory.mktemp("wheels")
    for package in packages():
        argv = ["build", "--wheel", "--quiet", "--out-dir", str(folder), str(package.folder)]
        uv(*argv, env=dict(os.environ))
    return folder


def wheel_of(package, wheels):
    (path,) = wheels.glob(f"{package.distribution.replace('-', '_')}-*.whl")
    return path


def clean_venv(tmp_path, env):
    """Make a virtual environment with nothing in it; give its Python."""
    uv("venv", "--quiet", str(tmp_path / "venv"), env=env)
    return tmp_path / "venv" / "bin" / "python"


def runs(command, *argv, env):
    ended = subprocess.run(
        [command, *argv], cwd=env["HOME"], env=env, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout
    return ended.stdout


def in_extras_only(package):
    """List what the extras of a tool bring here on top of its base install."""
    extras = package.project.get("optional-dependencies", {})
    every = catalogue.closure(package.distribution, extras) | catalogue.closure(
        shared().distribution, shared().project["optional-dependencies"]
    )
    return every - catalogue.closure(package.distribution)


def test_wheel_in_a_clean_environment(tool, wheels, stranger, tmp_path):
    python = clean_venv(tmp_path, stranger)
    ours = [str(wheel_of(shared(), wheels)), str(wheel_of(tool, wheels))]
    uv("pip", "install", "--quiet", "--python", str(python), *ours, env=stranger)
    listed = uv("pip", "list", "--format", "json", "--python", str(python), env=stranger)
    installed = {canonicalize_name(entry["name"]) for entry in json.loads(listed)}
    optional = in_extras_only(tool)
    assert installed & optional == set()

    providers = metadata.packages_distributions()
    for module in (shared().module, tool.module):
        missing = json.loads(runs(python, "-c", IMPORT_ALL, module, env=stranger))
        unexplained = {
            name: needed
            for name, needed in missing.items()
            if not {canonicalize_name(d) for d in providers.get(needed, [])} & optional
        }
        assert unexplained == {}

    command = python.parent / tool.command
    runs(command, "--help", env=stranger)
    runs(command, "demo", env=stranger)
    assert tool.command in runs(python.parent / "papercuts", "tools", env=stranger)


def test_tool_install_from_a_checkout(tool, stranger):
    uv("tool", "install", "--quiet", str(tool.folder), env=stranger)
    command = Path(stranger["HOME"], ".local", "bin", tool.command)
    assert runs(command, "--version", env=stranger).split()[0] == tool.command
    runs(command, "demo", env=stranger)


def test_main_job_of_the_readme_on_a_machine_without_uv(stranger, tmp_path):
    """The README's first command, in a fresh clone, with Python and git only."""
    command = "tools/uvw run --project packages/seesaw seesaw demo"
    assert command in (ROOT / "README.md").read_text(encoding="utf-8")
    clone = copy_files(ROOT, tmp_path / "clone")
    python = Path(sys.base_prefix, "bin")
    env = stranger | {"PATH": f"{python}:/usr/bin:/bin", "HOME": str(tmp_path / "nobody")}
    del env["UV_PYTHON"]
    for _ in range(2):  # the second time uv is there
        ended = subprocess.run(
            command.split(), cwd=clone, env=env, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
        assert "21 of 21" in ended.stdout
        assert (clone / ".uv" / "bin" / "uv").exists()
    assert "fetching uv" not in ended.stderr


def test_tool_install_from_a_git_address(tool, stranger, tmp_path):
    clone = copy_files(ROOT, tmp_path / "clone")
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    for argv in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "a"]):
        subprocess.run(["git", *identity, *argv], cwd=clone, env=stranger, check=True)
    address = f"git+{clone.as_uri()}#subdirectory=packages/{tool.folder.name}"
    uv("tool", "install", "--quiet", f"{tool.distribution} @ {address}", env=stranger)
    command = Path(stranger["HOME"], ".local", "bin", tool.command)
    assert runs(command, "--version", env=stranger).split()[0] == tool.command
    runs(command, "schema", env=stranger)


def test_lower_bounds_of_the_base_install(tool, wheels, stranger, tmp_path):
    """The oldest versions that the base install allows import, help and demonstrate."""
    python = clean_venv(tmp_path, stranger)
    named = [*shared().project["dependencies"], *tool.project["dependencies"]]
    direct = [text for text in named if Requirement(text).name != shared().distribution]
    ours = [str(wheel_of(shared(), wheels)), str(wheel_of(tool, wheels))]
    oldest = ["--resolution", "lowest-direct", "--only-binary", ":all:"]
    install = ["pip", "install", "--quiet", "--python", str(python), *oldest, *ours, *direct]
    uv(*install, env=stranger)
    runs(python, "-c", IMPORT_ALL, tool.module, env=stranger)
    command = python.parent / tool.command
    for words in (["--help"], ["schema"], ["demo"], ["--cite"]):
        runs(command, *words, env=stranger)

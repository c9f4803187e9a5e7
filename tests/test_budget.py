"""The budget of 30 core-seconds that `conftest.py` at the root holds every tool to."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from workspace import ROOT

BURN = """
import os, subprocess, sys, time
import pytest

CHILD = "import time\\nwhile time.process_time() < 0.5: pass"

def burn(seconds):
    began = time.process_time()
    while time.process_time() - began < seconds:
        pass
"""
TESTS = {
    "packages/frugal/tests/test_it.py": "def test_it(): pass\n",
    "packages/greedy/tests/test_it.py": BURN + "def test_a(): burn(0.3)\ndef test_b(): burn(0.3)\n",
    "packages/parent/tests/test_it.py": BURN
    + "def test_it(): subprocess.run([sys.executable, '-c', CHILD], check=True)\n",
    "packages/importer/tests/test_it.py": BURN + "burn(0.5)\ndef test_it(): pass\n",
    "packages/patient/tests/test_it.py": BURN + "@pytest.mark.slow\ndef test_it(): burn(0.6)\n",
    "tests/test_it.py": BURN
    + """
class Tool:
    command = "shown"

@pytest.mark.parametrize("tool", [Tool()])
def test_it(tool): burn(0.5)

def test_of_no_tool(): burn(0.5)

@pytest.mark.needs("no-such-program")
def test_that_needs(): raise AssertionError
""",
}
OVER = {"greedy", "importer", "parent", "shown"}


@pytest.fixture
def session(tmp_path):
    """A small workspace with tools of each kind, and a way to test it with a limit."""
    shutil.copy(ROOT / "conftest.py", tmp_path)
    markers = "markers =\n    slow: slow\n    needs(program): needs\n"
    (tmp_path / "pytest.ini").write_text(f"[pytest]\naddopts = --import-mode=importlib\n{markers}")
    for name, text in TESTS.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(*options, limit):
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-p", "xdist",
             "-o", f"core_seconds={limit}", *options],
            cwd=tmp_path,
            env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip

    return run


def over(ended):
    return {name for name in [*OVER, "frugal", "patient", "workspace"] if said(ended, name)}


def said(ended, name):
    return f"the fast tests of {name} cost" in ended.stdout


def test_a_tool_over_its_budget_fails_the_run(session):
    ended = session("-n", "2", limit=0.3)
    assert ended.returncode == 1, ended.stdout
    assert "failed" not in ended.stdout
    assert over(ended) == OVER
    assert "ERROR: the fast tests of greedy cost" in ended.stdout


def test_a_slower_machine_is_no_failure(session):
    ended = session("--tool", "greedy", limit=0.55)
    assert ended.returncode == 0, ended.stdout
    assert "WARNING: the fast tests of greedy cost" in ended.stdout


@pytest.mark.slow
def test_a_tool_over_its_budget_fails_a_run_without_workers(session):
    ended = session(limit=0.3)
    assert ended.returncode == 1, ended.stdout
    assert over(ended) == OVER


def test_a_run_within_the_budget_passes(session):
    ended = session(limit=30)
    assert ended.returncode == 0, ended.stdout
    assert over(ended) == set()
    assert "core-seconds of the fast tests: " in ended.stdout
    assert "1 skipped" in ended.stdout
    assert "needs the program no-such-program, which is not on the PATH" in ended.stdout


def test_only_the_tests_of_one_tool(session):
    ended = session("--tool", "shown", "--tool", "frugal", limit=30)
    assert ended.returncode == 0, ended.stdout
    assert "2 passed" in ended.stdout
    assert "importer" not in ended.stdout

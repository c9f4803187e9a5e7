"""What the tests share: the command run in this process, and a user's files in a folder."""

from __future__ import annotations

import pytest

MODEL = """\
import numpy as np

def f(x):
    return (x[:, 0] * x[:, 0] + x[:, 1] * x[:, 1]) / 2

def inside(x):
    return (x**2).sum(1) < 1
"""
# The same arithmetic, twenty lines in the manner of a user's script.
AWK = """\
#!/usr/bin/awk -f
# Reads a point a line, prints f for it: half the squared length.
BEGIN {
    scale = 2
    count = 0
}
NF != 2 {
    print "line " NR " has " NF " numbers" > "/dev/stderr"
    exit 1
}
function square(a) {
    return a * a
}
{
    count++
    x = $1
    y = $2
    printf "%.17g\\n", (square(x) + square(y)) / scale
}
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder to work in, with a Python target and the same as an awk script."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "f.awk").write_text(AWK)
    return tmp_path


@pytest.fixture
def zoprox(capsys):
    """Run a command line: exit code, stdout and stderr."""
    from zoprox.cli import app

    def run(*words):
        code = app.run([str(word) for word in words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run

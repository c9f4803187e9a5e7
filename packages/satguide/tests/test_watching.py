"""What a person sees of a training run: a live table on a terminal, else lines."""

import io
import logging

import pytest
from rich.console import Console

from papercuts import log
from satguide import watching


def record(iteration, **more):
    return {"iteration": iteration, "wall_s": 3.4 * iteration, "cost": 50.0, **more}


@pytest.fixture
def terminal(monkeypatch):
    """Make stderr a terminal, and give the console that records what is drawn on it."""
    drawn = Console(file=io.StringIO(), record=True, force_terminal=True, width=80)
    monkeypatch.setattr(watching, "console", lambda: drawn)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    log.configure("satguide")
    yield drawn
    log.reset()


def shown(drawn):
    """The rows of the tables since the last call, cells in lists."""
    lines = drawn.export_text(clear=True).splitlines()
    rows = [line.strip("\u2502 ").split("\u2502") for line in lines if "\u2502" in line]
    return [[cell.strip() for cell in row] for row in rows], "\n".join(lines)


def test_a_terminal_shows_a_table_of_the_validations(terminal):
    with watching.watching() as watch:
        assert "measuring the baselines" in shown(terminal)[1]
        watch(record(1))
        rows, text = shown(terminal)
        assert "iteration 1, 3 s" in text
        assert rows == []  # nothing was validated yet
        watch(record(10, validation=45.25, ratio=0.9051))
        rows, text = shown(terminal)
        assert "iteration 10, 34 s" in text
        assert rows == [["10", "34 s", "50.0", "45.2", "0.905"]]
        watch(record(11))
        rows, text = shown(terminal)
        assert "iteration 11, 37 s" in text
        assert [row[0] for row in rows] == ["10"]
        for iteration in range(20, 20 + 13):
            watch(record(iteration, validation=45.0, ratio=None))
        rows, _ = shown(terminal)
        last = rows[-12:]
        assert [row[0] for row in last] == [str(i) for i in range(21, 33)]  # the newest twelve
        assert last[0] == ["21", "71 s", "50.0", "45.0", "-"]


def test_elsewhere_each_validation_is_a_line(caplog):
    with caplog.at_level(logging.INFO), watching.watching() as watch:
        watch(record(9))
        watch(record(10, validation=45.25, ratio=0.9051))
        watch(record(20, validation=40.0, ratio=None))
    assert caplog.messages == [
        "iteration 10, 34 s: sampled 50.0, validation 45.2, 0.905 of the better baseline",
        "iteration 20, 68 s: sampled 50.0, validation 40.0",
    ]


def test_quiet_shows_nothing(terminal):
    log.configure("satguide", quiet=True)
    with watching.watching() as watch:
        watch(record(10, validation=45.25, ratio=0.9))
    assert shown(terminal) == ([], "")

"""Logging stays out of stdout and of other people's handlers; progress tells how far a loop is."""

import logging
from collections.abc import Iterator

import pytest

from papercuts import log


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    root = logging.getLogger("papercuts")
    before = root.handlers[:], root.level, root.propagate
    root.handlers[:] = []
    root.propagate = True
    root.setLevel(logging.NOTSET)
    yield
    root.handlers[:], root.level, root.propagate = before


def test_loggers_hang_below_one() -> None:
    assert log.get_logger("seesaw.plan").name == "papercuts.seesaw.plan"
    assert log.get_logger("papercuts.streams").name == "papercuts.streams"
    assert log.get_logger("papercuts").name == "papercuts"


def test_a_library_user_gets_no_handler(capsys: pytest.CaptureFixture[str]) -> None:
    log.get_logger("seesaw.plan").info("unheard")
    assert not logging.getLogger("papercuts").handlers
    assert capsys.readouterr() == ("", "")


def test_the_stronger_option_wins_wherever_it_stands(capsys: pytest.CaptureFixture[str]) -> None:
    logger = log.get_logger("x")
    log.configure("tool", quiet=True)
    log.configure("tool")
    logger.warning("unheard")
    log.configure("tool", verbose=1)
    logger.debug("%d heard", 1)
    assert capsys.readouterr() == ("", "tool: 1 heard\n")


def test_reset_forgets_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("tool", quiet=True)
    log.reset()
    log.configure("tool")
    log.get_logger("x").info("heard")
    assert capsys.readouterr() == ("", "tool: heard\n")


def test_progress_without_a_terminal_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 4.0, 12.0, 13.0, 25.0])
    monkeypatch.setattr("papercuts.log.time.monotonic", lambda: next(clock))
    log.configure("tool")
    with log.progress("scoring", total=100) as bar:
        for _ in range(4):
            bar.advance(6)
    assert bar.done == 24
    assert capsys.readouterr() == (
        "",
        "tool: scoring: 12 of 100 done, 1/s\ntool: scoring: 24 of 100 done, 0.96/s\n",
    )


def test_quiet_progress_says_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    log.configure("tool", quiet=True)
    with log.progress("scoring", total=2) as bar:
        bar.advance()
    assert capsys.readouterr() == ("", "")


def test_progress_on_a_terminal_is_drawn_to_stderr(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    log.configure("tool")
    with log.progress("scoring", total=3) as bar:
        bar.advance(3)
    out, err = capsys.readouterr()
    assert out == ""
    assert "scoring" in err
    assert "3/3" in err

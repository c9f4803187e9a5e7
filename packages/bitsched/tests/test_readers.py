"""Every command that reads records: from a file, from stdin, from a terminal, and a bad line."""

import io
import sys
from pathlib import Path

import pytest

from bitsched.cli import app

PLAN = '{"processor":0,"tasks":[[0,0,0,0]]}\n{"processor":1,"tasks":[[0,1,0,1]]}\n'
TASKS = '{"id":"a","duration":2,"note":"n"}\n{"id":"b","after":"a"}\n'
TIMES = "schedule,time,n,note\nasc,12,4,n\nasc,30,8,n\n"
READERS = [
    (["sim"], PLAN, PLAN.replace("1,0,1", '1,"q",1'), 2),
    (["gantt"], PLAN, PLAN.replace('"processor":1', '"processor":0'), 2),
    (["check"], PLAN, PLAN.replace("[0,0,0,0]", "[0,0,0]"), 1),
    (["export"], PLAN, PLAN + "{}\n", 3),
    (["graph", "--processors", "2"], TASKS, TASKS + '{"id":\n', 3),
    (["fit", "--latency", "none"], TIMES, TIMES.replace("30", "-30"), 3),
]
names = pytest.mark.parametrize(
    ("argv", "good", "bad", "line"), READERS, ids=[argv[0] for argv, *_ in READERS]
)


def feed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


@names
def test_a_file_and_stdin_give_the_same_and_a_bad_line_is_named(
    argv: list[str], good: str, bad: str, line: int, tmp_path: Path,
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    path = tmp_path / "records"
    path.write_text(good)
    assert app.run([*argv, str(path)]) == 0
    from_file = capsysbinary.readouterr().out
    for words in ([], ["-"]):
        feed(monkeypatch, good)
        assert app.run([*argv, *words]) == 0
        assert capsysbinary.readouterr().out == from_file != b""
    path.write_text(bad)
    assert app.run([*argv, str(path)]) == 65
    out, err = capsysbinary.readouterr()
    assert out == b""
    assert err.startswith(f"bitsched: error: {path}:{line}: ".encode())
    feed(monkeypatch, bad)
    assert app.run(argv) == 65
    assert f"stdin:{line}: ".encode() in capsysbinary.readouterr().err
    assert app.run([*argv, str(tmp_path / "none")]) == 66


@names
def test_no_input_on_a_terminal_is_wrong_usage(
    argv: list[str], good: str, bad: str, line: int,
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    feed(monkeypatch, good)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    assert app.run(argv) == 2
    out, err = capsysbinary.readouterr()
    assert out == b""
    assert b"bitsched: error: " in err

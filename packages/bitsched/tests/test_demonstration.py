"""The demo says what it claims, and the bench measures every job."""

import json

import pytest

from bitsched.cli import app
from bitsched.costs import Costs
from bitsched.demonstration import closed_form, demo_lines


def test_closed_forms_are_the_sheets_numbers() -> None:
    """Symmetric shift: six makespans that the sheet gives."""
    for n, m, c, r, span in (
        (4, 2, 5, 1, 30), (8, 4, 5, 1, 108), (8, 4, 2, 1, 54), (16, 8, 5, 1, 408),
        (16, 8, 1, 1, 136), (32, 8, 3, 2, 660),
    ):  # fmt: skip
        assert closed_form("sym", n, m, Costs(c, r)) == span


@pytest.mark.slow
def test_demo_ends_in_what_was_shown() -> None:
    lines = list(demo_lines())
    end = lines[lines.index("What was shown") :]
    shown = {line[3:53].strip(): line[53:].strip() for line in end[2:]}
    assert shown["closed forms of the paper, simulated"] == "375 of 375 equal"
    assert shown["causal: symmetric shift over the bound (408)"] == "1.000"
    assert shown["full mask: cyclic shift over the bound"] == "1.000"
    assert shown["causal: baseline over the bound"] == "1.919"
    assert shown["real shape: naive order over no order"] == "1.68 (measured 1.59)"
    assert shown["different results in 10 runs"].startswith("sym 1, atomic ")
    assert max(map(len, lines)) <= 100


def test_demo_needs_no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bitsched.demonstration.find_spec", lambda _: None)
    monkeypatch.setattr("bitsched.demonstration._MEASURED", {"atomic": 2.391, "asc": 3.804})
    monkeypatch.setattr("bitsched.demonstration._pull_request", lambda: {"atomic": 1, "asc": 1.7})
    monkeypatch.setattr("bitsched.demonstration._SIZES", [(4, 2)])
    lines = list(demo_lines())
    assert any("needs the extra `torch`" in line for line in lines)
    assert any("25 of 25 equal" in line for line in lines)


def test_bench_measures_each_job(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bitsched.speed._TILES", 8)
    argv = ["bench", "--size", "1000", "--repeats", "2", "--format", "json"]
    assert app.run(argv) == 0
    rows = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    jobs = {row["job"] for row in rows}
    assert {"plan sym", "simulate sym", "check sym", "graph list", "simulate graph"} <= jobs
    for row in rows:
        assert 0 < row["wall_s_min"] <= row["wall_s"] <= row["wall_s_max"]
        assert row["tasks"] >= 1000

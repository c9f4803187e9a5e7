"""Comparing over a grid: the ratios against the closed forms, ranges, and the picture."""

import csv
import io
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from bitsched.cli import app
from bitsched.comparing import compare, read_range
from bitsched.costs import Costs
from bitsched.masks import make_shape
from bitsched.planning import make_plan
from bitsched.plot import check_plot, plot_comparison
from bitsched.simulation import simulate
from papercuts.errors import OutputError, UsageError


def test_ranges() -> None:
    assert read_range("--n", "4..128") == [4, 8, 16, 32, 64, 128]
    assert read_range("--n", "4..12:4") == [4, 8, 12]
    assert read_range("--n", "6, 3") == [6, 3]
    for wrong in ("", "0", "4..2", "4..8:0", "a", "4,,6", "-1"):
        with pytest.raises(UsageError, match="--n"):
            read_range("--n", wrong)


@pytest.mark.parametrize("mask", ["causal", "full"])
def test_rows_are_the_closed_forms(mask: str) -> None:
    c, r = 5, 1
    for row in compare(mask, [4, 8], [2, 6], Costs(c, r)):
        n, m = row["n"], row["heads"]
        work = m * n * (c + r) if mask == "full" else m * (n + 1) * (c + r) / 2
        asc = m * n * (c + r) + (n - 1) * r
        assert row["bound"] >= work
        assert row["throughput"] == work / row["makespan"]
        if row["schedule"] == "asc":
            assert row["makespan"] == asc
        if row["schedule"] == {"causal": "sym", "full": "shift"}[mask]:
            assert row["makespan"] == work
            assert row["fastest"]
            assert row["speedup"] == asc / work
    names = {row["schedule"] for row in compare(mask, [4], [2], Costs())}
    assert names == {"atomic", "asc", "desc", "spt", "list"} | (
        {"sym"} if mask == "causal" else {"shift"}
    )


def test_fixed_tokens_fill_the_batch() -> None:
    rows = list(compare("full", [2, 8], [3], Costs(), fixed_tokens=True, schedules=("shift",)))
    assert [(row["n"], row["batch"]) for row in rows] == [(2, 4), (8, 1)]
    assert rows[0]["makespan"] == 3 * 4 * 2 * 6


def test_command_writes_csv(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert app.run(["compare", "--n", "4..8", "--heads", "2", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsysbinary.readouterr().out.decode())))
    assert {(row["n"], row["schedule"]) for row in rows} >= {("4", "sym"), ("8", "atomic")}
    assert app.run(["compare", "--n", "4", "--heads", "x"]) == 2


def test_a_plot_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="\\.png or \\.svg"):
        check_plot("a.pdf")
    (tmp_path / "a.svg").touch()
    with pytest.raises(OutputError, match="exists"):
        check_plot(str(tmp_path / "a.svg"))


@pytest.mark.slow  # it imports matplotlib
def test_plot_is_named_a_model_and_repeats(tmp_path: Path) -> None:
    rows = list(compare("causal", [4, 8], [2, 4], Costs()))
    for name in ("a.svg", "b.svg"):
        plot_comparison(rows, Costs(), str(tmp_path / name))
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    drawn = (tmp_path / "a.svg").read_text()
    ET.fromstring(drawn)  # noqa: S314 (made by this test)
    for word in ("Model, not a measurement", "symmetric shift", "4 heads", "sequence length"):
        assert f"<!-- {word}" in drawn


def test_json_has_a_record_a_line(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert (
        app.run(
            ["compare", "--mask", "window:256,0", "--n", "4", "--heads", "2", "--format", "json"]
        )
        == 0
    )
    rows = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert {row["schedule"] for row in rows} == {"atomic", "asc", "desc", "spt", "list"}


def compared(capsys: pytest.CaptureFixture[bytes], *words: str) -> dict[str, dict]:
    assert app.run(["compare", *words, "--format", "json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return {row["schedule"]: row for row in rows}


def test_a_block_mask_is_compared_as_it_is_planned(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "mask"
    path.write_text("1100\n0110\n0011\n")
    rows = compared(capsysbinary, "--mask", f"file:{path}", "--heads", "4", "--sms", "3")
    assert set(rows) == {"atomic", "asc", "desc", "spt", "list"}
    for name, row in rows.items():
        plan = make_plan(make_shape(f"file:{path}", heads=4), name, 3)  # type: ignore[arg-type]
        assert (row["n"], row["makespan"]) == (4, simulate(plan).makespan)
    for words in (["--n", "4"], ["--block", "64"], ["--fixed-tokens"]):
        assert app.run(["compare", "--mask", f"file:{path}", *words]) == 2
        said = capsysbinary.readouterr().err.decode()
        assert f"says how many tiles there are: it goes without {words[0]}" in said
    assert app.run(["compare", "--mask", f"file:{tmp_path}/none"]) == 66


def test_penalty_and_partitions_are_those_of_plan(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    words = ["--n", "8", "--heads", "4"]
    plain = compared(capsysbinary, *words)
    dear = compared(capsysbinary, *words, "--register-penalty", "0.5")
    assert dear["sym"]["makespan"] == plain["sym"]["makespan"] + 0.5 * 4 * 9 / 2
    for name in {*plain, *dear} - {"sym"}:
        assert dear[name]["makespan"] == plain[name]["makespan"]
    spans = [
        compared(capsysbinary, *words, "--latency", "0,9", "--partitions", str(count))["desc"]
        for count in (1, 2, 8)
    ]
    assert spans[0]["makespan"] == plain["desc"]["makespan"]
    assert spans[0]["makespan"] < spans[1]["makespan"] < spans[2]["makespan"]


def test_the_bound_counts_whole_chains(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """n = 8, m = 3: 13.5 tiles an SM are 14 on one, and 84 is the optimum."""
    rows = compared(capsysbinary, "--n", "8", "--heads", "3")
    assert {row["bound"] for row in rows.values()} == {84.0}

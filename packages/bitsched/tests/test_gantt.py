"""Charts: what is drawn where, that it is read from the simulation, and that it fits."""

import itertools
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitsched.cli import app
from bitsched.costs import Costs
from bitsched.gantt import draw, kind_of, plan_timeline, text_lines
from bitsched.masks import make_shape
from bitsched.planning import make_plan
from bitsched.simulation import simulate
from bitsched.svgchart import svg_text
from bitsched.timeline import (
    COMPUTE,
    IDLE,
    REDUCE,
    WAIT,
    Timeline,
    ordinal,
    raster,
    rows_with_path,
    spread_rows,
    ticks,
)

SVG = "{http://www.w3.org/2000/svg}"


def timeline(schedule: str, n: int = 4, heads: int = 2, sms: int | None = None) -> Timeline:
    shape = make_shape("causal", n=str(n), heads=heads)
    plan = make_plan(shape, schedule, sms)  # type: ignore[arg-type]
    return plan_timeline(plan, simulate(plan, Costs(5, 1)), unit="us")


def test_text_of_the_baseline_is_the_known_chart() -> None:
    """SM 3 has one tile a head and waits for the whole head (worked by hand, c = 5, r = 1)."""
    lines = list(text_lines(timeline("asc"), 80))
    rows = {line.split()[0]: line for line in lines if re.match(r" +\d+ \|", line)}
    assert rows["0"].endswith("|aaaaaAaaaaaAaaaaaAaaaaaAbbbbbBbbbbbBbbbbbBbbbbbB...|")
    assert rows["3"].endswith("|aaaaa" + "~" * 21 + "Abbbbb" + "~" * 18 + "B|")
    assert "makespan 51, bound 30 (1.700x), unused 41.2%" in lines[0]
    # The path: SM 0 up to time 36, then one row of the last head from SM to SM.
    path = next(line for line in lines if line.startswith("path"))
    assert path.split("  ", 1)[1] == "|0----------------------------------|1-----|2-----|"
    assert any("time us, a character is 1" in line for line in lines)


@pytest.mark.parametrize(("schedule", "n", "sms"), [("asc", 4, None), ("spt", 40, 132)])
def test_text_fits_the_columns(
    schedule: str, n: int, sms: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    chart = timeline(schedule, n, 4, sms)
    for columns in (40, 72, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = list(text_lines(chart))
        assert max(map(len, lines)) <= columns
    assert any("48 of 132 SMs are drawn" in line for line in lines) == (sms == 132)


def drawn_rows(lines: list[str]) -> list[int]:
    return [int(found[1]) for line in lines if (found := re.match(r" *(\d+) \|", line))]


@pytest.mark.parametrize("schedule", ["asc", "desc", "spt", "atomic"])
def test_a_condensed_text_draws_the_critical_path(schedule: str) -> None:
    chart = timeline(schedule, 61, 2, 61)
    visited = sorted({int(chart.processor[task]) for task in chart.path.tolist()})
    lines = list(text_lines(chart, 120))
    rows = drawn_rows(lines)
    assert len(rows) == 48
    assert rows == sorted(set(rows))
    assert set(visited) <= set(rows) if len(visited) <= 48 else set(rows) <= set(visited)
    said = " ".join(" ".join(lines[-6:]).split())
    if len(visited) <= 48:
        which = f"all {len(visited)} of the critical path and others, spread evenly"
    else:
        which = f"those with most of the critical path, which is on {len(visited)}"
    assert f"48 of 61 SMs are drawn ({which}), 13 left out" in said
    marks = [line for line in lines if re.fullmatch(r" *=[ =]*", line)]
    assert bool(marks) == (len(visited) <= 16)


def test_a_path_on_more_rows_than_there_are_shows_where_it_is_longest() -> None:
    """Under the baseline SM 0 has most of the path, and the last row of a sum each other SM."""
    chart = timeline("asc", 61, 2, 61)
    spent = dict.fromkeys(range(61), 0.0)
    for task, begin, end in chart.path_parts():
        spent[int(chart.processor[task])] += end - begin
    for most in (1, 5, 60):
        rows = rows_with_path(chart, most).tolist()
        assert len(rows) == most
        left = [spent[p] for p in range(61) if p not in rows]
        assert min(spent[p] for p in rows) >= max(left)


@given(st.sampled_from(["asc", "desc", "sym", "spt"]), st.integers(1, 300), st.integers(1, 6))
@settings(max_examples=25)
def test_raster_shows_what_takes_most_of_each_cell(schedule: str, columns: int, n: int) -> None:
    chart = timeline(schedule, 2 * n)
    cells = raster(chart, columns, spread_rows(chart, 1000))
    edges = np.linspace(0, chart.makespan, columns + 1)
    for row in range(min(3, chart.processors)):
        mine = np.flatnonzero(chart.processor == row)
        for column in range(0, columns, max(1, columns // 7)):
            low, high = edges[column], edges[column + 1]
            spans = {
                COMPUTE: (chart.start, chart.computed),
                WAIT: (chart.computed, chart.reducing),
                REDUCE: (chart.reducing, chart.end),
            }
            times = {
                state: float(
                    np.maximum(0, np.minimum(b[mine], high) - np.maximum(a[mine], low)).sum()
                )
                for state, (a, b) in spans.items()
            }
            times[IDLE] = high - low - sum(times.values())
            found = times[int(cells.state[row, column])]
            assert found >= max(times.values()) - 1e-6 * chart.makespan


def test_path_is_without_a_gap() -> None:
    for schedule in ("asc", "desc", "sym", "spt"):
        chart = timeline(schedule, 8, 4)
        parts = chart.path_parts()
        assert parts[0][1] == 0
        assert parts[-1][2] == chart.makespan
        assert all(a[2] == b[1] for a, b in itertools.pairwise(parts))


def test_svg_has_each_bar_at_its_time() -> None:
    chart = timeline("asc")
    root = ET.fromstring(svg_text(chart, 1000))  # noqa: S314 (made by this test)
    texts = ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]
    for word in ("time (us)", "SM", "compute", "reduce", "idle", "critical path", "head 1"):
        assert word in texts
    assert "wait for the turn in the sum" in texts
    assert sum(re.fullmatch(r"\d,\d", text) is not None for text in texts) == 20
    scale = (1000 - 64 - 18) / 51
    groups = [node for node in root.iter(f"{SVG}g") if node.find(f"{SVG}title") is not None]
    assert len(groups) == 20
    last = groups[19].findall(f"{SVG}rect")  # KV tile 3 of head 1: 26 to 31, 50 to 51
    assert [node.get("fill") == "url(#wait)" for node in last] == [False, True, False]
    assert float(last[0].get("x", "")) == pytest.approx(64 + 27 * scale, abs=0.01)
    assert float(last[1].get("width", "")) == pytest.approx(18 * scale, abs=0.01)
    outlines = [n for n in root.iter(f"{SVG}rect") if n.get("stroke-width") == "2"]
    assert len(outlines) == 4  # one stretch of the path on each SM


def test_large_svg_says_how_it_is_condensed_and_stays_small() -> None:
    chart = timeline("spt", 48, 4, 300)
    text = svg_text(chart)
    ET.fromstring(text)  # noqa: S314
    assert "Condensed: a mark shows what takes most of its time" in text
    assert "every 2nd of 300 processors has a row" in text
    assert len(text) < 2_000_000
    assert text == svg_text(chart)


def test_names_are_escaped() -> None:
    chart = timeline("asc")
    odd = Timeline(**{**vars(chart), "title": "<a> & b", "name": lambda _: "<&>"})
    assert "&lt;&amp;&gt;" in svg_text(odd)
    ET.fromstring(svg_text(odd))  # noqa: S314


def test_kind_is_by_suffix_and_files_are_kept(tmp_path: Path) -> None:
    assert [kind_of(p) for p in ("a.svg", "a.svg.gz", "a.txt", "-")] == [
        "svg",
        "svg",
        "text",
        "text",
    ]
    draw(timeline("asc"), str(tmp_path / "a.svg"))
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    assert app.run(["gantt", str(tmp_path / "none.jsonl")]) == 66
    plan = tmp_path / "p.jsonl"
    assert app.run(["plan", "--n", "4", "--heads", "2", "-o", str(plan)]) == 0
    assert app.run(["gantt", str(plan), "-o", str(tmp_path / "a.svg")]) == 73
    assert app.run(["gantt", str(plan), "-o", str(tmp_path / "a.svg"), "--force"]) == 0


@pytest.mark.parametrize(("longest", "most", "step"), [(51, 5, 20), (30, 6, 5), (0.7, 7, 0.1)])
def test_ticks_are_round(longest: float, most: int, step: float) -> None:
    found = ticks(longest, most)
    assert found[1] == pytest.approx(step)
    assert found[-1] <= longest * (1 + 1e-12)
    assert longest < found[-1] + step * 1.0001


def test_ordinals() -> None:
    assert [ordinal(k) for k in (1, 2, 3, 4, 11, 22)] == [
        "1st",
        "2nd",
        "3rd",
        "4th",
        "11th",
        "22nd",
    ]

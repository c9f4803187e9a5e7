"""Fitting: costs come back from times the model made; the public timings of PR 1893."""

import json
from pathlib import Path

import numpy as np
import pytest

from bitsched.cli import app
from bitsched.costs import Costs
from bitsched.fitting import fit, read_timings
from bitsched.masks import make_shape
from bitsched.planning import make_plan
from bitsched.simulation import simulate
from papercuts.errors import DataError, UsageError

PR_1893 = """schedule,time,mask,n,heads,sms
atomic,2.391,causal,64,16,132
asc,3.804,causal,64,16,132
desc,2.962,causal,64,16,132
spt,2.900,causal,64,16,132
"""


def written(folder: Path, text: str, name: str = "t.csv") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


@pytest.mark.slow
def test_one_latency_reproduces_the_four_timings_within_a_tenth(tmp_path: Path) -> None:
    found = fit(read_timings(written(tmp_path, PR_1893)), "join")
    assert found.worst < 0.10
    assert found.latency > 0
    measured = np.array([2.391, 3.804, 2.962, 2.900])
    assert np.allclose(found.predicted / measured - 1, found.errors)


def test_known_costs_come_back(tmp_path: Path) -> None:
    costs, lines = Costs(2.0, 0.4, join_latency=6.0), ["schedule,time,mask,n,heads,sms"]
    for n, heads, sms in ((6, 3, 8), (8, 2, 5)):
        shape = make_shape("causal", n=str(n), heads=heads)
        for schedule in ("atomic", "asc", "desc", "spt"):
            plan = make_plan(shape, schedule, sms, costs)  # type: ignore[arg-type]
            span = simulate(plan, costs).makespan
            lines.append(f"{schedule},{span!r},causal,{n},{heads},{sms}")
    found = fit(read_timings(written(tmp_path, "\n".join(lines))))
    assert found.worst < 0.01
    assert found.costs.compute == pytest.approx(2.0, rel=0.02)
    assert found.costs.reduce == pytest.approx(0.4, rel=0.1)
    assert found.latency == pytest.approx(6.0, rel=0.05)


def test_errors_name_the_line(tmp_path: Path) -> None:
    for text, message in (
        ("schedule,time,n\nasc,2,4\nup,3,4\n", "t.csv:3: schedule is 'up'"),
        ("schedule,time,n\nasc,-2,4\n", "t.csv:2: time is '-2'"),
        ("schedule,time,n,heads\nasc,2,4,x\n", "t.csv:2: heads is 'x'"),
        ("schedule,time,n\nasc,2,0\n", "t.csv:2: .*--n"),
        ("schedule,time\n", "no timings"),
    ):
        with pytest.raises(DataError, match=message):
            read_timings(written(tmp_path, text))
    few = read_timings(written(tmp_path, "schedule,time,n\nasc,2,4\nasc,3,6\n"))
    with pytest.raises(UsageError, match="2 timings do not fix 3"):
        fit(few)
    assert fit(few, "none").parameters == 2


def test_command_keeps_the_records(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    text = "schedule,time,n,heads,note\nasc,12,4,2,a\nshift,10,4,2,b\nasc,30,8,2,c\n"
    path = written(tmp_path, text)
    assert app.run(["fit", path, "--latency", "none", "--format", "json"]) == 0
    out = capsysbinary.readouterr()
    rows = [json.loads(line) for line in out.out.splitlines()]
    assert [row["note"] for row in rows] == ["a", "b", "c"]
    assert b"largest relative error" in out.err
    one = rows[0]["bitsched"]
    assert one["predicted"] == pytest.approx(12 * (1 + one["relative_error"]))
    assert app.run(["fit", path, "--latency", "none", "--tolerance", "1e-9"]) == 1


@pytest.mark.parametrize(("latency", "span"), [(0, 13), (3, 13), (7, 13), (10, 16)])
def test_join_latency_passes_while_the_turn_is_waited_for(latency: float, span: float) -> None:
    """Two tiles a side, by hand: SM 1 waits until 12 anyway; past that the latency shows."""
    plan = make_plan(make_shape("causal", n="2"), "asc")
    assert simulate(plan, Costs(5, 1, join_latency=latency)).makespan == span
    free = make_plan(make_shape("causal", n="2"), "atomic")
    assert simulate(free, Costs(5, 1, join_latency=latency)).makespan == 12


def test_chains_are_dealt_by_the_same_latency() -> None:
    """A dynamic plan starts each chain on the SM that is free first, as the simulator sees it."""
    costs = Costs(2, 1, join_latency=9)
    for schedule in ("asc", "desc", "spt"):
        shape = make_shape("causal", n="9", heads=5)
        plan = make_plan(shape, schedule, 7, costs, assign="dynamic")  # type: ignore[arg-type]
        run = simulate(plan, costs)
        processor = plan.processor()
        first = np.flatnonzero(
            np.r_[True, (np.diff(plan.kv) != 0) | (np.diff(plan.head) != 0)]
            | np.r_[True, np.diff(processor) != 0]
        )
        begins = run.start[first]
        ends = [run.end[processor == p].max() for p in range(7)]
        # No SM has gone home while a later chain still waited for one.
        assert min(ends) >= begins.max()

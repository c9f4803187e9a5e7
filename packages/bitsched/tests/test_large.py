"""A million tasks: the same figures as the closed forms, in seconds."""

import time
from pathlib import Path

import pytest
from planreference import square

from bitsched.checking import check, faults
from bitsched.costs import Costs
from bitsched.planfile import read_plan, write_plan
from bitsched.planning import make_plan
from bitsched.simulation import simulate


@pytest.mark.slow
def test_a_million_tasks_in_seconds(tmp_path: Path) -> None:
    plan = make_plan(square("full", 128, 64), "shift", 128)
    assert plan.tasks == 2**20
    simulate(plan)  # numba compiles, or loads what it compiled before
    begin = time.process_time()
    run = simulate(plan, Costs(5, 1))
    assert (run.makespan, run.gap, run.idle_share) == (64 * 128 * 6, 1.0, 0.0)
    assert time.process_time() - begin < 3  # the sheet asks for 5 s
    path = tmp_path / "p.jsonl"
    begin = time.process_time()
    write_plan(plan, path)
    read = read_plan(path)
    assert time.process_time() - begin < 10
    assert not faults(read, check(read))

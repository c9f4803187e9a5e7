"""Running a plan on threads: the order it promises, one at a time where it promises none."""

import os
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitsched.execution import execute
from bitsched.plan import Plan
from bitsched.planning import make_plan
from bitsched.shape import Shape, causal, full
from papercuts.errors import NegativeResult


def a_plan(schedule, n=4, heads=2, processors=None):
    active = full(n, n) if schedule == "shift" else causal(n, n)
    mask = "full" if schedule == "shift" else "causal"
    return make_plan(Shape(heads, active, mask=mask), schedule, processors)


SCHEDULES = ("asc", "desc", "spt", "shift", "sym", "list")


@settings(max_examples=25)
@given(
    st.sampled_from(SCHEDULES),
    st.integers(1, 5),
    st.integers(2, 5),
    st.integers(0, 99),
)
def test_additions_keep_the_order_of_the_plan_on_any_number_of_threads(
    schedule, threads, processors, seed
):
    plan = a_plan(schedule, processors=processors)
    delays = np.random.default_rng(seed).exponential(1e-4, plan.tasks).tolist()
    computed: list[int] = []
    added: list[int] = []

    def add(task, result):
        assert result == -task
        added.append(task)

    order = execute(
        plan,
        lambda task: (computed.append(task), -task)[1],
        add,
        threads=threads,
        delays_s=delays,
    )
    assert sorted(added) == sorted(computed) == sorted(order) == list(range(plan.tasks))
    for head in range(2):
        for q in range(4):
            ranks = [plan.rank[t] for t in added if (plan.head[t], plan.q[t]) == (head, q)]
            assert ranks == sorted(ranks)
    for p in range(plan.processors):
        mine = range(plan.starts[p], plan.starts[p + 1])
        assert [t for t in computed if t in mine] == list(mine)
        assert [t for t in added if t in mine] == list(mine)


def test_an_open_order_adds_as_they_come_but_one_at_a_time():
    plan = a_plan("atomic", n=6)
    busy = {}
    orders = set()
    for run in range(4):
        added: list[int] = []

        def add(task, _result, added=added):
            tile = int(plan.head[task]), int(plan.q[task])
            assert not busy.get(tile)
            busy[tile] = True
            added.append(task)
            busy[tile] = False

        delays = np.random.default_rng(run).exponential(2e-3, plan.tasks).tolist()
        execute(plan, lambda task: task, add, threads=6, delays_s=delays)
        assert sorted(added) == list(range(plan.tasks))
        orders.add(tuple(t for t in added if plan.q[t] == 5))
    assert len(orders) > 1


def bits_of(plan, seed):
    """Add random shares in fp32 on threads with random delays, and give the bits of the sums."""
    shares = np.random.default_rng(0).standard_normal((plan.tasks, 16)).astype(np.float32)
    sums = np.zeros((2, 6, 16), np.float32)

    def add(task, share):
        sums[plan.head[task], plan.q[task]] += share

    delays = np.random.default_rng(seed).exponential(3e-4, plan.tasks).tolist()
    execute(plan, shares.__getitem__, add, threads=6, delays_s=delays)
    return sums.tobytes()


@pytest.mark.parametrize("schedule", [*SCHEDULES, "atomic"])
def test_an_order_gives_one_result_and_no_order_several(schedule):
    """What `bits` shows with torch (test_bits.py), in numpy: the order decides the bits."""
    results = {bits_of(a_plan(schedule, n=6), seed) for seed in range(4)}
    assert len(results) > 1 if schedule == "atomic" else len(results) == 1


def ring():
    """Two processors, each waiting for what the other adds after it."""
    return Plan(
        head=np.zeros(4, np.int32),
        kv=np.array([0, 0, 1, 1], np.int32),
        q=np.array([0, 1, 1, 0], np.int32),
        rank=np.array([1, 0, 1, 0], np.int32),
        starts=np.array([0, 2, 4]),
    )


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_a_deadlock_ends(threads):
    before = threading.active_count()
    with pytest.raises(NegativeResult, match="deadlock: 4 tasks left, and none of them can run"):
        execute(ring(), lambda task: task, lambda *_: None, threads=threads)
    assert threading.active_count() == before


def test_an_error_in_a_task_ends_all_threads():
    before, plan = threading.active_count(), a_plan("asc")

    def compute(task):
        if task == 7:
            raise ValueError("task 7")

    with pytest.raises(ValueError, match="task 7"):
        execute(plan, compute, lambda *_: None, threads=4)
    assert threading.active_count() == before


def test_ctrl_c_ends_all_threads():
    before, plan = threading.active_count(), a_plan("asc")
    done: list[int] = []

    def compute(task):
        if task == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        execute(
            plan,
            compute,
            lambda task, _: done.append(task),
            threads=2,
            delays_s=[0.05] * plan.tasks,
        )
    assert threading.active_count() == before
    assert len(done) < plan.tasks


def test_processors_without_tasks():
    plan = replace(a_plan("asc", n=2, heads=1, processors=5))
    assert sorted(execute(plan, lambda t: t, lambda *_: None, threads=3)) == [0, 1, 2]

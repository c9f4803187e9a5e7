"""How fast planning and simulating are on this machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from bitsched.checking import check
from bitsched.costs import Costs
from bitsched.listscheduling import schedule_tasks
from bitsched.planning import Schedule, make_plan
from bitsched.shape import Shape, causal, full
from bitsched.simulation import simulate
from bitsched.tasklist import TaskList

_TILES = 64
_SHARES = 50  # tasks that add to one sum, in the random graph


def measure(size: int, repeats: int) -> Iterator[dict[str, Any]]:
    """Yield one record a job of about `size` tasks: median, least and most wall time.

    The first run of each job, which may compile, is not counted. Plans are of 64 tiles a side.
    """
    costs = Costs()
    schedules: tuple[Schedule, ...] = ("asc", "sym", "shift", "list")
    for schedule in schedules:
        active = full(_TILES, _TILES) if schedule == "shift" else causal(_TILES, _TILES)
        heads = max(2, round(size / int(active.sum()) / 2) * 2)
        shape = Shape(heads, active, mask="full" if schedule == "shift" else "causal")
        plan = make_plan(shape, schedule)

        yield _timed(f"plan {schedule}", plan.tasks, repeats, partial(make_plan, shape, schedule))
        yield _timed(f"simulate {schedule}", plan.tasks, repeats, partial(simulate, plan, costs))
        if schedule == "sym":
            yield _timed("check sym", plan.tasks, repeats, partial(check, plan))
    tasks = random_tasks(size)
    scheduled = schedule_tasks(tasks, "list", 128)
    yield _timed("graph list", size, repeats, lambda: schedule_tasks(tasks, "list", 128))
    yield _timed("simulate graph", size, repeats, lambda: simulate(scheduled.graph))


def random_tasks(size: int, seed: int = 0) -> TaskList:
    """Make a graph of `size` tasks: two thirds after one of the 2,000 before, 50 in each sum."""
    rng = np.random.default_rng(seed)
    target = np.arange(10, size)
    target = target[target % 3 > 0]
    source = rng.integers(np.maximum(0, target - 2000), target)
    return TaskList(
        ids=[str(task) for task in range(size)],
        duration=rng.integers(1, 9, size).astype(np.float64),
        reduce=np.ones(size),
        into=np.arange(size) // _SHARES,
        accumulators=[f"sum {k}" for k in range((size - 1) // _SHARES + 1)],
        processor=np.full(size, -1),
        edges=np.stack([source, target], axis=1),
        records=[],
        path="random",
    )


def _timed(job: str, size: int, repeats: int, work: Callable[[], object]) -> dict[str, Any]:
    work()
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return {
        "job": job,
        "tasks": size,
        "repeats": repeats,
        "wall_s": statistics.median(times),
        "wall_s_min": min(times),
        "wall_s_max": max(times),
        "tasks_per_s": size / statistics.median(times),
    }

"""What `sim` says of a run: the whole, each processor, each task, the critical path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from bitsched.costs import Costs
from bitsched.plan import Plan
from bitsched.simulation import DeadlockError, Simulation
from bitsched.taskgraph import Longs

Show = Literal["summary", "processors", "tasks", "path"]

_SHAPE = ("schedule", "assign", "mask", "heads", "kv_heads", "n_kv", "n_q")


def records(plan: Plan, run: Simulation, costs: Costs, show: Show) -> Iterator[dict[str, Any]]:
    """Give the records of a run: one, or one for each processor or task (in order of start)."""
    if show == "summary":
        yield summary(plan, run, costs)
    elif show == "processors":
        yield from processors(run)
    elif show == "path":
        yield from tasks(plan, run, run.critical_path)
    else:
        yield from tasks(plan, run, np.lexsort((np.arange(plan.tasks), run.start)))


def summary(plan: Plan, run: Simulation, costs: Costs) -> dict[str, Any]:
    """Say how long a plan takes, how much of it is idle, and how far from the bound it is.

    Times are in the unit of the costs; `gap` is the makespan over the largest lower bound.
    """
    total = run.makespan * plan.processors
    return _of(plan, costs) | {
        "verdict": "yes",
        "makespan": run.makespan,
        "gap": run.gap,
        "bound": run.bounds.best,
        "bound_by": run.bounds.binding,
        "idle_share": run.idle_share,
        "stalled_share": float(run.stalled.sum()) / total if total else 0.0,
        "work_bound": run.bounds.work,
        "chain_bound": run.bounds.chain,
        "reduction_bound": run.bounds.reduction,
        "load_bound": run.bounds.load,
        "path_tasks": int(run.critical_path.size),
        "waiting": [],
    }


def deadlocked(plan: Plan, error: DeadlockError, costs: Costs) -> dict[str, Any]:
    """Say which tasks wait for ever; what a run would have given is null."""
    names = (
        "makespan gap bound bound_by idle_share stalled_share work_bound chain_bound "
        "reduction_bound load_bound path_tasks"
    )
    waiting = [
        [int(plan.head[task]), int(plan.kv[task]), int(plan.q[task])] for task in error.waiting
    ]
    empty = dict.fromkeys(names.split())
    return _of(plan, costs) | {"verdict": "no"} | empty | {"waiting": waiting}


def _of(plan: Plan, costs: Costs) -> dict[str, Any]:
    shape = {name: plan.about.get(name) for name in _SHAPE}
    return shape | {
        "processors": plan.processors,
        "tasks": plan.tasks,
        "deterministic": plan.ordered,
        "c": costs.compute,
        "r": costs.reduce,
    }


def processors(run: Simulation) -> Iterator[dict[str, Any]]:
    """Give a record for each processor: its tasks, and how its time was spent."""
    graph = run.graph
    for p in range(graph.processors):
        first, last = int(graph.starts[p]), int(graph.starts[p + 1])
        yield {
            "processor": p,
            "tasks": last - first,
            "busy": float(run.busy[p]),
            "stalled": float(run.stalled[p]),
            "idle": float(run.idle[p]),
            "idle_share": float(run.idle[p]) / run.makespan if run.makespan else 0.0,
            "end": float(run.end[last - 1]) if last > first else 0.0,
        }


def tasks(plan: Plan, run: Simulation, order: Longs) -> Iterator[dict[str, Any]]:
    """Give a record for each task in `order`: where, when, and when its share was added."""
    processor = plan.processor()
    for task in order.tolist():
        yield {
            "processor": int(processor[task]),
            "head": int(plan.head[task]),
            "kv": int(plan.kv[task]),
            "q": int(plan.q[task]),
            "rank": int(plan.rank[task]),
            "start": float(run.start[task]),
            "compute_end": float(run.compute_end[task]),
            "reduce_start": float(run.end[task] - run.graph.reduce[task]),
            "end": float(run.end[task]),
        }

"""The general form under the simulator: tasks on processors, each a compute and a reduce."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bitsched.costs import Costs
from bitsched.plan import Plan

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]


def _no_edges() -> Longs:
    return np.empty((0, 2), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class TaskGraph:
    """Tasks in the order of their processors: p runs `starts[p]:starts[p + 1]`, in this order.

    `compute`, `reduce` [tasks]: durations. `before` [tasks]: the task whose reduce must have
    ended before this one's reduce starts, or -1; `latency` [tasks] passes between the two.
    `edges` [edges, 2]: further pairs (u, v): v starts to compute only when u has ended. `phase`
    [tasks]: a task starts only when all tasks of lower phases have ended (a barrier). `chain`
    and `target` [tasks]: what must stay on one processor, and which sum is added to; they serve
    the bounds. `labels` name the tasks for a person. Raises `ValueError` for arrays that do not
    fit together.
    """

    compute: Floats
    reduce: Floats
    starts: Longs
    before: Longs
    latency: Floats | None = None
    edges: Longs = field(default_factory=_no_edges)
    phase: Longs | None = None
    chain: Longs | None = None
    target: Longs | None = None
    labels: Sequence[str] | None = None

    def __post_init__(self) -> None:
        tasks = self.compute.size
        for name in ("reduce", "before", "latency", "phase", "chain", "target"):
            value = getattr(self, name)
            if value is not None and value.shape != (tasks,):
                raise ValueError(f"{name} has shape {value.shape}, not one value for each task")
        if self.starts.size < 2 or self.starts[0] != 0 or self.starts[-1] != tasks:
            raise ValueError("the processors do not cover the tasks")
        if tasks and (self.before.min() < -1 or self.before.max() >= tasks):
            raise ValueError("a task comes after one that is not there")
        if self.edges.size and (self.edges.min() < 0 or self.edges.max() >= tasks):
            raise ValueError("an edge leads to a task that is not there")

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return int(self.compute.size)

    @property
    def processors(self) -> int:
        """The number of processors."""
        return int(self.starts.size - 1)

    def processor(self) -> Longs:
        """Give the processor of each task: [tasks]."""
        return np.repeat(np.arange(self.processors), np.diff(self.starts))

    def label(self, task: int) -> str:
        """Name a task for a person."""
        return self.labels[task] if self.labels is not None else f"task {task}"


class TileLabels(Sequence[str]):
    """The names of a plan's tasks, made when asked for."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def __len__(self) -> int:
        return self._plan.tasks

    def __getitem__(self, task: int) -> str:  # type: ignore[override]
        return tile_name(self._plan, task)


def tile_name(plan: Plan, task: int) -> str:
    """Name a tile: its head, KV tile and Q tile."""
    return f"head {plan.head[task]} KV {plan.kv[task]} Q {plan.q[task]}"


def sums(plan: Plan) -> Longs:
    """Give the number of the dQ tile that each task adds to, unique for (head, q): [tasks]."""
    return _small(plan.head.astype(np.int64) * (int(plan.q.max(initial=0)) + 1) + plan.q)


def chains(plan: Plan) -> Longs:
    """Give the number of the chain of each task, unique for (KV head, KV tile): [tasks]."""
    kv_head = plan.head.astype(np.int64) // group_of(plan)
    return _small(kv_head * (int(plan.kv.max(initial=0)) + 1) + plan.kv)


def _small(numbers: Longs) -> Longs:
    """Keep numbers that can index an array, and renumber others (a plan's file may hold any)."""
    if numbers.max(initial=0) <= 8 * numbers.size + 1024:
        return numbers
    return np.unique(numbers, return_inverse=True)[1].reshape(-1).astype(np.int64)


def group_of(plan: Plan) -> int:
    """Give how many query heads share a KV head."""
    heads, kv_heads = plan.about.get("heads"), plan.about.get("kv_heads")
    if isinstance(heads, int) and isinstance(kv_heads, int) and kv_heads > 0:
        return max(heads // kv_heads, 1)
    return 1


def predecessors(plan: Plan) -> Longs:
    """Give for each task the one that adds to the same dQ tile just before it, or -1: [tasks]."""
    before = np.full(plan.tasks, -1, dtype=np.int64)
    if not plan.tasks or not plan.ordered:
        return before
    target = sums(plan)
    order = np.argsort(target * (int(plan.rank.max()) + 1) + plan.rank, kind="stable")
    same = target[order[1:]] == target[order[:-1]]
    before[order[1:][same]] = order[:-1][same]
    return before


def task_graph(plan: Plan, costs: Costs, *, head_barrier: bool = False) -> TaskGraph:
    """Turn a plan into the graph that the simulator runs (sheet items 2, 3 and 11).

    With `head_barrier` no head (no group of query heads) begins before the one before it ended.
    """
    before = predecessors(plan)
    latency = None
    if costs.latency_local or costs.latency_remote:
        latency = _latency(plan, costs, before)
    tasks = plan.tasks
    compute = np.full(tasks, costs.tile(plan.about.get("schedule")))
    if costs.join_latency:
        compute[_joining(plan, before)] += costs.join_latency
    return TaskGraph(
        compute=compute,
        reduce=np.full(tasks, float(costs.reduce)),
        starts=plan.starts,
        before=before,
        latency=latency,
        phase=plan.head.astype(np.int64) // group_of(plan) if head_barrier else None,
        chain=chains(plan),
        target=sums(plan) if plan.ordered else None,
        labels=TileLabels(plan),
    )


def _joining(plan: Plan, before: Longs) -> Longs:
    """Give the first task of each chain that has one before it in its sum."""
    later = np.flatnonzero(before >= 0)
    chain, processor = chains(plan)[later], plan.processor()[later]
    first = np.ones(later.size, dtype=bool)
    first[1:] = (chain[1:] != chain[:-1]) | (processor[1:] != processor[:-1])
    return later[first]


def _latency(plan: Plan, costs: Costs, before: Longs) -> Floats:
    processor = plan.processor()
    other = processor[before]
    part = costs.partition(plan.processors)
    far = np.where(part[other] == part[processor], costs.latency_local, costs.latency_remote)
    return np.where((before < 0) | (other == processor), 0.0, far)

"""The simulator: when each task runs, how long all of it takes, and what waits for what."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bitsched.costs import Costs
from bitsched.kernel import Kernel
from bitsched.lowerbounds import Bounds, bounds
from bitsched.plan import Plan
from bitsched.taskgraph import Floats, TaskGraph, task_graph
from papercuts.errors import NegativeResult

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Costs", "DeadlockError", "Simulation", "simulate"]

_SHOWN = 12  # tasks of a deadlock that its message names


class DeadlockError(NegativeResult):
    """Tasks wait for one another (exit 1).

    `waiting` holds the tasks at which processors stand; `cycle` those of them that wait for one
    another in a ring (each for a task of the next one's processor), empty where none was found.
    """

    def __init__(self, graph: TaskGraph, waiting: Sequence[int], cycle: Sequence[int]) -> None:
        shown = cycle or waiting
        names = ", ".join(graph.label(task) for task in shown[:_SHOWN])
        more = f", ... and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
        how = "wait for one another in a ring" if cycle else "wait for ever"
        if len(shown) == 1:
            how = "waits for a later task of its own processor" if cycle else "waits for ever"
        if not cycle and graph.phase is not None:
            how += " (the plan does not go head by head, as the barrier asks)"
        super().__init__(f"deadlock: {names}{more} {how}")
        self.waiting = list(waiting)
        self.cycle = list(cycle)


@dataclass(frozen=True, eq=False)
class Simulation:
    """When each task of a graph starts, has computed and ends: [tasks] float64 each.

    Times are sums and maxima of the costs: exact for whole numbers.
    """

    graph: TaskGraph
    start: Floats
    compute_end: Floats
    end: Floats
    bounds: Bounds

    @cached_property
    def makespan(self) -> float:
        """The time at which the last task ends."""
        return float(self.end.max(initial=0.0))

    @cached_property
    def busy(self) -> Floats:
        """How long each processor computes or adds: [processors]."""
        return self._per_processor(self.graph.compute + self.graph.reduce)

    @cached_property
    def stalled(self) -> Floats:
        """How long each processor holds a computed tile that may not be added yet: [processors]."""
        return self._per_processor(self.end - self.graph.reduce - self.compute_end)

    @cached_property
    def idle(self) -> Floats:
        """How long each processor does nothing until the makespan, stalls included."""
        return self.makespan - self.busy

    @property
    def idle_share(self) -> float:
        """The share of all processors' time that is idle."""
        total = self.makespan * self.graph.processors
        return float(self.idle.sum()) / total if total else 0.0

    @property
    def gap(self) -> float:
        """Makespan over the largest lower bound: 1 is optimal."""
        return self.makespan / self.bounds.best if self.bounds.best else 1.0

    @cached_property
    def critical_path(self) -> NDArray[np.int64]:
        """Give the tasks, first to last, whose durations and delays add up to the makespan."""
        return np.array(_critical_path(self), dtype=np.int64)

    def _per_processor(self, values: Floats) -> Floats:
        processor, count = self.graph.processor(), self.graph.processors
        return np.asarray(np.bincount(processor, weights=values, minlength=count), np.float64)


def simulate(
    plan: Plan | TaskGraph, costs: Costs | None = None, *, head_barrier: bool = False
) -> Simulation:
    """Run a plan (or a graph, which has its own costs) to its end (sheet item 3).

    A processor takes its tasks in order. A task computes, waits until the task before it in its
    sum has been added, adds its own share, which blocks the processor, and only then the next
    begins. Time in the units of the costs; linear in the number of tasks. Raises `DeadlockError`
    when tasks wait for one another.
    """
    if isinstance(plan, Plan):
        plan = task_graph(plan, costs or Costs(), head_barrier=head_barrier)
    tasks = plan.tasks
    latency = np.zeros(tasks) if plan.latency is None else plan.latency
    phase, phases = _phases(plan)
    needs_starts, needs = _incoming(plan)
    start, compute_end, end, at, waits = RUN(
        tasks, plan.compute, plan.reduce, plan.starts, plan.before, latency,
        phase, phases, np.zeros(phases.size + 1), needs_starts, needs,
        *(np.full(tasks, -1.0) for _ in range(3)), np.full(tasks, -1), np.zeros(plan.processors),
        *(np.full(plan.processors, -1) for _ in range(5)),
    )  # fmt: skip
    result = Simulation(
        plan, np.asarray(start), np.asarray(compute_end), np.asarray(end), bounds(plan)
    )
    if tasks and result.end.min() < 0:
        raise _deadlock(plan, np.asarray(at), np.asarray(waits))
    return result


def _phases(graph: TaskGraph) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give the phases numbered without gaps [tasks], and the number of tasks of each."""
    if graph.phase is None:
        empty = np.empty(0, dtype=np.int64)
        return empty, empty
    _, phase, count = np.unique(graph.phase, return_inverse=True, return_counts=True)
    return phase.astype(np.int64), count.astype(np.int64)


def _incoming(graph: TaskGraph) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sort the further edges by the task they lead to."""
    if not graph.edges.size:
        empty = np.empty(0, dtype=np.int64)
        return empty, empty
    order = np.argsort(graph.edges[:, 1], kind="stable")
    counts = np.bincount(graph.edges[:, 1], minlength=graph.tasks)
    return np.concatenate([[0], np.cumsum(counts)]), graph.edges[order, 0]


def _run(
    compute: Any, reduce: Any, starts: Any, before: Any, latency: Any,
    phase: Any, left: Any, opened: Any, needs_starts: Any, needs: Any,
    start: Any, compute_end: Any, end: Any, first_waiter: Any,
    clock: Any, at: Any, waits: Any, next_waiter: Any, ready: Any, behind: Any,
) -> Any:  # fmt: skip
    """Advance each processor as far as it goes, and wake those that waited for what it ended.

    Gives start, compute_end, end [tasks] (-1 for what never ran), and for each processor the
    task it stands at and the task that this one waits for (-1: a barrier). `left` counts the tasks
    of each phase that have not ended, `opened` says when it may begin, `behind` holds the
    processors at the barrier; the rest is room to work in.
    """
    processors = len(starts) - 1
    for p in range(processors):
        at[p] = starts[p]
        ready[p] = processors - 1 - p
    count = processors
    barrier = len(left) > 0
    latest = 0.0
    current = 0
    n_behind = 0
    has_needs = len(needs) > 0
    while count > 0:
        count -= 1
        p = ready[count]
        t = at[p]
        last = starts[p + 1]
        now = clock[p]
        while t < last:
            begin = now
            missing = -1
            if barrier:
                if phase[t] > current:
                    behind[n_behind] = p
                    n_behind += 1
                    waits[p] = -1
                    break
                begin = max(begin, opened[phase[t]])
            if has_needs:
                for k in range(needs_starts[t], needs_starts[t + 1]):
                    u = needs[k]
                    if end[u] < 0:
                        missing = u
                        break
                    begin = max(begin, end[u])
            done = begin + compute[t]
            u = before[t]
            turn = done
            if missing < 0 and u >= 0:
                if end[u] < 0:
                    missing = u
                else:
                    turn = max(done, end[u] + latency[t])
            if missing >= 0:
                waits[p] = missing
                next_waiter[p] = first_waiter[missing]
                first_waiter[missing] = p
                break
            now = turn + reduce[t]
            start[t] = begin
            compute_end[t] = done
            end[t] = now
            w = first_waiter[t]
            while w >= 0:
                ready[count] = w
                count += 1
                w = next_waiter[w]
            if barrier:
                latest = max(latest, now)
                left[phase[t]] -= 1
                while current < len(left) and left[current] == 0:
                    current += 1
                    opened[current] = latest
                    while n_behind > 0:
                        n_behind -= 1
                        ready[count] = behind[n_behind]
                        count += 1
            t += 1
        at[p] = t
        clock[p] = now
    return start, compute_end, end, at, waits


RUN = Kernel(_run)


def _deadlock(graph: TaskGraph, at: NDArray[np.int64], waits: NDArray[np.int64]) -> DeadlockError:
    """Name the tasks that wait, and the ring among them."""
    stuck = [p for p in range(graph.processors) if at[p] < graph.starts[p + 1]]
    processor = graph.processor()
    seen: dict[int, int] = {}
    walk: list[int] = []
    p = next((p for p in stuck if waits[p] >= 0), -1)
    while p >= 0 and p not in seen:
        seen[p] = len(walk)
        walk.append(p)
        p = int(processor[waits[p]]) if waits[p] >= 0 else -1
    cycle = [int(at[p]) for p in walk[seen[p] :]] if p >= 0 else []
    return DeadlockError(graph, [int(at[p]) for p in stuck], cycle)


def _critical_path(simulation: Simulation) -> list[int]:
    """Walk back from the task that ends last to what held each one up."""
    graph, start, end = simulation.graph, simulation.start, simulation.end
    if not graph.tasks:
        return []
    first = np.zeros(graph.tasks, dtype=bool)
    first[graph.starts[:-1][graph.starts[:-1] < graph.starts[1:]]] = True
    # From the same sums as in the run: end - reduce may be off by a rounding.
    turn = end[graph.before] + (0.0 if graph.latency is None else graph.latency)
    stalled = (graph.before >= 0) & (turn > simulation.compute_end)
    needs_starts, needs = _incoming(graph)
    # By end, then phase: of those that end when a phase opens, the first is of an earlier one.
    order = np.lexsort((graph.phase, end)) if graph.phase is not None else None
    task = int(end.argmax())
    path = [task]
    while len(path) <= graph.tasks:
        held: list[int] = []
        if stalled[task]:
            held = [int(graph.before[task])]
        elif start[task] <= 0:
            return path[::-1]
        elif not first[task] and end[task - 1] == start[task]:
            held = [task - 1]
        elif needs.size:
            candidates = needs[needs_starts[task] : needs_starts[task + 1]]
            held = candidates[end[candidates] == start[task]].tolist()
        if not held and order is not None:
            held = [int(order[np.searchsorted(end, start[task], sorter=order)])]
        if not held:
            break
        task = held[0]
        path.append(task)
    # A run that no task holds up, or whose path comes back to itself, would be a fault here.
    raise AssertionError(f"nothing holds up {graph.label(task)}, which starts at {start[task]}")

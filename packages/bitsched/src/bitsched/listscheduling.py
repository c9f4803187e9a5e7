"""List scheduling of a task graph: who runs what when, and in which order each sum is taken."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bitsched.kernel import Kernel
from bitsched.taskgraph import Longs, TaskGraph
from bitsched.tasklist import TaskList
from papercuts.errors import UsageError

Schedule = Literal["list", "fifo", "given"]

_SHOWN = 12  # tasks of a cycle that its message names


@dataclass(frozen=True, eq=False)
class Scheduled:
    """A graph that the simulator runs, and what its tasks were called.

    Task t of `graph` is task `task[t]` of the file. `place` [tasks, in the order of the file] is
    the place of a task in its sum, -1 for none. `path` is the longest path of durations along
    `after`, `pinned` the most work that must run on one processor: no schedule is shorter.
    """

    graph: TaskGraph
    task: Longs
    place: Longs
    path: float
    pinned: float


def schedule_tasks(
    tasks: TaskList, schedule: Schedule = "list", processors: int | None = None
) -> Scheduled:
    """Order the tasks on processors, and the shares of each sum.

    `list`: a free processor takes the ready task with the longest path of work behind it; `fifo`:
    the one that comes first in the file. Tasks with a processor of their own stay there, and go
    first. A sum takes its shares as they become ready, so that none waits for one that comes
    later. `given`: every task has a processor, and runs, as it adds, in the order of the file.

    `processors` defaults to what the file says, else to those that its tasks name. Raises
    `DataError` for a cycle, which it names, and for a processor that is not there; `UsageError`
    without a number of processors.
    """
    count = _processors(tasks, processors)
    work = tasks.duration + tasks.reduce
    order = np.argsort(tasks.edges[:, 0], kind="stable")
    out_starts = np.concatenate(
        [[0], np.cumsum(np.bincount(tasks.edges[:, 0], minlength=tasks.tasks))]
    ).astype(np.int64)
    outs = tasks.edges[order, 1]
    incoming = np.bincount(tasks.edges[:, 1], minlength=tasks.tasks).astype(np.int64)
    size = tasks.tasks
    found, tail = RANKS(
        size, work, out_starts, outs, incoming.copy(),
        np.zeros(size, dtype=np.int64), np.zeros(size),
    )  # fmt: skip
    if found < size:
        raise _cycle(tasks)
    tail = np.asarray(tail)
    index = np.arange(size)
    if schedule == "given":
        missing = np.flatnonzero(tasks.processor < 0)
        if missing.size:
            raise tasks.error(int(missing[0]), "it has no processor", "one, with --schedule given")
        where, begun, turn = tasks.processor, index, index
    else:
        priority = np.argsort(-tail, kind="stable") if schedule == "list" else index
        position = np.empty(size, dtype=np.int64)
        position[priority] = index
        pins = np.where(tasks.processor < 0, count, tasks.processor).astype(np.int64)
        bases = np.concatenate([[0], np.cumsum(np.bincount(pins, minlength=count + 1))])
        results = LIST(
            size, count, tasks.duration, tasks.reduce, tasks.into, pins, position, priority,
            out_starts, outs, incoming, np.zeros(max(1, len(tasks.accumulators))),
            np.zeros(size, dtype=np.int64), bases.astype(np.int64),
            np.zeros(count + 1, dtype=np.int64), np.ones(count, dtype=np.int64),
            *(np.full(size, -1) for _ in range(3)),
        )  # fmt: skip
        where, begun, turn = (np.asarray(result) for result in results)
    pinned = np.bincount(np.maximum(tasks.processor, 0), weights=work * (tasks.processor >= 0))
    graph, task, place = _graph(tasks, count, where, begun, turn)
    return Scheduled(graph, task, place, float(tail.max()), float(pinned.max()))


def _processors(tasks: TaskList, processors: int | None) -> int:
    highest = int(tasks.processor.max())
    count = processors if processors is not None else tasks.processors
    if count is None:
        if highest < 0:
            raise UsageError("how many processors? --processors N, or 'processors' in the file")
        count = highest + 1
    if highest >= count:
        task = int(np.flatnonzero(tasks.processor >= count)[0])
        raise tasks.error(task, f"processor is {tasks.processor[task]}", f"one of 0 to {count - 1}")
    return count


def _graph(
    tasks: TaskList, count: int, where: Longs, begun: Longs, turn: Longs
) -> tuple[TaskGraph, Longs, Longs]:
    """Lay the tasks out by processor and start, and each sum by its turns."""
    task = np.lexsort((begun, where))
    new = np.empty_like(task)
    new[task] = np.arange(task.size)
    starts = np.concatenate([[0], np.cumsum(np.bincount(where, minlength=count))])
    adding = np.flatnonzero(tasks.into >= 0)
    adding = adding[np.lexsort((turn[adding], tasks.into[adding]))]
    same = tasks.into[adding[1:]] == tasks.into[adding[:-1]]
    before = np.full(task.size, -1, dtype=np.int64)
    before[new[adding[1:][same]]] = new[adding[:-1][same]]
    place = np.full(task.size, -1, dtype=np.int64)
    first = np.searchsorted(tasks.into[adding], np.arange(len(tasks.accumulators)))
    place[adding] = np.arange(adding.size) - first[tasks.into[adding]]
    # A task without a sum has one of its own, for the bounds.
    target = np.where(tasks.into >= 0, tasks.into, len(tasks.accumulators) + np.arange(task.size))
    graph = TaskGraph(
        compute=tasks.duration[task],
        reduce=tasks.reduce[task],
        starts=starts.astype(np.int64),
        before=before,
        edges=new[tasks.edges].reshape(-1, 2),
        target=target[task],
        labels=[tasks.ids[t] for t in task.tolist()],
    )
    return graph, task, place


def _cycle(tasks: TaskList) -> Exception:
    """Name the tasks of one cycle: walk back along `after` among those that never become free."""
    import networkx as nx

    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_edges_from(tasks.edges.tolist())
    ring = [int(edge[0]) for edge in nx.find_cycle(graph)]
    names = [repr(tasks.ids[task]) for task in ring]
    more = [f"... and {len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    shown = " -> ".join([*names[:_SHOWN], *more, names[0]])
    return tasks.error(ring[0], f"a cycle of {len(ring)}: {shown}", "tasks that can all start")


def _ranks(
    work: Any, out_starts: Any, outs: Any, incoming: Any, order: Any, tail: Any
) -> tuple[Any, Any]:
    """Sort the tasks by their edges, and give the longest path of work from each one on.

    Gives how many were sorted (fewer than all where there is a cycle).
    """
    tasks = len(work)
    count = 0
    for t in range(tasks):
        if incoming[t] == 0:
            order[count] = t
            count += 1
    at = 0
    while at < count:
        t = order[at]
        at += 1
        for k in range(out_starts[t], out_starts[t + 1]):
            v = outs[k]
            incoming[v] -= 1
            if incoming[v] == 0:
                order[count] = v
                count += 1
    for i in range(count - 1, -1, -1):
        t = order[i]
        longest = 0.0
        for k in range(out_starts[t], out_starts[t + 1]):
            longest = max(longest, tail[outs[k]])
        tail[t] = longest + work[t]
    return count, tail


def _list(
    processors: Any, compute: Any, reduce: Any, into: Any, pins: Any, position: Any, task_at: Any,
    out_starts: Any, outs: Any, incoming: Any, sum_end: Any, heap: Any, bases: Any, sizes: Any,
    free: Any, where: Any, begun: Any, turn: Any,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Run the tasks in time; gives the processor, the start and the turn of each, numbered.

    The ready tasks lie in one heap for each processor (those that must run there) and one for
    all (number `processors`), as positions in the order of priority: heap k has `sizes[k]` of
    them from `bases[k]` on.
    """
    tasks = len(compute)
    idle = list(range(processors))  # a heap too; may hold processors that are busy again
    touched = list(range(processors))
    events = [(0.0, 0)]
    events.pop()
    for t in range(tasks):
        if incoming[t] == 0:
            incoming[t] = -1
            h = pins[t]
            k = sizes[h]
            sizes[h] += 1
            x = position[t]
            b = bases[h]
            while k > 0 and heap[b + (k - 1) // 2] > x:
                heap[b + k] = heap[b + (k - 1) // 2]
                k = (k - 1) // 2
            heap[b + k] = x
    now = 0.0
    starts = 0
    turns = 0
    while True:
        at = 0
        while True:
            # First what must run on a processor, then what any free one may take.
            p = -1
            h = -1
            while at < len(touched):
                q = touched[at]
                at += 1
                if free[q] == 1 and sizes[q] > 0:
                    p = q
                    h = q
                    break
            if p < 0:
                if sizes[processors] == 0:
                    break
                while len(idle) > 0 and p < 0:
                    q = heapq.heappop(idle)
                    if free[q] == 1:
                        p = q
                if p < 0:
                    break
                h = processors
            b = bases[h]
            x = heap[b]
            sizes[h] -= 1
            n = sizes[h]
            y = heap[b + n]
            k = 0
            while True:
                child = 2 * k + 1
                if child >= n:
                    break
                if child + 1 < n and heap[b + child + 1] < heap[b + child]:
                    child += 1
                if heap[b + child] >= y:
                    break
                heap[b + k] = heap[b + child]
                k = child
            heap[b + k] = y
            t = task_at[x]
            free[p] = 0
            where[t] = p
            begun[t] = starts
            starts += 1
            heapq.heappush(events, (now + compute[t], 2 * x))
        touched.clear()
        if len(events) == 0:
            break
        now = events[0][0]
        while len(events) > 0 and events[0][0] == now:
            code = heapq.heappop(events)[1]
            t = task_at[code // 2]
            if code % 2 == 0:
                done = now
                if into[t] >= 0:
                    turn[t] = turns
                    turns += 1
                    done = max(now, sum_end[into[t]]) + reduce[t]
                    sum_end[into[t]] = done
                heapq.heappush(events, (done, code + 1))
                continue
            p = where[t]
            free[p] = 1
            heapq.heappush(idle, p)
            touched.append(p)
            for e in range(out_starts[t], out_starts[t + 1]):
                v = outs[e]
                incoming[v] -= 1
                if incoming[v] == 0:
                    h = pins[v]
                    k = sizes[h]
                    sizes[h] += 1
                    x = position[v]
                    b = bases[h]
                    while k > 0 and heap[b + (k - 1) // 2] > x:
                        heap[b + k] = heap[b + (k - 1) // 2]
                        k = (k - 1) // 2
                    heap[b + k] = x
                    if h < processors:
                        touched.append(h)
    return where, begun, turn


RANKS = Kernel(_ranks)
LIST = Kernel(_list)

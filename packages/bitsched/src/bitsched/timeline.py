"""When each processor computes, waits, reduces and idles: what the charts draw."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

IDLE, COMPUTE, WAIT, REDUCE = range(4)
"""What a processor does in a cell; `WAIT` is the time between a compute and its reduction."""


@dataclass(frozen=True, eq=False)
class Timeline:
    """A simulated run of tasks on processors; every array is [tasks].

    A task of `processor` computes in [start, computed), waits for its turn in the sum until
    `reducing`, and reduces until `end`. `group` is what its colour says (a head or an
    accumulator), -1 for none, `group_word` what a group is called, and `group_name(group)` its
    name. `path` lists the tasks of the critical path from first to last. `name(task)` is the
    short name in its bar, and `name_says` what it is made of.
    """

    processors: int
    processor: Longs
    start: Floats
    computed: Floats
    reducing: Floats
    end: Floats
    group: Longs
    path: Longs
    title: str
    name: Callable[[int], str]
    group_word: str = "head"
    group_name: Callable[[int], str] = str
    name_says: str = "KV tile,Q tile"
    unit: str = ""
    processor_word: str = "SM"

    def path_processors(self) -> Longs:
        """Give the processors that the critical path visits, in order of their numbers."""
        return np.unique(self.processor[self.path]).astype(np.int64)

    @property
    def makespan(self) -> float:
        """The end of the last task, 0 without tasks."""
        return float(self.end.max(initial=0.0))

    def path_parts(self) -> list[tuple[int, float, float]]:
        """Give (task, from, to) for the critical path: the stretch of each task that is on it.

        A task that waited for its turn in a sum lies on it with its reduction only.
        """
        path = self.path
        waited = self.reducing[path] > self.computed[path]
        begins = np.where(waited, self.reducing[path], self.start[path])
        return list(zip(path.tolist(), begins.tolist(), self.end[path].tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Raster:
    """A timeline in cells: `state` and `group` [rows, columns]; `rows` are the processors shown.

    A cell shows what takes most of its `step` of time, and the group at its middle.
    """

    rows: Longs
    state: NDArray[np.int8]
    group: Longs
    step: float


def spread_rows(timeline: Timeline, most: int) -> Longs:
    """Give at most `most` processors: where there are more, every k-th."""
    every = max(1, math.ceil(timeline.processors / most))
    return np.arange(0, timeline.processors, every)


def rows_with_path(timeline: Timeline, most: int) -> Longs:
    """Give at most `most` processors: those of the critical path, then others spread evenly.

    Where the path visits more than `most`, those that have most of its time.
    """
    if timeline.processors <= most:
        return np.arange(timeline.processors)
    visited = timeline.path_processors()
    spent = np.zeros(timeline.processors)
    for task, begin, end in timeline.path_parts():
        spent[timeline.processor[task]] += end - begin
    if visited.size >= most:
        return np.sort(visited[np.argsort(-spent[visited], kind="stable")[:most]])
    others = np.setdiff1d(np.arange(timeline.processors), visited)
    room = most - visited.size
    return np.sort(np.append(visited, others[np.arange(room) * others.size // room]))


def raster(timeline: Timeline, columns: int, rows: Longs) -> Raster:
    """Cut a timeline into `columns` cells of equal time, for the processors `rows`."""
    edges = np.linspace(0.0, timeline.makespan or 1.0, columns + 1)
    step = float(edges[1] - edges[0])
    order = np.lexsort((timeline.start, timeline.processor))
    bounds = np.searchsorted(timeline.processor[order], np.arange(timeline.processors + 1))
    state = np.zeros((rows.size, columns), dtype=np.int8)
    group = np.full((rows.size, columns), -1, dtype=np.int64)
    middles = (edges[:-1] + edges[1:]) / 2
    for row, processor in enumerate(rows.tolist()):
        mine = order[bounds[processor] : bounds[processor + 1]]
        if not mine.size:
            continue
        times = np.zeros((4, columns))
        times[COMPUTE] = _covered(timeline.start[mine], timeline.computed[mine], edges)
        times[WAIT] = _covered(timeline.computed[mine], timeline.reducing[mine], edges)
        times[REDUCE] = _covered(timeline.reducing[mine], timeline.end[mine], edges)
        times[IDLE] = step - times.sum(axis=0)
        # Rounding of the edges must not let idle time win over a state that fills its cell.
        times[IDLE][times[IDLE] < 1e-9 * step] = 0.0
        state[row] = times.argmax(axis=0)
        at = np.searchsorted(timeline.start[mine], middles, side="right") - 1
        group[row] = timeline.group[mine[np.maximum(at, 0)]]
    return Raster(rows, state, group, step)


def _covered(begins: Floats, ends: Floats, edges: Floats) -> Floats:
    """Give how much of each cell the intervals cover; they are disjoint and in order."""
    lengths = ends - begins
    before = np.concatenate([[0.0], np.cumsum(lengths)])
    at = np.searchsorted(begins, edges, side="right")
    last = np.maximum(at - 1, 0)
    inside = np.where(at > 0, np.minimum(edges - begins[last], lengths[last]), 0.0)
    return np.diff(before[last] + np.maximum(inside, 0.0))


def ticks(longest: float, most: int) -> list[float]:
    """Give round times from 0 to at most `longest`, at most `most` + 1 of them."""
    if longest <= 0:
        return [0.0]
    rough = longest / max(1, most)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-9))
    return [k * step for k in range(math.floor(longest / step * (1 + 1e-9)) + 1)]


def number(value: float) -> str:
    """Write a time for a person: whole numbers plain, others to four digits."""
    return f"{value:.0f}" if value == round(value) and abs(value) < 1e9 else f"{value:.4g}"


def ordinal(k: int) -> str:
    """Write 2 as 2nd."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(k % 10 if k % 100 not in (11, 12, 13) else 0, "th")
    return f"{k}{ending}"

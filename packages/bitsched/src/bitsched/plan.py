"""A plan: which processor computes which tiles in which order, and in which order dQ is summed."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]

MOST_PROCESSORS = 2**20


def counted(count: int, what: str) -> str:
    """Write `1 tile` or `2 tiles`."""
    return f"{count} {what}{'s' * (count != 1)}"


@dataclass(frozen=True, eq=False)
class Plan:
    """Tasks in the order of their processors (sheet: SM i walks its tasks from first to last).

    Task t is tile (`head[t]`, `kv[t]`, `q[t]`), all [tasks] int32. Processor p has the tasks
    `starts[p]:starts[p + 1]`, in this order; `starts` [processors + 1]. Its share of dQ of (head,
    q) is the `rank[t]`-th that is added, counted from 0; all -1 where the order is left open
    (atomics: not deterministic). `about` says how it was made (mask, schedule, shape).
    """

    head: Ints
    kv: Ints
    q: Ints
    rank: Ints
    starts: NDArray[np.int64]
    about: dict[str, object] = field(default_factory=dict)

    @property
    def processors(self) -> int:
        """The number of processors (SMs)."""
        return int(self.starts.size - 1)

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return int(self.head.size)

    @property
    def ordered(self) -> bool:
        """Whether every sum has a fixed order, so that its bits are always the same."""
        return not bool((self.rank < 0).any())

    def processor(self) -> Ints:
        """Give the processor of each task: [tasks]."""
        counts = np.diff(self.starts)
        return np.repeat(np.arange(counts.size, dtype=np.int32), counts)

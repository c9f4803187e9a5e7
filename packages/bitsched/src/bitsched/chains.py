"""Chains: the tiles of one (KV head, KV tile) in the order in which one processor visits them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitsched.plan import Ints, Plan

Longs = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Chains:
    """All tiles of a shape as chains, in the order in which processors take the chains.

    Chain k has the tasks `starts[k]:starts[k + 1]`; `starts` [chains + 1]. `head`, `kv`, `q`,
    `rank` [tasks] as in a `Plan`. No chain is empty.
    """

    head: Ints
    kv: Ints
    q: Ints
    rank: Ints
    starts: Longs

    @property
    def chains(self) -> int:
        """The number of chains."""
        return int(self.starts.size - 1)

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return int(self.head.size)

    @property
    def lengths(self) -> Longs:
        """The number of tasks of each chain."""
        return np.diff(self.starts)

    def take(self, order: Longs) -> Chains:
        """Give the same chains in another order."""
        lengths = self.lengths[order]
        tasks = ranges(self.starts[order], lengths)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        return Chains(self.head[tasks], self.kv[tasks], self.q[tasks], self.rank[tasks], starts)

    def on_processors(self, processor: Longs, processors: int, about: dict[str, object]) -> Plan:
        """Put chain k on `processor[k]`, after those before it in this order."""
        order = np.argsort(processor, kind="stable")
        dealt = self.take(order)
        counts = np.bincount(processor, weights=self.lengths, minlength=processors)
        starts = np.concatenate([[0], np.cumsum(counts.astype(np.int64))])
        return Plan(dealt.head, dealt.kv, dealt.q, dealt.rank, starts, about)


def ranges(first: Longs, lengths: Longs) -> Longs:
    """Concatenate `first[k] + arange(lengths[k])` over k."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if ends.size else 0
    shift: Longs = np.repeat(first - (ends - lengths), lengths)
    return np.asarray(np.arange(total) + shift, dtype=np.int64)

"""The graph of one tier while it is learnt: its own edges, and those from earlier tiers into it."""

from __future__ import annotations

from collections.abc import Iterator

from tierprune.bits import bits
from tierprune.pag import Mark


class TierGraph:
    """Edges among `size` variables, of which the first `earlier` lie in earlier tiers.

    At the start each variable of the tier has an edge a -> b from each earlier one, and b o-o b'
    to each other of the tier. There are no edges between earlier variables, but any two of them
    count as adjacent (`joined`). Sets are bits (see `tierprune.bits`):

    - `adjacent[u]`: the neighbours of u;
    - `arrow_at[u]`, `tail_at[u]`: those v where the edge u - v has an arrowhead, a tail at u;
    - `arrow_from[u]`, `tail_from[u]`: those v where it has one at v.
    """

    def __init__(self, earlier: int, size: int) -> None:
        self.earlier, self.size = earlier, size
        self.before = (1 << earlier) - 1
        self.tier = range(earlier, size)
        everything = (1 << size) - 1
        own = everything & ~self.before
        self.adjacent = [own if u < earlier else everything & ~(1 << u) for u in range(size)]
        self.reset()

    def reset(self) -> None:
        """Set every mark back to what was known before any test."""
        own = (1 << self.size) - 1 & ~self.before
        self.arrow_at = [0 if u < self.earlier else self.adjacent[u] & self.before
                         for u in range(self.size)]  # fmt: skip
        self.tail_at = [self.adjacent[u] if u < self.earlier else 0 for u in range(self.size)]
        self.arrow_from = [
            self.adjacent[u] & own if u < self.earlier else 0 for u in range(self.size)
        ]
        self.tail_from = [
            0 if u < self.earlier else self.adjacent[u] & self.before for u in range(self.size)
        ]

    def joined(self, u: int) -> int:
        """Give u and what counts as adjacent to it."""
        extended = self.before if u < self.earlier else 0
        return self.adjacent[u] | extended | 1 << u

    def circle_at(self, u: int) -> int:
        """Give those v where the mark at u of the edge u - v is still a circle."""
        return self.adjacent[u] & ~self.arrow_at[u] & ~self.tail_at[u]

    def parents(self, u: int) -> int:
        """Give those v with v -> u."""
        return self.arrow_at[u] & self.tail_from[u]

    def remove(self, i: int, j: int) -> None:
        """Delete the edge i - j."""
        for u, v in ((i, j), (j, i)):
            keep = ~(1 << v)
            for sets in (
                self.adjacent, self.arrow_at, self.tail_at, self.arrow_from, self.tail_from,
            ):  # fmt: skip
                sets[u] &= keep

    def mark(self, u: int, v: int) -> Mark:
        """Give the mark at v of the edge u - v."""
        if not self.adjacent[v] >> u & 1:
            return Mark.NONE
        if self.arrow_at[v] >> u & 1:
            return Mark.ARROW
        return Mark.TAIL if self.tail_at[v] >> u & 1 else Mark.CIRCLE

    def set_mark(self, u: int, v: int, mark: Mark) -> None:
        """Put an arrowhead or a tail in place of the circle at v of the edge u - v."""
        at, leaving = (
            (self.arrow_at, self.arrow_from)
            if mark == Mark.ARROW
            else (self.tail_at, self.tail_from)
        )
        at[v] |= 1 << u
        leaving[u] |= 1 << v

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield the pairs with an edge, i < j, in lexicographic order."""
        for i in range(self.size):
            for j in bits(self.adjacent[i] >> i + 1):
                yield i, i + 1 + j

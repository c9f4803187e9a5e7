"""Which pairs of variables a person must still judge for one query, before any graph is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tierprune.query import Band, Query, band_of
from tierprune.tiers import Tiers

WITHIN = ("->", "<-", "<->", "none")
ACROSS = ("->", "none")


@dataclass(frozen=True)
class Pair:
    """Two variables, a not in a later tier than b, and the kinds of edge that tiers allow.

    Inside a tier a directed and a bidirected edge may stand together.
    """

    a: str
    b: str
    tier_a: int
    tier_b: int

    @property
    def possible(self) -> tuple[str, ...]:
        """What may be between a and b."""
        return WITHIN if self.tier_a == self.tier_b else ACROSS

    def to_dict(self) -> dict[str, Any]:
        """Give the record; the kinds of edge are one text, divided by blanks."""
        return {
            "a": self.a,
            "b": self.b,
            "tier_a": self.tier_a,
            "tier_b": self.tier_b,
            "possible": " ".join(self.possible),
        }


@dataclass(frozen=True)
class Needed:
    """The pairs that a query needs, and how many there would be without pruning.

    `pairs` counts those whose later variable lies in a tier of `band`: the sum over these tiers i
    of n_i (n_1 + ... + n_{i-1}) + n_i (n_i - 1) / 2, with n_i variables in tier i. `never_needed`
    are the variables that are in no such pair and not in the query.
    """

    query: Query
    tiers: Tiers
    band: Band

    def __iter__(self) -> Iterator[Pair]:
        """Yield the pairs, tier by tier of the later variable."""
        groups = self.tiers.groups
        for tier in self._tiers():
            group = groups[tier - 1]
            for place, b in enumerate(group):
                for before, earlier in enumerate(groups[: tier - 1], 1):
                    for a in earlier:
                        yield Pair(a, b, before, tier)
                for a in group[:place]:
                    yield Pair(a, b, tier, tier)

    def _tiers(self) -> range:
        return range(self.band.first, self.band.last + 1)

    @property
    def pairs(self) -> int:
        """How many pairs are left to judge."""
        return sum(self._into(tier) for tier in self._tiers())

    @property
    def all_pairs(self) -> int:
        """How many pairs there are."""
        return sum(self._into(tier) for tier in range(1, len(self.tiers) + 1))

    @property
    def never_needed(self) -> tuple[str, ...]:
        """The variables outside the query that are in no pair."""
        last = self.band.last if self.pairs else 0
        return tuple(
            name
            for name, tier in self.tiers.of.items()
            if tier > last and name not in self.query.names
        )

    def _into(self, tier: int) -> int:
        sizes = [len(group) for group in self.tiers.groups[:tier]]
        own = sizes.pop()
        return own * sum(sizes) + own * (own - 1) // 2


def needed_pairs(tiers: Tiers, query: Query) -> Needed:
    """Give the pairs to judge for `query` by Propositions 3.2, 3.5 and 3.6.

    Every other pair may have any edge that the tiers allow: the answer stays the same. Raises
    `ValueError` for a name of the query that has no tier.
    """
    query.check(tiers.names, "the tiers")
    return Needed(query, tiers, band_of(query, tiers))

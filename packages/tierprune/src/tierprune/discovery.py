"""Learning the part of the PAG that a query needs (Algorithm 1), or all of it (FCITIERS)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tierprune.bits import bits
from tierprune.exogenous import LearntTier, Settings, Step, learn_tier
from tierprune.independence.base import Floats, Independence, Ints
from tierprune.pag import PAG, Mark
from tierprune.query import Band
from tierprune.tiers import Tiers

Told = Callable[[int, Step], None]


class TierCost(NamedTuple):
    """What one tier cost: tests asked for, those of them computed, and seconds."""

    tier: int
    tests: int
    computed: int
    wall_s: float


class Contradiction(NamedTuple):
    """Where the tests contradict each other: `rule` wanted `wanted` at `at` of the edge a - b.

    R0 and R4 also say where no separating set is known for a and b (`at` is None).
    """

    rule: str
    a: str
    b: str
    at: str | None
    wanted: str


class Finished(NamedTuple):
    """A tier that was learnt: edges with their marks, and separating sets, by names."""

    cost: TierCost
    edges: tuple[tuple[str, str, Mark, Mark], ...]
    sepsets: tuple[tuple[str, str, tuple[str, ...]], ...]
    contradictions: tuple[Contradiction, ...]
    capped: bool


@dataclass(frozen=True)
class Discovered:
    """What was learnt: the edges of the tiers of `band`, over all variables of `tiers`.

    `sepsets` holds, for each pair of the band without an edge, the set that separates it (the pair
    in the order of the tiers). `capped` says that larger sets were left out by `max_cond`.
    """

    pag: PAG
    tiers: Tiers
    band: Band
    sepsets: dict[tuple[str, str], tuple[str, ...]]
    costs: tuple[TierCost, ...]
    contradictions: tuple[Contradiction, ...]
    capped: bool

    @property
    def tests(self) -> int:
        """How many tests were asked for."""
        return sum(cost.tests for cost in self.costs)

    @property
    def computed(self) -> int:
        """How many of the tests were not answered by an earlier one."""
        return sum(cost.computed for cost in self.costs)

    @property
    def wall_s(self) -> float:
        """Seconds that learning took, without reading the data."""
        return sum(cost.wall_s for cost in self.costs)


def discover(
    test: Independence,
    tiers: Tiers,
    band: Band | None = None,
    *,
    max_cond: int | None = None,
    jobs: int = 1,
    told: Told | None = None,
    done: Sequence[Finished] = (),
    keep: Callable[[Finished], None] | None = None,
) -> Discovered:
    """Learn the components of the tiers in `band` (default: all tiers, which is FCITIERS).

    With the band of a query (`band_of`) this is Algorithm 1: by Proposition 4.1 its result is the
    whole PAG restricted to the band. Tiers do not depend on one another. `max_cond` bounds the
    size of separating sets; above it edges may stay that larger sets would remove. `jobs`
    processes share the tests of a level where that pays; result and counts do not depend on it.
    `told` hears, with the number of the tier, how the search goes on. Tiers that are `done`, from
    an earlier run on the same data, are not learnt again; `keep` is given each other when it is
    finished. Raises `ValueError` for a
    variable of a needed tier that `test` does not know.
    """
    used = band or Band(1, len(tiers), "all")
    names = tiers.names
    needed = [name for group in tiers.groups[: used.last] for name in group]
    if used.first > used.last:
        needed = []
    renamed = _in_order(test, needed)
    known = {each.cost.tier: each for each in done}
    finished: list[Finished] = []
    for tier in range(used.first, used.last + 1):
        if tier in known:
            finished.append(known[tier])
            continue
        begun = time.perf_counter()
        size = sum(map(len, tiers.groups[:tier]))
        earlier = size - len(tiers.groups[tier - 1])
        learnt = learn_tier(
            renamed,
            earlier,
            size,
            Settings(max_cond, jobs),
            None if told is None else _told_of(told, tier),
        )
        cost = TierCost(tier, learnt.tests, learnt.computed, time.perf_counter() - begun)
        finished.append(_finished(learnt, names, cost))
        if keep is not None:
            keep(finished[-1])
    return Discovered(
        PAG.from_edges(names, [edge for each in finished for edge in each.edges]),
        tiers,
        used,
        {(a, b): given for each in finished for a, b, given in each.sepsets},
        tuple(each.cost for each in finished),
        tuple(found for each in finished for found in each.contradictions),
        any(each.capped for each in finished),
    )


def warm_up(test: Independence) -> None:
    """Search a few variables once, so that what a process pays at its start is not measured."""
    names = test.names[:4]
    if len(names) > 1:
        discover(test, Tiers((names[:1], names[1:])))
    test.forget()


def _told_of(told: Told, tier: int) -> Callable[[Step], None]:
    return lambda step: told(tier, step)


def _finished(learnt: LearntTier, names: Sequence[str], cost: TierCost) -> Finished:
    graph = learnt.graph
    return Finished(
        cost,
        tuple((names[i], names[j], graph.mark(j, i), graph.mark(i, j)) for i, j in graph.pairs()),
        tuple(
            (names[i], names[j], tuple(names[u] for u in bits(mask)))
            for (i, j), mask in sorted(learnt.sepsets.items())
        ),
        tuple(_contradictions(learnt, names)),
        learnt.capped,
    )


def _contradictions(learnt: LearntTier, names: Sequence[str]) -> Iterator[Contradiction]:
    for rule, u, v, wanted in learnt.conflicts:
        at = names[v] if wanted in ("arrow", "tail") else None
        yield Contradiction(rule, names[u], names[v], at, wanted)


def restricted(pag: PAG, tiers: Tiers, band: Band) -> PAG:
    """Give the edges of `pag` whose later end lies in a tier of `band`."""
    tier = np.array([tiers.of[name] for name in pag.names])
    later = np.maximum.outer(tier, tier)
    inside = (later >= band.first) & (later <= band.last)
    return PAG(pag.names, np.where(inside, pag.marks, Mark.NONE).astype(np.int8))


def _in_order(test: Independence, names: Sequence[str]) -> Independence:
    """Give the test on the variables `names` in their order."""
    index = {name: i for i, name in enumerate(test.names)}
    for name in names:
        if name not in index:
            raise ValueError(f"{name} of the tiers is not among the variables tested")
    order = [index[name] for name in names]
    return test if order == list(range(len(order))) else _Reordered(test, order)


class _Reordered(Independence):
    """Variable i is variable order[i] of another test."""

    def __init__(self, test: Independence, order: Sequence[int]) -> None:
        super().__init__([test.names[i] for i in order], test.alpha)
        self.name, self.ahead = test.name, test.ahead
        self._test, self._order = test, np.array(order, dtype=np.int64)

    def p_values(self, left: Ints, right: Ints, given: Ints) -> Floats:
        order = self._order
        return self._test.p_values(order[left], order[right], order[given])

    def decide(self, left: Ints, right: Ints, given: Ints) -> NDArray[np.bool_]:
        order = self._order
        return self._test.decide(order[left], order[right], order[given])

    def expect(self, around: Mapping[int, int], size: int) -> None:
        order = self._order.tolist()
        self._test.expect(
            {order[v]: sum(1 << order[u] for u in bits(mask)) for v, mask in around.items()}, size
        )

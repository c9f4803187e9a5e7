"""Sets that may separate two variables of a tier that no set of their neighbours separates.

Possible-D-SEP has up to 2^n subsets of all variables. Few of them can be D-SEP(x, y) (Spirtes,
Meek and Richardson 1999): the variables that colliders on a path lead to from x, all
of them ancestors of x or y. In what follows x and y have no edge, and an edge is still there once
all sets of neighbours were tested; "cause" is a direct or indirect one.

D-SEP(x, y) and D-SEP(y, x) each separate any two variables without an edge, whichever causes the
other. All that lies on a path that is open given D-SEP(x, y) is an ancestor of x or y. So the
variable next to x is in the set, and the path is open there only if it is a collider; then so is
the one after it, and so on up to y. Such a path is inducing: x and y would have an edge.

1. An earlier a and a b of the tier are never such a pair. D-SEP(b, a) separates, and b is no cause
   of a. The first collider on a path from b has an arrowhead from b, so it is no cause of b,
   and it lies in the tier, so it is no cause of a: there is none, and D-SEP(b, a) are neighbours.
2. Neither x nor y causes the other. If x does not cause y, the first collider v on a path from x is
   no cause of x, so it causes y; were y a cause of x, v would be too. Hence x <-> v, and y <-> w
   for some w that causes x, along paths inside the tier. Where no v or no w can be, the edge stays.
   Elsewhere D-SEP from one end is enough, since that from each end separates.
3. D-SEP(x, y) is some T of the tier, and the earlier neighbours of x and of the colliders in T. All
   are ancestors of x or y, and what separates still does with more ancestors. So one set for each T
   is enough: T, the earlier neighbours of x, and those of all in T that may be colliders.
4. Only what lies on a path between x and y need be in a set (Colombo and others 2012).

Marks that R0 sets before all edges are gone may be wrong. What is used here is right. Edges are
certain to stay by 1 or 2. Where t - u is certain, t and w have no edge, and u does not separate
them, an edge u - w has an arrowhead at u: u does not cause w. Where a set was found with the
smallest size, each of its members causes one of the pair: a member that does not cause the one
(that is an earlier variable, or there is such an arrowhead) causes the other. Conclusions are drawn
until no edge more is certain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

from tierprune.bits import bits, closure, mask_of, turned
from tierprune.orientation import Sepsets
from tierprune.tiergraph import TierGraph


@dataclass(frozen=True)
class DSep:
    """What may be in D-SEP(v, other), all as sets (see `tierprune.bits`).

    `first` may be the first collider on a path from v, `inner` any collider, `own` are all of the
    tier, `before` [variable] the earlier neighbours of each.
    """

    v: int
    other: int
    first: int
    inner: int
    own: int
    before: tuple[int, ...]

    @property
    def total(self) -> int:
        """How many sets there are."""
        size = self.own.bit_count()
        return (1 << size) - (1 << size - self.first.bit_count())

    @property
    def everything(self) -> int:
        """Give all that a set may hold."""
        return self.with_earlier(self.own)

    def with_earlier(self, chosen: int) -> int:
        """Give the set of those `chosen` in the tier."""
        found = chosen | self.before[self.v]
        for u in bits(chosen & self.inner):
            found |= self.before[u]
        return found

    def sets(self) -> Iterator[int]:
        """Yield the sets, those with the fewest variables of the tier first."""
        members = list(bits(self.own))
        for size in range(1, len(members) + 1):
            for some in combinations(members, size):
                chosen = mask_of(some)
                if chosen & self.first:
                    yield self.with_earlier(chosen)


class DSepSearch:
    """What the skeleton of a tier and its separating sets say of D-SEP of its pairs.

    `graph` has the arrowheads of R0, `sepsets` the sets that were found with sets of neighbours.
    """

    def __init__(self, graph: TierGraph, sepsets: Sepsets) -> None:
        self._graph, self._sepsets = graph, sepsets
        self._own = (1 << graph.size) - 1 & ~graph.before
        self._before = tuple(mask & graph.before for mask in graph.adjacent)
        self._certain = list(self._before)  # neighbours whose edge is certain to stay
        self._effects = self._causes = self._not_into = [0] * graph.size
        self._sources: list[int] = []
        self._conclude()
        while self._settle():
            self._conclude()

    def _settle(self) -> bool:
        """Note which edges are certain to stay by now; say whether there are new ones."""
        new = [
            (x, y)
            for x, y in self._graph.pairs()
            if x >= self._graph.earlier and not self._certain[x] >> y & 1 and not self.of(x, y)
        ]
        for x, y in new:
            self._certain[x] |= 1 << y
            self._certain[y] |= 1 << x
        return bool(new)

    def _conclude(self) -> None:
        """Draw conclusions from the edges that are certain, and from earlier conclusions."""
        graph = self._graph
        self._effects = self._known_effects()
        self._causes = turned(self._effects)
        self._not_into = [self._no_causes(u) for u in range(graph.size)]
        onwards = (
            graph.adjacent[u] & self._own & ~self._not_into[u] if u in graph.tier else 0
            for u in range(graph.size)
        )
        self._sources = turned(list(onwards))

    def of(self, x: int, y: int) -> list[DSep]:
        """Give D-SEP of x < y from both ends; nothing where their edge is certain to stay."""
        if x < self._graph.earlier or (self._effects[x] >> y | self._effects[y] >> x) & 1:
            return []
        block = next(mask for mask in self._blocks if mask >> x & mask >> y & 1)
        inside = self._own & block
        to_x = closure(self._sources.__getitem__, 1 << x, inside & ~(1 << y))
        to_y = closure(self._sources.__getitem__, 1 << y, inside & ~(1 << x))
        ancestors = (to_x | to_y) & ~(1 << x) & ~(1 << y)
        first_x = self._spouses(x) & to_y & ~(1 << y)
        first_y = self._spouses(y) & to_x & ~(1 << x)
        if not first_x or not first_y or (first_x | first_y).bit_count() == 1:
            return []
        return [self._from(y, x, first_y, ancestors), self._from(x, y, first_x, ancestors)]

    def _from(self, v: int, other: int, first: int, ancestors: int) -> DSep:
        graph, done = self._graph, [0] * self._graph.size
        own, inner = graph.adjacent[v] & ancestors, first
        states = [(v, u) for u in bits(first)]
        while states:
            before, u = states.pop()
            inner |= 1 << u
            onwards = graph.joined(before)
            if graph.arrow_at[u] >> before & 1:
                onwards |= graph.arrow_at[u]
            onwards &= graph.adjacent[u] & ancestors & ~(1 << before)
            onwards &= ~self._effects[u] & ~done[u]
            done[u] |= onwards
            own |= onwards
            states += [(u, w) for w in bits(onwards & ~self._causes[u])]
        return DSep(v, other, first, inner, own, self._before)

    def _spouses(self, u: int) -> int:
        """Give those of the tier to which u may have an edge u <-> v."""
        return self._graph.adjacent[u] & self._own & ~self._effects[u] & ~self._causes[u]

    def _known_effects(self) -> list[int]:
        effects = list(self._effects)
        for (i, j), given in self._sepsets.items():
            for z in bits(given & self._own):
                if self._no_cause(z, i):
                    effects[z] |= 1 << j
                elif self._no_cause(z, j):
                    effects[z] |= 1 << i
        return [
            closure(effects.__getitem__, mask) & ~(1 << u) if mask else 0
            for u, mask in enumerate(effects)
        ]

    def _no_cause(self, z: int, t: int) -> bool:
        """Say whether z of the tier is known not to cause t."""
        if t < self._graph.earlier or self._effects[t] >> z & 1:
            return True
        return bool(self._certain[z] & self._not_into[z] & 1 << t)

    def _no_causes(self, u: int) -> int:
        """Give those w of the tier to which an edge u - w would have an arrowhead at u."""
        if u < self._graph.earlier:
            return 0
        found = self._causes[u] | self._not_into[u]
        for w in bits(self._graph.adjacent[u] & self._own & ~found):
            for t in bits(self._certain[u] & ~self._graph.joined(w)):
                given = self._sepsets.get((min(t, w), max(t, w)))
                if given is not None and not given >> u & 1:
                    found |= 1 << w
                    break
        return found

    @cached_property
    def _blocks(self) -> list[int]:
        """Give the biconnected components; earlier variables are a ring, as good as all edges."""
        import networkx as nx

        graph = self._graph
        whole: nx.Graph[int] = nx.Graph()
        whole.add_edges_from(graph.pairs())
        if graph.earlier > 1:
            nx.add_cycle(whole, range(graph.earlier))
        components: Any = nx.biconnected_components(whole)
        return [mask_of(members) for members in components]

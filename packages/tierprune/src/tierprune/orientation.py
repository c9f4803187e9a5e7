"""Marks at the ends of a tier's edges: rule R0, and R1-R4 and R8-R10 of Zhang (2008).

No selection bias is assumed, so R5-R7 are not needed. Two variables of earlier tiers count as
adjacent throughout. With errors in the tests rules may contradict each other: the mark that
stands first stays, and the contradiction is listed.
"""

from __future__ import annotations

from typing import NamedTuple

from tierprune.bits import bits, lowest
from tierprune.pag import Mark
from tierprune.tiergraph import TierGraph

Sepsets = dict[tuple[int, int], int]


class Conflict(NamedTuple):
    """A rule that wanted another mark at v of the edge u - v, or a set that is not there."""

    rule: str
    u: int
    v: int
    wanted: str


class Orientation:
    """The marks of `graph`, from sets that separate its non-adjacent pairs (i < j)."""

    def __init__(self, graph: TierGraph, sepsets: Sepsets) -> None:
        self.graph, self.sepsets = graph, sepsets
        self.conflicts: dict[Conflict, None] = {}
        self._changed = False

    def separates(self, y: int, x: int, z: int, rule: str) -> bool | None:
        """Say whether y is in the set that separates x and z; None, and a conflict, without one."""
        given = self.sepsets.get((min(x, z), max(x, z)))
        if given is None:
            self.conflicts[Conflict(rule, x, z, "a separating set")] = None
            return None
        return bool(given >> y & 1)

    def put(self, rule: str, *marks: tuple[int, int, Mark]) -> None:
        """Set marks (u, v, mark at v), all or none: none where another mark stands already."""
        for u, v, mark in marks:
            stands = self.graph.mark(u, v)
            if stands not in (Mark.CIRCLE, mark):
                self.conflicts[Conflict(rule, u, v, mark.name.lower())] = None
                return
        for u, v, mark in marks:
            if self.graph.mark(u, v) == Mark.CIRCLE:
                self.graph.set_mark(u, v, mark)
                self._changed = True

    def colliders(self) -> None:
        """R0: x *-> y <-* z where x and z are not adjacent and y does not separate them."""
        graph = self.graph
        for y in graph.tier:
            for x in bits(graph.adjacent[y]):
                others = graph.adjacent[y] & ~graph.joined(x)
                for z in bits(others >> x + 1 << x + 1):
                    if self.separates(y, x, z, "R0") is False:
                        self.put("R0", (x, y, Mark.ARROW), (z, y, Mark.ARROW))

    def complete(self) -> None:
        """Apply R1-R4 and R8-R10 until nothing changes."""
        self._changed = True
        while self._changed:
            self._changed = False
            for y in self.graph.tier:
                self._away_from_collider(y)
            for z in self.graph.tier:
                self._away_from_cycle(z)
            for y in self.graph.tier:
                self._double_triangle(y)
            for z in self.graph.tier:
                self._discriminating(z)
            for x in self.graph.tier:
                for z in bits(self.graph.circle_at(x) & self.graph.arrow_from[x]):
                    self._tail(x, z)

    def _away_from_collider(self, y: int) -> None:
        """R1: x *-> y o-* z, x and z not adjacent: y -> z."""
        graph = self.graph
        for z in bits(graph.circle_at(y)):
            if graph.arrow_at[y] & ~graph.joined(z):
                self.put("R1", (z, y, Mark.TAIL), (y, z, Mark.ARROW))

    def _away_from_cycle(self, z: int) -> None:
        """R2: x -> y *-> z or x *-> y -> z, and x *-o z: x *-> z."""
        graph = self.graph
        for x in bits(graph.circle_at(z)):
            into = graph.arrow_from[x] & graph.arrow_at[z]
            if into & (graph.tail_at[x] | graph.tail_from[z]):
                self.put("R2", (x, z, Mark.ARROW))

    def _double_triangle(self, y: int) -> None:
        """R3: x *-> y <-* z, x *-o w o-* z, x and z not adjacent, w *-o y: w *-> y."""
        graph = self.graph
        for w in bits(graph.circle_at(y)):
            both = graph.arrow_at[y] & graph.circle_at(w)
            if any(both & ~graph.joined(x) for x in bits(both)):
                self.put("R3", (w, y, Mark.ARROW))

    def _discriminating(self, z: int) -> None:
        """R4: a path v ... w, y, z that discriminates for y, with y o-* z.

        All between v and y are colliders on it and parents of z, v and z are not adjacent. Where y
        separates v and z: y -> z, else w <-> y <-> z.
        """
        graph = self.graph
        for y in bits(graph.adjacent[z]):
            if not graph.circle_at(y) >> z & 1:
                continue
            for w in bits(graph.adjacent[y] & graph.parents(z) & graph.arrow_from[y]):
                v = self._discriminated(w, y, z)
                inside = None if v is None else self.separates(y, v, z, "R4")
                if inside is None:
                    continue
                if inside:
                    self.put("R4", (z, y, Mark.TAIL), (y, z, Mark.ARROW))
                else:
                    self.put("R4", *((u, t, Mark.ARROW) for u, t in ((w, y), (z, y), (y, z))))
                break

    def _discriminated(self, w: int, y: int, z: int) -> int | None:
        """Find the far end of a shortest discriminating path that ends in w, y, z."""
        graph = self.graph
        inner, reached = graph.parents(z) & ~(1 << y), 1 << w
        frontier = reached
        while frontier:
            into = 0
            for u in bits(frontier):
                ends = graph.arrow_at[u] & ~graph.joined(z) & ~(1 << y)
                if ends:
                    return lowest(ends)
                into |= graph.arrow_at[u] & graph.arrow_from[u]
            frontier = into & inner & ~reached
            reached |= frontier
        return None

    def _tail(self, x: int, z: int) -> None:
        """R8-R10 at an edge x o-> z: when they apply, x -> z."""
        graph = self.graph
        chain = graph.tail_at[x] & graph.adjacent[x] & ~graph.tail_from[x] & graph.parents(z)
        if chain:
            self.put("R8", (z, x, Mark.TAIL))
            return
        starts = [u for u in bits(self._onwards(x)) if u != z]
        for u in starts:
            if not graph.joined(u) >> z & 1 and self._leads(x, u, 1 << z):
                self.put("R9", (z, x, Mark.TAIL))
                return
        parents = graph.parents(z) & ~(1 << x)
        led = {u: found for u in starts if (found := self._leads(x, u, parents))}
        for u, to_u in led.items():
            for t in bits(~graph.joined(u) & sum(1 << k for k in led if k > u)):
                if (to_u | led[t]).bit_count() > 1:  # not both to the same parent only
                    self.put("R10", (z, x, Mark.TAIL))
                    return

    def _onwards(self, u: int) -> int:
        """Give those v to which u may be a cause: no arrowhead at u, no tail at v."""
        graph = self.graph
        return graph.adjacent[u] & ~graph.arrow_at[u] & ~graph.tail_from[u]

    def _leads(self, x: int, first: int, targets: int) -> int:
        """Give the targets at the end of an uncovered possibly directed path x, first, ..."""
        walked = self._walks(x, first) & targets
        return sum(1 << t for t in bits(walked) if self._path(x, first, t))

    def _walks(self, x: int, first: int) -> int:
        """Give what walks reach: a superset of what paths do, found without trying each path."""
        reached, done = 1 << first, [0] * self.graph.size
        states = [(x, first)]
        while states:
            before, u = states.pop()
            onwards = self._onwards(u) & ~self.graph.joined(before) & ~(1 << x) & ~done[u]
            done[u] |= onwards
            reached |= onwards
            states += [(u, v) for v in bits(onwards)]
        return reached

    def _path(self, x: int, first: int, target: int) -> bool:
        states = [(x, first, 1 << x | 1 << first)]
        while states:
            before, u, used = states.pop()
            if u == target:
                return True
            onwards = self._onwards(u) & ~self.graph.joined(before) & ~used
            states += [(u, v, used | 1 << v) for v in bits(onwards)]
        return False

"""The maximal ancestral graphs (MAGs) that a PAG stands for, listed or sampled.

Every circle becomes a tail or an arrowhead; what remains are the graphs without new unshielded
colliders that are ancestral, maximal, and entail the same independences as one known member. The
tiers split the work: circles stand inside tiers only, what is chosen in one tier does not bear on
another (Proposition 4.1 of the paper), so that the members are all combinations of the tiers'.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tierprune.admg import ADMG
from tierprune.ancestral import Ends, a_member, is_ancestral
from tierprune.bits import bits, closure, mask_of
from tierprune.pag import PAG, Mark
from tierprune.query import Band
from tierprune.separation import m_connected
from tierprune.tiers import Tiers

_EFFORT = 200_000  # choices of an edge's marks that one tier may take

_Edge = tuple[int, int, int, int]  # i, j, mark at i, mark at j


@dataclass(frozen=True)
class Members:
    """MAGs of a class. `complete`: these are all; else they are a sample of it.

    `total` is the size of the class, nothing where it was too large to count.
    """

    graphs: tuple[Ends, ...]
    complete: bool
    total: int | None


def list_members(
    graph: PAG,
    tiers: Tiers | None = None,
    band: Band | None = None,
    *,
    limit: int = 1000,
    seed: int = 0,
) -> Members:
    """List the members of a PAG, or `limit` different ones drawn at random where there are more.

    With a band, edges outside it are left out. A class with no member (`total` 0) is a graph that
    is no PAG: errors of a sample made it contradict itself.
    """
    rng = np.random.default_rng(seed)
    ends = Ends(graph, tiers, band)
    reference = a_member(ends)
    choices: list[list[list[_Edge]]] = []
    complete = True
    for tier in sorted({ends.tier[i] for i in bits(ends.unknown())} or {max(ends.tier, default=1)}):
        search = _Search(ends, reference, tier, None)
        found = list(itertools.islice(search.run(), limit + 1))
        if len(found) > limit or search.stopped:
            complete = False
            search = _Search(ends, reference, tier, rng)
            found = list(itertools.islice(search.run(), limit))
        choices.append(found)
    # A tier without circles may contradict itself too.
    for tier in set(ends.tier) - {ends.tier[i] for i in bits(ends.unknown())}:
        if not _is_member(reference, reference, tier):
            return Members((), True, 0)
    total = math.prod(len(found) for found in choices)
    if complete and total <= limit:
        picks: Iterator[tuple[int, ...]] = itertools.product(*(range(len(f)) for f in choices))
    else:
        picks = _different(rng, [len(found) for found in choices], min(limit, total))
    graphs = []
    for pick in picks:
        made = ends.copy()
        for k, found in zip(pick, choices, strict=True):
            for edge in found[k]:
                made.put(*edge)
        graphs.append(made)
    return Members(tuple(graphs), complete and total <= limit, total if complete else None)


def has_member(graph: PAG, tiers: Tiers | None = None, band: Band | None = None) -> bool:
    """Say whether the one graph that is made of a PAG's marks is a MAG.

    Where it is not, errors of a sample made the marks contradict one another.
    """
    reference = a_member(Ends(graph, tiers, band))
    return all(_is_member(reference, reference, tier) for tier in set(reference.tier))


def _different(rng: np.random.Generator, sizes: list[int], count: int) -> Iterator[tuple[int, ...]]:
    seen: set[tuple[int, ...]] = set()
    while len(seen) < count:
        pick = tuple(int(rng.integers(size)) for size in sizes)
        if pick not in seen:
            seen.add(pick)
            yield pick


class _Search:
    """Depth-first search over the marks of one tier's edges; in random order with a generator."""

    def __init__(
        self, ends: Ends, reference: Ends, tier: int, rng: np.random.Generator | None
    ) -> None:
        self._ends, self._reference, self._tier, self._rng = ends.copy(), reference, tier, rng
        edges = [(i, j) for i in bits(ends.unknown()) for j in bits(ends.neighbours(i))]
        open_ = {(min(e), max(e)) for e in edges if ends.circle[e[0]] >> e[1] & 1}
        self._edges = sorted(e for e in open_ if max(ends.tier[e[0]], ends.tier[e[1]]) == tier)
        self._effort = 0
        self.stopped = False

    def run(self) -> Iterator[list[_Edge]]:
        """Yield the marks of each member."""
        if self._rng is None:
            yield from self._from(0, [])
            return
        seen: set[tuple[_Edge, ...]] = set()
        start = self._ends
        while not self.stopped:  # one walk from the root for each draw, left at its first member
            self._ends = start.copy()
            self._rng.shuffle(self._edges)
            found = next(self._from(0, []), None)
            if found is None:
                return
            key = tuple(sorted(found))
            if key not in seen:
                seen.add(key)
                yield found

    def _from(self, at: int, chosen: list[_Edge]) -> Iterator[list[_Edge]]:
        if at == len(self._edges):
            if _is_member(self._ends, self._reference, self._tier):
                yield list(chosen)
            return
        i, j = self._edges[at]
        before = (i, j, self._mark(i, j), self._mark(j, i))
        options = [
            (x, y)
            for x, y in ((Mark.TAIL, Mark.ARROW), (Mark.ARROW, Mark.TAIL), (Mark.ARROW, Mark.ARROW))
            if before[2] in (Mark.CIRCLE, x) and before[3] in (Mark.CIRCLE, y)
        ]
        if self._rng is not None:
            self._rng.shuffle(options)
        for x, y in options:
            self._effort += 1
            if self._effort > _EFFORT:
                self.stopped = True
                return
            self._ends.put(i, j, x, y)
            if not self._breaks(i, j, before):
                chosen.append((i, j, x, y))
                yield from self._from(at + 1, chosen)
                chosen.pop()
            self._ends.put(*before)
            if self.stopped:
                return

    def _mark(self, i: int, j: int) -> Mark:
        """Give the mark at i of the edge between i and j."""
        ends = self._ends
        return (
            Mark.ARROW
            if ends.arrow[i] >> j & 1
            else (Mark.TAIL if ends.tail[i] >> j & 1 else Mark.CIRCLE)
        )

    def _breaks(self, i: int, j: int, before: _Edge) -> bool:
        """Say whether the edge just set makes an unshielded collider, or a cycle."""
        ends = self._ends
        for v, u, mark in ((i, j, before[2]), (j, i, before[3])):
            new_head = mark == Mark.CIRCLE and ends.arrow[v] >> u & 1
            if new_head and ends.arrow[v] & ~(ends.adjacent(u) | 1 << u):
                return True
        if ends.tail[i] >> j & 1:
            return self._cycle(i, j)
        if ends.tail[j] >> i & 1:
            return self._cycle(j, i)
        up_i, up_j = (closure(ends.parents, 1 << v) for v in (i, j))
        return bool(up_i >> j & 1 or up_j >> i & 1)

    def _cycle(self, i: int, j: int) -> bool:
        """Say whether i -> j closes a directed or an almost directed cycle."""
        ends = self._ends
        above = closure(ends.parents, 1 << i)
        return bool(above >> j & 1) or any(
            ends.spouses(k) & above for k in bits(closure(ends.children, 1 << j))
        )


def _is_member(ends: Ends, reference: Ends, tier: int) -> bool:
    """Say whether a tier's part is a MAG with the independences of the reference.

    A MAG is given by the independence of each pair without an edge, given its ancestors (Sadeghi
    and Lauritzen 2014, Theorem 4): those of each graph must hold in it and in the other one.
    """
    one, two = _component(ends, tier), _component(reference, tier)
    if not is_ancestral(one):
        return False
    members = mask_of(i for i, t in enumerate(ends.tier) if t == tier)
    for graph in (one, two):
        for i in bits(members):
            others = (members >> i + 1 << i + 1) | _sources(ends, tier) & ~members
            for j in bits(others & ~ends.neighbours(i)):
                given = graph.ancestors(1 << i | 1 << j) & ~(1 << i | 1 << j)
                for each in (one, two):
                    if m_connected(each, 1 << i, given) >> j & 1:
                        return False
    return True


def _sources(ends: Ends, tier: int) -> int:
    """Give the variables of earlier tiers with an edge into this one."""
    found = 0
    for i, t in enumerate(ends.tier):
        if t == tier:
            found |= ends.neighbours(i)
    return mask_of(i for i in bits(found) if ends.tier[i] < tier)


def _component(ends: Ends, tier: int) -> ADMG:
    """Give the edges into a tier, with all directed edges among the variables before it."""
    size = len(ends.names)
    parents, spouses, children = [0] * size, [0] * size, [0] * size
    before = 0
    for i in bits(_sources(ends, tier)):
        parents[i] = before
        before |= 1 << i
    for i, t in enumerate(ends.tier):
        if t == tier:
            parents[i], spouses[i] = ends.parents(i), ends.spouses(i)
            # A later child or an edge of another tier is no part of this component.
    inside = before | mask_of(i for i, t in enumerate(ends.tier) if t == tier)
    for j, mask in enumerate(parents):
        parents[j] = mask & inside
        for i in bits(parents[j]):
            children[i] |= 1 << j
    return ADMG(ends.names, parents, children, spouses)

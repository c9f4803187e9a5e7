"""Ends of edges as sets: what is asked of a PAG, and of a maximal ancestral graph (MAG).

A MAG is a mixed graph without circles, without directed and almost directed cycles, in which every
pair without an edge can be separated (Richardson and Spirtes 2002). It stands for all ADMGs with
the same ancestors and the same independences. A directed edge x -> c of a MAG does not say that
nothing confounds the two: only a *visible* edge does (Zhang 2008, Definition 8).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tierprune.admg import ADMG
from tierprune.bits import bits, mask_of, turned
from tierprune.pag import PAG, Mark
from tierprune.query import Band
from tierprune.separation import m_connected
from tierprune.tiers import Tiers


class Ends:
    """The edges of a PAG, by what stands at a variable.

    `arrow[i]`, `tail[i]` and `circle[i]` are the sets of variables j whose edge with i has that
    mark *at i*; `tier[i]` is the tier of i. Variables of `early` have tiers before those that are
    looked at: which edges they have among themselves is not known, so any two count as adjacent.
    """

    __slots__ = ("arrow", "circle", "early", "names", "tail", "tier")

    def __init__(self, graph: PAG, tiers: Tiers | None = None, band: Band | None = None) -> None:
        """Take the edges of `graph`; with a band, only those whose later end lies in it.

        An edge between two tiers is directed, whatever marks it has.
        """
        size = len(graph)
        self.names = graph.names
        self.tier = [1 if tiers is None else tiers.of[name] for name in graph.names]
        self.arrow, self.tail, self.circle = [0] * size, [0] * size, [0] * size
        self.early = 0
        if band is not None:
            self.early = mask_of(i for i, tier in enumerate(self.tier) if tier < band.first)
        for i, j, at_i, at_j in graph.edges():
            if band is not None and max(self.tier[i], self.tier[j]) not in band:
                continue
            if self.tier[i] == self.tier[j]:
                self.put(i, j, at_i, at_j)
            else:
                early, late = (i, j) if self.tier[i] < self.tier[j] else (j, i)
                self.put(early, late, Mark.TAIL, Mark.ARROW)

    def put(self, i: int, j: int, at_i: int, at_j: int) -> None:
        """Make this the edge between i and j, whatever it was before."""
        for a, b, mark in ((i, j, at_i), (j, i, at_j)):
            for kind, sets in self._kinds():
                sets[a] = sets[a] & ~(1 << b) | (kind == mark) << b

    def _kinds(self) -> Iterable[tuple[Mark, list[int]]]:
        return ((Mark.ARROW, self.arrow), (Mark.TAIL, self.tail), (Mark.CIRCLE, self.circle))

    def copy(self) -> Ends:
        """Give a copy that can be changed."""
        new = object.__new__(Ends)
        new.names, new.tier, new.early = self.names, self.tier, self.early
        new.arrow, new.tail, new.circle = self.arrow[:], self.tail[:], self.circle[:]
        return new

    def neighbours(self, i: int) -> int:
        """Give the variables that have an edge with i."""
        return self.arrow[i] | self.tail[i] | self.circle[i]

    def adjacent(self, i: int) -> int:
        """Give the variables that count as adjacent to i."""
        return self.neighbours(i) | (self.early & ~(1 << i) if self.early >> i & 1 else 0)

    def parents(self, i: int) -> int:
        """Give the variables j with j -> i."""
        return mask_of(j for j in bits(self.arrow[i]) if self.tail[j] >> i & 1)

    def children(self, i: int) -> int:
        """Give the variables j with i -> j."""
        return mask_of(j for j in bits(self.tail[i]) if self.arrow[j] >> i & 1)

    def spouses(self, i: int) -> int:
        """Give the variables j with j <-> i."""
        return mask_of(j for j in bits(self.arrow[i]) if self.arrow[j] >> i & 1)

    def possible_children(self, i: int) -> int:
        """Give the variables that some orientation of the circles makes children of i."""
        return mask_of(j for j in bits(self.tail[i] | self.circle[i]) if not self.tail[j] >> i & 1)

    def visible(self, x: int, c: int) -> bool:
        """Say whether the directed edge x -> c is visible: no ADMG of the class confounds the two.

        So it is where x lies in an earlier tier (bidirected edges stay inside a tier, and every
        inducing path into x would need one that leaves it), or where some v without an edge to c
        has an edge into x, or a collider path into x whose inner variables are parents of c.
        """
        if self.tier[x] != self.tier[c]:
            return True
        far = ~(self.adjacent(c) | 1 << c)
        through = self.parents(c)
        seen = new = 1 << x
        while new:
            more = 0
            for u in bits(new):
                if self.arrow[u] & far:
                    return True
                more |= self.spouses(u)
            new = more & through & ~seen
            seen |= new
        return False

    def unknown(self) -> int:
        """Give the variables at which a circle stands."""
        return mask_of(i for i, circle in enumerate(self.circle) if circle)

    def pag(self) -> PAG:
        """Give the graph of these edges."""
        marks = np.zeros((len(self.names), len(self.names)), dtype=np.int8)
        for kind, sets in self._kinds():
            for i, mask in enumerate(sets):
                for j in bits(mask):
                    marks[j, i] = kind
        return PAG(self.names, marks)


def a_member(ends: Ends) -> Ends:
    """Give one MAG of the class of a PAG: `o->` becomes `->`, the rest a DAG without new colliders.

    (Zhang 2008, Lemma 4.3.6 of his thesis: the circle component is chordal, and an elimination
    order of it makes no unshielded collider. Tiers put all circles inside one tier, where the same
    holds.) On a graph that is no PAG, as errors of a sample give it, the answer may be no member.
    """
    made = ends.copy()
    for i in bits(ends.unknown()):
        for j in bits(ends.circle[i]):
            if ends.tail[j] >> i & 1:
                made.put(i, j, Mark.ARROW, Mark.TAIL)
            elif ends.arrow[j] >> i & 1:
                made.put(i, j, Mark.TAIL, Mark.ARROW)
    place = {v: at for at, v in enumerate(_cardinality_order(made.circle))}
    for i in bits(made.unknown()):
        for j in bits(made.circle[i]):
            first, second = (i, j) if place[i] < place[j] else (j, i)
            made.put(first, second, Mark.TAIL, Mark.ARROW)
    return made


def _cardinality_order(circles: list[int]) -> list[int]:
    """Order the variables by maximum cardinality search over the edges `o-o`."""
    left, done = mask_of(i for i, mask in enumerate(circles) if mask), 0
    order = []
    while left:
        best = max(bits(left), key=lambda i: (circles[i] & done).bit_count())
        order.append(best)
        done |= 1 << best
        left &= ~done
    return order


def separable(ends: Ends, among: int = -1) -> ADMG:
    """Give a MAG as an ADMG for questions of separation: early variables are all connected.

    Each pair of them gets a bidirected edge, which lets through whatever any edges among them
    would. Edges with an end outside `among` are left out.
    """
    size = len(ends.names)
    parents = [ends.parents(i) & among if among >> i & 1 else 0 for i in range(size)]
    spouses = [ends.spouses(i) & among if among >> i & 1 else 0 for i in range(size)]
    early = ends.early & among
    for i in bits(early):
        spouses[i] |= early & ~(1 << i)
    return ADMG(ends.names, parents, turned(parents), spouses)


def most_confounded(ends: Ends) -> ADMG:
    """Read a MAG as the ADMG with the most edges: confounding wherever it may hide.

    A directed edge that is not visible may hide confounding, so that it gets a bidirected edge
    beside it. Every ADMG that the MAG stands for is a subgraph: a directed edge of it is an edge of
    the MAG with the same ancestor; a bidirected one is bidirected in the MAG, or directed there and
    not visible. What is identified here is therefore identified in each of them, by the same
    formula (a subgraph allows fewer models). The graph itself may assert fewer independences than
    the MAG, as confounding may not be able to hide in two places at once: see `confounded`.
    """
    spouses = [ends.spouses(i) for i in range(len(ends.names))]
    for x, c in invisible(ends):
        spouses[x] |= 1 << c
        spouses[c] |= 1 << x
    return _admg(ends, spouses)


def confounded(ends: Ends, *, backwards: bool = False) -> ADMG:
    """Read a MAG as an ADMG that it stands for, confounded in as many places as its model allows.

    One edge after another gets a bidirected edge beside it where all independences of the MAG
    remain. What is not identified in this graph is not identified from the MAG.
    """
    size = len(ends.names)
    whole = separable(ends)
    apart = [
        (i, j, whole.ancestors(1 << i | 1 << j) & ~(1 << i | 1 << j))
        for i in range(size)
        for j in bits(~(ends.adjacent(i) | (1 << i + 1) - 1) & whole.everything)
    ]
    spouses = [ends.spouses(i) for i in range(size)]
    order = invisible(ends)
    for x, c in reversed(order) if backwards else order:
        tried = ADMG(whole.names, whole.parents, whole.children, whole.spouses)
        tried.spouses[x] |= 1 << c
        tried.spouses[c] |= 1 << x
        if not any(m_connected(tried, 1 << i, given) >> j & 1 for i, j, given in apart):
            whole = tried
            spouses[x] |= 1 << c
            spouses[c] |= 1 << x
    return _admg(ends, spouses)


def plain(ends: Ends) -> ADMG:
    """Read a MAG as an ADMG as it stands, without any confounding beside directed edges."""
    return _admg(ends, [ends.spouses(i) for i in range(len(ends.names))])


def invisible(ends: Ends) -> list[tuple[int, int]]:
    """List the directed edges x -> c of a MAG that are not visible."""
    return [
        (x, c)
        for c in range(len(ends.names))
        for x in bits(ends.parents(c))
        if not ends.visible(x, c)
    ]


def _admg(ends: Ends, spouses: list[int]) -> ADMG:
    parents = [ends.parents(i) for i in range(len(ends.names))]
    return ADMG(ends.names, parents, turned(parents), spouses)


def is_ancestral(graph: ADMG) -> bool:
    """Say whether there is no directed cycle, and no bidirected edge to an ancestor."""
    if graph.cycle():
        return False
    return all(
        not graph.spouses[i] & graph.ancestors(1 << i)
        for i, mask in enumerate(graph.spouses)
        if mask
    )

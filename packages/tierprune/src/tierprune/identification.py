"""ID and IDC: is a query a function of the observational joint, and which one.

Shpitser & Pearl 2006 (AAAI, "Identification of joint interventional distributions in recursive
semi-Markovian causal models") and 2006b (UAI, "Identification of conditional interventional
distributions"). Both are complete: `no` comes with a hedge, which is a proof. The seven lines are
written as loops over districts, as in Tian & Pearl 2002, so that no graph is too deep for them,
and P(v | all before v) is written as P(v | district of v so far and its parents), which is equal
in every distribution of the graph (Tian & Pearl 2002, lemma 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tierprune.admg import ADMG
from tierprune.bits import bits, lowest, mask_of
from tierprune.expression import Algebra, Estimand, Expression
from tierprune.pruning import Pruned
from tierprune.query import Query
from tierprune.separation import m_connected


@dataclass(frozen=True)
class Hedge:
    """The proof that an effect is not identifiable: two c-forests with the same roots.

    `larger` and `smaller` (F and F' of the paper, `smaller` inside `larger`) are each connected by
    bidirected edges; all their members are ancestors of `roots` inside them. `larger` meets the
    treatments, `smaller` does not, and `roots` are ancestors of the outcome that no treatment
    blocks. `query` is the unconditional effect that they refute: for a conditional query, the one
    that IDC leaves (Theorem 20 of UAI 2006).
    """

    larger: tuple[str, ...]
    smaller: tuple[str, ...]
    roots: tuple[str, ...]
    query: Query


@dataclass(frozen=True)
class Identified:
    """The answer to a query: `verdict`, and either `estimand` or `hedge`."""

    query: Query
    verdict: Literal["yes", "no"]
    estimand: Estimand | None = None
    hedge: Hedge | None = None


def identify(graph: ADMG, query: Query) -> Identified:
    """Identify P(outcome | do(treatment), given) in `graph`.

    Raises `ValueError` for a name that is not in the graph.
    """
    query.check(graph.names, "the graph")
    return _Task(graph, query).conditional()


def identify_pruned(pruned: Pruned, tiers_of: dict[str, int], query: Query) -> Identified:
    """Identify `query` in a graph that was pruned for it; the formula holds for the whole graph.

    `tiers_of` is the tier of each variable. Propositions 3.2 and 3.5: with W all variables before
    the band, P_x(y) is the sum over W of P(w) times the effect of x and w on the rest of y, in the
    pruned graph; P_x(y | z) is P_x(y, z) / P(z) where z is in W. Proposition 3.6: as `identify`.
    """
    early = [name for name, tier in tiers_of.items() if tier < pruned.band.first]
    if query.given and pruned.band.rule != "3.5":
        return identify(pruned.graph, query)
    return _Task(pruned.graph, query).banded(
        [name for name in early if name in pruned.graph.index], alone=pruned.band.rule == "3.2"
    )


class _Refuted(Exception):  # noqa: N818 (an answer, not an error)
    def __init__(self, larger: int, smaller: int) -> None:
        self.larger, self.smaller = larger, smaller


class _Task:
    """One query on one graph, its variables renumbered so that each comes after its parents."""

    def __init__(self, graph: ADMG, query: Query) -> None:
        self.query = query
        self.graph = graph = _renumbered(graph)
        self.algebra = Algebra()
        self.outcome = graph.mask(query.outcome)
        self.treatment = graph.mask(query.treatment)
        self.given = graph.mask(query.given)
        self.above: list[int] = []  # of each variable, itself and its ancestors
        for i, parents in enumerate(graph.parents):
            mask = 1 << i
            for j in bits(parents):
                mask |= self.above[j]
            self.above.append(mask)
        self._kernels: dict[tuple[int, int], Expression] = {}

    def conditional(self) -> Identified:
        """Run IDC: conditions that act like treatments become treatments, then divide."""
        treatment, given = self.treatment, self.given
        moved = True
        while moved:
            moved = False
            for z in bits(given):
                cut = self.graph.without_into(treatment).without_out_of(1 << z)
                if not m_connected(cut, 1 << z, treatment | given & ~(1 << z)) & self.outcome:
                    treatment |= 1 << z
                    given &= ~(1 << z)
                    moved = True
                    break
        try:
            joint = self.effect(treatment, self.outcome | given)
        except _Refuted as found:
            return self._no(found, treatment, self.outcome | given)
        whole = joint
        if given:
            whole = self.algebra.quotient(joint, self.algebra.sum(self.outcome, joint))
        return self._yes(whole)

    def banded(self, early: list[str], *, alone: bool) -> Identified:
        """Use Proposition 3.2 (`alone`) or 3.5 with these variables before the band."""
        before = self.graph.mask(early)
        wanted = self.outcome | self.given
        late = wanted & ~before
        # Later than every outcome and condition, a treatment has no effect on them.
        treatment = self.treatment | before
        try:
            effect = self.effect(treatment, late) if late else self.algebra.one
        except _Refuted as found:
            return self._no(found, self.treatment, wanted)
        seen = (effect.free | wanted) & before
        joint = self.algebra.product([self.algebra.probability(seen), effect])
        joint = self.algebra.sum(seen & ~wanted, joint)
        if not alone:
            joint = self.algebra.quotient(joint, self.algebra.probability(self.given))
        return self._yes(joint)

    def _yes(self, root: Expression) -> Identified:
        extra = root.free & ~(self.treatment | self.outcome | self.given)
        names = self.graph.names
        estimand = Estimand(names, root, tuple(self.graph.named(extra)))
        return Identified(self.query, "yes", estimand=estimand)

    def _no(self, found: _Refuted, treatment: int, outcome: int) -> Identified:
        named = self.graph.named
        roots = mask_of(
            i for i in bits(found.smaller) if not self.graph.children[i] & found.smaller
        )
        refuted = Query(tuple(named(treatment)), tuple(named(outcome)))
        hedge = Hedge(
            tuple(named(found.larger)), tuple(named(found.smaller)), tuple(named(roots)), refuted
        )
        return Identified(self.query, "no", hedge=hedge)

    def effect(self, treatment: int, outcome: int) -> Expression:
        """Run ID: give P(outcome | do(treatment)) or raise `_Refuted`."""
        graph = self.graph
        ancestral = self._ancestors(outcome)  # line 2
        # Line 3: what has no way to the outcome past the treatments is set as well.
        needed = graph.ancestors(outcome, ancestral & ~treatment)
        districts = graph.districts(needed)  # line 4
        # All districts first by their sets alone: a hedge is found before a formula is made.
        ways = [self._way(district, ancestral) for district in districts]
        factors = [self._district(way) for way in ways]
        return self.algebra.sum(needed & ~outcome, self.algebra.product(factors))

    def _ancestors(self, mask: int) -> int:
        found = 0
        for i in bits(mask):
            found |= self.above[i]
        return found

    def _way(self, smaller: int, ancestral: int) -> list[tuple[int, int]]:
        """Give the steps from the observational joint to P(smaller | do(all others)).

        Each is an ancestral set and its district around `smaller`, which is a district of the
        graph without the treatments. Raises `_Refuted` where a step changes nothing.
        """
        graph, start = self.graph, 1 << lowest(smaller)
        # Inside `ancestral` the district may be whole already: line 6 at once.
        here, larger = ancestral, graph.district(start, ancestral)
        if larger != smaller:
            here = self._ancestors(smaller)  # line 2
            larger = graph.district(start, here)
        way = [(here, larger)]  # line 6, or the step of line 7
        while larger != smaller:
            here = graph.ancestors(smaller, larger)  # line 2 in the recursion
            if here == larger:
                raise _Refuted(larger, smaller)  # line 5
            larger = graph.district(start, here)
            way.append((here, larger))
        return way

    def _district(self, way: list[tuple[int, int]]) -> Expression:
        """Give the formula at the end of a way."""
        kernel, within = self._first_kernel(*way[0]), way[0][1]
        for here, larger in way[1:]:
            kernel = self._kernel(kernel, within, here, larger)
            within = larger
        return kernel

    def _first_kernel(self, ancestral: int, district: int) -> Expression:
        """Give Q[district] in the observational joint of an ancestral set (line 6)."""
        known = self._kernels.get((ancestral, district))
        if known is not None:
            return known
        graph, factors = self.graph, []
        groups: list[tuple[int, int]] = []  # districts so far: members, and they with parents
        for i in bits(district):
            members, scope, rest = 1 << i, 1 << i | graph.parents[i], []
            for group in groups:
                if group[0] & graph.spouses[i]:
                    members |= group[0]
                    scope |= group[1]
                else:
                    rest.append(group)
            groups = [*rest, (members, scope)]
            factors.append(self.algebra.probability(1 << i, scope & ~(1 << i)))
        made = self._kernels[ancestral, district] = self.algebra.product(factors)
        return made

    def _kernel(self, kernel: Expression, within: int, here: int, district: int) -> Expression:
        """Give Q[district] from `kernel`, which is Q[within] (line 7).

        `here` is ancestral in `within`, and `district` is a district of it. Q[district] is the
        product over its members v of Q[here up to v] / Q[here before v]; of members that follow
        one another only the first denominator and the last numerator stay.
        """
        algebra, factors = self.algebra, []
        before = first = 0
        members = list(bits(here))
        for at, i in enumerate(members):
            upto = before | 1 << i
            if district >> i & 1:
                if at == 0 or not district >> members[at - 1] & 1:
                    first = before
                if at + 1 == len(members) or not district >> members[at + 1] & 1:
                    above = algebra.sum(within & ~upto, kernel)
                    below = algebra.sum(within & ~first, kernel) if first else algebra.one
                    factors.append(algebra.quotient(above, below))
            before = upto
        return algebra.product(factors)


def _renumbered(graph: ADMG) -> ADMG:
    """Give the same graph with its variables in the order of `ADMG.order`."""
    order = graph.order()
    place = [0] * len(order)
    for new, old in enumerate(order):
        place[old] = new

    def moved(masks: list[int]) -> list[int]:
        return [mask_of(place[j] for j in bits(masks[old])) for old in order]

    return ADMG(
        [graph.names[old] for old in order],
        moved(graph.parents),
        moved(graph.children),
        moved(graph.spouses),
    )

"""Which variables to adjust for: the generalised adjustment criterion.

On a PAG learnt from data (Perkovic, Textor, Kalisch and Maathuis 2018, Definition 4.1): a set Z is
valid for all graphs that the PAG stands for if and only if

1. (amenability) every proper possibly directed path from a treatment to an outcome begins with a
   visible edge out of the treatment,
2. Z has no possible descendant of a variable on such a path, other than the treatments,
3. Z blocks all other proper paths.

Then P(y | do(x)) = sum_z P(y | x, z) P(z). Condition 3 holds in all members of the class or in
none once 1 and 2 do, so that it is asked of one member, by separation in its proper back-door
graph (their section 5). Tiers add that an edge from an earlier tier is visible, and that edges
among variables before the first treatment need not be known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from tierprune.admg import ADMG
from tierprune.ancestral import Ends, a_member, separable
from tierprune.bits import bits, closure, lowest, mask_of, turned, union_of
from tierprune.pag import PAG
from tierprune.query import Query, band_of
from tierprune.separation import m_separated
from tierprune.tiers import Tiers

Reason = Literal["adjustment", "no effect", "not amenable", "no set"]


@dataclass(frozen=True)
class Adjustment:
    """What the criterion says of a query.

    `reason` is `adjustment` (`sets` hold minimal valid sets, the smallest first and of equal ones
    that with most members adjacent to an outcome, which tends to give the lowest variance: Henckel,
    Perkovic and Maathuis 2022; `canonical` the
    set of all that may help; `treatment` are those to condition on, without any that lie after
    all that is asked about; `given` are variables of the query that the formula conditions on: the
    effect on the others is sum_z P(.. | x, z, given) P(z | given)), `no effect` (no treatment can
    be a cause of an outcome: the effect is the distribution without the intervention), `not
    amenable` (`edge` is one after which the paths may be causal or not) or `no set` (no set blocks
    every other path).
    """

    reason: Reason
    canonical: tuple[str, ...] | None = None
    treatment: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    sets: tuple[tuple[str, ...], ...] = ()
    edge: tuple[str, str] | None = None

    @property
    def valid(self) -> bool:
        """Say whether the effect is identified by this."""
        return self.reason in ("adjustment", "no effect")


@dataclass(frozen=True)
class _Problem:
    """Separate `start` from `end` by a set that has `must` and nothing of `forbidden`."""

    graph: ADMG
    start: int
    end: int
    forbidden: int
    must: int = 0


def adjust_pag(
    graph: PAG, query: Query, tiers: Tiers | None = None, *, limit: int = 10
) -> Adjustment:
    """Apply the criterion to a PAG or MAG; at most `limit` minimal sets are listed.

    With tiers, only edges inside the band of the query are looked at (a PAG learnt for this query
    has no others). `query.given` are variables that the effect is conditional on: they must not be
    possible descendants of a treatment, and are then a part of every set, which has no possible
    descendant either: P(y | do(x), g) = sum_z P(y | x, z, g) P(z | g). Otherwise they are taken for
    outcomes. Raises `ValueError` for a name of the query that is not in the graph or has no tier.
    """
    query.check(graph.names, "the graph")
    if tiers is not None:
        tiers.check(graph.names, "the graph")
    band = None if tiers is None else band_of(query, tiers)
    ends = Ends(graph, tiers, band)
    treated, outcome, given = (
        mask_of(graph.index[name] for name in side)
        for side in (query.treatment, query.outcome, query.given)
    )
    children = [ends.possible_children(i) for i in range(len(graph))]
    if band is not None:  # a treatment after all that is asked about changes nothing
        treated &= mask_of(i for i, tier in enumerate(ends.tier) if tier <= band.last)
    return _in_turn(
        treated,
        outcome,
        given,
        children,
        graph.names,
        lambda: separable(a_member(ends)),
        lambda x, c: bool(ends.tail[x] >> c & 1 and ends.arrow[c] >> x & 1) and ends.visible(x, c),
        limit,
    )


def adjust_admg(graph: ADMG, query: Query, *, limit: int = 10) -> Adjustment:
    """Apply the criterion to a graph that is fully known (Shpitser, VanderWeele and Robins 2010).

    Otherwise as `adjust_pag`.
    """
    query.check(graph.names, "the graph")
    treated, outcome, given = (
        graph.mask(side) for side in (query.treatment, query.outcome, query.given)
    )
    return _in_turn(
        treated, outcome, given, graph.children, graph.names, lambda: graph, lambda *_: True, limit
    )


def _in_turn(
    treated: int,
    outcome: int,
    given: int,
    children: list[int],
    names: tuple[str, ...],
    member: Callable[[], ADMG],
    visible: Callable[[int, int], bool],
    limit: int,
) -> Adjustment:
    """Try the criterion for all outcomes at once, then given those that no treatment changes."""
    caused = closure(children.__getitem__, treated, -1)
    if given & caused:
        outcome, given = outcome | given, 0
    if not outcome & caused:
        return Adjustment("no effect")
    parents = turned(children)
    after = closure(
        parents.__getitem__, outcome & caused, ~treated
    )  # from where an outcome is reached
    first = [(x, c) for x in bits(treated) for c in bits(children[x] & after & ~treated)]
    for x, c in first:
        if not visible(x, c):
            return Adjustment("not amenable", edge=(names[x], names[c]))
    between = closure(children.__getitem__, mask_of(c for _, c in first), ~treated) & after
    forbidden = closure(children.__getitem__, between, -1)
    graph = _without(member(), first)
    tries = [(outcome, given, forbidden | caused if given else forbidden)]
    if outcome & ~caused:
        tries.append((outcome & caused, given | outcome & ~caused, forbidden | caused))
    for end, must, never in tries:
        found = _solve(_Problem(graph, treated, end, never, must), limit)
        if found.valid:
            return found
    return found


def is_valid(graph: ADMG, query: Query, adjustment: set[str] | frozenset[str]) -> bool:
    """Say whether one set is valid in a graph that is fully known (query without `given`)."""
    treated, outcome = graph.mask(query.treatment), graph.mask(query.outcome)
    chosen = graph.mask(adjustment)
    after = graph.ancestors(outcome, ~treated)
    first = [(x, c) for x in bits(treated) for c in bits(graph.children[x] & after & ~treated)]
    between = graph.descendants(mask_of(c for _, c in first), ~treated) & after
    if chosen & (treated | outcome | graph.descendants(between)):
        return False
    return m_separated(_without(graph, first), treated, outcome, chosen)


def _solve(problem: _Problem, limit: int) -> Adjustment:
    graph, start, end = problem.graph, problem.start, problem.end
    names = graph.names
    relevant = graph.ancestors(start | end | problem.must)
    most = relevant & ~(start | end | problem.forbidden) | problem.must
    if problem.must & problem.forbidden or not m_separated(graph, start, end, most):
        return Adjustment("no set")
    near = 0  # to an outcome
    for i in bits(end):
        near |= graph.parents[i] | graph.children[i] | graph.spouses[i]
    found = list(islice(_separators(problem, relevant), limit))
    found.sort(key=lambda one: (one.bit_count(), -(one & near).bit_count(), [*bits(one)]))
    sets = tuple(tuple(names[i] for i in bits(chosen)) for chosen in found)
    most &= ~problem.must
    canonical, treatment, given = (
        tuple(names[i] for i in bits(mask)) for mask in (most, start, problem.must)
    )
    return Adjustment("adjustment", canonical, treatment, given, sets)


def _separators(problem: _Problem, relevant: int) -> Iterator[int]:
    """Yield the minimal separators that a problem allows, without what each must have.

    They are the minimal vertex cuts of the moral graph of the ancestors. A variable that may not be
    chosen is taken out and its neighbours joined; the cuts are listed from the one nearest to the
    start (Shen and Liang 1997), but the one nearest to the end is the second, so that a short list
    has it.
    """
    moral = _moral(problem.graph, relevant)
    start, end = lowest(problem.start), lowest(problem.end)
    left = relevant & ~problem.must
    # All treatments become one vertex, and all outcomes one.
    for group, one in ((problem.start, start), (problem.end, end)):
        around = union_of(moral.__getitem__, group) & ~group
        moral[one] = around
        for u in bits(around):
            moral[u] = moral[u] & ~group | 1 << one
        left &= ~group | 1 << one
    for v in bits(problem.forbidden & left & ~(1 << start | 1 << end)):
        left &= ~(1 << v)
        around = moral[v] & left
        for u in bits(around):
            moral[u] |= around & ~(1 << u)

    def cut_before(blocked: int) -> int:
        """Give what surrounds the end's side once `blocked` is taken away."""
        side = closure(moral.__getitem__, 1 << end, left & ~blocked)
        return union_of(moral.__getitem__, side) & left & ~side

    first = cut_before(moral[start] | 1 << start)
    side = closure(moral.__getitem__, 1 << start, left & ~(moral[end] | 1 << end))
    queue = list(dict.fromkeys((first, union_of(moral.__getitem__, side) & left & ~side)))
    seen = set(queue)
    for cut in queue:
        yield cut
        for v in bits(cut):
            near = 0 if moral[v] >> end & 1 else cut_before(cut | moral[v])
            if not moral[v] >> end & 1 and near not in seen:
                seen.add(near)
                queue.append(near)


def _moral(graph: ADMG, relevant: int) -> list[int]:
    """Join what a path of colliders joins: the augmented graph of a set of ancestors."""
    joined = [0] * len(graph)
    for district in graph.districts(relevant):
        clique = district
        for i in bits(district):
            clique |= graph.parents[i] & relevant
        for i in bits(clique):
            joined[i] |= clique & ~(1 << i)
    return joined


def _without(graph: ADMG, edges: list[tuple[int, int]]) -> ADMG:
    parents, children = graph.parents[:], graph.children[:]
    for x, c in edges:
        parents[c] &= ~(1 << x)
        children[x] &= ~(1 << c)
    return ADMG(graph.names, parents, children, graph.spouses)

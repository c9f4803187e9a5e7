"""FCIEXOGENOUS against every tiered maximal ancestral graph (MAG) of a few variables.

The enumeration below shares no code with the product: m-separation is read off the paths, for all
graphs at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from tierprune import ADMG, Band, Mark, Query, Tiers, band_of, exogenous
from tierprune.discovery import discover, restricted
from tierprune.dsep import DSep, DSepSearch
from tierprune.exogenous import LearntTier, Settings, learn_tier
from tierprune.independence.base import Floats, Independence, Ints
from tierprune.independence.oracle import Oracle
from tierprune.orientation import Conflict, Orientation
from tierprune.simulation import random_graph
from tierprune.tiergraph import TierGraph

Bools = NDArray[np.bool_]
ABSENT, FORWARD, BACKWARD, BOTH = range(4)


class Classes(NamedTuple):
    """The MAGs of each Markov class: edge kinds [graph, pair], class [graph], separations."""

    pairs: list[tuple[int, int]]
    kinds: NDArray[np.int64]
    label: NDArray[np.int64]
    separated: list[dict[tuple[int, int, frozenset[int]], bool]]


def enumerate_classes(sizes: Sequence[int]) -> Classes:
    tier = [t for t, size in enumerate(sizes) for _ in range(size)]
    n = len(tier)
    pairs = list(itertools.combinations(range(n), 2))
    choices = [range(4) if tier[i] == tier[j] else range(2) for i, j in pairs]
    kinds = np.array(list(itertools.product(*choices)))
    place = {pair: k for k, pair in enumerate(pairs)}

    def head(i: int, j: int) -> Bools:  # an edge i - j with an arrowhead at j
        kind = kinds[:, place[min(i, j), max(i, j)]]
        return (kind == BOTH) | (kind == (FORWARD if i < j else BACKWARD))

    def edge(i: int, j: int) -> Bools:
        return kinds[:, place[min(i, j), max(i, j)]] != ABSENT

    def arrow(i: int, j: int) -> Bools:
        return head(i, j) & ~head(j, i)

    ancestor = {(i, j): arrow(i, j) for i in range(n) for j in range(n) if i != j}
    for k, i, j in itertools.permutations(range(n), 3):
        ancestor[i, j] = ancestor[i, j] | (ancestor[i, k] & ancestor[k, j])
    valid = np.ones(len(kinds), dtype=bool)
    for i, j in pairs:
        valid &= ~(ancestor[i, j] & ancestor[j, i])
        both = head(i, j) & head(j, i)
        valid &= ~(both & (ancestor[i, j] | ancestor[j, i]))

    def separated(i: int, j: int, given: frozenset[int]) -> Bools:
        opening = {
            k: np.logical_or.reduce(
                [np.full(len(kinds), k in given), *(ancestor[k, s] for s in given if s != k)]
            )
            for k in range(n)
        }
        connected = edge(i, j).copy()
        others = [k for k in range(n) if k not in (i, j)]
        for length in range(1, len(others) + 1):
            for inner in itertools.permutations(others, length):
                path = [i, *inner, j]
                is_open = np.logical_and.reduce([edge(a, b) for a, b in itertools.pairwise(path)])
                for a, b, c in zip(path, path[1:], path[2:], strict=False):
                    collider = head(a, b) & head(c, b)
                    is_open &= np.where(collider, opening[b], b not in given)
                connected |= is_open
        return ~connected

    table = {}
    for i, j in pairs:
        others = [k for k in range(n) if k not in (i, j)]
        ever = np.zeros(len(kinds), dtype=bool)
        for count in range(len(others) + 1):
            for given in itertools.combinations(others, count):
                table[i, j, frozenset(given)] = separated(i, j, frozenset(given))
                ever |= table[i, j, frozenset(given)]
        valid &= edge(i, j) | ever
    keys = list(table)
    said = np.array([table[key][valid] for key in keys]).T
    models, label = np.unique(said, axis=0, return_inverse=True)
    return Classes(
        pairs, kinds[valid], label.reshape(-1),
        [dict(zip(keys, row, strict=True)) for row in models.tolist()],
    )  # fmt: skip


class Looked(Independence):
    """Answers from a table of separations."""

    name = "table"

    def __init__(self, names: Sequence[str], table: dict[tuple[int, int, frozenset[int]], bool]):
        super().__init__(names, 0.5)
        self.table = table

    def p_values(self, left: Ints, right: Ints, given: Ints) -> Floats:
        rows = zip(left.tolist(), right.tolist(), given.tolist(), strict=True)
        return np.array([self.table[min(i, j), max(i, j), frozenset(s)] for i, j, s in rows], float)


MARKS = {
    FORWARD: (Mark.TAIL, Mark.ARROW),
    BACKWARD: (Mark.ARROW, Mark.TAIL),
    BOTH: (Mark.ARROW, Mark.ARROW),
}


def check_classes(sizes: Sequence[int], count: int) -> None:
    """Count the classes; each must be learnt as exactly what all its members share."""
    classes = enumerate_classes(sizes)
    assert len(classes.separated) == count
    names = [f"v{i}" for i in range(sum(sizes))]
    bounds = np.cumsum([0, *sizes])
    tiers = Tiers(tuple(tuple(names[a:b]) for a, b in itertools.pairwise(bounds)))
    order = np.argsort(classes.label, kind="stable")
    members = np.split(classes.kinds[order], np.flatnonzero(np.diff(classes.label[order])) + 1)
    for table, kinds in zip(classes.separated, members, strict=True):
        found = discover(Looked(names, table), tiers)
        assert not found.contradictions
        for place, (i, j) in enumerate(classes.pairs):
            seen = set(kinds[:, place].tolist())
            learnt = Mark(int(found.pag.marks[j, i])), Mark(int(found.pag.marks[i, j]))
            if seen == {ABSENT}:
                assert learnt == (Mark.NONE, Mark.NONE)
                continue
            assert ABSENT not in seen
            ends = zip(*(MARKS[kind] for kind in seen), strict=True)
            assert learnt == tuple(
                m.pop() if len(m := set(end)) == 1 else Mark.CIRCLE for end in ends
            )


@pytest.mark.parametrize(("sizes", "count"), [((1, 3), 163), ((2, 2), 92), ((3, 1), 88)])
def test_each_class_is_learnt_exactly(sizes: Sequence[int], count: int) -> None:
    check_classes(sizes, count)


@pytest.mark.slow
@pytest.mark.parametrize(("sizes", "count"), [((4,), 248), ((2, 3), 3622), ((1, 2, 2), 2020)])
def test_each_class_of_more_variables_is_learnt_exactly(sizes: Sequence[int], count: int) -> None:
    check_classes(sizes, count)


@pytest.mark.parametrize(("sizes", "count"), [((1, 3), 163), ((2, 2), 92)])
def test_each_class_is_learnt_exactly_from_sets_that_may_be_d_sep(
    sizes: Sequence[int], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exogenous, "_FEW_SETS", -1)
    check_classes(sizes, count)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "count"), [((4,), 248), ((2, 3), 3622), ((1, 2, 2), 2020), ((1, 4), 9896)]
)
def test_each_class_of_more_variables_is_learnt_exactly_from_sets_that_may_be_d_sep(
    sizes: Sequence[int], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # in some of the last ones an edge goes that no set of neighbours separates
    monkeypatch.setattr(exogenous, "_FEW_SETS", -1)
    check_classes(sizes, count)


# Tests of FCITIERS and of Algorithm 1 on the family of Proposition 4.2, as counted by a separate
# implementation: the early tier is a complete graph on m variables, each of X -> Y has one parent.
FAMILY = {
    3: (53, 41), 4: (110, 62), 5: (247, 87), 6: (596, 116), 7: (1493, 149), 8: (3770, 186),
    9: (9443, 227), 10: (23312, 272),
}  # fmt: skip


def family(m: int) -> tuple[Oracle, Tiers]:
    early = tuple(f"a{i}" for i in range(m))
    edges = [*itertools.combinations(early, 2), ("X", "Y"), ("a0", "X"), ("a1", "Y")]
    graph = ADMG.from_edges([*early, "X", "Y"], edges)
    return Oracle(graph), Tiers((early, ("X", "Y")))


@pytest.mark.parametrize("m", [pytest.param(m, marks=[pytest.mark.slow] * (m > 8)) for m in FAMILY])
def test_all_tiers_need_exponentially_more_tests_than_a_late_query(m: int) -> None:
    test, tiers = family(m)
    query = Query(("X",), ("Y",))
    full, part = discover(test, tiers), discover(test, tiers, band_of(query, tiers))
    assert (full.tests, part.tests) == FAMILY[m]


def test_no_set_of_a_pair_is_computed_twice() -> None:
    test, tiers = family(5)
    asked: list[tuple[int, int, frozenset[int]]] = []
    plain = test.p_values

    def noting(left: Ints, right: Ints, given: Ints) -> Floats:
        rows = zip(left.tolist(), right.tolist(), given.tolist(), strict=True)
        asked.extend((min(i, j), max(i, j), frozenset(s)) for i, j, s in rows)
        return plain(left, right, given)

    test.p_values = noting  # type: ignore[method-assign]
    found = discover(test, tiers)
    assert len(asked) == len(set(asked)) == found.computed < found.tests


def test_the_bound_on_sets_is_kept_and_told() -> None:
    graph = ADMG.from_edges("abcde", [(x, y) for x in "abc" for y in "de"])
    for test, most, edges in ((Oracle(graph), 2, 7), (Oracle(graph), 3, 6)):
        learnt = learn_tier(test, 0, 5, Settings(max_cond=most))
        assert len(list(learnt.graph.pairs())) == edges
        assert learnt.capped == (most == 2)
        assert max(mask.bit_count() for mask in learnt.sepsets.values()) <= most


@pytest.mark.parametrize("jobs", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_processes_change_neither_result_nor_counts(
    jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tierprune import exogenous

    test, tiers = family(5)
    alone = discover(test, tiers)
    monkeypatch.setattr(exogenous, "_WORTH_S", 0.0)
    monkeypatch.setattr(exogenous, "_MEASURED_S", 0.0)
    shared = discover(test, tiers, jobs=jobs)
    assert shared.pag == alone.pag
    assert shared.sepsets == alone.sepsets
    assert [cost[:3] for cost in shared.costs] == [cost[:3] for cost in alone.costs]


def test_contradictory_tests_are_listed_and_do_no_harm() -> None:
    rng = np.random.default_rng(4)
    names = [f"v{i}" for i in range(7)]
    tiers = Tiers((tuple(names[:2]), tuple(names[2:])))

    class Noise(Independence):
        name = "noise"

        def p_values(self, left: Ints, right: Ints, given: Ints) -> Floats:
            return rng.random(len(left + right + given.sum(axis=1))) * 0.9

    seen = []
    for _ in range(12):
        found = discover(Noise(names, 0.88), tiers)
        seen += found.contradictions
        assert set(found.sepsets) == {
            (a, b)
            for i, a in enumerate(names)
            for j, b in enumerate(names)
            if i < j and not found.pag.marks[i, j]
        }
    assert {each.rule for each in seen} == {"R4"}
    for each in seen:
        assert each.at in (each.a, each.b)
        assert each.wanted in ("arrow", "tail")


def test_a_separating_set_that_is_not_there_is_listed() -> None:
    graph = TierGraph(0, 3)
    graph.remove(0, 2)
    orientation = Orientation(graph, {})
    orientation.colliders()
    orientation.complete()
    assert list(orientation.conflicts) == [Conflict("R0", 0, 2, "a separating set")]
    assert [graph.mark(i, j) for i, j in ((0, 1), (1, 0), (1, 2), (2, 1))] == [Mark.CIRCLE] * 4


def check_restriction(sizes: Sequence[int], seeds: range) -> None:
    for seed in seeds:
        rng = np.random.default_rng(seed)
        graph, tiers = random_graph(sizes, rng)
        one, two = sorted(rng.integers(1, len(sizes) + 1, 2).tolist())
        test = Oracle(graph)
        full = discover(test, tiers)
        for band in (Band(one, two, "3.2"), Band(1, two, "3.6")):
            part = discover(test, tiers, band)
            assert part.pag == restricted(full.pag, tiers, band)
            assert part.tests <= full.tests
            assert not part.contradictions
        for i, j, at_i, at_j in full.pag.edges():
            a, b = graph.names[i], graph.names[j]
            if tiers.of[a] != tiers.of[b]:
                assert (at_i, at_j) == (Mark.TAIL, Mark.ARROW)


def test_a_query_learns_the_full_graph_restricted_to_its_band() -> None:
    check_restriction([3, 4, 3], range(5))


@pytest.mark.slow
def test_a_query_learns_the_full_graph_restricted_on_many_graphs() -> None:
    check_restriction([5] * 5, range(200))


def test_the_order_of_the_test_s_variables_does_not_matter() -> None:
    graph, tiers = random_graph([3, 3, 3], np.random.default_rng(4))
    turned = ADMG.from_edges(
        graph.names[::-1],
        [(graph.names[i], graph.names[j]) for i, j in graph.directed()],
        [(graph.names[i], graph.names[j]) for i, j in graph.bidirected()],
    )
    one, two = discover(Oracle(graph), tiers), discover(Oracle(turned), tiers)
    assert one.pag == two.pag
    assert (one.sepsets, one.tests) == (two.sepsets, two.tests)


def test_a_variable_that_is_not_tested_is_named() -> None:
    with pytest.raises(ValueError, match="Z of the tiers is not among"):
        discover(family(3)[0], Tiers((("X", "Z"),)))


def test_a_number_of_sets_beyond_any_float_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # 1,198 variables that may be in D-SEP of the one edge: all but one of 2^1198 sets, 10^360.6.
    size = 1200
    learnt = LearntTier(TierGraph(0, size))
    learnt.graph.adjacent[:] = [2, 1] + [0] * (size - 2)
    rest = (1 << size) - 1 & ~3
    every = DSep(0, 1, rest, rest, rest, (0,) * size)
    monkeypatch.setattr(exogenous, "possible_d_sep", lambda *_: rest)
    monkeypatch.setattr(DSepSearch, "__init__", lambda *_: None)
    monkeypatch.setattr(DSepSearch, "of", lambda *_: [every])
    monkeypatch.setattr(exogenous._Searcher, "_run", lambda *_: None)
    test = Oracle(ADMG.from_edges([str(i) for i in range(size)]))
    exogenous._Searcher(test, learnt, Settings(), None).possible_d_sep()
    assert "up to 10^361 sets" in caplog.text

"""Edges that only D-SEP removes: every separation by brute force, and each subset tried."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from tierprune import ADMG, Tiers, exogenous, m_separated
from tierprune.bits import mask_of
from tierprune.discovery import Discovered, discover
from tierprune.dsep import DSepSearch
from tierprune.exogenous import Settings, learn_tier
from tierprune.independence.fisherz import FisherZ
from tierprune.independence.oracle import Oracle
from tierprune.orientation import Orientation
from tierprune.simulation import random_graph, random_model, sample
from tierprune.tiergraph import TierGraph

# x and y have the neighbours v and w alone, and {u, v, w} alone separates them.
ARROWS = [("u", "v"), ("u", "w"), ("v", "y"), ("w", "x")]
ARCS = [("v", "x"), ("w", "y")]
SIZES = [(0, 5), (0, 6), (0, 7), (1, 4), (1, 5), (2, 5), (3, 5), (2, 6), (1, 7), (4, 4)]


def surrounded(rng: random.Random, early: int, late: int) -> tuple[ADMG, Tiers]:
    """Draw a graph with the five variables above (u in either tier), others and edges of these."""
    u_early = early > 0 and rng.random() < 0.5
    core = ["v", "w", "x", "y"] if u_early else ["u", "v", "w", "x", "y"]
    first = [*(["u"] if u_early else []), *(f"a{i}" for i in range(early - u_early))]
    second = list(core)
    for i in range(late - len(core)):
        second.insert(rng.randrange(len(second) + 1), f"b{i}")
    rng.shuffle(first)
    arrows, arcs = list(ARROWS), list(ARCS)
    directed, bidirected = rng.uniform(0, 0.35), rng.uniform(0, 0.3)
    for pair in itertools.combinations([*first, *second], 2):
        if set(pair) <= set("uvwxy"):
            continue
        if rng.random() < directed:
            arrows.append(pair)
        if (pair[0] in first) == (pair[1] in first) and rng.random() < bidirected:
            arcs.append(pair)
    tiers = Tiers(tuple(tuple(sorted(group)) for group in (first, second) if group))
    return ADMG.from_edges(tiers.names, sorted(arrows), sorted(arcs)), tiers


@pytest.fixture
def no_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for D-SEP also where each subset of Possible-D-SEP could be tried."""
    monkeypatch.setattr(exogenous, "_FEW_SETS", -1)


def each_subset(monkeypatch: pytest.MonkeyPatch, graph: ADMG, tiers: Tiers) -> Discovered:
    with monkeypatch.context() as patch:
        patch.setattr(exogenous, "_FEW_SETS", 10**9)
        return discover(Oracle(graph), tiers)


def check_edges(graph: ADMG, tiers: Tiers, found: Discovered) -> None:
    """An edge is where no set of all other variables separates."""
    for i, j in itertools.combinations(range(len(graph)), 2):
        others = [k for k in range(len(graph)) if k not in (i, j)]
        apart = any(
            m_separated(graph, 1 << i, 1 << j, mask_of(given))
            for size in range(len(others) + 1)
            for given in itertools.combinations(others, size)
        )
        early = all(tiers.of[graph.names[k]] < len(tiers) for k in (i, j))
        assert early or bool(found.pag.marks[i, j]) != apart, (graph.names[i], graph.names[j])


def check_many(monkeypatch: pytest.MonkeyPatch, seeds: range) -> None:
    hidden = fewer = 0
    for seed in seeds:
        rng = random.Random(seed)
        graph, tiers = surrounded(rng, *rng.choice(SIZES))
        whole, found = each_subset(monkeypatch, graph, tiers), discover(Oracle(graph), tiers)
        assert found.pag == whole.pag
        assert not found.contradictions
        check_edges(graph, tiers, found)
        x, y = graph.index["x"], graph.index["y"]
        hidden += not found.pag.marks[x, y] and {"u", "v", "w"} <= set(found.sepsets["x", "y"])
        fewer += found.tests < whole.tests
    assert hidden > 0.8 * len(seeds)
    assert fewer > 0.5 * len(seeds)


@pytest.mark.usefixtures("no_few")
def test_edges_that_no_neighbours_separate_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    check_many(monkeypatch, range(8))


@pytest.mark.slow
@pytest.mark.usefixtures("no_few")
def test_edges_that_no_neighbours_separate_are_found_in_many_graphs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check_many(monkeypatch, range(1000, 1500))


@pytest.mark.usefixtures("no_few")
def test_the_set_holds_nothing_that_is_not_needed() -> None:
    # an earlier cause of x alone is left out again, one of x and y is needed
    for more, given in (("x", "uvw"), ("xy", "puvw")):
        graph = ADMG.from_edges("puvwxy", [*ARROWS, *(("p", end) for end in more)], ARCS)
        found = discover(Oracle(graph), Tiers((("p", "u"), tuple("vwxy"))))
        assert found.sepsets["x", "y"] == tuple(given)


@pytest.mark.usefixtures("no_few")
def test_the_bound_holds_for_d_sep_too() -> None:
    graph = ADMG.from_edges("uvwxy", ARROWS, ARCS)
    for most, edges in ((2, 7), (3, 6)):
        learnt = learn_tier(Oracle(graph), 1, 5, Settings(max_cond=most))
        assert len(list(learnt.graph.pairs())) == edges
    assert not learnt.capped
    assert learn_tier(Oracle(graph), 1, 5, Settings(max_cond=2)).capped


@pytest.mark.slow
@pytest.mark.usefixtures("no_few")
def test_a_bound_that_leaves_out_nothing_changes_no_graph() -> None:
    for seed in range(2000, 2150):
        rng = random.Random(seed)
        graph, tiers = surrounded(rng, *rng.choice(SIZES))
        found = discover(Oracle(graph), tiers, max_cond=len(graph))
        assert found.pag == discover(Oracle(graph), tiers).pag


@pytest.mark.slow
@pytest.mark.usefixtures("no_few")
def test_processes_change_nothing_here_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exogenous, "_WORTH_S", 0.0)
    monkeypatch.setattr(exogenous, "_MEASURED_S", 0.0)
    graph, tiers = surrounded(random.Random(3), 2, 6)
    alone, shared = (discover(Oracle(graph), tiers, jobs=jobs) for jobs in (1, 2))
    assert shared.pag == alone.pag
    assert (shared.sepsets, shared.tests) == (alone.sepsets, alone.tests)
    assert {"u", "v", "w"} <= set(shared.sepsets["x", "y"])


def skeleton(graph: ADMG, earlier: int) -> DSepSearch:
    """Give what is known once all sets of neighbours were tested."""
    learnt = exogenous.LearntTier(TierGraph(earlier, len(graph)))
    exogenous._Searcher(Oracle(graph), learnt, Settings(), None).skeleton()
    Orientation(learnt.graph, learnt.sepsets).colliders()
    return DSepSearch(learnt.graph, learnt.sepsets)


def test_where_an_edge_is_certain_no_set_is_tried() -> None:
    graph = ADMG.from_edges("uvwxy", ARROWS, ARCS)
    known = skeleton(graph, 1)
    u, v, w, x, y = range(5)
    assert [bool(known.of(i, j)) for i, j in ((u, v), (u, w), (x, y))] == [False, False, True]
    # v has a cause that y has not, and separates the two: it causes y
    assert known.of(v, y) == known.of(w, x) == []
    for each in known.of(x, y):
        assert each.first == 1 << (w if each.v == y else v)
        assert each.everything == 1 << u | 1 << v | 1 << w
    # without w nothing leads from y to x
    graph = ADMG.from_edges("uvxy", [("u", "v"), ("v", "y")], [("v", "x"), ("x", "y")])
    assert skeleton(graph, 1).of(2, 3) == []


def test_a_certain_edge_tells_of_those_beside_it() -> None:
    # no earlier variable has an edge to u, but s and t are apart without it: it causes neither
    graph = ADMG.from_edges("atus", [("a", "t"), ("s", "u")], [("t", "u")])
    known = skeleton(graph, 1)
    assert known._certain[2] == 0b1010
    assert known._not_into[2] == 0b1010


def test_sets_are_listed_once_with_the_causes_of_their_colliders() -> None:
    each = skeleton(ADMG.from_edges("uvwxy", ARROWS, ARCS), 1).of(3, 4)[1]
    sets = [[*map(int, np.flatnonzero([s >> k & 1 for k in range(5)]))] for s in each.sets()]
    assert sets == [[0, 1], [0, 1, 2]]  # of x: v, then v and w, each with u
    assert each.total == len(sets)


def test_a_late_tier_needs_no_bound() -> None:
    # Possible-D-SEP has 1,540,049 subsets here beside sets of neighbours
    rng = np.random.default_rng(1)
    graph, tiers = random_graph([12] * 4, rng)
    rows = sample(random_model(graph, rng, kind="gaussian"), 20_000, rng)
    learnt = learn_tier(FisherZ(np.asarray(rows), names=tiers.names), 36, 48)
    assert learnt.tests < 5000
    assert not learnt.capped

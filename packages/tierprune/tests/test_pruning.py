"""Pruning: which edges stay, that the answer stays, the flip of the tight band, and speed."""

import random
import time

import pytest
from smallgraphs import random_query, random_tiered

from papercuts.errors import DataError
from tierprune.admg import ADMG
from tierprune.components import t_components
from tierprune.identification import identify
from tierprune.pruning import count_edges, prune
from tierprune.query import Query
from tierprune.tiers import Tiers


def flip_example() -> tuple[ADMG, Tiers, Query]:
    """The smallest graph found on which the tight band is wrong (random search, 7 variables)."""
    arrows = ["10-20", "10-31", "11-30", "11-31", "21-30", "21-40", "30-31"]
    graph = ADMG.from_edges(
        ["10", "11", "20", "21", "30", "31", "40"],
        [tuple(arrow.split("-")) for arrow in arrows],  # type: ignore[misc]
        [("20", "21"), ("30", "31")],
    )
    tiers = Tiers((("10", "11"), ("20", "21"), ("30", "31"), ("40",)))
    return graph, tiers, Query(("30",), ("10",), ("31",))


def test_flip_example() -> None:
    graph, tiers, query = flip_example()
    right = prune(graph, tiers, query)
    assert (right.band.first, right.band.last, right.band.rule) == (1, 3, "3.6")
    assert (right.kept, right.dropped) == (8, 1)
    assert right.never_needed == ("20", "40")
    tight = prune(graph, tiers, query, force_tight=True)
    verdicts = [identify(g, query).verdict for g in (graph, right.graph, tight.graph)]
    assert verdicts == ["no", "no", "yes"]


def test_kept_edges_are_the_components_of_the_band() -> None:
    rng = random.Random(1)
    for _ in range(100):
        graph, tiers = random_tiered(rng, [rng.randint(1, 3) for _ in range(4)])
        if len(graph) < 5:
            continue
        query = random_query(rng, graph.names, rng.randint(0, 2))
        pruned = prune(graph, tiers, query)
        parts = t_components(graph, tiers)
        kept = [part for tier, part in enumerate(parts, 1) if tier in pruned.band]
        for i in range(len(graph)):
            assert pruned.graph.parents[i] == sum(part.parents[i] for part in kept)
            assert pruned.graph.spouses[i] == sum(part.spouses[i] for part in kept)
        gone = pruned.dropped_edges()
        assert count_edges(pruned.graph) == pruned.kept
        assert count_edges(gone) == pruned.dropped
        assert pruned.kept + pruned.dropped == count_edges(graph)


def test_answer_stays_without_edges_outside_the_band_and_without_what_is_never_needed() -> None:
    """The proof at full size (10,000 queries) is that of identification; this is its sample."""
    rng = random.Random(2)
    seen = set()
    for _ in range(400):
        graph, tiers = random_tiered(rng, [2, 2, 2], directed=0.4, bidirected=0.6)
        query = random_query(rng, graph.names, rng.choice((0, 0, 1, 2)))
        pruned = prune(graph, tiers, query)
        verdict = identify(graph, query).verdict
        assert identify(pruned.graph, query).verdict == verdict
        part = pruned.needed_part()
        assert identify(part, query).verdict == verdict
        assert not set(part.names) & set(pruned.never_needed)
        seen.add((pruned.band.rule, verdict))
    assert seen == {(rule, verdict) for rule in ("3.2", "3.5", "3.6") for verdict in ("yes", "no")}


def test_outcome_before_treatment_needs_nothing() -> None:
    graph = ADMG.from_edges("abc", [("a", "b"), ("b", "c")])
    pruned = prune(graph, Tiers((("a",), ("b",), ("c",))), Query(("c",), ("b",)))
    assert (pruned.kept, pruned.dropped, pruned.never_needed) == (0, 2, ("a",))


def test_wrong_input() -> None:
    graph = ADMG.from_edges("ab", [("a", "b")])
    tiers = Tiers((("a",), ("b",)))
    with pytest.raises(ValueError, match="c is not in the graph"):
        prune(graph, tiers, Query(("a",), ("c",)))
    with pytest.raises(DataError, match="back to tier"):
        prune(graph, Tiers((("b",), ("a",))), Query(("a",), ("b",)))


def test_two_thousand_variables_and_ten_thousand_edges_take_under_half_a_second() -> None:
    rng = random.Random(3)
    names = [f"v{i}" for i in range(2000)]
    tiers = Tiers(tuple(tuple(names[i : i + 100]) for i in range(0, 2000, 100)))
    directed, both = set(), set()
    while len(directed) < 9000:
        i, j = sorted(rng.sample(range(2000), 2))
        directed.add((names[i], names[j]))
    while len(both) < 1000:
        start = 100 * rng.randrange(20)
        i, j = sorted(rng.sample(range(start, start + 100), 2))
        both.add((names[i], names[j]))
    graph = ADMG.from_edges(names, sorted(directed), sorted(both))
    begin = time.process_time()
    pruned = prune(graph, tiers, Query(("v1000",), ("v1500",)))
    assert time.process_time() - begin < 0.5
    inside = [(a, b) for a, b in [*directed, *both] if 11 <= tiers.of[b] <= 16]
    assert pruned.kept == len(inside)
    assert pruned.kept + pruned.dropped == 10_000

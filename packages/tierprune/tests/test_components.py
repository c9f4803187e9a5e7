"""T-components and the faults of a graph against its tiers."""

import random

import pytest
from smallgraphs import random_tiered

from papercuts.errors import DataError
from tierprune import formats
from tierprune.admg import ADMG
from tierprune.components import check_tiers, edge_texts, t_components
from tierprune.tiers import Tiers, parse_tiers


def test_components_are_the_edges_by_their_later_tier() -> None:
    rng = random.Random(0)
    for _ in range(50):
        graph, tiers = random_tiered(rng, [rng.randint(1, 3) for _ in range(rng.randint(1, 4))])
        check_tiers(graph, tiers)
        parts = t_components(graph, tiers)
        assert len(parts) == len(tiers)
        for tier, part in enumerate(parts, 1):
            assert part.names == graph.names
            expected = [
                text
                for text in edge_texts(graph)
                if max(tiers.of[end] for end in text.replace("<->", "->").split(" -> ")) == tier
            ]
            assert list(edge_texts(part)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a -> b\nc -> a", "g:2: c -> a goes from tier 3 back to tier 1 (expected an edge to"),
        ("b <- c", "g:1: c -> b goes from tier 3 back to tier 2"),
        ("a -> b\n\nb <-> c", "g:3: b <-> c joins tiers 2 and 3 (expected no latent cause of two"),
        ("a <-> a2", None),
        ("a -> a2\na2 -> c\na <-> a2", None),
        ("a -> d", "g: d has no tier (expected a tier for every variable)"),
        ("a o-> b", None),
        ("a o-o b", None),
        ("a <-o b", "g:1: b o-> a goes from tier 2 back to tier 1"),
        ("a o-- b", "g:1: b --o a goes from tier 2 back to tier 1"),
        ("a --- b", "g:1: b --- a goes from tier 2 back to tier 1"),
    ],
)
def test_first_fault_is_named_with_its_line(text: str, message: str | None) -> None:
    graph = formats.parse(text, "edges", "g")
    tiers = parse_tiers("a,a2<b<c")
    if message is None:
        check_tiers(graph, tiers)
    else:
        with pytest.raises(DataError) as caught:
            check_tiers(graph, tiers)
        assert str(caught.value).startswith(message)


def test_faults_of_a_graph_without_a_file() -> None:
    tiers = Tiers((("a",), ("b",)))
    with pytest.raises(DataError, match="graph: b -> a goes from tier 2 back to tier 1"):
        check_tiers(ADMG.from_edges("ab", [("b", "a")]), tiers)
    with pytest.raises(DataError, match="graph: a <-> b joins tiers 1 and 2"):
        check_tiers(ADMG.from_edges("ab", [], [("a", "b")]), tiers)


def test_a_tier_spelt_otherwise_is_suggested() -> None:
    graph = formats.parse("Age -> drug\n", "edges", "FILE")
    with pytest.raises(DataError, match=r"Age has no tier \(.* variable; did you mean age\?\)"):
        check_tiers(graph, parse_tiers("age<drug"))
    with pytest.raises(DataError, match=r"Age has no tier \([^;]*variable\)"):
        check_tiers(graph, parse_tiers("drug"))

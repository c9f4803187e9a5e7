"""ADMGs and bit sets, against networkx and plain sets."""

import random

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from smallgraphs import random_admg

from tierprune.admg import ADMG
from tierprune.bits import bits, lowest, mask_of
from tierprune.separation import m_connected


@given(st.sets(st.integers(0, 300)))
def test_bits_are_the_members_in_order(members: set[int]) -> None:
    mask = mask_of(members)
    assert list(bits(mask)) == sorted(members)
    assert mask.bit_count() == len(members)
    if members:
        assert lowest(mask) == min(members)


@pytest.fixture(params=range(40))
def graph(request: pytest.FixtureRequest) -> ADMG:
    rng = random.Random(request.param)
    return random_admg(rng, rng.randint(1, 12), directed=0.25, bidirected=0.2)


def test_networkx_and_back_is_the_same_graph(graph: ADMG) -> None:
    assert ADMG.from_networkx(*graph.to_networkx()) == graph


def test_ancestors_descendants_and_districts_are_those_of_networkx(graph: ADMG) -> None:
    directed, bidirected = graph.to_networkx()
    for i, name in enumerate(graph.names):
        assert set(graph.named(graph.ancestors(1 << i))) == nx.ancestors(directed, name) | {name}
        assert set(graph.named(graph.descendants(1 << i))) == nx.descendants(directed, name) | {
            name
        }
        component = nx.node_connected_component(bidirected, name)
        assert set(graph.named(graph.district(1 << i))) == component
    found = [set(graph.named(mask)) for mask in graph.districts()]
    assert sorted(map(sorted, found)) == sorted(map(sorted, nx.connected_components(bidirected)))


def test_within_is_the_induced_subgraph(graph: ADMG) -> None:
    within = mask_of(range(0, len(graph), 2))
    part = graph.among(within)
    for name in part.names:
        one = graph.mask([name])
        for walk in ("ancestors", "descendants", "district"):
            inside = getattr(graph, walk)(one, within)
            assert graph.named(inside) == part.named(getattr(part, walk)(part.mask([name])))
    assert [graph.named(m) for m in graph.districts(within)] == [
        part.named(m) for m in part.districts()
    ]


def test_order_puts_parents_first(graph: ADMG) -> None:
    order = graph.order()
    assert sorted(order) == list(range(len(graph)))
    assert all(order.index(i) < order.index(j) for i, j in graph.directed())


def test_surgery_takes_the_edges_into_and_out_of_a_set(graph: ADMG) -> None:
    mask = mask_of(range(0, len(graph), 3))
    names = set(graph.named(mask))
    directed, bidirected = graph.to_networkx()
    into, out = graph.without_into(mask), graph.without_out_of(mask)
    assert into == ADMG.from_edges(
        graph.names,
        [(a, b) for a, b in directed.edges if b not in names],
        [(a, b) for a, b in bidirected.edges if a not in names and b not in names],
    )
    assert out == ADMG.from_edges(
        graph.names, [(a, b) for a, b in directed.edges if a not in names], bidirected.edges
    )
    for changed in (into, out):
        assert changed.children == ADMG.from_networkx(*changed.to_networkx()).children


def test_projection_keeps_every_separation_of_what_is_observed(graph: ADMG) -> None:
    latent = mask_of(range(1, len(graph), 3))
    seen = graph.projected(latent)
    assert seen.names == tuple(graph.named(graph.everything & ~latent))
    rng = random.Random(len(graph))
    for name in seen.names:
        others = [other for other in seen.names if other != name]
        for _ in range(4):
            given = rng.sample(others, rng.randint(0, len(others)))
            reached = m_connected(graph, graph.mask([name]), graph.mask(given)) & ~latent
            assert seen.named(
                m_connected(seen, seen.mask([name]), seen.mask(given))
            ) == graph.named(reached)


def test_projection_by_hand() -> None:
    """A <- U -> B with U -> V -> C: all three share U, and Q -> U makes Q a cause of all three."""
    graph = ADMG.from_edges(
        ["A", "B", "C", "Q", "U", "V"],
        [("U", "A"), ("U", "B"), ("U", "V"), ("V", "C"), ("Q", "U")],
    )
    expected = ADMG.from_edges(
        ["A", "B", "C", "Q"],
        [("Q", "A"), ("Q", "B"), ("Q", "C")],
        [("A", "B"), ("A", "C"), ("B", "C")],
    )
    assert graph.projected(graph.mask(["U", "V"])) == expected


def test_cycle_is_named_in_order() -> None:
    edges = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "b")]
    with pytest.raises(ValueError, match=r"directed cycle: (b -> c -> d|c -> d -> b|d -> b -> c)"):
        ADMG.from_edges("abcd", edges)


@pytest.mark.parametrize(
    ("names", "edges", "message"),
    [("ab", [("a", "a")], "a to itself"), ("aba", [], "named twice")],
)
def test_what_is_no_graph_is_refused(
    names: str, edges: list[tuple[str, str]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        ADMG.from_edges(names, edges)

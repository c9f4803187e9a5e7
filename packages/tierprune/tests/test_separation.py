"""m-separation against brute force over paths, and against networkx with latent parents."""

import itertools
import random
from collections.abc import Iterator

import networkx as nx
import pytest
from smallgraphs import all_admgs, random_admg

from tierprune.admg import ADMG
from tierprune.bits import bits
from tierprune.separation import m_connected, m_separated


def steps(graph: ADMG, i: int) -> Iterator[tuple[int, bool, bool]]:
    """Yield each edge at i: the other end, an arrowhead at i, an arrowhead at the other end."""
    for j in bits(graph.children[i]):
        yield j, False, True
    for j in bits(graph.parents[i]):
        yield j, True, False
    for j in bits(graph.spouses[i]):
        yield j, True, True


def open_path(graph: ADMG, start: int, end: int, given: int) -> bool:
    """Search all paths without a repeated variable for one that is open (the definition)."""
    opening = graph.ancestors(given)
    stack = [(start, None, 1 << start)]
    while stack:
        i, head, seen = stack.pop()
        if i == end:
            return True
        for j, here, there in steps(graph, i):
            if seen >> j & 1:
                continue
            if head is not None:
                collider = head and here
                if not (opening >> i & 1 if collider else not given >> i & 1):
                    continue
            stack.append((j, there, seen | 1 << j))
    return False


def agrees(graph: ADMG) -> None:
    size = len(graph)
    for start, end in itertools.combinations(range(size), 2):
        others = [i for i in range(size) if i not in (start, end)]
        for count in range(len(others) + 1):
            for chosen in itertools.combinations(others, count):
                given = sum(1 << i for i in chosen)
                found = bool(m_connected(graph, 1 << start, given) >> end & 1)
                assert found == open_path(graph, start, end, given)


def test_all_graphs_of_three_variables() -> None:
    for graph in all_admgs(3):
        agrees(graph)


@pytest.mark.slow
def test_all_graphs_of_four_variables() -> None:
    for graph in all_admgs(4):
        agrees(graph)


def test_some_graphs_of_four_to_six_variables() -> None:
    rng = random.Random(0)
    for _ in range(60):
        agrees(random_admg(rng, rng.choice((4, 4, 5, 6)), directed=0.35, bidirected=0.25))


def test_networkx_says_the_same_of_the_graph_with_latent_parents() -> None:
    rng = random.Random(1)
    for _ in range(60):
        graph = random_admg(rng, 9, directed=0.25, bidirected=0.15)
        expanded = nx.DiGraph(graph.to_networkx()[0])
        for number, (i, j) in enumerate(graph.bidirected()):
            latent = f"latent {number}"
            expanded.add_edges_from([(latent, graph.names[i]), (latent, graph.names[j])])
        for _ in range(10):
            shuffled = rng.sample(graph.names, 9)
            a, b, given = shuffled[:2], shuffled[2:4], shuffled[4 : rng.randint(4, 9)]
            answer = m_separated(graph, graph.mask(a), graph.mask(b), graph.mask(given))
            assert answer == nx.is_d_separator(expanded, set(a), set(b), set(given))

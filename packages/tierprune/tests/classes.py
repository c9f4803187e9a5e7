"""All Markov classes of small tiered maximal ancestral graphs, from the definition."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache

import numpy as np

from tierprune import ADMG, PAG, Mark, Tiers, m_connected
from tierprune.ancestral import is_ancestral

Model = tuple[int, ...]


def model(graph: ADMG, early: int) -> Model:
    """Say what is m-separated from what, given each set (pairs inside the early tier aside)."""
    size = len(graph)
    found = []
    for given in range(1 << size):
        for i in range(early, size):
            if not given >> i & 1:
                found.append(m_connected(graph, 1 << i, given))  # noqa: PERF401 (three levels)
    return tuple(found)


def is_maximal(graph: ADMG, found: Model, early: int) -> bool:
    """Say whether each pair without an edge is separated by some set."""
    size = len(graph)
    ever = {(i, j) for i in range(early, size) for j in range(i)}
    rows = iter(found)
    for given in range(1 << size):
        for i in range(early, size):
            if not given >> i & 1:
                row = next(rows)
                ever -= {(i, j) for j in range(i) if not row >> j & 1 and not given >> j & 1}
    return all((graph.parents[i] | graph.spouses[i] | graph.children[i]) >> j & 1 for i, j in ever)


@cache
def classes(early: int, late: int) -> list[list[ADMG]]:
    """List the MAGs of each class: `early` variables (all connected) before `late` ones."""
    names = [f"A{i}" for i in range(early)] + [f"B{i}" for i in range(late)]
    fixed = list(itertools.combinations(names[:early], 2))
    cross = list(itertools.product(names[:early], names[early:]))
    inner = list(itertools.combinations(names[early:], 2))
    found: dict[Model, list[ADMG]] = {}
    for kinds in itertools.product(("", "->", "<-", "<->"), repeat=len(inner)):
        within = list(zip(inner, kinds, strict=True))
        directed = [e if k == "->" else e[::-1] for e, k in within if k in ("->", "<-")]
        bidirected = [e for e, k in within if k == "<->"]
        try:
            ADMG.from_edges(names, directed, bidirected)
        except ValueError:
            continue  # a cycle
        for have in itertools.product((0, 1), repeat=len(cross)):
            across = list(itertools.compress(cross, have))
            graph = ADMG.from_edges(names, fixed + across + directed, bidirected)
            if is_ancestral(graph):
                separations = model(graph, early)
                if is_maximal(graph, separations, early):
                    found.setdefault(separations, []).append(graph)
    return list(found.values())


def mag(graph: ADMG, early: int) -> PAG:
    """Give the edges of a MAG outside the early tier, with their marks."""
    made = PAG(graph.names)
    for i, j in graph.directed():
        if j >= early:
            made.marks[i, j], made.marks[j, i] = Mark.ARROW, Mark.TAIL
    for i, j in graph.bidirected():
        made.marks[i, j] = made.marks[j, i] = Mark.ARROW
    return made


def pag_of(members: list[ADMG], early: int) -> PAG:
    """Give the marks that all members of a class share, and a circle for each other mark."""
    marks = np.array([mag(member, early).marks for member in members])
    same = (marks == marks[0]).all(axis=0)
    return PAG(members[0].names, np.where(same, marks[0], Mark.CIRCLE).astype(np.int8))


def tiers_of(graph: ADMG, early: int) -> Tiers:
    """Give the two tiers (one where there are no early variables)."""
    groups = (graph.names[:early], graph.names[early:])
    return Tiers(tuple(group for group in groups if group))


def cases(*sizes: tuple[int, int]) -> Iterator[tuple[list[ADMG], PAG, Tiers, int]]:
    """Yield each class with its PAG and tiers."""
    for early, late in sizes:
        for group in classes(early, late):
            yield group, pag_of(group, early), tiers_of(group[0], early), early


@cache
def admgs_of(early: int, late: int) -> dict[Model, list[ADMG]]:
    """Group every ADMG, with and without bows, by the independences that it asserts."""
    names = [f"A{i}" for i in range(early)] + [f"B{i}" for i in range(late)]
    cross = list(itertools.product(names[:early], names[early:]))
    inner = list(itertools.combinations(names[early:], 2))
    whole = list(itertools.combinations(names[:early], 2))
    found: dict[Model, list[ADMG]] = {}
    for kinds in itertools.product(range(6), repeat=len(inner)):
        within = list(zip(inner, kinds, strict=True))
        directed = [e if k in (1, 4) else e[::-1] for e, k in within if k in (1, 2, 4, 5)]
        bidirected = [e for e, k in within if k >= 3]
        try:
            ADMG.from_edges(names, directed, bidirected)
        except ValueError:
            continue
        for have in itertools.product((0, 1), repeat=len(cross)):
            edges = whole + list(itertools.compress(cross, have)) + directed
            graph = ADMG.from_edges(names, edges, bidirected)
            found.setdefault(model(graph, early), []).append(
                ADMG.from_edges(names, edges, bidirected + whole)
            )
    return found

"""Random and exhaustive small graphs for the tests."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence

from tierprune.admg import ADMG
from tierprune.query import Query
from tierprune.tiers import Tiers

KINDS = ("", "->", "<->", "both")


def all_admgs(size: int) -> Iterator[ADMG]:
    """Yield every ADMG on `size` variables whose order is a topological one."""
    names = [f"v{i}" for i in range(size)]
    pairs = list(itertools.combinations(names, 2))
    for kinds in itertools.product(KINDS, repeat=len(pairs)):
        directed = [p for p, kind in zip(pairs, kinds, strict=True) if kind in ("->", "both")]
        both = [p for p, kind in zip(pairs, kinds, strict=True) if kind in ("<->", "both")]
        yield ADMG.from_edges(names, directed, both)


def random_admg(rng: random.Random, size: int, *, directed: float, bidirected: float) -> ADMG:
    """Draw a graph; the names are shuffled, so their order is no topological one."""
    names = [f"v{i}" for i in range(size)]
    order = rng.sample(names, size)
    pairs = list(itertools.combinations(order, 2))
    return ADMG.from_edges(
        names,
        [pair for pair in pairs if rng.random() < directed],
        [pair for pair in pairs if rng.random() < bidirected],
    )


def random_tiered(
    rng: random.Random, sizes: Sequence[int], *, directed: float = 0.35, bidirected: float = 0.3
) -> tuple[ADMG, Tiers]:
    """Draw a graph that keeps to its tiers."""
    groups = [[f"t{tier}_{i}" for i in range(size)] for tier, size in enumerate(sizes, 1)]
    tiers = Tiers(tuple(tuple(group) for group in groups))
    pairs = list(itertools.combinations(tiers.names, 2))
    graph = ADMG.from_edges(
        tiers.names,
        [pair for pair in pairs if rng.random() < directed],
        [(a, b) for a, b in pairs if tiers.of[a] == tiers.of[b] and rng.random() < bidirected],
    )
    return graph, tiers


def random_query(
    rng: random.Random,
    names: tuple[str, ...],
    given: int,
    *,
    ends: Sequence[tuple[int, int]] = ((1, 1), (2, 1)),
) -> Query:
    """Draw a query with `given` conditions; `ends` are the numbers of treatments and outcomes.

    With fewer variables there are fewer conditions.
    """
    treatments, outcomes = rng.choice(ends)
    chosen = rng.sample(names, min(len(names), treatments + outcomes + given))
    cut = treatments + outcomes
    return Query(tuple(chosen[:treatments]), tuple(chosen[treatments:cut]), tuple(chosen[cut:]))

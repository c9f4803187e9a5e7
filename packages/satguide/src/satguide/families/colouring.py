"""3-colouring of random graphs at the threshold, in the one-hot encoding."""

from __future__ import annotations

import numpy as np

from satguide.cnf import CNF, offsets

EDGES_PER_VERTEX = 4.67 / 2  # expected; the paper's setting, near the threshold of 3-colourability
SMALLEST = 2


def generate(vertices: int, seed: int) -> CNF:
    """Draw G(vertices, p) and ask for a proper colouring with three colours.

    Variable 3v + c + 1 says that vertex v (from 0) has colour c: each vertex has at least one and
    at most one colour, and the ends of an edge differ. Raises `ValueError` below `SMALLEST`
    vertices; up to 5 of them the graph is complete.
    """
    if vertices < SMALLEST:
        raise ValueError(f"a graph to colour needs at least {SMALLEST} vertices, not {vertices}")
    random = np.random.default_rng(seed)
    pairs = vertices * (vertices - 1) // 2
    edges = min(pairs, random.binomial(pairs, min(1.0, EDGES_PER_VERTEX * vertices / pairs)))
    chosen = np.empty(0, dtype=np.int64)  # edges a * vertices + b with a < b, in order of arrival
    while len(chosen) < edges:
        drawn = np.sort(random.integers(0, vertices, (edges, 2)), axis=1)
        drawn = drawn[drawn[:, 0] != drawn[:, 1]]
        chosen = np.concatenate([chosen, drawn[:, 0] * vertices + drawn[:, 1]])
        _, first = np.unique(chosen, return_index=True)
        chosen = chosen[np.sort(first)[:edges]]
    ends = np.stack(np.divmod(np.sort(chosen), vertices), axis=1)
    first = 3 * np.arange(vertices)[:, None]
    some = first + np.array([1, 2, 3])
    pairs_of_colours = first[:, :, None] + np.array([[1, 2], [1, 3], [2, 3]])
    per_vertex = np.concatenate([some, -pairs_of_colours.reshape(vertices, 6)], axis=1)
    per_edge = -(3 * ends[:, None, :] + np.array([1, 2, 3])[None, :, None])
    literals = np.concatenate([per_vertex.ravel(), per_edge.ravel()]).astype(np.int32)
    lengths = np.concatenate([np.tile([3, 2, 2, 2], vertices), np.full(3 * len(ends), 2)])
    return CNF(3 * vertices, literals, offsets(lengths), f"3col-{vertices}-{seed}")

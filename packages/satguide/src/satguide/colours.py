"""Look once at variables that no network of so many rounds can tell apart.

Colour refinement (Weisfeiler and Leman): two nodes have the same colour after r rounds exactly when
r rounds of message passing, of whatever weights, must give them the same features. The three
colours of a vertex in 3COL are such variables; in random 3SAT there are none. A formula of which
much can be merged is looked at as the smaller graph of its colours: each class is one node, with
the neighbours of one of its members.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from papercuts.kernels.csr import NeighbourLists
from satguide.cnf import offsets
from satguide.graph import Adjacency, Batch

WORTH = 0.7  # merge where at most this share of the variables is left

Words = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Merged:
    """The graph of the classes, and the class of each variable of the formula: [variables].

    Its two lists are not each other's transpose: of a class of literals, one stands for all.
    """

    graph: Batch
    class_of: Tensor


def merged(graph: Adjacency, rounds: int, device: torch.device | str = "cpu") -> Merged | None:
    """Merge what `rounds` rounds of messages cannot tell apart; None where it would not pay.

    Colours are 64-bit hashes: two that differ are equal by accident with a chance of about
    (nodes^2) / 2^65, and then two variables share a weight.
    """
    if not rounds or not graph.literals.size:
        return None
    literals = _mixed(np.diff(graph.literal_starts).astype(np.uint64))
    clauses = _mixed(np.diff(graph.clause_starts).astype(np.uint64) + np.uint64(1 << 40))
    first: NDArray[Any] = np.empty(0, dtype=np.int64)
    class_of: NDArray[Any] = first
    for done in range(1, rounds + 1):
        # What is added up are hashes, in odd multiples by their part: one scrambling is enough.
        clauses = _mixed(3 * clauses + _sums(literals, graph.literals, graph.clause_starts))
        heard = _sums(clauses, graph.clauses, graph.literal_starts).reshape(-1, 2)
        pairs = literals.reshape(-1, 2)
        literals = _mixed((5 * pairs + 7 * pairs[:, ::-1] + heard).reshape(-1))
        # Colours only split, so what does not pay after a round will not pay later.
        if done in (1, rounds):
            variables = literals[::2] + 3 * literals[1::2]
            _, first, class_of = np.unique(variables, return_index=True, return_inverse=True)
            if len(first) > WORTH * graph.variables:
                return None
    _, shown, clause_class = np.unique(clauses, return_index=True, return_inverse=True)
    literal_class = np.stack([2 * class_of, 2 * class_of + 1], 1).reshape(-1)
    kept = np.stack([2 * first, 2 * first + 1], 1).reshape(-1)
    classes, sources = len(first), len(shown)
    of_clause = _lists(
        graph.clause_starts, graph.literals, shown, literal_class, 2 * classes, device
    )
    of_literal = _lists(graph.literal_starts, graph.clauses, kept, clause_class, sources, device)
    small = Batch(of_clause, of_literal, torch.tensor([0, classes]).to(device))
    return Merged(small, torch.from_numpy(class_of).to(device))


def _mixed(words: Words) -> Words:
    """Scramble 64-bit words, one to one (the finaliser of splitmix64)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words ^= words >> np.uint64(30)
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return words


def _sums(values: Words, neighbours: NDArray[np.int32], starts: NDArray[np.int32]) -> Words:
    """Add up, modulo 2^64, the values of each node's neighbours: the same for every order."""
    total = np.zeros(neighbours.size + 1, dtype=np.uint64)
    np.cumsum(values[neighbours], out=total[1:])
    return total[starts[1:]] - total[starts[:-1]]


def _lists(
    starts: NDArray[np.int32],
    neighbours: NDArray[np.int32],
    rows: NDArray[np.int64],
    class_of: NDArray[np.int64],
    classes: int,
    device: torch.device | str,
) -> NeighbourLists:
    """Take some nodes' lists, with the classes of the neighbours."""
    lengths = np.diff(starts)[rows]
    begins = offsets(lengths)
    positions = np.arange(begins[-1]) + np.repeat(starts[:-1][rows] - begins[:-1], lengths)
    indptr, indices = begins.astype(np.int32), class_of[neighbours[positions]].astype(np.int32)
    return NeighbourLists(
        torch.from_numpy(indptr).to(device),
        torch.from_numpy(indices).to(device),
        classes,
        check=False,
    )

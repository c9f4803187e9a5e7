"""The literal-clause graph of a formula, as the network reads it.

Literal nodes: index 2(v - 1) + 1 stands for variable v, 2(v - 1) for its negation. A clause has an
edge to each of its literals; a literal that stands in a clause twice has one edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from papercuts.kernels.csr import NeighbourLists
from satguide.cnf import CNF, offsets


@dataclass(frozen=True, eq=False)
class Adjacency:
    """The edges of one formula, sorted both ways, int32.

    Clause c has the literals `literals[clause_starts[c]:clause_starts[c + 1]]`, literal l stands in
    the clauses `clauses[literal_starts[l]:literal_starts[l + 1]]`.
    """

    clause_starts: NDArray[np.int32]
    literals: NDArray[np.int32]
    literal_starts: NDArray[np.int32]
    clauses: NDArray[np.int32]

    @property
    def variables(self) -> int:
        """The number of variables."""
        return (self.literal_starts.size - 1) // 2


@dataclass(frozen=True, eq=False)
class Batch:
    """One or more formulas side by side, as one graph.

    `literals_of` lists the literals of every clause, `clauses_of` the clauses of every literal;
    `variable_starts` [formulas + 1] says where the variables of each formula begin.
    """

    literals_of: NeighbourLists
    clauses_of: NeighbourLists
    variable_starts: Tensor

    @property
    def formulas(self) -> int:
        """The number of formulas."""
        return self.variable_starts.numel() - 1

    @property
    def variables(self) -> int:
        """The number of variables of all formulas."""
        return self.clauses_of.rows // 2

    def formula_of_variable(self) -> Tensor:
        """Name the formula of each variable: [variables], ascending."""
        numbers = torch.arange(self.formulas, device=self.variable_starts.device)
        return torch.repeat_interleave(numbers, self.variable_starts.diff())


def adjacency(cnf: CNF) -> Adjacency:
    """Build the graph of a formula, without duplicate edges."""
    clauses, nodes = max(1, len(cnf)), max(1, 2 * cnf.variables)
    # An edge is one number, node * clauses + clause: sorting plain integers is five times faster
    # than sorting pairs, and takes half the memory. What can be is done in place.
    edges = 2 * np.abs(cnf.literals.astype(np.int64)) - 2 + (cnf.literals > 0)
    edges *= clauses
    edges += np.repeat(np.arange(len(cnf), dtype=np.int64), cnf.lengths())
    edges.sort()
    fresh = np.ones(edges.size, dtype=bool)
    np.not_equal(edges[1:], edges[:-1], out=fresh[1:])
    if not fresh.all():
        edges = edges[fresh]
    node = (edges // clauses).astype(np.int32)
    edges -= node.astype(np.int64) * clauses
    clause = edges.astype(np.int32)
    edges *= nodes  # the other way round: clause * nodes + node
    edges += node
    edges.sort()
    edges %= nodes
    return Adjacency(
        clause_starts=offsets(np.bincount(clause, minlength=len(cnf))).astype(np.int32),
        literals=edges.astype(np.int32),
        literal_starts=offsets(np.bincount(node, minlength=2 * cnf.variables)).astype(np.int32),
        clauses=clause,
    )


def batch(graphs: Sequence[Adjacency], device: torch.device | str = "cpu") -> Batch:
    """Put graphs side by side. Raises `ValueError` for none."""
    if not graphs:
        raise ValueError("a batch needs at least one formula")
    variables = offsets(np.array([graph.variables for graph in graphs]))
    clauses = offsets(np.array([graph.clause_starts.size - 1 for graph in graphs]))
    edges = offsets(np.array([graph.literals.size for graph in graphs]))
    of_clause = _joined([g.clause_starts for g in graphs], edges)
    of_literal = _joined([g.literal_starts for g in graphs], edges)
    literals = _shifted([g.literals for g in graphs], 2 * variables)
    clause_ids = _shifted([g.clauses for g in graphs], clauses)
    literals_of = NeighbourLists(
        _tensor(of_clause, device), _tensor(literals, device), 2 * int(variables[-1]), check=False
    )
    clauses_of = NeighbourLists(
        _tensor(of_literal, device), _tensor(clause_ids, device), int(clauses[-1]), check=False
    )
    # Each is the other's transpose, so neither has to be sorted again for the backward pass.
    literals_of.transposed, clauses_of.transposed = clauses_of, literals_of
    return Batch(literals_of, clauses_of, torch.from_numpy(variables).to(device))


def _joined(starts: list[NDArray[np.int32]], edges: NDArray[np.int64]) -> NDArray[np.int64]:
    parts = [own[:-1] + first for own, first in zip(starts, edges[:-1], strict=True)]
    return np.concatenate([*parts, edges[-1:]])


def _shifted(parts: list[NDArray[np.int32]], first: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([own + shift for own, shift in zip(parts, first[:-1], strict=True)])


def _tensor(values: NDArray[np.int64], device: torch.device | str) -> Tensor:
    kind = np.int32 if values.size == 0 or values.max() < 2**31 else np.int64
    return torch.from_numpy(values.astype(kind)).to(device)

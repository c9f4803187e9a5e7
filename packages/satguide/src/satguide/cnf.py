"""A formula in conjunctive normal form, held in two flat arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Literals = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class CNF:
    """A CNF over the variables 1 to `variables`.

    `literals` [L] int32 holds the clauses one after the other, in DIMACS signs (v or -v);
    clause i is `literals[starts[i]:starts[i + 1]]`, with `starts` [clauses + 1] int64. Clauses are
    kept as given: duplicate literals, tautologies and empty clauses are allowed. `name` says where
    the formula came from; `comments` are lines of the header, kept for whoever reads them.
    """

    variables: int
    literals: Literals
    starts: NDArray[np.int64]
    name: str = ""
    comments: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.starts.size == 0 or self.starts[0] != 0 or self.starts[-1] != self.literals.size:
            raise ValueError("starts must begin with 0 and end with the number of literals")
        if self.literals.size:
            low, high = int(self.literals.min()), int(self.literals.max())
            if max(-low, high) > self.variables or not self.literals.all():
                raise ValueError(f"literals must be from 1 to {self.variables}, or negative")

    @classmethod
    def from_clauses(
        cls, variables: int, clauses: Iterable[Sequence[int]], *, name: str = ""
    ) -> CNF:
        """Build a CNF from lists of DIMACS literals. Raises `ValueError` for one out of range."""
        rows = [list(clause) for clause in clauses]
        lengths = np.fromiter((len(row) for row in rows), dtype=np.int64, count=len(rows))
        flat = [literal for row in rows for literal in row]
        return cls(variables, np.array(flat, dtype=np.int32), offsets(lengths), name)

    def __len__(self) -> int:
        """Count the clauses."""
        return int(self.starts.size - 1)

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the clauses as lists of Python integers."""
        flat, starts = self.literals.tolist(), self.starts.tolist()
        for first, last in pairwise(starts):
            yield flat[first:last]

    def lengths(self) -> NDArray[np.int64]:
        """Count the literals of each clause: [clauses]."""
        return np.diff(self.starts)

    def occurrences(self) -> NDArray[np.int64]:
        """Count how often each variable occurs, in either sign: [variables]."""
        return np.bincount(np.abs(self.literals), minlength=self.variables + 1)[1:]

    def unsatisfied(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """Give the indices of the clauses that `values` ([variables] bool) leaves false."""
        values = np.asarray(values, dtype=bool)
        if values.shape != (self.variables,):
            raise ValueError(f"values must be [{self.variables}], not {list(values.shape)}")
        true = np.zeros(self.literals.size + 1, dtype=np.int64)
        np.cumsum(values[np.abs(self.literals) - 1] == (self.literals > 0), out=true[1:])
        return np.flatnonzero(true[self.starts[1:]] == true[self.starts[:-1]])


def offsets(lengths: NDArray[Any]) -> NDArray[np.int64]:
    """Turn lengths [k] into the offsets [k + 1] at which consecutive pieces begin."""
    starts = np.zeros(lengths.size + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts

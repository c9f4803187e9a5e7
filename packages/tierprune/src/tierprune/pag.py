"""Partial ancestral graphs (PAGs): what is known of a graph, edge mark by edge mark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class Mark(IntEnum):
    """What stands at one end of an edge."""

    NONE = 0  # there is no edge
    CIRCLE = 1  # either, as far as is known
    ARROW = 2
    TAIL = 3


_LEFT = {Mark.CIRCLE: "o", Mark.ARROW: "<", Mark.TAIL: "-"}
_RIGHT = {Mark.CIRCLE: "o", Mark.ARROW: ">", Mark.TAIL: "-"}


def arrow(left: Mark, right: Mark) -> str:
    """Write an edge with these marks at its two ends: `-->`, `<->`, `o->`, `o-o`, `---`, `<--`."""
    return f"{_LEFT[left]}-{_RIGHT[right]}"


class PAG:
    """A graph whose edges have a mark at each end; the edge of a pair is unique.

    `marks` [n, n] int8: `marks[i, j]` is the mark at j of the edge between i and j (`Mark.NONE` in
    both places where there is none). Mixed graphs with tails and arrowheads only are the special
    case without circles.
    """

    __slots__ = ("index", "marks", "names")

    def __init__(self, names: Sequence[str], marks: NDArray[np.int8] | None = None) -> None:
        self.names = tuple(names)
        self.index = {name: i for i, name in enumerate(self.names)}
        size = len(self.names)
        self.marks = np.zeros((size, size), dtype=np.int8) if marks is None else marks

    @classmethod
    def from_edges(cls, names: Sequence[str], edges: Iterable[tuple[str, str, Mark, Mark]]) -> PAG:
        """Make the graph of these edges (a, b, mark at a, mark at b).

        Raises `ValueError` for an edge from a variable to itself and a pair that comes twice,
        `KeyError` for an unknown name.
        """
        graph = cls(names)
        for a, b, at_a, at_b in edges:
            i, j = graph.index[a], graph.index[b]
            if i == j:
                raise ValueError(f"an edge from {a} to itself")
            if graph.marks[i, j]:
                raise ValueError(f"two edges between {a} and {b}")
            graph.marks[j, i], graph.marks[i, j] = at_a, at_b
        return graph

    def edges(self) -> Iterator[tuple[int, int, Mark, Mark]]:
        """Yield each edge once: (i, j, mark at i, mark at j), i < j."""
        for i, j in np.argwhere(np.triu(self.marks, 1)).tolist():
            yield i, j, Mark(int(self.marks[j, i])), Mark(int(self.marks[i, j]))

    def __len__(self) -> int:
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PAG):
            return NotImplemented
        return self.names == other.names and bool((self.marks == other.marks).all())

    __hash__ = None  # type: ignore[assignment]

"""What tests of unlimited data would say: m-separation in a graph that is given."""

from __future__ import annotations

import numpy as np

from tierprune.admg import ADMG
from tierprune.bits import mask_of
from tierprune.independence.base import Ahead, Floats, Independence, Ints
from tierprune.separation import m_connected

_REMEMBERED = 1_000_000


class Oracle(Independence):
    """m-separation in an ADMG, as p-values of 1 (separated) and 0 (connected).

    What a set connects to a variable is worked out once for all others.
    """

    name = "oracle"
    ahead = Ahead(1, 1, 1)

    def __init__(self, graph: ADMG) -> None:
        super().__init__(graph.names, 0.5)
        self.graph = graph
        self._reached: dict[tuple[int, int], int] = {}

    def p_values(self, left: Ints, right: Ints, given: Ints) -> Floats:
        """Give 1 where the graph separates left[t] from right[t] by given[t], else 0."""
        answers = np.empty(len(left))
        rows = zip(left.tolist(), right.tolist(), given.tolist(), strict=True)
        for place, (i, j, members) in enumerate(rows):
            answers[place] = not self._connected(j, mask_of(members)) >> i & 1
        return answers

    def forget(self) -> None:
        """See `Independence.forget`."""
        self._reached.clear()

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_reached": {}}

    def _connected(self, start: int, given: int) -> int:
        key = start, given
        found = self._reached.get(key)
        if found is None:
            if len(self._reached) >= _REMEMBERED:
                self._reached.clear()
            found = self._reached[key] = m_connected(self.graph, 1 << start, given)
        return found

"""A set known by a membership test alone, as a potential: 0 inside, +inf outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papercuts.errors import DataError
from zoprox.bounds import Box
from zoprox.lineprotocol import place
from zoprox.potential import Points, Values


class Inside:
    """The potential of the uniform density on a set: `test` says 1 or 0 for every point.

    Points outside `box`, where one is given, are outside the set, and the test is not asked about
    them.
    """

    def __init__(self, test: Callable[[Points], NDArray[Any]], box: Box | None = None) -> None:
        self._test = test
        self._box = box

    def __call__(self, points: Points) -> Values:
        """Give 0 or +inf for every row of `points` [n, dim]: [n].

        Raises `DataError` for an answer that is neither 1 nor 0 (true or false).
        """
        if self._box is None:
            return self._asked(points)
        values = np.full(len(points), np.inf)
        within = self._box.holds(points)
        if within.any():
            values[within] = self._asked(points[within])
        return values

    def _asked(self, points: Points) -> Values:
        answers = np.asarray(self._test(points))
        inside = answers == 1
        wrong = ~(inside | (answers == 0))
        if wrong.any():
            first = int(np.argmax(wrong))
            raise DataError(
                f"the target answered {answers[first]} for the point {place(points[first])}",
                expected="1 or 0, true or false",
            )
        return np.where(inside, 0.0, np.inf)

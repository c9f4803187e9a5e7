"""What is sampled: a potential f, known by its values alone.

The density is proportional to exp(-f(x)). f may be +inf where a point is not allowed; -inf and NaN
are faults of the target. Everything that can be asked for values looks like `Potential`, and every
sampler counts what it asks through `Counted`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]  # [points, dim]
Values = NDArray[np.float64]  # [points]


class Potential(Protocol):
    """A function of many points at once."""

    def __call__(self, points: Points, /) -> Values:
        """Give f of every row of `points` [n, dim]: [n], +inf where it is not allowed.

        Raises `papercuts.errors.DataError` for a target that answers otherwise (NaN only, -inf, a
        wrong number of values), and `TryLaterError` for one that does not answer in time.
        """


class Counted:
    """A potential that counts the points it was asked for, and those that it answered +inf for."""

    def __init__(self, potential: Potential | Callable[[Points], Values]) -> None:
        self._potential = potential
        self.evaluations = 0
        self.outside = 0

    def __call__(self, points: Points) -> Values:
        """Give f of every row, and count them."""
        values = self._potential(points)
        self.evaluations += len(points)
        self.outside += int(np.count_nonzero(np.isposinf(values)))
        return values

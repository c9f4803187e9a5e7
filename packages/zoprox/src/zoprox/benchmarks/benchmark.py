"""What a benchmark target is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zoprox.potential import Points, Values


@dataclass(frozen=True)
class Benchmark:
    """A density in `dim` coordinates that is known exactly.

    `potential` gives f, up to a constant, +inf outside the support; `draw` (generator, number)
    gives exact draws [number, dim]; `modes` gives, for each point, how much it belongs to each
    mode [points, modes], whose mean under the density is `weights` [modes]. `inside` is the
    membership test of a benchmark that is uniform on a set of volume `volume`, else None.
    """

    name: str
    dim: int
    potential: Callable[[Points], Values]
    draw: Callable[[np.random.Generator, int], Points]
    modes: Callable[[Points], NDArray[np.float64]]
    weights: Values
    inside: Callable[[Points], NDArray[np.bool_]] | None = None
    volume: float | None = None

    def mode_weights(self, points: Points) -> Values:
        """Give the share of the points [n, dim] in each mode: [modes], to compare with weights."""
        shares: Values = self.modes(points).mean(axis=0)
        return shares

"""What each test of conditional independence can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Ahead(NamedTuple):
    """How many sets of a pair to test at once: `first`, then `factor` times more, up to `most`.

    A search stops at the first independence, so what was tested beyond it was in vain; it pays
    where many tests together cost little more than one.
    """

    first: int
    factor: int
    most: int


class Independence(ABC):
    """A test of i _||_ j | S over variables 0..n-1, with p-values and a level `alpha`.

    Independent is what has p > alpha, as in causal-learn. An object can be pickled.
    """

    name: str
    ahead = Ahead(1, 2, 64)

    def __init__(self, names: Sequence[str], alpha: float) -> None:
        self.names = tuple(names)
        self.alpha = alpha

    @abstractmethod
    def p_values(self, left: Ints, right: Ints, given: Ints) -> Floats:
        """Give the p-value of left[t] _||_ right[t] | given[t] for each test t.

        `left` and `right` [tests], `given` [tests, size]: all sets of one call have one size.
        """

    def decide(self, left: Ints, right: Ints, given: Ints) -> NDArray[np.bool_]:
        """Say which of the tests, as in `p_values`, find independence: p > alpha."""
        found: NDArray[np.bool_] = self.p_values(left, right, given) > self.alpha
        return found

    def expect(self, around: Mapping[int, int], size: int) -> None:  # noqa: B027
        """Hear which tests come next: of v and a member of the set `around[v]`, given others of it.

        The sets given have `size` members, or fewer. Answers do not depend on this, speed may.
        """

    def forget(self) -> None:  # noqa: B027
        """Drop what is remembered of earlier answers, so that the next search can be timed."""

    def p_value(self, i: int, j: int, given: Iterable[int] = ()) -> float:
        """Give the p-value of i _||_ j | given."""
        return float(self.p_values_of(i, j, [tuple(given)])[0])

    def p_values_of(self, i: int, j: int, sets: Sequence[Sequence[int]]) -> Floats:
        """Give the p-values of i _||_ j | S for each S of `sets`, which have one size."""
        given = np.array(sets, dtype=np.int64).reshape(len(sets), -1)
        ends = np.ones(len(sets), dtype=np.int64)
        return self.p_values(i * ends, j * ends, given)

    def independent(self, i: int, j: int, given: Iterable[int] = ()) -> bool:
        """Say whether i _||_ j | given at the level `alpha`."""
        return self.p_value(i, j, given) > self.alpha

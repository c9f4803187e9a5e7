"""Fisher's z: partial correlations of numbers, many at a time from one correlation matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc

from papercuts.errors import DataError
from tierprune.independence.base import Ahead, Floats, Independence, Ints
from tierprune.independence.scaling import centred

_TOGETHER = 4096  # tests whose matrices fit a core's cache
_SINGULAR = 1e-10


class FisherZ(Independence):
    """Partial correlation of two columns given others, tested by Fisher's z (Fisher 1924).

    p = 2 (1 - Phi(sqrt(rows - |S| - 3) |artanh r|)) of the partial correlation r. Assumes linear
    relations with Gaussian noise. `data` is [rows, columns]; only its correlations are kept.
    Raises `DataError`, naming columns, where some are linear functions of others, and as `centred`.
    """

    name = "fisherz"
    ahead = Ahead(32, 4, 2048)

    def __init__(
        self,
        data: NDArray[np.float64],
        *,
        alpha: float = 0.01,
        names: Sequence[str] | None = None,
        source: str | None = None,
    ) -> None:
        super().__init__(names or [str(i) for i in range(data.shape[1])], alpha)
        self.rows, self._source = data.shape[0], source
        scaled = centred(data, self.names, source)
        self.correlation = scaled.T @ scaled
        np.clip(self.correlation, -1, 1, out=self.correlation)
        np.fill_diagonal(self.correlation, 1)
        self._check_collinear()

    def _check_collinear(self) -> None:
        if self.rows > len(self.names):
            values, vectors = np.linalg.eigh(self.correlation)
            if values[0] < _SINGULAR:
                self._refuse(np.flatnonzero(np.abs(vectors[:, 0]) > 1e-6).tolist())
        else:
            same = np.abs(np.triu(self.correlation, 1)) > 1 - _SINGULAR
            if same.any():
                self._refuse(np.argwhere(same)[0].tolist())

    def _refuse(self, members: Sequence[int]) -> None:
        some = ", ".join(repr(self.names[i]) for i in list(members)[:6])
        raise DataError(
            f"columns {some}{', ...' if len(members) > 6 else ''} are linear functions of one "
            "another",
            path=self._source,
            expected="columns of which none follows from others",
        )

    def p_values(self, left: Ints, right: Ints, given: Ints) -> Floats:
        """See `Independence.p_values`. Raises `DataError` for a set as large as the rows."""
        freedom = self.rows - given.shape[1] - 3
        if freedom <= 0:
            raise DataError(
                f"{self.rows} rows are too few to condition on {given.shape[1]} variables",
                path=self._source,
                expected="more rows, or a smaller --max-cond",
            )
        r = np.clip(self.partial(left, right, given), -1 + 2**-52, 1 - 2**-52)
        answers: Floats = erfc(np.sqrt(freedom / 2) * np.abs(np.arctanh(r)))
        return answers

    def partial(self, left: Ints, right: Ints, given: Ints) -> Floats:
        """Give the partial correlations of left[t] and right[t] given the set given[t]."""
        size = given.shape[1]
        if size == 0:
            plain: Floats = self.correlation[left, right]
            return plain
        if size == 1:
            return self._partial_one(left, right, given[:, 0])
        answers = np.empty(len(left))
        for start in range(0, len(left), _TOGETHER):
            part = slice(start, start + _TOGETHER)
            places = np.column_stack([given[part], left[part], right[part]]).T
            answers[part] = self._eliminated(places, size)
        return answers

    def _partial_one(self, left: Ints, right: Ints, given: Ints) -> Floats:
        r = self.correlation
        a, b = r[left, given], r[right, given]
        least = 1 - np.maximum(a * a, b * b)
        if (least < _SINGULAR).any():
            t = int(np.argmin(least))
            self._refuse(sorted({int(left[t]), int(right[t]), int(given[t])}))
        answer: Floats = (r[left, right] - a * b) / np.sqrt((1 - a * a) * (1 - b * b))
        return answer

    def _eliminated(self, places: Ints, size: int) -> Floats:
        """Eliminate the first `size` of the variables `places` [size + 2, tests] of each test.

        What is left of each matrix is the covariance of the last two given the others (a Schur
        complement). All tests go through each step together.
        """
        # [row, column, test], the lower triangle only: the upper is never read.
        wide = len(places)
        rows = [self.correlation[places[i][None], places[: i + 1]] for i in range(wide)]
        for pivot in range(size):
            below = [rows[i][pivot] for i in range(pivot, wide)]
            if (below[0] < _SINGULAR).any():
                test = int(np.argmin(below[0]))
                self._refuse(sorted(places[:, test].tolist()))
            for i in range(pivot + 1, wide):
                factor = below[i - pivot] / below[0]
                for j in range(pivot + 1, i + 1):
                    rows[i][j] -= factor * below[j - pivot]
        last, before = rows[-1], rows[-2]
        left = np.minimum(last[-1], before[-1])
        if (left < _SINGULAR).any():
            self._refuse(sorted(places[:, int(np.argmin(left))].tolist()))
        answer: Floats = last[-2] / np.sqrt(last[-1] * before[-1])
        return answer

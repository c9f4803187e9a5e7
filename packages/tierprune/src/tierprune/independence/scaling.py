"""Columns brought to one scale: tests of independence do not depend on units."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from papercuts.errors import DataError
from tierprune.independence.base import Floats


def centred(data: NDArray[np.float64], names: Sequence[str], source: str | None = None) -> Floats:
    """Give the columns of `data` [rows, columns] with mean 0 and length 1.

    Each is first brought near 1 by powers of two, which is exact, so that no sum or square leaves
    the range of numbers. Raises `DataError` for a column that does not vary, or does so by too
    little beside its size to be told from rounding.
    """
    scaled = np.empty(data.shape, order="F")
    for place, name in enumerate(names):
        column = _near_one(data[:, place])
        column = _near_one(column - column[0])
        column = column - column.mean()
        length = float(np.sqrt(column @ column))
        if not (np.isfinite(length) and length > 0):
            raise DataError(
                f"column {name!r} cannot be told from a constant",
                path=source,
                expected="finite numbers that vary",
            )
        scaled[:, place] = column / length
    return scaled


def _near_one(column: Floats) -> Floats:
    exponent = int(np.frexp(np.abs(column).max())[1])
    # In two steps: one power of two may lie beyond the range.
    half = -exponent // 2
    found: Floats = np.ldexp(np.ldexp(column, half), -exponent - half)
    return found

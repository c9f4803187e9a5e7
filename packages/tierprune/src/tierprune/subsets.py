"""Blocks of the subsets of one size, in lexicographic order, as rows of an array."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations, islice
from math import comb

import numpy as np
from numpy.typing import NDArray

_MOST = 2**62


def subsets(size: int, chosen: int, start: int, count: int) -> NDArray[np.int64]:
    """Give rows start..start+count of the subsets of 0..size-1 with `chosen` members.

    Each row [chosen] ascends, rows come in lexicographic order, as from `itertools.combinations`;
    fewer than `count` where they end. Rows are found from their numbers (Knuth, The Art of
    Computer Programming 4A, 7.2.1.3), so a late block costs what an early one does.
    """
    total = comb(size, chosen)
    count = max(0, min(count, total - start))
    if total > _MOST:  # never gets far: the numbers need not fit
        rows = list(islice(combinations(range(size), chosen), start, start + count))
        return np.array(rows, dtype=np.int64).reshape(count, chosen)
    left = np.arange(start, start + count, dtype=np.int64)
    found = np.empty((count, chosen), dtype=np.int64)
    beyond = np.full(count, size, dtype=np.int64)  # members of 0..size-1 not yet passed
    for place in range(chosen):
        table = _binomials(size, chosen - place)
        # The subsets of `beyond` members that start at or after x number table[size - x].
        rest = table[beyond] - left
        after = np.searchsorted(table, rest, side="left") - 1
        found[:, place] = size - 1 - after
        left = table[after + 1] - rest
        beyond = after
    return found


@lru_cache(maxsize=4096)
def _binomials(size: int, chosen: int) -> NDArray[np.int64]:
    return np.array([comb(n, chosen) for n in range(size + 1)], dtype=np.int64)

import itertools
import math

import pytest

from tierprune.subsets import subsets


@pytest.mark.parametrize("size", range(9))
def test_rows_are_those_of_itertools_from_any_start(size: int) -> None:
    for chosen in range(size + 1):
        right = list(itertools.combinations(range(size), chosen))
        for start in (0, 1, 5, len(right) - 1, len(right)):
            found = subsets(size, chosen, start, 7)
            assert [tuple(row) for row in found.tolist()] == right[start : start + 7]


def test_the_last_rows_of_a_long_list() -> None:
    total = math.comb(60, 12)
    assert subsets(60, 12, total - 1, 9).tolist() == [list(range(48, 60))]


def test_lists_with_more_rows_than_an_integer_counts_begin_right() -> None:
    right = list(itertools.islice(itertools.combinations(range(200), 30), 3, 6))
    assert [tuple(row) for row in subsets(200, 30, 3, 3).tolist()] == right

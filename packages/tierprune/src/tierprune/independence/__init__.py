"""Tests of conditional independence, all behind one small class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierprune.dataset import Table
    from tierprune.independence.base import Independence

TestName = Literal["fisherz", "gsq", "chisq", "kci"]


def make_test(
    name: TestName, table: Table, names: Sequence[str], *, alpha: float = 0.01
) -> Independence:
    """Make the test of this name on columns of a table; variable i is `names[i]`.

    Raises `DataError` for columns that the test cannot use (see its class), `MissingError` where
    kci's extra is not installed.
    """
    if name == "fisherz":
        from tierprune.independence.fisherz import FisherZ

        return FisherZ(table.numbers(names), alpha=alpha, names=names, source=table.source)
    if name == "kci":
        from tierprune.independence.kernel import KCI

        return KCI(table.numbers(names), alpha=alpha, names=names, source=table.source)
    from tierprune.independence.contingency import Contingency

    return Contingency(table.coded(names), alpha=alpha, statistic=name, source=table.source)

"""G² and Pearson's chi-squared: tests of conditional independence of categories, by counting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import log, prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from papercuts.errors import DataError
from tierprune.bits import mask_of
from tierprune.dataset import Coded
from tierprune.independence.base import Ahead, Floats, Independence, Ints
from tierprune.independence.tables import Counts, Tables

_DENSE_CELLS = 1 << 17
_CELLS_TOGETHER = 1 << 20

Statistic = Literal["gsq", "chisq"]


class Contingency(Independence):
    """Independence of two categories in each stratum of others, summed over the strata.

    The statistic is G² = 2 sum O ln(O / E) (`gsq`) or X² = sum (O - E)² / E (`chisq`). Degrees of
    freedom, as in causal-learn: the sum over strata with data of (r - 1)(c - 1), where r and c
    count the values of the two variables that occur in the stratum; p = 1 where there are none.
    Raises `DataError` for a column with fewer than 5 rows a category.
    """

    ahead = Ahead(2, 2, 256)

    def __init__(
        self,
        columns: Sequence[Coded],
        *,
        alpha: float = 0.01,
        statistic: Statistic = "gsq",
        source: str | None = None,
    ) -> None:
        super().__init__([column.name for column in columns], alpha)
        self.name = statistic
        self.cards = [len(column.levels) for column in columns]
        codes = np.array([column.codes for column in columns], dtype=np.uint8)
        for name, card in zip(self.names, self.cards, strict=True):
            if codes.shape[1] < 5 * card:
                raise DataError(
                    f"column {name!r} has {card} categories in {codes.shape[1]} rows",
                    path=source,
                    expected="at least 5 rows for each",
                )
        self._cards = np.array(self.cards, dtype=np.int64)
        self._logs = np.log(self._cards)
        self._tables = Tables(codes, self.cards)

    def expect(self, around: Mapping[int, int], size: int) -> None:
        """See `Independence.expect`."""
        self._tables.expect(around, size + 1)

    def forget(self) -> None:
        """See `Independence.forget`."""
        self._tables.forget()

    def p_values(self, left: Ints, right: Ints, given: Ints) -> Floats:
        """See `Independence.p_values`."""
        value, freedom = self._statistics(left, right, given, exact=True)
        return _tail(value, freedom)

    def decide(self, left: Ints, right: Ints, given: Ints) -> NDArray[np.bool_]:
        """See `Independence.decide`.

        Most tests of a search are dependent whatever the degrees of freedom that empty cells take
        away: these are counted for the others only.
        """
        value, freedom = self._statistics(left, right, given, exact=False)
        found: NDArray[np.bool_] = _tail(value, freedom) > self.alpha
        open_ = np.flatnonzero(found)
        if len(open_):
            found[open_] = self.p_values(left[open_], right[open_], given[open_]) > self.alpha
        return found

    def _statistics(
        self, left: Ints, right: Ints, given: Ints, *, exact: bool
    ) -> tuple[Floats, Floats]:
        """Give the statistics and the degrees of freedom, or an upper bound where not exact."""
        value, freedom = np.empty(len(left)), np.empty(len(left))
        logs = self._logs
        small = logs[left] + logs[right] + logs[given].sum(axis=1) <= log(_DENSE_CELLS)
        direct = np.flatnonzero(~small) if self.name == "gsq" else np.arange(len(left))
        if self.name == "gsq" and small.any():
            value[small], freedom[small] = self._from_entropies(
                left[small], right[small], given[small], exact
            )
        groups: dict[tuple[int, int], list[int]] = {}
        for test in direct.tolist():
            groups.setdefault((self.cards[left[test]], self.cards[right[test]]), []).append(test)
        for shape, tests in groups.items():
            for some, tables in self._portions(tests, left, right, given):
                value[some], freedom[some] = _sums(tables, shape, self.name)
        return value, freedom

    def _portions(
        self, tests: list[int], left: Ints, right: Ints, given: Ints
    ) -> Iterator[tuple[list[int], list[NDArray[np.int32]]]]:
        """Divide tests, so that their tables take little memory and time together."""
        some: list[int] = []
        tables: list[NDArray[np.int32]] = []
        cells = 0
        for t in tests:
            tables.append(self._table(int(left[t]), int(right[t]), [int(u) for u in given[t]]))
            some.append(t)
            cells += len(tables[-1])
            if cells > _CELLS_TOGETHER:
                yield some, tables
                some, tables, cells = [], [], 0
        if some:
            yield some, tables

    def _from_entropies(
        self, left: Ints, right: Ints, given: Ints, exact: bool
    ) -> tuple[Floats, Floats]:
        """Give G² and the degrees of freedom from sums over four tables, which tests share.

        G² / 2 is the sum of O ln O over the cells of (S, i, j), less those of (S, i) and (S, j),
        plus that of S.
        """
        sums, filled = self._tables.entropies(left, right, given)
        cards = self._cards
        value = 2 * (sums[0] - sums[1] - sums[2] + sums[3])
        # Exact where in each stratum all values of one of the two occur, else an upper bound.
        freedom = np.minimum(
            (cards[left] - 1) * (filled[2] - filled[3]),
            (cards[right] - 1) * (filled[1] - filled[3]),
        ).astype(np.float64)
        if exact:
            sparse = (filled[1] != filled[3] * cards[left]) & (
                filled[2] != filled[3] * cards[right]
            )
            for t in np.flatnonzero(sparse).tolist():
                mask = mask_of(given[t].tolist())
                i, j = int(left[t]), int(right[t])
                freedom[t] = self._tables.spare_values(mask, i, j) @ self._tables.spare_values(
                    mask, j, j
                )
        return value, freedom

    def _table(self, i: int, j: int, members: list[int]) -> NDArray[np.int32]:
        """Count the table [cells of the strata * values of i * values of j], j fastest."""
        if not members:
            mask = 1 << i | 1 << j
            table = self._tables.of(mask, j)
            return table if i < j else table.reshape(self.cards[j], -1).T.reshape(-1)
        mask = mask_of(members) | 1 << i | 1 << j
        shape = [self.cards[u] for u in sorted([*members, i, j])]
        if prod(shape) > _DENSE_CELLS:
            return self._tables.sparse(mask, (i, j))
        table = self._tables.of(mask, j).reshape(shape)
        before_i = sum(1 for u in members if u < i) + (j < i)
        before_j = sum(1 for u in members if u < j) + (i < j)
        strata = [axis for axis in range(len(shape)) if axis not in (before_i, before_j)]
        return table.transpose([*strata, before_i, before_j]).reshape(-1)


def _sums(
    tables: Sequence[Counts], shape: tuple[int, int], statistic: str
) -> tuple[Floats, Floats]:
    """Give the statistic and the degrees of freedom of each table [strata * r * c]."""
    high, wide = shape
    sizes = np.array([len(table) // (high * wide) for table in tables])
    observed = np.concatenate(tables).reshape(-1, high, wide).astype(np.float64)
    owner = np.repeat(np.arange(len(tables)), sizes)
    rows, columns = observed.sum(axis=2), observed.sum(axis=1)
    totals = rows.sum(axis=1)
    if (totals == 0).any():
        keep = totals > 0
        observed, rows, columns = observed[keep], rows[keep], columns[keep]
        totals, owner = totals[keep], owner[keep]
    expected = rows[:, :, None] * columns[:, None, :] / totals[:, None, None]
    if statistic == "gsq":
        # Where O is 0 so is O ln(O / E), and ln(1) is.
        ratio = np.where(observed > 0, observed, 1.0) / np.where(observed > 0, expected, 1.0)
        terms = 2 * observed * np.log(ratio)
    else:
        terms = (observed - expected) ** 2 / np.where(expected > 0, expected, 1.0)
    freedom = ((rows > 0).sum(axis=1) - 1) * ((columns > 0).sum(axis=1) - 1)
    value = np.bincount(owner, terms.sum(axis=(1, 2)), len(tables))
    degrees = np.bincount(owner, freedom.astype(np.float64), len(tables))
    return value.astype(np.float64), degrees.astype(np.float64)


def _tail(value: Floats, freedom: Floats) -> Floats:
    """Give the chance of a larger statistic; 1 without degrees of freedom."""
    p = chdtrc(np.maximum(freedom, 1.0), np.maximum(value, 0.0))
    answer: Floats = np.where(freedom == 0, 1.0, p)
    return answer

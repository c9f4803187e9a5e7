"""Evaluating an estimand on weighted rows of discrete data, without a table of all combinations.

A formula is evaluated from its root for the assignments that are asked for: a sum goes over those
values of its variables that the data hold and whose terms are not zero. So the work follows the
number of different rows, not the product of the numbers of levels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papercuts.errors import DataError
from tierprune.bits import bits, lowest
from tierprune.expression import Estimand, Expression, Probability, Product, Quotient, Sum

MAX_ROWS = 4_000_000  # assignments held at once
Codes = NDArray[np.int64]
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Cell:
    """A combination of values, by name, and how many rows of the data have it."""

    values: dict[str, str]
    rows: float

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.values.items())


class Assignments:
    """Assignments of values: for each variable (by its bit) a column of codes [size]."""

    def __init__(self, columns: Mapping[int, Codes], size: int) -> None:
        self.columns = dict(columns)
        self.size = size

    @property
    def known(self) -> int:
        """The set of variables that have a value."""
        return sum(1 << i for i in self.columns)

    def take(self, index: NDArray[Any], only: int = -1) -> Assignments:
        """Give some of the assignments, of the variables `only`."""
        kept = {i: column[index] for i, column in self.columns.items() if only >> i & 1}
        return Assignments(kept, len(np.arange(self.size)[index]))


@dataclass
class _Table:
    keys: NDArray[Any]  # of each cell, sorted
    sums: Values  # [cells, weightings]
    members: NDArray[np.intp]  # of each cell, a row of the data


class Evaluator:
    """Evaluates one estimand on rows of data.

    `columns` holds codes [rows] of each variable of the formula, by bit; `levels` the texts of its
    values. `weights` [rows, weightings] are counts or probabilities: every formula is evaluated
    for all weightings at once, of which the first is the data and others resamples of it.
    `smooth` is added to the weight of every cell of each probability.

    An undefined value (a probability given a cell without rows, 0 divided by 0) is NaN, unless it
    is multiplied by 0. `thinnest` is the cell with the fewest rows that a probability was
    conditioned on, or that a quotient has below its line.
    """

    def __init__(
        self,
        estimand: Estimand,
        columns: Mapping[int, Codes],
        levels: Mapping[int, Sequence[str]],
        weights: Values,
        smooth: float = 0.0,
    ) -> None:
        self.estimand = estimand
        self.columns, self.levels, self.weights = columns, levels, weights
        self.smooth = smooth
        self.peak = 1
        self.thinnest: Cell | None = None
        self._empty: list[Cell] = []
        self._tables: dict[int, _Table] = {}

    def evaluate(self, wanted: Assignments) -> tuple[Values, Cell | None]:
        """Give the values [assignments, weightings], and the empty cell that made one undefined.

        Raises `DataError` where a sum has more than `MAX_ROWS` terms.
        """
        values, blame = self._node(self.estimand.root, wanted)
        faults = blame[np.isnan(values[:, 0])]
        return values, self._empty[faults[0]] if len(faults) else None

    def _node(self, node: Expression, rows: Assignments) -> tuple[Values, Codes]:
        match node:
            case Probability():
                return self._probability(node, rows)
            case Quotient():
                return self._shared(node.free, rows, lambda few: self._quotient(node, few))
            case Product():
                return self._sum(0, node.factors, rows)
            case Sum():
                body = node.body
                factors = body.factors if isinstance(body, Product) else (body,)
                return self._shared(
                    node.free, rows, lambda few: self._sum(node.bound, factors, few)
                )
        raise TypeError(type(node).__name__)

    def _shared(self, free: int, rows: Assignments, evaluate: Any) -> tuple[Values, Codes]:
        """Evaluate once for assignments that agree on `free`."""
        keys = self._keys(free, rows.columns, rows.size)
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        values, blame = evaluate(rows.take(first, free))
        return values[inverse], blame[inverse]

    def _quotient(self, node: Quotient, rows: Assignments) -> tuple[Values, Codes]:
        above, blame = self._node(node.above, rows)
        below, blame_below = self._node(node.below, rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            values = above / below
        if node.below.free and rows.size:
            # What it is divided by is the weight of a cell too, if not that of rows alone.
            self._thin(node.below.free, rows)
        blame = np.where(blame < 0, blame_below, blame)
        for at in np.flatnonzero(np.isnan(values[:, 0]) & (blame < 0)):
            blame[at] = self._fault(node.below.free, rows, int(at))
        return values, blame

    def _probability(self, node: Probability, rows: Assignments) -> tuple[Values, Codes]:
        above = self._sums(node.free, rows)
        below = self._sums(node.given, rows)
        blame = np.full(rows.size, -1, dtype=np.int64)
        if node.given and rows.size:
            seen = below[:, 0]
            for empty in np.flatnonzero(seen == 0) if not self.smooth else ():
                blame[empty] = self._fault(node.given, rows, int(empty))
            self._thin(node.given, rows)
        if self.smooth:
            cells = np.prod([float(len(self.levels[i])) for i in bits(node.variables)])
            return (above + self.smooth) / (below + self.smooth * cells), blame
        with np.errstate(divide="ignore", invalid="ignore"):
            return above / below, blame

    def _thin(self, given: int, rows: Assignments) -> None:
        """Remember the thinnest of these cells, if it is thinner than any before."""
        seen = self._sums(given, rows)[:, 0]
        at = int(np.argmin(np.where((seen > 0) | (self.smooth > 0), seen, np.inf)))
        thinner = self.thinnest is None or seen[at] < self.thinnest.rows
        if thinner and (seen[at] > 0 or self.smooth):
            self.thinnest = self._cell(given, rows, at, float(seen[at]))

    def _sum(
        self, bound: int, factors: Sequence[Expression], rows: Assignments
    ) -> tuple[Values, Codes]:
        """Sum the product of `factors` over `bound`, for each of `rows`."""
        size, width = rows.size, self.weights.shape[1]
        origin = np.arange(size)
        values = np.ones((size, width))
        blame = np.full(size, -1, dtype=np.int64)
        faults = np.full(size, -1, dtype=np.int64)  # of each of `rows`, a fault that ends its sum
        pending, known = list(factors), rows.known
        while pending:
            ready = next((f for f in pending if not f.free & ~known), None)
            if ready is not None:
                pending.remove(ready)
                more, more_blame = self._node(ready, rows)
                # Nothing times what is undefined is nothing: that term is not asked for.
                values = np.where((values == 0) | (more == 0), 0.0, values * more)
                blame = np.where(blame < 0, more_blame, blame)
                keep = (values != 0).any(axis=1)
                if not keep.all():
                    rows, origin = rows.take(keep), origin[keep]
                    values, blame = values[keep], blame[keep]
                continue
            source = next(
                (f for f in pending if isinstance(f, Probability) and not f.given & ~known), None
            )
            if source is None or self.smooth:
                index, rows = self._by_level(lowest(bound & ~known), rows)
            else:
                lost = self._empty_given(source, rows)
                for at in np.flatnonzero(lost & np.isfinite(values[:, 0])):
                    faults[origin[at]] = self._fault(source.given, rows, int(at))
                index, rows = self._by_data(source, rows)
            origin, values, blame = origin[index], values[index], blame[index]
            known = rows.known
        return _totals(size, origin, values, blame, faults)

    def _empty_given(self, source: Probability, rows: Assignments) -> NDArray[np.bool_]:
        return np.asarray(self._sums(source.given, rows)[:, 0] == 0)

    def _by_level(self, variable: int, rows: Assignments) -> tuple[NDArray[np.intp], Assignments]:
        """Give each assignment every value of one more variable."""
        count = len(self.levels[variable])
        self._check(rows.size * count, rows.known | 1 << variable)
        index = np.repeat(np.arange(rows.size), count)
        more = rows.take(index)
        more.columns[variable] = np.tile(np.arange(count, dtype=np.int64), rows.size)
        return index, more

    def _by_data(
        self, source: Probability, rows: Assignments
    ) -> tuple[NDArray[np.intp], Assignments]:
        """Give each assignment the values that the data have beside it of `source`'s variables."""
        known, table = source.free & rows.known, self._table(source.free)
        cells = {i: self.columns[i][table.members] for i in bits(source.free)}
        here = self._keys(known, cells, len(table.members))
        order = np.argsort(here, kind="stable")
        wanted = self._keys(known, rows.columns, rows.size)
        low = np.searchsorted(here[order], wanted, side="left")
        count = np.searchsorted(here[order], wanted, side="right") - low
        total = int(count.sum())
        self._check(total, rows.known | source.free)
        index = np.repeat(np.arange(rows.size), count)
        # The k-th partner of an assignment is cell low + k of those sorted by what is known.
        place = np.arange(total) - np.repeat(np.cumsum(count) - count, count) + low[index]
        more = rows.take(index)
        for i in bits(source.free & ~known):
            more.columns[i] = cells[i][order[place]]
        return index, more

    def _check(self, size: int, variables: int) -> None:
        self.peak = max(self.peak, size)
        if size > MAX_ROWS:
            names = self.estimand.named(variables)
            listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
            raise DataError(
                f"the formula sums over {size} combinations of {listed}, which is too many "
                f"(at most {MAX_ROWS} expected)"
            )

    def _sums(self, mask: int, rows: Assignments) -> Values:
        """Give the weight [assignments, weightings] of the rows that agree on `mask`."""
        if not mask:
            return np.broadcast_to(self.weights.sum(axis=0), (rows.size, self.weights.shape[1]))
        table = self._table(mask)
        keys = self._keys(mask, rows.columns, rows.size)
        place = np.minimum(np.searchsorted(table.keys, keys), len(table.keys) - 1)
        return np.where((table.keys[place] == keys)[:, None], table.sums[place], 0.0)

    def _table(self, mask: int) -> _Table:
        table = self._tables.get(mask)
        if table is None:
            keys = self._keys(mask, self.columns, len(self.weights))
            order = np.argsort(keys, kind="stable")
            ordered = keys[order]
            starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
            sums = np.add.reduceat(self.weights[order], starts, axis=0)
            table = self._tables[mask] = _Table(ordered[starts], sums, order[starts])
        return table

    def _keys(self, mask: int, columns: Mapping[int, Codes], size: int) -> NDArray[Any]:
        """Give one key for each assignment to `mask`: a number, or text where it would overflow."""
        members = list(bits(mask))
        combinations = 1
        for i in members:
            combinations *= len(self.levels[i])
        if combinations < 2**62:
            keys = np.zeros(size, dtype=np.int64)
            for i in members:
                keys = keys * len(self.levels[i]) + columns[i]
            return keys
        packed = np.empty((size, len(members), 2), dtype=np.uint8)
        for at, i in enumerate(members):
            # numpy drops zero bytes at the end of a text, so none is written.
            packed[:, at, 0], packed[:, at, 1] = columns[i] // 255 + 1, columns[i] % 255 + 1
        return packed.reshape(size, -1).view(f"S{2 * len(members)}")[:, 0]

    def _cell(self, mask: int, rows: Assignments, at: int, count: float) -> Cell:
        named = self.estimand.names
        found = {named[i]: self.levels[i][int(rows.columns[i][at])] for i in bits(mask)}
        return Cell(found, count)

    def _fault(self, mask: int, rows: Assignments, at: int) -> int:
        self._empty.append(self._cell(mask, rows, at, 0.0))
        return len(self._empty) - 1


def _totals(
    size: int, origin: NDArray[np.intp], values: Values, blame: Codes, faults: Codes
) -> tuple[Values, Codes]:
    """Add up the terms of each sum; `origin`, ascending, says which one a term belongs to."""
    totals = np.zeros((size, values.shape[1]))
    if len(origin):
        starts = np.flatnonzero(np.concatenate(([True], origin[1:] != origin[:-1])))
        totals[origin[starts]] = np.add.reduceat(values, starts, axis=0)
        own = np.maximum.reduceat(np.where(np.isnan(values[:, 0]), blame, -1), starts)
        faults[origin[starts]] = np.maximum(faults[origin[starts]], own)
    totals[faults >= 0, 0] = np.nan
    return totals, faults

"""Estimates of an identified query from a table of discrete data, with bootstrap intervals.

The estimand is evaluated on the table's relative frequencies (plug-in). The interval is the
percentile bootstrap: rows are drawn again with replacement, which for a table is one multinomial
draw of the counts of its different rows (Efron & Tibshirani 1993, chapter 13).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papercuts.errors import DataError, UsageError
from tierprune.dataset import Coded
from tierprune.expression import Estimand
from tierprune.query import split_names
from tierprune.spelling import did_you_mean
from tierprune.tables import Assignments, Cell, Evaluator

MAX_RECORDS = 10_000
_CELLS_AT_ONCE = 20_000_000  # numbers in one array while resamples are evaluated together
_LEVEL = 0.95
# Up to this share of undefined resamples the interval still holds over 85 % of all that were drawn.
MOST_UNDEFINED = 0.1


@dataclass(frozen=True)
class Estimate:
    """P(outcome | do(do), given) for one combination of values.

    `low` and `high` bound the 95 % bootstrap interval, `undefined` counts the resamples that had an
    empty cell where the formula conditions. They are left out: where they are more than a tenth of
    all, what is left says little about the tails, and there is no interval (NaN; so too without
    resamples). `standard_error` is that of the resamples that are left.
    `thinnest` is the cell with the fewest rows that the formula conditions on: that number is its
    effective sample size. `at` holds the values at which variables were held that the formula
    mentions though its value does not depend on them.
    """

    outcome: dict[str, str]
    do: dict[str, str]
    given: dict[str, str]
    estimate: float
    low: float
    high: float
    standard_error: float
    undefined: int
    thinnest: Cell | None
    at: dict[str, str]
    resamples: NDArray[np.float64]

    def to_dict(self) -> dict[str, Any]:
        """Give the record of `tierprune estimate`, without what is common to all."""
        thin = self.thinnest
        return {
            "outcome": self.outcome,
            "do": self.do,
            "given": self.given,
            "estimate": self.estimate,
            "low": self.low,
            "high": self.high,
            "standard_error": self.standard_error,
            "thinnest": None if thin is None else {"cell": thin.values, "effective_n": thin.rows},
            "held_at": self.at,
            "undefined_resamples": self.undefined,
        }


@dataclass(frozen=True)
class Difference:
    """An estimate under one intervention minus that under another, from the same resamples."""

    first: Estimate
    second: Estimate
    estimate: float
    low: float
    high: float
    standard_error: float

    def to_dict(self) -> dict[str, Any]:
        """Give the record of `tierprune estimate --versus`, without what is common to all."""
        return {
            **self.first.to_dict(),
            "versus": self.second.to_dict(),
            "difference": self.estimate,
            "difference_low": self.low,
            "difference_high": self.high,
            "difference_standard_error": self.standard_error,
        }


class Counts:
    """The different rows of a table and how often each occurs.

    `columns` are the columns that count, all of one length. `weights` may give each row a weight
    (a probability, say); without it each counts as one.
    """

    def __init__(
        self, columns: Sequence[Coded], weights: NDArray[np.float64] | None = None, source: str = ""
    ) -> None:
        self.columns = {column.name: column for column in columns}
        self.source = source
        matrix = np.stack([column.codes for column in columns], axis=1)
        rows, inverse = np.unique(matrix, axis=0, return_inverse=True)
        self.codes = {column.name: rows[:, at] for at, column in enumerate(columns)}
        self.counts = np.bincount(inverse.ravel(), weights=weights, minlength=len(rows)).astype(
            np.float64
        )

    def cell(self, values: Mapping[str, int]) -> NDArray[np.bool_]:
        """Say of each different row whether it has these values."""
        same = np.ones(len(self.counts), dtype=bool)
        for name, code in values.items():
            same &= self.codes[name] == code
        return same


def estimate(
    estimand: Estimand,
    counts: Counts,
    *,
    do: Mapping[str, str],
    outcome: Mapping[str, str | None],
    given: Mapping[str, str] | None = None,
    versus: Mapping[str, str] | None = None,
    bootstrap: int = 200,
    smooth: float = 0.0,
    seed: int = 0,
) -> list[Estimate] | list[Difference]:
    """Estimate an identified query from a table; one result for each combination of outcomes.

    An outcome whose value is None takes all its values. With `versus`, which names the same
    variables as `do`, the results are differences. Raises `UsageError` for a value that a column
    has not and for a `smooth` that is no finite number from 0 on, `DataError`, naming the cell,
    where the formula conditions on one that is empty.
    """
    given = given or {}
    if not (math.isfinite(smooth) and smooth >= 0):
        raise UsageError(f"--smooth {smooth}: a finite number of at least 0 is expected")
    if versus is not None and set(versus) != set(do):
        raise UsageError("--versus and --do must set the same variables")
    combinations = list(_combinations(outcome, counts))
    sides = [do] if versus is None else [do, versus]
    found = [
        _one_side(estimand, counts, side, given, combinations, bootstrap, smooth, seed)
        for side in sides
    ]
    if versus is None:
        return found[0]
    return [_difference(a, b) for a, b in zip(*found, strict=True)]


def _one_side(
    estimand: Estimand,
    counts: Counts,
    do: Mapping[str, str],
    given: Mapping[str, str],
    combinations: list[dict[str, int]],
    bootstrap: int,
    smooth: float,
    seed: int,
) -> list[Estimate]:
    fixed = {name: _code(counts, name, value) for name, value in {**do, **given}.items()}
    held = _held(estimand, counts, fixed)
    place = {name: at for at, name in enumerate(estimand.names)}
    size = len(combinations)
    wanted = Assignments({}, size)
    for name, code in {**fixed, **held}.items():
        wanted.columns[place[name]] = np.full(size, code, dtype=np.int64)
    for name in combinations[0]:
        wanted.columns[place[name]] = np.array([c[name] for c in combinations], dtype=np.int64)
    wanted = wanted.take(np.arange(size), estimand.root.free)
    columns = {place[name]: codes for name, codes in counts.codes.items() if name in place}
    levels = {i: counts.columns[estimand.names[i]].levels for i in columns}

    def evaluator(weights: NDArray[np.float64]) -> Evaluator:
        return Evaluator(estimand, columns, levels, weights, smooth)

    point = evaluator(counts.counts[:, None])
    values, empty = point.evaluate(wanted)
    if np.isnan(values).any():
        cell = "a cell" if empty is None else f"the cell {empty}"
        raise DataError(
            f"the formula conditions on {cell}, which has 0 rows",
            path=counts.source or None,
            expected="rows in every such cell; --smooth 1 adds one to each",
        )
    resamples = [np.empty((size, 0))]
    rng, left = np.random.default_rng(seed), bootstrap
    total = counts.counts.sum()
    while left:
        widest = max(point.peak, len(counts.counts), size)
        count = min(left, max(1, _CELLS_AT_ONCE // widest))
        drawn = rng.multinomial(round(total), counts.counts / total, size=count).T.astype(float)
        # The first weighting is the data, whose zeros steer the sums.
        both = np.concatenate([counts.counts[:, None], drawn], axis=1)
        resamples.append(evaluator(both).evaluate(wanted)[0][:, 1:])
        left -= count
    drawn_values = np.concatenate(resamples, axis=1)
    named = {name: counts.columns[name].levels[code] for name, code in held.items()}
    return [
        Estimate(
            {name: counts.columns[name].levels[code] for name, code in combination.items()},
            {name: counts.columns[name].levels[fixed[name]] for name in do},
            {name: counts.columns[name].levels[fixed[name]] for name in given},
            float(values[at, 0]),
            *_interval(drawn_values[at]),
            int(np.isnan(drawn_values[at]).sum()),
            point.thinnest,
            named,
            drawn_values[at],
        )
        for at, combination in enumerate(combinations)
    ]


def _interval(drawn: NDArray[np.float64]) -> tuple[float, float, float]:
    """Give the ends of the percentile interval and the standard error, NaN where there is none."""
    seen = drawn[~np.isnan(drawn)]
    if len(seen) < 2:
        return np.nan, np.nan, np.nan
    tail = 50 * (1 - _LEVEL)
    low, high = np.percentile(seen, [tail, 100 - tail])
    if len(drawn) - len(seen) > MOST_UNDEFINED * len(drawn):
        low = high = np.nan
    return float(low), float(high), float(seen.std(ddof=1))


def _difference(first: Estimate, second: Estimate) -> Difference:
    between = first.estimate - second.estimate
    return Difference(first, second, between, *_interval(first.resamples - second.resamples))


def _held(estimand: Estimand, counts: Counts, fixed: Mapping[str, int]) -> dict[str, int]:
    """Choose a value for variables on which the formula does not depend: the commonest."""
    names = estimand.arbitrary
    if not names:
        return {}
    known = {name: code for name, code in fixed.items() if name in counts.codes}
    beside = counts.cell(known)
    if not beside.any():
        beside = np.ones_like(beside)
    rows = np.stack([counts.codes[name][beside] for name in names], axis=1)
    cells, inverse = np.unique(rows, axis=0, return_inverse=True)
    sums = np.bincount(inverse.ravel(), weights=counts.counts[beside])
    return dict(zip(names, cells[int(np.argmax(sums))].tolist(), strict=True))


def _code(counts: Counts, name: str, value: str) -> int:
    try:
        return counts.columns[name].level(value)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _combinations(outcome: Mapping[str, str | None], counts: Counts) -> Iterator[dict[str, int]]:
    ranges = []
    total = 1
    for name, value in outcome.items():
        if value is None:
            ranges.append(list(range(len(counts.columns[name].levels))))
        else:
            ranges.append([_code(counts, name, value)])
        total *= len(ranges[-1])
    if total > MAX_RECORDS:
        raise UsageError(
            f"the outcomes have {total} combinations of values, more than {MAX_RECORDS}: "
            "give some of them a value"
        )
    for codes in itertools.product(*ranges):
        yield dict(zip(outcome, codes, strict=True))


def read_assignments(
    given: Sequence[str] | None, known: Sequence[str], option: str, *, need_value: bool = True
) -> dict[str, str | None]:
    """Read `X=1,Y=2` of an option that may be repeated; a name alone has the value None.

    Raises `UsageError` for a name that is not `known`, comes twice, or misses a value that is
    needed.
    """
    values: dict[str, str | None] = {}
    have = set(known)
    for part in split_names(given, known):
        # A name may hold an equals sign: the shortest known name before one counts.
        cuts = [at for at, sign in enumerate(part) if sign == "="]
        pairs = ((part[:at].strip(), part[at + 1 :].strip()) for at in cuts)
        name, value = next(((n, v) for n, v in pairs if n in have), (part, None))
        if name not in have:
            wrong = name.partition("=")[0].strip()
            hint = did_you_mean(wrong, known, " ({})")
            raise UsageError(f"{option} {part}: {wrong} is not in the graph{hint}")
        if name in values:
            raise UsageError(f"{option} names {name} twice")
        if need_value and not value:
            raise UsageError(f"{option} {part}: a value is expected, as in {name}=1")
        values[name] = value or None
    return values

"""Tables of data: a CSV file as columns of numbers or of coded categories, and what is refused."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from papercuts.errors import DataError
from papercuts.files import open_input
from tierprune.compressed import check_not_compressed
from tierprune.csvfile import Body, Ints, check_first, check_ragged, read_header
from tierprune.spelling import did_you_mean

MIN_ROWS = 10
MAX_LEVELS = 50

Missing = Literal["error", "drop"]


@dataclass(frozen=True)
class Coded:
    """A column as categories: `codes` [rows] int64 index `levels`, the values as text, sorted."""

    name: str
    codes: NDArray[np.int64]
    levels: tuple[str, ...]

    def level(self, text: str) -> int:
        """Give the code of a value, written as in the data (`1`, `1.0` and `01` are three values).

        Raises `ValueError`, which lists some levels, where the column has no such value.
        """
        if text.strip() in self.levels:
            return self.levels.index(text.strip())
        number = _number(text)
        near = [known for known in self.levels if number is not None and _number(known) == number]
        some = ", ".join(self.levels[:8]) + (", ..." if len(self.levels) > 8 else "")
        hint = f"; did you mean {near[0]}?" if near else did_you_mean(text, self.levels, "; {}")
        raise ValueError(f"{self.name} has no value {text!r} (it has {some}{hint})")


@dataclass(frozen=True)
class Column:
    """A column as read: `values` [rows] is float64 where each cell is a number, else text."""

    name: str
    values: NDArray[Any]

    @property
    def numeric(self) -> bool:
        """Say whether each cell is a number."""
        return self.values.dtype.kind == "f"


@dataclass(frozen=True)
class Table:
    """Columns of equal length, without missing values.

    `source` names the file in messages, `dropped` counts the rows left out for missing values,
    `digest` is that of the file's bytes.
    """

    source: str
    columns: tuple[Column, ...]
    rows: int
    dropped: int
    digest: str
    _body: Body

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in the order asked for."""
        return tuple(column.name for column in self.columns)

    @property
    def header(self) -> tuple[str, ...]:
        """The names of all columns of the file."""
        return tuple(self._body.names)

    @cached_property
    def _index(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    def __getitem__(self, name: str) -> Column:
        return self._index[name]

    def numbers(self, names: Sequence[str] | None = None) -> NDArray[np.float64]:
        """Give columns as a matrix [rows, columns] float64.

        Raises `DataError` for the first cell that is not a finite number, for a constant column,
        and for one that holds 1 to n or 0 to n - 1 in some order.
        """
        names = self.names if names is None else names
        matrix = np.empty((self.rows, len(names)), order="F")
        for place, name in enumerate(names):
            matrix[:, place] = values = self._numbers(name)
            finite = np.isfinite(values)
            if not finite.all():
                row = int(np.argmin(finite))
                self._refuse_cell(name, row, f"{values[row]} is not a finite number")
            if (values == values[0]).all():
                self._refuse_constant(name, _text(float(values[0])))
            self._check_counter(name)
        return matrix

    def _numbers(self, name: str) -> NDArray[np.float64]:
        if self[name].numeric:
            return self[name].values
        import pandas as pd

        values = pd.to_numeric(pd.Series(self[name].values), errors="coerce").to_numpy(np.float64)
        wrong = np.isnan(values)
        if wrong.any():
            row = int(np.argmax(wrong))
            said = f"{self[name].values[row]!r} is not a number"
            self._refuse_cell(name, row, said, "a number, or --test gsq for categories")
        return values

    def coded(
        self, names: Sequence[str] | None = None, *, max_levels: int = MAX_LEVELS
    ) -> list[Coded]:
        """Give columns as categories, with their values as they are written in the file.

        Only blanks around a value do not count: `1` and `01` are two categories. The order is that
        of the numbers where each value is one, else alphabetic. Raises `DataError` for a constant
        column, one with a value of its own in each row (of numbers, as in `numbers`), and one with
        more than `max_levels` different values.
        """
        names = self.names if names is None else list(names)
        found = [_coded(*written) for written in self._body.categories(names)]
        for column in found:
            count = len(column.levels)
            if count == 1:
                self._refuse_constant(column.name, column.levels[0])
            self._check_counter(column.name)
            if count == self.rows and not self[column.name].numeric:
                self._refuse_identifier(column.name, "", "leave it out of the tiers")
            if count > max_levels:
                raise DataError(
                    f"column {column.name!r} has {count} different values, too many to count",
                    path=self.source,
                    expected=f"at most {max_levels} categories, or a test for numbers",
                )
        return found

    def _check_counter(self, name: str) -> None:
        """Refuse the numbers of rows: 1 to n or 0 to n - 1, in any order."""
        values, rows = self[name].values, self.rows
        if not self[name].numeric or values.min() not in (0, 1) or (values % 1).any():
            return
        low = int(values.min())
        if values.max() - low == rows - 1 and len(np.unique(values)) == rows:
            self._refuse_identifier(
                name,
                f", from {low} to {low + rows - 1}",
                "leave it out of the tiers; if it is a measurement, add 2 to each value",
            )

    def _refuse_identifier(self, name: str, which: str, way_on: str) -> None:
        raise DataError(
            f"column {name!r} is an identifier: each row has a value of its own{which}",
            path=self.source,
            expected=f"a variable; {way_on}",
        )

    def _refuse_constant(self, name: str, value: str) -> None:
        raise DataError(
            f"column {name!r} is constant ({value})",
            path=self.source,
            expected="a column that varies",
        )

    def _refuse_cell(self, name: str, row: int, what: str, expected: str = "a number") -> None:
        raise DataError(
            f"column {name!r}: {what}",
            path=self.source,
            line=self._body.lines.of(row),
            expected=expected,
        )


def _coded(name: str, codes: Ints, texts: list[str]) -> Coded:
    """Put the texts in order; those that only dropped rows had are left out."""
    used = np.unique(codes)
    numbers = [_number(texts[code]) for code in used]
    if None in numbers:
        order = sorted(range(len(used)), key=lambda k: texts[used[k]])
    else:
        order = sorted(range(len(used)), key=lambda k: (numbers[k], texts[used[k]]))
    rank = np.empty(len(texts), dtype=np.int64)
    rank[used[order]] = np.arange(len(order))
    return Coded(name, rank[codes], tuple(texts[used[k]] for k in order))


def read_table(
    path: str,
    *,
    missing: Missing = "error",
    columns: Sequence[str] | None = None,
    min_rows: int = MIN_ROWS,
) -> Table:
    """Read a CSV file: a line of names, then rows of values; `-` is stdin, `.gz` and so on work.

    `columns` are the ones to read, in this order (default: all). A cell is missing where it is
    empty or one of `MISSING`; `missing="drop"` leaves out rows that miss one of the columns read.
    Raises `DataError` naming file, column and line for: a column that is not there, a name given
    twice, a row with too many or too few fields, invalid UTF-8, a missing value and fewer than
    `min_rows` rows. What a column may hold is checked by `Table.numbers` and `Table.coded`.
    """
    with open_input(path) as file:
        data = file.read().removeprefix(b"\xef\xbb\xbf")
    check_not_compressed(data, path)
    digest = hashlib.sha256(data).hexdigest()
    names, start, first = read_header(data, path)
    body = data[start:]
    del data
    wanted = names if columns is None else list(columns)
    known = set(names)
    for name in wanted:
        if name not in known:
            said = f"there is no column {name!r}"
            said += did_you_mean(name, known.difference(wanted), "; {}")
            raise DataError(said, path=path, expected=_some(names))
    check_first(body, len(names), path, first)
    whole = Body(body, names, path, first)
    lines, frame = whole.lines, whole.parsed(wanted)
    holes = frame.isna().to_numpy()
    if holes.any():
        check_ragged(body, len(names), path, first)
        if missing == "error":
            row, place = np.argwhere(holes)[0]
            raise DataError(
                f"column {wanted[place]!r} misses a value ({int(holes.any(axis=1).sum())} of "
                f"{len(frame)} rows miss one)",
                path=path,
                line=lines.of_original(int(row)),
                expected="a value in each cell; --missing drop leaves such rows out",
            )
        keep = ~holes.any(axis=1)
        lines.kept = np.flatnonzero(keep)
        frame = frame[keep]
    dropped = 0 if lines.kept is None else len(holes) - len(frame)
    if len(frame) < min_rows:
        left = f" after {dropped} with missing values were dropped" if dropped else ""
        count = f"{len(frame)} row{'s' * (len(frame) != 1)}"
        raise DataError(count + left, path=path, expected=f"at least {min_rows}")
    made = tuple(Column(name, _values(frame[name])) for name in wanted)
    return Table(path, made, len(frame), dropped, digest, whole)


def _values(series: Any) -> NDArray[Any]:
    if series.dtype.kind in "iuf":
        return np.asarray(series.to_numpy(), dtype=np.float64)
    return np.asarray(series.astype(str).to_numpy(), dtype=object)


def _number(text: Any) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _text(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)


def _some(names: Sequence[str]) -> str:
    return "one of " + ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")

"""Reading a measured learning-rate curve: CSV with or without a header, or a trainer's JSON log."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from papercuts.errors import DataError
from papercuts.files import open_input
from papercuts.jsontext import loads, why_not_json
from seesaw.shapes import Floats

Unit = Literal["steps", "tokens"]

LR_NAMES = ("lr", "learning_rate")
STEP_NAMES = ("step", "global_step")
TOKEN_NAMES = ("tokens", "num_tokens")

_BOM = b"\xef\xbb\xbf"
_NUMBERS = (int, float)  # and no bool


@dataclass(frozen=True, eq=False)
class LrCurve:
    """A learning rate `lr[i]` logged at step or token count `at[i]`, in the order of the file.

    `lines[i]` is the line it came from and `skipped` the number of rows without a learning rate,
    such as those of evaluations.
    """

    at: Floats
    lr: Floats
    unit: Unit
    lines: npt.NDArray[np.int64]
    path: str
    skipped: int = 0

    def error(self, index: int, message: str, expected: str | None = None) -> DataError:
        """Make the error that names the line of point `index`."""
        return DataError(message, path=self.path, line=int(self.lines[index]), expected=expected)


def read_curve(
    path: str, *, lr_field: str | None = None, at_field: str | None = None, unit: Unit = "steps"
) -> LrCurve:
    """Read a curve from a file, `-` for stdin; `.gz`, `.xz` and `.zst` are unpacked.

    A file whose first character is `{` is JSON Lines, any other CSV: `step,lr` without a header,
    or with one. The learning rate is called `lr` or `learning_rate`, its place `step` or
    `global_step`, else `tokens` or `num_tokens`; `lr_field` and `at_field` (with `unit`) name
    others, in JSON as dotted paths. Rows without a learning rate are skipped.

    Raises InputError where the file cannot be read, and DataError, with the line, for a row that
    is not what it should be or a file without any.
    """
    with open_input(path) as stream:
        data = stream.read().removeprefix(_BOM)
    fields = _Fields(lr_field, at_field, unit)
    if data.lstrip()[:1] == b"{":
        curve = _read_json(data, path, fields)
    else:
        curve = _read_csv(data, path, fields)
    if not len(curve.at):
        raise DataError(
            "no learning rate in this file", path=path, expected="rows of step,lr or a JSON log"
        )
    return curve


@dataclass(frozen=True)
class _Fields:
    """Which columns to take: the user's own, or the first known name that is there."""

    lr: str | None
    at: str | None
    unit: Unit

    @property
    def lr_names(self) -> tuple[str, ...]:
        return LR_NAMES if self.lr is None else (self.lr,)

    @property
    def at_names(self) -> tuple[tuple[str, Unit], ...]:
        if self.at is not None:
            return ((self.at, self.unit),)
        steps: tuple[tuple[str, Unit], ...] = tuple((name, "steps") for name in STEP_NAMES)
        return steps + tuple((name, "tokens") for name in TOKEN_NAMES)


def _read_csv(data: bytes, path: str, fields: _Fields) -> LrCurve:
    header, line, body = _split_header(data)
    unit: Unit = fields.unit
    columns = (0, 1)
    if header is not None:
        columns, unit = _find_columns(header, path, line, fields)
        line += 1
    if not body or body.isspace():
        return _Points().curve(unit, path)
    # Whole files go through numpy's parser; what it refuses is read again line by line, which
    # finds the row and copes with empty cells and quotes.
    try:
        table = np.loadtxt(
            io.BytesIO(body),
            delimiter=",",
            comments=None,
            ndmin=2,
            usecols=None if header is None else columns,
        )
    except (ValueError, UnicodeDecodeError):
        return _read_csv_slowly(body, path, columns, unit, line, exact=header is None)
    rows = body.count(b"\n") + (not body.endswith(b"\n"))
    if table.shape != (rows, 2):
        return _read_csv_slowly(body, path, columns, unit, line, exact=header is None)
    lines = np.arange(line, line + rows)
    return LrCurve(table[:, 0], table[:, 1], unit, lines, path)


def _split_header(data: bytes) -> tuple[list[str] | None, int, bytes]:
    """Give the header, or None, the line number of what follows the blank lines, and the rest."""
    line, start = 1, 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        text = data[start:end].strip()
        if text:
            cells = next(csv.reader([text.decode("utf-8", "replace")]))
            if any(_is_number(cell) for cell in cells):
                return None, line, data[start:]
            return [cell.strip() for cell in cells], line, data[end + 1 :]
        line, start = line + 1, end + 1
    return None, line, b""


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _find_columns(
    header: list[str], path: str, line: int, fields: _Fields
) -> tuple[tuple[int, int], Unit]:
    lr = next((name for name in fields.lr_names if name in header), None)
    at = next((pair for pair in fields.at_names if pair[0] in header), None)
    if lr is None or at is None:
        names = fields.lr_names if lr is None else [name for name, _ in fields.at_names]
        raise DataError(
            f"no column {' or '.join(names)} in the header {','.join(header)!r}",
            path=path,
            line=line,
            expected="step,lr with or without a header",
        )
    return (header.index(at[0]), header.index(lr)), at[1]


def _read_csv_slowly(
    body: bytes, path: str, columns: tuple[int, int], unit: Unit, first_line: int, *, exact: bool
) -> LrCurve:
    points = _Points()
    for line, raw in enumerate(body.split(b"\n"), first_line):
        try:
            cells = next(csv.reader([raw.decode().strip()]), [])
        except UnicodeDecodeError as error:
            raise DataError("not UTF-8 text", path=path, line=line) from error
        if not cells:
            continue
        if len(cells) <= max(columns) or (exact and len(cells) != 2):
            raise DataError(
                f"{len(cells)} cells in this row",
                path=path,
                line=line,
                expected="step,lr" if exact else f"at least {max(columns) + 1}",
            )
        at, lr = (cells[column].strip() for column in columns)
        if not lr:
            points.skipped += 1
            continue
        for name, cell in ((unit.removesuffix("s"), at), ("lr", lr)):
            if not _is_number(cell):
                raise DataError(f"{name} is {cell!r}", path=path, line=line, expected="a number")
        points.add(float(at), float(lr), line)
    return points.curve(unit, path)


def _read_json(data: bytes, path: str, fields: _Fields) -> LrCurve:
    points = _Points()
    lr_name, at_name, unit = "", "", fields.unit
    for line, raw in enumerate(data.split(b"\n"), 1):
        if not raw or raw.isspace():
            continue
        record = _object(raw, path, line)
        if not lr_name:  # the first row with a learning rate settles the names
            lr_name = _first_known(record, fields.lr_names)
            at_name = _first_known(record, [name for name, _ in fields.at_names])
            at_name = at_name or fields.at_names[0][0]
            unit = dict(fields.at_names)[at_name]
        lr = at_path(record, lr_name) if lr_name else None
        if lr is None:
            points.skipped += 1
            continue
        at = at_path(record, at_name)
        if type(at) not in _NUMBERS or type(lr) not in _NUMBERS:
            name, value = (at_name, at) if type(at) not in _NUMBERS else (lr_name, lr)
            what = f"there is no {name!r}" if value is None else f"{name} is {value!r}"
            raise DataError(what, path=path, line=line, expected="a number")
        points.add(float(at), float(lr), line)
    return points.curve(unit, path)


def _first_known(record: dict[str, Any], names: Iterable[str]) -> str:
    return next((name for name in names if at_path(record, name) is not None), "")


def _object(raw: bytes, path: str, line: int) -> dict[str, Any]:
    try:
        record = loads(raw)
    except ValueError as error:
        message, expected = why_not_json(raw, error)
        raise DataError(message, path=path, line=line, expected=expected) from error
    if not isinstance(record, dict):
        raise DataError("not a JSON object", path=path, line=line, expected="one object a line")
    return record


def at_path(record: dict[str, Any], name: str) -> Any:
    """Follow a dotted path into a record; a key that holds the dots itself comes first."""
    if name in record or "." not in name:
        return record.get(name)
    value: Any = record
    for key in name.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


class _Points:
    """Collects points row by row."""

    def __init__(self) -> None:
        self.at: list[float] = []
        self.lr: list[float] = []
        self.lines: list[int] = []
        self.skipped = 0

    def add(self, at: float, lr: float, line: int) -> None:
        self.at.append(at)
        self.lr.append(lr)
        self.lines.append(line)

    def curve(self, unit: Unit, path: str) -> LrCurve:
        return LrCurve(
            np.array(self.at, dtype=np.float64),
            np.array(self.lr, dtype=np.float64),
            unit,
            np.array(self.lines, dtype=np.int64),
            path,
            self.skipped,
        )

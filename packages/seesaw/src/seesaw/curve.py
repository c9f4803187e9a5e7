"""Reading a measured learning-rate curve: CSV with or without a header, or a trainer's JSON log."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from papercuts.errors import DataError, UsageError
from papercuts.streams import loads, open_input, why_not_json
from seesaw.shapes import Floats

Unit = Literal["steps", "tokens"]

LR_NAMES = ("lr", "learning_rate")
STEP_NAMES = ("step", "global_step", "train/global_step", "_step")
TOKEN_NAMES = ("tokens", "num_tokens")

_BOM = b"\xef\xbb\xbf"
_NUMBERS = (int, float)  # and no bool
_LR_ENDING = re.compile(r"(?:^|[/_ ])(?:lr|learning_rate)$", re.IGNORECASE)
_LOG_HISTORY = re.compile(r'"log_history"\s*:\s*\[')
_NUMERIC = re.compile(r"[-+0-9.,eE;\t ]+")
_OTHER_SEPARATORS = {"\t": "a tab", ";": "a semicolon"}
_NAME_LR = "(name it with --lr-field)"
_NAME_AT = "(name it with --step-field or --token-field)"


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
    path: str,
    *,
    lr_field: str | None = None,
    step_field: str | None = None,
    token_field: str | None = None,
) -> LrCurve:
    """Read a curve from a file, `-` for stdin; `.gz`, `.xz` and `.zst` are unpacked.

    A file whose first character is `{` is JSON Lines, any other CSV: `step,lr` without a header,
    or with one. A JSON file with a list `log_history`, the trainer_state.json of Hugging Face, is
    read as the records of that list.

    The learning rate is called `lr` or `learning_rate`, else by the only name that ends so after
    `/`, `_` or a space, as in W&B's `RUN - train/learning_rate`. Its place is `step`,
    `global_step`, `train/global_step` or `_step`, else `tokens` or `num_tokens`. Upper and lower
    case are the same. `lr_field` and one of `step_field` and `token_field` name others, in JSON as
    dotted paths. Rows without a learning rate are skipped.

    Raises UsageError for both a step and a token field, InputError where the file cannot be read,
    and DataError, with the line, for a row that is not what it should be or a file without any.
    """
    if step_field is not None and token_field is not None:
        raise UsageError("step_field and token_field exclude each other: name one of them")
    unit: Unit = "steps" if token_field is None else "tokens"
    with open_input(path) as stream:
        data = stream.read().removeprefix(_BOM)
    if b"\n" not in data:
        data = data.replace(b"\r", b"\n")
    fields = _Fields(lr_field, step_field if token_field is None else token_field, unit)
    if data.lstrip()[:1] == b"{":
        curve = _read_json(data, path, fields)
    else:
        curve = _read_csv(data, path, fields)
    if not len(curve.at):
        raise _nothing(curve, fields)
    return curve


def _nothing(curve: LrCurve, fields: _Fields) -> DataError:
    what = "no learning rate in this file"
    if curve.skipped:
        names = " or ".join(fields.lr_names)
        what += f": none of its {curve.skipped} rows has {names} {_NAME_LR}"
        return DataError(what, path=curve.path)
    return DataError(what, path=curve.path, expected="rows of step,lr or a JSON log")


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

    def find_lr(self, keys: Sequence[str], path: str, line: int) -> str:
        """Give the key of the learning rate, "" where there is none.

        Raises DataError where several fit and none has a name of its own.
        """
        known = _known(self.lr_names, keys)
        if known or self.lr is not None:
            return known
        fit = [key for key in keys if _LR_ENDING.search(key)]
        if len(fit) > 1:
            names = " or ".join(repr(key) for key in fit)
            raise DataError(f"the learning rate may be {names} {_NAME_LR}", path=path, line=line)
        return fit[0] if fit else ""

    def find_at(self, keys: Sequence[str]) -> tuple[str, Unit]:
        """Give the key of the steps or tokens, "" where there is none, and which they are."""
        for name, unit in self.at_names:
            known = _known((name,), keys)
            if known:
                return known, unit
        return "", self.unit


def _known(names: Iterable[str], keys: Sequence[str]) -> str:
    """Give the key with the first of the names, or with the first in another case, or ""."""
    for name in names:
        same = [key for key in keys if key.lower() == name.lower()]
        if same:
            return name if name in same else same[0]
    return ""


def _read_csv(data: bytes, path: str, fields: _Fields) -> LrCurve:
    header, line, body = _split_header(data, path)
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


def _split_header(data: bytes, path: str) -> tuple[list[str] | None, int, bytes]:
    """Give the header, or None, the line number of what follows the blank lines, and the rest."""
    line, start = 1, 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        text = data[start:end].strip()
        if text:
            cells = _cells(text.decode("utf-8", "replace"), path, line)
            _check_separator(cells, path, line)
            if any(_is_number(cell) for cell in cells):
                return None, line, data[start:]
            return [cell.strip() for cell in cells], line, data[end + 1 :]
        line, start = line + 1, end + 1
    return None, line, b""


def _cells(row: str, path: str, line: int) -> list[str]:
    try:
        return next(csv.reader([row]), [])
    except csv.Error as error:
        what = str(error)
        if "new-line character" in what:
            what = "a carriage return inside a line"
        raise DataError(what, path=path, line=line, expected="CSV as in RFC 4180") from error


def _check_separator(cells: list[str], path: str, line: int) -> None:
    """Raise DataError where the first row has columns, but no commas between them."""
    row = ",".join(cells)
    for separator, word in _OTHER_SEPARATORS.items():
        if separator in row and (len(cells) == 1 or _NUMERIC.fullmatch(row)):
            what = f"the columns are separated by {word}"
            raise DataError(what, path=path, line=line, expected="commas")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _find_columns(
    header: list[str], path: str, line: int, fields: _Fields
) -> tuple[tuple[int, int], Unit]:
    lr = fields.find_lr(header, path, line)
    at, unit = fields.find_at(header)
    if not lr or not at:
        names = [name for name, _ in fields.at_names] if lr else fields.lr_names
        raise DataError(
            f"no column {' or '.join(names)} in the header {','.join(header)!r} "
            f"{_NAME_AT if lr else _NAME_LR}",
            path=path,
            line=line,
        )
    return (header.index(at), header.index(lr)), unit


def _read_csv_slowly(
    body: bytes, path: str, columns: tuple[int, int], unit: Unit, first_line: int, *, exact: bool
) -> LrCurve:
    points = _Points()
    for line, raw in enumerate(body.split(b"\n"), first_line):
        try:
            cells = _cells(raw.decode().strip(), path, line)
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
    names: tuple[str, str, Unit] | None = None
    for line, record in _records(data, path):
        # The first row with a learning rate settles the names.
        names = names or _find_keys(record, path, line, fields)
        lr = at_path(record, names[0]) if names else None
        if names is None or lr is None:
            points.skipped += 1
            continue
        lr_name, at_name, _ = names
        at = at_path(record, at_name)
        if at is None:
            raise DataError(f"there is no {at_name!r} {_NAME_AT}", path=path, line=line)
        if type(at) not in _NUMBERS or type(lr) not in _NUMBERS:
            name, value = (at_name, at) if type(at) not in _NUMBERS else (lr_name, lr)
            raise DataError(f"{name} is {value!r}", path=path, line=line, expected="a number")
        points.add(float(at), float(lr), line)
    return points.curve(names[2] if names else fields.unit, path)


def _find_keys(
    record: dict[str, Any], path: str, line: int, fields: _Fields
) -> tuple[str, str, Unit] | None:
    """Give the keys of the learning rate and its place, and the unit; None without the first."""
    keys = [key for key, value in record.items() if value is not None]
    lr = fields.lr or fields.find_lr(keys, path, line)
    if not lr or at_path(record, lr) is None:
        return None
    at, unit = (fields.at, fields.unit) if fields.at is not None else fields.find_at(keys)
    return lr, at or fields.at_names[0][0], unit


def _records(data: bytes, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Give the records of JSON Lines, or of a `log_history`, each with the line it starts on."""
    history = _log_history(data)
    if history is not None:
        yield from history
        return
    for line, raw in enumerate(data.split(b"\n"), 1):
        if raw and not raw.isspace():
            yield line, _object(raw, path, line)


def _log_history(data: bytes) -> list[tuple[int, dict[str, Any]]] | None:
    """Give the records of a trainer_state.json, None where the file is none."""
    if b'"log_history"' not in data:
        return None
    try:
        text = data.decode()
        entries = json.loads(text).get("log_history")  # a loss may be NaN, which `loads` refuses
        start = _LOG_HISTORY.search(text)
        if start is None or not all(isinstance(entry, dict) for entry in entries):
            return None
        # Decoded once more, one by one, for the lines on which they start.
        lines, line, place = [], 1, 0
        for _ in entries:
            begin = text.index("{", place or start.end())
            line += text.count("\n", place, begin)
            lines.append(line)
            _, place = json.JSONDecoder().raw_decode(text, begin)
            line += text.count("\n", begin, place)
    except (ValueError, TypeError, RecursionError):
        return None
    return list(zip(lines, entries, strict=True))


def _object(raw: bytes, path: str, line: int) -> dict[str, Any]:
    try:
        record = loads(raw)
    except ValueError as error:
        try:  # a loss may be NaN, which is no JSON, but which this parser knows
            record = json.loads(raw, parse_int=float)
        except (ValueError, RecursionError):
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

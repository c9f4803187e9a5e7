"""Writing records for the next command (JSON Lines), a spreadsheet (CSV) or a person (table)."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import orjson

from papercuts.errors import DataError
from papercuts.files import open_output
from papercuts.jsontext import clean, dumps

if TYPE_CHECKING:
    from collections.abc import Iterable

Format = Literal["json", "csv", "table"]

_GAP = 3  # blanks between two columns
_FOLDED = 12  # the least width of a column of text that is folded
_LEAVES = frozenset({str, int, float, bool, type(None), list})


def output_format(path: str | Path, format: Format | None = None) -> Format:  # noqa: A002
    """Return the format that output to `path` takes: the one asked for, else the default.

    A table on stdout when that is a terminal; CSV for `.csv` (also compressed); else JSON Lines.
    """
    if format is not None:
        return format
    name = str(path)
    if name == "-":
        return "table" if sys.stdout is not None and sys.stdout.isatty() else "json"
    stem = name.removesuffix(".gz").removesuffix(".xz").removesuffix(".zst")
    return "csv" if stem.lower().endswith(".csv") else "json"


def write_records(
    records: Iterable[Mapping[str, Any]],
    path: str | Path = "-",
    *,
    format: Format | None = None,  # noqa: A002
    force: bool = False,
) -> None:
    """Write records to a file, whole or not at all, or to stdout (`-`) as they come.

    `json` is JSON Lines. `csv` flattens objects into dotted columns, which the first record
    fixes: a value missing later is an empty field, a new key later is a `DataError`; null, NaN
    and infinity are empty, true and false are so spelled, lists are JSON. `table` is for a
    person: it holds all records in memory, right-aligns numbers, shows floats to six digits, and
    honours `COLUMNS` and `NO_COLOR`. Without `format` see `output_format`.

    The output is opened before the first record is asked for, so an `OutputError` comes before
    the work. `BrokenPipeError` is left to `papercuts.app`.
    """
    chosen = output_format(path, format)
    with open_output(path, force=force) as out:
        if chosen == "table":
            out.write(_table(list(records)).encode())
        elif chosen == "csv":
            _write_csv(records, out)
        else:
            write = out.write
            for record in records:
                write(dumps(record))


def flattened(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return one level of dotted names: `{"a": {"b": 1}}` becomes `{"a.b": 1}`.

    Raises `DataError` when two values would get the same name.
    """
    flat: dict[str, Any] = {}
    _flatten(record, "", flat)
    return flat


def _flatten(record: Mapping[str, Any], prefix: str, flat: dict[str, Any]) -> None:
    for key, value in record.items():
        name = f"{prefix}{key}"
        if type(value) not in _LEAVES and isinstance(value, Mapping):
            _flatten(value, f"{name}.", flat)
        elif name in flat:
            raise DataError(f"two values for the column {name!r}")
        else:
            flat[name] = value


class _Encoder:
    """What `csv.writer` writes to: one call a row."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def write(self, text: str) -> None:
        try:
            self._out.write(text.encode())
        except UnicodeEncodeError:
            self._out.write(clean(text).encode())


def _write_csv(records: Iterable[Mapping[str, Any]], out: BinaryIO) -> None:
    rows = csv.writer(_Encoder(out), lineterminator="\n")
    source = (flattened(record) for record in records)
    first = next(source, None)
    if first is None:
        return
    names = list(first)
    rows.writerow(names)
    for number, row in enumerate(itertools.chain([first], source), 1):
        if row.keys() != first.keys():
            for name, value in row.items():
                if name not in first and value is not None:
                    raise DataError(
                        f"record {number} has {name!r}, which the first record has not",
                        expected="records of one shape for CSV; JSON Lines takes any",
                    )
        rows.writerow([_cell(row.get(name)) for name in names])


def _cell(value: Any) -> Any:
    """Return what stands for a value in CSV: a string or number as it is, else its JSON."""
    if type(value) not in _LEAVES and getattr(value, "ndim", None) == 0:
        value = value.item()  # of numpy or torch
    if value is None:
        return ""
    if isinstance(value, float):
        return value if math.isfinite(value) else ""
    if isinstance(value, str | int) and not isinstance(value, bool):
        return value
    text = dumps(value)[:-1]
    return orjson.loads(text) if text.startswith(b'"') else text.decode()


def _table(records: list[Mapping[str, Any]]) -> str:
    """Draw a table as wide as the terminal (or `COLUMNS`), with colour only on a terminal.

    Text is folded where it must be, numbers and names of columns never: a table that has no room
    for them becomes a list of `name  value` lines, an empty line between two records.
    """
    if not records:
        return ""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = [flattened(record) for record in records]
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [_cell(row.get(name)) for row in rows] for name in names}
    terminal = sys.stdout is not None and sys.stdout.isatty()
    canvas = io.StringIO()
    console = Console(
        file=canvas,
        force_terminal=terminal,
        no_color=bool(os.environ.get("NO_COLOR")),
        highlight=False,
    )
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    least = 0
    for name, cells in columns.items():
        numeric = all(isinstance(cell, int | float) or cell == "" for cell in cells)
        longest = max(len(_shown(cell)) for cell in cells)
        width = max(len(_printable(name)), longest if numeric else min(longest, _FOLDED))
        least += width + _GAP
        table.add_column(
            Text(_printable(name)),
            justify="right" if numeric and any(cell != "" for cell in cells) else "left",
            min_width=width,
            overflow="fold",
        )
    if least - _GAP > console.width:
        return _listed(columns, len(rows))
    for index in range(len(rows)):
        table.add_row(*(Text(_shown(cells[index])) for cells in columns.values()))
    console.print(table)
    return "".join(line.rstrip() + "\n" for line in canvas.getvalue().splitlines())


def _listed(columns: Mapping[str, list[Any]], count: int) -> str:
    """List records one value a line, the values below one another."""
    wide = max(len(_printable(name)) for name in columns)
    blocks = (
        "".join(
            f"{_printable(name):<{wide}}  {_shown(cells[index])}".rstrip() + "\n"
            for name, cells in columns.items()
        )
        for index in range(count)
    )
    return "\n".join(blocks)


def _shown(cell: Any) -> str:
    if isinstance(cell, float):
        return f"{cell:.6g}"
    return _printable(str(cell))


def _printable(text: str) -> str:
    """Escape what would move the cursor or break the row."""
    text = clean(text)
    return text if text.isprintable() else json.dumps(text, ensure_ascii=False)[1:-1]

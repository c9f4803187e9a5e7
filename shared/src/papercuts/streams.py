"""Records in and out: JSON Lines and CSV, files and `-`, with the line number in every error.

    with open_output(output, force=force) as out:
        for record in read_records(default_input(path, "scores")):
            out.write(dumps(attach(record.data, "tool", {"score": score(record)})))

or, as a generator of records, `write_records(results, output, format=..., force=force)`. One
record is in memory at a time. Opening is in `papercuts.files`, JSON in
`papercuts.jsontext`, tables and CSV output in `papercuts.tables`, resumable output in
`papercuts.resumable`; everything a tool calls is importable from here.
"""

from __future__ import annotations

import csv
import itertools
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from papercuts.compression import SUFFIXES
from papercuts.errors import DataError
from papercuts.files import check_output, default_input, open_input, open_output
from papercuts.jsontext import dumps, loads, why_not_json
from papercuts.resumable import ResumableOutput
from papercuts.tables import output_format, write_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "Record",
    "ResumableOutput",
    "attach",
    "check_output",
    "default_input",
    "dumps",
    "loads",
    "open_input",
    "open_output",
    "output_format",
    "read_records",
    "why_not_json",
    "write_records",
]

_BOM = b"\xef\xbb\xbf"
_JSON = (".json", ".jsonl", ".ndjson")
_OTHER_SEPARATORS = {"\t": "a tab", ";": "a semicolon", "|": "a bar"}


class Record(NamedTuple):
    """One record of a file: its content, and where it stands."""

    data: dict[str, Any]
    path: str
    line: int

    def error(self, message: str, expected: str | None = None) -> DataError:
        """Return (for the caller to raise) a `DataError` that names this record's line."""
        return DataError(message, path=self.path, line=self.line, expected=expected)


def attach(data: Mapping[str, Any], tool: str, value: Any) -> dict[str, Any]:
    """Return a copy of `data` with a tool's result under the tool's name, all else kept in order.

    When an earlier command of the same tool left an object there, its keys are kept too.
    """
    if tool in data and isinstance(data[tool], Mapping) and isinstance(value, Mapping):
        value = {**data[tool], **value}
    return {**data, tool: value}


def read_records(
    path: str | Path,
    format: Literal["json", "csv"] | None = None,  # noqa: A002
) -> Iterator[Record]:
    """Read the records of a JSON Lines or CSV file one by one; `-` is stdin.

    Without `format`, `.csv` (also `.csv.gz` and so on) is CSV and `.json`, `.jsonl`, `.ndjson`
    are JSON Lines; any other name, and stdin, is JSON Lines when its first character that is not
    blank is `{` or `[`, else CSV. UTF-8, with or without a byte order mark, lines ending in LF or
    CRLF; blank lines are skipped. An empty file has no records.

    JSON: whole numbers of any size stay exact (see `papercuts.jsontext`); of keys that occur
    twice in an object the last counts. CSV: the first line names the columns, separated by
    commas; values stay strings, and dotted names are nested (`a.b` becomes `{"a": {"b": ...}}`).

    Raises `InputError` when the file cannot be read; `DataError`, with the line on which the
    record starts, for a line that is not a JSON object, invalid UTF-8, a name that occurs twice
    or is empty, a wrong number of fields, a quote that is never closed.
    """
    name = str(path)
    with open_input(path) as file:
        head: list[bytes] = []  # the blank lines at the start, and the first that is not
        for line in file:
            head.append(line.removeprefix(_BOM) if not head else line)
            if not head[-1].isspace() and head[-1]:
                break
        else:
            return
        if format is None:
            format = _format_by_suffix(name) or _sniffed(head[-1])  # noqa: A001
        lines = itertools.chain(head, file)
        del head, line
        yield from (_csv_records if format == "csv" else _json_records)(lines, name)


def _format_by_suffix(name: str) -> Literal["json", "csv"] | None:
    suffixes = Path(name).suffixes
    if suffixes and suffixes[-1] in SUFFIXES:
        suffixes.pop()
    last = suffixes[-1].lower() if suffixes else ""
    return "csv" if last == ".csv" else "json" if last in _JSON else None


def _sniffed(line: bytes) -> Literal["json", "csv"]:
    return "json" if line.lstrip()[:1] in (b"{", b"[") else "csv"


def _json_records(lines: Iterable[bytes], path: str) -> Iterator[Record]:
    for number, line in enumerate(lines, 1):
        try:
            value = loads(line)
        except (ValueError, RecursionError) as error:
            if not line.strip():
                continue
            message, expected = why_not_json(line, error)
            raise DataError(message, path=path, line=number, expected=expected) from None
        if type(value) is not dict:
            raise DataError(
                f"the line is {_KINDS[type(value)]}",
                path=path,
                line=number,
                expected="one JSON object a line",
            )
        yield Record(value, path, number)


_KINDS = {
    list: "a list",
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


def _csv_records(lines: Iterable[bytes], path: str) -> Iterator[Record]:
    csv.field_size_limit(sys.maxsize)
    rows = csv.reader(_decoded(lines, path), strict=True)
    names: list[str] | None = None
    nested = False
    while True:
        start = rows.line_num + 1
        try:
            row = next(rows, None)
        except csv.Error as error:
            raise _csv_error(error, path, start) from None
        if row is None:
            return
        if not row:
            continue
        if names is None:
            names = [name.strip() for name in row]
            _check_header(names, path, start)
            nested = any("." in name for name in names)
            continue
        if len(row) != len(names):
            raise DataError(
                f"{len(row)} field{'s' * (len(row) != 1)}",
                path=path,
                line=start,
                expected=f"{len(names)}: {_listed(names)}",
            )
        pairs = zip(names, row, strict=True)
        yield Record(_nested(pairs) if nested else dict(pairs), path, start)


def _decoded(lines: Iterable[bytes], path: str) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            message, expected = why_not_json(line, error)
            raise DataError(message, path=path, line=number, expected=expected) from None


def _csv_error(error: csv.Error, path: str, line: int) -> DataError:
    text = str(error)
    if "unexpected end of data" in text:
        text = "a quoted field that starts here is never closed"
    elif "expected after" in text:
        text = "text after the closing quote of a field"
    elif "new-line character" in text:
        text = "a carriage return inside a line"
    return DataError(text, path=path, line=line, expected="CSV as in RFC 4180")


def _check_header(names: list[str], path: str, line: int) -> None:
    """Raise `DataError` unless every column has a name of its own."""
    seen: dict[str, int] = {}
    for column, name in enumerate(names, 1):
        if not name:
            raise DataError(f"column {column} has no name", path=path, line=line)
        if name in seen:
            raise DataError(
                f"columns {seen[name]} and {column} are both named {name!r}", path=path, line=line
            )
        seen[name] = column
    for name in names:
        parents = itertools.accumulate(name.split("."), lambda a, b: f"{a}.{b}")
        clash = next((p for p in parents if p in seen and p != name), None)
        if clash is not None:
            raise DataError(f"column {name!r} is a part of column {clash!r}", path=path, line=line)
    if len(names) == 1:
        for separator, word in _OTHER_SEPARATORS.items():
            if separator in names[0]:
                raise DataError(
                    f"the columns are separated by {word}",
                    path=path,
                    line=line,
                    expected="commas",
                )


def _listed(names: list[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def _nested(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for name, value in pairs:
        *parents, last = name.split(".")
        inner = data
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[last] = value
    return data

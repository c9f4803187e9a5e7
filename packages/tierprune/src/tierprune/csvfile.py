"""CSV files: the line of names, the rows as bytes, and what of them cannot be read."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from papercuts.errors import DataError

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL")
_OTHER_MARKS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_CELLS_TOGETHER = 2_000_000
_LEAST_ROWS = 1000

Ints = NDArray[np.int64]


class Lines:
    """Where the rows of a file stand: the body is scanned again only where lines may differ."""

    def __init__(self, body: bytes, first: int) -> None:
        simple = b'"' not in body and b"\n\n" not in body and b"\n\r\n" not in body
        simple = simple and not body.startswith((b"\n", b"\r\n"))
        self._body = None if simple else body
        self.first = first
        self.kept: NDArray[np.int64] | None = None  # of each row that was kept, its row in the file

    def of(self, row: int) -> int:
        """Give the line on which a row (counted from 0) starts."""
        return self.of_original(row if self.kept is None else int(self.kept[row]))

    def of_original(self, row: int) -> int:
        """As `of`, for a row of the file before any was dropped."""
        if self._body is None:
            return self.first + row
        for number, (line, _) in enumerate(_rows(self._body)):
            if number == row:
                return self.first - 1 + line
        return self.first


class Body:
    """The rows of a file as bytes, to be parsed as numbers or as they are written."""

    def __init__(self, body: bytes, names: list[str], path: str, first: int) -> None:
        self.bytes, self.names, self.path = body, names, path
        self.lines = Lines(body, first)

    def parsed(self, wanted: Sequence[str]) -> Any:
        """Parse all columns and give those of `wanted`, in its order: numbers, else text.

        All, since pandas takes rows of any length where it reads only some columns.
        """
        import pandas as pd

        parts = list(self._chunks())
        kinds = {name: {part[name].dtype.kind for part in parts} for name in wanted}
        words = [name for name, kind in kinds.items() if not kind <= set("iuf")]
        frame = pd.concat(parts, ignore_index=True)[list(wanted)]
        if any(len(kinds[name]) > 1 or "b" in kinds[name] for name in words):
            # True and false, and numbers among words, stay as they are written.
            chunks = self._chunks(dtype=dict.fromkeys(words, str), usecols=words)
            text = pd.concat(list(chunks), ignore_index=True)
            frame = frame.assign(**{name: text[name] for name in words})[list(wanted)]
        return frame

    def categories(self, wanted: Sequence[str]) -> Iterator[tuple[str, Ints, list[str]]]:
        """Yield of each column its name, the codes of its rows, and the different texts."""
        import pandas as pd

        columns = list(dict.fromkeys(wanted))
        places: dict[str, dict[str, int]] = {name: {} for name in columns}
        codes: dict[str, list[Ints]] = {name: [] for name in columns}
        for part in self._chunks(dtype=dict.fromkeys(columns, str), usecols=columns):
            for name in columns:
                found, texts = pd.factorize(part[name])
                known = places[name]
                here = [known.setdefault(str(text).strip(), len(known)) for text in texts]
                codes[name].append(np.array([*here, -1])[found].astype(np.int64))
        for name in wanted:
            rows = np.concatenate(codes[name])
            kept = self.lines.kept
            yield name, rows if kept is None else rows[kept], list(places[name])

    def _chunks(self, **options: Any) -> Iterator[Any]:
        """Parse some rows at a time, so that Ctrl-C is heard in between."""
        import pandas as pd

        rows = max(_LEAST_ROWS, _CELLS_TOGETHER // len(self.names))
        try:
            with pd.read_csv(
                io.BytesIO(self.bytes),
                header=None,
                names=self.names,
                index_col=None if "usecols" not in options else False,
                na_values=[*MISSING, *(f"{word} " for word in MISSING if word)],
                keep_default_na=False,
                skipinitialspace=True,
                low_memory=False,
                chunksize=rows,
                **options,
            ) as reader:
                yield from reader
        except (pd.errors.ParserError, UnicodeDecodeError) as error:
            _explain(error, self.bytes, len(self.names), self.path, self.lines.first)


def read_header(data: bytes, path: str) -> tuple[list[str], int, int]:
    """Give the names, the byte at which the body begins, and its line."""
    stream = io.BytesIO(data)
    rows = csv.reader(_text_lines(stream, path), skipinitialspace=True)
    names: list[str] = []
    while not names:
        row = next(rows, None)
        if row is None:
            raise DataError("the file is empty", path=path, expected="a line of names, then rows")
        names = [name.strip() for name in row]
    line = rows.line_num
    seen: set[str] = set()
    for name in names:
        if not name or name in seen:
            what = f"the name {name!r} stands twice" if name else "a column has no name"
            raise DataError(what, path=path, line=line, expected="one name for each column")
        seen.add(name)
    for mark, what in _OTHER_MARKS.items():
        if len(names) == 1 and mark in names[0]:
            raise DataError(
                f"the line of names has no comma, but {what}",
                path=path,
                line=line,
                expected="commas between names and between values",
            )
    return names, stream.tell(), line + 1


def _text_lines(stream: Iterable[bytes], path: str) -> Iterator[str]:
    for number, line in enumerate(stream, 1):
        try:
            yield line.decode()
        except UnicodeDecodeError:
            raise DataError("invalid UTF-8", path=path, line=number) from None


def _rows(body: bytes) -> Iterator[tuple[int, list[str]]]:
    """Yield the line (from 1) on which each row of the body starts, and its fields."""
    rows = csv.reader(io.TextIOWrapper(io.BytesIO(body), "utf-8", "replace", newline=""))
    line = 1
    for row in rows:
        if row:
            yield line, row
        line = rows.line_num + 1


def check_ragged(body: bytes, width: int, path: str, first: int) -> None:
    """Refuse a row of another length (the parser below takes a short one for missing values)."""
    for line, row in _rows(body):
        if len(row) != width:
            raise DataError(
                f"{len(row)} field{'s' * (len(row) != 1)}",
                path=path,
                line=first + line - 1,
                expected=f"{width}, as in the line of names",
            )


def check_first(body: bytes, width: int, path: str, first: int) -> None:
    """Refuse a file without rows, and a first row of another length, which pandas would follow."""
    head = next(_rows(body[: 1 << 20]), None)
    if head is None:
        raise DataError("there are no rows below the names", path=path)
    if len(head[1]) != width:
        check_ragged(body, width, path, first)


def _explain(error: Exception, body: bytes, width: int, path: str, first: int) -> NoReturn:
    """Raise the `DataError` that says what the parser stumbled over."""
    _check_encoding(body, path, first)
    check_ragged(body, width, path, first)
    if "inside string" in str(error):
        *_, (line, _) = _rows(body)
        what = "a quoted field that starts here is never closed"
        raise DataError(what, path=path, line=first + line - 1) from None
    raise DataError(" ".join(str(error).split()), path=path, expected="CSV") from None


def _check_encoding(body: bytes, path: str, first: int) -> None:
    try:
        body.decode()
    except UnicodeDecodeError as error:
        line = first + body.count(b"\n", 0, error.start)
        raise DataError("invalid UTF-8", path=path, line=line) from None

"""The lines that go between this process and a command: points there, numbers back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from papercuts.errors import DataError
from papercuts.streams import dumps
from zoprox.potential import Points, Values

_SHOWN = 60  # characters of an answer that a message repeats
WORDS: Mapping[bytes, float] = {b"true": 1.0, b"false": 0.0, b"yes": 1.0, b"no": 0.0}


def point_lines(points: Points) -> bytes:
    """Write every row of `points` [n, dim] as a line: coordinates, one space between them.

    A coordinate has the digits that bring back the same double, as Python's `repr` has.
    """
    if not len(points):
        return b""
    rows = np.ascontiguousarray(points, dtype=np.float64)
    text = dumps(rows)  # [[1.0,2.0],[3.0,4.0]] and a newline, ten times faster than `repr`
    if b"null" in text:  # NaN or infinity, which JSON has not
        return b"".join(b" ".join(b"%r" % x for x in row) + b"\n" for row in rows.tolist())
    return text[2:-3].replace(b"],[", b"\n").replace(b",", b" ") + b"\n"


def read_values(lines: Sequence[bytes], points: Points, *, words: bool, who: str) -> Values:
    """Read the answers to `points` [n, dim], one number a line: [n].

    With `words`, true and false (also yes and no) are 1 and 0. `nan`, `inf` and `-inf` are
    numbers here. Raises `DataError` for anything else, with the point and what was printed.
    """
    try:
        if not any(b"_" in line for line in lines):  # Python reads 1_000, nobody prints it
            return np.array([float(line) for line in lines])
    except ValueError:
        pass
    values = [_value(line, words=words) for line in lines]
    for line, value, point in zip(lines, values, points, strict=True):
        if value is None:
            expected = "1 or 0, true or false" if words else "one number a line"
            raise DataError(
                f"{who} answered {shown(line)} for the point {place(point)}", expected=expected
            )
    return np.array(values, dtype=np.float64)


def _value(line: bytes, *, words: bool) -> float | None:
    if words and (word := WORDS.get(line.strip().lower())) is not None:
        return word
    try:
        return None if b"_" in line else float(line)
    except ValueError:
        return None


def shown(line: bytes) -> str:
    """Quote what a command printed, short and on one line."""
    text = line.rstrip(b"\r\n")
    if not text.strip():
        return "an empty line"
    cut = text[:_SHOWN].decode(errors="backslashreplace")
    return repr(cut) + ("..." if len(text) > _SHOWN else "")


def place(point: Points) -> str:
    """Show a point [dim], a few coordinates of it."""
    few = ", ".join(f"{x:.6g}" if math.isfinite(x) else str(x) for x in point[:6].tolist())
    return f"({few}{', ...' if len(point) > 6 else ''})"

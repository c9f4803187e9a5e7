"""Draws in text: JSON Lines and CSV, of this tool and of others."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from papercuts.errors import DataError
from papercuts.jsontext import loads, why_not_json
from zoprox.draws import Draws, default_names

_ROUND = ("round", "draw", "iteration", ".iteration")
_PARTICLE = ("particle", "chain", ".chain")
_OTHER = (".draw",)  # counts all draws, in the frames of R's posterior


class _Row(NamedTuple):
    """A draw: where it stands in the file, its round and particle if it says so, its values."""

    line: int
    place: tuple[int, int] | None
    point: list[float]


def parsed(data: bytes, path: str) -> Draws:
    """Parse JSON Lines (where the first character is `{`) or CSV. Raises as `read_draws` does."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    if data.lstrip()[:1] in (b"{", b"["):
        return _from_json(data, path)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            "not text", path=path, line=line, expected="draws as csv, npy, json or netcdf"
        ) from None
    return _from_csv(text, path)


def _from_json(data: bytes, path: str) -> Draws:
    rows: list[_Row] = []
    about: dict[str, Any] | None = None
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            record = loads(line)
        except (ValueError, RecursionError) as error:
            message, expected = why_not_json(line, error)
            raise DataError(message, path=path, line=number, expected=expected) from None
        if not isinstance(record, dict) or not isinstance(record.get("x"), list):
            raise DataError(
                "no list of numbers under 'x'",
                path=path,
                line=number,
                expected='{"round": 1, "particle": 0, "x": [...]}',
            )
        if about is None:
            found = record.get("zoprox")
            about = dict(found) if isinstance(found, dict) else {}
        numbers = [record.get(key) for key in ("round", "particle")]
        place = None
        if numbers != [None, None]:
            place = (_whole(numbers[0], path, number), _whole(numbers[1], path, number))
        rows.append(_Row(number, place, [_finite(v, path, number) for v in record["x"]]))
    about = about or {}
    names = about.pop("names", None)
    known = isinstance(names, list) and all(isinstance(name, str) for name in names)
    return _assembled(rows, tuple(names) if known and names else None, about, path)


def _from_csv(text: str, path: str) -> Draws:
    table = _rows(text, path)
    _, head = next(table, (0, None))
    if head is None:
        raise DataError("no draws: the file is empty", path=path)
    names = [name.strip() for name in head]
    rows: list[_Row] = []
    if all(_is_number(name) for name in names):
        rows.append(_Row(1, None, [_finite(cell, path, 1) for cell in head]))
        columns, named = list(range(len(head))), None
        at = None
    else:
        at = _place_columns(names, path)
        skipped = {*(at or ()), *(i for i, name in enumerate(names) if _not_ours(name))}
        columns = [i for i in range(len(names)) if i not in skipped]
        named = tuple(names[i] for i in columns)
        if not columns:
            raise DataError("no parameter among the columns", path=path, line=1)
        if len(set(named)) < len(named) or "" in named:
            raise DataError("columns without a name of their own", path=path, line=1)
    for line, cells in table:
        if len(cells) != len(head):
            raise DataError(
                f"{len(cells)} fields", path=path, line=line, expected=f"{len(head)} as above"
            )
        place = None
        if at is not None:
            place = (_whole(cells[at[0]], path, line), _whole(cells[at[1]], path, line))
        rows.append(_Row(line, place, [_finite(cells[i], path, line) for i in columns]))
    return _assembled(rows, named, {}, path)


def _rows(text: str, path: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise DataError(f"{error}", path=path, line=line, expected="CSV") from None
        if cells is None:
            return
        if cells and not cells[0].lstrip().startswith("#") and any(c.strip() for c in cells):
            yield line, cells


def _place_columns(names: list[str], path: str) -> tuple[int, int] | None:
    """Give the columns of round and particle, None where a table has neither."""
    found = []
    for known in (_ROUND, _PARTICLE):
        here = [i for i, name in enumerate(names) if name in known]
        if len(here) > 1:
            raise DataError(f"both {names[here[0]]} and {names[here[1]]}", path=path, line=1)
        found.append(here[0] if here else None)
    rounds, particles = found
    if rounds is None and particles is None:
        return None
    if rounds is None or particles is None:
        has, lacks = ("round", "particle") if particles is None else ("particle", "round")
        raise DataError(
            f"a column for the {has} but none for the {lacks}",
            path=path,
            line=1,
            expected="both (round and particle, or draw and chain) or neither",
        )
    return rounds, particles


def _not_ours(name: str) -> bool:
    return name.endswith("__") or name in _OTHER


def _assembled(
    rows: Sequence[_Row], names: tuple[str, ...] | None, about: dict[str, Any], path: str
) -> Draws:
    """Put draws into the grid of rounds and particles. Raises `DataError` where one is missing."""
    if not rows:
        raise DataError("no draws in the file", path=path)
    dim = len(rows[0].point)
    if not dim:
        raise DataError("a draw without coordinates", path=path, line=rows[0].line)
    if names is not None and (len(names) != dim or len(set(names)) != dim):
        raise DataError(f"{len(set(names))} different names for {dim} coordinates", path=path)
    places: dict[tuple[int, int], int] = {}
    for row in rows:
        if len(row.point) != dim:
            raise DataError(
                f"{len(row.point)} coordinates",
                path=path,
                line=row.line,
                expected=f"{dim}, as in the first draw",
            )
        if (row.place is None) != (rows[0].place is None):
            raise DataError(
                "some draws have a round and a particle, and some have not",
                path=path,
                line=row.line,
            )
        if row.place is not None:
            if row.place in places:
                raise DataError(
                    f"round {row.place[0]}, particle {row.place[1]} again (first on line "
                    f"{places[row.place]})",
                    path=path,
                    line=row.line,
                )
            places[row.place] = row.line
    named = names or default_names(dim)
    if not places:
        return Draws(np.array([[row.point] for row in rows]), named, about)
    rounds = {number: i for i, number in enumerate(sorted({k for k, _ in places}))}
    particles = {number: i for i, number in enumerate(sorted({i for _, i in places}))}
    if len(places) != len(rounds) * len(particles):
        lacking = next((k, i) for k in rounds for i in particles if (k, i) not in places)
        raise DataError(
            f"round {lacking[0]} has no particle {lacking[1]}",
            path=path,
            expected="every particle in every round",
        )
    points = np.empty((len(rounds), len(particles), dim))
    for row in rows:
        if row.place is not None:
            points[rounds[row.place[0]], particles[row.place[1]]] = row.point
    return Draws(points, named, about, tuple(rounds))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _finite(value: Any, path: str, line: int) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise DataError(
            f"{_shown(value)} is no finite number", path=path, line=line, expected="a number"
        )
    return number


def _whole(value: Any, path: str, line: int) -> int:
    try:
        number = float(value)
        whole = int(number)
    except (TypeError, ValueError, OverflowError):
        number, whole = math.nan, 0
    if isinstance(value, bool) or number != whole:
        raise DataError(
            f"{_shown(value)} is no number of a round or a particle",
            path=path,
            line=line,
            expected="a whole number",
        )
    return whole


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return repr(text[:40]) if isinstance(value, str) else text[:40]

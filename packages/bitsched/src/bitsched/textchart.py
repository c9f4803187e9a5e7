"""A timeline as lines of text for a terminal."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator

import numpy as np

from bitsched.timeline import IDLE, REDUCE, WAIT, Raster, Timeline, number, rows_with_path, ticks
from bitsched.timeline import raster as cut

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_WAIT, _IDLE, _PATH = "~", ".", "="
_MOST_ROWS, _MARKED_ROWS = 48, 16


def chart_lines(timeline: Timeline, width: int) -> Iterator[str]:
    """Yield the chart's lines, none longer than `width` characters (at least 40 are used).

    A small letter is a compute of its group (a head), a capital letter its reduction, `~` the
    wait for the turn in a sum and `.` idle time. Under each processor `=` marks the critical
    path (where it visits up to 16 of them), and the last rows say on which processor it is when.
    Past 48 processors those of the critical path are drawn, and others spread evenly.
    """
    width = max(width, 40)
    edge = len(str(max(0, timeline.processors - 1)))
    edge = max(edge, len(timeline.processor_word), 4)
    columns = _columns(width - edge - 3, timeline.makespan)
    cells = cut(timeline, columns, rows_with_path(timeline, _MOST_ROWS))
    marked = timeline.path_processors().size <= _MARKED_ROWS
    yield from textwrap.wrap(timeline.title, width)
    yield ""
    yield from _axis(timeline, cells, edge, columns, width)
    on_path = _path_cells(timeline, cells, columns)
    for row, processor in enumerate(cells.rows.tolist()):
        yield f"{processor:>{edge}} |{_row(cells, row)}|"
        if marked and (on_path == processor).any():
            marks = "".join(_PATH if on else " " for on in on_path == processor)
            yield f"{'':>{edge}}  {marks}".rstrip()
    yield f"{'':>{edge}} +{'-' * columns}+"
    yield f"{'path':>{edge}}  {_path_words(on_path)}".rstrip()
    yield ""
    for line in _legend(timeline, cells):
        yield from textwrap.wrap(line, width, subsequent_indent="    ")


def _columns(room: int, makespan: float) -> int:
    """Give the number of cells: a whole number a unit of time, or of units a cell, if it can be."""
    if makespan <= 0 or makespan != round(makespan):
        return room
    if makespan <= room:
        return int(makespan) * int(room // makespan)
    units = math.ceil(makespan / room)
    return int(makespan) // units if makespan % units == 0 else room


def _axis(t: Timeline, cells: Raster, edge: int, columns: int, width: int) -> Iterator[str]:
    unit = f" {t.unit}" if t.unit else ""
    named = f"time{unit}, a character is {number(cells.step)}"
    yield f"{t.processor_word:>{edge}}  {named}"[:width]
    marks, words = [" "] * (columns + 1), [" "] * (columns + 1)
    free = 0
    for at in ticks(t.makespan, max(2, columns // 9)):
        column, word = round(at / cells.step), number(at)
        if column >= free and column + len(word) <= columns + 1:
            marks[column] = "|" if column else "-"
            words[column : column + len(word)] = word
            free = column + len(word) + 1
    yield f"{'':>{edge}}  {''.join(words)}".rstrip()
    yield f"{'':>{edge}} +{''.join('+' if m == '|' else '-' for m in marks[:columns])}+"


def _row(cells: Raster, row: int) -> str:
    kinds = {IDLE: _IDLE, WAIT: _WAIT}
    return "".join(
        kinds.get(state) or _letter(group, capital=state == REDUCE)
        for state, group in zip(cells.state[row].tolist(), cells.group[row].tolist(), strict=True)
    )


def _letter(group: int, *, capital: bool) -> str:
    if group < 0:
        return "#" if capital else "o"
    letter = _LETTERS[group % len(_LETTERS)]
    return letter.upper() if capital else letter


def _path_cells(
    t: Timeline, cells: Raster, columns: int
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Name the processor of the critical path at the middle of each cell (-1: none): [columns]."""
    on = np.full(columns, -1, dtype=np.int64)
    middles = (np.arange(columns) + 0.5) * cells.step
    for task, begin, end in t.path_parts():
        low, high = np.searchsorted(middles, [begin, end])
        on[low:high] = t.processor[task]
    return on


def _path_words(on: np.ndarray[tuple[int], np.dtype[np.int64]]) -> str:
    """Write `|3---|10-----`: the processor of each stretch, as far as there is room for it."""
    parts, begin = [], 0
    for column in range(1, on.size + 1):
        if column < on.size and on[column] == on[begin]:
            continue
        length = column - begin
        name = f"|{on[begin]}" if on[begin] >= 0 else ""
        parts.append(
            (name if len(name) <= length else name[:1]).ljust(length, "-" if name else " ")
        )
        begin = column
    return "".join(parts)


def _legend(t: Timeline, cells: Raster) -> Iterator[str]:
    groups = sorted({int(g) for g in t.group.tolist()}) if t.group.size else []
    named = [g for g in groups if g >= 0]
    if named:
        low, high = named[0], named[-1]
        few = high - low < 26
        a, z = _letter(low, capital=False), _letter(high if few else 25, capital=False)
        letters = a if a == z else f"{a}-{z}"
        first, last = _short(t.group_name(low)), _short(t.group_name(high))
        who = f"{t.group_word} {first}" if low == high else f"{t.group_word}s {first} to {last}"
        again = "" if few else ", again from a after 26"
        yield f"{letters} compute, {letters.upper()} reduce ({who}{again})"
    if -1 in groups:
        yield "o compute, # reduce (without an accumulator)"
    yield f"{_WAIT} wait for the turn in the sum, {_IDLE} idle"
    visited = t.path_processors().size
    marked = visited <= _MARKED_ROWS
    under = f"{_PATH} and the last row" if marked else "the last row"
    yield f"critical path: {under}, which names its {t.processor_word}"
    drawn = cells.rows.size
    if drawn < t.processors:
        which = f"all {visited} of the critical path and others, spread evenly"
        if visited > drawn:
            which = f"those with most of the critical path, which is on {visited}"
        yield (
            f"{drawn} of {t.processors} {t.processor_word}s are drawn ({which}), "
            f"{t.processors - drawn} left out"
        )
    shortest = t.end - t.start
    if shortest.size and float(shortest.min()) < cells.step:
        yield "a character shows what takes most of its time: shorter parts are not seen"


def _short(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:21]}..."

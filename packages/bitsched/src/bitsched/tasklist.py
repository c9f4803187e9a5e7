"""Reads files of tasks: any fixed-order reduction as a graph (split-K, scatter-add, tree merge)."""

from __future__ import annotations

import difflib
import json
import math
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papercuts.errors import DataError
from papercuts.jsontext import loads, why_not_json
from papercuts.streams import open_input

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

_KEYS = ("duration", "reduce", "into", "after", "processor")
_ALL_KEYS = {"id", *_KEYS}
_DOCUMENT_KEYS = ("tasks", "processors")
_LIKE = 0.8  # of difflib: `durations`, `redcue`, `duration_ms`; not `note`, `info`, `weight`


@dataclass(frozen=True, eq=False)
class TaskList:
    """Tasks in the order of their file.

    `duration` and `reduce` [tasks] float64: the time to compute, and to add the result to the
    accumulator `into[t]` (an index into `accumulators`, -1 for none). `processor[t]` is where it
    must run, -1 for anywhere. `edges` [edges, 2]: v starts only when u has ended. `records` are
    the tasks as they were read, `processors` what the file says (None where it does not), and
    `lines` the line of each in JSON Lines (None in a document).
    """

    ids: list[str]
    duration: Floats
    reduce: Floats
    into: Longs
    accumulators: list[str]
    processor: Longs
    edges: Longs
    records: list[dict[str, Any]]
    path: str
    processors: int | None = None
    lines: list[int] | None = None

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return len(self.ids)

    def error(self, task: int, message: str, expected: str | None = None) -> DataError:
        """Return (for the caller to raise) a `DataError` that names a task by its id."""
        line = None if self.lines is None else self.lines[task]
        said = f"task {self.ids[task]!r}: {message}"
        return DataError(said, path=self.path, line=line, expected=expected)


def read_tasks(path: str) -> TaskList:
    """Read tasks: one JSON document `{"tasks": [...]}` or a list, or JSON Lines, a task a line.

    Keys of a task: `id` (text or a number, its own); `duration` (default 0) and `reduce` (default
    0), times of 0 or more; `into`, the accumulator that its result is added to; `after`, ids of
    tasks that must have ended before, or accumulators, which mean all tasks that add to them;
    `processor`, where it must run. The document may say `processors`, their number. Other keys
    are kept, but one that reads like one of these misspelt is refused. Raises `InputError`, and
    `DataError` that names the task (and, in JSON Lines, its line).
    """
    with open_input(path) as file:
        raw = file.read()
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    records, processors, lines = _records(raw, path)
    if not records:
        raise DataError("no tasks", path=path, expected='{"tasks": [...]} or a task a line')
    none = np.empty(0)
    made = TaskList(
        ids=_ids(records, lines, path),
        duration=none,
        reduce=none,
        into=none.astype(np.int64),
        accumulators=[],
        processor=none.astype(np.int64),
        edges=np.empty((0, 2), dtype=np.int64),
        records=records,
        path=path,
        processors=processors,
        lines=lines,
    )
    _refuse_misspelt(made, raw)
    made = replace(made, duration=_times(made, "duration"), reduce=_times(made, "reduce"))
    made = replace(made, processor=np.array([_processor(made, t) for t in range(made.tasks)]))
    into, accumulators = _accumulators(made)
    edges = _edges(made, into, accumulators)
    return replace(made, into=into, accumulators=accumulators, edges=edges)


def _records(raw: bytes, path: str) -> tuple[list[dict[str, Any]], int | None, list[int] | None]:
    try:
        document = loads(raw)
    except (ValueError, RecursionError) as error:
        lines = [(k, line) for k, line in enumerate(raw.splitlines(), 1) if line.strip()]
        if not lines:
            return [], None, None
        if len(lines) == 1 or not lines[0][1].rstrip().endswith(b"}"):
            line = raw.count(b"\n", 0, getattr(error, "pos", 0)) + 1
            raise _not_json(raw, error, path, line, '{"tasks": [...]} or a task a line') from None
        return _lines(lines, path), None, [number for number, _ in lines]
    processors = None
    if isinstance(document, dict):
        if "tasks" not in document and "id" in document:
            line = raw.count(b"\n", 0, raw.find(b"{")) + 1
            return [document], None, [line]
        for key in document:
            if key not in _DOCUMENT_KEYS and (meant := _meant(key, document, _DOCUMENT_KEYS)):
                where = _line_of(key, raw)
                raise DataError(
                    f"unknown key {_short(key)}", path=path, line=where, expected=f"{meant!r}"
                )
        processors = document.get("processors")
        if processors is not None and (type(processors) is not int or processors < 1):
            raise DataError(f"processors is {_short(processors)}", path=path, expected="1 or more")
        document = document.get("tasks")
    if not isinstance(document, list):
        raise DataError("no list of tasks", path=path, expected='{"tasks": [...]}')
    for number, record in enumerate(document):
        if not isinstance(record, dict):
            raise DataError(
                f"entry {number} of the tasks is {_short(record)}", path=path, expected="an object"
            )
    return document, processors, None


def _lines(lines: list[tuple[int, bytes]], path: str) -> list[dict[str, Any]]:
    try:
        records = loads(b"[" + b",".join(line for _, line in lines) + b"]")
        if len(records) == len(lines) and all(type(record) is dict for record in records):
            return list(records)
    except (ValueError, RecursionError):
        pass  # line by line, to name the one
    return [_line(line, path, number) for number, line in lines]


def _line(line: bytes, path: str, number: int) -> dict[str, Any]:
    try:
        record = loads(line)
    except (ValueError, RecursionError) as error:
        raise _not_json(line, error, path, number, "a task: one JSON object a line") from None
    if not isinstance(record, dict):
        raise DataError(
            f"the line is {_short(record)}", path=path, line=number, expected="a task: an object"
        )
    return record


def _not_json(raw: bytes, error: Exception, path: str, line: int, expected: str) -> DataError:
    """Say what the text begins with, where that is no JSON at all; else what is wrong where."""
    begin = raw.lstrip()[:24].split(b"\n")[0].decode(errors="replace").strip()
    message, usual = why_not_json(raw, error)
    if message.startswith("not JSON") and begin and begin[0] not in '{["0123456789-':
        message, usual = f"this is not JSON: it begins with {begin!r}", expected
    return DataError(message, path=path, line=line, expected=usual)


def _refuse_misspelt(tasks: TaskList, raw: bytes) -> None:
    """Raise `DataError` for a key that a task would bring in vain: `durations`, `redcue`.

    DESIGN.md: what passes through a filter keeps its keys, so keys of other tools are kept, and
    come out again with `--tasks`. A key that is nearly one of ours, in a task that does not have
    this one, was meant for us, and to ignore it would give wrong times without a word. The few
    keys of others that read so (`process` beside no `processor`) have to be renamed.
    """
    known: dict[str, str | None] = {}  # whether a key looks like ours, looked at once
    for task, record in enumerate(tasks.records):
        for key in record:
            if key in _ALL_KEYS:
                continue
            if key not in known:
                known[key] = _meant(key, {}, _KEYS)
            meant = known[key]
            if meant is None or meant in record:
                continue
            error = tasks.error(task, f"unknown key {_short(key)}", f"{meant!r}")
            if tasks.lines is None:
                error = DataError(
                    f"task {tasks.ids[task]!r}: unknown key {_short(key)}", path=tasks.path,
                    line=_line_of(key, raw), expected=f"{meant!r}",
                )  # fmt: skip
            raise error


def _meant(key: str, record: dict[str, Any], ours: tuple[str, ...]) -> str | None:
    """Give the key of ours that `key` looks like, and that the record does not have."""
    plain = key.casefold().strip(" _-")
    near = difflib.get_close_matches(plain, ours, n=1, cutoff=_LIKE)
    return near[0] if near and near[0] not in record else None


def _line_of(key: str, raw: bytes) -> int | None:
    """Give the line of a key in a document, where it stands there once."""
    found = [m.start() for m in re.finditer(re.escape(json.dumps(key).encode()) + rb"\s*:", raw)]
    return raw.count(b"\n", 0, found[0]) + 1 if len(found) == 1 else None


def _ids(records: list[dict[str, Any]], lines: list[int] | None, path: str) -> list[str]:
    ids: list[str] = []
    seen: dict[str, int] = {}
    for number, record in enumerate(records):
        name = _name(record.get("id"))
        if name is None:
            what = f"its id is {_short(record['id'])}" if "id" in record else "it has no id"
            raise DataError(
                f"task number {number + 1}: {what}", path=path,
                line=None if lines is None else lines[number], expected="text or a whole number",
            )  # fmt: skip
        if seen.setdefault(name, number) != number:
            raise DataError(
                f"task {name!r}: numbers {seen[name] + 1} and {number + 1} both have this id",
                path=path, line=None if lines is None else lines[number],
            )  # fmt: skip
        ids.append(name)
    return ids


def _name(value: object) -> str | None:
    if type(value) is str:
        return value or None
    return str(value) if type(value) is int else None


def _times(tasks: TaskList, key: str) -> Floats:
    values = [record.get(key, 0) for record in tasks.records]
    for task, value in enumerate(values):
        if type(value) not in (int, float) or not 0 <= value < math.inf:
            raise tasks.error(task, f"{key} is {_short(value)}", "a time of 0 or more")
    return np.array(values, dtype=np.float64)


def _processor(tasks: TaskList, task: int) -> int:
    value = tasks.records[task].get("processor")
    if value is None:
        return -1
    if type(value) is not int or not 0 <= value < 2**31:
        raise tasks.error(task, f"processor is {_short(value)}", "its number, counted from 0")
    return value


def _accumulators(tasks: TaskList) -> tuple[Longs, list[str]]:
    numbers: dict[str, int] = {}
    into = []
    for task, record in enumerate(tasks.records):
        value = record.get("into")
        name = _name(value)
        if value is not None and name is None:
            raise tasks.error(task, f"into is {_short(value)}", "the name of an accumulator")
        into.append(-1 if name is None else numbers.setdefault(name, len(numbers)))
        if name is None and tasks.reduce[task] > 0:
            raise tasks.error(task, "it has a reduce but no accumulator", "a key 'into'")
    return np.array(into, dtype=np.int64), list(numbers)


def _edges(tasks: TaskList, into: Longs, accumulators: list[str]) -> Longs:
    number = {name: task for task, name in enumerate(tasks.ids)}
    order = np.argsort(into, kind="stable")
    bounds = np.searchsorted(into[order], np.arange(len(accumulators) + 1))
    sums = {name: order[bounds[k] : bounds[k + 1]] for k, name in enumerate(accumulators)}
    sources: list[int] = []
    targets: list[int] = []
    for task, record in enumerate(tasks.records):
        after = record.get("after")
        if after is None:
            continue
        for value in after if type(after) is list else [after]:
            name = _name(value)
            if name in number and name in sums:
                raise tasks.error(
                    task, f"after names {name!r}, which is a task and an accumulator",
                    "different names for the two",
                )  # fmt: skip
            if name in number:
                found = [number[name]]
            elif name in sums:
                found = sums[name].tolist()
                if task in found:
                    raise tasks.error(
                        task, f"waits for the sum {name!r} that it adds to",
                        "an accumulator of other tasks",
                    )  # fmt: skip
            else:
                raise tasks.error(
                    task, f"after names {_short(value)}, which is not there",
                    "the id of a task, or an accumulator",
                )  # fmt: skip
            sources += found
            targets += [task] * len(found)
    return np.stack([sources, targets], axis=1).astype(np.int64).reshape(-1, 2)


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 40 else f"{text[:37]}..."

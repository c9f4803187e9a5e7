"""Reads files of tasks: any fixed-order reduction as a graph (split-K, scatter-add, tree merge)."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papercuts.errors import DataError
from papercuts.jsontext import loads, why_not_json
from papercuts.streams import open_input

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

_KEYS = ("id", "duration", "reduce", "into", "after", "processor")


@dataclass(frozen=True, eq=False)
class TaskList:
    """Tasks in the order of their file.

    `duration` and `reduce` [tasks] float64: the time to compute, and to add the result to the
    accumulator `into[t]` (an index into `accumulators`, -1 for none). `processor[t]` is where it
    must run, -1 for anywhere. `edges` [edges, 2]: v starts only when u has ended. `records` are
    the tasks as they were read, `processors` what the file says (None where it does not).
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

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return len(self.ids)

    def error(self, task: int, message: str, expected: str | None = None) -> DataError:
        """Return (for the caller to raise) a `DataError` that names a task by its id."""
        return DataError(f"task {self.ids[task]!r}: {message}", path=self.path, expected=expected)


def read_tasks(path: str) -> TaskList:
    """Read tasks: one JSON document `{"tasks": [...]}` or a list, or JSON Lines, a task a line.

    Keys of a task: `id` (text or a number, its own); `duration` (default 0) and `reduce` (default
    0), times of 0 or more; `into`, the accumulator that its result is added to; `after`, ids of
    tasks that must have ended before, or accumulators, which mean all tasks that add to them;
    `processor`, where it must run. The document may say `processors`, their number. Other keys
    are kept. Raises `InputError`, and `DataError` that names the task.
    """
    with open_input(path) as file:
        raw = file.read()
    records, processors = _records(raw.removeprefix(b"\xef\xbb\xbf"), path)
    if not records:
        raise DataError("no tasks", path=path, expected='{"tasks": [...]} or a task a line')
    ids = _ids(records, path)
    made = TaskList(
        ids=ids,
        duration=_times(records, ids, "duration", path),
        reduce=_times(records, ids, "reduce", path),
        into=np.empty(0, dtype=np.int64),
        accumulators=[],
        processor=np.array([_processor(r, ids[t], path) for t, r in enumerate(records)]),
        edges=np.empty((0, 2), dtype=np.int64),
        records=records,
        path=path,
        processors=processors,
    )
    into, accumulators = _accumulators(made)
    edges = _edges(made, into, accumulators)
    return TaskList(**{**vars(made), "into": into, "accumulators": accumulators, "edges": edges})


def _records(raw: bytes, path: str) -> tuple[list[dict[str, Any]], int | None]:
    try:
        document = loads(raw)
    except (ValueError, RecursionError) as error:
        lines = [(k, line) for k, line in enumerate(raw.splitlines(), 1) if line.strip()]
        if not lines:
            return [], None
        if len(lines) == 1 or not lines[0][1].rstrip().endswith(b"}"):
            message, expected = why_not_json(raw, error)
            line = raw.count(b"\n", 0, getattr(error, "pos", 0)) + 1
            raise DataError(message, path=path, line=line, expected=expected) from None
        return _lines(lines, path), None
    processors = None
    if isinstance(document, dict):
        if "tasks" not in document and "id" in document:
            return [document], None
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
    return document, processors


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
        message, expected = why_not_json(line, error)
        raise DataError(message, path=path, line=number, expected=expected) from None
    if not isinstance(record, dict):
        raise DataError(
            f"the line is {_short(record)}", path=path, line=number, expected="a task: an object"
        )
    return record


def _ids(records: list[dict[str, Any]], path: str) -> list[str]:
    ids: list[str] = []
    seen: dict[str, int] = {}
    for number, record in enumerate(records):
        name = _name(record.get("id"))
        if name is None:
            what = f"its id is {_short(record['id'])}" if "id" in record else "it has no id"
            raise DataError(
                f"task number {number + 1}: {what}", path=path, expected="text or a whole number"
            )
        if seen.setdefault(name, number) != number:
            raise DataError(
                f"task {name!r}: numbers {seen[name] + 1} and {number + 1} both have this id",
                path=path,
            )
        ids.append(name)
    return ids


def _name(value: object) -> str | None:
    if type(value) is str:
        return value or None
    return str(value) if type(value) is int else None


def _times(records: list[dict[str, Any]], ids: list[str], key: str, path: str) -> Floats:
    values = [record.get(key, 0) for record in records]
    for task, value in enumerate(values):
        if type(value) not in (int, float) or not 0 <= value < math.inf:
            raise DataError(
                f"task {ids[task]!r}: {key} is {_short(value)}", path=path,
                expected="a time of 0 or more",
            )  # fmt: skip
    return np.array(values, dtype=np.float64)


def _processor(record: dict[str, Any], name: str, path: str) -> int:
    value = record.get("processor")
    if value is None:
        return -1
    if type(value) is not int or not 0 <= value < 2**31:
        raise DataError(
            f"task {name!r}: processor is {_short(value)}", path=path,
            expected="its number, counted from 0",
        )  # fmt: skip
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

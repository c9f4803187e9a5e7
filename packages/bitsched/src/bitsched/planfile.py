"""Plan files: JSON Lines, one processor a line, with where it came from on each."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bitsched.masks import shape_of
from bitsched.plan import Plan
from papercuts.errors import DataError
from papercuts.streams import Record, dumps, open_output, read_records

if TYPE_CHECKING:
    from collections.abc import Iterator

_TASKS = "a list of [head, kv, q, rank]"
_MOST = 2**20 - 1  # so that products of three of them fit 64 bits


def read_plan(path: str | Path) -> Plan:
    """Read a plan; `-` is stdin, `.gz`, `.xz` and `.zst` are unpacked.

    The lines may come in any order. Raises `InputError` when the file cannot be read and
    `DataError`, with the line, for one that is no processor's: a wrong key, a number that is
    negative, not whole or over 2**20 - 1, a processor that comes twice, one that is missing, a
    provenance that describes no shape or differs from line to line.
    """
    found: dict[int, tuple[NDArray[np.int32], Record]] = {}
    for record in _records(path):
        number = _processor(record)
        if number in found:
            raise record.error(
                f"processor {number} was on line {found[number][1].line} already",
                "each processor on one line",
            )
        found[number] = (_tasks(record), record)
        record.data.pop("tasks")  # lists of a million tasks are not kept beside the arrays
    if not found:
        raise DataError("the plan is empty", path=path, expected="one processor a line")
    for number in range(len(found)):
        if number not in found:
            last = max(record.line for _, record in found.values())
            raise DataError(
                f"processor {number} is missing", path=path, line=last,
                expected=f"processors 0 to {max(found)}, each on one line",
            )  # fmt: skip
    about = _about(found[0][1])
    if "mask" in about and shape_of(about) is None:
        raise found[0][1].error("'bitsched' describes no shape", "what `bitsched plan` wrote there")
    for number in range(1, len(found)):
        if _about(found[number][1]) != {k: v for k, v in about.items() if k != "blocks"}:
            raise found[number][1].error(
                "'bitsched' is not what processor 0 has", "one plan, the same on every line"
            )
    ordered = [found[number][0] for number in range(len(found))]
    table = np.concatenate(ordered)
    starts = np.concatenate([[0], np.cumsum([part.shape[0] for part in ordered])])
    head, kv, q, rank = np.ascontiguousarray(table.T)
    return Plan(head, kv, q, rank, starts.astype(np.int64), about)


def write_plan(plan: Plan, output: str | Path = "-", *, force: bool = False) -> None:
    """Write a plan, whole or not at all; compressed by suffix.

    Raises `OutputError` when the file exists (without `force`) or cannot be written.
    """
    with open_output(output, force=force) as out:
        for line in plan_lines(plan):
            out.write(line)


def plan_lines(plan: Plan) -> Iterator[bytes]:
    """Give the lines of a plan's file."""
    about = dict(plan.about)
    blocks = about.pop("blocks", None)
    for p in range(plan.processors):
        part = slice(int(plan.starts[p]), int(plan.starts[p + 1]))
        tasks = np.stack([plan.head[part], plan.kv[part], plan.q[part], plan.rank[part]], axis=1)
        # The tiles of a block mask are long: once is enough.
        more = {"blocks": blocks} if p == 0 and blocks is not None else {}
        yield dumps({"processor": p, "tasks": tasks, "bitsched": about | more})


def _records(path: str | Path) -> Iterator[Record]:
    """Read the lines; one that does not even begin like JSON is said to be none, in few words."""
    try:
        yield from read_records(path, format="json")
    except DataError as error:
        if not (error.message.startswith("not JSON") and error.message.endswith("at column 1")):
            raise
        raise DataError(
            "this line is not JSON",
            path=path,
            line=error.line,
            expected="a line of `bitsched plan`",
        ) from None


def _processor(record: Record) -> int:
    if "processor" not in record.data:
        raise record.error("no key 'processor'", "a line of `bitsched plan`")
    number = record.data["processor"]
    if type(number) is not int or not 0 <= number <= _MOST:
        raise record.error(f"processor is {_short(number)}", f"its number, 0 to {_MOST}")
    return number


def _tasks(record: Record) -> NDArray[np.int32]:
    tasks = record.data.get("tasks")
    if not isinstance(tasks, list):
        raise record.error("no list 'tasks'", _TASKS)
    if not tasks:
        return np.empty((0, 4), dtype=np.int32)
    if set(map(type, tasks)) != {list} or set(map(len, tasks)) != {4}:
        raise record.error(*_wrong_task(tasks))
    values = list(itertools.chain.from_iterable(tasks))
    if set(map(type, values)) != {int} or min(values) < -1 or max(values) > _MOST:
        raise record.error(*_wrong_task(tasks))
    table = np.array(values, dtype=np.int32).reshape(-1, 4)
    if int(table[:, :3].min()) < 0:
        raise record.error(*_wrong_task(tasks))
    return table


def _wrong_task(tasks: list[Any]) -> tuple[str, str]:
    """Name the first entry that is not four whole numbers in their ranges."""
    for index, task in enumerate(tasks):
        if not isinstance(task, list) or len(task) != 4:
            return f"task {index} is {_short(task)}", "[head, kv, q, rank]"
        for name, value in zip(("head", "kv", "q", "rank"), task, strict=True):
            least = -1 if name == "rank" else 0
            if type(value) is not int or not least <= value <= _MOST:
                expected = f"a whole number from {least} to {_MOST}"
                return f"task {index}: {name} is {_short(value)}", expected
    return "tasks are not what they should be", _TASKS


def _short(value: object) -> str:
    text = dumps(value).decode().strip()
    return text if len(text) <= 40 else f"{text[:37]}..."


def _about(record: Record) -> dict[str, object]:
    about = record.data.get("bitsched", {})
    if not isinstance(about, dict):
        raise record.error(f"'bitsched' is {_short(about)}", "an object")
    return about

"""Numbers records in the order in which they come."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A record that went through toolname",
    "type": "object",
    "properties": {
        "toolname": {
            "type": "object",
            "properties": {"n": {"type": "integer", "description": "place in the input"}},
            "required": ["n"],
            "additionalProperties": False,
        }
    },
    "required": ["toolname"],
}


def numbered(records: Iterable[Mapping[str, Any]], *, start: int = 0) -> Iterator[dict[str, Any]]:
    """Give each record with its place in the input, counted from `start`, as `toolname.n`."""
    for n, record in enumerate(records, start):
        yield {**record, "toolname": {"n": n}}


def time_numbering(
    records: Iterable[Mapping[str, Any]], *, repeats: int = 5
) -> Iterator[dict[str, Any]]:
    """Time `numbered` on records held in memory: one row per repeat, wall time in seconds."""
    held = list(records)
    for repeat in range(repeats):
        began = time.perf_counter()
        count = sum(1 for _ in numbered(held))
        yield {"repeat": repeat, "records": count, "wall_s": time.perf_counter() - began}

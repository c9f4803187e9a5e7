"""The record of `discover --format json`, as a source: its edges, variables and learned tiers."""

from __future__ import annotations

from typing import Any

from papercuts.errors import DataError
from papercuts.jsontext import loads, why_not_json
from tierprune.graphfile import Edge, GraphFile
from tierprune.pag import Mark

_LEFT = {"<": Mark.ARROW, "o": Mark.CIRCLE, "-": Mark.TAIL}
_RIGHT = {">": Mark.ARROW, "o": Mark.CIRCLE, "-": Mark.TAIL}
_EXPECTED = "the record of `tierprune discover --format json`"


def parse(text: str, source: str) -> GraphFile:
    """Read one record; see `tierprune.formats.parse`."""
    lines = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    if len(lines) != 1:
        raise DataError(f"{len(lines)} lines", path=source, expected=f"{_EXPECTED}, on one line")
    number, line = lines[0]
    try:
        record = loads(line.encode())
    except (ValueError, RecursionError) as error:
        what, expected = why_not_json(line.encode(), error)
        raise DataError(what, path=source, line=number, expected=expected) from None
    try:
        edges = [_edge(each, number) for each in record["edges"]]
        names = list(dict.fromkeys(map(_text, record["variables"])))
        band = int(record["first_tier"]), int(record["last_tier"])
    except (KeyError, TypeError, ValueError, AttributeError):
        what = "JSON that is no learned graph"
        raise DataError(what, path=source, line=number, expected=_EXPECTED) from None
    known = set(names)
    for edge in edges:
        if not {edge.a, edge.b} <= known:
            what = f"an edge of {edge.a} and {edge.b}, of which one is no variable"
            raise DataError(what, path=source, line=number)
    return GraphFile(names, edges, "record", source, learned=True, learned_tiers=band)


def _edge(each: dict[str, Any], line: int) -> Edge:
    left, _, right = each["edge"]
    return Edge(_text(each["a"]), _text(each["b"]), _LEFT[left], _RIGHT[right], line)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a name is text")
    return value

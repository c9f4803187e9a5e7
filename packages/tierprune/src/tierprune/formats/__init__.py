"""Graphs in files: DOT, GraphML, dagitty, edge lists; BIF and records of `discover` as sources.

`read` finds the format by the suffix (.dot .gv .graphml .xml .dagitty .edges .bif, each also with
.gz, .xz or .zst) and else by the first words; a graph is written back in the format it came in. A
BIF file holds more than a graph, so what came from one is written as an edge list.
"""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import import_module
from typing import Literal

from papercuts.compression import SUFFIXES
from papercuts.errors import DataError
from papercuts.log import get_logger
from papercuts.streams import open_input, open_output
from tierprune.compressed import check_not_compressed
from tierprune.graphfile import GraphFile

FormatName = Literal["dot", "graphml", "dagitty", "edges", "bif", "record"]

_BY_SUFFIX: dict[str, FormatName] = {
    ".dot": "dot",
    ".gv": "dot",
    ".graphml": "graphml",
    ".xml": "graphml",
    ".dagitty": "dagitty",
    ".edges": "edges",
    ".bif": "bif",
}
_LEADING_COMMENTS = re.compile(r"(?:\s+|//[^\n]*|#[^\n]*|/\*.*?\*/)*", re.DOTALL)
_FIRST_WORDS: list[tuple[FormatName, str]] = [
    ("graphml", r"<"),
    ("dot", r"(?i:(?:strict\s+)?(?:di)?graph)\b[^{}\n<>-]*\{"),
    ("dagitty", r"(?:dag|pdag|mag|pag)\b[^{}\n<>-]*\{"),
    ("record", r'\{\s*"'),
    ("bif", r"(?:network|variable|probability)\b[^{}<>-]*\{"),
]


def read(path: str, format: FormatName | None = None) -> GraphFile:  # noqa: A002
    """Read the graph of a file (- is stdin), without its latent variables.

    Variables that the file marks as latent are projected out, which adds bidirected edges between
    those that share one, and a line of the log says so. Raises `InputError` for a file that cannot
    be read and `DataError`, with FILE:LINE, for one that is not such a graph.
    """
    with open_input(path) as file:
        data = file.read()
    check_not_compressed(data, path)
    source = "stdin" if path == "-" else path
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(f"{source}:{line}: not UTF-8 (expected a graph as UTF-8 text)") from None
    graph = parse(text, format or detect(text, path), source)
    if not graph.latent:
        return graph
    seen = graph.observed()
    get_logger(__name__).info(
        "%s: latent variables are projected out, bidirected edges stand for them: %s",
        source,
        ", ".join(graph.latent),
    )
    return seen


def parse(text: str, format: FormatName, source: str = "graph") -> GraphFile:  # noqa: A002
    """Read a graph, latent variables included, from text; `source` names it in messages.

    Raises `DataError` with source and line for text that is not a graph in this format.
    """
    graph = import_module(f"{__name__}.{format}").parse(text.replace("\r\n", "\n"), source)
    assert isinstance(graph, GraphFile)  # noqa: S101 (said for the type checker)
    if not graph.names:
        raise DataError(f"{source}: there is no variable (expected a graph as {format})")
    if "" in graph.names:
        raise DataError(f"{source}: a variable without a name")
    return graph


def detect(text: str, path: str = "-") -> FormatName:
    """Give the format of `text`: by the suffix of `path` where that is one, else by its start."""
    name = path.lower()
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    for suffix, known in _BY_SUFFIX.items():
        if name.endswith(suffix):
            return known
    skipped = _LEADING_COMMENTS.match(text)
    start = skipped.end() if skipped else 0
    for known, pattern in _FIRST_WORDS:
        if re.compile(pattern).match(text, start):
            return known
    return "edges"


def dumps(graph: GraphFile) -> str:
    """Write a graph as text in its format (BIF and JSON records: as an edge list).

    Raises `DataError` for a name that the format cannot hold.
    """
    known = "edges" if graph.format in ("bif", "record") else graph.format
    text = import_module(f"{__name__}.{known}").dumps(graph)
    assert isinstance(text, str)  # noqa: S101 (said for the type checker)
    return text


def converted(graph: GraphFile, format: str) -> GraphFile:  # noqa: A002
    """Give the graph in another format, without what only its own can say of nodes and edges."""
    if format == graph.format:
        return graph
    return replace(graph, format=format, attributes={}, edge_attributes={}, about={})


def write(graph: GraphFile, output: str, *, force: bool = False) -> None:
    """Write a graph to a file, whole or not at all, or to stdout (-); compressed by suffix.

    Raises `OutputError` for a file that exists, unless `force`, or cannot be written, and as
    `dumps` does.
    """
    text = dumps(graph)
    with open_output(output, force=force) as out:
        out.write(text.encode())

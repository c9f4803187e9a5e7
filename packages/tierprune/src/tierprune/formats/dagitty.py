"""dagitty text: `dag { A -> B <- C ; A <-> B ; U [latent] ; U -> {A B} }`.

The kinds `dag`, `pdag`, `mag` and `pag` are read alike, and written as read. `->` and `<->` are as
everywhere, `@` is a circle (`A @-> B`), `--` has two tails. What stands in brackets (positions,
exposure, outcome) and `bb="..."` come back. Nodes marked `latent` are latent variables.

`pag` marks a graph that was learnt; `learned="tiers 3 to 4"` in it says which tiers were. dagitty's
own grammar allows such a statement and passes over it.
"""

from __future__ import annotations

import re

from tierprune.formats.statements import (
    Attributes,
    Dialect,
    Parser,
    brackets,
    plain,
    quoted,
    statement_of,
)
from tierprune.graphfile import GraphFile
from tierprune.pag import Mark

_LEFT = {"<": Mark.ARROW, "@": Mark.CIRCLE, "-": Mark.TAIL}
_RIGHT = {">": Mark.ARROW, "@": Mark.CIRCLE, "-": Mark.TAIL}
_SIGNS = {
    f"{left if left != '-' else ''}-{right}": (_LEFT[left], _RIGHT[right])
    for left in _LEFT
    for right in _RIGHT
}
# A tail beside another mark is not written: -> and <-, but @-- and --@ have one dash more.
_SIGNS["<-"] = _SIGNS.pop("<--")
_SIGNS["--@"] = _SIGNS.pop("-@")
_WRITTEN = {marks: sign for sign, marks in _SIGNS.items()}
_BARE = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def _marks(sign: str, said: Attributes) -> tuple[Mark, Mark]:  # noqa: ARG001 (none is used)
    return _SIGNS[sign]


_DIALECT = Dialect(tuple(_SIGNS), False, _marks)


def parse(text: str, source: str) -> GraphFile:
    """Read dagitty text; see `tierprune.formats.parse`."""
    parser = Parser(_DIALECT, text, source)
    kind = parser.keyword("dag", "pdag", "mag", "pag", "digraph", "graph")
    if kind is None:
        raise parser.error(parser.token, "dag, pdag, mag or pag")
    title = "" if parser.token.kind == "sign" else parser.value()
    parser.body()
    latent = [name for name, said in parser.nodes.items() if {"latent", "l", "u"} & said.keys()]
    told = plain(parser.about.pop("learned", "yes" if kind == "pag" else "no"))
    graph = GraphFile(
        list(parser.nodes),
        parser.edges,
        "dagitty",
        source,
        {name: said for name, said in parser.nodes.items() if said},
        parser.edge_attributes,
        {"kind": kind, "title": title, "graph": parser.about},
        latent,
    )
    return graph.marked_learned(told, source)


def dumps(graph: GraphFile) -> str:
    """Write dagitty text; the kind is `pag` if learnt, or with circles and no kind read."""
    kind = graph.about.get("kind") or ("pag" if graph.has_circles() else "dag")
    kind = "pag" if graph.learned else kind
    title = graph.about.get("title", "")
    lines = [f"{kind} {title} {{" if title else f"{kind} {{"]
    lines += [statement_of(*item) for item in graph.about.get("graph", {}).items()]
    if graph.learned_tiers:
        lines.append(statement_of("learned", quoted(graph.learned_text())))
    lines += [_id(name) + brackets(graph.attributes.get(name, {})) for name in graph.names]
    for edge in graph.edges:
        said = brackets(graph.edge_attributes.get(edge[:4], {}))
        lines.append(f"{_id(edge.a)} {_WRITTEN[edge.at_a, edge.at_b]} {_id(edge.b)}{said}")
    return "\n".join([*lines, "}", ""])


def _id(name: str) -> str:
    return name if _BARE.fullmatch(name) else quoted(name)

"""DOT, the language of Graphviz: marks are the arrowheads that Graphviz would draw.

`A -> B` is a cause and its effect, `A -> B [dir=both]` a latent common cause. With `dir=both` the
attributes `arrowtail` (at A) and `arrowhead` (at B) are `normal` (arrowhead), `odot` (circle) or
`none` (tail). `A -- B` has two tails unless it says `dir=both`. A node with `latent=true` or
`observed=no` is a latent variable. The graph attribute `learned="tiers 3 to 4"` (or `learned=yes`)
marks a PAG that was learnt.

Subgraphs, clusters, defaults (`node [...]`), ports and HTML strings are read; clusters are not
written again, defaults are written with each node and edge.
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
from tierprune.graphfile import Edge, GraphFile
from tierprune.pag import Mark

_HEADS = {
    **dict.fromkeys(("normal", "vee", "open", "empty", "onormal"), Mark.ARROW),
    **dict.fromkeys(("odot", "dot"), Mark.CIRCLE),
    "none": Mark.TAIL,
}
_SHAPES = {Mark.ARROW: "normal", Mark.CIRCLE: "odot", Mark.TAIL: "none"}
_YES = ("true", "yes", "1")
_BARE = re.compile(r"[^\W\d]\w*|-?(?:\.\d+|\d+(?:\.\d*)?)", re.ASCII)
_RESERVED = ("node", "edge", "graph", "digraph", "subgraph", "strict")


def _marks(sign: str, said: Attributes) -> tuple[Mark, Mark]:
    direction = plain(said.pop("dir", "forward" if sign == "->" else "none")).lower()
    if direction not in ("forward", "back", "both", "none"):
        raise ValueError(f"dir={direction} (expected forward, back, both or none)")
    marks = []
    for end, shown in (("arrowtail", ("back", "both")), ("arrowhead", ("forward", "both"))):
        shape = plain(said.pop(end, "normal" if direction in shown else "none")).lower()
        if shape not in _HEADS:
            raise ValueError(f"{end}={shape} (expected normal, odot or none)")
        if direction not in shown and shape != "none":
            raise ValueError(f"{end}={shape} is not drawn with dir={direction} (expected dir=both)")
        marks.append(_HEADS[shape])
    return marks[0], marks[1]


_DIALECT = Dialect(("->", "--"), True, _marks)


def parse(text: str, source: str) -> GraphFile:
    """Read DOT; see `tierprune.formats.parse`."""
    parser = Parser(_DIALECT, text, source)
    parser.keyword("strict")
    kind = parser.keyword("digraph", "graph")
    if kind is None:
        raise parser.error(parser.token, "digraph or graph")
    title = "" if parser.token.kind == "sign" else parser.value()
    parser.body()
    latent = [
        name
        for name, said in parser.nodes.items()
        if plain(said.get("latent", "")).lower() in _YES
        or plain(said.get("observed", "")).lower() in ("no", "false", "0")
    ]
    told = plain(parser.about.pop("learned", "no"))
    graph = GraphFile(
        list(parser.nodes),
        parser.edges,
        "dot",
        source,
        {name: said for name, said in parser.nodes.items() if said},
        parser.edge_attributes,
        {"title": title, "graph": parser.about},
        latent,
    )
    return graph.marked_learned(told, source)


def dumps(graph: GraphFile) -> str:
    """Write a digraph: its attributes, a line for each node, a line for each edge."""
    title = graph.about.get("title", "")
    lines = [f"digraph {title} {{" if title else "digraph {"]
    lines += [f"  {statement_of(*item)};" for item in graph.about.get("graph", {}).items()]
    if told := graph.learned_text():
        lines.append(f"  {statement_of('learned', quoted(told))};")
    for name in graph.names:
        lines.append(f"  {_id(name)}{brackets(graph.attributes.get(name, {}))};")
    for edge in graph.edges:
        said = graph.edge_attributes.get(edge[:4], {})
        lines.append(f"  {_id(edge.a)} -> {_id(edge.b)}{brackets({**_shown(edge), **said})};")
    return "\n".join([*lines, "}", ""])


def _shown(edge: Edge) -> Attributes:
    """Give the attributes that show the marks of an edge."""
    match edge.at_a, edge.at_b:
        case Mark.TAIL, Mark.ARROW:
            return {}
        case Mark.ARROW, Mark.TAIL:
            return {"dir": "back"}
        case Mark.ARROW, Mark.ARROW:
            return {"dir": "both"}
        case Mark.TAIL, Mark.TAIL:
            return {"dir": "none"}
    return {"dir": "both", "arrowtail": _SHAPES[edge.at_a], "arrowhead": _SHAPES[edge.at_b]}


def _id(name: str) -> str:
    return name if _BARE.fullmatch(name) and name.lower() not in _RESERVED else quoted(name)

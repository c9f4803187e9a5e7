"""GraphML: the edge data `marks` holds what stands at the two ends.

A directed edge without it is `-->`, an undirected one `---`. The name of a variable is the id of
its node, or its data `name` where every node has a name of its own (as igraph writes). A node whose
data `latent` is true is a latent variable. The graph data `learned` (`tiers 3 to 4`, `yes`) marks a
PAG that was learnt. Other data come back unchanged.

The parser is expat, used without its tree builders: files that declare entities are refused at the
declaration, so none is ever expanded (no entity bombs), and external ones are never fetched.
"""

from __future__ import annotations

import re
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from papercuts.errors import DataError
from tierprune.graphfile import Edge, GraphFile
from tierprune.pag import Mark, arrow

_MARKS = re.compile(r"([<o-])-([>o-])")
_LEFT = {"<": Mark.ARROW, "o": Mark.CIRCLE, "-": Mark.TAIL}
_RIGHT = {">": Mark.ARROW, "o": Mark.CIRCLE, "-": Mark.TAIL}
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SPACE = "http://graphml.graphdrawing.org/xmlns"
_ESCAPES = {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}


class _Reader:
    """Collects what a file says, element by element."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.keys: dict[str, dict[str, str]] = {}
        self.defaults: dict[str, str] = {}
        self.nodes: dict[str, dict[str, str]] = {}
        self.edges: list[tuple[dict[str, str], dict[str, str], int]] = []
        self.about: dict[str, str] = {}
        self.directed = True
        self.stack: list[dict[str, str]] = []  # whose data the open elements give
        self.open: list[str] = []
        self.key = ""
        self.text: list[str] = []
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.text.append
        self.parser.EntityDeclHandler = self.entity
        self.parser.SkippedEntityHandler = self.entity
        self.parser.buffer_text = True

    def error(self, message: str) -> DataError:
        return DataError(f"{self.source}:{self.parser.CurrentLineNumber}: {message}")

    def entity(self, *_: Any) -> None:
        raise self.error("an entity of its own (expected plain GraphML)")

    def start(self, tag: str, given: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]
        if not self.open and tag != "graphml":
            raise self.error(f"<{tag}> (expected <graphml>)")
        self.open.append(tag)
        self.text.clear()
        match tag:
            case "key":
                self.keys[self.need(given, tag, "id")] = given
            case "graph":
                self.directed = given.get("edgedefault", "directed") != "undirected"
                self.stack.append(self.about if len(self.stack) == 0 else {})
            case "node":
                name = self.need(given, tag, "id")
                if name in self.nodes:
                    raise self.error(f"two nodes with the id {name}")
                self.nodes[name] = {}
                self.stack.append(self.nodes[name])
            case "edge":
                self.need(given, tag, "source")
                self.need(given, tag, "target")
                kind = {"true": True, "false": False}.get(given.get("directed", ""), self.directed)
                data: dict[str, str] = {}
                self.edges.append(
                    ({**given, "directed": str(kind)}, data, self.parser.CurrentLineNumber)
                )
                self.stack.append(data)
            case "data":
                self.key = self.need(given, tag, "key")
            case "hyperedge":
                raise self.error("a hyperedge (expected edges between two nodes)")

    def end(self, tag: str) -> None:
        tag = tag.rpartition(":")[2]
        self.open.pop()
        text = "".join(self.text)
        self.text.clear()
        if tag == "default" and self.open[-1:] == ["key"]:
            self.defaults[list(self.keys)[-1]] = text
        elif tag == "data" and self.stack and self.key:
            self.stack[-1][self.key] = text
            self.key = ""
        elif tag in ("graph", "node", "edge"):
            self.stack.pop()

    def need(self, given: dict[str, str], tag: str, attribute: str) -> str:
        if attribute not in given:
            raise self.error(f"<{tag}> without {attribute}")
        return given[attribute]

    def key_of(self, what: str, title: str) -> str | None:
        """Give the id of the key that `what` elements use for data of this title."""
        for key, given in self.keys.items():
            if given.get("attr.name", key) == title and given.get("for", "all") in (what, "all"):
                return key
        return None


def parse(text: str, source: str) -> GraphFile:
    """Read GraphML; see `tierprune.formats.parse`."""
    reader = _Reader(source)
    try:
        # The text was decoded already, whatever encoding its first line declares.
        reader.parser.Parse(re.sub(r"\A\s*<\?xml[^>]*\?>", _same_lines, text), True)
    except expat.ExpatError as error:
        what = expat.ErrorString(error.code)
        raise DataError(f"{source}:{error.lineno}: {what} (expected GraphML)") from None
    names = _names(reader)
    key, latent_key = reader.key_of("edge", "marks"), reader.key_of("node", "latent")
    edges, said = [], {}
    for given, data, line in reader.edges:
        ends = []
        for side in ("source", "target"):
            if given[side] not in names:
                raise DataError(f"{source}:{line}: {given[side]} is not a node")
            ends.append(names[given[side]])
        plain = "-->" if given["directed"] == "True" else "---"
        marks = data.pop(key, reader.defaults.get(key, plain)) if key else plain
        found = _MARKS.fullmatch(marks.strip())
        if found is None:
            raise DataError(
                f"{source}:{line}: marks {marks!r} (expected --> <-> o-> o-o and so on)"
            )
        edge = Edge(ends[0], ends[1], _LEFT[found[1]], _RIGHT[found[2]], line)
        edges.append(edge)
        if data or "id" in given:
            said[edge[:4]] = {"data": data, "id": given.get("id")}
    latent = []
    for id_, data in reader.nodes.items():
        value = data.get(latent_key, reader.defaults.get(latent_key, "")) if latent_key else ""
        if value.strip().lower() in ("true", "1", "yes"):
            latent.append(names[id_])
    own = reader.key_of("graph", "learned")
    if own and reader.keys[own].get("for") != "graph":
        own = None  # one of the file's own, for all elements
    told = reader.about.pop(own, reader.defaults.get(own, "no")) if own else "no"
    keys = {
        k: {**v, "default": reader.defaults.get(k)}
        for k, v in reader.keys.items()
        if k not in (key, own)
    }
    graph = GraphFile(
        list(names.values()),
        edges,
        "graphml",
        source,
        {names[id_]: {"id": id_, "data": data} for id_, data in reader.nodes.items()},
        said,
        {"keys": keys, "data": reader.about},
        latent,
    )
    return graph.marked_learned(told, source)


def _same_lines(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


def _names(reader: _Reader) -> dict[str, str]:
    """Give the name of each node by its id."""
    key = reader.key_of("node", "name")
    titles = {id_: data.get(key or "", "") for id_, data in reader.nodes.items()}
    if key and all(titles.values()) and len(set(titles.values())) == len(titles):
        return titles
    return {id_: id_ for id_ in reader.nodes}


def dumps(graph: GraphFile) -> str:
    """Write GraphML; `DataError` for a name with a control character, which XML cannot hold."""
    for name in graph.names:
        if _NOT_XML.search(name):
            raise DataError(f"{name!r} holds a character that XML has not (--to edges can hold it)")
    keys = graph.about.get("keys", {})
    # Attributes that a new file needs; the ids must not be taken.
    marks, learned = "marks", "learned"
    while marks in keys:
        marks += "_"
    while learned in keys:
        learned += "_"
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<graphml xmlns="{_SPACE}">']
    for given in keys.values():
        default = given.get("default")
        inner = "" if default is None else f"<default>{_text(default)}</default>"
        lines.append(_element("key", {k: v for k, v in given.items() if k != "default"}, inner, 2))
    own = {"id": marks, "for": "edge", "attr.name": "marks", "attr.type": "string"}
    lines.append(_element("key", own, "", 2))
    told = graph.learned_text()
    if told:
        own = {"id": learned, "for": "graph", "attr.name": "learned", "attr.type": "string"}
        lines.append(_element("key", own, "", 2))
    lines.append('  <graph edgedefault="directed">')
    lines += [_data(learned, told, 4)] if told else []
    lines += [_data(k, v, 4) for k, v in graph.about.get("data", {}).items()]
    ids = {name: graph.attributes.get(name, {}).get("id", name) for name in graph.names}
    if len(set(ids.values())) < len(ids):
        ids = {name: name for name in graph.names}
    for name in graph.names:
        data = graph.attributes.get(name, {}).get("data", {})
        inner = "".join("\n" + _data(k, v, 6) for k, v in data.items())
        lines.append(_element("node", {"id": ids[name]}, inner and inner + "\n    ", 4))
    for edge in graph.edges:
        said = graph.edge_attributes.get(edge[:4], {})
        given = {"source": ids[edge.a], "target": ids[edge.b]}
        if said.get("id"):
            given = {"id": said["id"], **given}
        data = {**said.get("data", {}), marks: arrow(edge.at_a, edge.at_b)}
        inner = "".join("\n" + _data(k, v, 6) for k, v in data.items())
        lines.append(_element("edge", given, inner + "\n    ", 4))
    return "\n".join([*lines, "  </graph>", "</graphml>", ""])


def _element(tag: str, given: dict[str, str], inner: str, indent: int) -> str:
    words = "".join(f" {k}={quoteattr(v, _ESCAPES)}" for k, v in given.items())
    return " " * indent + (f"<{tag}{words}>{inner}</{tag}>" if inner else f"<{tag}{words}/>")


def _data(key: str, value: str, indent: int) -> str:
    return f"{' ' * indent}<data key={quoteattr(key, _ESCAPES)}>{_text(value)}</data>"


def _text(value: str) -> str:
    text = value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("\r", "&#13;")

"""Edge lists: one edge a line.

    age -> drug              # a cause and its effect
    drug <-> stroke          # a latent common cause
    drug o-> "a, b"          # a circle: undecided
    blood pressure           # a variable without edges

The comment `# learned: tiers 3 to 4` marks a PAG that was learnt, and `# learned: yes` one of which
it is not known which tiers were. `tierprune discover` writes it first.

Marks are `-` (tail), `>` or `<` (arrowhead) and `o` (circle); `->` and `<-` are short for `-->` and
`<--`. Names stand as they are, spaces inside included; a name that looks like something else (it
holds an arrow, a comma, a bracket, a quote or ` #`) is a JSON string in double quotes.
"""

from __future__ import annotations

import json
import re

from papercuts.errors import DataError
from tierprune.graphfile import Edge, GraphFile
from tierprune.pag import Mark, arrow

_MARKS = {"<": Mark.ARROW, ">": Mark.ARROW, "o": Mark.CIRCLE, "-": Mark.TAIL}
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_ARROW = r"(?<!\S)[<o-]-[>o-](?!\S)|(?<!\S)(?:->|<-)(?!\S)|<->|-->|<--|->|<-|---"
_ONLY_QUOTED = (",", "{", "}", "[", "]")  # they belong to other formats when they stand bare
_ITEM = re.compile(rf"\s*(?:(?P<quoted>{_QUOTED})|(?P<arrow>{_ARROW})|(?P<rest>\S))")
_PLAIN_END = re.compile(rf'{_ARROW}|(?<!\S)#|"')
_MARK = re.compile(r"\s*#\s*learned:(.*)")
_EXPECTED = "expected A -> B, A <-> B, A o-> B, A o-o B, A --- B or a lone name"


def parse(text: str, source: str) -> GraphFile:
    """Read an edge list; see `tierprune.formats.parse`."""
    names: dict[str, None] = {}
    edges = []
    marks: dict[str, int] = {}
    for line, content in enumerate(text.split("\n"), 1):
        if told := _MARK.match(content):
            marks.setdefault(told[1].strip(), line)
        items = _items(content, f"{source}:{line}")
        kinds = [kind for kind, _ in items]
        if kinds == ["name"]:
            names[items[0][1]] = None
        elif kinds == ["name", "arrow", "name"]:
            a, mark, b = (item for _, item in items)
            names[a] = names[b] = None
            edges.append(Edge(a, b, _MARKS[mark[0]], _MARKS[mark[-1]], line))
        elif kinds:
            raise DataError(f"{source}:{line}: {content.strip()!r} is not an edge ({_EXPECTED})")
    graph = GraphFile(list(names), edges, "edges", source)
    if len(marks) > 1:
        raise DataError(
            f"{source}:{max(marks.values())}: a second mark `# learned:`, unlike the first"
        )
    for text_, line in marks.items():
        graph = graph.marked_learned(text_, f"{source}:{line}")
    return graph


def dumps(graph: GraphFile) -> str:
    """Write an edge list: the mark of a learnt graph, variables without edges, then the edges."""
    linked = {name for edge in graph.edges for name in edge[:2]}
    told = graph.learned_text()
    lines = [f"# learned: {told}"] if told else []
    lines += [_name(name) for name in graph.names if name not in linked]
    for a, b, at_a, at_b, _ in graph.edges:
        if at_a == Mark.ARROW and at_b != Mark.ARROW:
            a, b, at_a, at_b = b, a, at_b, at_a
        sign = "->" if (at_a, at_b) == (Mark.TAIL, Mark.ARROW) else arrow(at_a, at_b)
        lines.append(f"{_name(a)} {sign} {_name(b)}")
    return "".join(f"{line}\n" for line in lines)


def _items(content: str, where: str) -> list[tuple[str, str]]:
    items: list[tuple[str, str]] = []
    at, end = 0, len(content.rstrip())
    if content[:end].endswith(";"):
        end = len(content[: end - 1].rstrip())
    while at < end:
        found = _ITEM.match(content, at, end)
        if found is None:
            break
        if found["quoted"] is not None:
            items.append(("name", _unquoted(found["quoted"], where)))
            at = found.end()
        elif found["arrow"] is not None:
            items.append(("arrow", found["arrow"]))
            at = found.end()
        elif found["rest"] == "#" and not content[: found.start("rest")][-1:].strip():
            break
        else:
            start = found.start("rest")
            stop = _PLAIN_END.search(content, start + 1, end)
            at = stop.start() if stop else end
            name = content[start:at].strip()
            if '"' in (name[0], content[at : at + 1]):
                raise DataError(f"{where}: a quote that is not closed or stands inside a name")
            sign = next((sign for sign in _ONLY_QUOTED if sign in name), None)
            if sign or not name.isprintable():
                what = f"{name!r} holds {sign or 'a control character'} without double quotes"
                raise DataError(f"{where}: {what} ({_EXPECTED})")
            items.append(("name", name))
    return items


def _unquoted(text: str, where: str) -> str:
    try:
        value = json.loads(text, strict=False)
    except ValueError:
        raise DataError(f"{where}: {text} is not a JSON string") from None
    name = str(value)
    if name.encode("utf-8", "replace").decode() != name:
        raise DataError(f"{where}: {text} is half a character")
    return name


def _name(name: str) -> str:
    """Write a name bare where that reads back as the same."""
    try:
        bare = _items(name, "") == [("name", name)] and not name.startswith("<")  # as XML does
        if bare and _items(f"{name} -> {name}", "")[::2] == [("name", name)] * 2:
            return name
    except DataError:
        pass  # it needs quotes
    return json.dumps(name, ensure_ascii=False)

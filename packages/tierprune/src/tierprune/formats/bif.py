"""BIF, the format of Bayesian networks: its variables, and who is whose parent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from papercuts.errors import DataError
from tierprune.graphfile import Edge, GraphFile
from tierprune.pag import Mark

_TOKEN = re.compile(
    r'(?P<skip>\s+|//[^\n]*|/\*.*?\*/)|"(?P<quoted>[^"]*)"|(?P<word>[^\s{}()\[\];,|"]+)'
    r"|(?P<sign>[{}()\[\];,|])",
    re.DOTALL,
)


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


def parse(text: str, source: str) -> GraphFile:
    """Read the structure of a BIF file; see `tierprune.formats.parse`. Tables are passed over."""
    names: dict[str, int] = {}
    edges: list[Edge] = []
    tokens = _tokens(text, source)
    for token in tokens:
        match token.text:
            case "network" | "property":
                _skip_block(tokens, source, token)
            case "variable":
                name = next(tokens)
                if name.kind != "word" or name.text in names:
                    raise _error(source, name, "the name of a variable, once")
                names[name.text] = name.line
                _skip_block(tokens, source, token)
            case "probability":
                edges += _parents(tokens, source)
                _skip_block(tokens, source, token)
            case _ if token.kind != "end":
                raise _error(source, token, "network, variable or probability")
    for edge in edges:
        for name_ in edge[:2]:
            if name_ not in names:
                raise DataError(f"{source}:{edge.line}: {name_} is not a variable of the network")
    return GraphFile(list(names), edges, "bif", source)


def _parents(tokens: Iterator[_Token], source: str) -> list[Edge]:
    """Read `( child | parent, parent )`; a comma or nothing may stand for the bar."""
    opening = next(tokens)
    if opening.text != "(":
        raise _error(source, opening, "( after probability")
    names = []
    for token in tokens:
        if token.text == ")" and token.kind == "sign":
            break
        if token.kind == "word":
            names.append(token)
        elif token.kind == "end" or token.text not in ("|", ","):
            raise _error(source, token, "names, | and )")
    if not names:
        raise _error(source, opening, "a variable in the brackets")
    child = names[0]
    return [Edge(p.text, child.text, Mark.TAIL, Mark.ARROW, child.line) for p in names[1:]]


def _skip_block(tokens: Iterator[_Token], source: str, start: _Token) -> None:
    depth = 0
    for token in tokens:
        if token.kind == "sign":
            depth += {"{": 1, "}": -1}.get(token.text, 0)
            if token.text == "}" and depth <= 0:
                return
            if token.text == ";" and depth == 0:
                return
    raise _error(source, start, "a block in { } that is closed")


def _tokens(text: str, source: str) -> Iterator[_Token]:
    at, line = 0, 1
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise DataError(f"{source}:{line}: a quote that is not closed")
        kind = str(found.lastgroup)
        if kind != "skip":
            yield _Token("word" if kind == "quoted" else kind, found[kind], line)
        line += text.count("\n", at, found.end())
        at = found.end()
    yield _Token("end", "the end of the file", line)


def _error(source: str, token: _Token, expected: str) -> DataError:
    return DataError(f"{source}:{token.line}: found {token.text} (expected {expected})")

"""The statements that DOT and dagitty share: nodes, edges, chains, groups, attributes in brackets.

Attribute values are kept as they stand in the file, quotes included, so that writing them again
changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from papercuts.errors import DataError
from tierprune.graphfile import Edge
from tierprune.pag import Mark

Attributes = dict[str, str]
MarksOf = Callable[[str, Attributes], tuple[Mark, Mark]]

_DEEPEST = 100
_WORD = r"-?(?:\.\d+|\d+(?:\.\d*)?)(?![\w.])|[\w.\u0080-\U0010ffff]+"
_ESCAPE = re.compile(r'\\(["\\])')


class Token(NamedTuple):
    """A piece of the text: word, quoted, html, sign, edge or end, and its line."""

    kind: str
    text: str
    line: int


@dataclass(frozen=True)
class Dialect:
    """What differs between the two: edge signs, comments, reserved words, and the marks of an edge.

    `marks` gives the marks of an edge by its sign and attributes, and takes those that it uses out
    of the attributes; it raises `ValueError` for a combination that means nothing.
    """

    signs: tuple[str, ...]
    words: bool  # whether node, edge, graph and subgraph are reserved, and names may have ports
    marks: MarksOf

    def tokens(self, text: str, source: str) -> list[Token]:
        """Cut the text; raises `DataError` for what can be no token."""
        edge = "|".join(re.escape(sign) for sign in sorted(self.signs, key=len, reverse=True))
        pattern = re.compile(
            rf'(?P<skip>\s+|//[^\n]*|/\*.*?\*/|^\#[^\n]*)|"(?P<quoted>(?:[^"\\]|\\.)*)"'
            rf"|(?P<edge>{edge})|(?P<word>{_WORD})|(?P<sign>[{{}}\[\];,:=+])",
            re.DOTALL | re.MULTILINE,
        )
        found, at, line = [], 0, 1
        while at < len(text):
            token = pattern.match(text, at)
            if token is None:
                html = _html_end(text, at) if self.words else at
                if html == at:
                    raise DataError(f"{source}:{line}: {self._trouble(text, at)}")
                found.append(Token("html", text[at:html], line))
                end = html
            else:
                end, kind = token.end(), str(token.lastgroup)
                if kind != "skip":
                    found.append(Token(kind, token[kind], line))
            line += text.count("\n", at, end)
            at = end
        found.append(Token("end", "the end of the file", line))
        return found

    def _trouble(self, text: str, at: int) -> str:
        if text[at] == '"':
            return "a quote that is not closed"
        if text.startswith("/*", at):
            return "a comment that is not closed"
        if text[at] == "<" and self.words and not text.startswith("<-", at):
            return "an HTML string that is not closed"
        start = max(text.rfind(space, 0, at) for space in " \t\n") + 1
        word = text[max(start, at - 10) : at + 10].split()[0]
        return f"found {word!r} (expected {' '.join(self.signs)})"


def _html_end(text: str, at: int) -> int:
    """Give the end of the HTML string <...> that starts at `at`, or `at` where there is none."""
    if text[at] != "<" or text.startswith("<-", at):
        return at
    depth = 0
    for end in range(at, len(text)):
        depth += {"<": 1, ">": -1}.get(text[end], 0)
        if depth == 0:
            return end + 1
    return at


@dataclass
class _Scope:
    """The defaults that hold in a graph or subgraph, and the attributes it has itself."""

    node: Attributes = field(default_factory=dict)
    edge: Attributes = field(default_factory=dict)
    graph: Attributes = field(default_factory=dict)

    def inner(self) -> _Scope:
        return _Scope(dict(self.node), dict(self.edge), {})


class Parser:
    """Reads statements up to the closing brace; what it found is in its attributes."""

    def __init__(self, dialect: Dialect, text: str, source: str) -> None:
        self.dialect, self.source = dialect, source
        self.tokens = dialect.tokens(text, source)
        self.at = 0
        self.nodes: dict[str, Attributes] = {}
        self.edges: list[Edge] = []
        self.edge_attributes: dict[tuple[str, str, Mark, Mark], Attributes] = {}
        self.about: Attributes = {}

    @property
    def token(self) -> Token:
        """The token to come."""
        return self.tokens[self.at]

    def take(self) -> Token:
        """Give the token to come and step past it (never past the end)."""
        token = self.token
        self.at += token.kind != "end"
        return token

    def error(self, token: Token, expected: str) -> DataError:
        """Make the error that `token` is not what was expected."""
        text = token.text if token.kind == "end" else repr(token.text)
        return DataError(f"{self.source}:{token.line}: found {text} (expected {expected})")

    def sign(self, text: str) -> bool:
        """Step past this sign if it comes next, and say whether it did."""
        if self.token.kind == "sign" and self.token.text == text:
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        """Step past this sign; `DataError` where another token stands."""
        if not self.sign(text):
            raise self.error(self.token, text)

    def keyword(self, *words: str) -> str | None:
        """Step past one of these bare words, in any case, and give it in lower case."""
        token = self.token
        if token.kind == "word" and token.text.lower() in words:
            self.at += 1
            return token.text.lower()
        return None

    def body(self) -> None:
        """Read { statements } and the end of the file."""
        self.expect("{")
        scope = _Scope()
        self.statements(scope, 1)
        self.about = scope.graph
        if self.token.kind != "end":
            raise self.error(self.token, "the end of the file after }")

    def statements(self, scope: _Scope, depth: int) -> list[str]:
        """Read statements and the closing brace; give the nodes that they name."""
        if depth > _DEEPEST:
            raise self.error(self.token, f"at most {_DEEPEST} groups in one another")
        named: dict[str, None] = {}
        while not self.sign("}"):
            if self.token.kind == "end":
                raise self.error(self.token, "}")
            if not (self.sign(";") or self.sign(",")):
                named.update(dict.fromkeys(self.statement(scope, depth)))
        return list(named)

    def statement(self, scope: _Scope, depth: int) -> list[str]:
        """Read one statement; give the nodes that it names."""
        following = self.tokens[min(self.at + 1, len(self.tokens) - 1)]
        if self.dialect.words and following[:2] == ("sign", "["):
            kind = self.keyword("node", "edge", "graph")
            if kind:
                getattr(scope, kind).update(self.attributes())
                return []
        if following[:2] == ("sign", "=") and self.token.kind != "sign":
            key = self.take()
            self.at += 1
            scope.graph[key.text] = self.value()
            return []
        return self.chain(scope, depth)

    def chain(self, scope: _Scope, depth: int) -> list[str]:
        """Read a node, a group, or edges A -> B -> {C D}, with the attributes behind them."""
        start = self.token
        ends = [self.end_point(scope, depth)]
        signs = []
        while self.token.kind == "edge":
            signs.append(self.take())
            ends.append(self.end_point(scope, depth))
        said: Attributes = {}
        while self.token[:2] == ("sign", "["):
            said.update(self.attributes())
        if not signs:
            names, _, group = ends[0]
            if said and group:
                raise self.error(start, "attributes behind a node or an edge, not a group")
            for name in () if group else names:
                self.nodes[name].update(said)
        for sign, tail, head in zip(signs, ends, ends[1:], strict=False):
            self.join(sign, tail, head, {**scope.edge, **said})
        return list(dict.fromkeys(name for names, _, _ in ends for name in names))

    def join(
        self,
        sign: Token,
        tail: tuple[list[str], str, bool],
        head: tuple[list[str], str, bool],
        said: Attributes,
    ) -> None:
        """Make the edges of one sign between all of one side and all of the other."""
        if tail[1]:
            said["tailport"] = tail[1]
        if head[1]:
            said["headport"] = head[1]
        try:
            marks = self.dialect.marks(sign.text, said)
        except ValueError as error:
            raise DataError(f"{self.source}:{sign.line}: {error}") from None
        for a in tail[0]:
            for b in head[0]:
                edge = Edge(a, b, *marks, sign.line)
                self.edges.append(edge)
                if said:
                    self.edge_attributes[edge[:4]] = dict(said)

    def end_point(self, scope: _Scope, depth: int) -> tuple[list[str], str, bool]:
        """Read a node or a group: its names, the port (of a node), and whether it is a group."""
        if self.dialect.words and self.keyword("subgraph"):
            if self.token.kind != "sign":
                self.name()
            if self.token[:2] != ("sign", "{"):
                raise self.error(self.token, "{ after subgraph")
        if self.sign("{"):
            return self.statements(scope.inner(), depth + 1), "", True
        name = self.name()
        if name not in self.nodes:
            self.nodes[name] = dict(scope.node)
        ports = []
        while self.dialect.words and self.sign(":"):
            ports.append(self.value())
        return [name], _port(ports), False

    def name(self) -> str:
        """Read the name of a node."""
        token = self.take()
        if token.kind == "quoted":
            text = token.text
            while self.dialect.words and self.sign("+"):
                more = self.take()
                if more.kind != "quoted":
                    raise self.error(more, "a quoted string after +")
                text += more.text
            return unescaped(text)
        if token.kind not in ("word", "html"):
            raise self.error(token, "a name")
        return token.text

    def value(self) -> str:
        """Read an attribute's value, as it stands."""
        token = self.take()
        if token.kind == "quoted":
            text = token.text
            while self.dialect.words and self.sign("+"):
                text += self.take().text
            return f'"{text}"'
        if token.kind not in ("word", "html"):
            raise self.error(token, "a value")
        return token.text

    def attributes(self) -> Attributes:
        """Read [a=b, c="d e"; f]; a word alone has an empty value."""
        self.expect("[")
        said: Attributes = {}
        while not self.sign("]"):
            if self.sign(",") or self.sign(";"):
                continue
            token = self.take()
            if token.kind not in ("word", "quoted", "html"):
                raise self.error(token, "an attribute or ]")
            said[token.text] = self.value() if self.sign("=") else ""
        return said


def _port(ports: list[str]) -> str:
    """Give a:n as the value of an attribute `tailport` or `headport`."""
    if len(ports) < 2:
        return "".join(ports)
    return quoted(":".join(plain(port) for port in ports))


def unescaped(text: str) -> str:
    """Take the escapes of quotes and backslashes, and line continuations, out of a string."""
    return _ESCAPE.sub(r"\1", text.replace("\\\n", ""))


def quoted(name: str) -> str:
    """Write a name as a quoted string."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def plain(value: str) -> str:
    """Give what a value says, without its quotes."""
    return unescaped(value[1:-1]) if value.startswith('"') and len(value) > 1 else value


def brackets(said: Mapping[str, str]) -> str:
    """Write attributes in brackets with a space before, or nothing where there are none."""
    if not said:
        return ""
    words = (f"{_key(key)}={value}" if value else _key(key) for key, value in said.items())
    return f" [{', '.join(words)}]"


def statement_of(key: str, value: str) -> str:
    """Write `key=value`, as it was read."""
    return f"{_key(key)}={value}"


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z_]\w*", key, re.ASCII) else f'"{key}"'

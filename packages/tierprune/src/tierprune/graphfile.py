"""Graphs as files: what every format is read into and written from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from papercuts.errors import DataError
from tierprune.admg import ADMG, CycleError
from tierprune.pag import PAG, Mark

_LEARNED = re.compile(
    r"(?P<none>no tiers)|tiers (?P<first>\d{1,6}) to (?P<last>\d{1,6})"
    r"|(?i:true|yes|1)|(?P<no>(?i:false|no|0))",
    re.ASCII,
)


class Edge(NamedTuple):
    """An edge between a and b, the mark at each end, and the line of the file where it stands."""

    a: str
    b: str
    at_a: Mark
    at_b: Mark
    line: int = 0


@dataclass
class GraphFile:
    """A graph as read: names in the order of the file, edges, and what else the file says of them.

    `source` names the file in messages. `attributes` keeps, by name, what a format says of a node
    (a dagitty position, a DOT label), `edge_attributes` what it says of an edge, by the edge
    without its line, and `about` what it says of the whole, so that writing the graph again in its
    format loses nothing. `latent` names the nodes that the file marks as not observed.

    `learned` says that the file is marked as a PAG learnt from data, and `learned_tiers` which
    tiers were (first, last), where it tells; first > last says that none was. Every format keeps
    both.
    """

    names: list[str]
    edges: list[Edge]
    format: str
    source: str = "graph"
    attributes: dict[str, Any] = field(default_factory=dict)
    edge_attributes: dict[tuple[str, str, Mark, Mark], Any] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    latent: list[str] = field(default_factory=list)
    learned: bool = False
    learned_tiers: tuple[int, int] | None = None

    def where(self, edge: Edge) -> str:
        """Give `FILE:LINE` of an edge, for messages."""
        return f"{self.source}:{edge.line}" if edge.line else self.source

    def has_circles(self) -> bool:
        """Say whether an end of an edge is undecided, as in a PAG that was learnt."""
        return any(Mark.CIRCLE in (edge.at_a, edge.at_b) for edge in self.edges)

    def learned_text(self) -> str:
        """Give what a file says of `learned`: `tiers 3 to 4`, `no tiers`, `yes` or nothing."""
        if not self.learned:
            return ""
        if self.learned_tiers is None:
            return "yes"
        first, last = self.learned_tiers
        return f"tiers {first} to {last}" if first <= last else "no tiers"

    def marked_learned(self, text: str, where: str) -> GraphFile:
        """Give the graph with what a file says of `learned`; `DataError` for another text."""
        found = _LEARNED.fullmatch(text.strip())
        if found is None:
            raise DataError(
                f"{where}: learned: {text.strip()!r} (expected tiers A to B, no tiers, yes or no)"
            )
        if found["no"]:
            return self
        tiers = (1, 0) if found["none"] else None
        if found["first"]:
            tiers = int(found["first"]), int(found["last"])
        return replace(self, learned=True, learned_tiers=tiers)

    def narrowed(self, first: int, last: int) -> GraphFile:
        """Give a learnt graph, of which only these tiers are left, with this said of it."""
        if not self.learned:
            return self
        a, b = self.learned_tiers or (first, last)
        return replace(self, learned_tiers=(max(a, first), min(b, last)))

    def admg(self) -> ADMG:
        """Give the graph as an ADMG; an edge that comes twice counts once.

        Raises `DataError`, naming file, line and edge, for a mark that an ADMG has not (a circle,
        a tail at both ends), an edge from a variable to itself and a directed cycle.
        """
        directed: dict[tuple[str, str], Edge] = {}
        bidirected: list[tuple[str, str]] = []
        for edge in self.edges:
            if edge.a == edge.b:
                raise DataError(f"{self.where(edge)}: an edge from {edge.a} to itself")
            match edge.at_a, edge.at_b:
                case Mark.TAIL, Mark.ARROW:
                    directed.setdefault((edge.a, edge.b), edge)
                case Mark.ARROW, Mark.TAIL:
                    directed.setdefault((edge.b, edge.a), edge)
                case Mark.ARROW, Mark.ARROW:
                    bidirected.append((edge.a, edge.b))
                case _:
                    raise DataError(
                        f"{self.where(edge)}: the edge between {edge.a} and {edge.b} is neither "
                        "directed nor bidirected (expected a fully known graph)"
                    )
        try:
            return ADMG.from_edges(self.names, directed, bidirected)
        except CycleError as error:
            ring = zip(error.cycle, [*error.cycle[1:], error.cycle[0]], strict=True)
            last = max((directed[pair] for pair in ring), key=lambda edge: edge.line)
            raise DataError(f"{self.where(last)}: {error}") from None

    def observed(self) -> GraphFile:
        """Give the graph over the variables that are not latent, by latent projection.

        A directed path through latent variables becomes a directed edge, and two variables that a
        latent one reaches, or a bidirected edge through latent ones, become bidirected (Verma 1993;
        Tian & Pearl 2002). Raises as `admg` does, also for a circle.
        """
        if not self.latent:
            return self
        full = self.admg()
        seen = full.projected(full.mask(self.latent))
        made = self.restricted(seen)
        have = {_key(edge) for edge in made.edges}
        new = [edge for edge in edges_of(seen) if _key(edge) not in have]
        return replace(made, edges=made.edges + new, latent=[])

    def restricted(self, graph: ADMG) -> GraphFile:
        """Give what is in `graph` too: names, edges (each once), and what is said of them."""
        names = [name for name in self.names if name in graph.index]
        left: dict[tuple[str, str, Mark, Mark], Edge] = {}
        wanted = {_key(edge) for edge in edges_of(graph)}
        for edge in self.edges:
            if _key(edge) in wanted:
                left.setdefault(_key(edge), edge)
        return replace(
            self,
            names=names,
            edges=list(left.values()),
            attributes={n: self.attributes[n] for n in names if n in self.attributes},
            latent=[name for name in self.latent if name in graph.index],
        )

    def pag(self) -> PAG:
        """Give the graph with its marks as they are; an edge that comes twice counts once.

        Raises `DataError` for an edge from a variable to itself and a pair with two edges.
        """
        kept: dict[frozenset[str], Edge] = {}
        for edge in self.edges:
            if edge.a == edge.b:
                raise DataError(f"{self.where(edge)}: an edge from {edge.a} to itself")
            first = kept.setdefault(frozenset(edge[:2]), edge)
            if _key(first) != _key(edge):
                raise DataError(f"{self.where(edge)}: two edges between {edge.a} and {edge.b}")
        return PAG.from_edges(self.names, [edge[:4] for edge in kept.values()])


def edges_of(graph: ADMG) -> Iterator[Edge]:
    """Yield the edges of a graph: directed ones from tail to head, then bidirected ones."""
    names = graph.names
    for i, j in graph.directed():
        yield Edge(names[i], names[j], Mark.TAIL, Mark.ARROW)
    for i, j in graph.bidirected():
        yield Edge(names[i], names[j], Mark.ARROW, Mark.ARROW)


def _key(edge: Edge) -> tuple[str, str, Mark, Mark]:
    """Give the edge without its line, the same from whichever end it was written."""
    a, b, at_a, at_b, _ = edge
    return (a, b, at_a, at_b) if (at_a, a) > (at_b, b) else (b, a, at_b, at_a)

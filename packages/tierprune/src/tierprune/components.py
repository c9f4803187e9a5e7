"""T-components: the edges of a graph tier by tier, and what tiers forbid.

The T-component of tier i has all variables, and the edges whose later end lies in tier i. In a
graph that keeps to its tiers these are the edges into tier i, and each edge is in exactly one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from papercuts.errors import DataError
from tierprune.admg import ADMG
from tierprune.graphfile import Edge, GraphFile, edges_of
from tierprune.pag import Mark, arrow
from tierprune.spelling import did_you_mean
from tierprune.tiers import Tiers


def check_tiers(graph: GraphFile | ADMG, tiers: Tiers) -> None:
    """Raise `DataError` unless `graph` keeps to `tiers`; the message names the first fault.

    Every variable has a tier; no arrowhead of an edge between two tiers points at its earlier end.
    So directed edges never go back, and bidirected edges join variables of one tier (the paper's
    assumption: no latent cause of two tiers). Edges of a `GraphFile` are named with FILE:LINE.
    """
    source = graph.source if isinstance(graph, GraphFile) else "graph"
    for name in graph.names:
        if name not in tiers.of:
            hint = did_you_mean(name, set(tiers.of) - set(graph.names), "; {}")
            raise DataError(
                f"{source}: {name} has no tier (expected a tier for every variable{hint})"
            )
    if isinstance(graph, GraphFile):
        _check_edges(graph.edges, tiers, graph.where)
    else:
        _check_edges(edges_of(graph), tiers, lambda _: source)


def edges_into(graph: ADMG, tiers: Tiers, wanted: Callable[[int], bool]) -> ADMG:
    """Give the graph with the edges of those T-components whose tier is `wanted`, and no others.

    `graph` must keep to `tiers`.
    """
    keep = [-1 if wanted(tiers.of[name]) else 0 for name in graph.names]
    return graph.keeping(keep, keep)


def t_components(graph: ADMG, tiers: Tiers) -> list[ADMG]:
    """Give the T-components of the tiers 1, 2, ... of a graph that keeps to `tiers`."""
    return [edges_into(graph, tiers, tier.__eq__) for tier in range(1, len(tiers) + 1)]


def edge_texts(graph: ADMG) -> Iterator[str]:
    """Yield `A -> B` for each directed edge, then `A <-> B` for each bidirected one."""
    for edge in edges_of(graph):
        yield f"{edge.a} {'->' if edge.at_a == Mark.TAIL else '<->'} {edge.b}"


def _check_edges(edges: Iterable[Edge], tiers: Tiers, where: Callable[[Edge], str]) -> None:
    of = tiers.of
    for edge in edges:
        if of[edge.a] == of[edge.b]:
            continue
        early, late = (edge.a, edge.b) if of[edge.a] < of[edge.b] else (edge.b, edge.a)
        at_early, at_late = edge[2:4] if early == edge.a else (edge.at_b, edge.at_a)
        if at_early == Mark.ARROW and at_late == Mark.ARROW:
            raise DataError(
                f"{where(edge)}: {edge.a} <-> {edge.b} joins tiers {of[edge.a]} and {of[edge.b]} "
                "(expected no latent cause of two tiers: bidirected edges inside a tier only)"
            )
        if at_early == Mark.ARROW or at_late == Mark.TAIL:
            text = f"{late} -> {early}"
            if Mark.CIRCLE in (at_early, at_late) or at_early == at_late:
                text = f"{late} {arrow(at_late, at_early)} {early}"
            raise DataError(
                f"{where(edge)}: {text} goes from tier {of[late]} back to tier {of[early]} "
                "(expected an edge to the same or a later tier)"
            )

"""Pruning: the edges of a tiered graph that one query needs (Propositions 3.2, 3.5 and 3.6)."""

from __future__ import annotations

from dataclasses import dataclass

from tierprune.admg import ADMG
from tierprune.components import check_tiers, edges_into
from tierprune.query import Band, Query, band_of
from tierprune.tiers import Tiers


@dataclass(frozen=True)
class Pruned:
    """What is left of a graph for one query.

    `graph` has all variables of `whole` and only the edges whose later end lies in a tier of
    `band`. `kept` and `dropped` count edges. `never_needed` names the variables outside the query
    that are no ancestor of an outcome or a condition in `graph`: the query's identifiability and
    its formula do not change when they are neither drawn nor measured (line 2 of ID).
    """

    graph: ADMG
    whole: ADMG
    band: Band
    kept: int
    dropped: int
    never_needed: tuple[str, ...]

    def needed_part(self) -> ADMG:
        """Give the pruned graph without the variables that are never needed."""
        return self.graph.among(self.graph.everything & ~self.graph.mask(self.never_needed))

    def dropped_edges(self) -> ADMG:
        """Give the graph that has the dropped edges only."""
        return self.whole.keeping(
            [~kept for kept in self.graph.parents], [~kept for kept in self.graph.spouses]
        )


def prune(graph: ADMG, tiers: Tiers, query: Query, *, force_tight: bool = False) -> Pruned:
    """Keep the T-components of `graph` that `query` needs.

    The query is identifiable in the graph that is left exactly where it is in the whole one, and
    its formula there holds for the whole (Proposition 3.2 without conditions, 3.5 where they all
    lie before the treatments, else 3.6). `force_tight` takes the band of 3.2 for every query,
    which is wrong where 3.6 is required (see `band_of`).

    Raises `DataError` where the graph does not keep to the tiers, `ValueError` for a name of the
    query that is not in the graph.
    """
    query.check(graph.names, "the graph")
    check_tiers(graph, tiers)
    band = band_of(query, tiers, force_tight=force_tight)
    left = edges_into(graph, tiers, band.__contains__)
    kept, edges = count_edges(left), count_edges(graph)
    needed = left.ancestors(left.mask(query.outcome + query.given)) | left.mask(query.names)
    never = tuple(left.named(left.everything & ~needed))
    return Pruned(left, graph, band, kept, edges - kept, never)


def count_edges(graph: ADMG) -> int:
    """Count the edges, bidirected ones once."""
    directed = sum(mask.bit_count() for mask in graph.parents)
    return directed + sum(mask.bit_count() for mask in graph.spouses) // 2

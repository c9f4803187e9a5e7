"""What the commands about a graph ask: a graph in tiers, and a query about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from papercuts.errors import DataError, UsageError
from papercuts.streams import default_input
from tierprune import formats
from tierprune.admg import ADMG
from tierprune.components import check_tiers
from tierprune.graphfile import GraphFile
from tierprune.learned import known_names, ready_for
from tierprune.pag import Mark
from tierprune.query import Query, make_query
from tierprune.tiers import Tiers, read_tiers


@dataclass(frozen=True)
class Question:
    """A graph as read and as an ADMG, its tiers, and a query about its variables."""

    file: GraphFile
    graph: ADMG
    tiers: Tiers
    query: Query


def read_question(
    path: str | None,
    format: formats.FormatName | None,  # noqa: A002
    tiers: str,
    do: Sequence[str],
    outcome: Sequence[str],
    given: Sequence[str] | None,
    *,
    force_tight: bool = False,
) -> Question:
    """Read a graph (None is stdin) and its tiers (`read_tiers`), and check all against all.

    Raises `UsageError` for names that are unknown or on two sides, `DataError` for a graph that is
    not an ADMG or does not keep to the tiers, naming the edge with FILE:LINE, or was learned
    without tiers that the query needs, `InputError` for a file that cannot be read.
    """
    named = default_input(path, "graph")
    if named == tiers == "-":
        raise UsageError("GRAPH and --tiers cannot both be stdin")
    file = formats.read(named, format)
    read = read_tiers(tiers)
    if file.has_circles():
        edge = next(edge for edge in file.edges if Mark.CIRCLE in (edge.at_a, edge.at_b))
        raise DataError(
            f"{file.where(edge)}: the edge between {edge.a} and {edge.b} has a circle, as in a "
            "graph that was learned (`tierprune id` answers from such a graph)"
        )
    file.admg()  # its faults come first
    check_tiers(file, read)
    query = make_query(do, outcome, given, known_names(file, read))
    file = ready_for(file, read, query, force_tight=force_tight)
    return Question(file, file.admg(), read, query)

"""From a learned graph, with circles at some ends, to an answer: whether it identifies the effect.

A graph with circles stands for many. `answer` first asks the generalised adjustment criterion,
which speaks for all of them at once (`tierprune.adjustment`): an adjustment set is valid in every
one, but there may be none where another formula would do. With `enumerate_` it then goes through
the maximal ancestral graphs (MAGs) of the class (`tierprune.members`) and runs ID in each.

A MAG is not an ADMG: it says who is an ancestor of whom and what is independent, and a directed
edge of it that is not visible may hide confounding. Each MAG is therefore read twice: `identified`
is what ID finds with confounding in all such places at once (it then holds wherever it hides),
`not_identified` what ID refutes in a graph that the MAG does stand for. What neither settles is
`open`. No more is claimed.
"""

from __future__ import annotations

import csv
import io
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from papercuts.errors import DataError, UsageError
from tierprune.adjustment import Adjustment, adjust_pag
from tierprune.admg import ADMG
from tierprune.ancestral import Ends, confounded, most_confounded, plain
from tierprune.bits import mask_of
from tierprune.components import check_tiers
from tierprune.expression import Algebra, Estimand
from tierprune.graphfile import GraphFile
from tierprune.identification import Identified, identify_pruned
from tierprune.members import has_member, list_members
from tierprune.pruning import Pruned
from tierprune.query import Band, Query, band_of
from tierprune.tiers import Tiers

_CONTRADICTORY = "no graph has all these marks: errors of the sample made them contradict"

Status = Literal["identified", "not_identified", "open"]


@dataclass(frozen=True)
class Counts:
    """How many MAGs were read, of how many (nothing: not counted), and what ID found in them.

    `formulas` is the number of different formulas among those identified.
    """

    read: int
    total: int | None
    complete: bool
    identified: int
    not_identified: int
    open: int
    formulas: int

    @property
    def answer(self) -> Literal["all", "some", "none", "no graph"]:
        """Say in how many the effect is identified."""
        if not self.read:
            return "no graph"
        if self.identified == self.read:
            return "all"
        return "some" if self.identified or self.open else "none"


@dataclass(frozen=True)
class Answer:
    """The answer for a learned graph.

    `verdict` is `yes` with an `estimand` that holds in every graph of the class, `no` where every
    member was read and refuted, else `undecided`. `formulas` are those of the members that were
    read, each with the number of members in which it holds. `notes` are for people.
    """

    query: Query
    verdict: Literal["yes", "no", "undecided"]
    by: Literal["adjustment", "no effect", "members", "nothing"]
    adjustment: Adjustment
    estimand: Estimand | None
    members: Counts | None
    notes: tuple[str, ...]
    formulas: tuple[tuple[Estimand, int], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Give the record, without the estimand (whose form is the caller's)."""
        found, counts = self.adjustment, self.members
        smallest = found.sets[0] if found.sets else None
        return {
            "query": str(self.query),
            "verdict": self.verdict,
            "by": self.by,
            "criterion": found.reason,
            "adjust_for": None if smallest is None else [*smallest],
            "other_sets": [[*names] for names in found.sets[1:]],
            "canonical_set": None if found.canonical is None else [*found.canonical],
            "conditional_on": [*found.given],
            "undecided_edge": None if found.edge is None else [*found.edge],
            "members": None
            if counts is None
            else {
                "read": counts.read,
                "total": counts.total,
                "complete": counts.complete,
                "identified": counts.identified,
                "not_identified": counts.not_identified,
                "open": counts.open,
                "formulas": counts.formulas,
                "answer": counts.answer,
            },
            "notes": [*self.notes],
        }


def known_names(graph: GraphFile, tiers: Tiers) -> tuple[str, ...]:
    """Give the variables that a query may name: a learnt graph holds those of some tiers only."""
    return tiers.names if graph.learned_tiers else tuple(graph.names)


def ready_for(
    graph: GraphFile, tiers: Tiers, query: Query, *, force_tight: bool = False
) -> GraphFile:
    """Give a graph that holds all variables of `query`, if it was learnt as far as that needs.

    Raises `DataError` where a tier that the query needs was not learnt (as far as the file tells),
    `UsageError` for a variable that is not in the graph.
    """
    if graph.learned_tiers:
        first, last = graph.learned_tiers
        band = band_of(query, tiers, force_tight=force_tight)
        needed = range(band.first, band.last + 1)
        if missing := [tier for tier in needed if not first <= tier <= last]:
            were = "was" if len(missing) == 1 else "were"
            raise DataError(
                f"{_spans(missing)} {were} not learned, and {query} needs "
                f"{_spans(needed)}; to learn that: {_discover(query)}",
                path=graph.source,
            )
        # what lies after all that was learnt has no edge that counts
        have = set(graph.names)
        later = [name for name in query.names if name not in have and tiers.of[name] > last]
        graph = replace(graph, names=[*graph.names, *later])
    try:
        query.check(graph.names, "the variables")
    except ValueError as error:
        raise UsageError(str(error)) from None
    return graph


def _spans(tiers: Sequence[int]) -> str:
    """Write 1, 2, 3, 5 as `tiers 1 to 3 and 5`."""
    starts = [tier for tier in tiers if tier - 1 not in tiers]
    ends = [tier for tier in tiers if tier + 1 not in tiers]
    parts = [f"{a} to {b}" if a < b else str(a) for a, b in zip(starts, ends, strict=True)]
    return f"{'tier' if len(tiers) == 1 else 'tiers'} {' and '.join(parts)}"


def _discover(query: Query) -> str:
    """Write the command that learns what a query needs."""
    words = ["tierprune discover DATA --tiers SPEC"]
    sides = {"do": query.treatment, "outcome": query.outcome, "given": query.given}
    for option, names in sides.items():
        if names:
            row = io.StringIO()
            csv.writer(row, lineterminator="").writerow(names)
            words.append(f"--{option} {shlex.quote(row.getvalue())}")
    return " ".join(words)


def answer(
    graph: GraphFile,
    tiers: Tiers | None,
    query: Query,
    *,
    enumerate_: int | None = None,
    seed: int = 0,
    limit: int = 10,
) -> Answer:
    """Answer a query from a PAG, or from a MAG (which has no circles but is read as one).

    Only edges whose later end lies in the query's band are looked at. At most `limit` adjustment
    sets are listed, at most `enumerate_` members read; where there are more, that many are drawn
    by `seed`. Raises `DataError` for a graph that is no PAG on its face (a tail at both ends, a
    pair with two edges), breaks the tiers or was not learnt as far as the query needs (which takes
    the tiers), `ValueError` for a name that is not in the graph.
    """
    if tiers is None:
        if graph.learned_tiers:
            raise ValueError("a graph that was learned in tiers is read with them")
        query.check(graph.names, "the graph")
    else:
        query.check(known_names(graph, tiers), "the graph")
        check_tiers(graph, tiers)
        graph = ready_for(graph, tiers, query)
    used = tiers or Tiers((tuple(graph.names),))
    pag = graph.pag()
    for i, j, at_i, at_j in pag.edges():
        if at_i == at_j == 3:
            raise DataError(
                f"{graph.source}: the edge {pag.names[i]} --- {pag.names[j]} says that there is "
                "selection bias, which is not supported"
            )
    band = band_of(query, used)
    found = adjust_pag(pag, query, used, limit=limit)
    if found.valid:
        by: Literal["adjustment", "no effect"] = (
            "adjustment" if found.reason == "adjustment" else "no effect"
        )
        said: tuple[str, ...] = ()
        if by == "no effect":
            said = (f"no treatment can be a cause of what {query} is about",)
        if not has_member(pag, used, band):
            said += (_CONTRADICTORY,)
        return Answer(query, "yes", by, found, formula(pag.names, query, found), None, said)
    notes = [_why(found, query)]
    if enumerate_ is None:
        notes.append("another formula may do: --enumerate N asks the members of the class")
        return Answer(query, "undecided", "nothing", found, None, None, tuple(notes))
    listed = list_members(pag, used, band, limit=enumerate_, seed=seed)
    read = [_in_member(ends, band, used, query) for ends in listed.graphs]
    estimands = {str(est): est for _, est in read if est is not None}
    holds = Counter(str(est) for _, est in read if est is not None)
    formulas = tuple((est, holds[text]) for text, est in estimands.items())
    tally = {kind: sum(status == kind for status, _ in read) for kind in get_args(Status)}
    counts = Counts(len(read), listed.total, listed.complete, **tally, formulas=len(estimands))
    notes += _notes(counts)
    if counts.complete and counts.answer == "all" and len(estimands) == 1:
        only = next(iter(estimands.values()))
        return Answer(query, "yes", "members", found, only, counts, tuple(notes))
    refuted = counts.complete and counts.read > 0 and counts.not_identified == counts.read
    verdict: Literal["no", "undecided"] = "no" if refuted else "undecided"
    by_ = "members" if refuted else "nothing"
    return Answer(query, verdict, by_, found, None, counts, tuple(notes), formulas)  # type: ignore[arg-type]


def formula(names: tuple[str, ...], query: Query, found: Adjustment) -> Estimand:
    """Write down the effect by a valid adjustment: the smallest set, and what it conditions on."""
    index, algebra = {name: i for i, name in enumerate(names)}, Algebra()

    def mask(side: tuple[str, ...]) -> int:
        return mask_of(index[name] for name in side)

    outcome, given, treated = mask(query.outcome), mask(query.given), mask(found.treatment)
    if found.reason == "no effect":
        return Estimand(names, algebra.probability(outcome, given), ())
    chosen, must = mask(found.sets[0]), mask(found.given)
    effect = algebra.sum(
        chosen,
        algebra.product(
            [
                algebra.probability((outcome | given) & ~must, treated | chosen | must),
                algebra.probability(chosen, must),
            ]
        ),
    )
    if not given & ~must:  # what is given is not changed by any treatment
        rest = algebra.probability(must & ~given, given)
        return Estimand(names, algebra.product([effect, rest]), ())
    joint = algebra.product([effect, algebra.probability(must)])
    return Estimand(names, algebra.quotient(joint, algebra.sum(outcome, joint)), ())


def _in_member(
    ends: Ends, band: Band, tiers: Tiers, query: Query
) -> tuple[Status, Estimand | None]:
    def run(graph: ADMG) -> Identified:
        pruned = Pruned(graph, graph, band, 0, 0, ())
        return identify_pruned(pruned, tiers.of, query)

    found = run(most_confounded(ends))
    if found.verdict == "yes":
        return "identified", found.estimand
    if run(plain(ends)).verdict == "no":
        return "not_identified", None
    for backwards in (False, True):
        if run(confounded(ends, backwards=backwards)).verdict == "no":
            return "not_identified", None
    return "open", None


def _why(found: Adjustment, query: Query) -> str:
    if found.reason == "not amenable":
        assert found.edge is not None  # noqa: S101 (said for the type checker)
        x, c = found.edge
        return (
            f"no set to adjust for: a path from {x} by {c} may or may not be causal, or {x} and "
            f"{c} may be confounded"
        )
    return f"no set to adjust for blocks every path that is not causal, for {query}"


def _notes(counts: Counts) -> list[str]:
    if not counts.read:
        return [_CONTRADICTORY]
    notes = []
    if not counts.complete:
        of = "more" if counts.total is None else str(counts.total)
        notes.append(f"{counts.read} members were drawn of {of}: this is no proof for the others")
    if counts.answer == "all" and counts.formulas > 1:
        notes.append(
            f"identified in each member, by {counts.formulas} formulas: which one holds is not "
            "known"
        )
    return notes

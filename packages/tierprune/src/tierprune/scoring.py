"""How close a learned graph is to the truth: adjacencies, and the marks at the ends of edges.

What is to be found is the PAG of the true graph, not the graph: marks on which all graphs with the
same independences do not agree are circles there, and cannot be learned from any data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from papercuts.errors import DataError, UsageError
from tierprune import formats
from tierprune.admg import ADMG
from tierprune.bits import bits, mask_of
from tierprune.components import check_tiers
from tierprune.graphfile import GraphFile
from tierprune.pag import PAG, Mark
from tierprune.query import Band, band_of, make_query
from tierprune.separation import m_separated
from tierprune.tiers import Tiers, read_tiers

Part = Literal["adjacency", "arrowhead", "tail", "circle"]
_MARKS: dict[Part, Mark] = {"arrowhead": Mark.ARROW, "tail": Mark.TAIL, "circle": Mark.CIRCLE}


@dataclass(frozen=True)
class Score:
    """One part of two graphs: how much was found, is true, and both.

    `tier` is that of the later end of the edges, nothing over all. An arrowhead is found where
    the same end of the same edge has one.
    """

    part: Part
    tier: int | None
    found: int
    true: int
    both: int

    @property
    def precision(self) -> float | None:
        """The share of what was found that is true."""
        return self.both / self.found if self.found else None

    @property
    def recall(self) -> float | None:
        """The share of what is true that was found."""
        return self.both / self.true if self.true else None

    @property
    def f1(self) -> float | None:
        """The harmonic mean of precision and recall."""
        return 2 * self.both / (self.found + self.true) if self.found + self.true else None

    def to_dict(self) -> dict[str, Any]:
        """Give the record."""
        return {
            "part": self.part,
            "tier": self.tier,
            "found": self.found,
            "true": self.true,
            "both": self.both,
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
        }


def true_pag(graph: ADMG, tiers: Tiers | None = None, band: Band | None = None) -> PAG:
    """Give what unlimited data would say of `graph`: its PAG under the tiers.

    With a band, only the edges whose later end lies in it. The result is that of `discover` with
    m-separation in `graph` for its tests, without its search: two variables that any set separates
    are separated by their ancestors. Raises `ValueError` for a variable without a tier, and one of
    the tiers that is not in the graph.
    """
    from tierprune.orientation import Orientation
    from tierprune.tiergraph import TierGraph

    used = tiers or Tiers((graph.names,))
    used.check(graph.names, "the graph")
    for name in used.names:
        if name not in graph.index:
            raise ValueError(f"{name} of the tiers is not in the graph")
    first, last = (1, len(used)) if band is None else (band.first, band.last)
    pag, place = PAG(used.names), [graph.index[name] for name in used.names]
    back = {old: new for new, old in enumerate(place)}
    for tier in range(first, last + 1):
        size = sum(map(len, used.groups[:tier]))
        learnt = TierGraph(size - len(used.groups[tier - 1]), size)
        sepsets: dict[tuple[int, int], int] = {}
        for i, j in list(learnt.pairs()):
            ends = 1 << place[i] | 1 << place[j]
            given = graph.ancestors(ends) & ~ends
            if m_separated(graph, 1 << place[i], 1 << place[j], given):
                learnt.remove(i, j)
                sepsets[min(i, j), max(i, j)] = mask_of(back[u] for u in bits(given))
        orientation = Orientation(learnt, sepsets)
        orientation.colliders()
        orientation.complete()
        for i, j in learnt.pairs():
            pag.marks[i, j], pag.marks[j, i] = learnt.mark(i, j), learnt.mark(j, i)
    return pag


def score(
    learned: PAG,
    truth: PAG,
    *,
    tiers: Tiers | None = None,
    band: Band | None = None,
    by_tier: bool = False,
) -> list[Score]:
    """Compare two graphs over the same variables; the order of the names may differ.

    With a band (and tiers), only edges whose later end lies in it count. `by_tier` adds a score
    for each tier. Raises `ValueError` for a variable that one graph lacks.
    """
    for one, other, where in ((learned, truth, "truth"), (truth, learned, "learned graph")):
        for name in one.names:
            if name not in other.index:
                raise ValueError(f"{name} is not in the {where}")
    order = [learned.index[name] for name in truth.names]
    found, true = learned.marks[np.ix_(order, order)], truth.marks
    size = len(truth)
    of = np.ones(size, dtype=int)
    if tiers is not None:
        tiers.check(truth.names, "the truth")
        of = np.array([tiers.of[name] for name in truth.names], dtype=int)
    later = np.maximum(of[:, None], of[None, :])
    counted = ~np.eye(size, dtype=bool)
    if band is not None:
        counted &= (later >= band.first) & (later <= band.last)
    scores = list(_parts(found, true, counted, None))
    if by_tier:
        for tier in range(1, (1 if tiers is None else len(tiers)) + 1):
            if band is None or tier in band:
                scores += _parts(found, true, counted & (later == tier), tier)
    return scores


def _parts(
    found: NDArray[np.int8], true: NDArray[np.int8], counted: NDArray[Any], tier: int | None
) -> Iterator[Score]:
    half = np.triu(counted)
    a, b = half & (found > 0), half & (true > 0)
    yield Score("adjacency", tier, int(a.sum()), int(b.sum()), int((a & b).sum()))
    for part, mark in _MARKS.items():
        a, b = counted & (found == mark), counted & (true == mark)
        yield Score(part, tier, int(a.sum()), int(b.sum()), int((a & b).sum()))


def read_truth(
    file: GraphFile, tiers: Tiers | None, band: Band | None = None, *, as_it_is: bool = False
) -> PAG:
    """Give the PAG of a truth as read: a graph with circles is one, another is taken for an ADMG.

    `as_it_is` takes a graph without circles for a PAG too. Raises `DataError` as
    `GraphFile.admg` and `check_tiers` do.
    """
    if tiers is not None:
        check_tiers(file, tiers)
    if as_it_is or file.learned or file.has_circles():
        return file.pag()
    return true_pag(file.admg(), tiers, band)


def score_files(
    learned: GraphFile,
    truth: GraphFile,
    tiers: Tiers | None,
    band: Band | None,
    *,
    by_tier: bool = False,
    as_it_is: bool = False,
) -> list[Score]:
    """Score a graph as read; `DataError` names the file of a variable that the other lacks."""
    for one, other in ((learned, truth), (truth, learned)):
        have = set(other.names)
        for name in one.names:
            if name not in have:
                raise DataError(f"{other.source}: {name} of {one.source} is not in it")
    pag = read_truth(truth, tiers, band, as_it_is=as_it_is)
    return score(learned.pag(), pag, tiers=tiers, band=band, by_tier=by_tier)


def score_command_line(
    learned: str,
    truth: str,
    tiers: str | None,
    do: Sequence[str] | None,
    outcome: Sequence[str] | None,
    given: Sequence[str] | None,
    *,
    by_tier: bool,
    as_it_is: bool,
) -> list[Score]:
    """Read what `score` is given, and score it; `UsageError` where its options do not fit."""
    if [learned, truth, tiers].count("-") > 1:
        raise UsageError("only one of LEARNED, TRUTH and --tiers can be stdin")
    if tiers is None and (by_tier or do or outcome or given):
        raise UsageError("--by-tier and a query need --tiers")
    if bool(do) != bool(outcome) or (given and not do):
        raise UsageError("a query needs both --do and --outcome")
    read = None if tiers is None else read_tiers(tiers)
    files = formats.read(learned), formats.read(truth)
    band = None
    if read is not None:
        for file in files:
            check_tiers(file, read)
        if do and outcome:
            band = band_of(make_query(do, outcome, given, files[1].names), read)
    return score_files(*files, read, band, by_tier=by_tier, as_it_is=as_it_is)

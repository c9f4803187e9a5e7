"""The paper's claim on one page: a query needs a band of tiers, to identify it and to learn it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tierprune.admg import ADMG
from tierprune.dataset import Coded
from tierprune.discovery import discover
from tierprune.identification import identify, identify_pruned
from tierprune.independence.contingency import Contingency
from tierprune.independence.oracle import Oracle
from tierprune.needed import needed_pairs
from tierprune.pag import PAG
from tierprune.pruning import prune
from tierprune.query import Band, Query, band_of
from tierprune.scoring import score, true_pag
from tierprune.simulation import random_graph, random_model, sample
from tierprune.tiers import Tiers

GRAPHS, SEEDS, ROWS = 300, 5, 10_000
_SIZES, _NODES = [6] * 5, range(3, 9)


def demo_lines() -> Iterator[str]:
    """Yield the demo's text line by line."""
    yield "1. One question, a band of tiers"
    yield ""
    yield from _question()
    yield ""
    yield f"2. Pruning changes no verdict: {GRAPHS} random graphs of 4 tiers x 3"
    yield ""
    same, flipped, share, asked = _verdicts()
    yield f"   verdict in the pruned graph equals that in the whole one   {same} of {GRAPHS}"
    yield f"   edges kept, on average                                     {share:.0%}"
    yield (
        "   the tight band where Proposition 3.6 is needed turns a 'no' "
        f"into a wrong 'yes'   {flipped} of {asked}"
    )
    yield ""
    yield "3. Learning only the band: tests of independence, a dense first tier of m variables"
    yield ""
    yield "      m       full   for the query   ratio"
    family = [(m, *exponential_family(m)) for m in _NODES]
    for m, full, query in family:
        yield f"   {m:4d} {full:10d} {query:15d} {full / query:7.1f}"
    yield ""
    yield f"4. From data: {SEEDS} simulated tables, 5 tiers x 6 variables, {ROWS} rows, G2 tests"
    yield ""
    yield "   seed   query                        tests: query    full   precision        recall"
    rows = [_learned(seed) for seed in range(SEEDS)]
    for seed, (asked_, tests, precision, recall) in enumerate(rows):
        yield (
            f"   {seed:4d}   {asked_!s:28s} {tests[0]:11d} {tests[1]:7d}   "
            f"{precision[0]:.3f} {precision[1]:.3f}   {recall[0]:.3f} {recall[1]:.3f}"
        )
    yield "   (precision and recall of edges in the band, each learned for the query and in full)"
    yield ""
    yield from _summary(same, family, rows)


def _question() -> Iterator[str]:
    rng = np.random.default_rng(2)
    graph, tiers = random_graph(_SIZES, rng)
    query = Query(("V4_2",), ("V5_3",))
    pruned = prune(graph, tiers, query)
    found = identify_pruned(pruned, tiers.of, query)
    need = needed_pairs(tiers, query)
    yield f"   5 tiers x 6 variables, {query}: the edges into tiers {pruned.band.first} to"
    yield f"   {pruned.band.last} are enough (Proposition {pruned.band.rule})."
    yield f"   edges kept: {pruned.kept} of {pruned.kept + pruned.dropped}"
    yield f"   pairs that a person must judge: {need.pairs} of {need.all_pairs}"
    yield f"   identifiable: {found.verdict}" + (
        f", by {found.estimand}" if found.estimand is not None else ""
    )


def _verdicts() -> tuple[int, int, float, int]:
    """Compare verdicts before and after pruning, and with a band that is too tight."""
    rng = np.random.default_rng(1)
    same = flipped = asked = kept = edges = 0
    for _ in range(GRAPHS):
        graph, tiers = _dense_graph(rng)
        chosen = [str(name) for name in rng.choice(graph.names, 3, replace=False)]
        query = Query((chosen[0],), (chosen[1],), tuple(chosen[2 : 2 + int(rng.integers(2))]))
        pruned = prune(graph, tiers, query)
        whole = identify(graph, query).verdict
        same += identify_pruned(pruned, tiers.of, query).verdict == whole
        kept += pruned.kept
        edges += pruned.kept + pruned.dropped
        if pruned.band.rule == "3.6" and whole == "no":
            asked += 1
            tight = prune(graph, tiers, query, force_tight=True)
            flipped += identify(tight.graph, query).verdict == "yes"
    return same, flipped, kept / edges, asked


def _dense_graph(rng: np.random.Generator) -> tuple[ADMG, Tiers]:
    """Draw a graph with many bidirected edges, so that about half the queries are refuted."""
    names = [f"V{t}_{i}" for t in range(1, 5) for i in range(1, 4)]
    tiers = Tiers(tuple(tuple(names[k : k + 3]) for k in range(0, 12, 3)))
    pairs = [(a, b) for k, b in enumerate(names) for a in names[:k]]
    inside = [(a, b) for a, b in pairs if tiers.of[a] == tiers.of[b]]
    directed = [pair for pair in pairs if rng.random() < 0.4]
    confounded = [pair for pair in inside if rng.random() < 0.5]
    return ADMG.from_edges(names, directed, confounded), tiers


def exponential_family(size: int) -> tuple[int, int]:
    """Count the tests of FCITIERS and of Algorithm 1 on an input of Proposition 4.2.

    Tier 1 is a complete graph of `size` variables, tier 2 is X -> Y with a parent each in tier 1;
    tests are answered by m-separation.
    """
    early = [f"a{i}" for i in range(size)]
    edges = [(a, b) for k, b in enumerate(early) for a in early[:k]]
    edges += [("X", "Y"), (early[0], "X"), (early[1], "Y")]
    graph = ADMG.from_edges([*early, "X", "Y"], edges)
    tiers = Tiers((tuple(early), ("X", "Y")))
    band = band_of(Query(("X",), ("Y",)), tiers)
    full = discover(Oracle(graph), tiers, Band(1, 2, "all"))
    return full.tests, discover(Oracle(graph), tiers, band).tests


_Pair = tuple[float, float]
_Row = tuple[Query, tuple[int, int], _Pair, _Pair]


def _learned(seed: int) -> _Row:
    """Learn one simulated table for a query and in full: tests, precision, recall of edges."""
    rng = np.random.default_rng(seed)
    graph, tiers = random_graph(_SIZES, rng)
    rows = sample(random_model(graph, rng, states=(2, 2)), ROWS, rng)
    treatment = f"V{rng.integers(3, 6)}_{rng.integers(1, 7)}"
    outcomes = [name for name in tiers.groups[-1] if name != treatment]
    query = Query((treatment,), (outcomes[int(rng.integers(len(outcomes)))],))
    band = band_of(query, tiers)
    columns = _coded(graph.names, rows)
    found = [
        discover(Contingency(columns, alpha=0.01), tiers, wanted)
        for wanted in (band, Band(1, len(tiers), "all"))
    ]
    truth = true_pag(graph, tiers, band)
    scores = [_edges(each.pag, truth, tiers, band) for each in found]
    return (
        query,
        (found[0].tests, found[1].tests),
        (scores[0][0], scores[1][0]),
        (scores[0][1], scores[1][1]),
    )


def _edges(pag: PAG, truth: PAG, tiers: Tiers, band: Band) -> _Pair:
    found = score(pag, truth, tiers=tiers, band=band)[0]
    return found.precision or 0.0, found.recall or 0.0


def _coded(names: Sequence[str], rows: NDArray[Any]) -> list[Coded]:
    levels = ("0", "1")
    return [Coded(name, rows[:, i].astype(np.int64), levels) for i, name in enumerate(names)]


def _summary(same: int, family: list[tuple[int, int, int]], rows: list[_Row]) -> Iterator[str]:
    query, full = (sum(row[1][k] for row in rows) for k in (0, 1))
    equal = sum(row[2][0] == row[2][1] and row[3][0] == row[3][1] for row in rows)
    growth = [(b[1] / a[1], b[2] / a[2]) for a, b in pairwise(family)][-1]
    shown = (
        ("pruning keeps the verdict", f"{same} of {GRAPHS} random queries"),
        (
            "tests grow per variable, dense first tier",
            f"{growth[0]:.2f}x full, {growth[1]:.2f}x query",
        ),
        ("tests from data, all seeds", f"{full} full, {query} query: {full / query:.1f}x"),
        ("precision and recall equal to the full search", f"{equal} of {len(rows)} seeds"),
    )
    yield "   shown                                            result"
    for what, result in shown:
        yield f"   {what:48s} {result}"

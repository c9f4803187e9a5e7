"""ID and IDC against a search of all hedges, y0's verdicts, textbook formulas and the paper."""

import itertools
import random
import time
from collections import Counter
from pathlib import Path

import networkx as nx
import pytest
from smallgraphs import random_admg, random_query, random_tiered

from tierprune.admg import ADMG
from tierprune.identification import Hedge, identify, identify_pruned
from tierprune.pruning import prune
from tierprune.query import Query
from tierprune.tiers import Tiers

ENDS = ((1, 1), (1, 1), (2, 1), (1, 2))  # treatments and outcomes of a random query
GOLDEN = Path(__file__).with_name("y0_verdicts.txt")


class Plain:
    """A graph as sets of pairs of names, and what the definition of a hedge asks of it."""

    def __init__(self, graph: ADMG) -> None:
        self.names = graph.names
        self.arrows = {(graph.names[a], graph.names[b]) for a, b in graph.directed()}
        self.arcs = {frozenset((graph.names[a], graph.names[b])) for a, b in graph.bidirected()}

    def ancestors(self, of: frozenset[str], within: frozenset[str]) -> frozenset[str]:
        found = of & within
        while True:
            more = {a for a, b in self.arrows if b in found and a in within} - found
            if not more:
                return found
            found = found | more

    def connected(self, members: frozenset[str]) -> bool:
        start = frozenset([min(members)])
        while True:
            more = {v for arc in self.arcs if arc <= members and arc & start for v in arc} - start
            if not more:
                return start == members
            start = start | more

    def is_hedge(
        self, larger: frozenset[str], smaller: frozenset[str], x: frozenset[str], y: frozenset[str]
    ) -> bool:
        """Definition 6 of Shpitser & Pearl 2006.

        Two forests (edges may be left out) with the same roots R, which are ancestors of y that x
        does not cut off. The roots may be all such ancestors in the smaller forest: with more
        roots, the others are the more easily ancestors of them.
        """
        cut = Plain.__new__(Plain)
        cut.names, cut.arcs = self.names, self.arcs
        cut.arrows = {(a, b) for a, b in self.arrows if b not in x}
        roots = smaller & cut.ancestors(y, frozenset(self.names))
        return (
            smaller < larger
            and not smaller & x
            and bool(larger & x)
            and bool(roots)
            and self.connected(smaller)
            and self.connected(larger)
            and self.ancestors(roots, smaller) == smaller
            and self.ancestors(roots, larger) == larger
        )

    def has_hedge(self, x: frozenset[str], y: frozenset[str]) -> bool:
        subsets = [
            frozenset(s)
            for size in range(1, len(self.names) + 1)
            for s in itertools.combinations(self.names, size)
        ]
        forests = [s for s in subsets if self.connected(s)]
        inner = [s for s in forests if not s & x]
        outer = [s for s in forests if s & x]
        return any(
            small < large and self.is_hedge(large, small, x, y)
            for large in outer
            for small in inner
        )

    def moved(self, query: Query) -> tuple[frozenset[str], frozenset[str]]:
        """Give the treatments and conditions that are left when rule 2 applies no more."""
        x, y, z = (frozenset(s) for s in (query.treatment, query.outcome, query.given))
        for one in sorted(z):
            graph: nx.DiGraph[str] = nx.DiGraph()
            graph.add_nodes_from(self.names)
            graph.add_edges_from((a, b) for a, b in self.arrows if b not in x and a != one)
            for number, arc in enumerate(sorted(map(sorted, self.arcs))):
                graph.add_edges_from((f"latent {number}", end) for end in arc if end not in x)
            if nx.is_d_separator(graph, {one}, set(y), set(x | z - {one})):
                rest = Query((*query.treatment, one), query.outcome, tuple(sorted(z - {one})))
                return self.moved(rest)
        return x, z

    def identifiable(self, query: Query) -> bool:
        """Theorem 4 (2006), after the reduction of Theorem 20 (2006b) for a conditional query."""
        x, z = self.moved(query)
        return not self.has_hedge(x, frozenset(query.outcome) | z)

    def proves(self, hedge: Hedge) -> bool:
        sides = (hedge.larger, hedge.smaller, hedge.query.treatment, hedge.query.outcome)
        larger, smaller, x, y = map(frozenset, sides)
        sinks = {v for v in smaller if not any(a == v and b in smaller for a, b in self.arrows)}
        return self.is_hedge(larger, smaller, x, y) and sinks == set(hedge.roots)


def check_verdicts(count: int) -> Counter[tuple[bool, str]]:
    """Compare verdicts with a search of all hedges; count them, conditional or not."""
    rng = random.Random(3)
    seen: Counter[tuple[bool, str]] = Counter()
    for number in range(count):
        directed, bidirected = rng.uniform(0.2, 0.7), rng.uniform(0.2, 0.6)
        graph = random_admg(rng, rng.randint(3, 6), directed=directed, bidirected=bidirected)
        query = random_query(rng, graph.names, rng.randint(1, 2) * (number % 2), ends=ENDS)
        found, plain = identify(graph, query), Plain(graph)
        assert (found.verdict == "yes") == plain.identifiable(query), (graph.names, query)
        assert (found.estimand is None) == (found.verdict == "no")
        if found.hedge is not None:
            assert plain.proves(found.hedge)
        seen[bool(query.given), found.verdict] += 1
    assert len(seen) == 4
    return seen


def test_verdicts_equal_a_search_of_all_hedges_and_each_hedge_is_one() -> None:
    assert min(check_verdicts(130).values()) > 4


@pytest.mark.slow
def test_verdicts_equal_a_search_of_all_hedges_on_520_graphs() -> None:
    assert min(check_verdicts(520).values()) > 25


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_verdicts_equal_those_of_y0(every: int) -> None:
    head, *lines = GOLDEN.read_text().splitlines()
    assert head.startswith("# y0 0.2.11")
    assert len(lines) == 2000
    lines = lines[::every]
    seen: Counter[tuple[bool, str]] = Counter()
    for line in lines:
        names, arrows, arcs, x, y, z, verdict, *_ = (w.replace("-", "") for w in line.split())
        pairs = [[*zip(text[::2], text[1::2], strict=True)] for text in (arrows, arcs)]
        query = Query(tuple(x), tuple(y), tuple(z))
        assert identify(ADMG.from_edges(names, *pairs), query).verdict == verdict, line
        seen[bool(z), verdict] += 1
    assert min(seen.values()) > 100 / every


def test_where_y0_as_released_says_otherwise_the_definition_decides() -> None:
    lines = [line.split() for line in GOLDEN.read_text().splitlines()[1:]]
    others = [line for line in lines if len(line) == 8]
    assert len(others) == 5
    for names, arrows, arcs, x, y, z, verdict, released in others:
        pairs = [[*zip(text[::2], text[1::2], strict=True)] for text in (arrows, arcs)]
        plain = Plain(ADMG.from_edges(names, *pairs))
        assert plain.identifiable(Query(tuple(x), tuple(y), tuple(z))) == (verdict == "yes")
        assert released != verdict


@pytest.mark.parametrize(
    ("names", "arrows", "arcs", "given", "formula"),
    [
        ("W X Y", "WX WY XY", "", "", "sum_{W} P(W) P(Y | W, X)"),  # back-door
        ("X M Y", "XM MY", "XY", "", "sum_{M} P(M | X) sum_{X'} P(X') P(Y | X', M)"),  # front-door
        (
            "W R X Y",  # the napkin: the same at every value of R
            "WR RX XY",
            "WX WY",
            "",
            "[sum_{W} P(W) P(X, Y | W, R)] / [sum_{W} P(W) P(X | W, R)]",
        ),
        ("X Y", "YX", "XY", "", "P(Y)"),
        ("X Z Y", "XZ ZY", "XZ", "Z", "P(Y | Z)"),
        ("Z X Y", "ZX ZY XY", "", "Z", "P(Y | Z, X)"),
    ],
)
def test_textbook_formulas(names: str, arrows: str, arcs: str, given: str, formula: str) -> None:
    graph = ADMG.from_edges(
        names.split(), [(*pair,) for pair in arrows.split()], [(*pair,) for pair in arcs.split()]
    )
    found = identify(graph, Query(("X",), ("Y",), tuple(given)))
    assert str(found.estimand) == formula
    assert found.estimand is not None
    assert found.estimand.arbitrary == (("R",) if "R" in names else ())


def test_the_bow_and_the_instrument_are_hedges() -> None:
    bow = ADMG.from_edges("XY", ["XY"], ["XY"])
    found = identify(bow, Query(("X",), ("Y",)))
    assert found.hedge == Hedge(("X", "Y"), ("Y",), ("Y",), Query(("X",), ("Y",)))
    instrument = ADMG.from_edges("ZXY", ["ZX", "XY"], ["XY"])
    assert identify(instrument, Query(("X",), ("Y",))).hedge == found.hedge


def flips(seed: int, count: int) -> Counter[str]:
    """Compare verdicts on G and on H; count those that the tight band changes, and how."""
    rng = random.Random(seed)
    seen: Counter[str] = Counter()
    for _ in range(count):
        sizes = rng.choice(((2, 2, 2, 1), (3, 3, 3), (1, 2, 2, 2, 1)))
        graph, tiers = random_tiered(
            rng, sizes, directed=rng.uniform(0.4, 0.6), bidirected=rng.uniform(0.5, 0.8)
        )
        query = random_query(rng, graph.names, rng.randint(1, 2) * (rng.random() < 0.7), ends=ENDS)
        whole = identify(graph, query).verdict
        pruned = prune(graph, tiers, query)
        assert identify_pruned(pruned, tiers.of, query).verdict == whole, (graph.names, query)
        seen[pruned.band.rule] += 1
        if pruned.band.rule == "3.6":
            tight = prune(graph, tiers, query, force_tight=True)
            forced = identify_pruned(tight, tiers.of, query).verdict
            seen[f"{whole} to {forced}"] += 1
    return seen


def test_pruning_keeps_the_verdict_and_the_tight_band_does_not() -> None:
    seen = flips(1, 300)
    assert min(seen[rule] for rule in ("3.2", "3.5", "3.6")) > 10
    assert seen["no to yes"] > 0
    assert seen["yes to no"] == 0


@pytest.mark.slow
def test_pruning_keeps_eleven_thousand_verdicts() -> None:
    seen = flips(2, 11_000)
    assert sum(seen[rule] for rule in ("3.2", "3.5", "3.6")) == 11_000
    assert seen["no to yes"] > 50
    assert seen["yes to no"] == 0


def test_the_smallest_flip() -> None:
    graph = ADMG.from_edges(
        ["10", "11", "20", "21", "30", "31", "40"],
        [
            ("10", "20"),
            ("10", "31"),
            ("11", "30"),
            ("11", "31"),
            ("21", "30"),
            ("21", "40"),
            ("30", "31"),
        ],
        [("20", "21"), ("30", "31")],
    )
    tiers = Tiers((("10", "11"), ("20", "21"), ("30", "31"), ("40",)))
    query = Query(("30",), ("10",), ("31",))
    assert identify(graph, query).verdict == "no"
    right, tight = (prune(graph, tiers, query, force_tight=force) for force in (False, True))
    assert right.band.rule == "3.6"
    assert identify_pruned(right, tiers.of, query).verdict == "no"
    assert identify_pruned(tight, tiers.of, query).verdict == "yes"


def staircase(steps: int) -> tuple[ADMG, Query]:
    """Give a query for which line 7 of ID calls itself about `steps` times in a row."""
    names = [f"a{i}" for i in range(1, steps + 1)]
    arrows, arcs = [("a1", "x"), ("x", "y")], []
    for i, name in enumerate(names, 1):
        if i % 2:
            arcs.append(("y", name))
            arrows += [(name, f"a{i - 1}")] if i > 1 else []
        else:
            arcs.append((name, f"a{i - 1}"))
            arrows.append((name, "y"))
    graph = ADMG.from_edges([*names, "x", "y"], arrows, arcs)
    return graph, Query(("x", *names[1::2]), ("y",))


@pytest.mark.slow
def test_a_deep_recursion_is_no_recursion_here() -> None:
    graph, query = staircase(1200)
    found = identify(graph, query)
    assert found.estimand is not None
    # In full it would have more than 10^100 expressions; parts that are equal are one.
    assert found.estimand.written_size > 10**100
    assert found.estimand.size < 100_000


@pytest.mark.slow
def test_two_thousand_variables_are_pruned_and_identified_in_time() -> None:
    rng = random.Random(4)
    names = [f"v{i}" for i in range(2000)]
    arrows, arcs = set(), set()
    while len(arrows) + len(arcs) < 10_000:
        b = rng.randrange(1, 2000)
        if rng.random() < 0.1:
            a = b // 100 * 100 + rng.randrange(100)
            arcs |= {(names[a], names[b])} if a < b else set()
        else:
            arrows.add((names[rng.randrange(max(0, b - 300), b)], names[b]))
    graph = ADMG.from_edges(names, sorted(arrows), sorted(arcs))
    tiers = Tiers(tuple(tuple(names[i : i + 100]) for i in range(0, 2000, 100)))
    for query in (Query(("v5",), ("v1990",)), Query(("v1000",), ("v1990",), ("v10",))):
        began = time.process_time()
        pruned = prune(graph, tiers, query)
        assert time.process_time() - began < 0.5
        began = time.process_time()
        part = identify_pruned(pruned, tiers.of, query)
        assert time.process_time() - began < 5
        assert part.verdict == identify(graph, query).verdict


def test_an_unknown_name_is_refused() -> None:
    graph = ADMG.from_edges("XY", ["XY"])
    with pytest.raises(ValueError, match="Z is not in the graph"):
        identify(graph, Query(("X",), ("Z",)))

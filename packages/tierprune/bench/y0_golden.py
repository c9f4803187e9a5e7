# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = ["papercuts", "papercuts-tierprune", "y0==0.2.11"]
#
# [tool.uv.sources]
# papercuts = { path = "../../../shared", editable = true }
# papercuts-tierprune = { path = "..", editable = true }
# ///
"""Let y0 judge 2,000 random queries, and write its verdicts to tests/y0_verdicts.txt.

One line for each: the variables, the directed and the bidirected edges (two letters each),
treatments, outcomes, conditions, and `yes` or `no`. The tests compare them with ID and IDC here.

y0 0.2.11 has two faults in IDC that are worked around, or few conditional queries could be
compared: surgery loses nodes that it isolates (KeyError), and its test of d-separation does not
marry a parent and a spouse, so that a collider at a bidirected edge never opens. The test is
therefore given each bidirected edge as a latent parent. Where y0 as released gives another verdict
than y0 so repaired, the line has that verdict too, as an eighth word.

This script also has y0's parser read the formula found here of every query that is identifiable,
and takes the time of both.

    tools/uvw run --script packages/tierprune/bench/y0_golden.py
"""

from __future__ import annotations

import itertools
import json
import random
import string
import time
from importlib.metadata import version
from pathlib import Path

from y0.algorithm.identify import id_c, identify_outcomes
from y0.dsl import Variable
from y0.graph import NxMixedGraph
from y0.parser import parse_y0

from papercuts.benchmarks import Report, machine, today
from tierprune.admg import ADMG
from tierprune.identification import identify
from tierprune.query import Query
from tierprune.rendering import to_y0

REPORT = Report(__file__)

COUNT = 2000
GOLDEN = Path(__file__).parents[1] / "tests" / "y0_verdicts.txt"
LETTERS = string.ascii_uppercase.replace("P", "").replace("Q", "")

_without_in_edges = NxMixedGraph.remove_in_edges


def _keeping_nodes(graph: NxMixedGraph, vertices: object) -> NxMixedGraph:
    """Cut edges as y0 does, and add back the nodes that y0 0.2.11 loses when that isolates them."""
    cut = _without_in_edges(graph, vertices)
    for node in graph.nodes():
        cut.add_node(node)
    return cut


NxMixedGraph.remove_in_edges = _keeping_nodes
_as_released = id_c.are_d_separated


def _with_latents(graph: NxMixedGraph, a: Variable, b: Variable, **rest: object) -> object:
    """Test separation as y0 does, with a latent parent in place of each bidirected edge."""
    directed = [*graph.directed.edges()]
    for number, (left, right) in enumerate(graph.undirected.edges()):
        latent = Variable(f"latent{number}")
        directed += [(latent, left), (latent, right)]
    expanded = NxMixedGraph.from_edges(nodes=[*graph.nodes()], directed=directed)
    return _as_released(expanded, a, b, **rest)


def draw(rng: random.Random) -> tuple[str, ...]:
    """Draw a graph of 3 to 8 variables and a query, conditional in half of the cases."""
    size = rng.randint(3, 8)
    names = LETTERS[:size]
    order = rng.sample(names, size)
    directed, bidirected = rng.uniform(0.15, 0.7), rng.uniform(0.05, 0.5)
    pairs = ["".join(pair) for pair in itertools.combinations(order, 2)]
    arrows = "".join(pair for pair in pairs if rng.random() < directed)
    arcs = "".join(pair for pair in pairs if rng.random() < bidirected)
    treatments = rng.choice((1, 1, 2)) if size > 3 else 1
    outcomes = rng.choice((1, 1, 2)) if size > 4 else 1
    conditions = rng.choice((1, 1, 2)) if rng.random() < 0.5 else 0
    picked = "".join(rng.sample(names, min(size, treatments + outcomes + conditions)))
    cut = treatments + outcomes
    return names, arrows, arcs, picked[:treatments], picked[treatments:cut], picked[cut:]


def pairs_of(text: str) -> list[tuple[str, str]]:
    return list(zip(text[::2], text[1::2], strict=True))


def ask_y0(names: str, arrows: str, arcs: str, x: str, y: str, z: str, *, repaired: bool) -> bool:
    id_c.are_d_separated = _with_latents if repaired else _as_released

    def variables(letters: str) -> set[Variable]:
        return {Variable(letter) for letter in letters}

    graph = NxMixedGraph.from_str_edges(
        nodes=list(names), directed=pairs_of(arrows), undirected=pairs_of(arcs)
    )
    return (
        identify_outcomes(graph, variables(x), variables(y), variables(z) if z else None)
        is not None
    )


def main() -> None:
    rng = random.Random(20062006)  # noqa: S311 (no secret)
    lines, seen = [], set()
    theirs_s = ours_s = 0.0
    differ = parsed = repaired = 0
    while len(lines) < COUNT:
        drawn = draw(rng)
        if drawn in seen:
            continue
        seen.add(drawn)
        began = time.process_time()
        released = ask_y0(*drawn, repaired=False)
        theirs_s += time.process_time() - began
        verdict = ask_y0(*drawn, repaired=True)
        words = [part or "-" for part in drawn] + ["yes" if verdict else "no"]
        if released != verdict:
            words.append("yes" if released else "no")
            repaired += 1
        lines.append(" ".join(words))
        names, arrows, arcs, *sides = drawn
        graph = ADMG.from_edges(names, pairs_of(arrows), pairs_of(arcs))
        query = Query(*(tuple(side) for side in sides))
        began = time.process_time()
        found = identify(graph, query)
        ours_s += time.process_time() - began
        differ += (found.verdict == "yes") != verdict
        if found.estimand is not None:
            text, renamed = to_y0(found.estimand)
            assert not renamed
            parse_y0(text)
            parsed += 1
    head = f"# y0 {version('y0')}: bench/y0_golden.py\n"
    GOLDEN.write_text(head + "".join(f"{line}\n" for line in lines))
    found = {
        "date": today(),
        "machine": machine(),
        "command": "tools/uvw run --script packages/tierprune/bench/y0_golden.py",
        "y0": version("y0"),
        "queries": COUNT,
        "differ": differ,
        "differ_as_released": repaired,
        "formulas_parsed": parsed,
        "y0_s": round(theirs_s, 3),
        "tierprune_s": round(ours_s, 3),
    }
    print(json.dumps(found))
    REPORT.write_results({**REPORT.read_results(), "y0": found})
    lines = [
        f"## Verdicts beside y0 {found['y0']}",
        "",
        f"{found['date']}; {found['machine']}; `bench/y0_golden.py`. Of {COUNT} random queries",
        f"(3 to 8 variables, half conditional) {differ} verdicts differ from y0's with its two",
        f"faults in IDC worked around, {repaired} from y0's as released. y0's parser reads all",
        f"{parsed} formulas. CPU time: y0 {theirs_s:.2f} s, tierprune {ours_s:.2f} s.",
    ]
    REPORT.write_section("y0", lines)


if __name__ == "__main__":
    main()

"""How many tests all tiers need and how many a query does, with m-separation for tests.

    python bench/exponential.py [--graphs 12] [--largest 10]

First the family of Proposition 4.2: an early tier of m variables, all connected, before X -> Y.
Then graphs of the paper's kind (10 variables a tier, 3 treatments, 3 outcomes, |Z| observed), each
cut off after a budget of seconds, as counts of single graphs may explode.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import queue
import statistics
import time
from typing import Any

import numpy as np

from papercuts.benchmarks import Report, today
from tierprune.admg import ADMG
from tierprune.discovery import discover
from tierprune.independence.oracle import Oracle
from tierprune.query import Query, band_of
from tierprune.simulation import random_graph
from tierprune.tiers import Tiers

REPORT = Report(__file__)


def family(m: int) -> dict[str, Any]:
    early = tuple(f"a{i}" for i in range(m))
    edges = [*itertools.combinations(early, 2), ("X", "Y"), ("a0", "X"), ("a1", "Y")]
    test = Oracle(ADMG.from_edges([*early, "X", "Y"], edges))
    tiers = Tiers((early, ("X", "Y")))
    full, part = discover(test, tiers), discover(test, tiers, band_of(Query(("X",), ("Y",)), tiers))
    return {"m": m, "full": full.tests, "query": part.tests}


def count(tier_count: int, observed: int, seed: int, out: Any) -> None:
    rng = np.random.default_rng([tier_count, observed, seed])
    graph, tiers = random_graph([10] * tier_count, rng)
    names = rng.permutation(tiers.names)[: 6 + observed].tolist()
    query = Query(tuple(names[:3]), tuple(names[3:6]), tuple(names[6:]))
    test = Oracle(graph)
    part = discover(test, tiers, band_of(query, tiers)).tests
    out.put((discover(test, tiers).tests, part))


def within(budget_s: float, *given: Any) -> tuple[int, int] | None:
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    process = context.Process(target=count, args=(*given, out))
    process.start()
    try:
        found: tuple[int, int] = out.get(timeout=budget_s)
    except queue.Empty:
        return None
    else:
        return found
    finally:
        process.kill()
        process.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=12)
    parser.add_argument("--largest", type=int, default=10)
    parser.add_argument("--budget-s", type=float, default=120.0)
    parser.add_argument("--no-write", action="store_true")
    given = parser.parse_args()
    exact = [family(m) for m in range(3, given.largest + 1)]
    lines = [
        "## Tests that all tiers and a query's tiers need, without errors in tests",
        "",
        f"{today()}. `bench/exponential.py`: the family of Proposition 4.2.",
        "",
        "| m | all tiers | query | ratio |",
        "|---|---|---|---|",
        *(
            f"| {r['m']} | {r['full']} | {r['query']} | {r['full'] / r['query']:.1f} |"
            for r in exact
        ),
        "",
        f"Graphs of the paper's kind, 10 variables a tier, 3 treatments, 3 outcomes, "
        f"{given.graphs} graphs each; a graph that took over {given.budget_s:.0f} s is left out of "
        "both means.",
        "",
        "| tiers | observed | graphs | all tiers, mean | query, mean | ratio of means | "
        "median ratio | largest |",
        "|---|---|---|---|---|---|---|---|",
    ]
    drawn = []
    for tier_count, observed in itertools.product((5, 8), (0, 2)):
        begun = time.perf_counter()
        pairs = [within(given.budget_s, tier_count, observed, seed) for seed in range(given.graphs)]
        done = [pair for pair in pairs if pair is not None]
        ratios = [full / max(part, 1) for full, part in done]
        full, part = (statistics.mean(side) for side in zip(*done, strict=True))
        drawn.append({"tiers": tier_count, "observed": observed, "counts": pairs,
                      "wall_s": time.perf_counter() - begun})  # fmt: skip
        lines.append(
            f"| {tier_count} | {observed} | {len(done)} | {full:.0f} | {part:.0f} | "
            f"{full / max(part, 1):.2f} | {statistics.median(ratios):.2f} | {max(ratios):.1f} |"
        )
        print(lines[-1], flush=True)
    print("\n".join(lines))
    if not given.no_write:
        results = REPORT.read_results()
        results["exponential"] = {"date": today(), "family": exact, "drawn": drawn}
        REPORT.write_results(results)
        REPORT.write_section("exponential", lines)


if __name__ == "__main__":
    main()

"""What `check` finds, and how often it accuses data without a fault.

    python bench/check.py [--graphs 100] [--tiers 5,5,5] [--rows 5000,50000]

Random graphs of the paper's generator, and the same graphs with a latent cause of two variables of
different tiers, neither of which causes the other. Gaussian tables are tested with Fisher's z,
discrete ones (2 or 3 states) with G2, at the defaults of the command. Power is over the graphs in
which the same search accuses that pair when its tests are m-separation: the others leave no trace
that `check` looks for. A false alarm is any `yes` on the unaltered graph; a wrong accusation is a
`yes` for another pair of the altered one.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import discovery
import numpy as np

from papercuts.benchmarks import Report, machine, today
from tierprune.admg import ADMG
from tierprune.assumption import Finding, check_assumption
from tierprune.independence.oracle import Oracle
from tierprune.simulation import random_graph, random_model, sample
from tierprune.tiers import Tiers

REPORT = Report(__file__)

Pair = tuple[str, str]


def with_cause(graph: ADMG, tiers: Tiers, rng: np.random.Generator) -> tuple[Pair, ADMG]:
    """Add a latent cause of two variables of different tiers, neither a cause of the other."""
    names = graph.names
    pairs = [
        (x, y)
        for x in names
        for y in names
        if tiers.of[x] < tiers.of[y] and not graph.descendants(graph.mask([x])) & graph.mask([y])
    ]
    pair = pairs[int(rng.integers(len(pairs)))]
    directed = [(names[i], names[j]) for i, j in graph.directed()]
    bidirected = [(names[i], names[j]) for i, j in graph.bidirected()]
    return pair, ADMG.from_edges(names, directed, [*bidirected, pair])


def told(findings: list[Finding], verdict: str) -> set[Pair]:
    """Give the edges of this verdict."""
    return {(f.early, f.late) for f in findings if f.verdict == verdict}


def one(kind: str, sizes: list[int], rows: list[int], seed: int) -> list[dict[str, Any]]:
    """Check the tables of one graph; gives a record for each number of rows."""
    rng = np.random.default_rng(seed)
    graph, tiers = random_graph(sizes, rng)
    pair, altered = with_cause(graph, tiers, rng)
    possible = pair in told(check_assumption(Oracle(altered), tiers)[0], "yes")
    models = [
        random_model(g, rng, kind="gaussian" if kind == "fisherz" else "discrete")
        for g in (graph, altered)
    ]
    found = []
    for count in rows:
        row: dict[str, Any] = {"test": kind, "seed": seed, "rows": count, "possible": possible}
        for which, model in zip(("clean", "altered"), models, strict=True):
            data = np.asarray(sample(model, count, rng))
            begun = time.perf_counter()
            findings, tests = check_assumption(discovery.test_of(kind, data, tiers), tiers)
            accused = told(findings, "yes")
            row[which] = {
                "wall_s": time.perf_counter() - begun,
                "tests": tests,
                "edges": len(findings),
                "accused": len(accused),
                "cleared": len(told(findings, "no")),
                "capped": sum(f.capped for f in findings),
            }
            if which == "altered":
                row["found"] = pair in accused
                row["wrong"] = bool(accused - {pair})
                row["wrongly_cleared"] = pair in told(findings, "no")
        found.append(row)
    return found


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Give a line for each test and number of rows."""
    lines = [
        "| test | rows | graphs | found / an oracle finds | false alarms, clean | wrong pair, "
        "altered | confounded pair cleared | edges cleared / capped / all, clean | s a table |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for kind, count in dict.fromkeys((row["test"], row["rows"]) for row in rows):
        mine = [row for row in rows if (row["test"], row["rows"]) == (kind, count)]
        clean = [row["clean"] for row in mine]
        hits = sum(row["found"] for row in mine if row["possible"])
        walls = [row[which]["wall_s"] for row in mine for which in ("clean", "altered")]
        cleared, capped, edges = (sum(c[k] for c in clean) for k in ("cleared", "capped", "edges"))
        lines.append(
            f"| {kind} | {count} | {len(mine)} | {hits} / {sum(r['possible'] for r in mine)} | "
            f"{sum(c['accused'] > 0 for c in clean)} | {sum(r['wrong'] for r in mine)} | "
            f"{sum(r['wrongly_cleared'] for r in mine)} | {cleared} / {capped} / {edges} | "
            f"{np.mean(walls):.2f} |"
        )
    return lines


def main() -> None:
    """Run all and write the section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=100)
    parser.add_argument("--tiers", default="5,5,5")
    parser.add_argument("--rows", default="5000,50000")
    parser.add_argument("--tests", default="fisherz,gsq")
    parser.add_argument("--no-write", action="store_true")
    given = parser.parse_args()
    sizes, counts = ([int(n) for n in text.split(",")] for text in (given.tiers, given.rows))
    begun = time.perf_counter()
    rows = [
        row
        for kind in given.tests.split(",")
        for seed in range(given.graphs)
        for row in one(kind, sizes, counts, seed)
    ]
    lines = [
        "## Checking the assumption about latent causes",
        "",
        f"{today()}, {machine()}. `bench/check.py --graphs {given.graphs} --tiers "
        f"{given.tiers}`: random graphs, and the same with a latent cause of two tiers; tests at "
        f"level 0.01, contradictions at 0.05. One process, {time.perf_counter() - begun:.0f} s.",
        "",
        *table(rows),
    ]
    print("\n".join(lines))
    if not given.no_write:
        results = REPORT.read_results()
        results["check"] = {"date": today(), "machine": machine(), "rows": rows}
        REPORT.write_results(results)
        REPORT.write_section("check", lines)


if __name__ == "__main__":
    main()

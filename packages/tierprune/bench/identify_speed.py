"""Time pruning and identification on large random tiered graphs.

Each graph has 2,000 variables in 20 tiers and about 10,000 edges, of which a share is bidirected
(inside a tier). `spread` is how far back a parent may lie, in variables. Asked for: pruned in
under 0.5 s, and identified (or its hedge found) in under 5 s, on one core.

    python packages/tierprune/bench/identify_speed.py [--quick]
"""

from __future__ import annotations

import json
import random
import sys
import time

from papercuts.benchmarks import Report, machine, today
from tierprune.admg import ADMG
from tierprune.identification import identify, identify_pruned
from tierprune.pruning import prune
from tierprune.query import Query
from tierprune.tiers import Tiers

REPORT = Report(__file__)

NODES, TIERS, EDGES = 2000, 20, 10_000
LIMITS_S = {"prune": 0.5, "identify": 5.0}


def tiered(
    rng: random.Random, nodes: int, tiers: int, edges: int, bidirected: float, spread: int
) -> tuple[ADMG, Tiers]:
    """Draw a graph whose variables are numbered tier by tier, and its tiers."""
    names = [f"v{i}" for i in range(nodes)]
    size = nodes // tiers
    directed, both = set(), set()
    while len(directed) + len(both) < edges:
        if rng.random() < bidirected:
            first = rng.randrange(tiers) * size
            a, b = sorted(rng.sample(range(first, first + size), 2))
            both.add((names[a], names[b]))
        else:
            b = rng.randrange(1, nodes)
            directed.add((names[rng.randrange(max(0, b - spread), b)], names[b]))
    groups = tuple(tuple(names[i : i + size]) for i in range(0, nodes, size))
    return ADMG.from_edges(names, sorted(directed), sorted(both)), Tiers(groups)


def queries(rng: random.Random, tiers: Tiers) -> dict[str, Query]:
    """Give one query of each kind; `band` says where treatments and outcomes lie."""
    groups, last = tiers.groups, len(tiers.groups) - 1

    def pick(tier: int, count: int) -> tuple[str, ...]:
        return tuple(rng.sample(groups[tier], count))

    return {
        "late": Query(pick(last - 1, 3), pick(last, 3)),
        "early": Query(pick(0, 3), pick(1, 3)),
        "whole": Query(pick(0, 3), pick(last, 3)),
        "given before": Query(pick(last // 2, 2), pick(last, 2), pick(0, 2)),
        "given after": Query(pick(last // 2, 2), pick(last - 1, 2), pick(last, 2)),
    }


def measure(seed: int, bidirected: float, spread: int) -> list[dict[str, object]]:
    rng = random.Random(seed)  # noqa: S311 (no secret)
    began = time.process_time()
    graph, tiers = tiered(rng, NODES, TIERS, EDGES, bidirected, spread)
    made_s = time.process_time() - began
    rows: list[dict[str, object]] = []
    for kind, query in queries(rng, tiers).items():
        began = time.process_time()
        pruned = prune(graph, tiers, query)
        prune_s = time.process_time() - began
        began = time.process_time()
        answer = identify_pruned(pruned, tiers.of, query)
        identify_s = time.process_time() - began
        began = time.process_time()
        whole = identify(graph, query)
        whole_s = time.process_time() - began
        assert whole.verdict == answer.verdict
        rows.append(
            {
                "seed": seed,
                "bidirected": bidirected,
                "spread": spread,
                "query": kind,
                "verdict": answer.verdict,
                "kept_edges": pruned.kept,
                "expressions": answer.estimand.size if answer.estimand else None,
                "make_s": round(made_s, 4),
                "prune_s": round(prune_s, 4),
                "identify_s": round(identify_s, 4),
                "identify_whole_s": round(whole_s, 4),
            }
        )
    return rows


def main() -> None:
    quick = "--quick" in sys.argv
    rows = []
    for bidirected in (0.02, 0.1, 0.5):
        for spread in (60, 300, 2000):
            for seed in range(1 if quick else 5):
                rows += measure(seed, bidirected, spread)
                for row in rows[-5:]:
                    print(json.dumps(row), flush=True)
    worst = {
        name: max(float(str(row[f"{name}_s"])) for row in rows)
        for name in ("prune", "identify", "identify_whole")
    }
    print(json.dumps({"worst_s": worst, "limits_s": LIMITS_S}))
    if not quick:
        record(rows, worst)


def record(rows: list[dict[str, object]], worst: dict[str, float]) -> None:
    results = REPORT.read_results()
    results["identify_speed"] = {
        "date": today(),
        "machine": machine(),
        "command": "python packages/tierprune/bench/identify_speed.py",
        "nodes": NODES,
        "edges": EDGES,
        "worst_s": worst,
        "rows": rows,
    }
    REPORT.write_results(results)
    lines = [
        "## Pruning and identification of large graphs",
        "",
        f"{today()}; one core of {machine()};",
        f"`bench/identify_speed.py`: {NODES} variables in {TIERS} tiers, {EDGES} edges, three",
        "shares of bidirected edges, three spreads, five seeds, five queries each. Worst CPU time.",
        "",
        "| query | identifiable | most expressions | prune | identify pruned | identify whole |",
        "|---|---|---|---|---|---|",
    ]
    for kind in dict.fromkeys(str(row["query"]) for row in rows):
        mine = [row for row in rows if row["query"] == kind]
        yes = sum(row["verdict"] == "yes" for row in mine)
        most = max(int(str(row["expressions"] or 0)) for row in mine)
        times = (
            f"{max(float(str(row[name])) for row in mine):.3f} s"
            for name in ("prune_s", "identify_s", "identify_whole_s")
        )
        lines.append(f"| {kind} | {yes} of {len(mine)} | {most} | {' | '.join(times)} |")
    limits = f"{LIMITS_S['prune']} s | {LIMITS_S['identify']} s | {LIMITS_S['identify']} s"
    lines.append(f"| asked for | | | {limits} |")
    REPORT.write_section("identify_speed", lines)


if __name__ == "__main__":
    main()

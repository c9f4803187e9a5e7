"""Learning side by side: causal-learn's FCI with tiers, all tiers (FCITIERS), and a query's tiers.

    python bench/discovery.py [--seeds 5] [--rows 20000] [--sizes 8,8,8,8,8] [--budget-s 900]

Same data, same tests, one process each, one thread. Our searches run after a warm-up, in both
orders; the better time of each counts. causal-learn (BackgroundKnowledge with the
tiers, its own caches on) runs in a process that is ended after the budget; its time then counts as
the budget, which makes its ratio a lower bound. Goal, stated before: FCITIERS at least 10 times as
fast as causal-learn's FCI, and the query's search never slower than FCITIERS.
"""

# ruff: noqa: E402 (the threads are set before numpy is loaded)

from __future__ import annotations

import argparse
import multiprocessing
import os
import queue
import statistics
import time
from typing import Any

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

import numpy as np

from papercuts.benchmarks import Report, machine, today
from tierprune.dataset import Coded
from tierprune.discovery import discover, warm_up
from tierprune.independence.base import Independence
from tierprune.independence.contingency import Contingency
from tierprune.independence.fisherz import FisherZ
from tierprune.query import Query, band_of
from tierprune.simulation import random_graph, random_model, sample
from tierprune.tiers import Tiers

REPORT = Report(__file__)

ALPHA = 0.01


def data_of(kind: str, sizes: list[int], rows: int, seed: int) -> tuple[Tiers, Any]:
    rng = np.random.default_rng(seed)
    graph, tiers = random_graph(sizes, rng)
    model = random_model(graph, rng, kind="gaussian" if kind == "fisherz" else "discrete")
    return tiers, np.asarray(sample(model, rows, rng))


def test_of(kind: str, data: Any, tiers: Tiers) -> Independence:
    if kind == "fisherz":
        return FisherZ(data, alpha=ALPHA, names=tiers.names)
    columns = []
    for name, values in zip(tiers.names, data.T, strict=True):
        levels, codes = np.unique(values, return_inverse=True)
        columns.append(Coded(name, codes, tuple(map(str, levels))))
    return Contingency(columns, alpha=ALPHA)


def peer(kind: str, data: Any, tiers: Tiers, out: Any, max_cond: int | None = None) -> None:
    """Run causal-learn's FCI; send its seconds and the number of tests that it asked for.

    Its `depth` bounds the sets of the first search alone; here `max_cond` bounds those of
    Possible-D-SEP too, as in tierprune.
    """
    from causallearn.graph.GraphNode import GraphNode
    from causallearn.search.ConstraintBased import FCI
    from causallearn.utils import cit
    from causallearn.utils.PCUtils.BackgroundKnowledge import BackgroundKnowledge

    kind_of = cit.FisherZ if kind == "fisherz" else cit.Chisq_or_Gsq
    plain, counted = kind_of.__call__, [0]

    def counting(self: Any, *args: Any) -> Any:
        counted[0] += 1
        return plain(self, *args)

    kind_of.__call__ = counting
    depth = -1
    if max_cond is not None:
        choices, depth = FCI.DepthChoiceGenerator, max_cond
        FCI.DepthChoiceGenerator = lambda count, most: choices(count, min(most, max_cond))
    known = BackgroundKnowledge()
    for name in tiers.names:
        known.add_node_to_tier(GraphNode(name), tiers.of[name])
    begun, cpu = time.perf_counter(), time.process_time()
    FCI.fci(
        data, kind, ALPHA, depth, background_knowledge=known, show_progress=False,
        node_names=list(tiers.names),
    )  # fmt: skip
    out.put((time.perf_counter() - begun, time.process_time() - cpu, counted[0]))


def run_peer(
    kind: str, data: Any, tiers: Tiers, budget_s: float, max_cond: int | None = None
) -> dict[str, Any]:
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    process = context.Process(target=peer, args=(kind, data, tiers, out, max_cond))
    process.start()
    try:
        wall_s, cpu_s, tests = out.get(timeout=budget_s)
    except queue.Empty:
        return {"wall_s": budget_s, "cpu_s": budget_s, "tests": None, "ended": False}
    else:
        return {"wall_s": wall_s, "cpu_s": cpu_s, "tests": tests, "ended": True}
    finally:
        process.kill()
        process.join()


def one(kind: str, sizes: list[int], rows: int, seed: int, budget_s: float) -> dict[str, Any]:
    tiers, data = data_of(kind, sizes, rows, seed)
    rng = np.random.default_rng(1000 + seed)
    late = rng.permutation([n for g in tiers.groups[2:] for n in g]).tolist()
    treatment, outcome = sorted(late[:2], key=lambda n: tiers.of[n])
    query = Query((treatment,), (outcome,))
    row: dict[str, Any] = {"test": kind, "seed": seed, "asked": str(query)}
    # What a process pays at its start is nobody's cost, and each search runs first in one of two
    # rounds: the better time of each counts.
    warm_up(test_of(kind, data, tiers))
    bands = {"full": None, "query": band_of(query, tiers)}
    for name in ("full", "query", "query", "full"):
        begun, cpu = time.perf_counter(), time.process_time()
        found = discover(test_of(kind, data, tiers), tiers, bands[name])
        made = {
            "wall_s": time.perf_counter() - begun,
            "cpu_s": time.process_time() - cpu,
            "tests": found.tests,
            "computed": found.computed,
        }
        if name not in row or made["wall_s"] < row[name]["wall_s"]:
            row[name] = made
    row["causal-learn"] = run_peer(kind, data, tiers, budget_s)
    return row


def table(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        "| test | seed | causal-learn s (tests) | full s (tests) | query s (tests) | "
        "causal-learn / full | full / query |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        peer_, full, part = row["causal-learn"], row["full"], row["query"]
        more = "" if peer_["ended"] else "> "
        lines.append(
            f"| {row['test']} | {row['seed']} | {more}{peer_['wall_s']:.1f} ({peer_['tests']}) | "
            f"{full['wall_s']:.2f} ({full['tests']}) | {part['wall_s']:.2f} ({part['tests']}) | "
            f"{more}{peer_['wall_s'] / full['wall_s']:.0f} | "
            f"{full['wall_s'] / part['wall_s']:.2f} |"
        )
    for kind in dict.fromkeys(row["test"] for row in rows):
        ratios = [
            r["causal-learn"]["wall_s"] / r["full"]["wall_s"] for r in rows if r["test"] == kind
        ]
        gains = [r["full"]["wall_s"] / r["query"]["wall_s"] for r in rows if r["test"] == kind]
        lines.append("")
        lines.append(
            f"{kind}: causal-learn / full: median {statistics.median(ratios):.0f}, "
            f"{min(ratios):.0f} to {max(ratios):.0f}; full / query: median "
            f"{statistics.median(gains):.2f}, {min(gains):.2f} to {max(gains):.2f}."
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--sizes", default="8,8,8,8,8")
    parser.add_argument("--budget-s", type=float, default=900.0)
    parser.add_argument("--tests", default="fisherz,gsq")
    parser.add_argument("--no-write", action="store_true")
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    rows = []
    for kind in given.tests.split(","):
        for seed in range(given.seeds):
            rows.append(one(kind, sizes, given.rows, seed, given.budget_s))
            print(rows[-1], flush=True)
    lines = [
        "## Discovery: causal-learn's FCI, all tiers, and a query's tiers",
        "",
        f"{today()}, {machine()}. `bench/discovery.py --seeds {given.seeds}`: tiers "
        f"of {given.sizes} variables from the paper's generator, {given.rows} rows, alpha "
        f"{ALPHA}, one process, one thread, same data and tests. Seconds are wall time.",
        "",
        *table(rows),
    ]
    print("\n".join(lines))
    if not given.no_write:
        results = REPORT.read_results()
        results["discovery"] = {"date": today(), "machine": machine(), "rows": rows}
        REPORT.write_results(results)
        REPORT.write_section("discovery", lines)


if __name__ == "__main__":
    main()

"""Time a million tasks into results.json and RESULTS.md: plan, simulate, write, read, check.

No peer plans such orders, so there is nothing to run beside; networkx, which gives the same
makespans, is timed on a smaller plan.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx

from bitsched.checking import check
from bitsched.costs import Costs
from bitsched.masks import make_shape
from bitsched.plan import Plan
from bitsched.planfile import read_plan, write_plan
from bitsched.planning import make_plan
from bitsched.simulation import simulate
from bitsched.taskgraph import predecessors
from papercuts.benchmarks import Report, machine, today

REPORT = Report(__file__)

REPEATS = 5
COSTS = Costs(5, 1)


def main() -> None:
    shape = make_shape("causal", n="128", heads=128)
    full = make_shape("full", n="128", heads=64)
    plan = make_plan(shape, "desc", 132, COSTS)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.jsonl"
        write_plan(plan, path)
        jobs: dict[str, tuple[int, Callable[[], Any]]] = {
            "simulate": (plan.tasks, lambda: simulate(plan, COSTS).makespan),
            "plan shift": (full.tasks, lambda: make_plan(full, "shift", 128, COSTS)),
            "plan sym": (shape.tasks, lambda: make_plan(shape, "sym", 128, COSTS)),
            "plan desc, dynamic": (shape.tasks, lambda: make_plan(shape, "desc", 132, COSTS)),
            "plan list": (shape.tasks, lambda: make_plan(shape, "list", 132, COSTS)),
            "plan auto": (shape.tasks, lambda: make_plan(shape, "auto", 132, COSTS)),
            "write": (plan.tasks, lambda: write_plan(plan, path, force=True)),
            "read": (plan.tasks, lambda: read_plan(path)),
            "check": (plan.tasks, lambda: check(plan)),
        }
        for name, (tasks, job) in jobs.items():
            job()  # numba compiles, or loads what it compiled
            rows.append({"job": name, "tasks": tasks} | timed(job))
    small = make_plan(make_shape("causal", n="32", heads=32), "desc", 132, COSTS)
    graph = dag(small)
    assert nx.dag_longest_path_length(graph) == simulate(small, COSTS).makespan
    job = lambda: nx.dag_longest_path_length(graph)  # noqa: E731
    rows.append({"job": "networkx, longest path", "tasks": small.tasks} | timed(job))
    where, date = machine(), today()
    REPORT.write_results(
        REPORT.read_results() | {"speed": {"date": date, "machine": where, "rows": rows}}
    )
    REPORT.write_section(
        "speed", table(rows, f"{date}; {where}; `python bench/speed.py`; one core.")
    )


def timed(job: Callable[[], Any]) -> dict[str, float]:
    """Give the median, least and most seconds of processor time."""
    times = []
    for _ in range(REPEATS):
        begin = time.process_time()
        job()
        times.append(time.process_time() - begin)
    return {"cpu_s": statistics.median(times), "cpu_s_min": min(times), "cpu_s_max": max(times)}


def dag(plan: Plan) -> nx.DiGraph:
    """Write the plan's graph: a node for each end of a compute and of a reduce."""
    edges: dict[tuple[int, int], float] = defaultdict(float)
    first = set(plan.starts.tolist())
    for t, u in enumerate(predecessors(plan).tolist()):
        edges[(3 * t, 3 * t + 1)] = COSTS.compute
        edges[(3 * t + 1, 3 * t + 2)] = 0.0
        edges[(3 * t + 2, -t - 1)] = COSTS.reduce
        if t not in first:
            edges[(-t, 3 * t)] = 0.0
        if u >= 0:
            edges[(-u - 1, 3 * t + 2)] = 0.0
    graph = nx.DiGraph()
    graph.add_weighted_edges_from((u, v, w) for (u, v), w in edges.items())
    return graph


def table(rows: list[dict[str, Any]], made: str) -> list[str]:
    lines = ["## Speed", "", made, "", "| job | tasks | median | min to max | tasks a second |"]
    lines.append("|---|---|---|---|---|")
    for row in rows:
        rate = row["tasks"] / max(row["cpu_s"], 1e-9)
        lines.append(
            f"| {row['job']} | {row['tasks']} | {row['cpu_s']:.3g} s |"
            f" {row['cpu_s_min']:.3g} to {row['cpu_s_max']:.3g} s | {rate:.3g} |"
        )
    return lines


if __name__ == "__main__":
    main()

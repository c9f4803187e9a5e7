"""Time the proof that no schedule is faster, beside the closed forms of the paper.

For n tiles on n processors and m heads, c = 5, r = 1, over five seeds of the solver: its optimum,
and the wall time of the search, once from scratch (no named schedule to begin at, no counting of
tiles) and once as `bitsched prove` does it. A search ends after a limit; the row then says so.

    python packages/bitsched/bench/prove.py [--quick]
"""

from __future__ import annotations

import json
import sys
from statistics import median
from typing import Any

from bitsched.costs import Costs
from bitsched.proving import prove
from papercuts.benchmarks import Report, machine, today

REPORT = Report(__file__)

SIZES = [(2, 2), (3, 2), (4, 2), (5, 2), (6, 2), (8, 2), (12, 2), (16, 4), (8, 3), (6, 1)]
LIMIT_S = 20.0
SEEDS = 5
COMMAND = "python packages/bitsched/bench/prove.py"


def measure(n: int, heads: int, mask: Any, seeds: int) -> dict[str, Any]:
    costs = Costs(5, 1)
    row: dict[str, Any] = {"mask": mask, "n": n, "heads": heads}
    for name, from_scratch in (("from_scratch", True), ("prove", False)):
        found = []
        for seed in range(seeds):
            proof, _ = prove(
                n, heads, mask, costs, from_scratch=from_scratch, time_limit_s=LIMIT_S, seed=seed
            )
            found.append(proof)
            if proof.verdict != "yes":
                break  # four more limits would say no more
        row["closed_form"] = found[0].closed_form
        row[name] = {
            "makespan": max(p.makespan for p in found),
            "bound": min(p.bound for p in found),
            "proved": all(p.verdict == "yes" for p in found),
            "schedule": found[0].schedule,
            "wall_s": [p.wall_s for p in found],
        }
    return row


def cell(way: dict[str, Any]) -> str:
    times = way["wall_s"]
    if not way["proved"]:
        return f"between {way['bound']:g} and {way['makespan']:g} after {max(times):.0f} s"
    return f"{median(times):.2f} s ({min(times):.2f} to {max(times):.2f})"


def record(rows: list[dict[str, Any]]) -> None:
    results = REPORT.read_results()
    results["prove"] = {
        "date": today(),
        "machine": machine(),
        "command": COMMAND,
        "c": 5,
        "r": 1,
        "limit_s": LIMIT_S,
        "rows": rows,
    }
    REPORT.write_results(results)
    lines = [
        "## The least makespan, proved",
        "",
        f"{today()}; {machine()};",
        f"`{COMMAND}`:",
        "n KV by n Q tiles on n processors, c = 5, r = 1. One thread of CP-SAT; wall time of the",
        f"search, median and range over {SEEDS} seeds. From scratch: without a schedule to begin",
        "at and without the counting bound.",
        "",
        "| mask | n | heads | closed form | least makespan | from scratch | `prove` |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        best = row["prove"]
        least = f"{best['makespan']:g}" if best["proved"] else f"{best['bound']:g} or more"
        lines.append(
            f"| {row['mask']} | {row['n']} | {row['heads']} | {row['closed_form']:g} | {least} | "
            f"{cell(row['from_scratch'])} | {cell(best)} |"
        )
    REPORT.write_section("prove", lines)


def main() -> None:
    quick = "--quick" in sys.argv
    rows = []
    for mask in ("causal", "full"):
        for n, heads in SIZES[:4] if quick else SIZES:
            rows.append(measure(n, heads, mask, 1 if quick else SEEDS))
            print(json.dumps(rows[-1]), flush=True)
    if not quick:
        record(rows)


if __name__ == "__main__":
    main()

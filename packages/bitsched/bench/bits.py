"""Count the results of fifty runs of each schedule, and their largest difference.

The backward pass of one attention layer, 512 tokens, two heads of width 64, tiles of 64, on eight
threads with random delays, five seeds of inputs and delays. Asked for: one result under every
schedule, more than one without an order, and (fp32) gradients within 1e-5 of autograd in fp64.

    python packages/bitsched/bench/bits.py [--quick]
"""

from __future__ import annotations

import json
import sys
from typing import Any

from bitsched.bits import compare_all, plans_to_run
from papercuts.benchmarks import Report, machine, today

REPORT = Report(__file__)

RUNS, THREADS, SEEDS = 50, 8, 5
COMMAND = "python packages/bitsched/bench/bits.py"
# Largest difference between two runs that the paper saw without an order (bf16, H800).
PAPER = {"full": 2.4e-4, "causal": 4.9e-4}


def measure(mask: str, dtype: str, seeds: int, runs: int) -> list[dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for seed in range(seeds):
        plans = plans_to_run(None, None, mask, 512, "64", 2, None, None, seed)
        for one in compare_all(
            plans, seqlen=512, width=64, dtype=dtype, threads=THREADS, runs=runs, seed=seed
        ):
            row = rows.setdefault(
                one.schedule,
                {"mask": mask, "dtype": dtype, "schedule": one.schedule, "ordered": one.ordered}
                | {key: [] for key in ("hashes", "deviation", "max_error", "wall_s")},
            )
            for key in ("hashes", "deviation", "max_error", "wall_s"):
                row[key].append(getattr(one, key))
    return list(rows.values())


def spread(values: list[float], form: str) -> str:
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low} to {high}"


def record(rows: list[dict[str, Any]]) -> None:
    results = REPORT.read_results()
    results["bits"] = {
        "date": today(),
        "machine": machine(),
        "command": COMMAND,
        "runs": RUNS,
        "threads": THREADS,
        "paper_deviation": PAPER,
        "rows": rows,
    }
    REPORT.write_results(results)
    lines = [
        "## Bits",
        "",
        f"{today()}; {machine()};",
        f"`{COMMAND}`: 512 tokens, two heads of width 64, tiles of 64, {THREADS} threads,",
        f"{RUNS} runs for each of {SEEDS} seeds. Range over the seeds; differences are absolute.",
        f"The paper (H800, bf16) saw {PAPER['full']:g} (full) and {PAPER['causal']:g} (causal)",
        "between runs without an order, and 0 with one.",
        "",
        f"| mask | type | schedule | results of {RUNS} runs | between runs | to autograd, fp64 |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['mask']} | {row['dtype']} | {row['schedule']} | {spread(row['hashes'], 'd')} "
        f"| {spread(row['deviation'], '.1e') if max(row['deviation']) else 0} "
        f"| {spread(row['max_error'], '.1e')} |"
        for row in rows
    ]
    REPORT.write_section("bits", lines)


def main() -> None:
    quick = "--quick" in sys.argv
    rows = []
    for mask in ("causal", "full"):
        for dtype in ("fp32", "bf16"):
            rows += measure(mask, dtype, 1 if quick else SEEDS, 3 if quick else RUNS)
            print(json.dumps(rows[-1]), flush=True)
            assert all(set(row["hashes"]) == {1} for row in rows if row["ordered"])
            if not quick:
                record(rows)  # what is there so far


if __name__ == "__main__":
    main()

"""Train from nothing for eight minutes on two cores, and measure what it brings on fresh formulas.

    python packages/satguide/bench/eight_minutes.py [--minutes 8]

`satguide train gen:3sat:100 --minutes 8` with everything else as it is by default, then `eval` on
200 formulas of 150 variables and 60 of 200: the guided mean shall lie at least 15 % below both
baselines with a paired t over 3, and in the same direction at 200 (both set before the run).
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from guided import Row, formulas

from papercuts.benchmarks import Report, machine, today
from satguide.checkpoint import read
from satguide.costs import Meter
from satguide.evaluation import Contest, evaluate
from satguide.evaluation_table import Table
from satguide.trainer import Settings
from satguide.training import Run, default_log, train

REPORT = Report(__file__)

ROWS = (Row("3sat", 100, 200, ""), Row("3sat", 150, 200, ""), Row("3sat", 200, 60, ""))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=8.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        output = str(Path(folder, "3sat.safetensors"))
        run = Run(output, default_log(output), None, given.minutes)
        train("gen:3sat:100", Settings(average=0.9), Meter(), run)
        made = read(output).made
        log = [json.loads(line) for line in Path(run.log).read_text().splitlines()]
        rows = [measure(output, row) for row in ROWS]
    found = {
        "date": today(),
        "machine": machine(),
        "minutes": given.minutes,
        "iterations": made["iterations"],
        "best_iteration": made["best_iteration"],
        "seconds_an_iteration": sum(r["solve_s"] + r["learn_s"] for r in log) / len(log),
        "rows": rows,
    }
    REPORT.write_results(REPORT.read_results() | {"eight_minutes": found})
    REPORT.write_section("eight_minutes", report(found))


def measure(model: str, row: Row) -> dict[str, Any]:
    contest = Contest()
    table = Table(contest)
    for result in evaluate(read(model), formulas(row), contest):
        table.add(result)
    assert not table.disagreements
    return {"size": row.size, "arms": table.records()}


def report(found: dict[str, Any]) -> list[str]:
    lines = [
        "## Eight minutes of training",
        "",
        f"{found['date']}; {found['machine']}; `python bench/eight_minutes.py`: "
        f"{found['iterations']} iterations of {found['seconds_an_iteration']:.2f} s (20 formulas, "
        "24 settings each, 8 steps; validation not counted), the best at "
        f"{found['best_iteration']}.",
        "",
        "| 3SAT variables | formulas | plain VSIDS | w = 1, p = 1 | guided | against plain | t |"
        " against w = 1, p = 1 | t |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in found["rows"]:
        arms = {arm["arm"]: arm for arm in row["arms"]}
        counts = " | ".join(f"{arms[a]['decisions_mean']:.1f}" for a in ("plain", "unit", "guided"))
        against = " | ".join(
            f"{arms[a]['change_percent']:+.1f} % | {arms[a]['t']:.1f}" for a in ("plain", "unit")
        )
        lines.append(f"| {row['size']} | {arms['guided']['formulas']} | {counts} | {against} |")
    return lines


if __name__ == "__main__":
    main()

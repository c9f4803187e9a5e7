"""Measure the three checkpoints that ship on formulas that no training has seen.

    python packages/satguide/bench/guided.py [--only 3sat-200,...] [--jobs N]

The formulas are those of `satguide gen FAMILY --size SIZE --count COUNT --seed 1`, so that any row
can be had by hand from `gen` and `eval`. Each formula is solved by clasp guided, by plain VSIDS and
with w = 1, p = 1, and by the solvers of python-sat that a person would use instead. Writes
results.json (one entry a row) and RESULTS.md; rows that are not run again are kept.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from papercuts.benchmarks import Report, machine, today
from papercuts.parallel import seed_for
from satguide.cnf import CNF
from satguide.evaluation import Contest, evaluate
from satguide.evaluation_table import Table
from satguide.families.spec import generator
from satguide.models import load

REPORT = Report(__file__)

SEED = 1
VERSUS = ("minisat22", "glucose4", "cadical195", "kissat404")


@dataclass(frozen=True)
class Row:
    """Formulas of one size. `required` and `aim` are changes in %, set before the run."""

    family: str
    size: int
    count: int
    unit: str
    required: int | None = None
    aim: int | None = None
    versus: tuple[str, ...] = VERSUS

    @property
    def name(self) -> str:
        """The row's name in results.json."""
        return f"{self.family}-{self.size}"


ROWS = (
    Row("3sat", 100, 200, "variables"),
    Row("3sat", 150, 100, "variables"),
    Row("3sat", 200, 100, "variables", -15, -30),
    Row("3sat", 250, 30, "variables"),
    Row("3col", 150, 100, "vertices"),
    Row("3col", 250, 150, "vertices", -8, -15),
    Row("3col", 400, 24, "vertices", versus=()),  # the longest solves by far
    Row("hitag2", 26, 100, "bits known"),
    Row("hitag2", 24, 100, "bits known", -25, -40),
    Row("hitag2", 22, 40, "bits known"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="names of rows, as in 3sat-200,hitag2-24")
    parser.add_argument("--jobs", type=int, default=None)
    given = parser.parse_args()
    chosen = given.only.split(",") if given.only else [row.name for row in ROWS]
    results = REPORT.read_results()
    for row in ROWS:
        if row.name in chosen:
            results.setdefault("guided", {})[row.name] = measure(row, given.jobs)
            REPORT.write_results(results)
    REPORT.write_section("guided", report(results["guided"]))


def measure(row: Row, jobs: int | None) -> dict[str, Any]:
    checkpoint = load(row.family)
    contest = Contest(versus=row.versus, polarity=checkpoint.polarity, timeout_s=300.0, jobs=jobs)
    table = Table(contest)
    for number, result in enumerate(evaluate(checkpoint, formulas(row), contest), 1):
        table.add(result)
        sys.stderr.write(f"\r{row.name}: {number} of {row.count} ")
        sys.stderr.flush()
    sys.stderr.write("\n")
    assert not table.disagreements, table.disagreements
    return {
        "date": today(),
        "machine": machine(),
        "jobs": jobs or len(os.sched_getaffinity(0)),
        "arms": table.records(),
    }


def formulas(row: Row) -> Iterator[CNF]:
    make = generator(row.family)
    return (make(row.size, seed_for(SEED, index)) for index in range(row.count))


def report(rows: dict[str, Any]) -> list[str]:
    known = [row for row in ROWS if row.name in rows]
    made = sorted({(rows[r.name]["date"], rows[r.name]["machine"]) for r in known})
    lines = ["## Guided against unguided", ""]
    lines += [f"{date}; {where}; `python bench/guided.py`." for date, where in made]
    lines += ["", *_decisions(known, rows), "", *_times(known, rows)]
    return lines


def _decisions(known: list[Row], rows: dict[str, Any]) -> list[str]:
    lines = [
        "Mean decisions of clasp; change, its 95 % interval (paired bootstrap) and paired t "
        "against the better baseline.",
        "",
        "| formulas | number | plain VSIDS | w = 1, p = 1 | guided | change | t | required | aim |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in known:
        arms = {arm["arm"]: arm for arm in rows[row.name]["arms"]}
        guided = arms["guided"]
        low, high = (100 * (guided[name] - 1) for name in ("ratio_low", "ratio_high"))
        counts = (f"{arms[a]['decisions_mean']:.1f}" for a in ("plain", "unit", "guided"))
        wanted = ("" if v is None else f"{v} %" for v in (row.required, row.aim))
        lines.append(
            f"| {row.family}, {row.size} {row.unit} | {guided['formulas']} | {' | '.join(counts)} |"
            f" {guided['change_percent']:+.1f} % ({low:+.1f} to {high:+.1f}) | {guided['t']:.1f} |"
            f" {' | '.join(wanted)} |"
        )
    return lines


def _times(known: list[Row], rows: dict[str, Any]) -> list[str]:
    arms = ("guided", "plain", "unit", *VERSUS)
    lines = [
        "Mean seconds to an answer, a formula: PAR2 with a limit of 300 s. Guided includes the "
        "network, whose own time is in brackets.",
        "",
        f"| formulas | {' | '.join(arms)} |",
        "|---|" + "---|" * len(arms),
    ]
    for row in known:
        found = {arm["arm"]: arm for arm in rows[row.name]["arms"]}
        cells = [f"{found[arm]['par2_s']:.4f}" if arm in found else "" for arm in arms]
        cells[0] += f" ({found['guided']['network_mean_s']:.4f})"
        lines.append(f"| {row.family}, {row.size} {row.unit} | {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    main()

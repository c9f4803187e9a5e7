"""Write `satguide bench` into results.json and RESULTS.md: solving, training, guiding, reading."""

from __future__ import annotations

from typing import Any

from papercuts.benchmarks import Report, machine, today
from satguide.speed import run

REPORT = Report(__file__)

# Of the median: at least so many a second, or at most so many seconds.
ASKED = {"solve_3sat_100": "350 a second or more", "train_3sat_100": "1.0 s or less"}


def main() -> None:
    rows = list(run(5, None))
    where, date = machine(), today()
    REPORT.write_results(
        REPORT.read_results() | {"speed": {"date": date, "machine": where, "rows": rows}}
    )
    REPORT.write_section("speed", table(rows, f"{date}; {where}; `satguide bench`."))


def table(rows: list[dict[str, Any]], made: str) -> list[str]:
    lines = ["## Speed", "", made, "", "| job | size | median | min to max | a second | asked |"]
    lines.append("|---|---|---|---|---|---|")
    return [*lines, *map(_line, rows)]


def _line(row: dict[str, Any]) -> str:
    return (
        f"| {row['job']} | {row['size']} {row['unit']} | {row['wall_s']:.3g} s |"
        f" {row['wall_s_min']:.3g} to {row['wall_s_max']:.3g} s | {row['per_s']:.4g} |"
        f" {ASKED.get(row['job'], '')} |"
    )


if __name__ == "__main__":
    main()

"""Write `seesaw bench` into results.json and RESULTS.md: planning, reading, simulating."""

from __future__ import annotations

import json
import time
from pathlib import Path

from report import HERE, machine

from seesaw.speed import measure

BEGIN, END = "<!-- speed: begin -->", "<!-- speed: end -->"
LIMITS_S = {"plan": 0.5, "convert": None, "simulate_sgd": 20.0, "simulate_nsgd": 20.0}


def section(rows: list[dict[str, object]], where: str, date: str) -> str:
    lines = [
        BEGIN,
        "## Speed",
        "",
        f"{date}; {where}; `seesaw bench` (`just bench seesaw` writes this table).",
        "",
        "| job | size | median | min to max | asked for |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        limit = LIMITS_S[str(row["job"])]
        asked = "" if limit is None else f"under {limit:g} s"
        lines.append(
            f"| {row['job']} | {row['size']:.0e} {row['unit']} | {row['wall_s']:.3g} s |"
            f" {row['wall_s_min']:.3g} to {row['wall_s_max']:.3g} s | {asked} |"
        )
    return "\n".join([*lines, END]) + "\n"


def main() -> None:
    rows = list(measure(5))
    where, date = machine(), time.strftime("%Y-%m-%d")
    results = HERE / "results.json"
    whole = json.loads(results.read_text()) if results.exists() else {}
    whole["speed"] = {"date": date, "machine": where, "command": "seesaw bench", "rows": rows}
    results.write_text(json.dumps(whole, indent=1) + "\n")
    path = Path(HERE, "RESULTS.md")
    text = path.read_text() if path.exists() else "# What was measured\n"
    if BEGIN in text:
        text = text[: text.index(BEGIN)] + text[text.index(END) + len(END) + 1 :]
    path.write_text(text.rstrip() + "\n\n" + section(rows, where, date))


if __name__ == "__main__":
    main()

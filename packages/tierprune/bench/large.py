"""`discover` on 200 columns x 100,000 rows with Fisher's z and a late query.

    python bench/large.py [--tiers 10x20] [--rows 100000] [--seeds 5] [--jobs 2] [--max-cond N]

Each seed draws a linear Gaussian model of the paper's kind of graph, writes the data as CSV, and
runs the command as a user would. The query sets a variable of the last tier but one, its outcome is
in the last tier. Goal, stated before: under 10 minutes and 4 GiB on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from papercuts.benchmarks import Report, machine, today
from tierprune.simulation import random_graph, random_model, read_sizes, sample

REPORT = Report(__file__)


def one(
    sizes: list[int], rows: int, seed: int, jobs: int, max_cond: int | None, folder: str
) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    graph, tiers = random_graph(sizes, rng)
    data = sample(random_model(graph, rng, kind="gaussian"), rows, rng)
    csv, spec, out = (str(Path(folder) / name) for name in ("d.csv", "d.tiers.json", "d.json"))
    pd.DataFrame(data, columns=list(tiers.names)).to_csv(csv, index=False, float_format="%.6g")
    Path(spec).write_text(json.dumps([list(group) for group in tiers.groups]))
    last = len(sizes)
    command = [
        sys.executable, "-c", "from tierprune.cli import app; app()", "discover", csv,
        "--tiers", spec, "--do", f"V{last - 1}_1", "--outcome", f"V{last}_2",
        "--jobs", str(jobs), "-o", out, "--force",
        *([] if max_cond is None else ["--max-cond", str(max_cond)]),
    ]  # fmt: skip
    begun = time.perf_counter()
    pid = os.posix_spawn(sys.executable, command, os.environ)
    _, status, used = os.wait4(pid, 0)
    wall_s = time.perf_counter() - begun
    assert os.waitstatus_to_exitcode(status) == 0
    found = json.loads(Path(out).read_text())
    return {
        "seed": seed, "csv_mib": Path(csv).stat().st_size / 2**20, "wall_s": wall_s,
        "learn_s": found["wall_s"], "peak_mib": used.ru_maxrss / 1024, "tests": found["tests"],
        "edges": len(found["edges"]),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiers", default="10x20")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--max-cond", type=int)
    parser.add_argument("--no-write", action="store_true")
    given = parser.parse_args()
    sizes = read_sizes(given.tiers)
    bound = "no bound" if given.max_cond is None else f"--max-cond {given.max_cond}"
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for seed in range(given.seeds):
            rows.append(one(sizes, given.rows, seed, given.jobs, given.max_cond, folder))
            print(rows[-1], flush=True)
    lines = [
        f"## Discovery on {sum(sizes)} columns x {given.rows} rows",
        "",
        f"{today()}, {machine()}. `bench/large.py --seeds {given.seeds} --jobs "
        f"{given.jobs}`: Fisher's z, tiers {given.tiers}, a late query, {bound} on the sets. "
        "Reading included.",
        "",
        "| seed | CSV, MiB | wall s | of it learning | peak MiB | tests | edges |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {r['seed']} | {r['csv_mib']:.0f} | {r['wall_s']:.1f} | {r['learn_s']:.1f} | "
            f"{r['peak_mib']:.0f} | {r['tests']} | {r['edges']} |"
            for r in rows
        ),
    ]
    print("\n".join(lines))
    if not given.no_write:
        results = REPORT.read_results()
        results["large"] = {"date": today(), "machine": machine(), "rows": rows}
        REPORT.write_results(results)
        REPORT.write_section("large", lines)


if __name__ == "__main__":
    main()

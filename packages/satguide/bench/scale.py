"""Measure reading, guiding and exporting formulas of up to a million variables.

    python bench/scale.py [--sizes 250000,500000,1000000] [--width 32] [--layers 4]

Each formula has four random 3-clauses a variable; the network has random weights, which costs what
a trained one costs. Every job runs in a process of its own, whose peak memory is the kernel's count
(import of torch, the interpreter and all). Reading has one core. The last record says whether the
memory of guiding is linear: what a variable adds between successive sizes, in bytes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from papercuts.benchmarks import Report, machine, today

REPORT = Report(__file__)

LIMITS = {"wall_s": 6.0, "peak_mib": 1.5e9 / 2**20}  # asked for of reading 1 M variables
CLAUSES = 4  # a variable
SPREAD = 0.2  # of the bytes that a variable adds, where memory counts as linear


def generate(path: str, variables: int) -> None:
    """Write a formula whose literals are uniform."""
    import numpy as np

    from satguide import dimacs
    from satguide.cnf import CNF

    random = np.random.default_rng(variables)
    clauses = CLAUSES * variables
    literals = random.integers(1, variables + 1, 3 * clauses, dtype=np.int32)
    literals *= random.choice(np.array([-1, 1], dtype=np.int32), literals.size)
    with Path(path).open("wb") as out:
        dimacs.write(out, CNF(variables, literals, np.arange(clauses + 1) * 3))


def make_model(path: str, width: int, layers: int) -> None:
    """Write a checkpoint with random weights."""
    import torch

    from satguide.checkpoint import Checkpoint, write
    from satguide.network import GuidanceNetwork, Shape

    torch.manual_seed(1)
    network = GuidanceNetwork(Shape(width, layers))
    for parameter in network.read_out.parameters():  # a new network says nothing of any variable
        torch.nn.init.normal_(parameter, std=0.1)
    write(path, Checkpoint(network, sigma=0.1))


def read(path: str) -> dict[str, Any]:
    """Read a formula."""
    from satguide import dimacs

    start = time.perf_counter()
    cnf = dimacs.load(path, strict=True)
    return {"wall_s": time.perf_counter() - start, "clauses": len(cnf)}


def guide(path: str, model: str) -> dict[str, Any]:
    """Read a formula and ask the network."""
    from satguide import dimacs, models
    from satguide.guidance import guide as ask

    checkpoint, cnf = models.load(model), dimacs.load(path)
    start = time.perf_counter()
    guidance = ask(checkpoint, cnf)
    return {
        "wall_s": time.perf_counter() - start,
        "clauses": len(cnf),
        "weights": len(guidance.weights),
    }


def in_process(command: list[str], **environment: str) -> dict[str, Any]:
    """Run a command; give what it printed as JSON, if it did, and what it cost."""
    start = time.perf_counter()
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | environment
    )
    assert child.stdout is not None
    text = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {child.returncode}")
    row = {"process_s": time.perf_counter() - start, "cpu_s": used.ru_utime + used.ru_stime}
    return {**(json.loads(text) if text else {}), **row, "peak_mib": used.ru_maxrss / 1024}


def itself(job: str, *arguments: object, **environment: str) -> dict[str, Any]:
    """Run a function of this file in a process of its own."""
    return in_process([sys.executable, __file__, job, *map(str, arguments)], **environment)


def measure(folder: Path, variables: int, model: str) -> list[dict[str, Any]]:
    """Measure the jobs on a formula of a size."""
    path = str(folder / "formula.cnf")
    itself("generate", path, variables)
    size = {"variables": variables, "file_mb": Path(path).stat().st_size / 1e6}
    rows = [{"job": "read", **size, **itself("read", path, OMP_NUM_THREADS="1")}]
    if variables >= 10**6:
        rows[0]["verdict"] = "yes" if all(rows[0][k] < v for k, v in LIMITS.items()) else "no"
    rows.append({"job": "guide", **size, **itself("guide", path, model)})
    command = [sys.executable, "-m", "satguide", "weights", model, path, "--format", "clasp"]
    result = folder / "guided.cnf"
    row = in_process([*command, "--force", "-o", str(result)])
    rows.append({"job": "weights --format clasp", **size, **row})
    rows[-1]["output_mb"] = result.stat().st_size / 1e6
    return rows


def linear(rows: list[dict[str, Any]], job: str) -> dict[str, Any]:
    """Say how many bytes of memory a variable (with its clauses) adds, from size to size."""
    points = [(row["variables"], row["peak_mib"] * 2**20) for row in rows if row["job"] == job]
    steps = [
        (more - less) / (larger - smaller)
        for (smaller, less), (larger, more) in itertools.pairwise(points)
    ]
    verdict = "yes" if max(steps) <= (1 + SPREAD) * min(steps) else "no"
    return {"job": f"{job}: memory", "bytes_per_variable": steps, "verdict": verdict}


def main() -> None:
    if sys.argv[1:2] == ["generate"]:
        generate(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1:2] == ["model"]:
        make_model(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    elif sys.argv[1:2] == ["read"]:
        print(json.dumps(read(sys.argv[2])))
    elif sys.argv[1:2] == ["guide"]:
        print(json.dumps(guide(sys.argv[2], sys.argv[3])))
    else:
        bench()


def bench() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="250000,500000,1000000")
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--layers", type=int, default=4)
    given = parser.parse_args()
    sizes = sorted(int(size) for size in given.sizes.split(","))
    with tempfile.TemporaryDirectory() as name:
        model = str(Path(name, "model.safetensors"))
        network = {"width": given.width, "layers": given.layers}
        itself("model", model, given.width, given.layers)
        rows = []
        for variables in sizes:
            for row in measure(Path(name), variables, model):
                rows.append(row if row["job"] == "read" else row | network)
                print(json.dumps(rows[-1]), flush=True)
        if len(sizes) > 2:
            for job in ("guide", "weights --format clasp"):
                rows.append(linear(rows, job))
                print(json.dumps(rows[-1]), flush=True)
    found = {"date": today(), "machine": machine(), "rows": rows}
    REPORT.write_results(REPORT.read_results() | {"scale": found})
    REPORT.write_section("scale", report(found))


def report(found: dict[str, Any]) -> list[str]:
    """Write the table of jobs and sizes."""
    lines = [
        "## Scale",
        "",
        f"{found['date']}; {found['machine']}; `python bench/scale.py`. Four random 3-clauses a "
        "variable; a network of width 32 and 4 layers; peak memory of the whole process.",
        "",
        "| job | variables | clauses | wall | peak | asked |",
        "|---|---|---|---|---|---|",
    ]
    for row in found["rows"]:
        if "bytes_per_variable" in row:
            steps = ", ".join(f"{step:.0f}" for step in row["bytes_per_variable"])
            lines.append(
                f"| {row['job']} | | | | {steps} bytes a variable from size to size |"
                f" linear: {row['verdict']} |"
            )
            continue
        asked = "under 6 s and 1.5 GB" if "verdict" in row else ""
        seconds = row.get("wall_s", row["process_s"])
        lines.append(
            f"| {row['job']} | {row['variables']:,} | {CLAUSES * row['variables']:,} |"
            f" {seconds:.1f} s | {row['peak_mib']:.0f} MiB | {asked} |"
        )
    return lines


if __name__ == "__main__":
    main()

"""How fast planning, reading a curve and the exact simulation are on this machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from papercuts.streams import open_output
from seesaw.curve import read_curve
from seesaw.measured import plan_from_curve
from seesaw.planner import make_plan
from seesaw.recursion import Segment, make_problem, matched_lr, parse_spectrum, run

MILLION = 1_000_000
EIGENVALUES, STEPS = 10_000, 100_000


def measure(repeats: int) -> Iterator[dict[str, Any]]:
    """Yield one record per job: its size, and the median, minimum and maximum of its wall time."""
    yield _timed("plan", "steps", MILLION, repeats, _plan)
    with TemporaryDirectory() as folder:
        path = f"{folder}/curve.csv"
        _write_curve(path)
        yield _timed("convert", "rows", MILLION, repeats, lambda: _convert(path))
    size = EIGENVALUES * STEPS
    yield _timed("simulate_sgd", "eigenvalues_x_steps", size, 1, lambda: _simulate(False))
    yield _timed("simulate_nsgd", "eigenvalues_x_steps", size, 1, lambda: _simulate(True))


def _timed(
    job: str, unit: str, size: int, repeats: int, work: Callable[[], object]
) -> dict[str, Any]:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return {
        "job": job,
        "size": size,
        "unit": unit,
        "repeats": repeats,
        "wall_s": statistics.median(times),
        "wall_s_min": min(times),
        "wall_s_max": max(times),
    }


def _plan() -> None:
    make_plan(lr=3e-3, batch=256, seq_len=1024, tokens=256 * 1024 * MILLION)


def _write_curve(path: str) -> None:
    steps = np.arange(MILLION)
    lrs = 3e-3 * (0.55 + 0.45 * np.cos(np.pi * steps / MILLION))
    with open_output(path) as out:
        out.writelines(b"%d,%.9g\n" % row for row in zip(steps.tolist(), lrs.tolist(), strict=True))


def _convert(path: str) -> None:
    plan_from_curve(read_curve(path), batch=256, seq_len=1024)


def _simulate(normalized: bool) -> None:
    problem = make_problem(parse_spectrum("power:1.5", EIGENVALUES))
    lr = 0.1 / problem.trace
    if normalized:
        lr = matched_lr(problem, lr, 4.0)
    lrs = lr * (0.55 + 0.45 * np.cos(np.pi * np.arange(STEPS) / STEPS))
    run(problem, [Segment(lrs, 4.0, STEPS)], normalized=normalized)

"""Find weights of Hitag2's variables by an evolution strategy, as a beginning for training.

    python packages/satguide/bench/training/hitag2_prior.py --iterations 150 -o hitag2-prior.jsonl

All Hitag2 formulas have the same variables in the same roles, so one table of weights can be tried
on any of them: a weight for each of the 48 state bits, one for the bits fed back, and one for each
kind of gate, 62 numbers. An iteration draws new formulas and antithetic pairs of tables and moves
along the decision counts, standardised within each formula. The table is the input of
`satguide train --prior`; the network that is trained from it never sees a variable's number.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papercuts.parallel import seed_for
from satguide import prior
from satguide.costs import Meter, Task, measure
from satguide.families import hitag2

SEED = 7006
KNOWN = (28, 27, 26)
PAIRS, FORMULAS = 14, 6
SPREAD, RATE, MOMENTUM = 0.35, 0.2, 0.8
START = 2.0  # of log w of the state bits: above all else, as solvers of such formulas branch


def roles() -> NDArray[np.int64]:
    """Give the number of the weight that each variable has: [816]."""
    register, gates = hitag2.STATE, 1 + len(hitag2.FILTERS) + 1
    shifted = hitag2.OUTPUTS + max(max(taps) for _, taps in hitag2.FILTERS)
    found = list(range(hitag2.STATE))
    for _ in range(hitag2.OUTPUTS):
        found += [hitag2.STATE + 1 + k for k in range(gates - 1)]
        if register < shifted:
            register += 1
            found += [hitag2.STATE, *(hitag2.STATE + gates + k for k in range(7))]
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=150)
    parser.add_argument("--first", type=int, default=0, help="number of the first iteration")
    parser.add_argument("--begin", help="a table to go on from")
    parser.add_argument("--jobs", type=int, default=None)
    parser.add_argument("-o", "--output", required=True)
    given = parser.parse_args()
    role = roles()
    log_w = np.zeros(role.max() + 1)
    log_w[: hitag2.STATE] = START
    if given.begin:
        log_w[role] = prior.read_table(given.begin)
    velocity, meter = np.zeros_like(log_w), Meter(jobs=given.jobs, polarity="none", limit=20_000)
    start = time.perf_counter()
    for iteration in range(given.first, given.first + given.iterations):
        random = np.random.default_rng(seed_for(SEED, 2 * iteration))
        half = random.standard_normal((PAIRS, log_w.size))
        noise = np.concatenate([half, -half])
        cost = costs(iteration, np.exp(log_w + SPREAD * noise)[:, role], meter)
        logs = np.log1p(cost)
        gain = (logs.mean(0) - logs) / (logs.std(0, ddof=1) + 1e-8)
        velocity = MOMENTUM * velocity + (1 - MOMENTUM) * noise.T @ gain.mean(1) / len(noise)
        log_w += RATE * SPREAD * velocity * np.sqrt(len(noise))
        sys.stderr.write(
            f"{iteration + 1} {time.perf_counter() - start:.0f} s "
            f"cost {cost.mean():.1f} geo {np.exp(logs.mean()):.1f} moved {log_w.std():.3f}\n"
        )
        if (iteration + 1) % 10 == 0:
            write(given.output, np.exp(log_w)[role])
    write(given.output, np.exp(log_w)[role])


def costs(iteration: int, weights: NDArray[Any], meter: Meter) -> NDArray[np.float64]:
    """Decisions of every table on new formulas: [tables, formulas]."""
    polarity = np.ones(weights.shape, dtype=bool)
    tasks = []
    for k in range(FORMULAS):
        cnf = hitag2.generate(KNOWN[k % len(KNOWN)], seed_for(SEED, 1000 * iteration + 2 * k + 1))
        tasks.append(Task(cnf, weights.astype(np.float32), polarity))
    return np.array(list(measure(tasks, meter))).T


def write(path: str, weights: NDArray[Any]) -> None:
    rows = ({"variable": v, "weight": round(w, 4)} for v, w in enumerate(weights.tolist(), 1))
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()

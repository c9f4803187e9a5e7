"""Find weights of Hitag2's variables by an evolution strategy, as a beginning for training.

    python packages/satguide/bench/training/hitag2_prior.py -o first.jsonl --fixed --pairs 14
        --spread 0.35 --momentum 0.8 --iterations 150
    python packages/satguide/bench/training/hitag2_prior.py -o hitag2-prior.jsonl
        --begin first.jsonl --known 26,25,24 --seed 77 --iterations 150

All Hitag2 formulas have the same variables in the same roles, so one table of weights can be tried
on any of them: a weight for each of the 48 state bits, one for the bits fed back, and one for each
kind of gate, 62 numbers; and, unless `--fixed`, how log w of the bits fed back and of each kind of
gate changes from the first output to the last, 14 more. An iteration draws new formulas and
antithetic pairs of tables and moves along the decision counts, standardised within each formula.
The table is the input of `satguide train --prior`; the network that is trained from it never sees a
variable's number.
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

FORMULAS = 6  # an iteration
RATE = 0.2
START = 2.0  # of log w of the state bits: above all else, as solvers of such formulas branch
LIMIT = 20_000  # conflicts; a run that hits it counts as half as much again

GATES = 1 + len(hitag2.FILTERS)  # of an output
SHIFT = 7  # gates of a bit that is fed back
ROLES = hitag2.STATE + 1 + GATES + SHIFT


def roles() -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Give the role of each variable, and its time: [816] each.

    Times go from -0.5 at the first output to 0.5 at the last; the state bits have none.
    """
    shifted = hitag2.OUTPUTS + max(max(taps) for _, taps in hitag2.FILTERS)
    role, step = list(range(hitag2.STATE)), [0] * hitag2.STATE
    register = hitag2.STATE
    for output in range(hitag2.OUTPUTS):
        new = [hitag2.STATE + 1 + k for k in range(GATES)]
        if register < shifted:
            register += 1
            new += [hitag2.STATE, *(hitag2.STATE + 1 + GATES + k for k in range(SHIFT))]
        role += new
        step += [output] * len(new)
    return np.array(role), np.array(step) / hitag2.OUTPUTS - 0.5


class Tables:
    """Tables of log w from 62 weights and 14 slopes."""

    def __init__(self, *, fixed: bool) -> None:
        self.role, self.time = roles()
        self.sloped = np.arange(hitag2.STATE, hitag2.STATE if fixed else ROLES)
        self.size = ROLES + self.sloped.size

    def __call__(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give w of every variable: [..., 62 + slopes] to [..., 816]."""
        slopes = np.zeros((*numbers.shape[:-1], ROLES))
        slopes[..., self.sloped] = numbers[..., ROLES:]
        log_w = numbers[..., self.role] + slopes[..., self.role] * self.time
        table: NDArray[np.float64] = np.exp(np.clip(log_w, -6.9, 3.46))
        return table

    def begin(self, path: str | None) -> NDArray[np.float64]:
        """Give the numbers to begin with, the weights of a table without slopes if there is one."""
        numbers = np.zeros(self.size)
        if path is None:
            numbers[: hitag2.STATE] = START
        else:
            numbers[self.role] = prior.read_table(path)
        return numbers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--begin", help="a table to go on from")
    parser.add_argument("--known", default="28,27,26", help="known bits of the formulas")
    parser.add_argument("--fixed", action="store_true", help="without slopes")
    parser.add_argument("--pairs", type=int, default=16)
    parser.add_argument("--spread", type=float, default=0.3)
    parser.add_argument("--momentum", type=float, default=0.85)
    parser.add_argument("--iterations", type=int, default=150)
    parser.add_argument("--seed", type=int, default=7006)
    parser.add_argument("--jobs", type=int, default=None)
    given = parser.parse_args()
    known = [int(bits) for bits in given.known.split(",")]
    tables = Tables(fixed=given.fixed)
    here = tables.begin(given.begin)
    velocity = np.zeros_like(here)
    meter = Meter(jobs=given.jobs, polarity="none", limit=LIMIT)
    start = time.perf_counter()
    for iteration in range(given.iterations):
        random = np.random.default_rng(seed_for(given.seed, 2 * iteration))
        half = random.standard_normal((given.pairs, here.size))
        noise = np.concatenate([half, -half])
        cost = costs(given.seed, iteration, known, tables(here + given.spread * noise), meter)
        logs = np.log1p(cost)
        gain = (logs.mean(0) - logs) / (logs.std(0, ddof=1) + 1e-8)
        towards = noise.T @ gain.mean(1) / len(noise)
        velocity = given.momentum * velocity + (1 - given.momentum) * towards
        here = here + RATE * given.spread * velocity * np.sqrt(len(noise))
        sys.stderr.write(
            f"{iteration + 1} {time.perf_counter() - start:.0f} s "
            f"cost {cost.mean():.1f} geo {np.exp(logs.mean()):.1f}\n"
        )
        if (iteration + 1) % 10 == 0:
            write(given.output, tables(here))
    write(given.output, tables(here))


def costs(
    seed: int, iteration: int, known: list[int], weights: NDArray[Any], meter: Meter
) -> NDArray[np.float64]:
    """Decisions of every table on new formulas: [tables, formulas]."""
    polarity = np.ones(weights.shape, dtype=bool)
    tasks = []
    for k in range(FORMULAS):
        number = seed_for(seed, 1000 * iteration + 2 * k + 1)
        cnf = hitag2.generate(known[k % len(known)], number)
        tasks.append(Task(cnf, weights.astype(np.float32), polarity))
    return np.nan_to_num(np.array(list(measure(tasks, meter))).T, nan=1.5 * LIMIT)


def write(path: str, weights: NDArray[Any]) -> None:
    rows = ({"variable": v, "weight": round(w, 4)} for v, w in enumerate(weights.tolist(), 1))
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()

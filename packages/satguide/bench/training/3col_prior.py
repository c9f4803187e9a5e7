"""Find weights for 3-colouring by an evolution strategy over six measures of a vertex.

    satguide gen 3col --size 200 --count 400 --seed 5 -o 3col-formulas
    python packages/satguide/bench/training/3col_prior.py 3col-formulas -o 3col-prior

The variables of 3COL have no meaning that carries from formula to formula, but their vertices have
a place in the graph: log w of the three variables of a vertex is a combination of measures of that
place, six numbers for all formulas. An iteration draws new formulas and antithetic pairs of
combinations and moves along the decision counts, standardised within each formula. The folder that
is written has the weights of each of the given formulas, the input of `satguide train --prior`, and
`combination.json`. The network that is trained from it sees clauses, and none of the measures.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from papercuts.parallel import seed_for
from satguide.cnf import CNF
from satguide.costs import Meter, Task, measure
from satguide.dimacs import formula_files, load
from satguide.families.colouring import generate

SEED = 7061
SIZES = (150, 200, 250)
PAIRS, FORMULAS = 10, 9
SPREAD, RATE, MOMENTUM = 0.15, 0.25, 0.8
LIMIT = 20_000  # conflicts; a run that hits it counts as this many decisions
MEASURES = ("degree", "neighbours", "two steps", "three steps", "walks", "triangles")


def adjacency(cnf: CNF) -> NDArray[np.float64]:
    """Read the graph off the formula: the binary clauses between two vertices."""
    vertices = cnf.variables // 3
    pairs = cnf.literals[9 * vertices :: 2], cnf.literals[9 * vertices + 1 :: 2]
    first, second = ((-end - 1) // 3 for end in pairs)
    graph = np.zeros((vertices, vertices))
    graph[first, second] = graph[second, first] = 1
    return graph


def measures(cnf: CNF) -> NDArray[np.float64]:
    """Measure every vertex, standardised within the formula: [vertices, measures]."""
    graph = adjacency(cnf)
    degree = graph.sum(1)
    around = graph / np.maximum(degree, 1)[:, None]
    columns = [np.log1p(degree)]
    for _ in range(3):
        columns.append(around @ columns[-1])
    walks = np.ones(len(graph))
    for _ in range(4):
        walks = graph @ walks
        walks /= max(1e-12, float(np.linalg.norm(walks)))
    triangles = np.minimum(((graph @ graph) * graph).sum(1) / 2, 2)
    found = np.stack([*columns, np.log(walks + 1e-3), triangles], 1)
    standard: NDArray[np.float64] = (found - found.mean(0)) / (found.std(0) + 1e-6)
    return standard


def weights(cnf: CNF, combinations: NDArray[np.float64]) -> NDArray[np.float32]:
    """Give w of every variable under every combination: [combinations, variables]."""
    log_w = np.clip(combinations @ measures(cnf).T, -6.9, 3.46)
    return np.repeat(np.exp(log_w), 3, axis=1).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("formulas", help="a folder of 3COL formulas to write weights of")
    parser.add_argument("-o", "--output", required=True, help="the folder to write")
    parser.add_argument("--iterations", type=int, default=150)
    parser.add_argument("--jobs", type=int, default=None)
    given = parser.parse_args()
    files = formula_files(given.formulas)
    output = Path(given.output)
    output.mkdir()
    found = search(given.iterations, Meter(jobs=given.jobs, polarity="none", limit=LIMIT))
    about = {"iterations": given.iterations, "log_w": dict(zip(MEASURES, found, strict=True))}
    (output / "combination.json").write_text(json.dumps(about, indent=2) + "\n")
    for file in files:
        (table,) = weights(load(str(file)), np.array([found])).tolist()
        rows = [{"variable": v, "weight": round(w, 4)} for v, w in enumerate(table, 1)]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (output / file.name).with_suffix(".jsonl").write_text(text, encoding="utf-8")


def search(iterations: int, meter: Meter) -> list[float]:
    """Run the evolution strategy; give the mean of the combinations of its last half."""
    here = np.zeros(len(MEASURES))
    velocity, path = np.zeros_like(here), [here]
    start = time.perf_counter()
    for iteration in range(iterations):
        random = np.random.default_rng(seed_for(SEED, 2 * iteration))
        half = random.standard_normal((PAIRS, here.size))
        noise = np.concatenate([half, -half])
        cost = costs(iteration, here + SPREAD * noise, meter)
        logs = np.log1p(cost)
        gain = (logs.mean(0) - logs) / (logs.std(0, ddof=1) + 1e-8)
        velocity = MOMENTUM * velocity + (1 - MOMENTUM) * noise.T @ gain.mean(1) / len(noise)
        here = here + RATE * SPREAD * velocity * np.sqrt(len(noise))
        path.append(here)
        sys.stderr.write(
            f"{iteration + 1} {time.perf_counter() - start:.0f} s geo {np.exp(logs.mean()):.1f} "
            f"{np.round(here, 2).tolist()}\n"
        )
    mean: list[float] = np.round(np.mean(path[len(path) // 2 :], axis=0), 3).tolist()
    return mean


def costs(iteration: int, combinations: NDArray[np.float64], meter: Meter) -> NDArray[np.float64]:
    """Count the decisions of every combination on new formulas: [combinations, formulas]."""
    tasks = []
    for k in range(FORMULAS):
        cnf = generate(SIZES[k % len(SIZES)], seed_for(SEED, 1000 * iteration + 2 * k + 1))
        polarity = np.ones((len(combinations), cnf.variables), dtype=bool)
        tasks.append(Task(cnf, weights(cnf, combinations), polarity))
    found = np.array(list(measure(tasks, meter))).T
    return np.nan_to_num(found, nan=float(LIMIT))


if __name__ == "__main__":
    main()

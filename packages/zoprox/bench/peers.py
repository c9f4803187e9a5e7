# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = ["papercuts", "papercuts-zoprox[plot]", "emcee==3.1.6", "dynesty==3.1.0"]
#
# [tool.uv.sources]
# papercuts = { path = "../../../shared", editable = true }
# papercuts-zoprox = { path = "..", editable = true }
# ///
"""Beside emcee and dynesty, at the same number of evaluations, on densities that are known.

    PAPERCUTS_DATA=FOLDER tools/uvw run --script packages/zoprox/bench/peers.py
        [--evaluations 5000000] [--seeds 5] [--jobs 2] [--targets A,B] [--quick]

Every method gives 1,000 draws, from the same start N(0, I) where it has one:

zoprox      N = 100, T = 10, M = 100, --step auto (its pilot counted), as many rounds as the budget
            allows, the last ten corrected
emcee       100 walkers, stretch move; the first half of the steps left out, the rest thinned
emcee-de    the same with 80 % DEMove, 20 % DESnookerMove, as its documentation advises for modes
dynesty     1,000 live points, multi-ellipsoid bounds, rwalk; the uniform prior that it needs is a
            box around the reference draws (which no user has); it ends by itself, mostly sooner

Measures: kNN KL and sliced W2 (in standard deviations of the reference) to exact or reference
draws (10,000, of posteriors 5,000), and the largest error of a mode's weight. `exact` is 1,000
other draws of the reference itself. Against a peer zoprox loses where the 95 % interval over
seeds of the paired log ratio of sliced W2 (of the paired difference of KL) lies above 0, wins where
it lies below, and else the two are level. On the funnel sliced W2 hangs on the few farthest draws.

Posteriors are those of posteriordb (see posteriors.py), left out where PAPERCUTS_DATA lacks them;
`kidscore_momiq-raw` has the model's own coordinates, whose scales differ a hundredfold.

Writes results.json and RESULTS.md; with --quick nothing. About 40 minutes on two cores.
"""

# ruff: noqa: E402 (the threads are set before numpy is loaded)

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

import numpy as np
import posteriors
from scipy.stats import t as student

from papercuts.benchmarks import Report, machine, today
from papercuts.parallel import ordered_map, seed_for
from zoprox.benchmarks import benchmark
from zoprox.correction import corrected
from zoprox.distances import knn_kl, sliced_w2, thinned
from zoprox.potential import Counted
from zoprox.sampler import sample_rounds
from zoprox.settings import Settings
from zoprox.tuning import choose_step

REPORT = Report(__file__)
CLOSED = ("gaussian-lasso", "grid25", "funnel", "banana", "sparse-boxes")
POSTERIORS = ("eight_schools", "kidscore_momiq", "gp_regr", "kidscore_momiq-raw")
DRAWS, REFERENCE, PARTICLES, KEPT, SUB_STEPS, MONTE_CARLO = 1000, 10_000, 100, 10, 10, 100
LIVE = 1000


@dataclass(frozen=True)
class Job:
    """One method on one target."""

    target: str
    method: str
    seed: int
    evaluations: int


@dataclass(frozen=True)
class Target:
    """What is sampled, how its points become parameters, and the truth about these.

    `reference` [draws, parameters] is compared with; `free` are draws in the points' coordinates.
    """

    dim: int
    potential: Callable[[np.ndarray], np.ndarray]
    parameters: Callable[[np.ndarray], np.ndarray]
    reference: np.ndarray
    free: np.ndarray
    modes: Callable[[np.ndarray], np.ndarray] | None = None
    weights: np.ndarray | None = None


def open_target(name: str) -> Target:
    """Give a target by name, the same in every process."""
    if name in CLOSED:
        made = benchmark(name)
        draws = made.draw(np.random.default_rng(12345), REFERENCE)
        modes = made.mode_weights
        return Target(
            made.dim, made.potential, lambda x: x, draws, draws, modes, made.weights
        )  # fmt: skip
    model = posteriors.posterior(name.removesuffix("-raw"), raw=name.endswith("-raw"))
    draws = posteriors.reference(model)
    # Every second draw is compared with, the others stand for exact ones.
    return Target(
        model.dim, model.potential, model.parameters, draws[::2], model.free(draws[1::2])
    )  # fmt: skip


# The methods: each gives draws [DRAWS, dim] in the target's own coordinates.


def with_zoprox(potential: Counted, target: Target, job: Job) -> np.ndarray:
    start = start_of(job, target.dim)

    def settings(step: float, rounds: int) -> Settings:
        return Settings(
            PARTICLES, target.dim, step, SUB_STEPS, MONTE_CARLO, rounds, seed=job.seed
        )  # fmt: skip

    step = choose_step(potential, start, settings(1.0, 1))
    correction = KEPT * PARTICLES * (MONTE_CARLO + 1)
    left = job.evaluations - potential.evaluations - correction
    rounds = max(KEPT, left // settings(step, 1).evaluations)
    run = settings(step, rounds)
    kept = list(sample_rounds(potential, run, start))[-KEPT:]
    return np.concatenate(
        [corrected(potential, r.points, step, MONTE_CARLO, job.seed, r.number).points for r in kept]
    )


def with_emcee(potential: Counted, target: Target, job: Job) -> np.ndarray:
    import emcee

    moves = None
    if job.method == "emcee-de":
        moves = [(emcee.moves.DEMove(), 0.8), (emcee.moves.DESnookerMove(), 0.2)]
    np.random.seed(job.seed)  # emcee's own generator
    sampler = emcee.EnsembleSampler(
        PARTICLES, target.dim, lambda x: -potential(x), moves=moves, vectorize=True
    )
    steps = job.evaluations // PARTICLES
    thin = max(1, steps // 2 // DRAWS)
    sampler.run_mcmc(start_of(job, target.dim), steps // thin, thin_by=thin, progress=False)
    chain = sampler.get_chain(discard=steps // thin // 2)
    # A draw from every kept step, each from another walker in turn.
    flat = chain[np.arange(len(chain)), np.arange(len(chain)) % PARTICLES]
    return thinned(flat, DRAWS)


def with_dynesty(potential: Counted, target: Target, job: Job) -> np.ndarray:
    import dynesty

    low, high = target.free.min(axis=0), target.free.max(axis=0)
    low, high = low - 0.1 * (high - low), high + 0.1 * (high - low)

    def log_likelihood(x: np.ndarray) -> float:
        return max(-float(potential(x[None])[0]), -1e300)

    rng = np.random.default_rng(job.seed)
    sampler = dynesty.NestedSampler(
        log_likelihood,
        lambda u: low + (high - low) * u,
        target.dim,
        nlive=LIVE,
        bound="multi",
        sample="rwalk",
        rstate=rng,
    )
    sampler.run_nested(maxcall=job.evaluations, print_progress=False)
    found = sampler.results
    weights = found.importance_weights()
    return found.samples[rng.choice(len(weights), size=DRAWS, p=weights / weights.sum())]


def exactly(potential: Counted, target: Target, job: Job) -> np.ndarray:  # noqa: ARG001
    rng = np.random.default_rng(seed_for(job.seed, 1))
    if job.target in CLOSED:
        return benchmark(job.target).draw(rng, DRAWS)
    return target.free[rng.choice(len(target.free), DRAWS, replace=False)]


def start_of(job: Job, dim: int) -> np.ndarray:
    return np.random.default_rng(seed_for(job.seed, 0)).standard_normal((PARTICLES, dim))


METHODS: dict[str, Callable[[Counted, Target, Job], np.ndarray]] = {
    "zoprox": with_zoprox,
    "emcee": with_emcee,
    "emcee-de": with_emcee,
    "dynesty": with_dynesty,
    "exact": exactly,
}


def run(job: Job) -> dict[str, Any]:
    """Run one method on one target, and measure what it gave."""
    target = open_target(job.target)
    potential = Counted(target.potential)
    began = time.perf_counter()
    with np.errstate(all="ignore"):
        points = METHODS[job.method](potential, target, job)
    wall_s = time.perf_counter() - began
    sd = target.reference.std(axis=0)
    draws = target.parameters(points) / sd
    reference = target.reference / sd
    record: dict[str, Any] = {**vars(job), "evaluations": potential.evaluations, "wall_s": wall_s}
    record["kl"] = knn_kl(draws, reference)
    record["sliced_w2"] = sliced_w2(draws, reference)
    if target.modes is not None and target.weights is not None:
        record["mode_error"] = float(np.abs(target.modes(points) - target.weights).max())
    return record


# The page


def compared(found: list[dict[str, Any]], target: str, peer: str) -> str:
    """Give the cell of the second table: for sliced W2 and for KL the verdict and its interval."""
    ours, theirs = pick(found, target, "zoprox"), pick(found, target, peer)
    logs = [
        math.log(a["sliced_w2"] / b["sliced_w2"]) for a, b in zip(ours, theirs, strict=True)
    ]  # fmt: skip
    low, high = interval(logs)
    ratio = f"W2 {judged(low, high)} ({math.exp(low):.2f} to {math.exp(high):.2f})"
    low, high = interval([a["kl"] - b["kl"] for a, b in zip(ours, theirs, strict=True)])
    return f"{ratio}; KL {judged(low, high)} ({low:+.2f} to {high:+.2f})"


def interval(gaps: list[float]) -> tuple[float, float]:
    """Give the 95 % interval of the mean, all numbers where there is but one."""
    if len(gaps) < 2:
        return -math.inf, math.inf
    half = student.ppf(0.975, len(gaps) - 1) * np.std(gaps, ddof=1) / math.sqrt(len(gaps))
    return float(np.mean(gaps) - half), float(np.mean(gaps) + half)


def judged(low: float, high: float) -> str:
    return "loses" if low > 0 else "wins" if high < 0 else "level"


def pick(found: list[dict[str, Any]], target: str, method: str) -> list[dict[str, Any]]:
    return [one for one in found if (one["target"], one["method"]) == (target, method)]


def page(found: list[dict[str, Any]], targets: list[str], options: argparse.Namespace) -> list[str]:
    peers = f"emcee {version('emcee')}, dynesty {version('dynesty')}"
    lines = [
        "## Beside emcee and dynesty",
        "",
        f"{today()}; {machine()}; {peers}; {options.evaluations:,} evaluations allowed, "
        f"{options.seeds} seeds; `tools/uvw run --script packages/zoprox/bench/peers.py`. Median "
        "(least to greatest) over seeds; settings and measures as the script says.",
        "",
        "| target | method | evaluations | KL | sliced W2 | mode error | s |",
        "|---|---|---|---|---|---|---|",
    ]
    for target in targets:
        for method in METHODS:
            own = pick(found, target, method)
            cells = [
                spread([one[key] for one in own if key in one], digits)
                for key, digits in (("kl", 3), ("sliced_w2", 3), ("mode_error", 3), ("wall_s", 0))
            ]
            asked = np.median([one["evaluations"] for one in own])
            lines.append(f"| {target} | {method} | {asked:,.0f} | {' | '.join(cells)} |")
    lines += [
        "",
        "zoprox beside each peer: ratio of sliced W2, difference of KL, with 95 % intervals.",
        "",
    ]
    lines += ["| target | emcee | emcee-de | dynesty |", "|---|---|---|---|"]
    for target in targets:
        cells = [compared(found, target, peer) for peer in ("emcee", "emcee-de", "dynesty")]
        lines.append(f"| {target} | {' | '.join(cells)} |")
    return lines


def spread(values: list[float], digits: int) -> str:
    if not values:
        return ""
    middle, low, high = np.median(values), min(values), max(values)
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def main() -> None:
    parser = argparse.ArgumentParser(description="Beside emcee and dynesty.")
    parser.add_argument("--evaluations", type=int, default=5_000_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--targets", help="some of them, by commas")
    parser.add_argument("--quick", action="store_true", help="small, and records nothing")
    options = parser.parse_args()
    targets = list(CLOSED) + (list(POSTERIORS) if posteriors.folder() else [])
    if options.targets:
        targets = options.targets.split(",")
    if options.quick:
        options.evaluations, options.seeds = min(options.evaluations, 3_000_000), 1
    work = [
        Job(target, method, seed, options.evaluations)
        for target in targets
        for method in METHODS
        for seed in range(options.seeds)
    ]
    began = time.perf_counter()
    found = []
    for record in ordered_map(run, work, jobs=options.jobs):
        print(json.dumps(record), flush=True)
        found.append(record)
    lines = page(found, targets, options)
    print("\n".join(lines))
    if not options.quick:
        record = {"date": today(), "machine": machine(), "wall_s": time.perf_counter() - began}
        record |= {"emcee": version("emcee"), "dynesty": version("dynesty"), "runs": found}
        REPORT.write_results(REPORT.read_results() | {"peers": record})
        REPORT.write_section("peers", lines)


if __name__ == "__main__":
    main()

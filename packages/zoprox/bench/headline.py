"""The paper's two experiments: KL against rounds on the Gaussian-Lasso mixture, and two tori.

    python packages/zoprox/bench/headline.py [--part mixture|tori] [--seeds 5] [--jobs 2] [--quick]

Mixture (d = 5): N = 100, h = 0.1, T = 10, beta_min = 0, start N(0, I); M = 500, an eighth of the
paper's. KL is the kNN estimate (k = 4) between 1,000 draws, pooled over ten rounds, and 1,000 exact
ones. `rejection` is proximal sampling with h = 1/135, recorded at every tenth update; its
draws are made in closed form, so its tries are free here. Expected before the run: the method at
0.05 by round 120 in all seeds, without interaction at least three times its KL at round 100.

Tori: N = 1000, h = 1, T = 10, M = 300, beta_min = 0.01, f = 100 outside. Expected: at round 300 at
least 95 per cent of the particles inside and more than 5 per cent in the far torus, and none there
with rejection.

Writes results.json, RESULTS.md and mixture.svg here; with --quick nothing. Mixture: about 2 minutes
on two cores; tori: about 10 (each seed of the method takes 4).
"""

# ruff: noqa: E402 (the threads are set before numpy is loaded)

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass, replace
from typing import Any

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

import numpy as np

from papercuts.benchmarks import Report, machine, today
from papercuts.parallel import ordered_map, seed_for
from zoprox.benchmarks import benchmark
from zoprox.correction import corrected
from zoprox.demo import mixture_kl, oracle_rounds, torus_shares
from zoprox.distances import knn_kl
from zoprox.plot import plot_curves
from zoprox.sampler import sample_rounds
from zoprox.settings import Settings

REPORT = Report(__file__)
MIXTURE = Settings(particles=100, dim=5, step=0.1, sub_steps=10, draws=500, rounds=120)
TORI = Settings(particles=1000, dim=3, step=1.0, sub_steps=10, draws=300, rounds=300, smallest=0.01)
AT = (10, 20, 30, 40, 50, 60, 80, 100, 120)
AT_REJECTION = (10, 20, 40, 60, 100, 150, 250, 400, 600, 800, 950)
COUNTED = (1, 3, 10, 30, 50, 100, 150, 200, 250, 300)
ENOUGH = 0.05
METHODS = {
    "ensemble": "the method",
    "single": "without interaction",
    "rejection": "rejection, 10 updates a round",
}


@dataclass(frozen=True)
class Job:
    """One run: a method, a seed, its settings."""

    method: str
    seed: int
    settings: Settings
    at: tuple[int, ...]


def run_mixture(job: Job) -> dict[str, Any]:
    """Run one method on the mixture; give KL and the share in the Gaussian half by round."""
    target = benchmark("gaussian-lasso", job.settings.dim)
    rng = np.random.default_rng(seed_for(job.seed, 0))
    start = rng.standard_normal((job.settings.particles, job.settings.dim))
    reference = target.draw(rng, 1000)
    floor = knn_kl(target.draw(rng, 1000), reference)
    began = time.perf_counter()
    if job.method == "rejection":
        rounds = oracle_rounds(start, job.at[-1], job.seed)
    else:
        settings = replace(job.settings, seed=job.seed, method=job.method)
        rounds = (r.points for r in sample_rounds(target.potential, settings, start))
    found: dict[str, Any] = {"method": job.method, "seed": job.seed, "floor": floor}
    found |= {"rounds": list(job.at), "kl": [], "gaussian_share": []}
    for number, kl, share, window in mixture_kl(rounds, reference, job.at):
        found["kl"].append(kl)
        found["gaussian_share"].append(share)
        if job.method == "ensemble" and number == job.at[-1]:
            better = [
                corrected(
                    target.potential, points, job.settings.step, job.settings.draws, job.seed, i
                )
                for i, points in enumerate(window)
            ]
            pooled = np.concatenate([one.points for one in better])
            found["kl_corrected"] = knn_kl(pooled, reference)
            found["moved"] = float(np.mean([one.moved for one in better]))
            found["gaussian_share_corrected"] = float(target.mode_weights(pooled)[0])
    return found | {"wall_s": time.perf_counter() - began}


def run_tori(job: Job) -> dict[str, Any]:
    """Count, by round, the particles in the near torus, in the far one, and outside."""
    count = job.settings.particles
    began = time.perf_counter()
    rows = []
    for number, shares, _ in torus_shares(job.method, job.seed, job.settings):
        if number in job.at:
            near, far = (round(float(share) * count) for share in shares)
            rows.append({"round": number, "near": near, "far": far, "outside": count - near - far})
    wall_s = time.perf_counter() - began
    return {"method": job.method, "seed": job.seed, "counts": rows, "wall_s": wall_s}


def first_below(found: dict[str, Any]) -> int | None:
    pairs = zip(found["rounds"], found["kl"], strict=True)
    return next((number for number, kl in pairs if kl <= ENOUGH), None)


def mixture(seeds: int, jobs: int, quick: bool) -> None:
    settings = replace(MIXTURE, draws=100, rounds=20) if quick else MIXTURE
    work = [
        Job(method, seed, settings, AT_REJECTION if method == "rejection" else AT)
        for method in METHODS
        for seed in range(seeds)
    ]
    if quick:
        work = [replace(job, at=(10, 20)) for job in work]
    began = time.perf_counter()
    found = list(ordered_map(run_mixture, work, jobs=jobs))
    wall_s = time.perf_counter() - began
    floor = float(np.median([one["floor"] for one in found]))
    lines = [
        "## KL against rounds, Gaussian-Lasso mixture",
        "",
        f"{today()}; {machine()}; {wall_s:.0f} s with {jobs} jobs; N = {settings.particles}, "
        f"h = {settings.step}, T = {settings.sub_steps}, M = {settings.draws}, {seeds} seeds; "
        "`python packages/zoprox/bench/headline.py --part mixture`. Median (least to greatest) "
        f"over seeds; exact draws against exact draws: {floor:.3f}.",
        "",
        "| method | round | KL | share in the Gaussian half (0.5) |",
        "|---|---|---|---|",
    ]
    curves = {}
    for method, label in METHODS.items():
        own = [one for one in found if one["method"] == method]
        kl = np.array([one["kl"] for one in own])
        share = np.array([one["gaussian_share"] for one in own])
        curves[label] = (own[0]["rounds"], kl)
        for i, number in enumerate(own[0]["rounds"]):
            lines.append(f"| {label} | {number} | {spread(kl[:, i])} | {spread(share[:, i])} |")
        if method == "ensemble":
            better = [np.array([one[key] for one in own]) for key in ("kl_corrected", "moved")]
            shares = np.array([one["gaussian_share_corrected"] for one in own])
            lines.append(
                f"| corrected | {own[0]['rounds'][-1]} | {spread(better[0])} | {spread(shares)} |"
            )
            lines.append(f"| share moved by the correction | | {spread(better[1])} | |")
    lines += [
        "",
        f"First recorded round with KL at most {ENOUGH} (none: not reached), by seed:",
        "",
    ]
    for method, label in METHODS.items():
        rounds = [first_below(one) for one in found if one["method"] == method]
        lines.append(f"- {label}: {', '.join(str(number or 'none') for number in rounds)}")
    lines += ["", "![KL against rounds](mixture.svg)"]
    print("\n".join(lines))
    if not quick:
        plot_curves(
            curves,
            str(REPORT.folder / "mixture.svg"),
            title="Gaussian-Lasso mixture, d = 5",
            level=(floor, "exact draws"),
            log=True,
            force=True,
        )
        record = {"date": today(), "machine": machine(), "wall_s": wall_s, "runs": found}
        REPORT.write_results(REPORT.read_results() | {"mixture": record})
        REPORT.write_section("mixture", lines)


def tori(seeds: int, jobs: int, quick: bool) -> None:
    settings = replace(TORI, particles=100, draws=50, rounds=10) if quick else TORI
    methods = ("ensemble", "rejection")
    work = [Job(method, seed, settings, COUNTED) for seed in range(seeds) for method in methods]
    began = time.perf_counter()
    found = list(ordered_map(run_tori, work, jobs=jobs))
    wall_s = time.perf_counter() - began
    lines = [
        "## Two tori, known by membership",
        "",
        f"{today()}; {machine()}; {wall_s:.0f} s with {jobs} jobs; N = {settings.particles}, "
        f"h = {settings.step:g}, T = {settings.sub_steps}, M = {settings.draws}, {seeds} seeds; "
        "`python packages/zoprox/bench/headline.py --part tori`. Particles (least to greatest over "
        "seeds); by volume, ten thirteenths belong in the near torus.",
        "",
        "| method | round | in the near torus | in the far torus | outside |",
        "|---|---|---|---|---|",
    ]
    for method in methods:
        own = [one["counts"] for one in found if one["method"] == method]
        for rows in zip(*own, strict=True):
            cells = [
                f"{min(row[key] for row in rows)} to {max(row[key] for row in rows)}"
                for key in ("near", "far", "outside")
            ]
            name = "rejection (In-and-Out)" if method == "rejection" else METHODS[method]
            lines.append(f"| {name} | {rows[0]['round']} | {' | '.join(cells)} |")
    print("\n".join(lines))
    if not quick:
        record = {"date": today(), "machine": machine(), "wall_s": wall_s, "runs": found}
        REPORT.write_results(REPORT.read_results() | {"tori": record})
        REPORT.write_section("tori", lines)


def spread(values: np.ndarray) -> str:
    return f"{np.median(values):.3f} ({values.min():.3f} to {values.max():.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=("mixture", "tori", "both"), default="both")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="small, and records nothing")
    options = parser.parse_args()
    if options.part != "tori":
        mixture(options.seeds, options.jobs, options.quick)
    if options.part != "mixture":
        tori(options.seeds, options.jobs, options.quick)


if __name__ == "__main__":
    main()

"""The paper's two experiments in small (`zoprox demo`): KL on a mixture, and two tori.

On the Gaussian-Lasso mixture the method, the same without interaction, and proximal sampling with
rejection start at N(0, I), and the kNN estimate of KL to exact draws is taken over rounds (1,000
draws, pooled over ten rounds of 100 particles). On the two tori, known by membership alone, the
share of the particles in the far one is counted.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from papercuts.log import get_logger, progress
from papercuts.parallel import seed_for
from zoprox.benchmarks import benchmark
from zoprox.benchmarks.mixtures import RATE, gaussian_lasso_axes
from zoprox.benchmarks.regions import TORI, in_torus, wall
from zoprox.correction import corrected
from zoprox.distances import knn_kl
from zoprox.potential import Points, Values
from zoprox.sampler import sample_rounds
from zoprox.settings import Method, Settings

KEPT = 10  # rounds pooled
MIXTURE = Settings(particles=100, dim=5, step=0.1, sub_steps=10, draws=300, rounds=100)
TORUS_RUN = Settings(
    particles=300, dim=3, step=1.0, sub_steps=10, draws=100, rounds=150, smallest=0.01
)
ORACLE_STEP = 1 / 135  # of proximal sampling with rejection, as in the paper
RAW_A_ROUND = 10  # its updates between two records, as in the paper
_SHOWN = (10, 20, 40, 60, 80, 100)
_COUNTED = (3, 50, 100, 150)


def mixture_kl(
    rounds: Iterable[Points], reference: Points, at: Iterable[int] = _SHOWN
) -> Iterator[tuple[int, float, float, list[Points]]]:
    """Yield (round, KL to the reference, share in the Gaussian half, the rounds pooled)."""
    modes = benchmark("gaussian-lasso", reference.shape[1]).mode_weights
    wanted = set(at)
    window: deque[Points] = deque(maxlen=KEPT)
    for number, points in enumerate(rounds, start=1):
        window.append(points)
        if number in wanted:
            pooled = np.concatenate(window)
            yield number, knn_kl(pooled, reference), float(modes(pooled)[0]), list(window)


def oracle_rounds(start: Points, rounds: int, seed: int) -> Iterator[Points]:
    """Yield the particles of proximal sampling with rejection on the mixture, each 10th update.

    The law of an accepted draw, exp(-f(x)) N(x; y, hI), is that of a mixture here and is drawn in
    closed form: a Gaussian, and along each axis two halves of Gaussians moved by 4 h. So the chain
    is exact, and the tries that rejection needs are given to it for nothing.
    """
    rng = np.random.default_rng(seed_for(seed, 0))
    points = start
    for _ in range(rounds):
        for _ in range(RAW_A_ROUND):
            points = _oracle(
                points + math.sqrt(ORACLE_STEP) * rng.standard_normal(points.shape), rng
            )
        yield points


def _oracle(noised: Points, rng: np.random.Generator) -> Points:
    count, dim = noised.shape
    h = ORACLE_STEP
    eigenvalues, rotation = gaussian_lasso_axes(dim)
    # The Gaussian half, in the axes of Q: prior N(0, 1/e), seen with noise h.
    along = (noised - 1) @ rotation
    spread = 1 / eigenvalues + h
    log_gaussian = -0.5 * (along * along / spread + np.log(2 * math.pi * spread)).sum(axis=1)
    shrunk = along / (1 + h * eigenvalues)
    gaussian = shrunk + rng.standard_normal(shrunk.shape) * np.sqrt(h / (1 + h * eigenvalues))
    # The Laplace half: each axis is N(y - 4h, h) above 0 or N(y + 4h, h) below it.
    root = math.sqrt(h)
    up, down = (noised - RATE * h) / root, -(noised + RATE * h) / root
    log_up, log_down = log_ndtr(up) - RATE * noised, log_ndtr(down) + RATE * noised
    log_both = np.logaddexp(log_up, log_down)
    log_axis = log_both + math.log(RATE / 2) + 0.5 * RATE**2 * h
    above = np.log(rng.random((count, dim))) < log_up - log_both
    # |x| along the axis, by inverting the distribution of a Gaussian cut off at 0.
    mean = np.where(above, up, down)
    size = -ndtri_exp(np.log1p(-rng.random((count, dim))) + log_ndtr(mean)) + mean
    laplace = np.where(above, size, -size) * root
    is_gaussian = np.log(rng.random(count)) < log_gaussian - np.logaddexp(
        log_gaussian, log_axis.sum(axis=1)
    )
    return np.where(is_gaussian[:, None], gaussian @ rotation.T + 1, laplace)


def torus_shares(
    method: Method, seed: int, settings: Settings = TORUS_RUN
) -> Iterator[tuple[int, Values, Points]]:
    """Yield (round, share of the particles in either torus [2], particles)."""
    rng = np.random.default_rng(seed_for(seed, 0))
    start = rng.standard_normal((settings.particles, 3))
    run = Settings(**{**settings.as_dict(), "seed": seed, "method": method})
    potential = wall(_in_tori, 100.0)  # the paper's: 0 inside, 100 outside
    for found in sample_rounds(potential, run, start):
        yield found.number, shares_in_tori(found.points), found.points


def shares_in_tori(points: Points) -> Values:
    """Give the share of the points in the near and in the far torus: [2]."""
    return np.array([in_torus(points, *torus).mean() for torus in TORI])


def _in_tori(points: Points) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return in_torus(points, *TORI[0]) | in_torus(points, *TORI[1])


def demo(*, seed: int = 0, plot: str | None = None, force: bool = False) -> list[dict[str, Any]]:
    """Run both, and give a record for each measure and round; `plot` draws KL against rounds."""
    if plot is not None:
        from zoprox.plot import check_plot

        check_plot(plot, force=force)
    log = get_logger(__name__)
    total = 3 * MIXTURE.rounds + 2 * TORUS_RUN.rounds
    with progress("demo", total) as bar:
        records, curves = _mixture_records(seed, bar.advance)
        log.info(
            f"mixture: {MIXTURE.evaluations:,} evaluations each for the method and without"
            f" interaction; rejection: {RAW_A_ROUND} updates a round, its tries not counted"
        )
        records += _torus_records(seed, bar.advance)
    last = {r["measure"]: r for r in records}
    kl, far = last["kl"], last["far_torus_share"]
    log.info(
        f"after {kl['round']} rounds KL is {kl['method']:.2f} ({kl['corrected']:.2f} corrected),"
        f" {kl['no_interaction']:.2f} without interaction, {kl['rejection']:.2f} with rejection"
        f" (exact draws: {kl['exact']:.2f}); in the far torus are {far['method']:.0%} of the"
        f" particles ({far['corrected']:.0%} corrected), {far['rejection']:.0%} with rejection"
        f" (its volume: {far['exact']:.0%})"
    )
    if plot is not None:
        from zoprox.plot import plot_curves

        plot_curves(curves, plot, title="Gaussian-Lasso mixture, d = 5", force=force)
    return records


def _record(measure: str, number: int, **values: float | None) -> dict[str, Any]:
    columns = ("method", "corrected", "no_interaction", "rejection", "exact")
    return {"measure": measure, "round": number} | {name: values.get(name) for name in columns}


def _mixture_records(seed: int, advance: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    target = benchmark("gaussian-lasso", MIXTURE.dim)
    rng = np.random.default_rng(seed_for(seed, 0))
    start = rng.standard_normal((MIXTURE.particles, MIXTURE.dim))
    reference = target.draw(rng, MIXTURE.particles * KEPT)
    exact = knn_kl(target.draw(rng, MIXTURE.particles * KEPT), reference)

    def run(method: Literal["ensemble", "single"]) -> Iterator[Points]:
        settings = Settings(**{**MIXTURE.as_dict(), "seed": seed, "method": method})
        for found in sample_rounds(target.potential, settings, start):
            advance()
            yield found.points

    def oracle() -> Iterator[Points]:
        for points in oracle_rounds(start, MIXTURE.rounds, seed):
            advance()
            yield points

    kl: dict[str, list[float | None]] = {"corrected": []}
    share: dict[str, list[float | None]] = {"corrected": []}
    for name, rounds in (
        ("method", run("ensemble")),
        ("no_interaction", run("single")),
        ("rejection", oracle()),
    ):
        kl[name], share[name] = [], []
        for number, found, gaussian, window in mixture_kl(rounds, reference):
            kl[name].append(found)
            share[name].append(gaussian)
            if name == "method":
                pooled = np.concatenate(
                    [
                        corrected(
                            target.potential, points, MIXTURE.step, MIXTURE.draws, seed, number - i
                        ).points
                        for i, points in enumerate(reversed(window))
                    ]
                )
                kl["corrected"].append(knn_kl(pooled, reference))
                share["corrected"].append(float(target.mode_weights(pooled)[0]))
    records = [
        _record(measure, number, exact=truth, **{name: of[name][i] for name in of})
        for measure, of, truth in (("kl", kl, exact), ("gaussian_share", share, 0.5))
        for i, number in enumerate(_SHOWN)
    ]
    curves = {
        label: (_SHOWN, np.array([kl[name]], dtype=float))
        for name, label in (
            ("method", "the method"),
            ("corrected", "the method, corrected"),
            ("no_interaction", "without interaction"),
            ("rejection", "rejection, 10 updates a round"),
        )
    }
    return records, curves


def _torus_records(seed: int, advance: Any) -> list[dict[str, Any]]:
    near_and_far = benchmark("two-tori", 3).weights
    found: dict[str, dict[int, Values]] = {"method": {}, "corrected": {}, "rejection": {}}
    for name, method in (("method", "ensemble"), ("rejection", "rejection")):
        for number, shares, points in torus_shares(method, seed):  # type: ignore[arg-type]
            advance()
            if number not in _COUNTED:
                continue
            found[name][number] = shares
            if name == "method":
                better = corrected(
                    wall(_in_tori), points, TORUS_RUN.step, TORUS_RUN.draws, seed, number
                )
                found["corrected"][number] = shares_in_tori(better.points)
    return [
        _record(
            measure,
            number,
            exact=float(near_and_far[which]),
            **{name: float(at[number][which]) for name, at in found.items()},
        )
        for which, measure in enumerate(("near_torus_share", "far_torus_share"))
        for number in _COUNTED
    ]

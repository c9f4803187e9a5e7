"""The sampler: N particles through rounds of noise and denoising (paper, Algorithm 1).

A round noises every particle, y = x + sqrt(h) xi, takes the mixture g of the noised particles as a
stand-in for the target's surroundings, and follows the reverse heat flow from x + sqrt(h) xi'
(fresh noise) down a grid of T variances. The score at a place z is a Monte Carlo average over M
points drawn from g given z, weighted by exp(-f): only values of f are asked for.

With one particle (or `single`) the fresh noise makes the round, as T and M grow, a proximal step
of h/2: given y and z the new place has density exp(-f(x)) N(x; y, hI) N(x; z, hI) up to a factor.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from papercuts.errors import DataError
from papercuts.parallel import seed_for
from zoprox.potential import Counted, Points, Potential, Values
from zoprox.proposal import Mixture, draw_components
from zoprox.settings import Settings

BLOCK = 1 << 16  # points asked for at once; the draws do not depend on it


@dataclass(frozen=True)
class Round:
    """One finished round.

    `points` [N, dim]; `values_mean` the mean of f at the round's last weighted draws (NaN where
    nothing was allowed); `min_ess` and `median_ess` the effective sample size of the M weights over
    particles and sub-steps; `outside` the share of values that were not finite; `evaluations` and
    `seconds` of this round alone.
    """

    number: int
    points: Points
    values_mean: float
    min_ess: float
    median_ess: float
    outside: float
    evaluations: int
    seconds: float


def round_rng(seed: int, number: int) -> np.random.Generator:
    """Give the random numbers of round `number`, which depend on nothing but this and the seed."""
    return np.random.default_rng(seed_for(seed, number))


def sample_rounds(
    potential: Potential, settings: Settings, start: Points, *, first: int = 1
) -> Iterator[Round]:
    """Yield rounds `first` to K, from the particles `start` [N, dim] before round `first`.

    Raises `ValueError` for a start of another shape or that is not finite, and `DataError` for a
    target that answers -inf or NaN everywhere.
    """
    points = np.array(start, dtype=np.float64)
    if points.shape != (settings.particles, settings.dim):
        raise ValueError(
            f"the start has shape {points.shape}, not {(settings.particles, settings.dim)}"
        )
    if not np.isfinite(points).all():
        raise ValueError("the start has coordinates that are not finite")
    if settings.method == "rejection":
        from zoprox.rejection import rejection_rounds

        yield from rejection_rounds(potential, settings, points, first=first)
        return
    counted = Counted(potential)
    for number in range(first, settings.rounds + 1):
        began = time.perf_counter()
        asked = counted.evaluations
        path = one_round(counted, settings, points, round_rng(settings.seed, number))
        points = path.points
        asked = counted.evaluations - asked
        yield Round(
            number=number,
            points=points.copy(),
            values_mean=path.values_mean,
            min_ess=float(path.ess.min()),
            median_ess=float(np.median(path.ess)),
            outside=path.outside / asked,
            evaluations=asked,
            seconds=time.perf_counter() - began,
        )


@dataclass(frozen=True)
class Path:
    """Where a round led: new `points` [N, dim], `ess` [T, N] (from the noisiest sub-step on)."""

    points: Points
    ess: NDArray[np.float64]
    values_mean: float
    outside: int


def one_round(
    potential: Potential, settings: Settings, particles: Points, rng: np.random.Generator
) -> Path:
    """Noise and denoise the particles once (steps 2 to 7 of the method)."""
    step, sub_steps, single = settings.step, settings.sub_steps, settings.method == "single"
    scale = math.sqrt(step)
    noised = particles + scale * rng.standard_normal(particles.shape)
    mixture = None if single else Mixture.around(particles, noised, step)
    places = particles + scale * rng.standard_normal(particles.shape)
    variances = np.linspace(settings.smallest, step, sub_steps + 1)
    ess = np.empty((sub_steps, len(particles)))
    outside = 0
    for index, t in enumerate(range(sub_steps, 0, -1)):
        noise, drop = float(variances[t]), float(variances[t] - variances[t - 1])
        variance = 1 / (1 / noise + 1 / step)
        towards = noised * (variance / step)
        chosen = None
        if mixture is not None:
            chosen = draw_components(
                rng, mixture.responsibilities(places, noise), settings.draws
            ).ravel()
        average = _averages(
            potential, places * (variance / noise), towards, chosen, variance, settings.draws, rng
        )
        ess[index] = average.ess
        outside += average.outside
        # Noise is added at the last sub-step too, as in the authors' code.
        moved = places + (drop / noise) * (average.means - places)
        moved += math.sqrt(drop) * rng.standard_normal(places.shape)
        blind = average.ess == 0
        places = np.where(blind[:, None], places, moved)
    # A path whose last draws were all forbidden has not arrived: its particle stays.
    arrived = ess[-1] > 0
    found = np.where(arrived[:, None], places, particles)
    values = average.values[arrived]
    return Path(found, ess, float(values.mean()) if len(values) else math.nan, outside)


@dataclass(frozen=True)
class _Averages:
    """Weighted over a particle's draws: `means` [N, dim], `values` [N]; `ess` 0 for no weight."""

    means: Points
    values: Values
    ess: Values
    outside: int


def _averages(
    potential: Potential,
    own: Points,
    towards: Points,
    chosen: NDArray[np.intp] | None,
    variance: float,
    draws: int,
    rng: np.random.Generator,
) -> _Averages:
    """Draw M points a particle, N(own + towards[chosen], variance I), and weight them by exp(-f).

    `own` and `towards` are [N, dim]; `chosen` [N M], or None for the particle's own. Blocks of
    whole particles keep memory bounded.
    """
    count, dim = own.shape
    rows = max(1, BLOCK // draws)
    buffer = np.empty((min(rows, count) * draws, dim))
    drawn_towards = np.empty_like(buffer)
    means, values, ess = np.empty_like(own), np.empty(count), np.empty(count)
    outside = 0
    scale = math.sqrt(variance)
    for first in range(0, count, rows):
        part = slice(first, min(first + rows, count))
        size = part.stop - part.start
        points = buffer[: size * draws]
        rng.standard_normal(out=points)
        points *= scale
        if chosen is None:
            centre = own[part] + towards[part]
        else:
            centre = own[part]
            block = chosen[first * draws : part.stop * draws]
            # The indices are in range; `clip` only spares numpy a safety copy of `out`.
            points += np.take(
                towards, block, axis=0, out=drawn_towards[: size * draws], mode="clip"
            )
        points.reshape(size, draws, dim)[...] += centre[:, None, :]
        f = checked_values(potential, points).reshape(size, draws)
        outside += weigh(f, points.reshape(size, draws, dim), means[part], values[part], ess[part])
    return _Averages(means, values, ess, outside)


def weigh(
    f: NDArray[np.float64],
    points: NDArray[np.float64],
    means: Points,
    values: Values,
    ess: Values,
) -> int:
    """Fill in the means weighted by exp(-f), and give how many of `f` [rows, draws] are not finite.

    `points` [rows, draws, dim]; filled in are `means` [rows, dim], `values` (the mean of f) and
    `ess` [rows], all 0 (values NaN) where no draw is allowed.
    """
    low = f.min(axis=1)
    finite = np.isfinite(f.max(axis=1))
    allowed = np.isfinite(low)
    outside = 0 if finite.all() else f.size - int(np.count_nonzero(np.isfinite(f)))
    with np.errstate(over="ignore"):  # a difference beyond 1e308 is a weight of 0 all the same
        weights = np.where(allowed, low, 0.0)[:, None] - f
    np.exp(weights, out=weights)
    total = weights.sum(axis=1)
    squares = np.einsum("nm,nm->n", weights, weights)
    total[~allowed] = squares[~allowed] = 1.0
    np.matmul(weights[:, None, :], points, out=means[:, None, :])
    means /= total[:, None]
    ess[...] = np.where(allowed, total * total / squares, 0.0)
    known = f if finite.all() else np.where(np.isfinite(f), f, 0.0)
    values[...] = np.where(allowed, np.einsum("nm,nm->n", weights, known) / total, np.nan)
    return outside


def checked_values(potential: Potential, points: Points) -> Values:
    """Ask for f, NaN turned into +inf; the target sees the points read-only.

    Raises `DataError` for an answer of another shape, for -inf, and for NaN at every point.
    """
    view = points.view()
    view.flags.writeable = False
    f = np.asarray(potential(view), dtype=np.float64)
    if f.shape != (len(points),):
        raise DataError(
            f"the target answered with shape {f.shape} to {len(points)} points",
            expected=f"({len(points)},), one value a point",
        )
    low = f.min()
    if np.isnan(low):
        bad = np.isnan(f)
        if bad.all():
            raise DataError(f"the target answered NaN at all of {len(f)} points")
        f = np.where(bad, np.inf, f)
        low = f.min()
    if low == -np.inf:
        where = points[int(np.argmin(f))]
        raise DataError(
            f"the target answered f = -inf at {where.tolist()}", expected="a number or +inf"
        )
    return f

"""The correction: a pass that leaves the target exactly unchanged, and undoes Monte Carlo bias.

The score of a round is a ratio of averages over M draws along T steps and a mixture of N
components, so the particles' law is too wide (large h) or too narrow (small h) by some per cent.
One independence step repairs it: the particles are split in two halves; each particle of one half
is put among M fresh draws of a mixture g built from the *other* half, whose density is known, and
one of the M + 1 is taken with probability proportional to exp(-f)/g (i-SIR: Tjelmeland 2004;
Andrieu, Lee, Vihola 2018). Given the other half this leaves exp(-f) unchanged whatever M, h and the
other half are. A single Metropolis proposal from `q_hat` (known up to a constant) would be the case
M = 1, which mostly fails in several dimensions; and a proposal that is built from the particle
itself would not leave the target unchanged.

g has Cauchy kernels of scale sqrt(h) at the other half's particles. Against the Gaussian kernels of
a round they keep the weights exp(-f)/g bounded for every target whose tails fall exponentially, and
their many scales forgive an h that is 16 times too small or too large.

The same draws estimate the target's normalising constant, without bias given the particles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import gammaln, logsumexp

from papercuts.parallel import seed_for
from zoprox.potential import Counted, Points, Potential, Values
from zoprox.proposal import CELLS
from zoprox.sampler import BLOCK, checked_values

LOW = 0.2  # share of moved particles below which a correction is not to be trusted


@dataclass(frozen=True)
class Corrected:
    """A corrected round.

    `points` [N, dim]; `moved` the share of particles that left their place, `acceptance` its
    expectation given the draws; `log_normaliser` and `relative_sd` [2] for the draws from each
    half: log of the mean of exp(-f)/g, and the standard error of that mean over the mean;
    `evaluations` N M + N.
    """

    points: Points
    moved: float
    acceptance: float
    log_normaliser: Values
    relative_sd: Values
    evaluations: int


def corrected(
    potential: Potential, particles: Points, step: float, draws: int, seed: int, number: int
) -> Corrected:
    """Correct the particles [N, dim] of round `number`, with M = `draws`.

    Raises `ValueError` for a single particle: there is no other half.
    """
    count = len(particles)
    if count < 2:
        raise ValueError("the correction needs at least two particles")
    rng = np.random.default_rng([seed_for(seed, number), 1])
    counted = Counted(potential)
    points = particles.copy()
    f = checked_values(counted, points)
    # Rounds leave particles in no order, but a start file may be sorted: the halves are drawn.
    order = rng.permutation(count)
    halves = order[: count // 2], order[count // 2 :]
    stays, moves = np.empty(count), np.empty(count, dtype=bool)
    logs, spreads = np.empty(2), np.empty(2)
    for index, (mine, other) in enumerate((halves, halves[::-1])):
        mixture = HeavyMixture(points[other], step)
        picked = _pick(counted, mixture, points[mine], f[mine], draws, rng)
        points[mine], f[mine] = picked.points, picked.f
        stays[mine], moves[mine] = picked.stay, picked.moved
        logs[index], spreads[index] = picked.log_mean, picked.relative_sd
    return Corrected(
        points, float(moves.mean()), float(1 - stays.mean()), logs, spreads, counted.evaluations
    )


@dataclass(frozen=True)
class HeavyMixture:
    """The mean of multivariate Cauchy densities at `centres` [N, dim], of squared scale `step`."""

    centres: Points
    step: float

    def log_density(self, points: Points) -> Values:
        """Give log g at every point: [points]."""
        count, dim = self.centres.shape
        power = (dim + 1) / 2
        found = np.empty(len(points))
        rows = max(1, CELLS // count)
        for first in range(0, len(points), rows):
            near = cdist(points[first : first + rows], self.centres, "sqeuclidean")
            near /= self.step
            near += 1
            # Relative to the nearest centre, so that no power of a far point underflows.
            least = near.min(axis=1)
            np.divide(least[:, None], near, out=near)
            found[first : first + rows] = np.log(_power(near, dim + 1).mean(axis=1))
            found[first : first + rows] -= power * np.log(least)
        constant = gammaln(power) - power * math.log(math.pi) - 0.5 * dim * math.log(self.step)
        return found + float(constant)

    def draw(self, rng: np.random.Generator, rows: int, draws: int) -> NDArray[np.float64]:
        """Draw independent points from g: [rows, draws, dim]."""
        count, dim = self.centres.shape
        points = rng.standard_normal((rows, draws, dim))
        points *= math.sqrt(self.step) / np.abs(rng.standard_normal((rows, draws, 1)))
        points += self.centres[rng.integers(count, size=(rows, draws))]
        return points


def _power(base: NDArray[np.float64], twice: int) -> NDArray[np.float64]:
    """Give base ** (twice / 2) by squaring: `np.power` costs ten times as much."""
    result = np.sqrt(base) if twice % 2 else np.ones_like(base)
    exponent = twice // 2
    while exponent:
        if exponent % 2:
            result *= base
        exponent //= 2
        if exponent:
            base = base * base
    return result


@dataclass(frozen=True)
class _Picked:
    """What became of one half: [particles, dim] and [particles]; see `Corrected`."""

    points: Points
    f: Values
    stay: Values
    moved: NDArray[np.bool_]
    log_mean: float
    relative_sd: float


def _pick(
    potential: Potential,
    mixture: HeavyMixture,
    points: Points,
    f: Values,
    draws: int,
    rng: np.random.Generator,
) -> _Picked:
    count, dim = points.shape
    found, values = points.copy(), f.copy()
    stay, moved = np.ones(count), np.zeros(count, dtype=bool)
    weights = np.empty((count, draws + 1))
    weights[:, draws] = -f - mixture.log_density(points)
    rows = max(1, BLOCK // draws)
    for first in range(0, count, rows):
        part = slice(first, min(first + rows, count))
        fresh = mixture.draw(rng, part.stop - part.start, draws).reshape(-1, dim)
        fresh_f = checked_values(potential, fresh)
        logs = weights[part]
        logs[:, :draws] = (-fresh_f - mixture.log_density(fresh)).reshape(-1, draws)
        top = logs.max(axis=1, keepdims=True)
        some = np.isfinite(top[:, 0])  # else nothing is allowed, and the particle stays
        shares = np.exp(logs[some] - top[some])
        cumulated = np.cumsum(shares, axis=1)
        limits = rng.random(int(some.sum())) * cumulated[:, -1]
        # `<=`: a uniform of 0 must not pick a first draw of weight 0.
        picked = np.minimum((cumulated <= limits[:, None]).sum(axis=1), draws)
        new = picked < draws
        who = np.arange(first, part.stop)[some]
        stay[who] = shares[:, draws] / cumulated[:, -1]
        moved[who] = new
        source = ((who - first) * draws + picked)[new]
        found[who[new]] = fresh[source]
        values[who[new]] = fresh_f[source]
    fresh_logs = weights[:, :draws]
    number = fresh_logs.size
    log_sum = float(logsumexp(fresh_logs))
    # The variance of a mean of weights, over the squared mean: (n sum w^2 / (sum w)^2 - 1) / n.
    squares = math.exp(float(logsumexp(2 * fresh_logs)) - 2 * log_sum) if log_sum > -math.inf else 1
    relative = math.sqrt(max(0.0, squares - 1 / number))
    return _Picked(found, values, stay, moved, log_sum - math.log(number), relative)

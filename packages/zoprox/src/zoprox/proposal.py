"""The mixture of Gaussians behind a round: q, the re-weighting by 1/q, and g (paper, section 3).

The noised particles y_j, each weighted by 1/q(y_j), stand for the noised target pi * N(0, hI):
crowded places count less. With kernels N(y_j, hI) they make the density g, and the target itself is
close to g(x) exp(-f(x)). Everything is in log space.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from zoprox.potential import Points, Values

CELLS = 1 << 18  # distances held at a time: they stay in the processor's cache


def log_mixture(
    points: Points, centres: Points, variance: float, log_weights: Values | None = None
) -> Values:
    """Give the log density of a mixture of Gaussians at every point: [points].

    `centres` [components, dim] share the covariance `variance` times the identity; `log_weights`
    [components] need not be normalised (they are here), and are equal when left out.
    """
    count, dim = centres.shape
    logs = np.zeros(count) if log_weights is None else log_weights
    constant = -logsumexp(logs) - 0.5 * dim * math.log(2 * math.pi * variance)
    found = np.empty(len(points))
    rows = max(1, CELLS // count)
    for first in range(0, len(points), rows):
        exponents = cdist(points[first : first + rows], centres, "sqeuclidean")
        exponents *= -0.5 / variance
        exponents += logs
        top = exponents.max(axis=1)
        exponents -= top[:, None]
        np.exp(exponents, out=exponents)
        found[first : first + rows] = np.log(exponents.sum(axis=1)) + top
    found += constant
    return found


@dataclass(frozen=True)
class Mixture:
    """g: noised particles `centres` [N, dim] with normalised `log_weights` [N], kernel N(., hI)."""

    centres: Points
    log_weights: Values
    variance: float

    @classmethod
    def around(cls, particles: Points, noised: Points, step: float) -> Mixture:
        """Weight each noised particle by 1/q, q = mean_i N(.; x_i, hI) (step 3 of the method)."""
        logs = -log_mixture(noised, particles, step)
        return cls(noised, logs - logsumexp(logs), step)

    def log_density(self, points: Points) -> Values:
        """Give log g at every point: [points]."""
        return log_mixture(points, self.centres, self.variance, self.log_weights)

    def responsibilities(self, places: Points, noise: float) -> NDArray[np.float64]:
        """Give the probability of each component given a noised place z: [places, N].

        `noise` is s: a draw of component j, then noised by s, lies at z with log density
        log w_j - |z - y_j|^2 / (2 (h + s)) and a constant.
        """
        logs = cdist(places, self.centres, "sqeuclidean")
        logs *= -0.5 / (self.variance + noise)
        logs += self.log_weights
        logs -= logs.max(axis=1, keepdims=True)
        np.exp(logs, out=logs)
        logs /= logs.sum(axis=1, keepdims=True)
        return logs


def draw_components(
    rng: np.random.Generator, probabilities: NDArray[np.float64], draws: int
) -> NDArray[np.intp]:
    """Draw indices from each row of `probabilities` [rows, components]: [rows, draws], sorted.

    The order of a row's draws has no meaning (they are exchangeable), so a row may be drawn as
    counts, exactly, by one multinomial; where components are many, sorted uniforms looked up in
    the cumulated row are faster. Which of both is used depends on the shapes alone.
    """
    rows, components = probabilities.shape
    if 4 * components <= draws:  # where both cost the same, as measured
        counts = rng.multinomial(draws, probabilities)
        labels = np.tile(np.arange(components), rows)
        return np.repeat(labels, counts.ravel()).reshape(rows, draws)
    uniforms = rng.random((rows, draws))
    uniforms.sort(axis=1)
    found = np.empty((rows, draws), dtype=np.intp)
    for row, cumulated in enumerate(np.cumsum(probabilities, axis=1)):
        found[row] = cumulated.searchsorted(uniforms[row], side="right")
    # The last cumulated sum may fall short of 1 by rounding, and a uniform beyond it.
    np.minimum(found, components - 1, out=found)
    return found

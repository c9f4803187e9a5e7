"""Benchmarks with several modes: Gaussian-Lasso of the paper, and a grid of 25 Gaussians."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, logsumexp

from zoprox.benchmarks.benchmark import Benchmark
from zoprox.potential import Points, Values

RATE = 4.0  # of the Laplace half, along each axis
_ROTATION_SEED = 0
_SPACING, _SD = 2.0, 0.2  # of the grid


def gaussian_lasso(dim: int) -> Benchmark:
    """Half N(1, Q^-1), half Laplace with density 2^d exp(-4 |x|_1) (the paper's main experiment).

    Q = U diag(14, ..., 18) U^T; U is one random rotation, the same always. In dimension 5 the
    eigenvalues are 14, 15, 16, 17, 18; in others they are spread evenly between the ends.
    """
    eigenvalues, rotation = gaussian_lasso_axes(dim)
    root = rotation * np.sqrt(eigenvalues)  # Q = root root^T
    centred = -root.sum(axis=0)
    log_gaussian = 0.5 * (float(np.log(eigenvalues).sum()) - dim * math.log(2 * math.pi))
    log_laplace = dim * math.log(RATE / 2)

    def halves(points: Points) -> tuple[Values, Values]:
        places = points @ root
        places += centred
        gaussian = log_gaussian - 0.5 * np.einsum("nd,nd->n", places, places)
        laplace = log_laplace - RATE * np.abs(points).sum(axis=1)
        return gaussian, laplace

    def potential(points: Points) -> Values:
        gaussian, laplace = halves(points)
        return math.log(2.0) - np.logaddexp(gaussian, laplace)

    def draw(rng: np.random.Generator, number: int) -> Points:
        gaussian = 1 + (rng.standard_normal((number, dim)) / np.sqrt(eigenvalues)) @ rotation.T
        laplace = rng.laplace(scale=1 / RATE, size=(number, dim))
        return np.where(rng.random((number, 1)) < 0.5, gaussian, laplace)

    def modes(points: Points) -> Points:
        gaussian, laplace = halves(points)
        share = expit(gaussian - laplace)
        return np.stack([share, 1 - share], axis=1)

    return Benchmark("gaussian-lasso", dim, potential, draw, modes, np.array([0.5, 0.5]))


def gaussian_lasso_axes(dim: int) -> tuple[Values, Points]:
    """Give the eigenvalues of Q [dim] and U [dim, dim], its eigenvectors in columns."""
    square = np.random.default_rng(_ROTATION_SEED).standard_normal((dim, dim))
    upper = np.linalg.qr(square)
    rotation = upper.Q * np.sign(np.diag(upper.R))  # so that U is uniform over rotations
    return np.linspace(14.0, 18.0, dim), rotation


def grid25(dim: int) -> Benchmark:
    """25 equal Gaussians of standard deviation 0.2 at {-4, -2, 0, 2, 4} x {-4, -2, 0, 2, 4}."""
    marks = _SPACING * np.arange(-2.0, 3.0)
    centres = np.stack(np.meshgrid(marks, marks, indexing="ij"), axis=-1).reshape(-1, dim)
    log_axis = -math.log(5) - math.log(_SD * math.sqrt(2 * math.pi))

    def potential(points: Points) -> Values:
        # A grid is a product, and each axis a sum of five.
        gaps = (points[:, :, None] - marks) / _SD
        gaps *= gaps
        least = gaps.min(axis=2)
        gaps -= least[:, :, None]
        gaps *= -0.5
        sums = np.log(np.exp(gaps, out=gaps).sum(axis=2))
        found: Values = (0.5 * least - sums).sum(axis=1) - dim * log_axis
        return found

    def draw(rng: np.random.Generator, number: int) -> Points:
        at = centres[rng.integers(len(centres), size=number)]
        return at + _SD * rng.standard_normal((number, dim))

    def modes(points: Points) -> Points:
        axis = (points[:, :, None] - marks) / _SD
        axis *= -0.5 * axis
        logs = (axis[:, 0, :, None] + axis[:, 1, None, :]).reshape(len(points), -1)
        found: Points = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        return found

    return Benchmark("grid25", dim, potential, draw, modes, np.full(25, 1 / 25))

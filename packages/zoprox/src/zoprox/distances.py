"""How far two sets of draws are apart: kNN estimate of KL, sliced Wasserstein distance, MMD.

All take two arrays [draws, dim] of any lengths with equal dim, and give one number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist, pdist

Sample = NDArray[np.float64]  # [draws, dim]

_CELLS = 1 << 20  # numbers held at a time
_MEDIAN_FROM = 1000  # draws of each set that the median heuristic looks at


def knn_kl(draws: Sample, reference: Sample, k: int = 4) -> float:
    """Estimate the Kullback-Leibler divergence KL(draws | reference), in nats.

    With rho_i the distance from draw i to its k-th neighbour among the n draws and nu_i that to
    its k-th among the m of the reference, the estimate is (d/n) sum_i log(nu_i / rho_i)
    + log(m / (n - 1)) (Wang, Kulkarni, Verdu 2009, eq. 5). It may be below 0, and is too small
    where draws lie far from all of the reference.

    Equal draws, as of chains that stay in place, are one point that weighs as much: k/(n - 1) and
    k/m, the shares of the draws within those distances, then become the shares by weight.
    Infinite for draws at fewer than k + 1 places, or a reference at fewer than k. Raises
    `ValueError` for fewer draws than that.
    """
    draws, reference = _checked(draws, reference)
    n, m, dim = len(draws), len(reference), draws.shape[1]
    if n < k + 1 or m < k:
        raise ValueError(f"k = {k} neighbours need {k + 1} draws and {k} of the reference")
    places, copies = np.unique(draws, axis=0, return_counts=True)
    others, their_copies = np.unique(reference, axis=0, return_counts=True)
    if len(places) < k + 1 or len(others) < k:
        return math.inf
    rho, mine = _reach(places, copies, places, range(2, k + 2))  # the first is the place itself
    nu, theirs = _reach(others, their_copies, places, range(1, k + 1))
    with np.errstate(divide="ignore"):  # k = 1, and the same point on both sides
        logs = dim * (np.log(nu) - np.log(rho)) + np.log(mine / (n - copies)) - np.log(theirs / m)
    return float(copies @ logs / n)


def _reach(
    among: Sample, copies: NDArray[np.intp], places: Sample, neighbours: Sequence[int]
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Give the distance from each place to the last of its neighbours, and how many they are."""
    distances, which = cKDTree(among).query(places, k=neighbours)
    return np.asarray(distances)[:, -1], np.asarray(copies[which].sum(axis=1))


def sliced_w2(draws: Sample, reference: Sample, directions: int = 256, seed: int = 0) -> float:
    """Give the sliced Wasserstein distance of order 2 (Bonneel et al. 2015).

    The root of the mean, over `directions` random directions, of the squared distance between
    the projections, which is exact (optimal transport in one dimension joins equal quantiles;
    sets of unequal size are joined piece by piece). The directions depend on `seed` and dim alone.
    In one dimension it is the Wasserstein distance itself.
    """
    draws, reference = _checked(draws, reference)
    dim = draws.shape[1]
    if dim == 1:
        axes = np.ones((1, 1))
    else:
        axes = np.random.default_rng(seed).standard_normal((dim, directions))
        axes /= np.linalg.norm(axes, axis=0)
    mine, theirs, shares = _coupling(len(draws), len(reference))
    total = 0.0
    step = max(1, _CELLS // len(shares))
    for first in range(0, axes.shape[1], step):
        part = axes[:, first : first + step]
        gap = np.sort(draws @ part, axis=0)[mine] - np.sort(reference @ part, axis=0)[theirs]
        total += float(shares @ np.einsum("ij,ij->i", gap, gap))
    return math.sqrt(total / axes.shape[1])


def _coupling(n: int, m: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """Cut [0, 1] at all i/n and j/m: the index on either side, and the length, of each piece."""
    # In units of 1/(n m) the cuts are whole numbers, so that equal ones are found to be equal.
    cuts = np.union1d(np.arange(n + 1) * m, np.arange(m + 1) * n)
    return cuts[:-1] // m, cuts[:-1] // n, np.diff(cuts) / (n * m)


def mmd2(draws: Sample, reference: Sample, bandwidth: float | None = None) -> float:
    """Give the unbiased estimate of the squared maximum mean discrepancy (Gretton et al. 2012).

    With kernel exp(-|x - y|^2 / (2 s^2)); s is the median distance between draws of both sets
    together when `bandwidth` is left out (of the first thousand of each, evenly spaced). It may be
    below 0. Raises `ValueError` for fewer than two draws on either side.
    """
    draws, reference = _checked(draws, reference)
    n, m = len(draws), len(reference)
    if min(n, m) < 2:
        raise ValueError("the unbiased estimate needs two draws on either side")
    scale = median_distance(draws, reference) if bandwidth is None else bandwidth
    if scale == 0:
        return 0.0 if np.array_equal(draws[:1], reference[:1]) else 2.0
    own = (_kernel_sum(draws, draws, scale) - n) / (n * (n - 1))
    other = (_kernel_sum(reference, reference, scale) - m) / (m * (m - 1))
    return own + other - 2 * _kernel_sum(draws, reference, scale) / (n * m)


def median_distance(draws: Sample, reference: Sample) -> float:
    """Give the median distance between two different draws of both sets together."""
    both = np.concatenate([thinned(draws, _MEDIAN_FROM), thinned(reference, _MEDIAN_FROM)])
    return float(np.median(pdist(both)))


def thinned(draws: Sample, most: int) -> Sample:
    """Keep at most `most` draws, evenly spaced."""
    if len(draws) <= most:
        return draws
    kept = np.linspace(0, len(draws) - 1, most).round().astype(int)
    return np.asarray(draws[kept])


def _kernel_sum(a: Sample, b: Sample, scale: float) -> float:
    total = 0.0
    rows = max(1, _CELLS // len(b))
    for first in range(0, len(a), rows):
        near = cdist(a[first : first + rows], b, "sqeuclidean")
        near *= -0.5 / (scale * scale)
        total += float(np.exp(near, out=near).sum())
    return total


def _checked(draws: Sample, reference: Sample) -> tuple[Sample, Sample]:
    if draws.ndim != 2 or reference.ndim != 2 or draws.shape[1] != reference.shape[1]:
        raise ValueError(f"shapes {draws.shape} and {reference.shape}, not [draws, dim] twice")
    return np.ascontiguousarray(draws, float), np.ascontiguousarray(reference, float)

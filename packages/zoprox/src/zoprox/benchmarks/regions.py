"""Benchmarks known by membership alone: uniform on two tori, an L, and scattered boxes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from zoprox.benchmarks.benchmark import Benchmark
from zoprox.potential import Points, Values

# Centre on the first axis, radius R of the ring, radius r of the tube (the paper's two).
TORI = ((10.0, 10.0, 1.0), (-13.0, 3.0, 1.0))
_GAP, _SIDE = 3.0, 1.0  # between centres of boxes, and their width

Inside = Callable[[Points], NDArray[np.bool_]]


def wall(inside: Inside, outside: float = math.inf) -> Callable[[Points], Values]:
    """Make a potential of a membership test: 0 inside, `outside` elsewhere."""
    return lambda points: np.where(inside(points), 0.0, outside)


def in_torus(points: Points, centre: float, ring: float, tube: float) -> NDArray[np.bool_]:
    """Tell which points [n, 3] are in a torus around the third axis, moved along the first."""
    flat = np.hypot(points[:, 0] - centre, points[:, 1]) - ring
    return np.asarray(flat * flat + points[:, 2] ** 2 <= tube * tube)


def two_tori(dim: int) -> Benchmark:
    """Two tori, 8 apart: ring 10 and tube 1 at (10, 0, 0), ring 3 and tube 1 at (-13, 0, 0).

    The origin lies in the first, which has 10/13 of the volume 2 pi^2 R r^2.
    """
    volumes = np.array([2 * math.pi**2 * ring * tube**2 for _, ring, tube in TORI])
    weights = volumes / volumes.sum()

    def members(points: Points) -> NDArray[np.bool_]:
        return np.stack([in_torus(points, *torus) for torus in TORI], axis=1)

    def inside(points: Points) -> NDArray[np.bool_]:
        return np.asarray(members(points).any(axis=1))

    def draw(rng: np.random.Generator, number: int) -> Points:
        which = rng.random(number) >= weights[0]
        centre, ring, tube = np.where(which[:, None], TORI[1], TORI[0]).T
        # In the tube's cross section the density is proportional to the way around the axis.
        across = np.empty((number, 2))
        todo = np.arange(number)
        while len(todo):
            angle = rng.uniform(0, 2 * math.pi, len(todo))
            radius = tube[todo] * np.sqrt(rng.random(len(todo)))
            across[todo] = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
            limit = rng.random(len(todo)) * (ring[todo] + tube[todo])
            todo = todo[ring[todo] + across[todo, 0] < limit]
        around = rng.uniform(0, 2 * math.pi, number)
        out = ring + across[:, 0]
        return np.stack([centre + out * np.cos(around), out * np.sin(around), across[:, 1]], axis=1)

    return Benchmark(
        "two-tori",
        dim,
        wall(inside),
        draw,
        lambda points: members(points).astype(float),
        weights,
        inside,
        float(volumes.sum()),
    )


def l_shape(dim: int) -> Benchmark:
    """Three unit squares in an L: [0, 2] x [0, 2] without its upper right quarter.

    Its modes are the squares: the corner, the one to the right, the one above.
    """
    corners = np.array([(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)])

    def inside(points: Points) -> NDArray[np.bool_]:
        x, y = points.T
        within: NDArray[np.bool_] = np.asarray(((points >= 0) & (points <= 2)).all(axis=1))
        within &= (x <= 1) | (y <= 1)
        return within

    def draw(rng: np.random.Generator, number: int) -> Points:
        return corners[rng.integers(3, size=number)] + rng.random((number, dim))

    def modes(points: Points) -> Points:
        x, y = points.T
        corner = (x <= 1) & (y <= 1)
        parts = np.stack([corner, x > 1, y > 1], axis=1)
        return (parts & inside(points)[:, None]).astype(float)

    return Benchmark("l-shape", dim, wall(inside), draw, modes, np.full(3, 1 / 3), inside, 3.0)


def sparse_boxes(dim: int) -> Benchmark:
    """3^d boxes of width 1 around the points of {-3, 0, 3}^d, uniform on them all."""
    marks = _GAP * np.arange(-1.0, 2.0)
    centres = np.array(list(itertools.product(marks, repeat=dim)))
    powers = 3 ** np.arange(dim - 1, -1, -1)

    def nearest(points: Points) -> Points:
        return np.clip(np.round(points / _GAP), -1, 1)

    def inside(points: Points) -> NDArray[np.bool_]:
        gaps = np.abs(points - _GAP * nearest(points))
        return np.asarray((gaps <= _SIDE / 2).all(axis=1))

    def draw(rng: np.random.Generator, number: int) -> Points:
        at = centres[rng.integers(len(centres), size=number)]
        return at + _SIDE * (rng.random((number, dim)) - 0.5)

    def modes(points: Points) -> Points:
        found = np.zeros((len(points), len(centres)))
        box = ((nearest(points) + 1) @ powers).astype(int)
        found[np.arange(len(points)), box] = inside(points)
        return found

    count = len(centres)
    weights = np.full(count, 1 / count)
    return Benchmark(
        "sparse-boxes", dim, wall(inside), draw, modes, weights, inside, count * _SIDE**dim
    )

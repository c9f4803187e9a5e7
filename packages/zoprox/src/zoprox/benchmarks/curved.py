"""Benchmarks whose scales change from place to place: a funnel, a banana, a potential surface."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from zoprox.benchmarks.benchmark import Benchmark
from zoprox.potential import Points, Values

_NECK_SD = 3.0
_LONG_SD, _BEND = 10.0, 0.03  # of the banana
_LOG_2PI = math.log(2 * math.pi)


def funnel(dim: int) -> Benchmark:
    """Neal's funnel (2003): v ~ N(0, 3^2), then each other coordinate ~ N(0, exp(v)).

    Its two modes are the neck (v < 0) and the mouth.
    """

    def potential(points: Points) -> Values:
        v, rest = points[:, 0], points[:, 1:]
        with np.errstate(over="ignore"):  # far down the neck the density is 0
            widths = np.einsum("nd,nd->n", rest, rest) * np.exp(-v)
        found: Values = 0.5 * (v * v / _NECK_SD**2 + (dim - 1) * v + widths)
        return found + (0.5 * dim * _LOG_2PI + math.log(_NECK_SD))

    def draw(rng: np.random.Generator, number: int) -> Points:
        points = rng.standard_normal((number, dim))
        points[:, 0] *= _NECK_SD
        points[:, 1:] *= np.exp(0.5 * points[:, :1])
        return points

    return Benchmark("funnel", dim, potential, draw, _by_sign, np.array([0.5, 0.5]))


def banana(dim: int) -> Benchmark:
    """Bent Gaussian of Haario, Saksman, Tamminen (1999): x1 ~ N(0, 100), x2 bent by 0.03.

    x2 + 0.03 (x1^2 - 100) and all other coordinates are N(0, 1). Its modes are the two arms.
    """

    def potential(points: Points) -> Values:
        straight = points.copy()
        straight[:, 0] /= _LONG_SD
        straight[:, 1] += _BEND * (points[:, 0] ** 2 - _LONG_SD**2)
        found: Values = 0.5 * np.einsum("nd,nd->n", straight, straight)
        return found + (0.5 * dim * _LOG_2PI + math.log(_LONG_SD))

    def draw(rng: np.random.Generator, number: int) -> Points:
        points = rng.standard_normal((number, dim))
        points[:, 0] *= _LONG_SD
        points[:, 1] -= _BEND * (points[:, 0] ** 2 - _LONG_SD**2)
        return points

    return Benchmark("banana", dim, potential, draw, _by_sign, np.array([0.5, 0.5]))


def _by_sign(points: Points) -> Points:
    below = points[:, 0] < 0
    return np.stack([below, ~below], axis=1).astype(float)


# The surface of Mueller and Brown (1979): amplitudes, and the quadratic forms in their exponents.
_HEIGHTS = np.array([-200.0, -100.0, -170.0, 15.0])
_A = np.array([-1.0, -1.0, -6.5, 0.7])
_B = np.array([0.0, 0.0, 11.0, 0.6])
_C = np.array([-10.0, -10.0, -6.5, 0.7])
_X = np.array([1.0, 0.0, -0.5, -1.0])
_Y = np.array([0.0, 0.5, 1.5, 1.0])
_TEMPERATURE = 20.0  # kT: the second basin then has a fifth of the mass
_LOW, _HIGH = np.array([-2.0, -1.0]), np.array([1.6, 2.6])  # beyond, less than 1e-7 of the mass
_CUTS = 600
_SADDLE = 1.446  # the line y = x + 1.446 goes through the saddle between the upper two basins


def mueller_brown(dim: int) -> Benchmark:
    """Surface of Mueller and Brown (1979) at kT = 20: two basins joined by a bent valley.

    Exact draws come from a fine grid of cells by rejection; the modes are the upper left basin
    and the rest, with weights by summing the grid.
    """
    centres, shares, ceiling = _cells()
    corner = (_HIGH - _LOW) / _CUTS

    def draw(rng: np.random.Generator, number: int) -> Points:
        points = np.empty((number, dim))
        todo = np.arange(number)
        while len(todo):
            cell = rng.choice(len(shares), size=len(todo), p=shares)
            points[todo] = centres[cell] + corner * (rng.random((len(todo), dim)) - 0.5)
            height = np.exp(-surface(points[todo]) + surface(centres[cell]))
            todo = todo[height < ceiling * rng.random(len(todo))]
        return points

    upper = _upper(centres)
    weight = float(shares @ upper)

    def modes(points: Points) -> Points:
        above = _upper(points)
        return np.stack([above, ~above], axis=1).astype(float)

    weights = np.array([weight, 1 - weight])
    return Benchmark("mueller-brown", dim, surface, draw, modes, weights)


def surface(points: Points) -> Values:
    """Give the potential over kT at every point [n, 2]: [n]."""
    x = points[:, :1] - _X
    y = points[:, 1:] - _Y
    exponents = x * (_A * x + _B * y)
    exponents += _C * y * y
    # Far out the fourth term, whose exponent grows, is a wall.
    np.minimum(exponents, 700.0, out=exponents)
    found: Values = np.exp(exponents) @ _HEIGHTS / _TEMPERATURE
    return found


def _upper(points: Points) -> NDArray[np.bool_]:
    above: NDArray[np.bool_] = points[:, 1] > points[:, 0] + _SADDLE
    return above


@cache
def _cells() -> tuple[Points, Values, float]:
    """Give the cells' centres, their shares of the mass, and how much higher a corner may be."""
    steps = (np.arange(_CUTS) + 0.5) / _CUTS
    grid = np.stack(np.meshgrid(steps, steps, indexing="ij"), axis=-1).reshape(-1, 2)
    centres = _LOW + (_HIGH - _LOW) * grid
    values = surface(centres)
    heights = np.exp(-(values - values.min()))
    kept = heights > 1e-12
    centres, heights = centres[kept], heights[kept]
    return centres, heights / heights.sum(), 1.5

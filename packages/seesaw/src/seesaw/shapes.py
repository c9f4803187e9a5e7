"""The forms that a decay can take: ratio to the peak over the fraction of the decay's tokens.

A Seesaw plan needs three things of a decay: the ratio at a point, the first point at or below a
ratio (where a cut of Algorithm 1 falls), and its mean, which is the continuous
limit of the steps that are left (Lemma 1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]


class Shape(ABC):
    """A decay from 1 to `final_ratio` over x in [0, 1]; it never rises."""

    @property
    @abstractmethod
    def final_ratio(self) -> float:
        """The ratio at x = 1."""

    @abstractmethod
    def ratio(self, x: npt.ArrayLike) -> Floats:
        """Give lr / peak lr at each x, continuous from the right; x is clipped to [0, 1]."""

    @abstractmethod
    def first_at_or_below(self, ratio: npt.ArrayLike) -> Floats:
        """Give the first x at which the ratio is at most `ratio`; infinity where it never is."""

    def mean(self, power: float = 1.0, floor: float = 0.0) -> float:
        """Integrate max(ratio**power, floor) over x in [0, 1].

        With `power = 1` and no floor this is the fraction of steps that remain in the continuous
        limit (Lemma 1). A plan off the default point has `power = log(beta)/log(cut)`, and a cap
        on the batch is a floor of `batch/cap`.
        """
        if power == 0.0 or floor >= 1.0:
            return 1.0
        end = 1.0
        if floor > 0.0:
            end = min(1.0, float(self.first_at_or_below(floor ** (1.0 / power))))
        return self._integral(power, end) + floor * (1.0 - end)

    def _integral(self, power: float, end: float) -> float:
        # Gauss-Legendre on panels that get shorter towards the end, where a power of a ratio that
        # falls to 0 has an unbounded slope.
        nodes, weights = np.polynomial.legendre.leggauss(16)
        edges = end * (1.0 - np.concatenate([0.5 ** np.arange(0.0, 50.0, 0.5), [0.0]]))
        half = np.diff(edges) / 2.0
        x = (edges[:-1] + half)[:, None] + half[:, None] * nodes
        return float(np.sum(self.ratio(x) ** power * weights * half[:, None]))


@dataclass(frozen=True)
class Cosine(Shape):
    """Half a cosine from 1 to `final` (the paper's experiments)."""

    final: float

    @property
    def final_ratio(self) -> float:
        """The ratio at x = 1."""
        return self.final

    def ratio(self, x: npt.ArrayLike) -> Floats:
        """Give final + (1 - final) * (1 + cos(pi x)) / 2."""
        x = np.clip(np.asarray(x, dtype=np.float64), 0.0, 1.0)
        return np.asarray(self.final + (1.0 - self.final) * (1.0 + np.cos(np.pi * x)) / 2.0)

    def first_at_or_below(self, ratio: npt.ArrayLike) -> Floats:
        """Invert with the authors' arithmetic: acos(clip(2 (r - final)/(1 - final) - 1)) / pi."""
        r = np.asarray(ratio, dtype=np.float64)
        x = np.clip(2.0 * (r - self.final) / (1.0 - self.final) - 1.0, -1.0, 1.0)
        return _unless_below(np.arccos(x) / np.pi, r, self.final)


@dataclass(frozen=True)
class QuarterCosine(Shape):
    """A quarter of a cosine from 1 to `final`; with `final = 0` the schedule of Lemma 1."""

    final: float

    @property
    def final_ratio(self) -> float:
        """The ratio at x = 1."""
        return self.final

    def ratio(self, x: npt.ArrayLike) -> Floats:
        """Give final + (1 - final) * cos(pi x / 2)."""
        x = np.clip(np.asarray(x, dtype=np.float64), 0.0, 1.0)
        # The sine of the complement is exact where the cosine would leave 6e-17 instead of 0.
        return np.asarray(self.final + (1.0 - self.final) * np.sin(np.pi / 2.0 * (1.0 - x)))

    def first_at_or_below(self, ratio: npt.ArrayLike) -> Floats:
        """Invert the quarter cosine."""
        r = np.asarray(ratio, dtype=np.float64)
        height = np.clip((r - self.final) / (1.0 - self.final), 0.0, 1.0)
        return _unless_below(2.0 / np.pi * np.arccos(height), r, self.final)


@dataclass(frozen=True)
class Polynomial(Shape):
    """final + (1 - final) * (1 - x)**power."""

    final: float
    power: float

    @property
    def final_ratio(self) -> float:
        """The ratio at x = 1."""
        return self.final

    def ratio(self, x: npt.ArrayLike) -> Floats:
        """Give final + (1 - final) * (1 - x)**power."""
        x = np.clip(np.asarray(x, dtype=np.float64), 0.0, 1.0)
        return np.asarray(self.final + (1.0 - self.final) * (1.0 - x) ** self.power)

    def first_at_or_below(self, ratio: npt.ArrayLike) -> Floats:
        """Invert the polynomial."""
        r = np.asarray(ratio, dtype=np.float64)
        height = np.clip((r - self.final) / (1.0 - self.final), 0.0, 1.0)
        return _unless_below(1.0 - height ** (1.0 / self.power), r, self.final)


@dataclass(frozen=True, eq=False)
class Points(Shape):
    """Straight lines between points; two points at one x are a sudden drop.

    Linear and WSD decay, step decay and measured curves are all of this kind. `x` runs from 0 to 1
    and does not fall; `y` starts at 1 and does not rise. Raises ValueError where they do not.
    """

    x: Floats
    y: Floats

    def __post_init__(self) -> None:
        if self.x.ndim != 1 or self.x.shape != self.y.shape or len(self.x) < 2:
            raise ValueError("a curve needs as many x as y, and at least two of each")
        if self.x[0] != 0.0 or self.x[-1] != 1.0 or not np.all(np.diff(self.x) >= 0.0):
            raise ValueError("x must run from 0 to 1 without falling")
        if self.y[0] != 1.0 or self.y[-1] < 0.0 or not np.all(np.diff(self.y) <= 0.0):
            raise ValueError("y must start at 1 and fall, never below 0")

    @property
    def final_ratio(self) -> float:
        """The ratio at x = 1."""
        return float(self.y[-1])

    def ratio(self, x: npt.ArrayLike) -> Floats:
        """Interpolate; at a sudden drop the lower value holds."""
        x = np.clip(np.asarray(x, dtype=np.float64), 0.0, 1.0)
        xs, ys = self.x, self.y
        right = np.clip(np.searchsorted(xs, x, side="right"), 1, len(xs) - 1)
        left = right - 1
        width = xs[right] - xs[left]
        part = np.divide(x - xs[left], width, out=np.ones_like(x), where=width > 0.0)
        return np.asarray(ys[left] + (ys[right] - ys[left]) * np.clip(part, 0.0, 1.0))

    def first_at_or_below(self, ratio: npt.ArrayLike) -> Floats:
        """Find the piece that crosses each ratio and invert it."""
        r = np.asarray(ratio, dtype=np.float64)
        xs, ys = self.x, self.y
        right = np.searchsorted(-ys, -r, side="left")
        never = right >= len(ys)
        right = np.clip(right, 1, len(ys) - 1)
        left = right - 1
        fall = ys[left] - ys[right]
        part = np.divide(ys[left] - r, fall, out=np.zeros_like(r), where=fall > 0.0)
        x = xs[left] + np.clip(part, 0.0, 1.0) * (xs[right] - xs[left])
        return np.asarray(np.where(never, np.inf, np.where(r >= ys[0], 0.0, x)))

    def _integral(self, power: float, end: float) -> float:
        # Exact on each straight piece: the integral of y**p is a difference of y**(p+1).
        xs = np.append(np.minimum(self.x, end), end)
        ys = np.append(self.y, 0.0)
        inside = self.x >= end
        ys[:-1][inside] = _left_limit(self, end)
        ys[-1] = ys[-2]
        width, a, b = np.diff(xs), ys[:-1], ys[1:]
        fall = a - b
        flat = fall <= 1e-9 * a
        sloped = np.divide(
            a ** (power + 1.0) - b ** (power + 1.0),
            (power + 1.0) * fall,
            out=((a + b) / 2.0) ** power,
            where=~flat,
        )
        return float(np.sum(sloped * width))


def polyline(x: npt.ArrayLike, y: npt.ArrayLike) -> Points:
    """Make `Points` of two sequences; see there for what they must be."""
    return Points(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))


def _left_limit(points: Points, x: float) -> float:
    """Give the ratio just before x, where a sudden drop at x has not happened yet."""
    xs, ys = points.x, points.y
    right = int(np.clip(np.searchsorted(xs, x, side="left"), 1, len(xs) - 1))
    width = xs[right] - xs[right - 1]
    part = 0.0 if width <= 0.0 else (x - xs[right - 1]) / width
    return float(ys[right - 1] + (ys[right] - ys[right - 1]) * part)


def _unless_below(x: Floats, ratio: Floats, final: float) -> Floats:
    # A relative tolerance, so that cut**-k counts as the final ratio that it equals on paper.
    return np.asarray(np.where(ratio < final * (1.0 - 1e-9), np.inf, x))


def simplify(shape: Shape, tolerance: float = 1e-3) -> Points:
    """Give straight lines within `tolerance` of the shape, with few points (Douglas-Peucker).

    A shape with a formula is sampled at 1025 points first.
    """
    if isinstance(shape, Points):
        x, y = shape.x, shape.y
    else:
        x = np.linspace(0.0, 1.0, 1025)
        y = shape.ratio(x)
    keep = {0, len(x) - 1}
    open_ends = [(0, len(x) - 1)]
    while open_ends:
        left, right = open_ends.pop()
        width = x[right] - x[left]
        if right - left < 2 or width <= 0.0:
            continue
        part = (x[left : right + 1] - x[left]) / width
        off = np.abs(y[left : right + 1] - (y[left] + (y[right] - y[left]) * part))
        worst = left + int(np.argmax(off))
        if off[worst - left] > tolerance:
            keep.add(worst)
            open_ends += [(left, worst), (worst, right)]
    chosen = np.array(sorted(keep))
    return Points(x[chosen], y[chosen])

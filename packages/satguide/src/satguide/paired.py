"""Two settings measured on the same formulas: the paired t test, and the ratio of their means."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000
_BLOCK = 1 << 20  # indices drawn at once, so that memory does not grow with the number of formulas


@dataclass(frozen=True)
class Comparison:
    """A setting against another on the same formulas; smaller is better.

    `ratio` is its mean over the other's, with a 95 % interval `ratio_low` to `ratio_high`;
    `change_percent` says the same. `t` is positive where it is the smaller one, `p` is two-sided.
    What needs more formulas than there are is None.
    """

    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    change_percent: float | None
    t: float | None
    p: float | None

    def to_dict(self) -> dict[str, float | None]:
        """Give the fields by name."""
        return dict(self.__dict__)


NOTHING = Comparison(None, None, None, None, None, None)


def compare(own: NDArray[Any], other: NDArray[Any], *, seed: int = 0) -> Comparison:
    """Compare two settings: `own` and `other` [formulas] are their costs, formula by formula."""
    own, other = np.asarray(own, dtype=float), np.asarray(other, dtype=float)
    if own.shape != other.shape or own.ndim != 1:
        raise ValueError(f"costs must be two vectors of one length: {own.shape}, {other.shape}")
    if own.size == 0 or other.mean() <= 0:
        return NOTHING
    ratio = float(own.mean() / other.mean())
    low, high = ratio_interval(own, other, seed=seed)
    t, p = paired_t(own, other)
    return Comparison(ratio, low, high, 100 * (ratio - 1), t, p)


def paired_t(own: NDArray[Any], other: NDArray[Any]) -> tuple[float | None, float | None]:
    """Student's paired t of other - own, and its two-sided p; (None, None) where it has none."""
    difference = np.asarray(other, dtype=float) - np.asarray(own, dtype=float)
    count = difference.size
    spread = float(difference.std(ddof=1)) if count > 1 else 0.0
    if spread == 0.0:
        return None, None
    t = float(difference.mean()) / spread * math.sqrt(count)
    return t, student_two_sided(t, count - 1)


def ratio_interval(
    own: NDArray[Any],
    other: NDArray[Any],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> tuple[float | None, float | None]:
    """Bound the ratio of the means by the percentile bootstrap over formulas (Efron)."""
    count = own.size
    if count < 2:
        return None, None
    random = np.random.default_rng(seed)
    ratios, rows = [], max(1, _BLOCK // count)
    for first in range(0, resamples, rows):
        drawn = random.integers(0, count, (min(rows, resamples - first), count))
        below = other[drawn].sum(axis=1)
        above = own[drawn].sum(axis=1)
        ratios.append(above[below > 0] / below[below > 0])
    tail = 100 * (1 - level) / 2
    low, high = np.percentile(np.concatenate(ratios), [tail, 100 - tail])
    return float(low), float(high)


def student_two_sided(t: float, degrees: int) -> float:
    """Give P(|T| >= |t|) of Student's distribution: I_x(degrees / 2, 1/2) at x = d / (d + t^2)."""
    return _incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t))


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Compute the regularised incomplete beta function: its continued fraction, DLMF 8.17.22."""
    if not 0 < x < 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # where the fraction converges fast for the mirrored one
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
        + a * math.log(x) + b * math.log1p(-x)
    )  # fmt: skip
    c, d = 1.0, 1 / _off_zero(1 - (a + b) * x / (a + 1))  # by Lentz's method
    value = d
    for m in range(1, 10_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _off_zero(1 + term * d)
            c = _off_zero(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * value / a


def _off_zero(value: float) -> float:
    return value if abs(value) > 1e-300 else 1e-300

"""Bounds on coordinates, moved out of the sampler's way by a change of variables.

A coordinate between two bounds is the logistic function of a free one, a coordinate with one
bound its exponential (Stan Reference Manual, "Constraint transforms"); one without stays as it
is. The density of the free coordinates has the Jacobian of the map as a factor.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from papercuts.errors import DataError, UsageError
from papercuts.streams import open_input
from zoprox.lineprotocol import place
from zoprox.potential import Points, Potential, Values

_EXPECTED = "low,high: two numbers, or nothing (or inf) where there is no bound"


@dataclass(frozen=True)
class Box:
    """The points with low <= x <= high, [dim] each; -inf and inf where there is no bound.

    Raises `ValueError` where a low bound is not below the high one.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.low.shape != self.high.shape or self.low.ndim != 1:
            raise ValueError("low and high must be as many")
        wrong = ~(self.low < self.high)  # also NaN
        if wrong.any():
            i = int(np.argmax(wrong))
            raise ValueError(f"low {self.low[i]:g} is not below high {self.high[i]:g}")

    @property
    def dim(self) -> int:
        """The number of coordinates."""
        return len(self.low)

    @property
    def volume(self) -> float:
        """The volume, inf where a bound is missing."""
        return float(np.prod(self.high - self.low))

    def holds(self, points: Points) -> NDArray[np.bool_]:
        """Tell which rows of `points` [n, dim] lie in it: [n]."""
        inside = (points >= self.low) & (points <= self.high)
        return np.asarray(inside.all(axis=1), dtype=np.bool_)

    def from_free(self, free: Points) -> Points:
        """Map free coordinates [n, dim] into the box."""
        points = np.array(free, dtype=np.float64)
        two, low, high = self._kinds()
        width = self.high[two] - self.low[two]
        points[:, two] = self.low[two] + width * expit(free[:, two])
        points[:, low] = self.low[low] + np.exp(free[:, low])
        points[:, high] = self.high[high] - np.exp(free[:, high])
        return np.clip(points, self.low, self.high)  # rounding leads no point out

    def to_free(self, points: Points) -> Points:
        """Map points of the box [n, dim] to free coordinates.

        Raises `DataError` for a point that is not strictly inside, as it has none.
        """
        wrong = ~((points > self.low) & (points < self.high)).all(axis=1)
        if wrong.any():
            first = int(np.argmax(wrong))
            raise DataError(
                f"the point {place(points[first])}, number {first + 1}, is not inside the bounds"
            )
        free = np.array(points, dtype=np.float64)
        two, low, high = self._kinds()
        free[:, two] = np.log(points[:, two] - self.low[two])
        free[:, two] -= np.log(self.high[two] - points[:, two])
        free[:, low] = np.log(points[:, low] - self.low[low])
        free[:, high] = np.log(self.high[high] - points[:, high])
        return free

    def log_jacobian(self, free: Points) -> Values:
        """Give the log of |det dx/dz| at free coordinates z [n, dim]: [n]."""
        two, low, high = self._kinds()
        z = free[:, two]
        # log sigma'(z) = -log(1 + e^-z) - log(1 + e^z)
        slopes = np.log(self.high[two] - self.low[two]) - np.logaddexp(0, -z) - np.logaddexp(0, z)
        result = slopes.sum(axis=1) + free[:, low].sum(axis=1) + free[:, high].sum(axis=1)
        return np.asarray(result, dtype=np.float64)

    def _kinds(self) -> tuple[Any, Any, Any]:
        below, above = np.isfinite(self.low), np.isfinite(self.high)
        return below & above, below & ~above, ~below & above


class Bounded:
    """A potential of points in a box, as a potential of free coordinates: f(x(z)) - log |dx/dz|.

    The potential inside sees points of the box only.
    """

    def __init__(self, potential: Potential, box: Box) -> None:
        self._potential = potential
        self._box = box

    def __call__(self, points: Points) -> Values:
        """Give its value at free coordinates [n, dim]: [n]."""
        with np.errstate(over="ignore"):
            values = self._potential(self._box.from_free(points))
        return np.asarray(values - self._box.log_jacobian(points), dtype=np.float64)


def read_bounds(source: str, dim: int) -> Box:
    """Read the bounds of `dim` coordinates: a CSV file of low,high rows, or `LOW,HIGH` for all.

    A first line of names is skipped. Raises `InputError` and `DataError` with the line, and
    `UsageError` for a `LOW,HIGH` that cannot be.
    """
    number = r"[-+]?(?:[0-9.]+(?:e[-+]?[0-9]+)?|inf)"
    if re.fullmatch(rf"({number}),({number})", source, re.IGNORECASE):
        try:
            low, high = (float(word) for word in source.split(","))
            return Box(np.full(dim, low), np.full(dim, high))
        except ValueError as error:
            raise UsageError(f"--bounds {source}: {error}") from None
    rows = list(_rows(source))
    if len(rows) != dim:
        raise DataError(
            f"{len(rows)} rows of bounds", path=source, expected=f"{dim}, one for each coordinate"
        )
    return Box(np.array([low for low, _ in rows]), np.array([high for _, high in rows]))


def _rows(source: str) -> Iterator[tuple[float, float]]:
    started = False
    with open_input(source) as file:
        for number, line in enumerate(file, 1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            except UnicodeDecodeError:
                raise DataError("not text", path=source, line=number, expected=_EXPECTED) from None
            if not text or text.startswith("#"):
                continue
            words = [word.strip() for word in next(csv.reader([text]))]
            try:
                low, high = (_bound(word, default) for word, default in _pairs(words))
            except ValueError:
                names = [word.lower() for word in words] == ["low", "high"]
                if names and not started:
                    started = True
                    continue
                raise DataError(
                    f"{text[:60]!r}", path=source, line=number, expected=_EXPECTED
                ) from None
            started = True
            if not low < high:
                raise DataError(f"low {low:g} is not below high {high:g}", path=source, line=number)
            yield low, high


def _pairs(words: list[str]) -> Iterator[tuple[str, float]]:
    if len(words) != 2:
        raise ValueError
    return zip(words, (-np.inf, np.inf), strict=True)


def _bound(word: str, default: float) -> float:
    return float(word) if word else default

"""The exact expected risk of SGD and normalized SGD on noisy linear regression.

Inputs are Gaussian, x ~ N(0, H) with eigenvalues lam, and y = x.w* + N(0, sigma^2). With
m_i = E (w_i - w*_i)^2 in the eigenbasis of H, one step of size eta and batch B gives

    m_i <- m_i ((1 - eta lam_i)^2 + eta^2 lam_i^2 / B) + eta^2 lam_i / B (sum_j lam_j m_j + sigma^2)

and the excess risk is 1/2 sum lam_i m_i. Normalized SGD, the paper's proxy for Adam, divides eta by
the root of the expected squared gradient norm

    E|g|^2 = (1 + 1/B) sum lam_i^2 m_i + Tr H / B (sum_j lam_j m_j + sigma^2),

whose first term is the mean's: its share of the whole is the `mean share`, and Assumption 3 of the
paper holds while it is small. The code keeps u_i = lam_i m_i.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from papercuts.errors import DataError, UsageError
from papercuts.streams import open_input
from seesaw.shapes import Floats

DEFAULT_DIM = 100
_CHECK_EVERY = 1024  # steps between looks at whether the run has diverged
_LARGEST = 1e100  # whose square is still a number
_DIVERGED = 1e12  # times the initial risk


class Segment(NamedTuple):
    """Steps at one batch size, with one learning rate or one for each step.

    The batch may be any number above 0: the recursion holds for real ones.
    """

    lr: float | Floats
    batch: float
    steps: int


@dataclass(frozen=True, eq=False)
class Problem:
    """A regression problem: eigenvalues (d,), noise sigma, initial squared distances m_0 (d,)."""

    eigenvalues: Floats
    initial: Floats
    sigma: float = 1.0

    @property
    def trace(self) -> float:
        """Tr H, the sum of the eigenvalues."""
        return float(self.eigenvalues.sum())


def make_problem(
    eigenvalues: npt.ArrayLike, *, sigma: float = 1.0, distance: float = 10.0
) -> Problem:
    """Make a problem whose start lies at squared distance `distance`, spread over all directions.

    Raises UsageError for eigenvalues that are not above 0, a sigma that is not above 0 or a
    negative distance.
    """
    lam = np.asarray(eigenvalues, dtype=np.float64)
    if lam.ndim != 1 or not len(lam) or not np.all((lam > 0.0) & (lam <= _LARGEST)):
        raise UsageError(
            f"eigenvalues must be above 0 and at most {_LARGEST:g}, at least one of them"
        )
    if not 0.0 < sigma <= _LARGEST:
        raise UsageError(f"sigma must be above 0 and at most {_LARGEST:g}, got {sigma:g}")
    if not 0.0 <= distance <= _LARGEST:
        raise UsageError(f"distance must lie in [0, {_LARGEST:g}], got {distance:g}")
    return Problem(lam, np.full(len(lam), distance / len(lam)), sigma)


def parse_spectrum(spec: str, dim: int | None = None) -> Floats:
    """Make eigenvalues from `power:EXP` (lam_i = i**-EXP, i = 1..dim), `flat` or `L1,L2,...`.

    `dim` is 100 where None; a list has its own.

    Raises UsageError for another spec, a dim below 1 and a dim beside a list.
    """
    count = DEFAULT_DIM if dim is None else dim
    if count < 1:
        raise UsageError(f"dim must be at least 1, got {count}")
    name, _, rest = spec.partition(":")
    try:
        if name == "flat" and not rest:
            return np.ones(count)
        if name == "power":
            return np.arange(1.0, count + 1.0) ** -float(rest)
        eigenvalues = np.array([float(part) for part in spec.split(",")])
    except ValueError:
        raise UsageError(
            f"unknown spectrum {spec!r} (expected power:EXP, flat, or numbers between commas)"
        ) from None
    _refuse_dim(dim, "a list of eigenvalues")
    return eigenvalues


def _refuse_dim(dim: int | None, what: str) -> None:
    if dim is not None:
        raise UsageError(f"dim ({dim}) does not go with {what}, which has its own")


def load_spectrum(spec: str, dim: int | None = None) -> Floats:
    """Make eigenvalues from a spec of `parse_spectrum`, or `file:PATH` with one a line.

    Raises UsageError, DataError and InputError as the two ways do; UsageError for a dim beside a
    file.
    """
    if not spec.startswith("file:"):
        return parse_spectrum(spec, dim)
    _refuse_dim(dim, "a file of eigenvalues")
    path = spec.removeprefix("file:")
    with open_input(path) as lines:
        return read_spectrum((line.decode("utf-8", "replace") for line in lines), path)


def read_spectrum(lines: Iterable[str], path: str) -> Floats:
    """Read one eigenvalue a line; blank lines are skipped.

    Raises DataError, with the line, for what is not a finite number above 0, and for no line.
    """
    values: list[float] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text:
            continue
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and value > 0.0):
            raise DataError(
                f"eigenvalue {text!r}", path=path, line=number, expected="a finite number above 0"
            )
        values.append(value)
    if not values:
        raise DataError("no eigenvalues", path=path, expected="one a line")
    return np.array(values)


@dataclass(frozen=True)
class RiskPath:
    """Excess risk and mean share after each segment; infinite and NaN once the run diverged."""

    risks: tuple[float, ...]
    mean_shares: tuple[float, ...]
    diverged: bool

    @property
    def risk(self) -> float:
        """The excess risk at the end."""
        return self.risks[-1]


def run(problem: Problem, segments: Sequence[Segment], *, normalized: bool = False) -> RiskPath:
    """Follow the recursion through all segments; `normalized` is NSGD, else SGD.

    A run whose risk passes 1e12 times the initial one, or overflows, counts as diverged and stops
    there.
    """
    state = _State(problem)
    risks: list[float] = []
    shares: list[float] = []
    with np.errstate(over="ignore", invalid="ignore"):
        for segment in segments:
            if not state.diverged:
                state.advance(segment, normalized)
            risks.append(math.inf if state.diverged else state.risk)
            shares.append(math.nan if state.diverged else state.mean_share(segment.batch))
    return RiskPath(tuple(risks), tuple(shares), state.diverged)


class _State:
    """The vector u = lam * m, moved in place."""

    def __init__(self, problem: Problem) -> None:
        self.lam = problem.eigenvalues
        self.noise = problem.sigma**2
        self.trace = problem.trace
        self.u = self.lam * problem.initial
        self.limit = _DIVERGED * max(float(self.u.sum()), self.noise)
        self.diverged = False
        self.squares = self.lam**2
        self.work = (np.empty_like(self.lam), np.empty_like(self.lam))

    @property
    def risk(self) -> float:
        return 0.5 * float(self.u.sum())

    def mean_share(self, batch: float) -> float:
        mean = (1.0 + 1.0 / batch) * float(self.lam @ self.u)
        return mean / (mean + self.trace / batch * (float(self.u.sum()) + self.noise))

    def advance(self, segment: Segment, normalized: bool) -> None:
        lr, batch, steps = segment
        if normalized or not isinstance(lr, float):
            lrs = np.full(steps, lr) if isinstance(lr, float) else lr
            self._each(lrs.tolist(), batch, normalized)
        else:
            self._repeat(lr, batch, steps)
        self._look(float(self.u.sum()))

    def _look(self, total: float) -> None:
        if not total < self.limit:
            self.diverged = True

    def _factors(self, lr: float, batch: float) -> tuple[Floats, Floats]:
        noise = lr**2 / batch * self.squares
        return (1.0 - lr * self.lam) ** 2 + noise, noise

    def _repeat(self, lr: float, batch: float, steps: int) -> None:
        """Take SGD steps with constant factors: u <- keep * u + noise * (sum u + sigma^2)."""
        keep, noise = self._factors(lr, batch)
        u, change, sigma2 = self.u, self.work[0], self.noise
        for step in range(steps):
            total = float(np.add.reduce(u))
            if step % _CHECK_EVERY == 0:
                self._look(total)
                if self.diverged:
                    return
            np.multiply(u, keep, out=u)
            np.multiply(noise, total + sigma2, out=change)
            np.add(u, change, out=u)

    def _each(self, lrs: list[float], batch: float, normalized: bool) -> None:
        """Take steps of changing size e: u <- u + u (e^2 (1 + 1/B) lam^2 - 2e lam) + e^2 s/B lam^2.

        Few passes over the vectors, all in place, and no BLAS product whose threads would have to
        meet at every step.
        """
        u, lam, squares = self.u, self.lam, self.squares
        change, other = self.work
        both, per = 1.0 + 1.0 / batch, 1.0 / batch
        for step, lr in enumerate(lrs):
            total = float(np.add.reduce(u))
            if step % _CHECK_EVERY == 0:
                self._look(total)
                if self.diverged:
                    return
            noise = per * (total + self.noise)
            eta = lr
            if normalized:
                eta = lr / math.sqrt(both * float(np.dot(lam, u)) + self.trace * noise)
            np.multiply(squares, eta * eta * both, out=change)
            np.multiply(lam, 2.0 * eta, out=other)
            np.subtract(change, other, out=change)
            np.multiply(change, u, out=change)
            np.multiply(squares, eta * eta * noise, out=other)
            np.add(change, other, out=change)
            np.add(u, change, out=u)


def ramp(
    lr: float, batch: float, *, samples: float, phases: int, alpha: float, beta: float
) -> list[Segment]:
    """Make the schedule of Theorem 1: phase k has lr * alpha**-k, batch * beta**k, equal samples.

    Steps are rounded to the nearest whole number, at least 1.
    """
    return [
        Segment(lr * alpha**-k, batch * beta**k, max(1, round(samples / (batch * beta**k))))
        for k in range(phases)
    ]


def matched_lr(problem: Problem, lr: float, batch: float) -> float:
    """Give NSGD's learning rate that moves like SGD's `lr` at this batch under Assumption 3."""
    return lr * problem.sigma * math.sqrt(problem.trace / batch)

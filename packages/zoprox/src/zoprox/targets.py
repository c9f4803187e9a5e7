"""The target as the sampler sees it, whichever way the user named it: values that were checked."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papercuts.errors import DataError, UsageError
from papercuts.log import get_logger
from zoprox.bounds import Box
from zoprox.command_target import CommandTarget, Mode
from zoprox.expression import Expression, looks_like_one
from zoprox.lineprotocol import place
from zoprox.membership import Inside
from zoprox.potential import Points, Potential, Values
from zoprox.python_target import PythonTarget

BENCHMARK = "bench:"
_FILE = re.compile(r".+\.py:[^\W\d]\w*")


@dataclass(frozen=True)
class Target:
    """How the user named the target, one of three ways, and how it is to be asked.

    `target` is `FILE.py:NAME` or `bench:NAME`, `expression` a formula, `command` a command line.
    `inside`: it is a membership test. `log_density`: it gives log density, not f = -log density.
    """

    target: str | None = None
    expression: str | None = None
    command: str | None = None
    inside: bool = False
    log_density: bool = False
    jobs: int | None = None
    timeout_s: float | None = None
    mode: Mode = "batch"
    chunk: int | None = None
    device: str | None = None
    dtype: str = "auto"

    @property
    def name(self) -> str:
        """The target in the user's words."""
        return self.target or self.expression or self.command or ""

    def checked(self) -> Target:
        """Give it back. Raises `UsageError` unless it is named in exactly one way."""
        named = [n for n in (self.target, self.expression, self.command) if n is not None]
        if len(named) != 1:
            how = "--target FILE.py:NAME, --expr EXPRESSION or --exec COMMAND"
            what = "no target" if not named else "more than one target"
            raise UsageError(f"{what} given: name it by one of {how}")
        return self


def guessed(named: str, dim: int, target: Target) -> Target:
    """Tell which of the three ways `named` is (the argument of `uniform --inside`)."""
    if _FILE.fullmatch(named) or named.startswith(BENCHMARK):
        return replace(target, target=named)
    if looks_like_one(named, dim):
        return replace(target, expression=named)
    return replace(target, command=named)


@contextlib.contextmanager
def open_target(target: Target, dim: int, box: Box | None = None) -> Iterator[Potential]:
    """Open a target of `dim` coordinates as a potential; what it started ends with the block.

    `box` is for a membership test: outside it is outside the set. Raises, here or when it is asked:
    `UsageError` for a target that cannot be meant, `InputError` for a file that is not there,
    `MissingError` for a command that cannot be started, `DataError` and `TryLaterError` as
    `zoprox.potential.Potential` says.
    """
    with _raw(target.checked(), dim) as raw:
        yield Inside(raw, box) if target.inside else Checked(raw, log_density=target.log_density)


@contextlib.contextmanager
def _raw(target: Target, dim: int) -> Iterator[Callable[[Points], NDArray[Any]]]:
    if target.command is not None:
        with CommandTarget(
            target.command,
            mode=target.mode,
            jobs=target.jobs,
            timeout_s=target.timeout_s,
            chunk=target.chunk,
            words=target.inside,
        ) as command:
            yield command
    elif target.expression is not None:
        yield Expression(target.expression, dim)
    elif target.target is not None and target.target.startswith(BENCHMARK):
        yield _benchmark(target, dim)
    elif target.target is not None:
        with PythonTarget(
            target.target,
            jobs=target.jobs or 1,
            timeout_s=target.timeout_s,
            device=target.device,
            dtype=target.dtype,
        ) as function:
            yield function


def _benchmark(target: Target, dim: int) -> Callable[[Points], NDArray[Any]]:
    from zoprox.benchmarks import benchmark

    assert target.target is not None  # noqa: S101 (settled by the caller)
    found = benchmark(target.target.removeprefix(BENCHMARK), dim)
    if target.log_density:
        raise UsageError(f"--log-density: {target.target} gives f")
    if not target.inside:
        return found.potential
    if found.inside is None:
        raise UsageError(f"{target.target} is no set (`zoprox sample` takes it)")
    return found.inside


class Checked:
    """A potential whose values are checked: [n, dim] points to [n] values of f, +inf or finite.

    A value that is NaN counts as not allowed (+inf), and that is said once; a target that has
    given nothing but NaN is at fault, as is one that gives -inf. With `log_density` the values
    are log densities, and f is the negative of them.
    """

    def __init__(
        self, source: Callable[[Points], NDArray[Any]], *, log_density: bool = False
    ) -> None:
        self._source = source
        self._log_density = log_density
        self._answered = False
        self._told = False

    def __call__(self, points: Points) -> Values:
        """Give f at every row. Raises `DataError` for answers that are no values of f."""
        raw = np.asarray(self._source(points))
        if raw.shape != (len(points),):
            raise DataError(
                f"the target gave {raw.size} values for {len(points)} points",
                expected="one for each",
            )
        if raw.dtype == np.bool_:
            raise DataError(
                "the target answered true or false, where the value of f is expected "
                "(a membership test is for `zoprox uniform`)"
            )
        values: Values = np.asarray(raw, dtype=np.float64)
        if self._log_density:
            values = -values
        if np.isfinite(values).all():
            self._answered = self._answered or len(values) > 0
            return values
        return self._mended(values, points)

    def _mended(self, values: Values, points: Points) -> Values:
        endless = np.isneginf(values)
        if endless.any():
            point = place(points[int(np.argmax(endless))])
            what = "inf for a log density" if self._log_density else "-inf for f"
            raise DataError(
                f"the target answered {what} at the point {point}",
                expected=f"finite values, or {'-inf' if self._log_density else 'inf'} where the "
                "density is 0",
            )
        missing = np.isnan(values)
        if missing.all() and not self._answered:
            raise DataError(
                f"the target answered NaN for all {len(values)} points, the first of them "
                f"{place(points[0])}"
            )
        self._answered = True
        if missing.any():
            if not self._told:
                self._told = True
                get_logger(__name__).warning(
                    f"the target answered NaN for {int(missing.sum())} of {len(values)} points, "
                    f"as for {place(points[int(np.argmax(missing))])}: taken as not allowed "
                    "(density 0), here and from now on"
                )
            values = np.where(missing, np.inf, values)
        return values

"""The step h from a pilot: as large as the weights allow (`--step auto`).

A large step moves particles between modes and fills the mixture's gaps. Too large a step leaves few
of the M draws with any weight, and the noise of the last sub-step, of variance h/T, blurs what is
narrow. So h begins at the median squared distance of a particle to its nearest neighbour, and is
moved until one of two limits is met, in the median over particles: the effective sample size over
all sub-steps is a tenth of M; that of the last sub-step, whose draws lie within h/T, falls below M
by a tenth for each dimension. On the paper's mixture that is near its own h = 0.1. A smaller h is
more exact by itself, but slower between modes, and the correction removes the rest.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from papercuts.errors import DataError
from zoprox.potential import Points, Potential
from zoprox.sampler import one_round, round_rng
from zoprox.settings import Settings

TARGET = 0.1  # effective draws over M, in the median over particles and sub-steps
LOSS = 0.1  # and what the last sub-step may lose of M for each dimension
ROUNDS, DRAWS = 12, 200
_FASTEST = 10.0  # factor by which h may change after one round
_PILOT = 1 << 32  # the pilot's random numbers are those of rounds that no run reaches


def pilot_evaluations(settings: Settings) -> int:
    """Count the values of f that `choose_step` asks for, known in advance."""
    small = _small(settings, 1.0)
    return ROUNDS * small.sub_steps * small.particles * small.draws


def choose_step(potential: Potential, start: Points, settings: Settings) -> float:
    """Give the step h for a run from the particles `start` [N, dim]; `settings.step` is not used.

    The pilot's particles move as a run's do, so h fits where they went. Raises `DataError` when no
    draw of the whole pilot was allowed.
    """
    points = np.asarray(start, dtype=np.float64)
    step = first_step(points)
    log_steps = []
    seen = False
    for index in range(ROUNDS):
        trial = _small(settings, step)
        path = one_round(potential, trial, points, round_rng(settings.seed, _PILOT + index))
        points = path.points
        # A particle that met nothing allowed says nothing about h.
        ess = path.ess[:, path.ess.any(axis=0)] / trial.draws
        log_steps.append(math.log(step))
        if ess.size:
            change, seen = _change(ess, settings.dim), True
        else:  # h is too small to reach the set, or, once it was reached, too large
            change = -math.log(3) if seen else math.log(_FASTEST)
        step *= math.exp(max(-math.log(_FASTEST), min(math.log(_FASTEST), change)))
    if not seen:
        raise DataError(
            "the pilot of --step auto met no allowed point", expected="a --start near the set"
        )
    # The last rounds scatter about the answer.
    log_steps.append(math.log(step))
    return float(f"{math.exp(float(np.mean(log_steps[-4:]))):.3g}")


def _change(ess: NDArray[np.float64], dim: int) -> float:
    """Give the change of log h that `ess` [sub-steps, particles], over M, asks for."""
    # Effective draws fall as h^(-dim/2) where h is large, and more slowly where it is small.
    gain = max(0.5, min(2.0, 2 / dim))
    by_all = gain * math.log(max(float(np.median(ess)), 1e-3) / TARGET)
    # The loss of the last sub-step, for each dimension, grows as the square of h / T.
    loss = 1 - max(float(np.median(ess[-1])), 1e-3) ** (1 / dim)
    by_last = 0.5 * math.log(LOSS / max(loss, 1e-4))
    return min(by_all, by_last)


def first_step(points: Points) -> float:
    """Give the median squared distance to the nearest other particle; 1 where that is 0."""
    if len(points) > 1:
        distances = np.asarray(cKDTree(points).query(points, k=2)[0])
        found = float(np.median(distances[:, 1]) ** 2)
        if found > 0 and math.isfinite(found):
            return found
    return 1.0


def _small(settings: Settings, step: float) -> Settings:
    """Give the settings of a pilot round."""
    return replace(
        settings,
        step=step,
        smallest=0.0,
        draws=min(settings.draws, DRAWS),
        method="single" if settings.method == "rejection" else settings.method,
    )

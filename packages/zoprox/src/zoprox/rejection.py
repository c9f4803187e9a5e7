"""Proximal sampling with rejection, chain by chain: what the method is compared with.

A round noises every particle, y = x + sqrt(h) xi, then draws x from N(y, hI) until a draw is kept,
which it is with probability exp(-f(x)). For a membership target (f is 0 or +inf) this is In-and-Out
(Kook, Vempala, Zhang 2024). It is exact for any f that is nowhere below 0, but the number of tries
has no bound: a particle that none of T M tries moved stays where it was, and is counted.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np

from papercuts.errors import DataError
from zoprox.potential import Counted, Points, Potential
from zoprox.sampler import BLOCK, Round, checked_values, round_rng
from zoprox.settings import Settings


def rejection_rounds(
    potential: Potential, settings: Settings, start: Points, *, first: int = 1
) -> Iterator[Round]:
    """Yield rounds `first` to K; see `sampler.sample_rounds`.

    `min_ess` and `median_ess` count the particles' accepted draws in the units of the other
    methods: M times the share of tries that were accepted. Raises `DataError` where f is below 0.
    """
    points = start
    for number in range(first, settings.rounds + 1):
        began = time.perf_counter()
        counted = Counted(potential)
        rng = round_rng(settings.seed, number)
        points, tries, value = rejection_round(
            counted, points, settings.step, settings.sub_steps * settings.draws, rng
        )
        rates = np.where(tries > 0, 1 / np.maximum(tries, 1), 0.0) * settings.draws
        yield Round(
            number=number,
            points=points.copy(),
            values_mean=value,
            min_ess=float(rates.min()),
            median_ess=float(np.median(rates)),
            outside=counted.outside / counted.evaluations,
            evaluations=counted.evaluations,
            seconds=time.perf_counter() - began,
        )


def rejection_round(
    potential: Potential, particles: Points, step: float, limit: int, rng: np.random.Generator
) -> tuple[Points, np.ndarray[tuple[int], np.dtype[np.int64]], float]:
    """Give the new particles [N, dim], the tries of each [N] (0: none accepted), and mean f.

    Tries come in growing batches of the particles that wait; the first accepted one counts.
    Raises `DataError` where f is below 0.
    """
    count, dim = particles.shape
    scale = math.sqrt(step)
    noised = particles + scale * rng.standard_normal(particles.shape)
    found, tries = particles.copy(), np.zeros(count, dtype=np.int64)
    values = np.full(count, np.nan)
    waiting, done, batch = np.arange(count), 0, 1
    while len(waiting) and done < limit:
        batch = min(batch, limit - done, max(1, BLOCK // len(waiting)))
        points = rng.standard_normal((len(waiting), batch, dim))
        points *= scale
        points += noised[waiting, None, :]
        f = checked_values(potential, points.reshape(-1, dim)).reshape(len(waiting), batch)
        if f.min() < 0:
            raise DataError(
                f"the rejection method needs f >= 0 everywhere, and met {f.min():g}",
                expected="f with its least value subtracted",
            )
        accepted = rng.random(f.shape) < np.exp(-f)
        moved = accepted.any(axis=1)
        first = accepted.argmax(axis=1)[moved]
        who = waiting[moved]
        found[who] = points[moved, first]
        values[who] = f[moved, first]
        tries[who] = done + first + 1
        done += batch
        waiting = waiting[~moved]
        batch *= 2
    known = values[np.isfinite(values)]
    return found, tries, float(known.mean()) if len(known) else math.nan

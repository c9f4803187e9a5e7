"""What a round costs, against the bare arithmetic of the same shapes (`zoprox bench`).

Bare is what no program could leave out, written flat in NumPy without any check: for each sub-step
N M normal vectors, a gather of the noised particles, f, the softmax of its values and the weighted
mean. Choosing the components, the mixture, and the effective sample sizes are the sampler's own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from zoprox.potential import Points, Potential, Values
from zoprox.sampler import one_round, round_rng
from zoprox.settings import Settings

# N, T, M, dim: the paper's main experiment (with M = 2000 and 4000), many particles, one dimension.
SHAPES = ((100, 10, 2000, 5), (100, 10, 4000, 5), (1000, 10, 300, 3), (200, 10, 500, 1))


def half_square(points: Points) -> Values:
    """Give |x|^2 / 2: about the cheapest f there is, so that overhead shows most."""
    squares: Values = np.einsum("nd,nd->n", points, points)
    return 0.5 * squares


def bare_round(
    potential: Potential, settings: Settings, particles: Points, rng: np.random.Generator
) -> Points:
    """Do the arithmetic of a round and nothing else; the components are those of no choice."""
    count, dim, draws, step = settings.particles, settings.dim, settings.draws, settings.step
    noised = particles + math.sqrt(step) * rng.standard_normal(particles.shape)
    places = particles + math.sqrt(step) * rng.standard_normal(particles.shape)
    variances = np.linspace(settings.smallest, step, settings.sub_steps + 1)
    chosen = np.tile(np.arange(draws) % count, (count, 1))
    for t in range(settings.sub_steps, 0, -1):
        s, drop = variances[t], variances[t] - variances[t - 1]
        v = 1 / (1 / s + 1 / step)
        points = rng.standard_normal((count, draws, dim))
        points *= math.sqrt(v)
        points += (noised * (v / step))[chosen]
        points += (places * (v / s))[:, None, :]
        f = potential(points.reshape(-1, dim)).reshape(count, draws)
        weights = np.exp(f.min(axis=1, keepdims=True) - f)
        weights /= weights.sum(axis=1, keepdims=True)
        means = np.einsum("nm,nmd->nd", weights, points)
        places = places + (drop / s) * (means - places)
        places += math.sqrt(drop) * rng.standard_normal(places.shape)
    return places


def measure(
    settings: Settings, *, repeats: int, potential: Potential = half_square
) -> dict[str, Any]:
    """Time rounds of the sampler and bare ones in turn, and give the median of their ratios."""
    particles = np.random.default_rng(0).standard_normal((settings.particles, settings.dim))
    seconds, ratios = [], []
    for number in range(repeats + 1):
        began = time.perf_counter()
        one_round(potential, settings, particles, round_rng(0, number))
        middle = time.perf_counter()
        bare_round(potential, settings, particles, round_rng(0, number))
        ended = time.perf_counter()
        if number:  # the first is a warm-up
            seconds.append(middle - began)
            ratios.append((middle - began) / (ended - middle))
    low, middle_ratio, high = (float(np.quantile(ratios, share)) for share in (0.25, 0.5, 0.75))
    asked = settings.sub_steps * settings.particles * settings.draws
    return {
        "particles": settings.particles,
        "sub_steps": settings.sub_steps,
        "draws": settings.draws,
        "dim": settings.dim,
        "seconds_a_round": float(np.median(seconds)),
        "evaluations_a_second": asked / float(np.median(seconds)),
        "ratio_to_bare": middle_ratio,
        "ratio_low": low,
        "ratio_high": high,
    }


def bench(*, repeats: int = 5) -> Iterator[dict[str, Any]]:
    """Yield a record for each of the shapes."""
    for particles, sub_steps, draws, dim in SHAPES:
        settings = Settings(particles, dim, 0.1, sub_steps, draws, 1)
        yield measure(settings, repeats=repeats)

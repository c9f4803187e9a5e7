"""What a run will cost: its evaluations exactly, its time from one batch of the target."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

from zoprox.sampling_command import Request


def budget(request: Request) -> Iterator[dict[str, Any]]:
    """Give the record of a run that is not started.

    The counts are exact for `ensemble` and `single`; `rejection` asks for at most so many. With a
    target the seconds of one evaluation are measured on one batch of points about the start, and
    those of the run are theirs alone, without the sampler's own arithmetic. Raises as the target.
    """
    from zoprox.tuning import pilot_evaluations

    settings = request.settings
    kept = min(request.keep, settings.rounds)
    counts = {
        "pilot": pilot_evaluations(settings) if request.auto else 0,
        "rounds": settings.evaluations,
        "correction": _correction(request, kept),
    }
    total = sum(counts.values())
    record: dict[str, Any] = {
        "evaluations": total,
        "round_evaluations": counts["rounds"],
        "correction_evaluations": counts["correction"],
        "pilot_evaluations": counts["pilot"],
        "exact": settings.method != "rejection",
        "points_a_sub_step": settings.particles * settings.draws,
        "sub_steps": settings.rounds * settings.sub_steps,
        "draws": kept * settings.particles,
    }
    if request.target.name:
        each = _seconds(request)
        record |= {"evaluation_s": each, "target_s": each * total}
    yield record


def _correction(request: Request, kept: int) -> int:
    settings = request.settings
    if not request.correct or settings.particles < 2:
        return 0
    return kept * settings.particles * (settings.draws + 1)


def _seconds(request: Request) -> float:
    """Time one batch, as large as the run's are, after a small one that starts what must start."""
    import numpy as np

    from zoprox.bounds import Bounded, read_bounds
    from zoprox.sampler import BLOCK
    from zoprox.startpoints import start_points
    from zoprox.targets import open_target

    settings, target = request.settings, request.target
    box = read_bounds(request.bounds, settings.dim) if request.bounds else None
    start = start_points(request.start, settings, box, inside=target.inside)
    with open_target(target, settings.dim, box) as raw:
        potential = Bounded(raw, box) if box is not None and not target.inside else raw
        count = min(settings.particles * settings.draws, BLOCK)
        points = np.resize(start, (count, settings.dim))
        rng = np.random.default_rng(settings.seed)
        points = points + math.sqrt(settings.step) * rng.standard_normal(points.shape)
        potential(points[: min(count, settings.particles)])
        began = time.perf_counter()
        potential(points)
        return (time.perf_counter() - began) / count

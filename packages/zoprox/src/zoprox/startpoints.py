"""Where the particles start: normal, uniform in a box, or the draws of a file."""

from __future__ import annotations

import math

import numpy as np

from papercuts.errors import DataError, UsageError
from papercuts.log import get_logger
from papercuts.parallel import seed_for
from zoprox.bounds import Box
from zoprox.potential import Points
from zoprox.settings import Settings

NORMAL = "normal"


def start_points(
    given: str | None, settings: Settings, box: Box | None = None, *, inside: bool = False
) -> Points:
    """Give the first particles [N, dim] of a run, as the sampler sees them.

    `given` is `normal`, `normal:SCALE` (standard deviation) or a file of draws. With a `box` the
    sampler sees free coordinates, unless the target is a membership test (`inside`), which stays
    in its own: there the default is uniform in the box. Raises `UsageError` for a scale that is
    none, `DataError` for a file that does not fit, and as reading it does.
    """
    rng = np.random.default_rng(seed_for(settings.seed, 0))
    shape = settings.particles, settings.dim
    if given is None and inside and box is not None:
        if not math.isfinite(box.volume):
            return box.from_free(rng.standard_normal(shape))
        return rng.uniform(box.low, box.high, shape)
    word, colon, scale = (given or NORMAL).partition(":")
    if word == NORMAL:
        return _scale(scale, colon) * rng.standard_normal(shape)
    assert given is not None  # noqa: S101 (it would be `normal`)
    points = _from_file(given, settings, rng)
    return points if box is None or inside else box.to_free(points)


def _scale(text: str, colon: str) -> float:
    if not colon:
        return 1.0
    try:
        scale = float(text)
    except ValueError:
        scale = math.nan
    if not (math.isfinite(scale) and scale > 0):
        raise UsageError(f"--start normal:{text}: the scale is a positive number, as in normal:0.5")
    return scale


def _from_file(path: str, settings: Settings, rng: np.random.Generator) -> Points:
    from zoprox.draws import read_draws

    points: Points = read_draws(path).points
    points = points.reshape(-1, points.shape[-1])
    if points.shape[1] != settings.dim:
        raise DataError(
            f"points of {points.shape[1]} coordinates",
            path=path,
            expected=f"{settings.dim} (--dim)",
        )
    if not np.isfinite(points).all():
        raise DataError("a point that is not finite", path=path)
    if len(points) == settings.particles:
        return points
    if not len(points):
        raise DataError("no points", path=path)
    few = len(points) < settings.particles
    get_logger(__name__).info(
        f"{path}: {settings.particles} of its {len(points)} points are the start"
        + (", some of them more than once" if few else "")
    )
    return points[rng.choice(len(points), settings.particles, replace=few)]

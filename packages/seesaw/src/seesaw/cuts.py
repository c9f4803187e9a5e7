"""Where the cuts fall: the token counts at which the base schedule is down by one more factor."""

from __future__ import annotations

import math

import numpy as np

from papercuts.errors import UsageError
from seesaw.schedule import Schedule

MAX_CUTS = 1_000_000


def count_cuts(final_ratio: float, cut: float) -> int:
    """Count the whole factors `cut` between 1 and `final_ratio` (above 0).

    The authors' K = int(log(final) / log(1/cut)), with a tolerance of 1e-9 so that a ratio that is
    a power of the cut on paper counts as one. That can only add a cut where the schedule ends.
    """
    return int(math.log(final_ratio) / math.log(1.0 / cut) + 1e-9)


def thresholds(schedule: Schedule, cut: float, step_tokens: int) -> list[int]:
    """List the token counts t_1 <= t_2 <= ... at which the schedule reaches cut**-k.

    This is the set S of Algorithm 1, computed as in the authors' code for a cosine and through the
    inverse of any other schedule. Equal entries are cuts that fall together, as at a milestone of
    step decay. A schedule that ends at 0 has infinitely many; those that lie less
    than one step of `step_tokens` tokens before the end are left out, so are those at the end.

    Raises UsageError for a cut that is not above 1, or so close to 1 that it makes over a million.
    """
    if not (math.isfinite(cut) and cut > 1.0):
        raise UsageError(f"cut must be above 1, got {cut:g}")
    total = schedule.total_tokens
    lowest = schedule.final_ratio
    if lowest <= 0.0:
        lowest = float(schedule.ratio(max(schedule.warmup_tokens, total - step_tokens)))
        if lowest <= 0.0:
            lowest = _last_positive(schedule)
    count = count_cuts(lowest, cut)
    if count > MAX_CUTS:
        raise UsageError(f"a cut of {cut!r} makes {count} cuts (at most {MAX_CUTS} are planned)")
    ratios = cut ** -np.arange(1.0, count + 1.0)
    # A ratio that rounding left a hair below a plateau of the schedule must not wait for the next.
    tokens = schedule.first_token_at_or_below(ratios * (1.0 + 1e-12))
    return [int(token) for token in tokens[tokens < total]]


def _last_positive(schedule: Schedule) -> float:
    """Give the lowest ratio above 0 of a curve that spends its last step, or more, at 0."""
    values = np.asarray(getattr(schedule.shape, "y", (1.0,)))
    return float(values[values > 0.0].min())

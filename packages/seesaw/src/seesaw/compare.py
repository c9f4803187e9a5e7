"""Base and Seesaw runs of the same seeds side by side: paired loss difference and steps saved."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def compare_runs(ends: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Compare the end records of `base` and `seesaw` runs that share a seed.

    The difference is Seesaw minus base in nats a byte, so a negative one is in Seesaw's favour;
    `difference_low` and `difference_high` bound its mean by the paired Student interval of 95 %
    (None with one seed). Gives None where no seed has both runs.
    """
    by_run: dict[str, dict[int, Mapping[str, Any]]] = {"base": {}, "seesaw": {}}
    for end in ends:
        by_run.get(str(end["run"]), {})[int(end["seed"])] = end
    seeds = sorted(by_run["base"].keys() & by_run["seesaw"].keys())
    if not seeds:
        return None
    base = np.array([by_run["base"][seed]["validation_loss"] for seed in seeds], dtype=float)
    seesaw = np.array([by_run["seesaw"][seed]["validation_loss"] for seed in seeds], dtype=float)
    steps = [sum(by_run[run][seed]["steps"] for seed in seeds) for run in ("base", "seesaw")]
    difference = seesaw - base
    low, high = paired_interval(difference.tolist())
    return {
        "event": "comparison",
        "seeds": len(seeds),
        "base_loss": float(base.mean()),
        "base_loss_sd": float(base.std(ddof=1)) if len(seeds) > 1 else None,
        "seesaw_loss": float(seesaw.mean()),
        "difference": float(difference.mean()),
        "difference_low": low,
        "difference_high": high,
        "base_steps": steps[0] // len(seeds),
        "seesaw_steps": steps[1] // len(seeds),
        "steps_saved": 1.0 - steps[1] / steps[0],
    }


def paired_interval(
    differences: list[float], level: float = 0.95
) -> tuple[float | None, float | None]:
    """Bound the mean of paired differences by Student's interval; (None, None) for fewer than 2."""
    count = len(differences)
    if count < 2:
        return None, None
    values = np.array(differences)
    half = student_quantile(0.5 + level / 2, count - 1) * values.std(ddof=1) / math.sqrt(count)
    return float(values.mean() - half), float(values.mean() + half)


def student_quantile(probability: float, degrees: int) -> float:
    """Invert Student's distribution for a probability above 1/2 and whole degrees of freedom.

    The distribution is the finite sum of Abramowitz and Stegun 26.7.3-4, inverted by bisection.
    """
    low, high = 0.0, math.pi / 2
    for _ in range(200):
        middle = (low + high) / 2
        if _student_distribution(middle, degrees) < probability:
            low = middle
        else:
            high = middle
    return math.tan((low + high) / 2) * math.sqrt(degrees)


def _student_distribution(angle: float, degrees: int) -> float:
    """Give P(T <= tan(angle) * sqrt(degrees)) for an angle in [0, pi/2)."""
    cosine, sine = math.cos(angle), math.sin(angle)
    odd = degrees % 2
    term = cosine if odd else 1.0
    total = 0.0
    for power in range(2 if odd else 1, degrees, 2):
        total += term
        term *= cosine * cosine * power / (power + 1)
    two_sided = 2 / math.pi * (angle + sine * total) if odd else sine * total
    return 0.5 + two_sided / 2

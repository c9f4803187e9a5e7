"""The volume of a set, or any target's normalising constant, from the draws of the correction.

Each corrected round gave two means of exp(-f)/g over draws from a density g that is known and
nowhere 0. Given the particles such a mean has the expectation Z = integral exp(-f), whatever the
particles are; for a membership target (f is 0 inside, +inf outside) Z is the set's volume. How
certain the mean is does depend on the particles: a part of the set where none of them is has draws
only in g's tails, seldom and heavy. So the standard error is the larger of two, within the means
and between them, and `trusted` is false where a part that was seen hardly at all carries weight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from zoprox.correction import LOW, Corrected

_EFFECTIVE = 400  # draws by which a mean should be carried: 5 per cent
_FAR = 3.0  # scatter of the means, in units of their own standard errors


@dataclass(frozen=True)
class Volume:
    """An estimate `volume` with its `standard_error`, and logs for what does not fit a float.

    `why` says why it is not to be trusted, and is empty where nothing speaks against it.
    """

    volume: float
    standard_error: float
    log_volume: float
    relative_error: float
    draws: int
    why: str

    @property
    def trusted(self) -> bool:
        """Tell whether nothing was found that speaks against the estimate."""
        return not self.why


def estimate_volume(rounds: Sequence[Corrected], draws: int) -> Volume:
    """Combine the corrected rounds of one run, M = `draws`.

    The means are independent given the particles, so their average is as good as its parts; rounds
    are weighted equally, since weights that depend on the errors would bias it. Raises `ValueError`
    without a round.
    """
    if not rounds:
        raise ValueError("a volume needs at least one corrected round")
    logs = np.concatenate([found.log_normaliser for found in rounds])
    relative = np.concatenate([found.relative_sd for found in rounds])
    number = len(logs)
    total = draws * sum(len(found.points) for found in rounds)
    if not np.isfinite(logs).any():
        return Volume(0.0, math.nan, -math.inf, math.nan, total, "no draw was inside")
    log_mean = float(logsumexp(logs) - math.log(number))
    shares = np.exp(logs - log_mean)  # each mean over the average of them
    within = math.sqrt(float(np.sum((shares * relative) ** 2))) / number
    between = float(shares.std(ddof=1)) / math.sqrt(number)
    error = max(within, between)
    volume = math.exp(log_mean) if log_mean < 709 else math.inf
    return Volume(
        volume, volume * error, log_mean, error, total, _doubts(rounds, within, between, error)
    )


def _doubts(rounds: Sequence[Corrected], within: float, between: float, error: float) -> str:
    acceptance = float(np.mean([found.acceptance for found in rounds]))
    if acceptance < LOW:
        return f"only {acceptance:.0%} of the particles would move: they do not stand for the set"
    if between > _FAR * within:
        return (
            f"the rounds scatter {between / within:.1f} times as far as their own errors allow:"
            " the particles still move, or miss a part of the set"
        )
    if error > 1 / math.sqrt(_EFFECTIVE):
        return f"its standard error is {error:.0%}"
    return ""

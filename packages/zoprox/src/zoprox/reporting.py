"""What a person is told of the rounds as they end, and whether the weights hold."""

from __future__ import annotations

import math
import time

from papercuts.log import get_logger
from zoprox.sampler import Round
from zoprox.settings import Settings

COLLAPSED = 0.02  # effective draws over M, in the median
LAST = 10  # rounds in a row
_LINES = 10  # of a run, unless it is slow
_EVERY_S = 10.0


class Reporter:
    """Says how rounds go on stderr: some of them, with --verbose all; counts collapsed ones.

    `collapsed` is empty, or says that in each of the last ten rounds the median effective sample
    size of the weights was under 2 per cent of M.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._evaluations = 0
        self._in_a_row = 0
        self._told_s = time.monotonic()
        self._warned = False

    def add(self, done: Round, *, earlier: bool = False) -> None:
        """Count a finished round, and say it where it is due; not one of an `earlier` run."""
        self._evaluations += done.evaluations
        low = done.median_ess < COLLAPSED * self._settings.draws
        self._in_a_row = self._in_a_row + 1 if low else 0
        if earlier:
            return
        log = get_logger(__name__)
        now = time.monotonic()
        due = done.number == self._settings.rounds or now - self._told_s >= _EVERY_S
        if due or done.number % math.ceil(self._settings.rounds / _LINES) == 0:
            self._told_s = now
            log.info(self._line(done))
        else:
            log.debug(self._line(done))
        if self._in_a_row == LAST and not self._warned:
            self._warned = True
            log.warning(f"round {done.number}: {self.collapsed}")

    def _line(self, done: Round) -> str:
        settings = self._settings
        return (
            f"round {done.number} of {settings.rounds}: mean f {done.values_mean:.4g}, "
            f"ESS {done.median_ess:.3g} (least {done.min_ess:.3g}) of {settings.draws}, "
            f"{done.outside:.1%} not allowed, {self._evaluations} evaluations"
        )

    @property
    def collapsed(self) -> str:
        """Why the last rounds are not to be relied on; empty where nothing says so."""
        if self._in_a_row < LAST:
            return ""
        return (
            f"the weights rest on under {COLLAPSED:.0%} of the --mc {self._settings.draws} draws "
            f"in each of the last {self._in_a_row} rounds: a smaller --step or more --mc is needed"
        )

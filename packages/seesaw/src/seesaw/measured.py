"""From a measured learning-rate curve to a schedule, and to a plan."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from papercuts.errors import UsageError
from papercuts.log import get_logger
from seesaw.curve import LrCurve
from seesaw.plan import SeesawPlan
from seesaw.planner import plan_schedule, resolve_factors
from seesaw.schedule import Schedule, curve_spec
from seesaw.shapes import Floats, polyline

JITTER = 1e-4  # relative; what logs and float32 arithmetic leave on a constant learning rate
_LONG_HOLD = 0.01  # of the run
_MOST_RESTARTS = 1000

logger = get_logger(__name__)


def plan_from_curve(
    curve: LrCurve,
    *,
    batch: int,
    seq_len: int | None = None,
    tokens: float | None = None,
    lr: float | None = None,
    cut: float | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    optimizer: str = "adam",
    cap_batch: int | None = None,
    multiple_of: int = 1,
    micro_batch: int | None = None,
    gpus: int = 1,
    compensate: bool = False,
    jitter: float = JITTER,
) -> SeesawPlan:
    """Turn a run's logged learning rate at a constant `batch` into a Seesaw plan.

    `seq_len`, `tokens` and `jitter` are those of `schedule_from_curve`, the others those of
    `make_plan`; `lr` is the peak learning rate, the curve's own where None.

    Raises UsageError and DataError as those two do.
    """
    schedule = schedule_from_curve(
        curve, batch=batch, seq_len=seq_len, tokens=tokens, jitter=jitter
    )
    return plan_schedule(
        schedule,
        lr=float(curve.lr.max()) if lr is None else lr,
        batch=batch,
        seq_len=seq_len or 1,
        factors=resolve_factors(cut, alpha, beta, optimizer),
        optimizer=optimizer,
        cap_batch=cap_batch,
        multiple_of=multiple_of,
        micro_batch=micro_batch,
        gpus=gpus,
        compensate=compensate,
    )


def schedule_from_curve(
    curve: LrCurve,
    *,
    batch: int,
    seq_len: int | None = None,
    tokens: float | None = None,
    jitter: float = JITTER,
) -> Schedule:
    """Make a schedule of a curve: its rise is the warmup, the rest must not rise.

    A curve over steps becomes one over tokens with `batch * seq_len` tokens a step; where
    `seq_len` is None a sequence counts as one token, so that a plan needs no more than steps. The
    run is `tokens` long, by default up to the last point, or one interval past it where the log
    starts at 0; up to `tokens` the last learning rate is held, with a warning where that is more
    than 1 % of the run. The rise, whatever its form, becomes a straight line. Rises of the relative
    size `jitter` are smoothed away.

    Where the steps go back, as in the log of a run that was resumed from a checkpoint, the later
    rows replace the earlier ones from there on, if the learning rate at the restart lies between
    the earlier ones around that step, within `jitter`.

    Raises DataError, with the line, for a value that is not finite, a negative one, steps that go
    back in any other way, and a learning rate that falls before its peak or rises after it;
    UsageError for a curve over tokens without `seq_len` and for `tokens` short of the curve.
    """
    if batch < 1 or (seq_len is not None and seq_len < 1):
        raise UsageError("batch and seq_len must be at least 1")
    if curve.unit == "tokens" and seq_len is None:
        raise UsageError("this curve is over tokens: name seq_len, the tokens of a sequence")
    curve = _checked(curve, jitter)
    scale = batch * (seq_len or 1) if curve.unit == "steps" else 1
    at, lr = curve.at * scale, curve.lr
    total = _total_tokens(at, tokens)
    peak = float(lr.max())
    top = int(np.argmax(lr >= peak * (1.0 - jitter)))
    warmup = round(float(at[top])) if top > 0 else 0
    if warmup >= total:
        raise curve.error(top, "the learning rate still rises at the end", "a decay after the peak")
    start = _start_ratio(at, lr / peak, top) if top > 0 else 1.0
    x = np.clip((at[top:] - warmup) / (total - warmup), 0.0, 1.0)
    y = np.minimum.accumulate(lr[top:] / peak)
    shape = polyline(np.concatenate([[0.0], x, [1.0]]), np.concatenate([[1.0], y, [y[-1]]]))
    return Schedule(shape, total, warmup, start, curve_spec(shape))


def _total_tokens(at: Floats, tokens: float | None) -> int:
    last = float(at[-1])
    end = last + (last - float(at[-2]) if at[0] == 0.0 else 0.0)
    if tokens is None:
        return round(end)
    if not (math.isfinite(tokens) and tokens >= last):
        raise UsageError(f"tokens ({tokens:g}) must not end before the curve does ({last:g})")
    if tokens - end > _LONG_HOLD * tokens:
        logger.warning(
            "the curve ends at token %d; its last learning rate is held to %d",
            round(last),
            round(tokens),
        )
    return round(tokens)


def _start_ratio(at: Floats, ratio: Floats, top: int) -> float:
    """Give the ratio at token 0, on the line from the first point to the peak."""
    slope = (1.0 - float(ratio[0])) / float(at[top] - at[0])
    return float(np.clip(ratio[0] - slope * at[0], 0.0, 1.0))


def _checked(curve: LrCurve, jitter: float) -> LrCurve:
    """Give the curve without repeated points, or raise at the first point that cannot be."""
    _check_values(curve)
    curve = _resumed(curve, jitter)
    same = np.diff(curve.at) == 0.0
    bad = same & (np.diff(curve.lr) != 0.0)
    if np.any(bad):
        i = int(np.argmax(bad)) + 1
        raise curve.error(
            i,
            f"{curve.unit} go from {curve.at[i - 1]:.15g} to {curve.at[i]:.15g}",
            f"{curve.unit} that rise from row to row",
        )
    curve = _rows(curve, np.concatenate([[True], ~same]))
    if len(curve.at) < 2:
        raise curve.error(0, "one point is no curve", "at least two rows")
    _check_direction(curve, jitter)
    return curve


def _resumed(curve: LrCurve, jitter: float) -> LrCurve:
    """Drop the rows that a restart runs again, or raise at a step back that is no restart."""
    restarts = np.flatnonzero(np.diff(curve.at) < 0.0) + 1
    keep = np.ones(len(curve.at), dtype=np.bool_)
    for i in restarts:
        at, lr = curve.at[:i][keep[:i]], curve.lr[:i][keep[:i]]
        right = int(np.searchsorted(at, curve.at[i]))
        left = right if at[right] == curve.at[i] else max(right - 1, 0)
        low, high = sorted((lr[left], lr[right]))
        agrees = low * (1.0 - jitter) <= curve.lr[i] <= high * (1.0 + jitter)
        if not agrees or len(restarts) > _MOST_RESTARTS:
            raise curve.error(
                int(i),
                f"{curve.unit} go from {curve.at[i - 1]:.15g} to {curve.at[i]:.15g}, where lr was "
                f"{lr[right]:g} before and is {curve.lr[i]:g} now",
                f"{curve.unit} that rise from row to row, or a resumed run that goes on at the lr "
                "it had there: else keep the rows of one run only",
            )
        keep[:i] &= curve.at[:i] < curve.at[i]
    return _rows(curve, keep)


def _rows(curve: LrCurve, keep: npt.NDArray[np.bool_]) -> LrCurve:
    return replace(curve, at=curve.at[keep], lr=curve.lr[keep], lines=curve.lines[keep])


def _check_values(curve: LrCurve) -> None:
    for name, values in ((curve.unit.removesuffix("s"), curve.at), ("lr", curve.lr)):
        bad = ~(np.isfinite(values) & (values >= 0.0))
        if np.any(bad):
            i = int(np.argmax(bad))
            raise curve.error(i, f"{name} is {values[i]:g}", "a finite number, not negative")
    if not np.any(curve.lr > 0.0):
        raise curve.error(0, "the learning rate is 0 throughout")


def _check_direction(curve: LrCurve, jitter: float) -> None:
    peak = float(curve.lr.max())
    top = int(np.argmax(curve.lr >= peak * (1.0 - jitter)))
    tiny = peak * 1e-9
    falls = curve.lr[: top + 1] < np.maximum.accumulate(curve.lr[: top + 1]) * (1.0 - jitter) - tiny
    if np.any(falls):
        i = int(np.argmax(falls))
        raise curve.error(
            i,
            f"lr falls from {curve.lr[i - 1]:g} to {curve.lr[i]:g} before its peak ({peak:g} in "
            f"line {curve.lines[top]})",
            "one rise, then a decay",
        )
    lowest = np.minimum.accumulate(curve.lr[top:])
    rises = curve.lr[top + 1 :] > lowest[:-1] * (1.0 + jitter) + tiny
    if np.any(rises):
        i = int(np.argmax(rises))
        raise curve.error(
            top + 1 + i,
            f"lr rises to {curve.lr[top + 1 + i]:g} after {lowest[i]:g}",
            "a schedule that only falls after its peak",
        )

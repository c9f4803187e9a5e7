"""Base schedules: the learning rate, relative to its peak, as a function of tokens.

A schedule is a linear warmup followed by a decay, a `Shape` over the tokens after warmup. It has a
name, its spec, from which `make_schedule` makes it again; plans carry that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from papercuts.errors import UsageError
from seesaw.shapes import (
    Cosine,
    Floats,
    Points,
    Polynomial,
    QuarterCosine,
    Shape,
    polyline,
    simplify,
)

DEFAULT_FINAL = 0.1
DEFAULT_WSD_DECAY = 0.2
DEFAULT_MILESTONES = (0.5, 0.75)
DEFAULT_GAMMA = 0.1
BASES = ("cosine", "quarter-cosine", "linear", "wsd", "step", "poly")
CURVE = "curve"  # starts the spec of a measured schedule: curve:x=ratio;x=ratio;...


@dataclass(frozen=True)
class Schedule:
    """A base schedule: linear warmup from `start_ratio`, then a decay of the given shape.

    Tokens count from 0 to `total_tokens`; `base` is the spec that names the decay, from which
    `make_schedule` makes it again (a measured one to within 0.1 % of the peak).
    """

    shape: Shape
    total_tokens: int
    warmup_tokens: int
    start_ratio: float
    base: str

    @property
    def decay_tokens(self) -> int:
        """The tokens after warmup."""
        return self.total_tokens - self.warmup_tokens

    @property
    def final_ratio(self) -> float:
        """The ratio at the last token."""
        return self.shape.final_ratio

    def ratio(self, tokens: npt.ArrayLike) -> Floats:
        """Give lr / peak lr when `tokens` tokens have been seen."""
        t = np.asarray(tokens, dtype=np.float64)
        decayed = self.shape.ratio((t - self.warmup_tokens) / self.decay_tokens)
        if self.warmup_tokens == 0:
            return decayed
        rise = self.start_ratio + (1.0 - self.start_ratio) * t / self.warmup_tokens
        return np.asarray(np.where(t < self.warmup_tokens, rise, decayed))

    def first_token_at_or_below(self, ratio: npt.ArrayLike) -> Floats:
        """Give the first token count after warmup with lr / peak lr at most `ratio`.

        A whole number, rounded as in the authors' code; infinity where the ratio is never reached.
        """
        return np.asarray(
            self.warmup_tokens + np.round(self.decay_tokens * self.shape.first_at_or_below(ratio))
        )

    def steps_fraction(self, power: float = 1.0, floor: float = 0.0) -> float:
        """Give plan steps / base steps in the limit of ever smaller cuts and batches (Lemma 1).

        The whole of warmup is kept: warmup fraction + (1/T) * integral of lr/peak after it. See
        `Shape.mean` for `power` and `floor`.
        """
        warmup = self.warmup_tokens / self.total_tokens
        return warmup + (1.0 - warmup) * self.shape.mean(power, floor)


def make_schedule(
    base: str | Shape = "cosine",
    *,
    tokens: float,
    warmup: float | None = None,
    start: float = 0.1,
    final: float | None = None,
) -> Schedule:
    """Make a base schedule from its spec.

    `base` is one of `cosine`, `quarter-cosine`, `linear`, `wsd[:DECAY]`, `poly[:POWER]`,
    `step[:GAMMA@M1,M2,...]`, `curve:X=RATIO;...` (see `curve_spec`), or a `Shape`. DECAY and the
    milestones are fractions of all tokens, X of those after warmup.
    `warmup` below 1 is a fraction of `tokens`, from 1 on a number of tokens; None means 0.1, but 0
    for `quarter-cosine`, which Lemma 1 states without warmup. `start` and `final` are ratios to
    the peak; `final` is 0.1 where None; `step` and `curve` take none.

    Raises UsageError for a value out of range or an unknown base.
    """
    total = _whole_tokens(tokens)
    if warmup is None:
        warmup = 0.0 if base == "quarter-cosine" else 0.1
    if not (math.isfinite(warmup) and warmup >= 0.0):
        raise UsageError(f"warmup must be 0 or more, got {warmup:g}")
    warm = round(total * warmup if warmup < 1.0 else warmup)
    if warm >= total:
        raise UsageError(f"warmup ({warm} tokens) must be shorter than the run ({total} tokens)")
    if not 0.0 <= start <= 1.0:
        raise UsageError(f"start ratio must lie between 0 and 1, got {start:g}")
    if final is not None and not 0.0 <= final < 1.0:
        raise UsageError(f"final ratio must lie in [0, 1), got {final:g}")
    if isinstance(base, Shape):
        return Schedule(base, total, warm, start, curve_spec(base))
    return Schedule(_shape_of(base, final, warm / total), total, warm, start, base)


def curve_spec(shape: Shape) -> str:
    """Write a shape as `curve:x=ratio;x=ratio;...`, within 0.1 % of the peak.

    So a plan made from a measured curve holds the curve, in a line of text.
    """
    short = simplify(shape)
    pairs = zip(short.x.tolist(), short.y.tolist(), strict=True)
    return f"{CURVE}:" + ";".join(f"{x:.8g}={y:.5g}" for x, y in pairs)


def is_curve(base: str) -> bool:
    """Tell whether a spec is that of a measured schedule, which it holds only nearly."""
    return base.partition(":")[0] == CURVE


def _curve_shape(rest: str) -> Points:
    try:
        pairs = [pair.split("=") for pair in rest.split(";")]
        return polyline([float(x) for x, _ in pairs], [float(y) for _, y in pairs])
    except ValueError as error:
        raise UsageError(f"bad curve in the base schedule: {error}") from None


def _whole_tokens(tokens: float) -> int:
    if not (math.isfinite(tokens) and tokens >= 1.0):
        raise UsageError(f"tokens must be at least 1, got {tokens:g}")
    return round(tokens)


def _shape_of(spec: str, final: float | None, warmup: float) -> Shape:
    name, _, rest = spec.partition(":")
    if name in (CURVE, "step"):
        if final is not None:
            raise UsageError(f"a {name} has its own end: it takes no final ratio")
        return _curve_shape(rest) if name == CURVE else _step_shape(rest, warmup)
    end = DEFAULT_FINAL if final is None else final
    match name:
        case "cosine" if not rest:
            return Cosine(end)
        case "quarter-cosine" if not rest:
            return QuarterCosine(end)
        case "linear" if not rest:
            return polyline((0.0, 1.0), (1.0, end))
        case "wsd":
            decay = _number(rest, spec) if rest else DEFAULT_WSD_DECAY
            if not 0.0 < decay <= 1.0 - warmup:
                raise UsageError(
                    f"wsd decay must lie in (0, {1.0 - warmup:g}], a fraction of all tokens that "
                    f"leaves room for warmup, got {decay:g}"
                )
            hold = max(0.0, 1.0 - decay / (1.0 - warmup))
            return polyline((0.0, hold, 1.0), (1.0, 1.0, end))
        case "poly":
            power = _number(rest, spec) if rest else 1.0
            if not power > 0.0:
                raise UsageError(f"the power of poly must be above 0, got {power:g}")
            return Polynomial(end, power)
    raise UsageError(
        f"unknown base schedule {spec!r} (expected one of {', '.join(BASES)}, file:CURVE)"
    )


def _step_shape(rest: str, warmup: float) -> Points:
    gamma, milestones = DEFAULT_GAMMA, list(DEFAULT_MILESTONES)
    if rest:
        head, _, tail = rest.partition("@")
        gamma = _number(head, f"step:{rest}") if head else DEFAULT_GAMMA
        if tail:
            milestones = [_number(part, f"step:{rest}") for part in tail.split(",")]
    if not 0.0 < gamma < 1.0:
        raise UsageError(f"the gamma of step decay must lie in (0, 1), got {gamma:g}")
    last = warmup
    for milestone in milestones:
        if not last < milestone < 1.0:
            raise UsageError(
                "milestones of step decay must rise and lie between warmup "
                f"({warmup:g}) and 1, got {milestone:g}"
            )
        last = milestone
    x, y = [0.0], [1.0]
    for k, milestone in enumerate(milestones):
        at = (milestone - warmup) / (1.0 - warmup)
        x += [at, at]
        y += [gamma**k, gamma ** (k + 1)]
    return polyline((*x, 1.0), (*y, y[-1]))


def _number(text: str, spec: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not math.isfinite(value):
        raise UsageError(f"{text!r} in the base schedule {spec!r} is not a number")
    return value


def step_gamma(base: str) -> float | None:
    """Give the gamma of a `step` spec, None for any other base."""
    name, _, rest = base.partition(":")
    if name != "step":
        return None
    head = rest.partition("@")[0]
    return _number(head, base) if head else DEFAULT_GAMMA

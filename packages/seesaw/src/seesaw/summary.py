"""What a plan saves and whether it is stable: the figures that go beside the table of phases."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from papercuts.errors import UsageError
from seesaw.cuts import count_cuts
from seesaw.plan import SeesawPlan
from seesaw.schedule import CURVE, Schedule, make_schedule

Stability = Literal["yes", "edge", "no"]
Verdict = Literal["yes", "no", "undecided"]

# Factors come rounded to a few digits: growth within this over all the cuts of a plan is none.
EDGE = 1e-3
# Rounding to the nearest multiple makes a batch at most 4/3 of what it should be.
ROUNDING_GROWTH = math.sqrt(4.0 / 3.0)


@dataclass(frozen=True)
class Summary:
    """The figures of a plan against its base schedule.

    `saving` is what the plan saves of the base schedule's steps; `staircase_saving` the same
    with cuts of this size but batches as fine and steps as small as one likes;
    `continuous_saving` its limit for ever smaller cuts (Lemma 1). `growth_per_cut` is
    sqrt(beta)/alpha (for sgd: 1/alpha), the factor on the effective learning rate at each cut,
    `max_growth` the largest effective learning rate of the rows over that of the first, and
    `end_growth` that of the last row over it. `stable` is the verdict of the paper's stability
    lemma on the factors, where `edge` is its most aggressive stable point (see `stability`).
    `within_cbs` compares the largest batch with the critical batch size, both in sequences;
    `cbs_token` is the token count at which the plan first exceeds it.
    """

    phases: int
    steps_base: int
    steps_plan: int
    saving: float
    staircase_saving: float
    continuous_saving: float
    tokens: int
    batch: int
    end_batch: int
    peak_lr: float
    end_lr: float
    growth_per_cut: float
    max_growth: float
    end_growth: float
    warmup_tokens: int
    warmup_steps: int
    stable: Stability
    cbs: float | None
    within_cbs: Verdict
    cbs_token: int | None

    def to_dict(self) -> dict[str, Any]:
        """Give the fields by name."""
        return asdict(self)


def summarize(
    plan: SeesawPlan,
    schedule: Schedule | None = None,
    *,
    cbs: float | None = None,
    cap_batch: int | None = None,
) -> Summary:
    """Compare a plan with its base schedule, `schedule_of(plan)` where none is given.

    `cbs` is the critical batch size in sequences, where it is known; `cap_batch` the bound that
    the plan was made with, which the two limits then keep to.

    Raises UsageError for a cbs that is not a finite number above 0.
    """
    if cbs is not None and not (math.isfinite(cbs) and cbs > 0.0):
        raise UsageError(f"cbs must be a finite number above 0, got {cbs:g}")
    schedule = schedule_of(plan) if schedule is None else schedule
    power = math.log(plan.beta) / math.log(plan.cut)
    floor = 0.0 if cap_batch is None else plan.base_batch / cap_batch
    steps_base = base_steps(plan)
    over = None if cbs is None else next((p for p in plan.phases if p.batch > cbs), None)
    return Summary(
        phases=len(plan.phases),
        steps_base=steps_base,
        steps_plan=plan.steps,
        saving=1.0 - plan.steps / steps_base,
        staircase_saving=1.0 - staircase_fraction(schedule, plan.cut, plan.beta, floor),
        continuous_saving=1.0 - schedule.steps_fraction(power, floor),
        tokens=plan.tokens,
        batch=plan.base_batch,
        end_batch=plan.end_batch,
        peak_lr=plan.peak_lr,
        end_lr=plan.phases[-1].lr,
        growth_per_cut=growth_per_cut(plan),
        max_growth=max_growth(plan),
        end_growth=effective_lrs(plan)[-1],
        warmup_tokens=plan.warmup_tokens,
        warmup_steps=plan.warmup_tokens // (plan.base_batch * plan.seq_len),
        stable=stability(plan.alpha, plan.beta, plan.optimizer, cuts_taken(plan)),
        cbs=cbs,
        within_cbs="undecided" if cbs is None else "yes" if over is None else "no",
        cbs_token=None if over is None else over.start_token,
    )


def base_steps(plan: SeesawPlan) -> int:
    """Count the steps of the base schedule: the same tokens at the batch of phase 0 throughout."""
    return -(-plan.total_tokens // (plan.base_batch * plan.seq_len))


def schedule_of(plan: SeesawPlan) -> Schedule:
    """Make the base schedule of a plan again (a measured one to within 0.1 % of its peak).

    Raises UsageError where `plan.base` names no schedule.
    """
    has_own_end = plan.base.partition(":")[0] in (CURVE, "step")
    return make_schedule(
        plan.base,
        tokens=plan.total_tokens,
        warmup=plan.warmup_tokens,
        start=plan.start_ratio,
        final=None if has_own_end else plan.final_ratio,
    )


def staircase_fraction(schedule: Schedule, cut: float, beta: float, floor: float = 0.0) -> float:
    """Give plan steps / base steps for cuts of this size and steps as small as one likes.

    `floor` is batch / cap where the batch is capped. A schedule that ends at 0 is followed until
    it is down by 1e-12.
    """
    final = schedule.final_ratio
    count = count_cuts(final if final > 0.0 else 1e-12, cut)
    k = np.arange(1.0, count + 1.0)
    starts = schedule.shape.first_at_or_below(cut**-k * (1.0 + 1e-12))
    edges = np.concatenate([[0.0], np.minimum(starts, 1.0), [1.0]])
    per_token = np.maximum(beta ** -np.concatenate([[0.0], k]), floor)
    warmup = schedule.warmup_tokens / schedule.total_tokens
    return warmup + (1.0 - warmup) * float(np.sum(np.diff(edges) * per_token))


def growth_per_cut(plan: SeesawPlan) -> float:
    """Give the factor on the effective learning rate at each cut (the stability lemma)."""
    return _growth(plan.alpha, plan.beta, plan.optimizer)


def _growth(alpha: float, beta: float, optimizer: str) -> float:
    return (math.sqrt(beta) if optimizer == "adam" else 1.0) / alpha


def cuts_taken(plan: SeesawPlan) -> int:
    """Count the cuts from the first phase to the last; several may have opened one phase."""
    fall = plan.phases[0].base_lr / plan.phases[-1].base_lr
    return round(math.log(fall) / math.log(plan.cut))


def effective_lrs(plan: SeesawPlan) -> list[float]:
    """Give each phase's effective learning rate over that of phase 0.

    It is lr * sqrt(batch) for adam (Assumption 3) and lr itself for sgd.
    """
    power = 0.5 if plan.optimizer == "adam" else 0.0
    first = plan.phases[0]
    return [p.lr / first.lr * (p.batch / first.batch) ** power for p in plan.phases]


def max_growth(plan: SeesawPlan) -> float:
    """Give the largest effective learning rate over that of phase 0."""
    return max(effective_lrs(plan))


def stability(alpha: float, beta: float, optimizer: str = "adam", cuts: int = 1) -> Stability:
    """Say whether a ramp is stable: for adam alpha >= sqrt(beta) (the paper's lemma), `edge` at =.

    Factors may have been rounded: where the effective learning rate changes by at most 0.1 % over
    all of `cuts`, they count as equal. For sgd, whose effective learning rate is the learning rate,
    alpha >= 1; there keeping it, as the default does, is no edge.
    """
    total = max(1, cuts) * math.log(_growth(alpha, beta, optimizer))
    if total > math.log1p(EDGE):
        return "no"
    return "edge" if optimizer == "adam" and total >= math.log1p(-EDGE) else "yes"


def growth_text(growth: float) -> str:
    """Write a growth above 1 with four digits, and more where those would read 1."""
    above = growth - 1.0
    digits = 4 if above >= 1e-2 else 2 - math.floor(math.log10(above))
    return f"{growth:.{digits}g}"


def describe(summary: Summary) -> list[str]:
    """Say the summary in a few lines for a person; the last is the verdict on stability."""
    s = summary
    lines = [
        f"{s.steps_base} steps become {s.steps_plan}: {100 * s.saving:.1f} % fewer "
        f"(limit for such cuts {100 * s.staircase_saving:.2f} %, "
        f"for ever smaller ones {100 * s.continuous_saving:.3f} %)"
    ]
    grows = f"the batch grows from {s.batch} to {s.end_batch} sequences"
    if s.end_batch == s.batch:
        grows = f"the batch stays at {s.batch} sequences"
    if s.cbs is None:
        lines.append(f"{grows}; hold that against the critical batch size (--cbs, `seesaw noise`)")
    elif s.cbs_token is None:
        lines.append(f"{grows}, within the critical batch size of {s.cbs:g}")
    else:
        lines.append(
            f"{grows} and passes the critical batch size of {s.cbs:g} at token {s.cbs_token}: "
            f"from there on it replaces the decay less and less (--cap-batch {s.cbs:.0f} stops it)"
        )
    if s.warmup_tokens and not s.warmup_steps:
        lines.append(
            f"the warmup of {s.warmup_tokens} tokens is less than one step: --warmup takes a share "
            "below 1, or tokens"
        )
    lines.append(_stability_line(s))
    return lines


def _stability_line(s: Summary) -> str:
    if s.stable == "no":
        growth = growth_text(s.growth_per_cut)
        return f"UNSTABLE: the effective learning rate grows by {growth} at each cut"
    if s.max_growth > 1.0 + EDGE:
        reached = f"the effective learning rate reaches {s.max_growth:.4g} times its start"
        if s.max_growth > ROUNDING_GROWTH * (1.0 + EDGE):
            return f"UNSTABLE: {reached}"
        return f"stable: {reached} where batches were rounded up, and grows no further"
    if s.phases == 1:
        return "no cut is taken: the schedule never falls that far"
    if s.end_growth < 1.0 / ROUNDING_GROWTH:
        return f"stable: the effective learning rate falls to {s.end_growth:.3g} of its start"
    if s.stable == "edge":
        return "stable, as aggressive as can be: the effective learning rate stays at its start"
    return "stable: the effective learning rate never grows"

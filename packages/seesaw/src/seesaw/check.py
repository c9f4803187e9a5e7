"""Is a plan sound? Each question has its own finding with a verdict, a value and a limit."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from papercuts.errors import UsageError
from seesaw.plan import SeesawPlan
from seesaw.planner import batch_exponent
from seesaw.schedule import Schedule, is_curve
from seesaw.summary import (
    EDGE,
    ROUNDING_GROWTH,
    Verdict,
    cuts_taken,
    effective_lrs,
    growth_per_cut,
    growth_text,
    schedule_of,
    stability,
)

PRODUCT_TOLERANCE = 1e-12
# Rounding a batch moves the learning rate that it wants by at most so much before it matters
# (yes), and by at most so much before it changes the schedule (undecided).
EQUIVALENCE_FINE = 0.05
EQUIVALENCE_COARSE = 0.25


@dataclass(frozen=True)
class Finding:
    """The answer to one question: `value` was found, `limit` is what it is held against."""

    name: str
    verdict: Verdict
    value: float | None
    limit: float | None
    message: str

    def to_dict(self) -> dict[str, Any]:
        """Give the fields by name."""
        return asdict(self)


def check_plan(
    plan: SeesawPlan,
    *,
    cbs: float | None = None,
    micro_batch: int | None = None,
    gpus: int | None = None,
    weight_decay: float | None = None,
    schedule: Schedule | None = None,
) -> list[Finding]:
    """Hold a plan against the paper's conditions and against the machine that is to run it.

    `cbs` is the critical batch size in sequences; `micro_batch` and `gpus` are the plan's own where
    None; `weight_decay` is that of the optimizer, and 0 settles the warning about it; `schedule` is
    the base, `schedule_of(plan)` where None. A verdict of `no` means that the plan breaks the
    condition, `undecided` that something is not known or a matter of judgement.

    Raises UsageError for values out of range.
    """
    for name, value in (("cbs", cbs), ("micro_batch", micro_batch), ("gpus", gpus)):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise UsageError(f"{name} must be a finite number above 0, got {value:g}")
    if weight_decay is not None and not (math.isfinite(weight_decay) and weight_decay >= 0.0):
        raise UsageError(f"weight_decay must not be negative, got {weight_decay:g}")
    return [
        _stability(plan),
        _effective_lr(plan),
        _product(plan),
        _equivalence(plan),
        _tokens(plan, schedule),
        _divisibility(plan, micro_batch, gpus),
        _critical_batch(plan, cbs),
        _weight_decay(plan, weight_decay, schedule),
    ]


def _stability(plan: SeesawPlan) -> Finding:
    """Ask the paper's stability lemma: an effective learning rate that grows diverges."""
    growth = growth_per_cut(plan)
    stable = stability(plan.alpha, plan.beta, plan.optimizer, cuts_taken(plan))
    limit = "sqrt(beta)" if plan.optimizer == "adam" else "1"
    if stable == "no":
        message = (
            f"alpha {plan.alpha:.9g} is below {limit}: the effective learning rate grows by "
            f"{growth_text(growth)} at each cut and diverges"
        )
    elif stable == "edge":
        message = f"alpha {plan.alpha:.6g} is {limit}: the most aggressive stable ramp"
    else:
        message = f"alpha {plan.alpha:.6g} is at least {limit}: stable"
    return Finding("stability", "no" if stable == "no" else "yes", growth, 1.0, message)


def _effective_lr(plan: SeesawPlan) -> Finding:
    """Ask the rows themselves: the largest effective learning rate over that of phase 0."""
    growths = effective_lrs(plan)
    worst = max(range(len(growths)), key=growths.__getitem__)
    value = growths[worst]
    grows = value > ROUNDING_GROWTH * (1.0 + EDGE)
    message = (
        f"the effective learning rate reaches {value:.4g} times its start in phase {worst}"
        if value > 1.0 + EDGE
        else "the effective learning rate never exceeds its start"
    )
    return Finding("effective_lr", "no" if grows else "yes", value, ROUNDING_GROWTH, message)


def _product(plan: SeesawPlan) -> Finding:
    """Ask whether alpha * beta**exponent is the cut (Corollary 1, Theorem 1)."""
    value = plan.alpha * plan.beta ** batch_exponent(plan.optimizer)
    rule = "alpha * sqrt(beta)" if plan.optimizer == "adam" else "alpha * beta"
    holds = abs(value / plan.cut - 1.0) <= PRODUCT_TOLERANCE
    return Finding(
        "product",
        "yes" if holds else "no",
        value,
        plan.cut,
        f"{rule} is {value:.12g}, the cut is {plan.cut:.12g}",
    )


def _equivalence(plan: SeesawPlan) -> Finding:
    """Ask how far each row's learning rate is from that which its whole batch wants."""
    power = batch_exponent(plan.optimizer)
    first = plan.phases[0]
    off = [
        abs(p.lr / (first.lr * p.base_lr / first.base_lr * (p.batch / first.batch) ** power) - 1.0)
        for p in plan.phases
    ]
    worst = max(range(len(off)), key=off.__getitem__)
    value = off[worst]
    verdict: Verdict = (
        "yes" if value <= EQUIVALENCE_FINE else "undecided" if value <= EQUIVALENCE_COARSE else "no"
    )
    message = f"with its whole batch, phase {worst} is {100 * value:.2g} % off the base schedule"
    if verdict != "yes":
        message += ": plan with --compensate, or with a larger cut"
    return Finding("equivalence", verdict, value, EQUIVALENCE_FINE, message)


def _tokens(plan: SeesawPlan, schedule: Schedule | None) -> Finding:
    """Ask whether each phase starts within one step after the base schedule's cut."""
    if schedule is None and is_curve(plan.base):
        message = "the plan holds the measured curve to 0.1 % only: its cuts cannot be compared"
        return Finding("tokens", "undecided", None, 1.0, message)
    schedule = schedule_of(plan) if schedule is None else schedule
    first, worst, value = plan.phases[0], 0, 0.0
    for before, phase in zip(plan.phases, plan.phases[1:], strict=False):
        cut = float(schedule.first_token_at_or_below(phase.base_lr / first.lr * (1.0 + 1e-12)))
        step = before.batch * plan.seq_len
        late = (phase.start_token - cut) / step
        off = late if late >= 0.0 else 1.0 - late  # early counts as worse than a step late
        if off > value:
            worst, value = phase.phase, off
    holds = value < 1.0
    message = (
        "every phase starts within one step after the base schedule's cut"
        if holds
        else f"phase {worst} does not start within one step after the base schedule's cut"
    )
    return Finding("tokens", "yes" if holds else "no", value, 1.0, message)


def _divisibility(plan: SeesawPlan, micro_batch: int | None, gpus: int | None) -> Finding:
    """Ask whether every batch is a whole number of micro-batches on every device."""
    per_device = micro_batch or plan.micro_batch or 1
    devices = gpus or plan.gpus
    unit = per_device * devices
    bad = next((p for p in plan.phases if p.batch % unit), None)
    message = (
        f"every batch is a multiple of {unit} ({per_device} x {devices} devices)"
        if bad is None
        else f"the batch of phase {bad.phase}, {bad.batch}, is no multiple of {unit} "
        f"({per_device} x {devices} devices)"
    )
    value = None if bad is None else float(bad.batch)
    return Finding("divisibility", "yes" if bad is None else "no", value, float(unit), message)


def _critical_batch(plan: SeesawPlan, cbs: float | None) -> Finding:
    """Ask whether the batch stays within the critical batch size."""
    largest = max(phase.batch for phase in plan.phases)
    if cbs is None:
        message = f"the batch reaches {largest}; the critical batch size is not known"
        return Finding("critical_batch", "undecided", float(largest), None, message)
    over = next((p for p in plan.phases if p.batch > cbs), None)
    if over is None:
        message = f"the batch reaches {largest}, within the critical batch size"
        return Finding("critical_batch", "yes", float(largest), float(cbs), message)
    message = (
        f"the batch passes {cbs:g} at token {over.start_token} (phase {over.phase}) and reaches "
        f"{largest}: past it the batch replaces the decay less and less"
    )
    return Finding("critical_batch", "no", float(largest), float(cbs), message)


def _weight_decay(
    plan: SeesawPlan, weight_decay: float | None, schedule: Schedule | None
) -> Finding:
    """Ask what is left of decoupled weight decay, whose strength is the sum of lr over steps."""
    schedule = schedule_of(plan) if schedule is None else schedule
    base_steps = plan.total_tokens / (plan.base_batch * plan.seq_len)
    warmup_steps = plan.warmup_tokens / (plan.base_batch * plan.seq_len)
    # Both sums below count warmup as if it were at the peak, and it is the same in both.
    missing = plan.peak_lr * warmup_steps * (1.0 - plan.start_ratio) / 2.0
    total = math.fsum(phase.lr * phase.steps for phase in plan.phases) - missing
    value = total / (plan.peak_lr * base_steps * schedule.steps_fraction() - missing)
    if weight_decay == 0.0:
        return Finding("weight_decay", "yes", value, 1.0, "there is no weight decay")
    message = f"decoupled weight decay (AdamW) does {value:.3g} of what it does in the base run: "
    if weight_decay is None:
        message += f"a weight decay {1.0 / value:.3g} times as large keeps it"
    else:
        message += f"{weight_decay / value:.3g} instead of {weight_decay:g} keeps it"
    return Finding("weight_decay", "undecided", value, 1.0, message)

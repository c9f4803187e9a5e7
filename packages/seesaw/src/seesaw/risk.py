"""Simulate a plan and its base schedule on noisy linear regression, exactly in expectation.

A plan is made for a network, whose learning rate and batch mean nothing to a regression problem.
So only ratios are taken over: the learning rate relative to its peak, the batch relative to the
base batch and the tokens relative to the whole. The regression's own scale is given by `eta`, the
peak learning rate as a fraction of 1/Tr H (SGD becomes unstable at a constant of that order), by
`batch`, the base batch in samples, and by the number of base steps. A plan for adam runs as
normalized SGD, the paper's proxy, with its learning rate matched to SGD's at the base batch; a
plan for sgd runs as SGD.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from papercuts.errors import UsageError
from seesaw.plan import Phase, SeesawPlan
from seesaw.recursion import Problem, RiskPath, Segment, matched_lr, run
from seesaw.schedule import Schedule
from seesaw.shapes import Floats
from seesaw.summary import base_steps, schedule_of

DEFAULT_ETA = 0.1
DEFAULT_BATCH = 4.0


@dataclass(frozen=True)
class PhaseRisk:
    """The plan's run at the end of one phase, in the regression's own units."""

    phase: int
    steps: int
    lr: float
    batch: float
    risk: float
    mean_share: float


@dataclass(frozen=True)
class Simulation:
    """Exact excess risks of base schedule (or its staircase) and plan, over the same samples.

    `mean_share` and `base_mean_share` are taken at the end: Assumption 3 (noise dominates) holds
    while they are small. A diverged run has an infinite risk, and then `risk_ratio` is infinite, or
    NaN where the base run diverged.
    """

    risk_base: float
    risk_plan: float
    risk_ratio: float
    initial_risk: float
    steps_base: int
    steps_plan: int
    mean_share: float
    base_mean_share: float
    diverged: bool
    base_diverged: bool
    optimizer: str
    dim: int
    sigma: float
    eta: float
    batch: float
    staircase: bool
    phases: tuple[PhaseRisk, ...]

    def to_dict(self) -> dict[str, Any]:
        """Give the fields by name, the phases as a list of dictionaries."""
        return {**asdict(self), "phases": [asdict(phase) for phase in self.phases]}


def simulate(
    plan: SeesawPlan,
    problem: Problem,
    *,
    eta: float = DEFAULT_ETA,
    batch: float = DEFAULT_BATCH,
    steps: int | None = None,
    schedule: Schedule | None = None,
    staircase: bool = False,
) -> Simulation:
    """Run plan and base schedule through the exact recursion (see the module's text).

    `steps` is the number of base steps, the plan's own where None; a plan of millions is scaled
    down by naming fewer. `schedule` is the base, `schedule_of(plan)` where None. With `staircase`
    the base is the baseline of Theorem 1 instead, lr / cut at each of the plan's own cuts: then
    the ratio shows what the growing batch does, without what large cuts do.

    Raises UsageError for an eta, a batch or steps that are not above 0.
    """
    for name, value in (("eta", eta), ("batch", batch)):
        if not (math.isfinite(value) and value > 0.0):
            raise UsageError(f"{name} must be above 0, got {value:g}")
    own = base_steps(plan)
    count = own if steps is None else steps
    if count < 1:
        raise UsageError(f"steps must be at least 1, got {count}")
    normalized = plan.optimizer == "adam"
    peak = eta / problem.trace
    if normalized:
        peak = matched_lr(problem, peak, batch)
    pieces = plan_segments(plan, peak, batch, None if count == own else count)
    ran = run(problem, [segment for _, segment in pieces], normalized=normalized)
    if staircase:
        constant = staircase_segment(plan, peak, batch, count)
    else:
        constant = base_segment(schedule or schedule_of(plan), peak, batch, count)
    base = run(problem, [constant], normalized=normalized)
    return Simulation(
        risk_base=base.risk,
        risk_plan=ran.risk,
        risk_ratio=math.nan if base.diverged else ran.risk / base.risk,
        initial_risk=0.5 * float(problem.eigenvalues @ problem.initial),
        steps_base=count,
        steps_plan=sum(segment.steps for _, segment in pieces),
        mean_share=ran.mean_shares[-1],
        base_mean_share=base.mean_shares[-1],
        diverged=ran.diverged,
        base_diverged=base.diverged,
        optimizer=plan.optimizer,
        dim=len(problem.eigenvalues),
        sigma=problem.sigma,
        eta=eta,
        batch=batch,
        staircase=staircase,
        phases=_phase_risks(pieces, ran),
    )


def base_segment(schedule: Schedule, peak: float, batch: float, steps: int) -> Segment:
    """Give the base schedule as `steps` steps at a constant batch, each with its own lr.

    As in the authors' trainer, the learning rate is that of the tokens after the step.
    """
    tokens = schedule.total_tokens * np.arange(1.0, steps + 1.0) / steps
    return Segment(peak * schedule.ratio(tokens), batch, steps)


def staircase_segment(plan: SeesawPlan, peak: float, batch: float, steps: int) -> Segment:
    """Give Theorem 1's baseline: a constant batch, lr / cut where the plan cuts."""
    tokens = plan.total_tokens * np.arange(0.0, steps + 1.0) / steps
    starts = np.array([phase.start_token for phase in plan.phases])
    ratios = np.array([phase.base_lr for phase in plan.phases]) / plan.phases[0].base_lr
    # Half a token of slack, for a step that starts where the plan cuts.
    lr = peak * ratios[np.searchsorted(starts, tokens[:-1] + 0.5, side="right") - 1]
    if plan.warmup_tokens:
        lr = lr * _warmup(plan, tokens[1:])
    return Segment(lr, batch, steps)


def plan_segments(
    plan: SeesawPlan, peak: float, batch: float, steps: int | None = None
) -> list[tuple[Phase, Segment]]:
    """Give the plan's phases for a problem with this peak lr and base batch.

    With `steps` the run is scaled to so many base steps: each phase keeps its share of the samples
    to within half a step, and one that is shorter than that drops out. The steps of warmup, each
    with its own learning rate, are a segment of their own.
    """
    pieces: list[tuple[Phase, Segment]] = []
    per_token = (base_steps(plan) if steps is None else steps) / plan.total_tokens
    done = 0.0  # samples so far, in base steps
    for phase in plan.phases:
        ratio = phase.batch / plan.base_batch
        count = phase.steps
        if steps is not None:
            count = max(0, round(((phase.start_token + phase.tokens) * per_token - done) / ratio))
        lr = peak * phase.lr / plan.peak_lr
        step = plan.seq_len * phase.batch if steps is None else ratio / per_token
        first = done / per_token if steps is not None else float(phase.start_token)
        warm = min(count, max(0, math.ceil((plan.warmup_tokens - first) / step)))
        if warm:
            after = first + step * np.arange(1.0, warm + 1.0)
            pieces.append((phase, Segment(lr * _warmup(plan, after), batch * ratio, warm)))
        if count > warm:
            pieces.append((phase, Segment(lr, batch * ratio, count - warm)))
        done += count * ratio
    return pieces


def _warmup(plan: SeesawPlan, tokens_after: Floats) -> Floats:
    rise = plan.start_ratio + (1.0 - plan.start_ratio) * tokens_after / plan.warmup_tokens
    return np.asarray(np.minimum(rise, 1.0))


def _phase_risks(pieces: list[tuple[Phase, Segment]], ran: RiskPath) -> tuple[PhaseRisk, ...]:
    """Join the segments of each phase; risk and mean share are those of its last."""
    joined: dict[int, PhaseRisk] = {}
    for (phase, segment), risk, share in zip(pieces, ran.risks, ran.mean_shares, strict=True):
        before = joined[phase.phase].steps if phase.phase in joined else 0
        lr = segment.lr if isinstance(segment.lr, float) else float(segment.lr[-1])
        joined[phase.phase] = PhaseRisk(
            phase.phase, before + segment.steps, lr, segment.batch, risk, share
        )
    return tuple(joined.values())

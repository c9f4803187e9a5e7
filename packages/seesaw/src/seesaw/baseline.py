"""What a training run follows: a Seesaw plan, or the base schedule that the plan came from."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from seesaw.plan import SeesawPlan, Step
from seesaw.summary import schedule_of

if TYPE_CHECKING:
    from collections.abc import Callable

# What the steps of a plan, or of its base schedule, are made from. How a batch is split between
# devices and micro-batches is not part of it: the same steps may be resumed on other devices.
_OF_PLAN = (
    "seq_len",
    "total_tokens",
    "warmup_tokens",
    "start_ratio",
    "final_ratio",
    "base",
    "cut",
    "alpha",
    "beta",
    "optimizer",
)
_OF_PHASE = ("start_token", "start_step", "lr", "batch", "steps", "base_lr")
_SAMPLED_STEPS = 4096


class StepSchedule(Protocol):
    """Batch and learning rate of every optimizer step; `SeesawPlan` is one."""

    @property
    def seq_len(self) -> int:
        """Tokens in a sequence."""

    @property
    def peak_lr(self) -> float:
        """The learning rate at the end of warmup."""

    @property
    def steps(self) -> int:
        """Optimizer steps of the whole run."""

    @property
    def tokens(self) -> int:
        """Tokens of the whole run."""

    def step_at(self, step: int) -> Step:
        """Tokens before, batch and learning rate of the step number `step`, from 0."""

    def tokens_before_step(self, step: int) -> int:
        """Tokens seen before the step number `step`, from 0."""


@dataclass(frozen=True)
class BaseSchedule:
    """The base schedule of a plan: a constant batch, and a learning rate that moves at every step.

    `ratio` maps a count of tokens, those of the step in question included, to the learning rate as
    a share of the peak; it is asked only past warmup. The run ends as the plan does, at the first
    step that reaches `plan.total_tokens`.
    """

    plan: SeesawPlan
    ratio: Callable[[float], float]

    @classmethod
    def of(cls, plan: SeesawPlan) -> BaseSchedule:
        """Recover the base schedule of a plan from what the plan itself holds."""
        schedule = schedule_of(plan)
        return cls(plan, lambda tokens: float(schedule.ratio(tokens)))

    @property
    def seq_len(self) -> int:
        """Tokens in a sequence."""
        return self.plan.seq_len

    @property
    def peak_lr(self) -> float:
        """The learning rate at the end of warmup."""
        return self.plan.peak_lr

    @property
    def steps(self) -> int:
        """Optimizer steps of the whole run."""
        return -(-self.plan.total_tokens // (self.plan.base_batch * self.plan.seq_len))

    @property
    def tokens(self) -> int:
        """Tokens of the whole run: `total_tokens`, and what the last step adds past it."""
        return self.tokens_before_step(self.steps)

    def tokens_before_step(self, step: int) -> int:
        """Count the tokens seen before the step number `step`, from 0."""
        return step * self.plan.base_batch * self.plan.seq_len

    def step_at(self, step: int) -> Step:
        """Give tokens before, batch and learning rate of the step number `step`, from 0."""
        before = self.tokens_before_step(step)
        after = self.tokens_before_step(step + 1)
        if after < self.plan.warmup_tokens:
            share = self.plan.lr_factor_in_warmup(after)
        else:
            share = self.ratio(min(after, self.plan.total_tokens))
        return Step(before, self.plan.base_batch, self.plan.peak_lr * share)


def schedule_digest(schedule: StepSchedule) -> str:
    """Give the SHA-256, in hexadecimal, of what a schedule's steps depend on.

    Equal plans have equal digests, also when they were read back from a file or differ only in how
    their batches are split between devices. A schedule of another class is known by its length and
    by its steps, at most 4096 of them, evenly spaced.
    """
    content: dict[str, Any]
    if isinstance(schedule, SeesawPlan):
        content = {"plan": _plan_content(schedule)}
    elif isinstance(schedule, BaseSchedule):
        content = {"base of": _plan_content(schedule.plan)}
    else:
        stride = max(1, -(-schedule.steps // _SAMPLED_STEPS))
        content = {
            "steps": schedule.steps,
            "tokens": schedule.tokens,
            "seq_len": schedule.seq_len,
            "peak_lr": schedule.peak_lr,
            "sampled": [list(schedule.step_at(k)) for k in range(0, schedule.steps, stride)],
        }
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _plan_content(plan: SeesawPlan) -> dict[str, Any]:
    return {
        **{name: _plain(getattr(plan, name)) for name in _OF_PLAN},
        "phases": [[_plain(getattr(phase, name)) for name in _OF_PHASE] for phase in plan.phases],
    }


def _plain(value: Any) -> Any:
    """Write numbers that are equal in one way: 2 and 2.0 make one plan."""
    return int(value) if isinstance(value, float) and value.is_integer() else value

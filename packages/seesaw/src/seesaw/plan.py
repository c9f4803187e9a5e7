"""The plan itself: phases of constant batch size, and what a trainer asks of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple


class Step(NamedTuple):
    """One optimizer step: tokens seen before it, its batch in sequences, its learning rate."""

    tokens_before: int
    batch: int
    lr: float


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of steps between two cuts (Algorithm 1), with one batch size.

    `start_token` and `start_step` count what was done before the phase's first step; `tokens` is
    `steps * batch * seq_len`. `lr` is the learning rate of the phase (in phase 0 the one after
    warmup) and `base_lr` that of the base schedule at the cut which opened the phase.
    """

    phase: int
    start_token: int
    start_step: int
    lr: float
    batch: int
    grad_accum: int
    steps: int
    tokens: int
    base_lr: float


@dataclass(frozen=True)
class SeesawPlan:
    """A training schedule in which the batch grows while the learning rate falls less.

    Batches are in sequences of `seq_len` tokens and count all devices: `batch = micro_batch * gpus
    * grad_accum` where a micro-batch was named, and `micro_batch` is 0 where none was (each device
    then takes `batch / gpus` at once). `alpha` divides the learning rate at each cut and `beta`
    multiplies the batch; `cut` is the factor by which the base schedule falls between two cuts.
    Warmup is linear in tokens from `start_ratio` times the peak learning rate, over the first
    `warmup_tokens` tokens, all of them inside phase 0. `base_batch` is the batch of the base
    schedule, which keeps it throughout.
    """

    phases: tuple[Phase, ...]
    seq_len: int
    total_tokens: int
    warmup_tokens: int
    start_ratio: float
    final_ratio: float
    base: str
    cut: float
    alpha: float
    beta: float
    optimizer: str = "adam"
    micro_batch: int = 0
    gpus: int = 1

    @property
    def peak_lr(self) -> float:
        """The learning rate at the end of warmup."""
        return self.phases[0].lr

    @property
    def base_batch(self) -> int:
        """The batch of phase 0, in sequences."""
        return self.phases[0].batch

    @property
    def end_batch(self) -> int:
        """The batch of the last phase, in sequences."""
        return self.phases[-1].batch

    @property
    def steps(self) -> int:
        """Optimizer steps of the whole plan."""
        return sum(phase.steps for phase in self.phases)

    @property
    def tokens(self) -> int:
        """Tokens of the whole plan: `total_tokens`, and what the last step adds past it."""
        return sum(phase.tokens for phase in self.phases)

    @cached_property
    def _start_tokens(self) -> list[int]:
        return [phase.start_token for phase in self.phases]

    @cached_property
    def _start_steps(self) -> list[int]:
        return [phase.start_step for phase in self.phases]

    def phase_at_token(self, tokens_before: int) -> Phase:
        """Give the phase of the step that starts when `tokens_before` tokens have been seen."""
        return self.phases[max(0, bisect_right(self._start_tokens, tokens_before) - 1)]

    def phase_at_step(self, step: int) -> Phase:
        """Give the phase of the optimizer step number `step`, counted from 0."""
        return self.phases[max(0, bisect_right(self._start_steps, step) - 1)]

    def tokens_before_step(self, step: int) -> int:
        """Count the tokens seen before the optimizer step number `step`, counted from 0."""
        phase = self.phase_at_step(step)
        return phase.start_token + (step - phase.start_step) * phase.batch * self.seq_len

    def lr_factor_in_warmup(self, tokens_after: int) -> float:
        """Give the factor on the phase's learning rate, 1 once warmup is over.

        `tokens_after` includes the tokens of the step in question, as in the authors' trainer.
        """
        if tokens_after >= self.warmup_tokens:
            return 1.0
        return self.start_ratio + (1.0 - self.start_ratio) * tokens_after / self.warmup_tokens

    def step_at(self, step: int) -> Step:
        """Give tokens before, batch and learning rate of the optimizer step number `step`.

        Both change together at the first step of a phase (Algorithm 1); the authors' trainer moves
        the learning rate at most one step earlier.
        """
        phase = self.phase_at_step(step)
        before = phase.start_token + (step - phase.start_step) * phase.batch * self.seq_len
        after = before + phase.batch * self.seq_len
        return Step(before, phase.batch, phase.lr * self.lr_factor_in_warmup(after))

    def walk(self) -> Iterator[Step]:
        """Yield every optimizer step in order."""
        for phase in self.phases:
            tokens = phase.batch * self.seq_len
            before = phase.start_token
            for _ in range(phase.steps):
                after = before + tokens
                yield Step(before, phase.batch, phase.lr * self.lr_factor_in_warmup(after))
                before = after

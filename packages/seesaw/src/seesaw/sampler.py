"""A batch sampler whose batch grows with the plan, and which resumes at an exact token."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from torch.utils.data import Sampler

from papercuts.errors import DataError, UsageError
from seesaw.baseline import schedule_digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sized

    from numpy.typing import NDArray

    from seesaw.baseline import StepSchedule


class SeesawBatchSampler(Sampler[list[int]]):
    """Yield, for each optimizer step, the indices of the sequences of this rank's part of it.

    Give it to a `DataLoader` as `batch_sampler`. The sequences come in one seeded permutation of
    the data set, each at most once, and the step number `k` takes the next `plan.step_at(k).batch`
    of them: which sequences a step sees depends on `seed` and the data set's length alone, not on
    `world_size`, `micro_batch` or where the run was resumed. A rank takes a contiguous share of
    each batch.

    With `micro_batch`, each item is one micro-batch of that many sequences, and a step is
    `batch / (micro_batch * world_size)` items in a row (`Phase.grad_accum` of a plan made for
    that micro-batch). With `repeat`, a further pass over the data uses a fresh permutation;
    without it, a data set shorter than the plan is refused.

    `position` counts the items handed out. A `DataLoader` with workers reads ahead, so a trainer
    should save its own step and resume with `start_step`, or `start_token`, which must fall on a
    step's edge.

    Raises UsageError for a rank outside the world, a start past the end or inside a step, and a
    batch which `world_size` (times `micro_batch`) does not divide; DataError for a data set that
    is too short.
    """

    def __init__(
        self,
        dataset: Sized | int,
        plan: StepSchedule,
        *,
        rank: int = 0,
        world_size: int = 1,
        seed: int = 0,
        micro_batch: int | None = None,
        repeat: bool = False,
        start_step: int | None = None,
        start_token: int | None = None,
    ) -> None:
        super().__init__()
        if not 0 <= rank < world_size:
            raise UsageError(f"rank {rank} is outside a world of {world_size} processes")
        if micro_batch is not None and micro_batch < 1:
            raise UsageError(f"the micro-batch is {micro_batch} (expected 1 or more)")
        self.sequences = dataset if isinstance(dataset, int) else len(dataset)
        self.plan = plan
        self.rank = rank
        self.world_size = world_size
        self.seed = seed
        self.micro_batch = micro_batch
        needed = plan.tokens // plan.seq_len
        if self.sequences < 1 or (needed > self.sequences and not repeat):
            raise DataError(
                f"the plan takes {needed} sequences of {plan.seq_len} tokens and the data set has"
                f" {self.sequences}",
                expected="a data set for a single pass, or repeat=True",
            )
        _check_batches(plan, world_size, micro_batch)
        self._pass = -1
        self._permutation: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._step, self._item = _start(plan, start_step, start_token), 0

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the items from the present position to the plan's end."""
        while self._step < self.plan.steps:
            before, batch, _ = self.plan.step_at(self._step)
            share = batch // self.world_size
            size = self.micro_batch or share
            start = before // self.plan.seq_len + self.rank * share + self._item * size
            indices = self._take(start, size)
            self._item += 1
            if self._item * size == share:
                self._step, self._item = self._step + 1, 0
            yield indices

    def __len__(self) -> int:
        """Count the items from the present position to the plan's end."""
        if self.micro_batch is None:
            return self.plan.steps - self._step
        left = self.plan.tokens - self.plan.tokens_before_step(self._step)
        return left // (self.plan.seq_len * self.world_size * self.micro_batch) - self._item

    @property
    def position(self) -> tuple[int, int]:
        """The step, and the item within it, that come next."""
        return self._step, self._item

    def state_dict(self) -> dict[str, Any]:
        """Give the position, and what must be equal where it is loaded again."""
        return {**self._identity(), "step": self._step, "item": self._item}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a saved position.

        Another number of processes or another micro-batch is welcome at a step's edge. Raises
        UsageError where the seed, the data set's length or the plan is another one, since the
        batches that remain would then not be the same.
        """
        split = ("world_size", "micro_batch") if state["item"] == 0 else ()
        for key, value in self._identity().items():
            if key in split:
                continue
            if state.get(key) != value:
                raise UsageError(
                    f"the sampler's saved {key} is {state.get(key)} and this one's is {value}"
                )
        self._step, self._item = int(state["step"]), int(state["item"])

    @cached_property
    def _digest(self) -> str:
        return schedule_digest(self.plan)

    def _identity(self) -> dict[str, Any]:
        """Name what the batches depend on; the rank may differ, its part is its own."""
        return {
            "seed": self.seed,
            "sequences": self.sequences,
            "plan_steps": self.plan.steps,
            "plan_tokens": self.plan.tokens,
            "plan_digest": self._digest,
            "world_size": self.world_size,
            "micro_batch": self.micro_batch,
        }

    def _take(self, start: int, count: int) -> list[int]:
        """Give `count` sequences from the place `start` of the endless order of passes."""
        taken: list[int] = []
        while len(taken) < count:
            turn, offset = divmod(start + len(taken), self.sequences)
            if turn != self._pass:
                rng = np.random.default_rng([self.seed, turn])
                self._permutation = rng.permutation(self.sequences)
                self._pass = turn
            taken += self._permutation[offset : offset + count - len(taken)].tolist()
        return taken


def _check_batches(plan: StepSchedule, world_size: int, micro_batch: int | None) -> None:
    """Refuse a plan with a batch that the processes cannot share equally."""
    divisor = world_size * (micro_batch or 1)
    if divisor == 1:
        return
    phases = getattr(plan, "phases", None)
    starts = [0] if phases is None else [phase.start_step for phase in phases]
    for step in starts:
        batch = plan.step_at(step).batch
        if batch % divisor:
            parts = f"{world_size} processes" + (
                f" x micro-batch {micro_batch}" if micro_batch else ""
            )
            raise UsageError(
                f"the batch of {batch} sequences from step {step} on is no multiple of {divisor}"
                f" ({parts}); make the plan with --multiple-of {divisor}"
            )


def _start(plan: StepSchedule, step: int | None, token: int | None) -> int:
    """Find the step to start at, from its number or from the tokens seen before it."""
    if step is not None and token is not None:
        raise UsageError("give start_step or start_token, not both")
    if token is not None:
        step = _step_of_token(plan, token)
    step = step or 0
    if not 0 <= step <= plan.steps:
        raise UsageError(f"the start step {step} is outside the plan's {plan.steps} steps")
    return step


def _step_of_token(plan: StepSchedule, token: int) -> int:
    """Search the step that begins when exactly `token` tokens have been seen."""
    low, high = 0, plan.steps
    while low < high:
        middle = (low + high) // 2
        if plan.tokens_before_step(middle) < token:
            low = middle + 1
        else:
            high = middle
    if plan.tokens_before_step(low) != token:
        edge = plan.tokens_before_step(max(low - 1, 0))
        raise UsageError(f"no step begins at token {token} (the one before begins at {edge})")
    return low

"""A PyTorch learning-rate scheduler that follows a plan step by step."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from torch.optim.lr_scheduler import LRScheduler

from papercuts.errors import UsageError
from seesaw.baseline import schedule_digest

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from seesaw.baseline import StepSchedule


class SeesawLR(LRScheduler):
    """Set the learning rate of every optimizer step from a plan; call `step()` after each one.

    A parameter group that was made with the plan's peak learning rate gets exactly the plan's; one
    made with another keeps its ratio to the peak. `last_epoch`, in PyTorch's word, is the number of
    optimizer steps done. Of the plan, `state_dict()` holds a digest, and of all else plain numbers
    (so `torch.load(..., weights_only=True)` reads it); past the plan's end the last phase's
    learning rate stays.
    """

    def __init__(self, optimizer: Optimizer, plan: StepSchedule, last_epoch: int = -1) -> None:
        self.plan = plan
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Any]:
        """Give the learning rate of each parameter group for the step that comes next."""
        return self.lr_at(self.last_epoch)

    def lr_at(self, step: int) -> list[float | Any]:
        """Give the learning rate of each parameter group at the step number `step`, from 0."""
        lr, peak = self.plan.step_at(step).lr, self.plan.peak_lr
        return [lr if base == peak else base * (lr / peak) for base in self.base_lrs]

    @cached_property
    def _plan_identity(self) -> dict[str, Any]:
        return {
            "plan_steps": self.plan.steps,
            "plan_tokens": self.plan.tokens,
            "plan_digest": schedule_digest(self.plan),
        }

    def state_dict(self) -> dict[str, Any]:
        """Give the steps done, the base learning rates and the plan's digest, as plain values."""
        return {
            "last_epoch": self.last_epoch,
            "base_lrs": [float(base) for base in self.base_lrs],
            **self._plan_identity,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a saved step, and set the groups' learning rates to that step's.

        Raises UsageError where the saved plan is another one, or the optimizer has another count
        of parameter groups.
        """
        for key, value in self._plan_identity.items():
            if state_dict.get(key) != value:
                raise UsageError(
                    f"the scheduler's saved {key} is {state_dict.get(key)} and this plan's is"
                    f" {value}"
                )
        if len(state_dict["base_lrs"]) != len(self.optimizer.param_groups):
            raise UsageError(
                f"the scheduler was saved with {len(state_dict['base_lrs'])} parameter groups and"
                f" the optimizer has {len(self.optimizer.param_groups)}"
            )
        self.base_lrs = list(state_dict["base_lrs"])
        self.last_epoch = int(state_dict["last_epoch"])
        self._last_lr = self.get_lr()
        for group, lr in zip(self.optimizer.param_groups, self._last_lr, strict=True):
            group["lr"] = lr

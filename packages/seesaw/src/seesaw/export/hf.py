"""A plan for the Hugging Face Trainer: a subclass, since Trainer has no batch schedule.

Overrides `get_train_dataloader`, `create_scheduler`, `training_step` and `log` of
`transformers.Trainer`, as they are in 4.57 and 5.24. Trainer calls an optimizer step the batches of
`gradient_accumulation_steps` loader items, a number that must stay the same through the run; so one
loader item is made a whole optimizer step and `training_step` runs its micro-batches. Trainer's own
arithmetic then normalises the loss: by `num_items_in_batch`, counted over the whole step, for
models that take it, else by `current_gradient_accumulation_steps`. The loader is not prepared by
accelerate, whose `BatchSamplerShard` expects batches of one size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seesaw.export.common import python_file

if TYPE_CHECKING:
    from seesaw.plan import SeesawPlan


def export(plan: SeesawPlan) -> str:
    """Give the Python source of the file. Raises UsageError as `common.phases_of`."""
    return python_file("hf", plan, "the Hugging Face Trainer")

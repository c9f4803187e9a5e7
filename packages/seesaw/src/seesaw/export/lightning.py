"""A plan for Lightning's Trainer: a data module and a callback.

Uses `lightning.pytorch.callbacks.GradientAccumulationScheduler`, which changes
`Trainer.accumulate_grad_batches` between epochs, and
`Trainer(reload_dataloaders_every_n_epochs=1)`, as they are in Lightning 2.5 and 2.6: each phase
becomes one epoch. Lightning steps the optimizer when the count of batches within the epoch is a
multiple of `accumulate_grad_batches`, so a change in the middle of an epoch would shift the steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seesaw.export.common import python_file

if TYPE_CHECKING:
    from seesaw.plan import SeesawPlan


def export(plan: SeesawPlan) -> str:
    """Give the Python source of the file. Raises UsageError as `common.phases_of`."""
    return python_file("lightning", plan, "Lightning's Trainer")

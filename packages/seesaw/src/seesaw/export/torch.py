"""A plan for a plain PyTorch loop: a LambdaLR and a batch sampler.

Uses `torch.optim.lr_scheduler.LambdaLR` and the `batch_sampler` argument of
`torch.utils.data.DataLoader` (any PyTorch 2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seesaw.export.common import python_file

if TYPE_CHECKING:
    from seesaw.plan import SeesawPlan


def export(plan: SeesawPlan) -> str:
    """Give the Python source of the file. Raises UsageError as `common.phases_of`."""
    return python_file("torch", plan, "a plain PyTorch loop")

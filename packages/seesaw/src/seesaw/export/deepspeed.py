"""A plan for DeepSpeed: the batch part of its configuration, and a training step.

Uses, as they are in DeepSpeed 0.19.8, the configuration keys `train_batch_size`,
`train_micro_batch_size_per_gpu` and `gradient_accumulation_steps`, and of the engine
`set_train_batch_size` (changes gradient accumulation, keeps the micro-batch),
`set_train_micro_batch_size` (the other way round), `set_gradient_accumulation_boundary`,
`global_steps` and `dp_world_size`. DeepSpeed's schedulers (LRRangeTest, OneCycle, WarmupLR,
WarmupDecayLR, WarmupCosineLR) have no list of steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seesaw.export.common import phases_of, python_file

if TYPE_CHECKING:
    from seesaw.plan import SeesawPlan


def export(plan: SeesawPlan) -> str:
    """Give the Python source of the file. Raises UsageError as `common.phases_of`."""
    first = phases_of(plan)[0]
    if plan.micro_batch:
        set_batch = "engine.set_train_batch_size(batch)"
        note = (
            "The micro-batch stays the same and gradient accumulation grows (set_train_batch_size)."
        )
    else:
        set_batch = "engine.set_train_micro_batch_size(batch // engine.dp_world_size)"
        note = (
            "The plan names no micro-batch, so each device takes its whole share at once\n"
            "(set_train_micro_batch_size) and its memory grows with the batch."
        )
    return python_file(
        "deepspeed",
        plan,
        "DeepSpeed",
        batch_note=note,
        set_batch=set_batch,
        first_batch=first.batch,
        first_micro=first.batch // (first.grad_accum * plan.gpus),
        first_accum=first.grad_accum,
    )

"""A plan for Megatron-LM: its own batch schedule, and a replaced `get_lr`.

Options used: `--step-batch-size-schedule "TOKENS:BATCH ..."` (NVIDIA/Megatron-LM pull request 4411,
merged on 21 April 2026; megatron-core 0.16.1 and older have only the linear `--rampup-batch-size`),
`--train-samples`, `--seq-length`, `--micro-batch-size`, `--lr`, `--min-lr`, `--lr-decay-style`.
The lr decay styles are constant, linear, cosine, inverse-square-root and WSD: none is a list of
steps. The file therefore replaces `OptimizerParamScheduler.get_lr` of
`megatron.core.optimizer_param_scheduler`, the same in 0.16.1 and on the main branch; its
`num_steps` counts samples.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from seesaw.export.common import phases_of, python_file

if TYPE_CHECKING:
    from seesaw.plan import SeesawPlan


def export(plan: SeesawPlan) -> str:
    """Give the Python source of the launcher. Raises UsageError as `common.phases_of`."""
    if plan.micro_batch:
        note = (
            f"Each of the plan's batches is a multiple of {plan.micro_batch} sequences times a "
            f"data-parallel size of {plan.gpus}."
        )
        arguments = f'    "--micro-batch-size",\n    "{plan.micro_batch}",\n'
    else:
        common = math.gcd(*(phase.batch for phase in phases_of(plan)))
        note = (
            "The plan names no micro-batch: add --micro-batch-size M, M times the data-parallel\n"
            f"size being a divisor of every batch (their greatest common divisor is {common})."
        )
        arguments = ""
    return python_file("megatron", plan, "Megatron-LM", micro_note=note, micro_arguments=arguments)

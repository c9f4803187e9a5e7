"""A plan as text for the trainer in use: a configuration or a short Python file."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from papercuts.errors import UsageError
from papercuts.log import get_logger

if TYPE_CHECKING:
    from seesaw.plan import SeesawPlan

FORMATS = ("hf", "lightning", "olmo-core", "megatron", "deepspeed", "torch")


def export_plan(plan: SeesawPlan, to: str) -> str:
    """Write a plan for the trainer `to`, one of `FORMATS`, and give the text.

    `olmo-core` is YAML; the others are Python files that need no seesaw. Raises UsageError where
    the format is unknown, a batch does not split over the plan's devices and micro-batches, or the
    trainer cannot follow the plan.
    """
    if to not in FORMATS:
        raise UsageError(f"no export to {to!r} (expected one of {', '.join(FORMATS)})")
    if plan.seq_len == 1:
        get_logger(__name__).warning(
            "in this plan a sequence counts as one token (convert without --seq): "
            "lengths and tokens in the export are those of sequences"
        )
    text: str = import_module(f"seesaw.export.{to.replace('-', '_')}").export(plan)
    return text

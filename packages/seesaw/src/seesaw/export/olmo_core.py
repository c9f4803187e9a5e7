"""A plan for OLMo-core, as keys of its experiment configuration in YAML.

Uses, as they are in ai2-olmo-core 3.0.0, `BatchSizeSchedulerCallback` (`batch_sizes` in tokens,
`schedule` of `Duration`), `ComposableScheduler` (registered as `composable`, stages in tokens),
`NumpyDataLoaderConfig.global_batch_size`, `TransformerTrainModuleConfig.rank_microbatch_size` and
`TrainerConfig.max_duration`. Three things of OLMo-core shape the file:

- The callback multiplies the optimizer's initial lr by sqrt(batch ratio), upwards. Stages with
  absolute `start_lr` and `end_lr` do not look at the initial lr, so the plan's lr holds.
- The scheduler sees the tokens including those of the current step, the callback those before it.
  A stage that ends one token late makes both change at the same step.
- The batch grows by whole factors only, and only where the tokens seen are a multiple of the new
  batch (`DataLoaderBase.global_batch_size`): phase starts are moved up to the next such place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from papercuts.errors import UsageError
from seesaw.export.common import phases_of, summary

if TYPE_CHECKING:
    from seesaw.plan import SeesawPlan

_CALLBACK = "olmo_core.train.callbacks.batch_size_scheduler.BatchSizeSchedulerCallback"


class Stage(NamedTuple):
    """A phase as OLMo-core runs it: first token, batch in sequences, learning rate."""

    start: int
    batch: int
    lr: float


def stages_of(plan: SeesawPlan) -> list[Stage]:
    """Move each phase up to the next multiple of its batch.

    A phase that this leaves without a step is dropped. Raises UsageError where the batch does not
    grow by a whole factor.
    """
    stages: list[Stage] = []
    for phase in phases_of(plan):
        if stages and phase.batch % stages[-1].batch:
            raise UsageError(
                f"OLMo-core grows the batch by whole factors only, not from {stages[-1].batch} to "
                f"{phase.batch} (plan again with --cut 2, or export --to torch)"
            )
        tokens = phase.batch * plan.seq_len
        start = -(-phase.start_token // tokens) * tokens
        while stages and stages[-1].start >= start:
            stages.pop()
        stages.append(Stage(start, phase.batch, phase.lr))
    return stages


def export(plan: SeesawPlan) -> str:
    """Give the YAML text. Raises UsageError as `stages_of`."""
    stages = stages_of(plan)
    seq = plan.seq_len
    micro = plan.micro_batch or stages[0].batch // plan.gpus
    lines = [
        *_header(plan, stages),
        "train_module:",
        f"  rank_microbatch_size: {micro * seq}  # tokens; gradients accumulate up to the batch",
        f"  max_sequence_length: {seq}",
        "  optim:",
        f"    lr: {_yaml_float(plan.peak_lr)}",
        "  scheduler:",
        "    _CLASS_: olmo_core.optim.scheduler.ComposableScheduler",
        "    units: tokens",
        "    stages:",
        *_lr_stages(plan, stages),
        "data_loader:",
        f"  global_batch_size: {stages[0].batch * seq}  # tokens",
        "trainer:",
        "  max_duration:",
        f"    value: {plan.total_tokens}",
        "    unit: tokens",
        "  callbacks:",
        "    batch_size_scheduler:",
        f"      _CLASS_: {_CALLBACK}",
        *_batch_schedule(stages, seq),
    ]
    return "\n".join(lines) + "\n"


def _header(plan: SeesawPlan, stages: list[Stage]) -> list[str]:
    planned = {phase.start_token for phase in phases_of(plan)}
    moved = sum(stage.start not in planned for stage in stages)
    return [
        "# A Seesaw plan for OLMo-core 3.0, written by `seesaw export --to olmo-core`.",
        summary(plan, "# "),
        "# Merge these keys into the file that your experiment's Config.from_yaml reads.",
        "# The lr of the stages is absolute: the callback's own factor sqrt(batch ratio) has no",
        "# effect on it. Stay within one epoch of the data: batches are counted from its start.",
        f"# {moved} of {len(stages)} phases start up to one new batch later than planned, where",
        "# OLMo-core allows the batch to change; the lr moves with them.",
    ]


def _lr_stages(plan: SeesawPlan, stages: list[Stage]) -> list[str]:
    lines: list[str] = []
    position = 0
    if plan.warmup_tokens:
        lines += _lr_stage(plan.warmup_tokens, plan.peak_lr * plan.start_ratio, plan.peak_lr)
        position = plan.warmup_tokens
    ends = [*(stage.start for stage in stages[1:]), max(plan.tokens, stages[-1].start)]
    for stage, end in zip(stages, ends, strict=True):
        lines += _lr_stage(end + 1 - position, stage.lr, stage.lr)
        position = end + 1
    return lines


def _lr_stage(duration: int, start: float, end: float) -> list[str]:
    return [
        f"      - duration: {duration}",
        f"        start_lr: {_yaml_float(start)}",
        f"        end_lr: {_yaml_float(end)}",
    ]


def _batch_schedule(stages: list[Stage], seq: int) -> list[str]:
    changes = [
        stage
        for before, stage in zip([None, *stages], stages, strict=False)
        if before is None or before.batch != stage.batch
    ]
    sizes = [f"        - {stage.batch * seq}" for stage in changes]
    starts = [f"        - {{value: {stage.start}, unit: tokens}}" for stage in changes]
    return ["      batch_sizes:", *sizes, "      schedule:", *starts]


def _yaml_float(value: float) -> str:
    """Write a float exactly; YAML 1.1 reads `1e-05` as a string and `1.0e-05` as a number."""
    mantissa, exponent, power = repr(value).partition("e")
    return f"{mantissa}{'' if '.' in mantissa else '.0'}{exponent}{power}"

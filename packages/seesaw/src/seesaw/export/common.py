"""What the exports share: the checks of a plan, its table as Python source, and the templates."""

from __future__ import annotations

import textwrap
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from papercuts.errors import UsageError

if TYPE_CHECKING:
    from seesaw.plan import Phase, SeesawPlan

WIDTH = 100


def phases_of(plan: SeesawPlan) -> list[Phase]:
    """List the phases that have steps, checked for what every trainer needs.

    Raises UsageError where a batch does not split over the plan's devices and micro-batches.
    """
    phases = [phase for phase in plan.phases if phase.steps > 0]
    if not phases:
        raise UsageError("the plan has no steps to export")
    for phase in phases:
        if plan.micro_batch:
            unit = plan.micro_batch * plan.gpus
            fits = phase.batch == unit * phase.grad_accum
        else:
            unit = plan.gpus
            fits = phase.batch % unit == 0 and phase.grad_accum == 1
        if not fits:
            raise UsageError(
                f"the batch of phase {phase.phase}, {phase.batch}, does not split evenly over "
                f"{plan.gpus} devices and micro-batches (plan again with --multiple-of {unit})"
            )
    return phases


def summary(plan: SeesawPlan, prefix: str = "") -> str:
    """Describe the plan in wrapped lines, each after `prefix`."""
    phases = phases_of(plan)
    first, last = phases[0], phases[-1]
    text = (
        f"Plan: base schedule {plan.base}, optimizer {plan.optimizer}, cut {plan.cut:.6g}: "
        f"at each cut lr / {plan.alpha:.6g} and batch * {plan.beta:.6g}. {plan.steps} steps, "
        f"{plan.tokens} tokens in sequences of {plan.seq_len}; {len(phases)} phases, "
        f"batch {first.batch} to {last.batch}, lr {first.lr:.6g} to {last.lr:.6g}."
    )
    return textwrap.fill(
        text, WIDTH, initial_indent=prefix, subsequent_indent=prefix, break_long_words=False
    )


def python_file(name: str, plan: SeesawPlan, trainer: str, **values: object) -> str:
    """Fill the template `name`: the table of phases, the batch sampler and `values`.

    Floats are written with repr, so the file holds the plan's learning rates exactly.
    """
    phases = phases_of(plan)
    rows = "\n".join(
        f"    ({p.start_step}, {p.start_token}, {p.lr!r}, {p.batch}, {p.grad_accum}),"
        for p in phases
    )
    table = _template("table").substitute(
        rows=rows,
        steps=plan.steps,
        seq_len=plan.seq_len,
        warmup_tokens=plan.warmup_tokens,
        start_ratio=repr(plan.start_ratio),
    )
    sequences = (
        f"The run takes {plan.tokens // plan.seq_len} sequences; with fewer in the data set the "
        "rest comes from a second pass."
    )
    batches = _template("batches").substitute(micro_batch=plan.micro_batch)
    return _template(name).substitute(
        made=f"A Seesaw plan for {trainer}, written by `seesaw export --to {name}`.",
        summary=summary(plan),
        sequences=textwrap.fill(sequences, WIDTH),
        table=table.rstrip(),
        batches=batches.rstrip(),
        **values,
    )


def _template(name: str) -> Template:
    path = files(__package__) / "templates" / f"{name}.txt"
    return Template(path.read_text(encoding="utf-8"))

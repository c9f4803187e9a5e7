"""A picture of a plan beside its base schedule (needs the extra `plot`)."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from papercuts.app import need
from papercuts.errors import UsageError
from papercuts.streams import check_output, open_output
from seesaw.plan import SeesawPlan
from seesaw.shapes import Floats
from seesaw.summary import base_steps, schedule_of

SUFFIXES = (".png", ".svg")


def plot_plan(plan: SeesawPlan, path: str, *, force: bool = False) -> None:
    """Draw learning rate and batch over tokens, and the steps taken, into a .png or .svg file.

    Raises UsageError for another suffix, OutputError where the file cannot be written, MissingError
    without matplotlib.
    """
    suffix = Path(path).suffix
    if suffix not in SUFFIXES:
        raise UsageError(f"{path}: a plot is a {' or '.join(SUFFIXES)} file")
    check_output(path, force=force)
    figure_module = need("matplotlib.figure", tool="seesaw", extra="plot")
    figure = figure_module.Figure(figsize=(7.0, 7.0), layout="constrained")
    lr, batch, steps = figure.subplots(3, sharex=True)
    billion = 1e9 if plan.tokens >= 1e8 else 1e6
    at, base_lr = _base_curve(plan)
    edges, lrs, batches = plan_curve(plan)
    lr.plot(at / billion, base_lr, "--", color="tab:grey", label=f"base ({plan.base})")
    lr.plot(edges / billion, lrs, color="tab:blue", label="Seesaw")
    lr.set_ylabel("learning rate")
    lr.legend()
    batch.axhline(plan.base_batch, linestyle="--", color="tab:grey")
    batch.plot(edges / billion, batches, color="tab:blue", drawstyle="steps-post")
    batch.set_ylabel("batch (sequences)")
    steps.plot([0, plan.total_tokens / billion], [0, base_steps(plan)], "--", color="tab:grey")
    starts = [*((p.start_token, p.start_step) for p in plan.phases), (plan.tokens, plan.steps)]
    steps.plot([t / billion for t, _ in starts], [s for _, s in starts], color="tab:blue")
    steps.set_ylabel("steps taken")
    steps.set_xlabel(f"tokens ({'billions' if billion == 1e9 else 'millions'})")
    for axes in (lr, batch, steps):
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    image = io.BytesIO()
    # No date and no random names in the file: the same plan gives the same bytes.
    with need("matplotlib", tool="seesaw", extra="plot").rc_context({"svg.hashsalt": "seesaw"}):
        date = {"Date": None} if suffix == ".svg" else None
        figure.savefig(image, format=suffix[1:], metadata=date)
    with open_output(path, force=force) as out:
        out.write(image.getvalue())


def plan_curve(plan: SeesawPlan, points: int = 50) -> tuple[Floats, Floats, Floats]:
    """Give tokens, learning rate and batch of a plan, with `points` of them along the warmup."""
    tokens = [float(t) for t in np.linspace(0, plan.warmup_tokens, points)]
    lrs = [plan.peak_lr * plan.lr_factor_in_warmup(round(t)) for t in tokens]
    batches = [float(plan.base_batch)] * points
    for phase in plan.phases:
        start = max(phase.start_token, plan.warmup_tokens)
        for at in (start, phase.start_token + phase.tokens):
            tokens.append(float(at))
            lrs.append(phase.lr)
            batches.append(float(phase.batch))
    return np.array(tokens), np.array(lrs), np.array(batches)


def _base_curve(plan: SeesawPlan) -> tuple[Floats, Floats]:
    tokens = np.linspace(0, plan.total_tokens, 1001)
    return tokens, plan.peak_lr * schedule_of(plan).ratio(tokens)

"""The commands of `seesaw`: parse, call, print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from papercuts.app import App, Device, Force, Format, FormatName, Output, Plot, Seed, need
from papercuts.errors import NegativeResult, UsageError
from papercuts.log import get_logger
from seesaw import options as o

if TYPE_CHECKING:
    from seesaw.plan import SeesawPlan

app = App(
    "seesaw",
    help=(
        "Turn a decaying learning-rate schedule into a Seesaw plan: the rate decays half as much "
        "in log-scale, the batch grows instead, and below the critical batch size training "
        "reaches the same loss on the same tokens in fewer steps (a cosine: 38 % fewer)."
    ),
    schema="seesaw.schema:schema",
)


@app.command()
def plan(
    lr: o.Lr,
    batch: o.Batch,
    seq: o.Seq,
    tokens: o.Tokens,
    warmup: o.Warmup = None,
    base: o.Base = "cosine",
    final: o.Final = None,
    start: o.Start = None,
    cut: o.Cut = None,
    alpha: o.Alpha = None,
    beta: o.Beta = None,
    optimizer: o.Optimizer = "adam",
    cap_batch: o.CapBatch = None,
    multiple_of: o.MultipleOf = 1,
    micro_batch: o.MicroBatch = None,
    gpus: o.Gpus = 1,
    compensate: o.Compensate = False,
    as_published: o.AsPublished = False,
    cbs: o.Cbs = None,
    plot: Plot = None,
    format: Format = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Plan a run: learning rate, batch and steps of each phase.

    On stderr: the steps before and after, the saving and its continuous limit, the end batch
    against the critical batch size, and whether the ramp is stable.
    """
    from seesaw.curve import read_curve
    from seesaw.measured import plan_from_curve
    from seesaw.planner import make_plan

    shared: dict[str, Any] = {
        "lr": lr,
        "batch": batch,
        "seq_len": seq,
        "tokens": tokens,
        "cut": cut,
        "alpha": alpha,
        "beta": beta,
        "optimizer": optimizer,
        "cap_batch": cap_batch,
        "multiple_of": multiple_of,
        "micro_batch": micro_batch,
        "gpus": gpus,
        "compensate": compensate,
    }
    if base.startswith("file:"):
        own = {"warmup": warmup, "final": final, "start": start}
        _refuse_beside_a_curve(**own, as_published=as_published or None)
        made = plan_from_curve(read_curve(base.removeprefix("file:")), **shared)
    else:
        made = make_plan(
            base=base,
            warmup=warmup,
            final=final,
            start=0.1 if start is None else start,
            as_published=as_published,
            **shared,
        )
    _finish_plan(made, cbs, cap_batch, plot, format, output, force)


@app.command()
def convert(
    batch: o.RunBatch,
    curve: o.CurveFile = None,
    seq: o.RunSeq = None,
    tokens: o.RunTokens = None,
    lr_field: o.LrField = None,
    step_field: o.StepField = None,
    token_field: o.TokenField = None,
    cut: o.Cut = None,
    alpha: o.Alpha = None,
    beta: o.Beta = None,
    optimizer: o.Optimizer = "adam",
    cap_batch: o.CapBatch = None,
    multiple_of: o.MultipleOf = 1,
    micro_batch: o.MicroBatch = None,
    gpus: o.Gpus = 1,
    compensate: o.Compensate = False,
    cbs: o.Cbs = None,
    plot: Plot = None,
    format: Format = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Turn a run's logged learning rate into such a plan."""
    from papercuts.streams import default_input
    from seesaw.curve import read_curve
    from seesaw.measured import plan_from_curve

    path = default_input(curve, "curve")
    made = plan_from_curve(
        read_curve(path, lr_field=lr_field, step_field=step_field, token_field=token_field),
        batch=batch,
        seq_len=seq,
        tokens=tokens,
        cut=cut,
        alpha=alpha,
        beta=beta,
        optimizer=optimizer,
        cap_batch=cap_batch,
        multiple_of=multiple_of,
        micro_batch=micro_batch,
        gpus=gpus,
        compensate=compensate,
    )
    _finish_plan(made, cbs, cap_batch, plot, format, output, force)


@app.command()
def check(
    plan: o.PlanFile = None,
    cbs: o.Cbs = None,
    micro_batch: o.MicroBatch = None,
    gpus: o.CheckGpus = None,
    weight_decay: o.WeightDecay = None,
    strict: o.Strict = False,
    format: Format = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Check a plan: stability, products, tokens, batches.

    Also the batch against the devices and the critical batch size, and what is left of weight
    decay. Exits 1 where the ramp is unstable, and with --strict for every finding that is no.
    """
    from seesaw.check import check_plan

    findings = check_plan(
        _read_plan(plan), cbs=cbs, micro_batch=micro_batch, gpus=gpus, weight_decay=weight_decay
    )
    rows = [finding.to_dict() for finding in findings]
    _write(rows, output, format, force, columns="name verdict message")
    wrong = [finding for finding in findings if finding.verdict == "no"]
    if not strict:
        wrong = [finding for finding in wrong if finding.name in ("stability", "effective_lr")]
    if wrong:
        raise NegativeResult("; ".join(finding.message for finding in wrong))


@app.command()
def noise(
    log: o.NormLogFile = None,
    seq: o.NoiseSeq = None,
    at_batch: o.AtBatch = None,
    windows: o.Windows = 1,
    batch_field: o.BatchField = "batch",
    norm_field: o.NormField = None,
    seed: Seed = 0,
    format: Format = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Estimate the gradient noise scale from a log.

    It is an estimate of the critical batch size. The log holds gradient norms at two or more
    batch sizes, which `seesaw train --noise-points` writes and other trainers can.
    """
    from papercuts.streams import default_input, read_records, write_records
    from seesaw.noise import estimate_windows, read_norms

    records = read_records(default_input(log, "log of gradient norms"))
    norms = read_norms(records, batch_field=batch_field, norm_field=norm_field)
    estimates = estimate_windows(norms, windows, seq_len=seq, at_batch=at_batch, seed=seed)
    write_records([e.to_dict() for e in estimates], output, format=format, force=force)


@app.command()
def simulate(
    plan: o.PlanFile = None,
    spectrum: o.Spectrum = "power:1.5",
    dim: o.Dim = None,
    sigma: o.Sigma = 1.0,
    distance: o.Distance = 10.0,
    eta: o.Eta = 0.1,
    base_batch: o.BaseBatch = 4.0,
    steps: o.BaseSteps = None,
    staircase: o.Staircase = False,
    format: Format = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Give the exact risks of a plan and of its base.

    The problem is noisy linear regression, the risks are expectations. The plan's ratios are
    taken over, the scale of the problem is that of the options. `risk_ratio` near 1 means that
    the plan loses nothing.
    """
    from papercuts.streams import output_format, write_records
    from seesaw.recursion import load_spectrum, make_problem
    from seesaw.risk import simulate as simulate_plan

    problem = make_problem(load_spectrum(spectrum, dim), sigma=sigma, distance=distance)
    result = simulate_plan(
        _read_plan(plan), problem, eta=eta, batch=base_batch, steps=steps, staircase=staircase
    )
    chosen = output_format(output, format)
    row = result.to_dict()
    if chosen != "json":  # a cell is no place for a list of phases
        del row["phases"]
    write_records([row], output, format=chosen, force=force)


@app.command()
def export(
    to: o.Trainer,
    plan: o.PlanFile = None,
    output: Output = "-",
    force: Force = False,
) -> None:
    """Write a plan for the trainer in use: a config or a short file."""
    from papercuts.streams import open_output
    from seesaw.export import export_plan

    text = export_plan(_read_plan(plan), to)
    with open_output(output, force=force) as out:
        out.write(text.encode())


@app.command()
def train(
    plan: o.TrainPlan,
    text: o.Text,
    run: o.Runs = "both",
    seeds: o.Seeds = 1,
    width: o.Width = 192,
    layers: o.Layers = 2,
    heads: o.Heads = 3,
    micro_batch: o.TrainMicroBatch = 32,
    noise_points: o.NoisePoints = 0,
    log_every: o.LogEvery = 1,
    seed: Seed = 0,
    device: Device = "auto",
    dtype: o.TrainDtype = "auto",
    resume: o.Resume = False,
    output: Output = "-",
    force: Force = False,
) -> None:
    """Train a small model on a text: base against plan.

    A byte-level transformer. Writes a JSON record per step, one per run's end with its validation
    loss, and a comparison. With -o it can be resumed. Runs under torchrun. Needs extra `train`.
    """
    from seesaw.train_command import read_inputs, train_to

    made, corpus = read_inputs(plan, text, run)
    need("torch", tool="seesaw", extra="train")
    train_to(
        output,
        plan=made,
        corpus=corpus,
        run=run,
        seeds=range(seed, seed + seeds),
        shape=(width, layers, heads),
        micro_batch=micro_batch,
        noise_points=noise_points,
        log_every=log_every,
        device=device,
        dtype=dtype,
        resume=resume,
        force=force,
    )


@app.command()
def reproduce(
    format: Format = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Compare with the paper's 21 published runs, exactly.

    Steps and tokens of each are planned again. Exits 1 on any mismatch.
    """
    from seesaw.published import reproduce as reproduce_runs

    results = reproduce_runs()
    rows = [result.to_dict() for result in results]
    columns = "model batch beta cosine_steps steps steps_published verdict"
    _write(rows, output, format, force, columns=columns)
    wrong = sum(result.verdict != "yes" for result in results)
    if wrong:
        raise NegativeResult(f"{wrong} of {len(results)} published runs do not come out the same")
    get_logger(__name__).info(f"all {len(results)} published runs come out exactly")


@app.command()
def demo() -> None:
    """Show the paper's claim: fewer steps at the same risk."""
    from seesaw.demo import demo_lines

    for line in demo_lines():
        typer.echo(line)


@app.command()
def bench(
    repeats: o.Repeats = 5,
    format: Format = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Measure planning, reading and simulating here."""
    from papercuts.streams import write_records
    from seesaw.speed import measure

    write_records(measure(repeats), output, format=format, force=force)


def _refuse_beside_a_curve(**given: float | None) -> None:

    for name, value in given.items():
        if value is not None:
            option = name.replace("_", "-")
            raise UsageError(f"--{option} does not go with --base file:, which has its own")


def _write(
    rows: list[dict[str, Any]],
    output: str,
    format: FormatName | None,  # noqa: A002
    force: bool,
    *,
    columns: str,
) -> None:
    """Write records; a table for a person has these columns, the other formats have all."""
    from papercuts.streams import output_format, write_records

    chosen = output_format(output, format)
    if chosen == "table":
        rows = [{name: row[name] for name in columns.split()} for row in rows]
    write_records(rows, output, format=chosen, force=force)


def _read_plan(path: str | None) -> SeesawPlan:
    from papercuts.streams import default_input, read_records
    from seesaw.planfile import from_records

    named = default_input(path, "plan")
    return from_records(read_records(named), named)


def _finish_plan(
    plan: SeesawPlan,
    cbs: float | None,
    cap_batch: int | None,
    plot: str | None,
    format: FormatName | None,  # noqa: A002
    output: str,
    force: bool,
) -> None:
    """Write the rows, say the summary, draw the plot."""
    from papercuts.streams import check_output
    from seesaw.planfile import to_rows
    from seesaw.summary import describe, summarize

    summary = summarize(plan, cbs=cbs, cap_batch=cap_batch)
    check_output(output, force=force)
    if plot is not None:
        from seesaw.plot import plot_plan

        plot_plan(plan, plot, force=force)
    columns = "phase start_token start_step lr batch grad_accum steps"
    _write(to_rows(plan), output, format, force, columns=columns)
    for line in describe(summary):
        get_logger(__name__).info(line)

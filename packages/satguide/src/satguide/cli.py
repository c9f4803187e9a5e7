"""The commands of `satguide`: parse, call, print."""

from __future__ import annotations

import typer

from papercuts.app import App, Device, Force, Format, Jobs, Output, Plot, Ray, Seed
from satguide import options as o
from satguide import train_options as t

app = App(
    "satguide",
    help=(
        "Learn per-variable weights for a family of CNFs, from the solver's own decision counts, "
        "and make a real CDCL solver take fewer decisions on formulas it has never seen."
    ),
    schema="satguide.schema:schema",
)


@app.command()
def gen(
    family: o.Family,
    size: o.Size = None,
    count: o.Count = 1,
    balance: o.Balance = False,
    planted: o.Planted = False,
    compress: o.Compress = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    output: o.GenOutput = "-",
    force: Force = False,
) -> None:
    """Draw formulas of a family, in DIMACS.

    Formula i depends on the seed and i only. Comments above each say how it was drawn; a planted
    state of hitag2 is among them. Without --balance one process draws, unless --jobs asks for more.
    """
    from satguide.families.generate import Plan, draw, sizes_of, write

    plan = Plan(family, sizes_of(size), seed, planted, balance)
    made = draw(plan, count, jobs=jobs)
    write(made, plan, count, output, compress=compress, force=force)


@app.command()
def train(
    source: t.Source,
    output: t.Output,
    log: t.Log = None,
    init: t.Init = None,
    prior: t.Prior = None,
    width: t.Width = None,
    layers: t.Layers = None,
    symmetric: t.Symmetric = False,
    formulas: t.Formulas = 20,
    samples: t.Samples = 24,
    steps: t.Steps = 8,
    minibatch: t.Minibatch = 10,
    iterations: t.Iterations = None,
    minutes: t.Minutes = None,
    lr: t.Lr = 1e-3,
    kl: t.Kl = 0.1,
    sigma: t.Sigma = 0.1,
    latent: t.Latent = 0.0,
    whiten: t.Whiten = False,
    body_lr: t.BodyLr = 1.0,
    centre: t.Centre = False,
    clip: t.Clip = 0.2,
    average: t.Average = 0.9,
    cost: t.Cost = "decisions",
    backend: o.Backend = "clasp",
    polarity: t.Polarity = "persistent",
    limit: t.Limit = None,
    timeout: t.Timeout = None,
    validation: t.Validation = 200,
    validate_every: t.ValidateEvery = 10,
    resume: t.Resume = False,
    plot: Plot = None,
    jobs: Jobs = None,
    ray: Ray = None,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Learn guidance for a family of formulas from what the solver's runs cost.

    The log is JSON Lines, one record an iteration. At the end the network that was best on
    formulas kept for validation is in --output, with its provenance.
    """
    from satguide.costs import Meter
    from satguide.models import origin
    from satguide.trainer import Settings
    from satguide.training import Run, begin_with, default_log
    from satguide.training import train as train_run
    from satguide.watching import watching

    shape, begin = begin_with(
        init, width=width, layers=layers, symmetric=symmetric, whiten=whiten, prior=prior
    )
    settings = Settings(
        shape=shape,
        formulas=formulas,
        samples=samples,
        steps=steps,
        minibatch=minibatch,
        lr=lr,
        sigma=sigma,
        latent=latent,
        whiten=whiten,
        body_lr=body_lr,
        centre=centre,
        clip=clip,
        kl=kl,
        average=average,
        validation=validation,
        seed=seed,
    )
    meter = Meter(backend, cost, polarity, limit, timeout, jobs=jobs, ray=ray)
    if iterations is None and minutes is None:
        iterations = 600
    run = Run(
        output, log or default_log(output), iterations, minutes, validate_every, force, resume,
        plot,
    )  # fmt: skip
    with watching() as watch:
        train_run(
            source, settings, meter, run,
            init=begin, origin=origin(init), prior=prior, watch=watch,
        )  # fmt: skip


@app.command()
def solve(
    model: o.SolveModel = None,
    formula: o.Formula = None,
    no_guide: o.NoGuide = False,
    backend: o.Backend = "clasp",
    polarity: o.Polarity = None,
    timeout: o.SolveTimeout = None,
    conflicts: o.Conflicts = None,
    check: o.Check = False,
    strict: o.Strict = False,
    seed: o.SolveSeed = 0,
    device: Device = "auto",
    output: Output = "-",
    force: Force = False,
) -> None:
    """Solve a formula, guided by a model: DIMACS result lines.

    Exits 10 (satisfiable, with a model that was checked), 20 (unsatisfiable) or 0 (unknown: a
    limit came first). With --no-guide the only argument is the FILE.
    """
    from satguide.solving import Settings, places, run

    named, path = places(model, formula, guided=not no_guide)
    settings = Settings(backend, polarity, seed, timeout, conflicts, check, strict, device)
    code = run(named, path, settings, output, force=force)
    raise typer.Exit(code)


@app.command()
def weights(
    model: o.Model,
    formula: o.Formula = None,
    format: o.WeightsForm = None,  # noqa: A002
    polarity: o.Polarity = None,
    strict: o.Strict = False,
    device: Device = "auto",
    output: Output = "-",
    force: Force = False,
) -> None:
    """Write the weight and the polarity of every variable.

    As records, or as the formula with guidance in comment lines: `cnf-weight` for the paper's
    Glucose, `clasp` for `clingo --mode=clasp --heuristic=Domain --parse-ext`, where --polarity none
    leaves out the sign lines.
    """
    from papercuts.streams import check_output, default_input
    from satguide.weights import look, write

    check_output(output, force=force)
    path = default_input(formula, "formula")
    checkpoint, cnf, guidance = look(model, path, strict=strict, device=device)
    mode = polarity or checkpoint.polarity
    write(output, cnf, guidance, form=format, polarity=mode, model=model, force=force)


@app.command("eval")
def evaluate(
    model: o.Model,
    formulas: o.Formulas = None,
    baseline: o.Baseline = "plain,unit",
    versus: o.Versus = "",
    backend: o.Backend = "clasp",
    polarity: o.Polarity = None,
    limit: o.Limit = None,
    timeout: o.Timeout = None,
    runs: o.Runs = None,
    resume: o.Resume = False,
    plot: Plot = None,
    strict: o.Strict = False,
    seed: Seed = 0,
    jobs: Jobs = None,
    ray: Ray = None,
    format: Format = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Measure guidance against unguided runs.

    One record for the guided runs, each baseline and each solver of --versus. `ratio` is the mean
    decisions of the guided runs over the record's (in the guided record: over the better
    baseline's), with t and p of the paired test. With --jobs 1 no run takes time from another.
    A run that hit a limit counts as the largest number of decisions seen. Exits 1 where two runs
    contradict each other.
    """
    from papercuts.streams import default_input
    from satguide import evaluation_table
    from satguide import versus as others
    from satguide.dimacs import load_many
    from satguide.evaluation import Contest
    from satguide.evaluation_runs import about, kept, tabulate
    from satguide.models import load

    checkpoint = load(model)
    contest = Contest(
        backend,
        tuple(name.strip() for name in baseline.split(",")),
        others.names(versus),
        polarity or checkpoint.polarity,
        limit,
        timeout,
        seed,
        jobs,
        ray,
    )
    evaluation_table.check_outputs(output, runs, plot, resume=resume, force=force)
    source = load_many(default_input(formulas, "formulas"), strict=strict)
    table = evaluation_table.Table(contest, about(model, contest))
    with kept(table, output, runs, format=format, force=force):
        tabulate(checkpoint, source, table, runs=runs, resume=resume, force=force)
    evaluation_table.report(table, output, plot, format=format, force=force)


@app.command()
def explain(
    model: o.Model,
    formulas: o.Formulas = None,
    variables: o.Variables = False,
    backbone: o.Backbone = True,
    timeout: o.ExplainTimeout = None,
    plot: Plot = None,
    strict: o.Strict = False,
    format: Format = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Show what the weights of formulas go with.

    Correlations of log w with the degree, with membership in an unsatisfiable core, and with the
    backbone of a satisfiable formula. Exits 1 where --timeout left a formula open.
    """
    from papercuts.streams import default_input, write_records
    from satguide.dimacs import load_many
    from satguide.explanation import explain_all
    from satguide.models import load
    from satguide.plot import check_plot

    check_plot(plot, force=force)
    source = load_many(default_input(formulas, "formula"), strict=strict)
    records = explain_all(
        load(model), source, variables=variables, backbone=backbone, timeout_s=timeout,
        model=model, plot=plot, force=force,
    )  # fmt: skip
    write_records(records, output, format=format, force=force)


@app.command()
def demo(jobs: Jobs = None) -> None:
    """Show the paper's claim: fewer decisions on formulas never seen."""
    from satguide.demo import demo_lines

    for line in demo_lines(jobs):
        typer.echo(line)


@app.command()
def bench(
    repeats: o.Repeats = 5,
    jobs: Jobs = None,
    format: Format = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Measure solving, training, guiding and reading here."""
    from papercuts.streams import write_records
    from satguide.speed import run

    write_records(run(repeats, jobs), output, format=format, force=force)

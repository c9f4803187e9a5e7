"""The commands of `tierprune`: parse, call, print."""

from __future__ import annotations

import typer

from papercuts.app import App, Force, Format, Jobs, Output, Plot, Seed
from papercuts.errors import NegativeResult
from papercuts.log import get_logger
from tierprune import options as o

app = App(
    "tierprune",
    help=(
        "Which edges does this causal question still need? Given variables in tiers and one "
        "query P(y | do(x), z): prune the graph to it, identify it, and learn only that part "
        "from data."
    ),
    schema="tierprune.schema:schema",
)


@app.command()
def prune(
    tiers: o.TierSpec,
    do: o.Do,
    outcome: o.Outcome,
    graph: o.Graph = None,
    given: o.Given = None,
    from_: o.From = None,
    to: o.To = None,
    explain: o.Explain = False,
    needed_only: o.NeededOnly = False,
    force_tight: o.ForceTight = False,
    plot: Plot = None,
    output: Output = "-",
    force: Force = False,
) -> None:
    """Drop the edges that a query does not need.

    Identifiability and formula stay the same. Writes the graph in the format read. On stderr: the
    rule, how many edges stay, and the variables that are never needed.
    """
    from papercuts.streams import check_output
    from tierprune.formats import converted, write
    from tierprune.plot import check_plot, plot_pruned
    from tierprune.pruning import prune as prune_graph
    from tierprune.question import read_question
    from tierprune.summary import describe_components, describe_pruned

    check_output(output, force=force)
    check_plot(plot, force=force)
    asked = read_question(graph, from_, tiers, do, outcome, given, force_tight=force_tight)
    pruned = prune_graph(asked.graph, asked.tiers, asked.query, force_tight=force_tight)
    if plot is not None:
        plot_pruned(pruned, asked.tiers, asked.query, plot, force=force)
    left = asked.file.restricted(pruned.needed_part() if needed_only else pruned.graph)
    left = left.narrowed(pruned.band.first, pruned.band.last)
    write(converted(left, to or left.format), output, force=force)
    for line in describe_pruned(pruned, asked.query):
        get_logger(__name__).info(line)
    if explain:
        for line in describe_components(asked.graph, asked.tiers, pruned.band):
            get_logger(__name__).info(line)


@app.command("id")
def identify(
    tiers: o.TierSpec,
    do: o.Do,
    outcome: o.Outcome,
    graph: o.Graph = None,
    given: o.Given = None,
    from_: o.From = None,
    full: o.WholeGraph = False,
    as_pag: o.GraphAsPAG = False,
    enumerate_: o.Enumerate = None,
    strict: o.Strict = False,
    force_tight: o.ForceTight = False,
    seed: Seed = 0,
    format: o.AnswerFormat = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Say whether a query is identifiable, and give its formula.

    From the graph that the query needs: the formula holds for the whole. If not identifiable, a
    hedge, which proves it. A graph that was learned is asked for adjustment sets.
    """
    from tierprune.answering import answer, read_graph, write_answer
    from tierprune.learned import known_names
    from tierprune.query import make_query

    file, read = read_graph(graph, from_, tiers)
    query = make_query(do, outcome, given, known_names(file, read))
    found = answer(
        file, read, query, full=full, force_tight=force_tight, enumerate_=enumerate_,
        as_pag=as_pag, seed=seed,
    )  # fmt: skip
    for line in (*found.said, *write_answer(found, output, format=format, force=force)):
        get_logger(__name__).info(line)
    if strict and found.verdict != "yes":
        raise NegativeResult(f"{query}: identifiable: {found.verdict}")


@app.command()
def estimate(
    graph: o.GraphToEstimate,
    data: o.Data,
    tiers: o.TierSpec,
    do: o.DoValues,
    outcome: o.OutcomeValues,
    given: o.GivenValues = None,
    versus: o.Versus = None,
    from_: o.From = None,
    as_pag: o.GraphAsPAG = False,
    enumerate_: o.Enumerate = None,
    bootstrap: o.Bootstrap = 200,
    smooth: o.Smooth = 0.0,
    missing: o.Missing = "error",
    seed: Seed = 0,
    format: Format = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Estimate an identified query from discrete data.

    With a bootstrap interval, and the cell of the formula that has the fewest rows. An outcome
    without a value gives a record for each value. Exits 65, naming the cell, where the formula
    conditions on values that no row has, and 1 where the query is not identified.
    """
    from papercuts.streams import check_output, write_records
    from tierprune.answering import check_one_stdin, describe_records, estimate_file, read_graph

    check_output(output, force=force)
    check_one_stdin(graph=graph, data=data, tiers=tiers)
    file, read = read_graph(graph, from_, tiers)
    found, records = estimate_file(
        file,
        read,
        data,
        do=do,
        outcome=outcome,
        given=given,
        versus=versus,
        as_pag=as_pag,
        enumerate_=enumerate_,
        bootstrap=bootstrap,
        smooth=smooth,
        seed=seed,
        missing=missing,
    )
    write_records(records, output, format=format, force=force)
    for line in (*found.said, *describe_records(records)):
        get_logger(__name__).info(line)


@app.command()
def need(
    tiers: o.TierSpec,
    do: o.Do,
    outcome: o.Outcome,
    given: o.Given = None,
    format: Format = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """List the pairs of variables that a person must still judge.

    Before any graph is drawn: which pairs the query needs, and which kinds of edge the tiers
    allow for each. On stderr: how many are saved.
    """
    from papercuts.streams import write_records
    from tierprune.needed import needed_pairs
    from tierprune.query import make_query
    from tierprune.summary import describe_needed
    from tierprune.tiers import read_tiers

    read = read_tiers(tiers)
    found = needed_pairs(read, make_query(do, outcome, given, read.names))
    write_records((pair.to_dict() for pair in found), output, format=format, force=force)
    for line in describe_needed(found):
        get_logger(__name__).info(line)


@app.command("discover")
def discover_command(
    tiers: o.TierSpec,
    data: o.DiscoverData = None,
    do: o.DoOrAll = None,
    outcome: o.OutcomeOrAll = None,
    given: o.Given = None,
    test: o.IndependenceTest = "fisherz",
    alpha: o.Alpha = 0.01,
    full: o.EveryTier = False,
    compare: o.Compare = False,
    max_cond: o.MaxCond = None,
    missing: o.Missing = "error",
    truth: o.TrueGraph = None,
    plot: Plot = None,
    jobs: Jobs = None,
    format: o.PAGFormat = None,  # noqa: A002
    output: Output = "-",
    resume: o.Resume = False,
    force: Force = False,
) -> None:
    """Learn from data the part of the PAG that a query needs.

    Edges are marked -> (cause), <-> (latent common cause) and o where data cannot tell. On
    stderr: the tiers learned, and what to beware of. --compare needs no --format.
    """
    from papercuts.streams import check_output
    from tierprune import discovered as d
    from tierprune.answering import check_one_stdin
    from tierprune.plot import check_plot
    from tierprune.tiers import read_tiers

    check_one_stdin(data="-" if data is None and truth is None else data, tiers=tiers)
    check_output(output, force=force)
    plan = d.make_plan(
        data, read_tiers(tiers), do, outcome, given, full=full, compare=compare, truth=truth,
        test=test, alpha=alpha, max_cond=max_cond, missing=missing, jobs=jobs, plot=plot,
    )  # fmt: skip
    check_plot(plot, force=force)
    for line in d.answer(plan, compare, output, plot, format=format, force=force, resume=resume):
        get_logger(__name__).info(line)


@app.command()
def simulate(
    tiers: o.Sizes = "5x10",
    samples: o.Samples = 50_000,
    kind: o.Kind = "discrete",
    states: o.States = "2-3",
    max_parents: o.MaxParents = 5,
    max_neighbours: o.MaxNeighbours = 4,
    bidirected: o.Bidirected = 0.3,
    data: o.DataOut = "-",
    truth: o.TruthOut = None,
    tiers_out: o.TiersOut = None,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Draw a random tiered graph and a sample of it, as the paper does.

    V2_1 is the first variable of tier 2. A bidirected edge is simulated by a latent cause, which
    is not in the data.
    """
    from tierprune.simulated import write_simulation
    from tierprune.simulation import read_sizes, read_states

    directed, confounded, place = write_simulation(
        read_sizes(tiers),
        samples=samples,
        seed=seed,
        data=data,
        truth=truth,
        tiers_out=tiers_out,
        kind=kind,
        states=read_states(states),
        max_parents=max_parents,
        max_neighbours=max_neighbours,
        bidirected=bidirected,
        force=force,
    )
    log = get_logger(__name__)
    log.info("%d directed and %d bidirected edges, %d rows", directed, confounded, samples)
    if place is not None:
        log.info("tiers: %s", place)


@app.command("score")
def score_command(
    learned: o.Learned,
    truth: o.Truth,
    tiers: o.TiersIfAny = None,
    do: o.DoOrAll = None,
    outcome: o.OutcomeOrAll = None,
    given: o.Given = None,
    by_tier: o.ByTier = False,
    as_pag: o.AsPAG = False,
    format: Format = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Score a learned graph: precision and recall of edges and marks.

    With --do and --outcome, only the edges that this query needs count.
    """
    from papercuts.streams import write_records
    from tierprune.scoring import score_command_line

    scores = score_command_line(
        learned, truth, tiers, do, outcome, given, by_tier=by_tier, as_it_is=as_pag
    )
    write_records((score.to_dict() for score in scores), output, format=format, force=force)


@app.command()
def check(
    tiers: o.TierSpec,
    data: o.CheckData = None,
    test: o.CheckTest = "fisherz",
    alpha: o.CheckAlpha = 0.05,
    level: o.CheckLevel = 0.01,
    max_cond: o.CheckCond = 4,
    missing: o.Missing = "error",
    format: Format = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Check the data for latent causes of two tiers.

    A record for each edge between tiers. verdict yes: its independences contradict the assumption
    (exit 1); no: they exclude a latent cause; undecided: they cannot tell.
    """
    from papercuts.streams import check_output, output_format, write_records
    from tierprune.answering import check_one_stdin
    from tierprune.assumption import check_file, describe
    from tierprune.summary import finding_row
    from tierprune.tiers import read_tiers

    check_one_stdin(data=data or "-", tiers=tiers)
    check_output(output, force=force)
    findings, tests = check_file(
        data, read_tiers(tiers), test=test, alpha=alpha, level=level, max_cond=max_cond,
        missing=missing,
    )  # fmt: skip
    short = output_format(output, format) == "table"
    records = (finding_row(found) if short else found.to_dict() for found in findings)
    write_records(records, output, format=format, force=force)
    get_logger(__name__).info(describe(findings, tests))
    if any(found.verdict == "yes" for found in findings):
        get_logger(__name__).info("the data contradict the assumption about latent causes")
        raise typer.Exit(1)


@app.command()
def demo() -> None:
    """Show the paper's claim: simulate, prune, identify, learn."""
    from tierprune.demonstration import demo_lines

    for line in demo_lines():
        typer.echo(line)


@app.command()
def bench(
    tiers: o.BenchSizes = "5x8",
    samples: o.Samples = 20_000,
    test: o.BenchTest = "gsq",
    data: o.BenchData = None,
    data_tiers: o.BenchTiers = None,
    repeats: o.Repeats = 3,
    seed: Seed = 0,
    format: Format = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Measure pruning, identifying and learning here."""
    from papercuts.streams import write_records
    from tierprune.speed import measure

    made = measure(tiers, samples, test, data, data_tiers, repeats=repeats, seed=seed)
    write_records(made, output, format=format, force=force)

"""The commands of `bitsched`: parse, call, print."""

from __future__ import annotations

from bitsched import options as o
from papercuts.app import App, Force, Format, Output, Plot, Seed, need
from papercuts.errors import NegativeResult
from papercuts.log import get_logger

app = App(
    "bitsched",
    help=(
        "Plan deterministic attention and other fixed-order reductions: which processor visits "
        "which tile when, in which fixed order partial sums are added, what that costs, and how "
        "far it is from the best possible."
    ),
    schema="bitsched.schema:schema",
)


@app.command()
def plan(
    mask: o.Mask = "full",
    seqlen: o.Seqlen = None,
    block: o.Block = None,
    n: o.Tiles = None,
    stride: o.Stride = 1,
    heads: o.Heads = 1,
    kv_heads: o.KvHeads = None,
    sms: o.Sms = None,
    schedule: o.Schedule = "auto",
    assign: o.Assign = None,
    reverse_sums: o.ReverseSums = False,
    c: o.C = 5.0,
    r: o.R = 1.0,
    latency: o.Latency = None,
    partitions: o.Partitions = 2,
    register_penalty: o.RegisterPenalty = 0.0,
    join_latency: o.JoinLatency = 0.0,
    time_limit: o.TimeLimit = 60.0,
    seed: Seed = 0,
    output: Output = "-",
    force: Force = False,
) -> None:
    """Plan a backward pass: JSON Lines, one SM a line.

    Each line lists the tiles of an SM in order, as [head, KV tile, Q tile, rank]: it is the
    rank-th share that is added to dQ of this head and Q tile.
    """
    from bitsched.costs import make_costs
    from bitsched.masks import make_shape
    from bitsched.planfile import write_plan
    from bitsched.planning import make_plan, notes
    from papercuts.streams import check_output

    check_output(output, force=force)
    shape = make_shape(
        mask, seqlen=seqlen, block=block, n=n, stride=stride, heads=heads, kv_heads=kv_heads
    )
    costs = make_costs(c, r, latency, partitions, register_penalty, join_latency)
    made = make_plan(
        shape,
        schedule,
        sms,
        costs,
        assign=assign,
        reverse_sums=reverse_sums,
        time_limit_s=time_limit,
        seed=seed,
    )
    for note in notes(made):
        get_logger(__name__).info(note)
    write_plan(made, output, force=force)
    if made.about.get("proved") is False:
        raise NegativeResult(f"not proved to be the optimum within {time_limit:g} s")


@app.command()
def sim(
    plan: o.PlanFile = None,
    c: o.C = 5.0,
    r: o.R = 1.0,
    latency: o.Latency = None,
    partitions: o.Partitions = 2,
    register_penalty: o.RegisterPenalty = 0.0,
    join_latency: o.JoinLatency = 0.0,
    head_barrier: o.HeadBarrier = False,
    assign: o.Redeal = None,
    show: o.Show = "summary",
    format: Format = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Run a plan in the model: makespan, idle time, gap to the bound.

    An SM computes a tile (--c), waits for its turn, adds its share (--r), and takes the next.
    Exits 1 when tiles wait for one another for ever, with their names.
    """
    from bitsched.assignment import redealt
    from bitsched.costs import make_costs
    from bitsched.planfile import read_plan
    from bitsched.simulation import DeadlockError, simulate
    from bitsched.summary import deadlocked, records
    from papercuts.streams import check_output, default_input, write_records

    check_output(output, force=force)
    costs = make_costs(c, r, latency, partitions, register_penalty, join_latency)
    read = read_plan(default_input(plan, "plan"))
    try:
        read = redealt(read, assign, costs) if assign else read
        run = simulate(read, costs, head_barrier=head_barrier)
    except DeadlockError as error:
        write_records([deadlocked(read, error, costs)], output, format=format, force=force)
        raise
    write_records(records(read, run, costs, show), output, format=format, force=force)


@app.command()
def gantt(
    plan: o.PlanFile = None,
    c: o.C = 5.0,
    r: o.R = 1.0,
    latency: o.Latency = None,
    partitions: o.Partitions = 2,
    register_penalty: o.RegisterPenalty = 0.0,
    join_latency: o.JoinLatency = 0.0,
    head_barrier: o.HeadBarrier = False,
    kind: o.ChartKind = None,
    width: o.ChartWidth = None,
    unit: o.Unit = "",
    output: Output = "-",
    force: Force = False,
) -> None:
    """Draw a plan's run: SVG, or text for a terminal.

    Compute and reduce, the wait for the turn in a sum, idle time, and the critical path.
    """
    from bitsched.costs import make_costs
    from bitsched.gantt import draw, plan_timeline
    from bitsched.planfile import read_plan
    from bitsched.simulation import simulate
    from papercuts.streams import check_output, default_input

    check_output(output, force=force)
    costs = make_costs(c, r, latency, partitions, register_penalty, join_latency)
    read = read_plan(default_input(plan, "plan"))
    run = simulate(read, costs, head_barrier=head_barrier)
    chart = plan_timeline(read, run, unit=unit)
    draw(chart, output, kind=kind, width=width, force=force)


@app.command()
def check(
    plan: o.PlanFile = None,
    strict: o.Strict = False,
    format: Format = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Check a plan: tiles, chains, order, deadlock, lemma.

    Exits 1 when it is not whole, not deterministic or cannot run, or breaks the lemma (two SMs
    add to one dQ tile at the same step) though it was made not to.
    """
    from bitsched.checking import check as check_plan
    from bitsched.checking import faults
    from bitsched.planfile import read_plan
    from papercuts.streams import check_output, default_input, output_format, write_records

    check_output(output, force=force)
    read = read_plan(default_input(plan, "plan"))
    findings = check_plan(read)
    chosen = output_format(output, format)
    rows = [f.to_dict(lists=chosen == "json") for f in findings]
    write_records(rows, output, format=chosen, force=force)
    wrong = faults(read, findings, strict=strict)
    if wrong:
        raise NegativeResult("; ".join(f.message for f in wrong))


@app.command()
def compare(
    mask: o.GridMask = "causal",
    n: o.GridTiles = None,
    heads: o.GridHeads = "2..16",
    sms: o.Sms = None,
    block: o.GridBlock = None,
    fixed_tokens: o.FixedTokens = False,
    c: o.C = 5.0,
    r: o.R = 1.0,
    latency: o.Latency = None,
    partitions: o.Partitions = 2,
    register_penalty: o.RegisterPenalty = 0.0,
    join_latency: o.JoinLatency = 0.0,
    plot: Plot = None,
    format: Format = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Compare all schedules over a grid of shapes, in the model."""
    from bitsched.comparing import compare as compare_all
    from bitsched.comparing import read_sizes
    from bitsched.costs import make_costs
    from bitsched.plot import check_plot, plot_comparison
    from papercuts.streams import check_output, write_records

    check_plot(plot, force=force)
    check_output(output, force=force)
    costs = make_costs(c, r, latency, partitions, register_penalty, join_latency)
    sizes = read_sizes(mask, n, heads, block, fixed_tokens=fixed_tokens)
    made = compare_all(mask, *sizes, costs, sms=sms, block=block, fixed_tokens=fixed_tokens)
    rows = list(made) if plot else made
    write_records(rows, output, format=format, force=force)
    if plot:
        plot_comparison(list(rows), costs, plot, force=force)


@app.command()
def fit(
    timings: o.Timings = None,
    latency: o.FitLatency = "join",
    tolerance: o.Tolerance = None,
    format: Format = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Fit c, r and a latency to measured times.

    Least squares of the relative errors, with the simulator as the model.
    """
    from bitsched.fitting import fit as fit_costs
    from bitsched.fitting import read_timings
    from papercuts.streams import check_output, default_input, write_records

    check_output(output, force=force)
    found = fit_costs(read_timings(default_input(timings, "file of timings")), latency)
    write_records(found.records(), output, format=format, force=force)
    get_logger(__name__).info(found.sentence())
    if tolerance is not None and found.worst > tolerance:
        raise NegativeResult(f"largest relative error {found.worst:.3f}, above {tolerance:g}")


@app.command()
def export(
    plan: o.PlanFile = None,
    form: o.ExportForm = "c-header",
    output: Output = "-",
    force: Force = False,
) -> None:
    """Write a plan as tables that a kernel includes or loads."""
    from bitsched.exporting import export_plan, loading_line, warnings
    from bitsched.planfile import read_plan
    from papercuts.streams import check_output, default_input, open_output

    check_output(output, force=force)
    read = read_plan(default_input(plan, "plan"))
    for warning in warnings(read):
        get_logger(__name__).warning(warning)
    data = export_plan(read, form)
    with open_output(output, force=force) as out:
        out.write(data)
    get_logger(__name__).info(f"to load it: {loading_line(form, output)}")


@app.command()
def prove(
    n: o.ProveTiles = 6,
    heads: o.ProveHeads = 2,
    mask: o.ProveMask = "causal",
    sms: o.Sms = None,
    c: o.C = 5.0,
    r: o.R = 1.0,
    from_scratch: o.FromScratch = False,
    time_limit: o.TimeLimit = 60.0,
    seed: Seed = 0,
    format: Format = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Prove the least makespan of all schedules (extra `exact`).

    A constraint solver looks for a faster schedule than the named ones, and proves that there is
    none: compared with the paper's closed form. Exits 1 where the time limit comes first, with
    the best makespan and the bound.
    """
    from bitsched.costs import make_costs
    from bitsched.proving import prove as prove_optimum
    from papercuts.streams import check_output, write_records

    check_output(output, force=force)
    proof, _ = prove_optimum(
        n, heads, mask, make_costs(c, r), processors=sms, from_scratch=from_scratch,
        time_limit_s=time_limit, seed=seed,
    )  # fmt: skip
    write_records([proof.to_dict()], output, format=format, force=force)
    if proof.verdict != "yes":
        raise NegativeResult(f"not proved within {time_limit:g} s: {proof.sentence()}")
    get_logger(__name__).info(proof.sentence())


@app.command()
def bits(
    plan: o.BitsPlan = None,
    seqlen: o.BitsSeqlen = None,
    block: o.BitsBlock = "64",
    width: o.Width = 64,
    mask: o.Mask = "causal",
    heads: o.Heads = 2,
    kv_heads: o.KvHeads = None,
    sms: o.Sms = None,
    schedule: o.BitsSchedules = None,
    dtype: o.BitsDtype = "fp32",
    threads: o.Threads = 8,
    runs: o.Runs = 50,
    delay_us: o.DelayUs = 200.0,
    seed: Seed = 0,
    format: Format = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Run a backward pass again and again, and compare the bits (extra `torch`).

    Real gradients on real threads with random delays, one record for each plan: how many results
    differ, by how much, and how far they are from torch's autograd. Exits 1 where a plan with an
    order gives two results, is not valid, or its gradients are wrong.
    """
    need("torch", tool="bitsched", extra="torch")
    from bitsched.bits import compare_all, plans_to_run
    from papercuts.streams import check_output, write_records

    check_output(output, force=force)
    plans = plans_to_run(plan, schedule, mask, seqlen, block, heads, kv_heads, sms, seed)
    compared = compare_all(
        plans, seqlen=seqlen, width=width, dtype=dtype, threads=threads, runs=runs,
        delay_us=delay_us, seed=seed,
    )  # fmt: skip
    write_records([one.to_dict() for one in compared], output, format=format, force=force)
    wrong = [one.fault for one in compared if one.fault]
    if wrong:
        raise NegativeResult("; ".join(wrong))


@app.command()
def graph(
    tasks: o.TasksFile = None,
    processors: o.Processors = None,
    schedule: o.GraphSchedule = "list",
    each: o.EachTask = False,
    gantt: o.Gantt = None,
    format: Format = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Schedule and simulate any graph of tasks and sums.

    Keys of a task: id, duration, reduce, into (the sum it adds to), after (tasks or sums that
    must have ended), processor. Split-K, scatter-add, tree merges.
    """
    from bitsched.gantt import draw
    from bitsched.graphcommand import run_graph
    from bitsched.tasklist import read_tasks
    from papercuts.streams import check_output, default_input, write_records

    for path in (output, gantt) if gantt else (output,):
        check_output(path, force=force)
    run = run_graph(read_tasks(default_input(tasks, "file of tasks")), schedule, processors)
    if gantt != "-":
        rows = run.task_records() if each else [run.summary()]
        write_records(rows, output, format=format, force=force)
    if gantt:
        draw(run.timeline(), gantt, force=force)


@app.command()
def demo() -> None:
    """Show the paper's claim: determinism need not cost time."""
    from bitsched.demonstration import demo_lines
    from papercuts.streams import open_output

    with open_output("-") as out:
        for line in demo_lines():
            out.write(f"{line}\n".encode())


@app.command()
def bench(
    size: o.BenchTasks = 1_000_000,
    repeats: o.Repeats = 5,
    format: Format = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Measure planning and simulation on this machine."""
    from bitsched.speed import measure
    from papercuts.streams import write_records

    write_records(measure(size, repeats), output, format=format, force=force)

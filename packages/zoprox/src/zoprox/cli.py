"""The commands of `zoprox`: parse, call, print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from papercuts.app import App, Force, Format, Output, Seed, need
from zoprox import options as o

if TYPE_CHECKING:
    from zoprox.targets import Target

app = App(
    "zoprox",
    help=(
        "Draw samples from exp(-f) by values of f alone: no gradient, no prior, hard constraints "
        "and several modes allowed, in up to about 10 dimensions, with a number of evaluations "
        "that is known in advance."
    ),
    schema="zoprox.schema:schema",
)


@app.command()
def sample(
    target: o.Target = None,
    expr: o.Expression = None,
    exec_: o.Command = None,
    exec_mode: o.ExecMode = "batch",
    chunk: o.Chunk = None,
    log_density: o.LogDensity = False,
    *,
    dim: o.Dim,
    particles: o.Particles = 100,
    step: o.Step = "auto",
    rounds: o.Rounds = 100,
    sub: o.SubSteps = 10,
    mc: o.Draws = 1000,
    beta_min: o.BetaMin = 0.0,
    method: o.Method = "ensemble",
    start: o.Start = None,
    bounds: o.Bounds = None,
    keep: o.Keep = 10,
    correct: o.Correct = True,
    seed: Seed = 0,
    jobs: o.Jobs = None,
    timeout: o.Timeout = None,
    device: o.Device = None,
    dtype: o.Dtype = "auto",
    resume: o.Resume = False,
    plot: o.Plot = None,
    format: o.DrawsFormat = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Draw from exp(-f), f a Python function, a formula or a command.

    The draws are the particles of the last --keep rounds. Evaluations: K T N M for the rounds,
    N M + N for each kept round that is corrected, and a pilot for --step auto (see budget).
    Exits 1 when the weights rested on too few points in the last ten rounds.
    """
    from zoprox.sampling_command import Request, make_settings, run

    settings, auto = make_settings(
        step, particles=particles, dim=dim, sub_steps=sub, draws=mc, rounds=rounds,
        smallest=beta_min, seed=seed, method=method,
    )  # fmt: skip
    asked = _target(
        target, expr, exec_, exec_mode, chunk, jobs, timeout, device, dtype,
        log_density=log_density,
    )  # fmt: skip
    run(
        Request(
            asked, settings, auto=auto, start=start, bounds=bounds, keep=keep, correct=correct,
            resume=resume, output=output, force=force, format_name=format, plot=plot,
        )
    )  # fmt: skip


@app.command()
def uniform(
    inside: o.Inside = None,
    target: o.TestTarget = None,
    expr: o.TestExpression = None,
    exec_: o.TestCommand = None,
    exec_mode: o.ExecMode = "batch",
    chunk: o.Chunk = None,
    *,
    dim: o.Dim,
    particles: o.Particles = 100,
    step: o.Step = "auto",
    rounds: o.Rounds = 100,
    sub: o.SubSteps = 10,
    mc: o.Draws = 1000,
    beta_min: o.BetaMin = 0.0,
    method: o.Method = "ensemble",
    start: o.Start = None,
    bounds: o.BoxBounds = None,
    keep: o.Keep = 10,
    correct: o.Correct = True,
    seed: Seed = 0,
    jobs: o.Jobs = None,
    timeout: o.Timeout = None,
    device: o.Device = None,
    dtype: o.Dtype = "auto",
    resume: o.Resume = False,
    plot: o.Plot = None,
    format: o.DrawsFormat = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Draw uniformly from a set that is known by a test alone.

    Also estimates the volume of the set, on stderr and in the draws' provenance. The start should
    touch the set: particles that see no point of it stay where they are.
    """
    from zoprox.sampling_command import Request, make_settings, run

    settings, auto = make_settings(
        step, particles=particles, dim=dim, sub_steps=sub, draws=mc, rounds=rounds,
        smallest=beta_min, seed=seed, method=method,
    )  # fmt: skip
    asked = _target(
        target, expr, exec_, exec_mode, chunk, jobs, timeout, device, dtype,
        inside=True, guess=inside, dim=dim,
    )  # fmt: skip
    run(
        Request(
            asked, settings, auto=auto, start=start, bounds=bounds, keep=keep, correct=correct,
            resume=resume, output=output, force=force, format_name=format, plot=plot,
        )
    )  # fmt: skip


@app.command()
def diag(
    draws: o.DrawsFiles = None,
    ref: o.Reference = None,
    format: Format = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Diagnose draws: ESS, R-hat, MCSE, and distances to a reference.

    One record for each coordinate and one for all of them.
    """
    from papercuts.streams import check_output, default_input, write_records

    check_output(output, force=force)
    files = draws or [default_input(None, "file of draws")]
    from zoprox.diagnosis import diagnose  # takes a second, as arviz does

    write_records(diagnose(files, ref), output, format=format, force=force)


@app.command()
def budget(
    target: o.Target = None,
    expr: o.Expression = None,
    exec_: o.Command = None,
    exec_mode: o.ExecMode = "batch",
    chunk: o.Chunk = None,
    log_density: o.LogDensity = False,
    *,
    dim: o.Dim,
    particles: o.Particles = 100,
    step: o.Step = "auto",
    rounds: o.Rounds = 100,
    sub: o.SubSteps = 10,
    mc: o.Draws = 1000,
    method: o.Method = "ensemble",
    start: o.Start = None,
    bounds: o.Bounds = None,
    keep: o.Keep = 10,
    correct: o.Correct = True,
    seed: Seed = 0,
    jobs: o.Jobs = None,
    timeout: o.Timeout = None,
    format: Format = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Count the evaluations of a run before it starts.

    With a target, one batch of it is timed, and the seconds that the run will spend in it are
    estimated.
    """
    from papercuts.streams import check_output, write_records
    from zoprox.budgeting import budget as budget_of
    from zoprox.sampling_command import Request, make_settings

    check_output(output, force=force)
    settings, auto = make_settings(
        step, particles=particles, dim=dim, sub_steps=sub, draws=mc, rounds=rounds, seed=seed,
        method=method,
    )  # fmt: skip
    asked = _target(
        target, expr, exec_, exec_mode, chunk, jobs, timeout, None, "auto",
        log_density=log_density, optional=True,
    )  # fmt: skip
    request = Request(
        asked, settings, auto=auto, start=start, bounds=bounds, keep=keep, correct=correct
    )
    write_records(budget_of(request), output, format=format, force=force)


@app.command()
def demo(
    plot: o.Plot = None,
    seed: Seed = 0,
    format: Format = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Show the paper's claim on its mixture of a Gaussian and a Laplace.

    From a start in one place the method reaches both in about a hundred rounds; without
    interaction, and with rejection, it takes far longer.
    """
    from papercuts.streams import check_output, write_records
    from zoprox.demo import demo as show

    check_output(output, force=force)
    write_records(show(seed=seed, plot=plot, force=force), output, format=format, force=force)


@app.command()
def bench(
    repeats: o.BenchRepeats = 5,
    format: Format = None,  # noqa: A002
    output: Output = "-",
    force: Force = False,
) -> None:
    """Measure the sampler on this machine, against bare numpy."""
    from papercuts.streams import check_output, write_records
    from zoprox.speed import bench as measure

    check_output(output, force=force)
    write_records(measure(repeats=repeats), output, format=format, force=force)


def _target(
    target: str | None,
    expr: str | None,
    command: str | None,
    mode: Any,
    chunk: int | None,
    jobs: int | None,
    timeout: float | None,
    device: str | None,
    dtype: str,
    *,
    log_density: bool = False,
    inside: bool = False,
    guess: str | None = None,
    dim: int = 1,
    optional: bool = False,
) -> Target:
    """Gather what the options say of the target, and refuse what does not go together."""
    from papercuts.errors import UsageError
    from zoprox.targets import Target, guessed

    asked = Target(
        target, expr, command, inside, log_density, jobs, timeout, mode, chunk, device, dtype
    )
    if guess is not None:
        if asked.name:
            raise UsageError("--inside names the test already: leave --target, --expr, --exec out")
        asked = guessed(guess, dim, asked)
    if asked.name or not optional:
        asked.checked()
    if asked.command is None and (mode != "batch" or chunk is not None):
        raise UsageError("--exec-mode and --chunk are for a command (--exec)")
    own = asked.target is not None and not asked.target.startswith("bench:")
    if timeout is not None and (device is not None or not (own or asked.command)):
        raise UsageError("--timeout is for a command (--exec) or a function in numpy (--target)")
    if device is not None:
        if not own:
            raise UsageError("--device is for a function of tensors (--target FILE.py:NAME)")
        need("torch", tool="zoprox", extra="torch")
    elif dtype != "auto":
        raise UsageError("--dtype needs --device")
    return asked

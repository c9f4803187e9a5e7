"""The options and arguments of the commands, each described once."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="FILE.py:NAME",
        help="The target f = -log density (up to a constant), as a Python function: of all points "
        "[n, dim] to n values, or of one point to one. bench:NAME is one that ships with this "
        "tool.",
    ),
]
Expression = Annotated[
    str | None,
    typer.Option(
        "--expr",
        metavar="EXPRESSION",
        help="The target as a formula: x1 to xD (or x[0] on) are the coordinates, x is the whole "
        "point, as in 'sum(x**2)/2'.",
    ),
]
Command = Annotated[
    str | None,
    typer.Option(
        "--exec",
        metavar="COMMAND",
        help="The target as a command, run without a shell: it reads a point a line (coordinates "
        "with a space between) and prints a number a line.",
    ),
]
ExecMode = Annotated[
    Literal["batch", "stream"],
    typer.Option(
        "--exec-mode",
        help="batch: each piece of the points goes to a new process, which may answer when its "
        "input ends. stream: processes stay, and print every answer at once (flushed): for those "
        "that are slow to start.",
    ),
]
Chunk = Annotated[
    int | None,
    typer.Option(
        "--chunk",
        metavar="N",
        min=1,
        help="Points that a process of --exec gets at once. Default: a sixteenth of those asked "
        "for, between 100 and 5000.",
    ),
]
LogDensity = Annotated[
    bool, typer.Option("--log-density", help="The target gives log density, not f = -log density.")
]
Inside = Annotated[
    str | None,
    typer.Option(
        "--inside",
        metavar="TEST",
        help="The set, by a test that says 1 or 0 (true or false) for a point: FILE.py:NAME, an "
        "expression such as 'sum(x**2) < 1', or else a command. --target, --expr and --exec name "
        "it without a guess.",
    ),
]
TestTarget = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="FILE.py:NAME",
        help="The test as a Python function: of all points [n, dim] to n values, or of one point "
        "to one.",
    ),
]
TestExpression = Annotated[
    str | None,
    typer.Option("--expr", metavar="EXPRESSION", help="The test as a formula (see sample)."),
]
TestCommand = Annotated[
    str | None,
    typer.Option(
        "--exec",
        metavar="COMMAND",
        help="The test as a command that reads a point a line and prints 1 or 0 a line.",
    ),
]
Dim = Annotated[
    int, typer.Option("--dim", metavar="D", min=1, help="Coordinates of a point; about 10 at most.")
]
Particles = Annotated[
    int,
    typer.Option("-n", "--particles", metavar="N", min=1, help="Particles that move together."),
]
Step = Annotated[
    str,
    typer.Option(
        "--step",
        metavar="H|auto",
        help="The step h: variance of a round's noise, in squared units of x (of the free "
        "coordinates under --bounds). auto: found by a short pilot.",
    ),
]
Rounds = Annotated[int, typer.Option("--rounds", metavar="K", min=1, help="Rounds to run.")]
SubSteps = Annotated[
    int, typer.Option("--sub", metavar="T", min=1, help="Denoising sub-steps of a round.")
]
Draws = Annotated[
    int,
    typer.Option("--mc", metavar="M", min=1, help="Monte Carlo draws of a particle and sub-step."),
]
BetaMin = Annotated[
    float,
    typer.Option("--beta-min", metavar="B", min=0, help="Variance at which the reverse path ends."),
]
Method = Annotated[
    Literal["ensemble", "single", "rejection"],
    typer.Option(
        "--method",
        help="ensemble: the paper's. single: no interaction, each particle a chain of its own. "
        "rejection: proximal sampling with exact rejection (needs f >= 0), at most T M tries.",
    ),
]
Start = Annotated[
    str | None,
    typer.Option(
        "--start",
        metavar="FILE|normal[:SCALE]",
        help="First particles: of a file of draws, or normal with this standard deviation "
        "(under --bounds, of the free coordinates). Default: normal; for `uniform --bounds`, "
        "uniform in the box.",
    ),
]
Bounds = Annotated[
    str | None,
    typer.Option(
        "--bounds",
        metavar="FILE|LOW,HIGH",
        help="Bounds: low,high a row, one for each coordinate (empty or inf: none), or the same "
        "for all. The target sees points inside only; the change of variables is accounted for.",
    ),
]
BoxBounds = Annotated[
    str | None,
    typer.Option(
        "--bounds",
        metavar="FILE|LOW,HIGH",
        help="A box that holds the set: low,high a row, one for each coordinate, or the same for "
        "all. Points outside it are not in the set, and the test is not asked about them.",
    ),
]
Keep = Annotated[
    int,
    typer.Option(
        "--keep", metavar="R", min=1, help="Rounds at the end whose particles are the draws."
    ),
]
Correct = Annotated[
    bool,
    typer.Option(
        "--correct/--no-correct",
        help="Correct the kept rounds: an independence step with M proposals a particle, which "
        "removes the Monte Carlo bias (variances a few per cent too high).",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        metavar="N",
        min=1,
        help="Processes: of --exec (default: the cores this process may use), or of a --target "
        "(default: 1). Draws do not depend on it.",
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        metavar="S",
        min=0.001,
        help="Seconds that the target may take for what it is given at once. Default: no limit.",
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="auto|cpu|cuda|mps",
        help="Run in torch on this device; the --target is then a function of tensors (extra "
        "`torch`). Default: numpy.",
    ),
]
Dtype = Annotated[
    Literal["auto", "fp32", "fp64"],
    typer.Option("--dtype", help="Numbers of --device. auto: fp64 where the device has it."),
]
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Go on from the rounds that an earlier run left in OUTPUT.part."),
]
DrawsFormat = Annotated[
    Literal["csv", "npy", "json", "netcdf"] | None,
    typer.Option(
        "--format",
        help="Of the draws; json is JSON Lines, netcdf is ArviZ's InferenceData. Default: by the "
        "suffix of --output (.csv, .npy, .jsonl, .nc; else csv), on stdout json.",
    ),
]
Plot = Annotated[
    str | None,
    typer.Option(
        "--plot", metavar="FILE", help="Also draw the result into this .png or .svg file."
    ),
]
DrawsFiles = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="DRAWS...",
        help="Draws as csv, npy, JSON Lines or netcdf; - or nothing reads stdin. Several are "
        "runs of one target.",
    ),
]
Reference = Annotated[
    str | None,
    typer.Option(
        "--ref",
        metavar="FILE",
        help="Reference draws: adds kNN KL, sliced W2, MMD, and errors of means and deviations.",
    ),
]
BenchRepeats = Annotated[
    int, typer.Option("--repeats", metavar="N", min=1, help="Times to measure.")
]
BudgetDim = Annotated[
    int | None, typer.Option("--dim", metavar="D", min=1, help="Coordinates; needed with a target.")
]

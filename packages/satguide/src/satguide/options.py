"""The options and arguments of the commands, each described once."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

Model = Annotated[
    str,
    typer.Argument(metavar="MODEL", help="A checkpoint: a file, or 3sat, 3col, hitag2 (bundled)."),
]
Backend = Annotated[
    str,
    typer.Option(
        "--backend", metavar="NAME", help="clasp, a solver of python-sat, or exec:COMMAND."
    ),
]
Polarity = Annotated[
    Literal["persistent", "none"] | None,
    typer.Option(
        "--polarity",
        help="Whether the solver is told which value to try first. Default: as in training.",
    ),
]
Formula = Annotated[
    str | None,
    typer.Argument(metavar="FILE", help="Formula in DIMACS CNF; - or nothing reads stdin."),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict", help="Refuse a formula whose header miscounts or whose last clause is open."
    ),
]
WeightsForm = Annotated[
    Literal["json", "csv", "cnf-weight", "clasp"] | None,
    typer.Option(
        "--format",
        help="Records, or the CNF with `c weight` or `c heuristic` lines. Default: json.",
    ),
]
Family = Annotated[
    str,
    typer.Argument(
        metavar="FAMILY",
        help="3sat, 3col, hitag2, or 'cnfgen:FAMILY ARGS' in cnfgen's words with {size}, "
        "{2*size+1} or {seed} in them, as in 'cnfgen:php {size+1} {size}'.",
    ),
]
Size = Annotated[
    str | None,
    typer.Option(
        "--size",
        metavar="N[,N...]",
        help="Variables (3sat), vertices (3col), known bits of 48 (hitag2), {size} (cnfgen); "
        "several take turns.",
    ),
]
Count = Annotated[int, typer.Option("--count", metavar="K", min=0, help="Formulas to draw.")]
Balance = Annotated[
    bool,
    typer.Option(
        "--balance", help="As many satisfiable as unsatisfiable ones: each formula is solved."
    ),
]
Planted = Annotated[
    bool,
    typer.Option("--planted", help="hitag2: the known bits are those of a state (satisfiable)."),
]
Compress = Annotated[
    Literal["gz", "xz", "zst"] | None,
    typer.Option("--compress", help="Compress the files in a folder."),
]
GenOutput = Annotated[
    str,
    typer.Option(
        "-o",
        "--output",
        metavar="DIR|FILE.cnf|-",
        help="A folder for one file a formula; a .cnf file or stdout takes them in a row.",
    ),
]
Formulas = Annotated[
    str | None,
    typer.Argument(
        metavar="DIR|FILE",
        help="A folder of .cnf files, or formulas in a row; - or nothing reads stdin.",
    ),
]
Baseline = Annotated[
    str,
    typer.Option(
        "--baseline",
        metavar="plain,unit",
        help="Unguided runs of the same solver: its own VSIDS, and all w = 1, p = 1.",
    ),
]
Versus = Annotated[
    str,
    typer.Option(
        "--versus",
        metavar="NAME,...",
        help="Solvers of python-sat to compare with: cadical195,kissat404,glucose4,minisat22,...",
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit",
        metavar="N",
        min=1,
        max=2**31 - 1,
        help="Conflicts after which a guided or baseline run ends.",
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout", metavar="S", min=0.001, max=1e8, help="Seconds after which any run ends."
    ),
]
Runs = Annotated[
    str | None,
    typer.Option(
        "--runs",
        metavar="FILE.jsonl",
        help="Also write one record a formula into this file, as they come.",
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with the file of --runs that was cut short.")
]
Variables = Annotated[
    bool, typer.Option("--variables", help="Print one record a variable instead.")
]
Backbone = Annotated[
    bool,
    typer.Option(
        "--backbone/--no-backbone", help="Whether to find the backbone of satisfiable formulas."
    ),
]
ExplainTimeout = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        metavar="S",
        min=0.001,
        max=1e8,
        help="Seconds for the core or backbone of a formula.",
    ),
]
SolveModel = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL", help="A checkpoint, as for `weights`; left out with --no-guide."
    ),
]
NoGuide = Annotated[
    bool, typer.Option("--no-guide", help="Solve without a model: the solver alone.")
]
SolveTimeout = Annotated[
    float | None,
    typer.Option(
        "--timeout", metavar="S", min=0.001, max=1e8, help="Seconds for it all, reading included."
    ),
]
Conflicts = Annotated[
    int | None,
    typer.Option(
        "--conflicts", metavar="N", min=1, max=2**31 - 1, help="Conflicts after which to give up."
    ),
]
Check = Annotated[
    bool, typer.Option("--check", help="Ask a second solver before saying unsatisfiable.")
]
SolveSeed = Annotated[
    int, typer.Option("--seed", help="Seed of clasp's random choices.", min=0, max=2**31 - 2)
]
Repeats = Annotated[
    int, typer.Option("--repeats", min=1, help="Times to measure; the median is reported.")
]

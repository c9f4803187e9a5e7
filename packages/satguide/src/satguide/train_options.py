"""The options of `satguide train`, by the names that `cli.py` gives them."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE", help="A folder of CNFs, or gen:FAMILY:SIZE[,SIZE...] (gen:3sat:100)."
    ),
]
Output = Annotated[
    str, typer.Option("-o", "--output", metavar="FILE", help="The checkpoint (.safetensors).")
]
Log = Annotated[
    str | None,
    typer.Option("--log", metavar="FILE", help="The log. Default: --output with .jsonl."),
]
Init = Annotated[
    str | None,
    typer.Option(
        "--init",
        metavar="MODEL",
        help="Begin with this checkpoint's network (not with --width, --layers, --symmetric, "
        "--whiten, --prior).",
    ),
]
Prior = Annotated[
    str | None,
    typer.Option(
        "--prior",
        metavar="FILE|FOLDER",
        help="Fit the network to these weights first: records as `weights` writes them, one file "
        "for all formulas, or NAME.jsonl for every NAME.cnf.",
    ),
]
Width = Annotated[
    int | None, typer.Option("--width", min=1, help="Features of a node. Default: 32.")
]
Layers = Annotated[
    int | None, typer.Option("--layers", min=0, help="Rounds of messages. Default: 4.")
]
Symmetric = Annotated[
    bool,
    typer.Option(
        "--symmetric/--no-symmetric",
        help="Negating a variable turns its polarity, by construction.",
    ),
]
Formulas = Annotated[int, typer.Option("--formulas", min=1, help="Formulas an iteration (N).")]
Samples = Annotated[int, typer.Option("--samples", min=2, help="Settings a formula (M).")]
Steps = Annotated[int, typer.Option("--steps", min=1, help="Gradient steps an iteration.")]
Minibatch = Annotated[int, typer.Option("--minibatch", min=1, help="Formulas a gradient step.")]
Iterations = Annotated[
    int | None,
    typer.Option("--iterations", min=1, help="Stop here. Default: 600, with --minutes no end."),
]
Minutes = Annotated[
    float | None, typer.Option("--minutes", min=0, help="Stop after this time of training.")
]
Lr = Annotated[float, typer.Option("--lr", min=0, help="Learning rate, after 5 warm-up rounds.")]
Kl = Annotated[float, typer.Option("--kl", min=0, help="Weight beta of the KL penalty.")]
Sigma = Annotated[float, typer.Option("--sigma", min=1e-6, help="Spread of log w while sampling.")]
Latent = Annotated[
    float,
    typer.Option(
        "--latent",
        min=0,
        max=0.99,
        help="Share of the noise that moves variables together which look alike to the network.",
    ),
]
Whiten = Annotated[
    bool,
    typer.Option(
        "--whiten/--no-whiten", help="Begin with a read-out of whitened features (not with --init)."
    ),
]
BodyLr = Annotated[
    float,
    typer.Option(
        "--body-lr", min=0, help="Learning rate of what is under the read-out, as a share of --lr."
    ),
]
Centre = Annotated[
    bool,
    typer.Option("--centre/--no-centre", help="Take the mean of each formula's log w away."),
]
Clip = Annotated[float, typer.Option("--clip", min=0, help="Clip range epsilon of the ratio.")]
Average = Annotated[
    float,
    typer.Option(
        "--average",
        min=0,
        max=0.999,
        help="Validate the running mean of the network, with this decay; 0: the network itself.",
    ),
]
Polarity = Annotated[
    Literal["persistent", "none"],
    typer.Option("--polarity", help="Whether to learn which value to try first, or weights only."),
]
Cost = Annotated[
    Literal["decisions", "conflicts", "time"],
    typer.Option("--cost", help="What to make smaller; time is noisy."),
]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit", min=1, help="End a solve after so many conflicts; it costs the batch's most."
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout", metavar="S", min=0.001, help="The same after so many seconds of a solve."
    ),
]
Validation = Annotated[int, typer.Option("--validation", min=2, help="Formulas to validate on.")]
ValidateEvery = Annotated[
    int, typer.Option("--validate-every", min=1, help="Iterations between validations.")
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with the run that was cut short (FILE.part).")
]

"""The options of `seesaw`, by the names that `cli.py` gives them."""

from __future__ import annotations

from typing import Annotated

import typer

PlanFile = Annotated[
    str | None,
    typer.Argument(metavar="PLAN", help="Plan of `seesaw plan`; - or nothing reads stdin."),
]
Cut = Annotated[
    float | None,
    typer.Option(
        "--cut",
        metavar="FACTOR",
        help="Fall of the base schedule between two cuts. Default: 1.1 (step decay: 1/gamma).",
    ),
]
Alpha = Annotated[
    float | None,
    typer.Option(
        "--alpha",
        metavar="FACTOR",
        help="Divide the learning rate by this at each cut. Default: sqrt(cut), sgd: 1.",
    ),
]
Beta = Annotated[
    float | None,
    typer.Option(
        "--beta", metavar="FACTOR", help="Multiply the batch by this at each cut. Default: cut."
    ),
]
Optimizer = Annotated[
    str,
    typer.Option(
        "--optimizer",
        metavar="adam|sgd",
        help="Which invariant holds: alpha*sqrt(beta) = cut (adam) or alpha*beta = cut (sgd).",
    ),
]
CapBatch = Annotated[
    int | None,
    typer.Option(
        "--cap-batch",
        metavar="N",
        help="Largest batch, in sequences; past it the learning rate takes the whole cut.",
    ),
]
MultipleOf = Annotated[
    int, typer.Option("--multiple-of", metavar="N", help="Round every batch to a multiple of N.")
]
MicroBatch = Annotated[
    int | None,
    typer.Option(
        "--micro-batch", metavar="N", help="Sequences that one device takes at once (grad_accum)."
    ),
]
Gpus = Annotated[int, typer.Option("--gpus", metavar="N", help="Devices that share a batch.")]
Compensate = Annotated[
    bool,
    typer.Option(
        "--compensate",
        help="Round batches down and let the learning rate take up the rest.",
    ),
]
Cbs = Annotated[
    float | None,
    typer.Option(
        "--cbs",
        metavar="N",
        help="Critical batch size, in sequences (see `seesaw noise`), to compare with.",
    ),
]

Lr = Annotated[float, typer.Option("--lr", metavar="LR", help="Peak learning rate.")]
Batch = Annotated[
    int,
    typer.Option("--batch", metavar="N", help="Batch of the base schedule, in sequences."),
]
Seq = Annotated[int, typer.Option("--seq", metavar="N", help="Tokens in a sequence.")]
Tokens = Annotated[
    float, typer.Option("--tokens", metavar="N", help="Tokens of the whole run (3.3e9).")
]
Warmup = Annotated[
    float | None,
    typer.Option(
        "--warmup",
        metavar="SHARE|N",
        help="Linear warmup: below 1 a share of the tokens, else tokens. "
        "Default: 0.1 (quarter-cosine: 0).",
    ),
]
Base = Annotated[
    str,
    typer.Option(
        "--base",
        metavar="SCHEDULE",
        help="cosine, quarter-cosine, linear, wsd[:DECAY], poly[:POWER], "
        "step[:GAMMA@M1,M2,...] or file:CURVE (step,lr rows).",
    ),
]
Final = Annotated[
    float | None,
    typer.Option(
        "--final", metavar="RATIO", help="Last learning rate over the peak. Default: 0.1."
    ),
]
Start = Annotated[
    float | None,
    typer.Option(
        "--start", metavar="RATIO", help="First learning rate over the peak. Default: 0.1."
    ),
]
AsPublished = Annotated[
    bool,
    typer.Option("--as-published", help="Repeat the authors' own rounding of batches."),
]
CurveFile = Annotated[
    str | None,
    typer.Argument(
        metavar="CURVE",
        help="step,lr rows (CSV, header optional) or a JSON log; - or nothing reads stdin.",
    ),
]
RunBatch = Annotated[
    int, typer.Option("--batch", metavar="N", help="The run's constant batch, in sequences.")
]
RunSeq = Annotated[
    int | None,
    typer.Option(
        "--seq", metavar="N", help="Tokens in a sequence. Without it, tokens count sequences."
    ),
]
RunTokens = Annotated[
    float | None,
    typer.Option("--tokens", metavar="N", help="Length of the run. Default: the curve's."),
]
LrField = Annotated[
    str | None,
    typer.Option("--lr-field", metavar="NAME", help="Column or key of the learning rate."),
]
StepField = Annotated[
    str | None,
    typer.Option("--step-field", metavar="NAME", help="Column or key of the step number."),
]
TokenField = Annotated[
    str | None,
    typer.Option(
        "--token-field", metavar="NAME", help="Column or key of the token count, in place of steps."
    ),
]
CheckGpus = Annotated[
    int | None,
    typer.Option("--gpus", metavar="N", help="Devices that share a batch. Default: the plan's."),
]
WeightDecay = Annotated[
    float | None,
    typer.Option("--weight-decay", metavar="W", help="The optimizer's decoupled weight decay."),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Exit 1 for any finding that is no, not only instability."),
]
NormLogFile = Annotated[
    str | None,
    typer.Argument(
        metavar="LOG",
        help="Records with batch and grad_norm_sq (or grad_norm); - or nothing reads stdin.",
    ),
]
NoiseSeq = Annotated[
    int | None, typer.Option("--seq", metavar="N", help="Tokens in a sequence, for tokens.")
]
AtBatch = Annotated[
    float | None,
    typer.Option("--at-batch", metavar="N", help="Batch at which to give the mean share."),
]
Windows = Annotated[
    int,
    typer.Option("--windows", metavar="N", help="Estimate in N equal stretches of the steps."),
]
BatchField = Annotated[
    str, typer.Option("--batch-field", metavar="NAME", help="Key of the batch size.")
]
NormField = Annotated[
    str | None,
    typer.Option(
        "--norm-field", metavar="NAME", help="Key of the norm (squared if it ends in _sq)."
    ),
]
Spectrum = Annotated[
    str,
    typer.Option(
        "--spectrum",
        metavar="SPEC",
        help="Eigenvalues: power:EXP, flat, numbers between commas, or file:PATH (one a line).",
    ),
]
Dim = Annotated[
    int | None,
    typer.Option(
        "--dim", metavar="N", help="How many eigenvalues, for power and flat. Default: 100."
    ),
]
Sigma = Annotated[
    float, typer.Option("--sigma", metavar="S", help="Standard deviation of the noise.")
]
Distance = Annotated[
    float,
    typer.Option("--distance", metavar="D", help="Squared distance of the start from the optimum."),
]
Eta = Annotated[
    float,
    typer.Option("--eta", metavar="F", help="Peak learning rate, as a fraction of 1/Tr H."),
]
BaseBatch = Annotated[
    float,
    typer.Option("--base-batch", metavar="N", help="Samples that stand for the base batch."),
]
BaseSteps = Annotated[
    int | None,
    typer.Option("--steps", metavar="N", help="Scale the base run to N steps. Default: its own."),
]
Trainer = Annotated[
    str,
    typer.Option(
        "--to", metavar="TRAINER", help="hf, lightning, olmo-core, megatron, deepspeed, torch."
    ),
]
TrainPlan = Annotated[
    str, typer.Option("--plan", metavar="PLAN", help="Plan of `seesaw plan` (- reads stdin).")
]
Text = Annotated[
    str,
    typer.Option(
        "--text",
        metavar="FILE|stdlib",
        help="Text to learn, as bytes; stdlib is Python's own sources, - reads stdin.",
    ),
]
Runs = Annotated[
    str,
    typer.Option("--run", metavar="both|base|seesaw", help="Which schedules to train."),
]
Seeds = Annotated[
    int, typer.Option("--seeds", metavar="N", min=1, help="Runs of each, from --seed on.")
]
Width = Annotated[int, typer.Option("--width", metavar="N", help="Model width.")]
Layers = Annotated[int, typer.Option("--layers", metavar="N", help="Layers.")]
Heads = Annotated[int, typer.Option("--heads", metavar="N", help="Attention heads.")]
TrainMicroBatch = Annotated[
    int, typer.Option("--micro-batch", metavar="N", help="Sequences in memory at once.")
]
NoisePoints = Annotated[
    int,
    typer.Option(
        "--noise-points", metavar="N", help="Measure gradient noise N times in base runs."
    ),
]
LogEvery = Annotated[
    int, typer.Option("--log-every", metavar="N", help="Steps between two records.")
]
TrainDtype = Annotated[
    str,
    typer.Option(
        "--dtype", metavar="auto|fp32|bf16", help="Floating-point type of the matrix products."
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run; needs -o.")]
Repeats = Annotated[
    int, typer.Option("--repeats", metavar="N", min=1, help="Take the median of N runs.")
]
Staircase = Annotated[
    bool,
    typer.Option(
        "--staircase",
        help="Compare with the base as Theorem 1 has it: its fall in steps, at the plan's cuts.",
    ),
]

"""The options and arguments of the commands, each described once."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

PlanFile = Annotated[
    str | None,
    typer.Argument(metavar="PLAN", help="Plan of `bitsched plan`; - or nothing reads stdin."),
]
Mask = Annotated[
    str,
    typer.Option(
        "--mask",
        metavar="MASK",
        help="full, causal, window:LEFT,RIGHT (tokens a query sees, -1: all) or file:PATH "
        "(rows of 0 and 1: Q tiles by KV tiles, text or .npy).",
    ),
]
Seqlen = Annotated[
    str | None,
    typer.Option("--seqlen", metavar="N|QxKV", help="Tokens: queries and keys."),
]
Block = Annotated[
    str | None,
    typer.Option("--block", metavar="N|QxKV", help="Tokens in a tile. Default: 128x128."),
]
Tiles = Annotated[
    str | None,
    typer.Option("--n", metavar="N|QxKV", help="Tiles, instead of --seqlen and --block."),
]
Stride = Annotated[
    int, typer.Option("--stride", metavar="N", help="With --n: a KV tile is N Q tiles wide.")
]
Heads = Annotated[int, typer.Option("--heads", metavar="N", help="Query heads (times batch).")]
KvHeads = Annotated[
    int | None,
    typer.Option(
        "--kv-heads", metavar="N", help="KV heads that they share. Default: as many as heads."
    ),
]
Sms = Annotated[
    int | None,
    typer.Option(
        "--sms", metavar="N", min=1, help="Processors (SMs). Default: one for each KV tile."
    ),
]
Schedule = Annotated[
    Literal["auto", "asc", "desc", "shift", "sym", "spt", "list", "atomic", "exact"],
    typer.Option(
        "--schedule",
        help="asc, desc, spt (shortest first), list: any mask; shift: full; sym: causal; atomic: "
        "no order; exact: a solver (extra `exact`); auto: the fastest of those with an order, "
        "exact aside, under --c and --r.",
    ),
]
Assign = Annotated[
    Literal["waves", "dynamic", "longest"] | None,
    typer.Option(
        "--assign",
        help="Who takes which chain of asc, desc, spt, atomic: in waves, each free SM the next "
        "one, or the longest. Default: waves where a wave holds whole heads, else dynamic.",
    ),
]
ReverseSums = Annotated[
    bool,
    typer.Option("--reverse-sums", help="Add every sum in the opposite order (slow, a trap)."),
]
C = Annotated[
    float, typer.Option("--c", metavar="TIME", help="Time to compute a tile, in any unit.")
]
R = Annotated[
    float, typer.Option("--r", metavar="TIME", help="Time to add its share to dQ, same unit.")
]
Latency = Annotated[
    str | None,
    typer.Option(
        "--latency",
        metavar="T|LOCAL,REMOTE",
        help="Time until another SM sees an addition, in its own and in another L2 partition.",
    ),
]
Partitions = Annotated[
    int, typer.Option("--partitions", metavar="N", min=1, help="L2 partitions of the SMs.")
]
RegisterPenalty = Annotated[
    float,
    typer.Option(
        "--register-penalty",
        metavar="TIME",
        help="Added to --c under the folded schedule (sym), which needs more registers.",
    ),
]
HeadBarrier = Annotated[
    bool,
    typer.Option("--head-barrier", help="No head begins before the one before it has ended."),
]
Redeal = Annotated[
    Literal["waves", "dynamic", "longest"] | None,
    typer.Option("--assign", help="Deal the chains again, in the order of the plan's starts."),
]
Show = Annotated[
    Literal["summary", "processors", "tasks", "path"],
    typer.Option("--show", help="One record, or one for each SM, task, or task that decides."),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Exit 1 also where the lemma is broken: that costs time only."),
]
TimeLimit = Annotated[
    float,
    typer.Option("--time-limit", metavar="S", min=0.1, help="Seconds for the solver (exact)."),
]
BitsPlan = Annotated[
    str | None,
    typer.Argument(
        metavar="PLAN",
        help="Plan of `bitsched plan`; - is stdin. Default: plans made from the options.",
    ),
]
BitsSeqlen = Annotated[
    int | None,
    typer.Option(
        "--seqlen",
        metavar="N",
        min=1,
        help="Tokens. Default: those of PLAN (64 a Q tile, if it counts tiles), else 512.",
    ),
]
BitsBlock = Annotated[
    str, typer.Option("--block", metavar="N|QxKV", help="Tokens in a tile, without PLAN or file:.")
]
BitsSchedules = Annotated[
    str | None,
    typer.Option(
        "--schedule",
        metavar="NAMES",
        help="Schedules of `bitsched plan`, by commas, without PLAN. Default: all that apply, and "
        "atomic, which has no order.",
    ),
]
Width = Annotated[int, typer.Option("--width", metavar="N", min=1, help="Width of a head.")]
Threads = Annotated[
    int, typer.Option("--threads", metavar="N", min=1, max=256, help="Threads that run the SMs.")
]
Runs = Annotated[
    int, typer.Option("--runs", metavar="N", min=1, help="Runs whose bits are compared.")
]
DelayUs = Annotated[
    float,
    typer.Option(
        "--delay-us",
        metavar="T",
        min=0,
        help="Mean of the random delays before an addition, in microseconds.",
    ),
]
BitsDtype = Annotated[
    Literal["fp32", "bf16"], typer.Option("--dtype", help="Type of the tensors; sums are in fp32.")
]
ProveMask = Annotated[Literal["causal", "full"], typer.Option("--mask", help="The mask.")]
ProveTiles = Annotated[
    int, typer.Option("--n", metavar="N", min=1, max=256, help="KV tiles, and Q tiles.")
]
ProveHeads = Annotated[int, typer.Option("--heads", metavar="M", min=1, max=256, help="Heads.")]
FromScratch = Annotated[
    bool,
    typer.Option(
        "--from-scratch",
        help="Begin at no named schedule, and leave the counting of tiles to the solver too.",
    ),
]
JoinLatency = Annotated[
    float,
    typer.Option(
        "--join-latency",
        metavar="TIME",
        min=0,
        help="Least wait of a chain's first tile that has to take its turn.",
    ),
]
ChartKind = Annotated[
    Literal["svg", "text"] | None,
    typer.Option("--as", help="Kind of chart. Default: svg for .svg files, else text."),
]
ChartWidth = Annotated[
    int | None,
    typer.Option(
        "--width",
        metavar="N",
        min=40,
        max=20_000,
        help="Pixels (svg, default 1200) or characters (text, default: the terminal's).",
    ),
]
Unit = Annotated[
    str, typer.Option("--unit", metavar="TEXT", help="Unit of the costs, for the time axis.")
]
GridMask = Annotated[
    str,
    typer.Option(
        "--mask",
        metavar="MASK",
        help="full, causal, window:LEFT,RIGHT (tokens) or file:PATH (blocks, as in `plan`; the "
        "file says how many, so without --n, --block and --fixed-tokens).",
    ),
]
GridTiles = Annotated[
    str | None,
    typer.Option(
        "--n",
        metavar="RANGE",
        help="Tiles a side: N, N,N,..., N..M (doubling) or N..M:STEP. Default: 4..32.",
    ),
]
GridHeads = Annotated[str, typer.Option("--heads", metavar="RANGE", help="Heads, as --n.")]
GridBlock = Annotated[
    int | None,
    typer.Option(
        "--block", metavar="N", min=1, help="Tokens in a tile (window masks). Default: 128."
    ),
]
FixedTokens = Annotated[
    bool,
    typer.Option(
        "--fixed-tokens",
        help="Fill the batch: max(n)/n sequences for each shape, so that all have equal tokens.",
    ),
]
Timings = Annotated[
    str | None,
    typer.Argument(
        metavar="TIMINGS",
        help="CSV or JSON Lines with columns schedule, time, mask, n, heads, sms, ...; - is stdin.",
    ),
]
FitLatency = Annotated[
    Literal["join", "handoff", "none"],
    typer.Option(
        "--latency",
        help="The third parameter: --join-latency, or --latency (handoff) of `sim`, or none.",
    ),
]
Tolerance = Annotated[
    float | None,
    typer.Option(
        "--tolerance", metavar="X", min=0, help="Exit 1 where a relative error is larger."
    ),
]
ExportForm = Annotated[
    Literal["c-header", "torch", "json"],
    typer.Option("--as", help="c-header; torch: safetensors of int32; json: one document."),
]
TasksFile = Annotated[
    str | None,
    typer.Argument(metavar="TASKS", help='{"tasks": [...]} or JSON Lines; - is stdin.'),
]
Processors = Annotated[
    int | None,
    typer.Option(
        "--processors", metavar="N", min=1, max=1_000_000,
        help="How many. Default: what the file says, or its tasks name.",
    ),
]  # fmt: skip
GraphSchedule = Annotated[
    Literal["list", "fifo", "given"],
    typer.Option(
        "--schedule",
        help="list: longest path of work first; fifo: first in the file first; given: every task "
        "has a processor, and all run and add in the order of the file.",
    ),
]
Gantt = Annotated[
    str | None,
    typer.Option(
        "--gantt", metavar="FILE", help="Also draw it: .svg, else text; - prints the text alone."
    ),
]
EachTask = Annotated[
    bool, typer.Option("--tasks", help="One record for each task instead of the whole.")
]
BenchTasks = Annotated[
    int, typer.Option("--size", metavar="N", min=1000, max=100_000_000, help="Tasks, about.")
]
Repeats = Annotated[int, typer.Option("--repeats", metavar="N", min=1, help="Times to measure.")]

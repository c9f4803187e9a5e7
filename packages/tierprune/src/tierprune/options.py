"""The options and arguments of the commands, each described once."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

GraphFormat = Literal["dot", "graphml", "dagitty", "edges", "bif", "record"]

Graph = Annotated[
    str | None,
    typer.Argument(
        metavar="GRAPH", help="The graph: DOT, GraphML, dagitty, edge list or BIF; - is stdin."
    ),
]
From = Annotated[
    GraphFormat | None,
    typer.Option("--from", help="Format of GRAPH. Default: by its suffix or first words."),
]
TierSpec = Annotated[
    str,
    typer.Option(
        "--tiers",
        metavar="SPEC",
        help="'a,b<c<d' (earliest first), a YAML or JSON file, or 4x6 (4 tiers of V1_1 to V4_6).",
    ),
]
Do = Annotated[
    list[str],
    typer.Option("--do", metavar="NAMES", help="What is set: names by commas, or repeated."),
]
Outcome = Annotated[
    list[str],
    typer.Option("--outcome", metavar="NAMES", help="What the question is about; as --do."),
]
Given = Annotated[
    list[str] | None,
    typer.Option("--given", metavar="NAMES", help="What is observed; as --do."),
]
To = Annotated[
    Literal["dot", "graphml", "dagitty", "edges"] | None,
    typer.Option("--to", help="Format to write. Default: the one read (BIF: edges)."),
]
Explain = Annotated[
    bool, typer.Option("--explain", help="List the T-components on stderr: kept and dropped edges.")
]
NeededOnly = Annotated[
    bool, typer.Option("--needed-only", help="Leave out the variables that are never needed.")
]
ForceTight = Annotated[
    bool,
    typer.Option("--force-tight", hidden=True, help="Prune as if nothing were observed (wrong)."),
]

Sizes = Annotated[
    str,
    typer.Option(
        "--tiers", metavar="TxN", help="T tiers of N variables (5x10), or their sizes (3,4,2)."
    ),
]
States = Annotated[
    str, typer.Option("--states", metavar="K-L", help="States of a discrete variable.")
]
Kind = Annotated[Literal["discrete", "gaussian"], typer.Option("--kind", help="Kind of model.")]
MaxParents = Annotated[
    int, typer.Option("--max-parents", metavar="N", min=0, help="Parents that a variable draws.")
]
MaxNeighbours = Annotated[
    int, typer.Option("--max-neighbours", metavar="N", min=0, help="Most neighbours of a variable.")
]
Bidirected = Annotated[
    float,
    typer.Option(
        "--bidirected",
        metavar="SHARE",
        min=0,
        max=1,
        help="Chance that an edge inside a tier turns bidirected: a latent cause of two.",
    ),
]
Samples = Annotated[int, typer.Option("--samples", metavar="N", min=1, help="Rows to draw.")]
DataOut = Annotated[
    str, typer.Option("--data", metavar="FILE", help="Where the CSV goes; - is stdout.")
]
TruthOut = Annotated[
    str | None,
    typer.Option("--truth", metavar="FILE", help="Write the true graph: .dot, .edges, ..."),
]
TiersOut = Annotated[
    str | None,
    typer.Option(
        "--tiers-out",
        metavar="FILE",
        help="Where the tiers go. Default: beside the data (d.csv: d.tiers.json).",
    ),
]
Learned = Annotated[
    str, typer.Argument(metavar="LEARNED", help="The graph to score, in any format; - is stdin.")
]
Truth = Annotated[
    str, typer.Argument(metavar="TRUTH", help="The true ADMG (its PAG is worked out), or a PAG.")
]
WholeGraph = Annotated[
    bool, typer.Option("--full", help="Use the whole graph, not only what the query needs.")
]
Enumerate = Annotated[
    int | None,
    typer.Option(
        "--enumerate",
        metavar="N",
        min=1,
        help="Of a learned graph, also read up to N graphs that it may stand for.",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit 1 unless the answer is yes.")]
AnswerFormat = Annotated[
    Literal["text", "latex", "json", "y0"] | None,
    typer.Option("--format", help="Default: text on a terminal, elsewhere json."),
]
GraphToEstimate = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH", help="The graph: DOT, GraphML, dagitty, edge list or BIF; - is stdin."
    ),
]
Data = Annotated[
    str, typer.Argument(metavar="DATA", help="CSV with a column for each variable; - is stdin.")
]
DoValues = Annotated[
    list[str],
    typer.Option("--do", metavar="X=VALUE", help="What is set, by commas or repeated."),
]
OutcomeValues = Annotated[
    list[str],
    typer.Option(
        "--outcome", metavar="Y[=VALUE]", help="What the question is about. Default: every value."
    ),
]
GivenValues = Annotated[
    list[str] | None, typer.Option("--given", metavar="Z=VALUE", help="What is observed; as --do.")
]
Versus = Annotated[
    list[str] | None,
    typer.Option(
        "--versus", metavar="X=VALUE", help="Also estimate under this, and the difference."
    ),
]
Bootstrap = Annotated[
    int,
    typer.Option("--bootstrap", metavar="N", min=0, help="Resamples for the 95 % interval."),
]
Smooth = Annotated[
    float, typer.Option("--smooth", metavar="A", min=0.0, help="Add A rows to every cell.")
]
Missing = Annotated[
    Literal["error", "drop"],
    typer.Option("--missing", help="What to do with a row that misses a value."),
]

DiscoverData = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA", help="Data as CSV, a column for each variable; - or nothing reads stdin."
    ),
]
DoOrAll = Annotated[
    list[str] | None,
    typer.Option("--do", metavar="NAMES", help="What is set: names by commas, or repeated."),
]
OutcomeOrAll = Annotated[
    list[str] | None,
    typer.Option("--outcome", metavar="NAMES", help="What the question is about; as --do."),
]
IndependenceTest = Annotated[
    Literal["fisherz", "gsq", "chisq", "kci"],
    typer.Option(
        "--test",
        help="fisherz: numbers, linear. gsq, chisq: categories. kci: any (slow; extra kci).",
    ),
]
Alpha = Annotated[
    float,
    typer.Option(
        "--alpha",
        metavar="P",
        help="Independent is what has a p-value above this, between 0 and 1.",
    ),
]
EveryTier = Annotated[
    bool, typer.Option("--full", help="Learn all tiers (FCITIERS); a query is optional then.")
]
Compare = Annotated[
    bool,
    typer.Option(
        "--compare", help="Run both searches; print a record of tests and wall time instead."
    ),
]
MaxCond = Annotated[
    int | None,
    typer.Option(
        "--max-cond", metavar="N", min=0, help="Condition on N variables at most. Default: any."
    ),
]
TrueGraph = Annotated[
    str | None,
    typer.Option(
        "--truth", metavar="GRAPH", help="Ask this graph instead of data: what unlimited data say."
    ),
]
PAGFormat = Annotated[
    Literal["edges", "dot", "json", "graphml", "dagitty"] | None,
    typer.Option(
        "--format",
        help="json has separating sets and tests too. Default: by the output's suffix, or edges.",
    ),
]
TiersIfAny = Annotated[
    str | None,
    typer.Option("--tiers", metavar="SPEC", help="Tiers, as of the other commands."),
]
ByTier = Annotated[bool, typer.Option("--by-tier", help="Also score each tier by itself.")]
GraphAsPAG = Annotated[
    bool,
    typer.Option(
        "--as-pag", help="GRAPH was learned, though it has neither circles nor discover's mark."
    ),
]
AsPAG = Annotated[
    bool,
    typer.Option("--as-pag", help="TRUTH is a PAG, also where it has no circles."),
]
CheckData = Annotated[
    str | None, typer.Argument(metavar="DATA", help="Data as CSV; - or nothing reads stdin.")
]
CheckTest = Annotated[
    Literal["fisherz", "gsq", "chisq"],
    typer.Option("--test", help="fisherz: numbers, linear. gsq, chisq: categories."),
]
CheckAlpha = Annotated[
    float,
    typer.Option(
        "--alpha", metavar="P", help="Chance of any false contradiction (Holm), between 0 and 1."
    ),
]
CheckLevel = Annotated[
    float,
    typer.Option(
        "--level",
        metavar="P",
        help="Independent is what has a p-value above this, between 0 and 1.",
    ),
]
CheckCond = Annotated[
    int, typer.Option("--max-cond", metavar="N", min=0, help="Condition on N variables at most.")
]
BenchSizes = Annotated[
    str, typer.Option("--tiers", metavar="TxN", help="T tiers of N variables to measure on.")
]
BenchData = Annotated[
    str | None,
    typer.Option("--data", metavar="FILE", help="Measure discovery on this CSV instead."),
]
BenchTiers = Annotated[
    str | None, typer.Option("--data-tiers", metavar="SPEC", help="The tiers of --data.")
]
BenchTest = Annotated[
    Literal["fisherz", "gsq"], typer.Option("--test", help="Test of independence.")
]
Repeats = Annotated[int, typer.Option("--repeats", metavar="N", min=1, help="Runs of each task.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with the finished tiers of a run; needs -o.")
]

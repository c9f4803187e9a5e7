"""What `id` and `estimate` do around the method: read, prune, identify, and write the answer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from papercuts.errors import DataError, NegativeResult, UsageError
from tierprune.admg import ADMG
from tierprune.components import check_tiers
from tierprune.dataset import Missing, read_table
from tierprune.estimation import MOST_UNDEFINED, Counts, estimate, read_assignments
from tierprune.expression import Estimand
from tierprune.formats import FormatName
from tierprune.graphfile import GraphFile
from tierprune.identification import Hedge, identify, identify_pruned
from tierprune.learned import answer as answer_learned
from tierprune.learned import known_names
from tierprune.pruning import prune
from tierprune.query import Query
from tierprune.rendering import IN_FULL, to_json, to_latex, to_text, to_y0
from tierprune.summary import describe_pruned, listed
from tierprune.tiers import Tiers

AnswerFormat = Literal["text", "latex", "json", "y0"]


@dataclass(frozen=True)
class Answered:
    """The answer to a query about a graph file: its record, and lines for a person."""

    query: Query
    record: dict[str, Any]
    estimand: Estimand | None
    hedge: Hedge | None
    said: tuple[str, ...]
    formulas: tuple[tuple[Estimand, int], ...] = ()  # of members of a learned class, see `learned`

    @property
    def verdict(self) -> str:
        """`yes`, `no` or `undecided`."""
        return str(self.record["verdict"])


def check_one_stdin(**places: str | None) -> None:
    """Raise `UsageError` where two of the inputs (by their names in the help) are stdin."""
    named = [name for name, place in places.items() if place == "-"]
    if len(named) > 1:
        words = " and ".join("--tiers" if name == "tiers" else name.upper() for name in named[:2])
        raise UsageError(f"{words} cannot both be stdin")


def read_graph(path: str | None, format: FormatName | None, tiers: str) -> tuple[GraphFile, Tiers]:  # noqa: A002
    """Read a graph, which may have circles, and its tiers; both checked against one another."""
    from papercuts.streams import default_input
    from tierprune import formats
    from tierprune.tiers import read_tiers

    named = default_input(path, "graph")
    if named == tiers == "-":
        raise UsageError("GRAPH and --tiers cannot both be stdin")
    file, read = formats.read(named, format), read_tiers(tiers)
    check_tiers(file, read)
    return file, read


def answer(
    file: GraphFile,
    tiers: Tiers,
    query: Query,
    *,
    full: bool = False,
    force_tight: bool = False,
    enumerate_: int | None = None,
    as_pag: bool = False,
    seed: int = 0,
) -> Answered:
    """Identify a query in the graph pruned for it (`full`: in the whole graph).

    A learned graph (with circles, with the mark of `discover`, or by `as_pag`) is answered by
    `tierprune.learned`, of which at most `enumerate_` members are read. Raises `DataError` for a
    graph that is no ADMG, and for a learned one without tiers that the query needs.
    """
    if as_pag or file.learned or file.has_circles():
        if full or force_tight:
            raise UsageError("--full is for a graph that is known, not for a learned one")
        learned = answer_learned(file, tiers, query, enumerate_=enumerate_, seed=seed)
        record = {**learned.to_dict(), **_formula(learned.estimand)}
        said = learned.notes
        if file.learned and not file.has_circles():
            said = ("read as learned: only what holds in every graph of its class counts", *said)
        return Answered(query, record, learned.estimand, None, said, learned.formulas)
    if enumerate_ is not None:
        raise UsageError(
            "--enumerate is for a learned graph: this one has no circles or mark (--as-pag)"
        )
    graph = file.admg()
    pruned = prune(graph, tiers, query, force_tight=force_tight)
    found = identify(graph, query) if full else identify_pruned(pruned, tiers.of, query)
    lines = [f"{query}: in the whole graph"] if full else [*describe_pruned(pruned, query)]
    hedge = found.hedge
    record = {
        "query": str(query),
        "verdict": found.verdict,
        "rule": None if full else pruned.band.rule,
        "kept_edges": pruned.kept + pruned.dropped if full else pruned.kept,
        "dropped_edges": 0 if full else pruned.dropped,
        **_formula(found.estimand),
        "hedge": None
        if hedge is None
        else {
            "effect": str(hedge.query),
            "larger": [*hedge.larger],
            "smaller": [*hedge.smaller],
            "roots": [*hedge.roots],
        },
    }
    if found.estimand is not None:
        lines.append(f"to be measured: {listed(found.estimand.variables)}")
        if found.estimand.arbitrary:
            lines.append(f"the same at every value of: {listed(found.estimand.arbitrary)}")
    return Answered(query, record, found.estimand, hedge, tuple(lines))


def _short(estimand: Estimand | None) -> str | None:
    """Write a formula that a person may read; the key `estimand` has those of any size."""
    return to_text(estimand) if estimand and estimand.written_size <= IN_FULL else None


def _formula(estimand: Estimand | None) -> dict[str, Any]:
    return {
        "formula": _short(estimand),
        "estimand": None if estimand is None else to_json(estimand),
        "variables": None if estimand is None else [*estimand.variables],
        "arbitrary": None if estimand is None else [*estimand.arbitrary],
        "expressions": None if estimand is None else estimand.size,
    }


def write_answer(
    found: Answered,
    output: str,
    *,
    format: AnswerFormat | None,  # noqa: A002
    force: bool,
) -> Iterator[str]:
    """Write an answer (default: text on a terminal, elsewhere JSON); yield notes on it."""
    from papercuts.streams import open_output, output_format, write_records

    chosen = format or ("text" if output_format(output) == "table" else "json")
    if chosen == "json":
        write_records([found.record], output, format="json", force=force)
        return
    text, notes = _written(found, chosen)
    with open_output(output, force=force) as out:
        out.write(text.encode())
    yield from notes


def _written(found: Answered, format: AnswerFormat) -> tuple[str, list[str]]:  # noqa: A002
    estimand, query = found.estimand, found.query
    if estimand is None:
        lines = list(_why_not(found))
        mark = {"text": "", "latex": "% ", "y0": "# "}[format]
        return "".join(f"{mark}{line}\n" for line in lines), []
    if format == "y0":
        text, renamed = to_y0(estimand)
        notes = [f"y0's parser has no name {old!r}: it is {new}" for old, new in renamed.items()]
        return text + "\n", notes
    body = to_latex(estimand) if format == "latex" else to_text(estimand)
    *before, last = body.split("\n")
    if format == "latex":
        from tierprune.rendering import latex_name

        outcome, do, given = (
            ", ".join(latex_name(name) for name in side)
            for side in (query.outcome, query.treatment, query.given)
        )
        left = rf"P({outcome} \mid \mathrm{{do}}({do}){', ' + given if given else ''})"
        lines = [*before, f"{left} = {last}"]
        return "".join(f"{line} \\\\\n" for line in lines[:-1]) + lines[-1] + "\n", []
    return "".join(f"{line}\n" for line in [*before, f"{query} = {last}"]), []


def _why_not(found: Answered) -> Iterator[str]:
    if found.hedge is None:
        words = {"no": "is not identifiable", "undecided": "is undecided"}[found.verdict]
        yield f"{found.query} {words}"
        return
    hedge = found.hedge
    yield f"{found.query} is not identifiable"
    yield f"hedge for {hedge.query}:"
    yield f"  F  = {', '.join(hedge.larger)}"
    yield f"  F' = {', '.join(hedge.smaller)}"
    yield f"  roots: {', '.join(hedge.roots)}"


def estimate_file(
    file: GraphFile,
    tiers: Tiers,
    data: str,
    *,
    do: Sequence[str],
    outcome: Sequence[str],
    given: Sequence[str] | None,
    versus: Sequence[str] | None,
    as_pag: bool,
    enumerate_: int | None,
    bootstrap: int,
    smooth: float,
    seed: int,
    missing: Missing,
) -> tuple[Answered, list[dict[str, Any]]]:
    """Estimate a query from a CSV file; give the answer used and a record for each outcome.

    Where only members of a learned class identify it (`enumerate_`), each of their formulas has a
    record for each outcome. Raises `NegativeResult` for a query that is not identified, and as
    `read_table` and `estimate`.
    """
    known = known_names(file, tiers)
    wanted = {
        "do": read_assignments(do, known, "--do"),
        "outcome": read_assignments(outcome, known, "--outcome", need_value=False),
        "given": read_assignments(given, known, "--given"),
    }
    other = None if versus is None else read_assignments(versus, known, "--versus")
    try:
        query = Query(tuple(wanted["do"]), tuple(wanted["outcome"]), tuple(wanted["given"]))
    except ValueError as error:
        raise UsageError(str(error)) from None
    found = answer(file, tiers, query, as_pag=as_pag, enumerate_=enumerate_, seed=seed)
    formulas = found.formulas if found.estimand is None else ((found.estimand, None),)
    if not formulas:
        words = "not identifiable" if found.verdict == "no" else "not identified by this graph"
        hedge = "" if found.hedge is None else f" (hedge: {listed(found.hedge.larger)})"
        raise NegativeResult(f"{query} is {words}{hedge}; `tierprune id` says more")
    if not (as_pag or file.learned or file.has_circles()) and not _reaches(file.admg(), query):
        words = f"no directed path leads from {listed(query.treatment)} to {listed(query.outcome)}"
        note = f"{words} in the graph: setting it changes nothing, whatever the data say"
        found = replace(found, said=(*found.said, note))
    variables = (name for estimand, _ in formulas for name in estimand.variables)
    table = read_table(
        data, missing=missing, columns=list(dict.fromkeys((*query.names, *variables)))
    )
    counts = Counts(table.coded(), source=table.source)
    shared = {
        "rows": table.rows,
        "dropped_rows": table.dropped,
        "bootstrap": bootstrap,
        "smooth": smooth,
        "seed": seed,
    }
    records = []
    for estimand, members in formulas:
        try:
            results = estimate(
                estimand,
                counts,
                do=_valued(wanted["do"]),
                outcome=wanted["outcome"],
                given=_valued(wanted["given"]),
                versus=None if other is None else _valued(other),
                bootstrap=bootstrap,
                smooth=smooth,
                seed=seed,
            )
        except MemoryError:
            raise DataError("the formula needs more memory than there is", path=data) from None
        start = {"query": str(query), "verdict": found.verdict}
        end = {"members": members, "formula": _short(estimand)}
        records += [{**start, **result.to_dict(), **shared, **end} for result in results]
    return found, records


def _reaches(graph: ADMG, query: Query) -> bool:
    later = graph.descendants(graph.mask(query.treatment))
    return bool(later & graph.mask(query.outcome))


def _valued(values: dict[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}


def describe_records(records: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Say which cell carries an estimate, and whether resamples were left out."""
    first = records[0]
    thin: dict[str, list[str]] = {}
    for side in (first, first.get("versus")):
        if side and side["thinnest"]:
            cell = ", ".join(f"{n}={v}" for n, v in side["thinnest"]["cell"].items())
            rows = f"{cell} ({side['thinnest']['effective_n']:g} of {first['rows']} rows)"
            setting = ", ".join(f"{name}={value}" for name, value in side["do"].items())
            thin.setdefault(rows, []).append(f"do({setting})")
    for rows, settings in thin.items():
        yield f"thinnest cell under {' and '.join(settings)}: {rows}"
    sides = [side for record in records for side in (record, record.get("versus")) if side]
    lost, drawn = max(side["undefined_resamples"] for side in sides), first["bootstrap"]
    if first.get("members") is not None:
        key = "difference" if "difference" in first else "estimate"
        several: dict[str, list[float]] = {}
        for record in records:
            words = ", ".join(f"{name}={value}" for name, value in record["outcome"].items())
            several.setdefault(words, []).append(record[key])
        for words, values in several.items():
            yield (
                f"{words}: the {key} is {min(values):.3g} to {max(values):.3g} over the graphs "
                "that identify it; in the others it may be anything"
            )
    if lost:
        yield f"{lost} of {drawn} resamples left out: an empty cell"
    # A difference loses what either side does, so that it may lack an interval that both have.
    bounds = [side["low"] for side in sides]
    bounds += [record["difference_low"] for record in records if "difference_low" in record]
    if lost and any(math.isnan(low) for low in bounds):
        yield f"no interval where more than {MOST_UNDEFINED:.0%} are left out"

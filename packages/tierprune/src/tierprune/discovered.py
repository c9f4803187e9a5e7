"""What `discover` reads and writes: the data or the true graph, records, and lines for people."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from papercuts.errors import DataError, UsageError
from papercuts.log import get_logger
from tierprune import formats
from tierprune.components import check_tiers
from tierprune.dataset import Missing, read_table
from tierprune.discovery import Discovered, discover, restricted, warm_up
from tierprune.exogenous import Step
from tierprune.formats import FormatName
from tierprune.graphfile import Edge, GraphFile
from tierprune.independence import TestName, make_test
from tierprune.independence.base import Independence
from tierprune.independence.level import MISSED, check_level
from tierprune.pag import arrow
from tierprune.query import Band, Query, band_of, make_query
from tierprune.spelling import did_you_mean
from tierprune.summary import counted, describe_unused
from tierprune.tiers import Tiers
from tierprune.unfinished import Unfinished

PAGFormat = Literal["edges", "dot", "json", "graphml", "dagitty"]

_SAY_EVERY_S = 5.0
_REPEATED_S = 20.0  # a comparison that takes less is run twice
_SUFFIXES = (".gz", ".xz", ".zst")
_logger = get_logger(__name__)


@dataclass(frozen=True)
class Plan:
    """What is to be learnt, from what, and how.

    `query` is None where all tiers are asked for without a query.
    """

    tiers: Tiers
    query: Query | None
    full: bool
    data: str | None
    truth: str | None
    test: TestName
    alpha: float
    max_cond: int | None
    missing: Missing
    jobs: int

    @property
    def band(self) -> Band:
        """The tiers to learn."""
        everything = Band(1, len(self.tiers), "all")
        return everything if self.full or self.query is None else band_of(self.query, self.tiers)


def make_plan(
    data: str | None,
    tiers: Tiers,
    do: Sequence[str] | None,
    outcome: Sequence[str] | None,
    given: Sequence[str] | None,
    *,
    full: bool,
    compare: bool,
    truth: str | None,
    test: TestName,
    alpha: float,
    max_cond: int | None,
    missing: Missing,
    jobs: int | None,
    plot: str | None = None,
) -> Plan:
    """Make the plan of the options; `UsageError` where they do not fit together."""
    from papercuts.files import default_input
    from papercuts.hardware import cores

    check_level("--alpha", alpha, MISSED)
    if full and compare:
        raise UsageError("--compare runs the full search too: leave out --full")
    if truth is not None and data is not None:
        raise UsageError("--truth takes the place of DATA: give one of them")
    query = None
    if do and outcome:
        query = make_query(do, outcome, given, tiers.names)
    elif do or outcome or given or not full:
        raise UsageError("--do and --outcome are needed (only --full does without a query)")
    if plot is not None and query is None:
        raise UsageError("--plot shows a query: --do and --outcome are needed")
    if truth is None:
        data = default_input(data, "data")
    return Plan(
        tiers, query, full, data, truth, test, alpha, max_cond, missing, jobs or cores()
    )  # fmt: skip


def read_test(plan: Plan, *, everything: bool = False) -> tuple[Independence, str]:
    """Read the data, or the true graph; give the test of the variables needed, and a digest.

    `everything` reads all tiers, else those up to the last of the band. The log names the columns
    that have no tier. Raises `DataError` for a true graph that is marked as learned, and as
    `dataset.read_table`, `formats.read` and `make_test` do.
    """
    last = len(plan.tiers) if everything else plan.band.last
    names = [name for group in plan.tiers.groups[:last] for name in group]
    if plan.truth is not None:
        from tierprune.independence.oracle import Oracle

        file = formats.read(plan.truth)
        if file.learned:
            raise DataError(
                "this graph was learned: it stands for a class of graphs",
                path=plan.truth,
                expected="the true graph",
            )
        have = set(file.names)
        for name in names:
            if name not in have:
                hint = did_you_mean(name, have.difference(plan.tiers.names), " ({})")
                raise DataError(f"{name} of the tiers is not in the graph{hint}", path=plan.truth)
        check_tiers(file, plan.tiers)
        text = formats.dumps(formats.converted(file, "edges"))
        return Oracle(file.admg()), hashlib.sha256(text.encode()).hexdigest()
    assert plan.data is not None  # noqa: S101 (make_plan saw to it)
    table = read_table(plan.data, missing=plan.missing, columns=names)
    if table.dropped:
        _logger.info("%d rows with missing values were left out", table.dropped)
    test = make_test(plan.test, table, names, alpha=plan.alpha)
    for line in describe_unused(table.header, plan.tiers):
        _logger.warning(line)
    return test, table.digest


def run(plan: Plan, test: Independence, unfinished: Unfinished | None = None) -> Discovered:
    """Learn what the plan asks for, with progress in the log; `unfinished` keeps each tier."""
    _logger.debug("%s", plan)
    said = time.monotonic()

    def told(tier: int, step: Step) -> None:
        nonlocal said
        if time.monotonic() - said < _SAY_EVERY_S:
            return
        said = time.monotonic()
        level = "Possible-D-SEP" if step.level is None else f"level {step.level}"
        _logger.info(
            "tier %d (of %d to %d), %s: %d tests, %d edges left",
            tier, plan.band.first, plan.band.last, level, step.tests, step.edges,
        )  # fmt: skip

    done, keep = ((), None) if unfinished is None else (unfinished.finished, unfinished.keep)
    return discover(
        test, plan.tiers, plan.band, max_cond=plan.max_cond, jobs=plan.jobs, told=told,
        done=tuple(done), keep=keep,
    )  # fmt: skip


def run_resumable(
    plan: Plan, test: Independence, digest: str, unfinished: Unfinished
) -> Discovered:
    """Learn as `run` does; what is cut short says what it leaves, and how to go on."""
    source = {"data": digest, "truth": plan.truth is not None, "missing": plan.missing}
    options = {"test": test.name, "alpha": test.alpha, "max_cond": plan.max_cond}
    unfinished.begin({**source, **options, "tiers": plan.tiers.groups})
    if unfinished.finished:
        _logger.info("going on after %s", counted(len(unfinished.finished), "finished tier"))
    try:
        return run(plan, test, unfinished)
    except BaseException as error:
        if unfinished.kept or not isinstance(error, Exception):  # an error says why it ends
            _logger.warning("%s", unfinished.describe())
        raise


def answer(
    plan: Plan,
    comparing: bool,
    output: str,
    plot: str | None = None,
    *,
    format: PAGFormat | None = None,  # noqa: A002
    force: bool = False,
    resume: bool = False,
) -> list[str]:
    """Learn, write the result (of a comparison its record) and give the lines for a person.

    Finished tiers are kept beside the output until it is written (`unfinished`).
    """
    from papercuts.streams import write_records

    if comparing and resume:
        raise UsageError("--compare measures whole searches: leave out --resume")
    unfinished = Unfinished("-" if comparing else output, resume=resume, force=force)
    test, digest = read_test(plan, everything=comparing)
    if comparing:
        found, compared = compare(plan, test)
        write_records([compared], output, format="json", force=force)
    else:
        found = run_resumable(plan, test, digest, unfinished)
        chosen = chosen_format(output, format)
        if chosen == "json":
            write_records([record(plan, found, test)], output, format="json", force=force)
        else:
            formats.write(graph_file(found, chosen), output, force=force)
        unfinished.remove()
    if plot is not None and plan.query is not None:
        from tierprune.plot import plot_pag

        plot_pag(found.pag, plan.tiers, plan.query, plot, force=force)
    return list(describe(plan, found))


def compare(plan: Plan, test: Independence) -> tuple[Discovered, dict[str, Any]]:
    """Learn the query's tiers and then all; give the former and the record that compares them."""
    from dataclasses import replace

    whole_plan = replace(plan, full=True)
    warm_up(test)
    part, whole = run(plan, test), _again(whole_plan, test)
    if part.wall_s + whole.wall_s < _REPEATED_S:  # in the other order too: the better time counts
        whole = min(whole, _again(whole_plan, test), key=_wall_s)
        part = min(part, _again(plan, test), key=_wall_s)
    same = restricted(whole.pag, plan.tiers, part.band) == part.pag
    return part, {
        **_head(plan, part, test),
        "tests": _ratio(part.tests, whole.tests),
        "computed": _ratio(part.computed, whole.computed),
        "wall_s": _ratio(part.wall_s, whole.wall_s),
        "edges": {"query": _edge_count(part), "full": _edge_count(whole)},
        "same_edges": same,
    }


def _again(plan: Plan, test: Independence) -> Discovered:
    test.forget()
    return run(plan, test)


def _wall_s(found: Discovered) -> float:
    return found.wall_s


def _ratio(query: float, full: float) -> dict[str, float | None]:
    return {"query": query, "full": full, "ratio": full / query if query else None}


def _edge_count(found: Discovered) -> int:
    return sum(1 for _ in found.pag.edges())


def _head(plan: Plan, found: Discovered, test: Independence) -> dict[str, Any]:
    return {
        "query": None if plan.query is None else str(plan.query),
        "first_tier": found.band.first,
        "last_tier": found.band.last,
        "rule": found.band.rule,
        "test": test.name,
        "alpha": None if test.name == "oracle" else test.alpha,
        "max_cond": plan.max_cond,
    }


def record(plan: Plan, found: Discovered, test: Independence) -> dict[str, Any]:
    """Give the record of what was learnt: edges, separating sets, tests and contradictions."""
    tier = plan.tiers.of
    names = found.pag.names
    return {
        **_head(plan, found, test),
        "capped": found.capped,
        "tests": found.tests,
        "computed": found.computed,
        "wall_s": found.wall_s,
        "tiers": [cost._asdict() for cost in found.costs],
        "variables": _variables(found),
        "edges": [
            {
                "a": names[i],
                "b": names[j],
                "edge": arrow(at_i, at_j),
                "tier": max(tier[names[i]], tier[names[j]]),
            }
            for i, j, at_i, at_j in found.pag.edges()
        ],
        "sepsets": [{"a": a, "b": b, "given": list(s)} for (a, b), s in found.sepsets.items()],
        "contradictions": [each._asdict() for each in found.contradictions],
    }


def _variables(found: Discovered) -> list[str]:
    """List the variables of the tiers up to the band's last."""
    return [name for group in found.tiers.groups[: found.band.last] for name in group]


def graph_file(found: Discovered, format: FormatName) -> GraphFile:  # noqa: A002
    """Give the learnt graph for a file, with the variables of the tiers up to the band's last.

    It is marked as learnt, with the tiers of the band.
    """
    names = found.pag.names
    edges = [Edge(names[i], names[j], at_i, at_j) for i, j, at_i, at_j in found.pag.edges()]
    band = (found.band.first, found.band.last)
    return GraphFile(_variables(found), edges, format, learned=True, learned_tiers=band)


def chosen_format(output: str, given: PAGFormat | None) -> PAGFormat:
    """Give the format asked for, else that of the output's suffix, else `edges`."""
    if given is not None:
        return given
    stem = output.lower()
    for suffix in _SUFFIXES:
        stem = stem.removesuffix(suffix)
    ending = os.path.splitext(stem)[1]  # noqa: PTH122 (a name, not a path)
    by_suffix: dict[str, PAGFormat] = {
        ".dot": "dot",
        ".gv": "dot",
        ".json": "json",
        ".jsonl": "json",
        ".graphml": "graphml",
        ".xml": "graphml",
        ".dagitty": "dagitty",
    }
    return by_suffix.get(ending, "edges")


def describe(plan: Plan, found: Discovered) -> Iterator[str]:
    """Say in lines for a person what was learnt, and what to beware of."""
    band = found.band
    if band.first > band.last:
        yield "the outcomes lie before the treatments: no edge is needed"
        return
    edges, tiers = _edge_count(found), f"tiers {band.first} to {band.last} of {len(plan.tiers)}"
    rule = "" if band.rule == "all" else f" (Proposition {band.rule})"
    yield (
        f"{tiers}{rule}: {counted(edges, 'edge')}, "
        f"{counted(found.tests, 'test')}, {found.wall_s:.2f} s"
    )
    if found.capped:
        yield (
            f"--max-cond {plan.max_cond}: sets of more variables were not tried, so edges may be "
            "left that they would remove"
        )
    if found.contradictions:
        first = found.contradictions[0]
        yield (
            f"{counted(len(found.contradictions), 'contradiction')} between tests (the first: "
            f"{first.rule} at {first.a} and {first.b}); --format json lists them"
        )

"""An evaluation formula by formula: its records in a file that a later call can go on with."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from papercuts.app import FormatName, Terminated
from papercuts.errors import PapercutsError
from papercuts.log import get_logger, progress
from papercuts.streams import ResumableOutput, read_records
from satguide.backends import backend
from satguide.cnf import CNF
from satguide.evaluation import Contest, Result, evaluate
from satguide.evaluation_table import Table, write_table

if TYPE_CHECKING:
    from satguide.checkpoint import Checkpoint

logger = get_logger(__name__)


def about(model: str, contest: Contest) -> dict[str, Any]:
    """Say what made a record: version, model, and how the arms were run."""
    said = {"version": version("papercuts-satguide"), "model": model, **asdict(contest)}
    for name in ("jobs", "ray", "baselines", "versus"):  # the arms are in the records themselves
        del said[name]
    return said


def tabulate(
    checkpoint: Checkpoint,
    formulas: Iterable[CNF],
    table: Table,
    *,
    runs: str | None = None,
    resume: bool = False,
    force: bool = False,
) -> None:
    """Let all arms of `table.contest` solve every formula, and take the results into the table.

    With `runs` there is a record a formula in that file, which grows as they come; with `resume`
    the records of an earlier call are taken first. Raises `DataError` where these are not of the
    same formulas, arms and settings, and what `ResumableOutput` and `evaluate` raise.
    """
    if "weights" not in backend(table.contest.backend).hooks:
        logger.warning("%s takes polarities only, no weights", table.contest.backend)
    with contextlib.ExitStack() as stack:
        out = None
        if runs is not None:
            out = stack.enter_context(ResumableOutput(runs, force=force, resume=resume))
        source = iter(formulas)
        bar = stack.enter_context(progress("formulas"))
        done = 0
        if out is not None and out.done:
            for result in _earlier(out, source, table):
                table.add(result)
                bar.advance()
            done = out.done
        for result in evaluate(checkpoint, source, table.contest, first=done):
            if out is not None:
                out.write(result.to_dict() | {"satguide": table.about})
            table.add(result)
            bar.advance()


def _earlier(out: ResumableOutput, source: Iterator[CNF], table: Table) -> Iterator[Result]:
    for record in itertools.islice(read_records(out.part, "json"), out.done):
        cnf = next(source, None)
        told = record.data
        size = ("formula", "variables", "clauses")
        if cnf is None or [told.get(n) for n in size] != [cnf.name, cnf.variables, len(cnf)]:
            raise record.error(f"{told.get('formula')} is not the formula in its place now")
        if told.get("satguide") != table.about or [*told.get("runs", {})] != [*table.contest.arms]:
            raise record.error("it was made with other settings")
        try:
            yield Result.from_dict(told)
        except (KeyError, TypeError) as error:
            raise record.error(f"no record of an evaluation: {error}") from None


@contextlib.contextmanager
def kept(
    table: Table,
    output: str,
    runs: str | None,
    *,
    format: FormatName | None = None,  # noqa: A002
    force: bool = False,
) -> Iterator[None]:
    """Where the block ends early, write the table of what was done, then raise on.

    Not into a file where `runs` has the records: --resume makes the whole table.
    """
    try:
        yield
    except (KeyboardInterrupt, Terminated, PapercutsError):
        resumable = runs is not None and output != "-"
        if len(table) and not resumable:
            logger.warning("ended early: the table is of %d formulas", len(table))
            write_table(table, output, format=format, force=force)
        raise

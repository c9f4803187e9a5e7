"""What `satguide solve` does: read, ask the network, solve, check the answer, print it."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from papercuts.errors import UsageError
from papercuts.files import check_output, default_input, open_output
from papercuts.log import get_logger
from satguide import dimacs
from satguide.apart import Apart
from satguide.backends import (
    EXEC,
    Guidance,
    Outcome,
    Polarity,
    SolverDiedError,
    SolverError,
    backend,
)
from satguide.cnf import CNF

SATISFIABLE, UNSATISFIABLE, UNKNOWN = 10, 20, 0  # exit codes, of the SAT competition
_WIDTH = 78  # of a `v` line, at most

logger = get_logger(__name__)


class _OverTimeError(Exception):
    """The time was up while the formula was read, or the network looked at it."""


@dataclass(frozen=True)
class Settings:
    """How to solve. `timeout_s` counts from the start of the command, reading included."""

    backend: str = "clasp"
    polarity: Polarity | None = None  # as the checkpoint was trained
    seed: int = 0  # as `satguide.backends.Backend.solve` takes it
    timeout_s: float | None = None
    conflicts: int | None = None
    check: bool = False
    strict: bool = False
    device: str = "auto"


@dataclass(frozen=True, eq=False)
class Result:
    """A verdict that was checked (None: unknown), and a model where it is True."""

    satisfiable: bool | None
    model: NDArray[np.bool_] | None = None

    @property
    def exit_code(self) -> int:
        """10, 20 or 0."""
        return {True: SATISFIABLE, False: UNSATISFIABLE, None: UNKNOWN}[self.satisfiable]


def places(model: str | None, formula: str | None, *, guided: bool) -> tuple[str | None, str]:
    """Sort out MODEL and FILE: without guidance the only argument is the FILE.

    Raises `UsageError` where one is missing, or one too many.
    """
    if not guided:
        if model is not None and formula is not None:
            raise UsageError(f"--no-guide takes the FILE alone: leave out {model}")
        return None, default_input(model if formula is None else formula, "formula")
    if model is None:
        raise UsageError("no model given: name a checkpoint, or say --no-guide")
    if formula is None and dimacs.is_named_as_formula(model):
        raise UsageError(f"{model} stands where the MODEL does: name both, or say --no-guide")
    return model, default_input(formula, "formula")


def run(
    model: str | None, path: str, settings: Settings, output: str = "-", *, force: bool = False
) -> int:
    """Solve the formula in a file, guided by a checkpoint unless `model` is None.

    Writes DIMACS result lines to `output`, the counts to the log, and gives the exit code. An
    interruption, and a solver that fails, leave `s UNKNOWN` there before they are raised; a solver
    that was killed leaves it and is an error in the log only. Raises `SolverError` for a wrong
    model and, with `check`, for an answer that a second solver contradicts.
    """
    from papercuts.app import Terminated

    check_output(output, force=force)
    hooks = backend(settings.backend).hooks
    if model is not None and not hooks:
        raise UsageError(f"{settings.backend} takes no guidance: say --no-guide")
    if model is not None and "weights" not in hooks:
        logger.warning("%s takes polarities only, no weights", settings.backend)
    end = None if settings.timeout_s is None else time.monotonic() + settings.timeout_s
    try:
        result = _solve(model, path, settings, end)
    except _OverTimeError:
        logger.info("the time was up before the solver began")
        result = Result(None)
    except SolverDiedError as error:
        logger.error("%s", error)  # noqa: TRY400 (no traceback)
        result = Result(None)
    except (SolverError, KeyboardInterrupt, Terminated):
        write(output, Result(None), force=force)
        raise
    write(output, result, force=force)
    return result.exit_code


def _solve(model: str | None, path: str, settings: Settings, end: float | None) -> Result:
    if settings.backend.startswith(EXEC):
        with _until(end):
            cnf, guidance, polarity = _read(model, path, settings)
        solver = backend(settings.backend)
        outcome = solver.solve(
            solver.prepare(cnf),
            guidance,
            polarity=polarity,
            timeout_s=_left(end),
            conflicts=settings.conflicts,
        )
    else:
        with Apart() as worker:  # starts while this process reads
            with _until(end):
                cnf, guidance, polarity = _read(model, path, settings)
            outcome = worker.solve(
                settings.backend,
                cnf,
                guidance,
                polarity=polarity,
                seed=settings.seed,
                timeout_s=_left(end),
                conflicts=settings.conflicts,
            )
    _report(settings.backend, outcome)
    if outcome.satisfiable:
        return Result(True, checked_model(cnf, outcome, settings.backend))
    if outcome.satisfiable is False and settings.check:
        return _cross_checked(cnf, settings.backend, end)
    return Result(outcome.satisfiable)


def _read(
    model: str | None, path: str, settings: Settings
) -> tuple[CNF, Guidance | None, Polarity]:
    if model is None:
        return dimacs.load(path, strict=settings.strict), None, "persistent"
    from papercuts.hardware import pick_device
    from satguide.guidance import guide, warn_outside
    from satguide.models import load as load_model

    checkpoint, device = load_model(model), pick_device(settings.device)
    cnf = dimacs.load(path, strict=settings.strict)
    warn_outside(checkpoint, cnf, path)
    start = time.perf_counter()
    guidance = guide(checkpoint, cnf, device=device)
    logger.info("network: %.3f s on %s", time.perf_counter() - start, device)
    return cnf, guidance, settings.polarity or checkpoint.polarity


@contextlib.contextmanager
def _until(end: float | None) -> Iterator[None]:
    """Raise `_OverTimeError` out of the block when the time is up, also out of a slow pipe.

    In another thread than the main one, where no alarm rings, the block takes its time.
    """
    if end is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(*_: object) -> NoReturn:
        raise _OverTimeError

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(1e-3, end - time.monotonic()))
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _left(end: float | None) -> float | None:
    return None if end is None else max(0.0, end - time.monotonic())


def _report(name: str, outcome: Outcome) -> None:
    counts = [
        f"{count} {what}"
        for count, what in ((outcome.decisions, "decisions"), (outcome.conflicts, "conflicts"))
        if count is not None
    ]
    logger.info("%s: %s", name.split()[0], ", ".join([*counts, f"{outcome.wall_s:.3f} s"]))


def checked_model(cnf: CNF, outcome: Outcome, name: str) -> NDArray[np.bool_]:
    """Give the model if it satisfies every clause. Raises `SolverError` if not."""
    if outcome.model is None:
        raise SolverError(
            f"{name} says satisfiable and gives no model: it may need an option to print it"
        )
    wrong = cnf.unsatisfied(outcome.model)
    if wrong.size:
        raise SolverError(
            f"{name} gave a wrong model: it leaves {wrong.size} of {len(cnf)} clauses false, "
            f"the first is clause {wrong[0] + 1}"
        )
    return outcome.model


def _cross_checked(cnf: CNF, name: str, end: float | None) -> Result:
    """Ask a second solver about a formula that the first calls unsatisfiable."""
    second = "glucose42" if "cadical" in name else "cadical195"
    with Apart() as worker:
        outcome = worker.solve(second, cnf, None, timeout_s=_left(end))
    _report(second, outcome)
    if outcome.satisfiable is None:
        logger.warning("%s says unsatisfiable, %s did not finish in time", name, second)
        return Result(None)
    if outcome.satisfiable:
        checked_model(cnf, outcome, second)
        raise SolverError(f"{name} says unsatisfiable, but {second} has a model")
    return Result(False)


def write(output: str, result: Result, *, force: bool = False) -> None:
    """Write the result lines: `s`, and `v` lines of a model."""
    word = {True: "SATISFIABLE", False: "UNSATISFIABLE", None: "UNKNOWN"}[result.satisfiable]
    with open_output(output, force=force) as out:
        out.write(f"s {word}\n".encode())
        if result.model is not None:
            out.write("".join(value_lines(result.model)).encode())


def value_lines(model: NDArray[np.bool_]) -> Iterator[str]:
    """Give `v` lines below 78 columns that list a literal for each variable, and 0."""
    variables = np.arange(1, model.size + 1)
    words = [*map(str, np.where(model, variables, -variables).tolist()), "0"]
    ends = list(accumulate(len(word) + 1 for word in words))
    first = 0
    while first < len(words):
        room = _WIDTH - 2 + (ends[first - 1] if first else 0)
        last = int(np.searchsorted(ends[first : first + _WIDTH], room, side="right")) + first
        yield f"v {' '.join(words[first:last])}\n"
        first = last

"""The solvers of python-sat, with what hooks they have.

The MiniSat and Glucose solvers take weights as initial activities (`set_activities`, which also
sets the increment of a bump to 1), and polarities as first phases (`set_phases`). Bumps are not
multiplied by w, so conflicts wash the weights out. Setting them again between budgets of conflicts
does keep them multiplicative, but is left out, since it was measured to lose more than it wins
(`bench/RESULTS.md`, 60 formulas 3SAT(150), a checkpoint's weights, decisions over those of
the plain solver): in MiniSat initial activities 0.97, re-injection every 1000 conflicts 1.28, every
200 1.69, every 50 2.54, as the budget alone, which restarts the search and its limits of learnt
clauses, costs 1.58 at 200; in Glucose initial activities 0.60, and re-injection the same, for it
ends a budget at a restart only, 0.2 times a formula on average.

minisatgh, lingeling and the CaDiCaLs keep to a polarity for the whole search, the others until
phase saving overrides it. These solvers draw nothing at random: the seed changes nothing.

Glucose and Gluecard look at limits when they restart only, which may be thousands of conflicts
late: a limit of conflicts is kept so, and at a limit of time they are killed.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papercuts.errors import UsageError
from satguide.backends import Guidance, Outcome, Polarity, SolverError
from satguide.cnf import CNF

_BOTH = frozenset({"weights", "polarity"})
_PHASES = frozenset({"polarity"})


@dataclass(frozen=True)
class _Solver:
    """What python-sat calls a solver, and what it can do."""

    name: str
    hooks: frozenset[str]
    interruptible: bool = True
    counts_conflicts: bool = True  # whether it takes a limit of conflicts


SOLVERS = {
    "minisat22": _Solver("minisat22", _BOTH),
    "minisatgh": _Solver("minisat-gh", _BOTH),
    "glucose3": _Solver("glucose3", _BOTH, interruptible=False),
    "glucose4": _Solver("glucose4", _BOTH, interruptible=False),
    "glucose42": _Solver("glucose42", _BOTH, interruptible=False),
    "maplesat": _Solver("maplesat", _PHASES),
    "maplecm": _Solver("maplecm", _PHASES),
    "maplechrono": _Solver("maplechrono", _PHASES),
    "mergesat3": _Solver("mergesat3", _PHASES),
    "gluecard3": _Solver("gluecard3", _PHASES, interruptible=False),
    "gluecard4": _Solver("gluecard4", _PHASES, interruptible=False),
    "minicard": _Solver("minicard", _PHASES),
    "cadical103": _Solver("cadical103", frozenset(), interruptible=False),
    "cadical153": _Solver("cadical153", _PHASES, interruptible=False),
    "cadical195": _Solver("cadical195", _PHASES, interruptible=False),
    "cadical300": _Solver("cadical300", _PHASES, interruptible=False),
    "lingeling": _Solver("lingeling", _PHASES, interruptible=False, counts_conflicts=False),
    "kissat404": _Solver("kissat404", frozenset(), interruptible=False),
}


_GRACE_S = 0.5  # for a solver that stops by itself at the limit, and can still tell its counts


def python_sat() -> Any:
    """Import `pysat.solvers`, which has no types of its own."""
    return import_module("pysat.solvers")


@dataclass(frozen=True, eq=False)
class Prepared:
    """A formula that is solved many times: the process of the solvers keeps the last one."""

    cnf: CNF


@dataclass(frozen=True)
class _Question:
    """What a solve is told besides the formula."""

    guidance: Guidance | None
    polarity: Polarity
    timeout_s: float | None
    conflicts: int | None


@dataclass(eq=False)
class _Last:
    """The formula that was sent, and to which process."""

    prepared: Prepared | None = None
    process: int = 0


_sent = _Last()
_held: list[tuple[CNF, list[list[int]], float]] = []  # in that process: one formula, listed in s


class PySat:
    """One of `SOLVERS`, as a `satguide.backends.Backend`.

    It runs in a process beside this one (`satguide.child`), unless `here` is true.
    """

    def __init__(self, name: str, *, here: bool = False) -> None:
        self.name = name
        self._here = here
        self._solver = SOLVERS[name]
        self.hooks = self._solver.hooks
        self.interruptible = self._solver.interruptible

    def prepare(self, cnf: CNF) -> Prepared:
        """Mark a formula as one that is solved many times."""
        return Prepared(cnf)

    def solve(
        self,
        prepared: Prepared,
        guidance: Guidance | None,
        *,
        polarity: Polarity = "persistent",
        seed: int = 0,  # noqa: ARG002 (nothing is drawn at random)
        timeout_s: float | None = None,
        conflicts: int | None = None,
    ) -> Outcome:
        """Solve a formula; see `satguide.backends.Backend`. Every solve begins from nothing.

        Raises `UsageError` for guidance to a solver without hooks, and for a limit of conflicts to
        one that does not count them; `SolverError` where the solver's process dies.
        """
        if guidance is not None and not self.hooks:
            raise UsageError(f"{self.name} takes neither weights nor polarities")
        if conflicts is not None and not self._solver.counts_conflicts:
            raise UsageError(f"{self.name} takes no limit of conflicts")
        own_limit = timeout_s if self.interruptible else None
        question = _Question(guidance, polarity, own_limit, conflicts)
        if self._here:
            return _solve_here(self.name, prepared.cnf, question)
        from satguide.child import OverTimeError, call, number

        process = number()
        known = _sent.prepared is prepared and _sent.process == process
        _sent.prepared = None  # unless it comes to an answer
        patience_s = timeout_s
        if timeout_s is not None and self.interruptible:
            patience_s = timeout_s + _GRACE_S
        try:
            outcome = call(
                _solve_here, self.name, None if known else prepared.cnf, question,
                timeout_s=patience_s,
            )  # fmt: skip
        except OverTimeError:
            return Outcome(None, None, None, None, timeout_s or 0.0)
        except SolverError as error:
            raise type(error)(f"{self.name}: {error}") from error
        _sent.prepared, _sent.process = prepared, process
        return outcome

    def run(self, cnf: CNF, clauses: list[list[int]], question: _Question) -> Outcome:
        """Solve in this process; the time begins with clauses that are listed."""
        start = time.perf_counter()
        guidance, conflicts = question.guidance, question.conflicts
        if not cnf.lengths().all():  # an empty clause, which not every solver of these takes
            return Outcome(False, None, 0, 0, time.perf_counter() - start)
        if not len(cnf):  # MapleCM crashes
            free = np.zeros(cnf.variables, dtype=bool) if guidance is None else guidance.polarity
            return Outcome(True, free, 0, 0, time.perf_counter() - start)
        with python_sat().Solver(name=self._solver.name, bootstrap_with=clauses) as solver:
            if guidance is not None:
                self._guide(solver, guidance, question.polarity)
            if conflicts is not None:
                solver.conf_budget(conflicts)
            if question.timeout_s is None and conflicts is None:
                answer = solver.solve()
            elif question.timeout_s is None:
                answer = solver.solve_limited()
            else:
                answer = _solve_until(solver, start + question.timeout_s)
            model = solver.get_model() if answer else None
            wall_s = time.perf_counter() - start  # before it takes itself apart
            counts = _counts(solver)
        return Outcome(
            answer,
            None if model is None else _values(model, cnf.variables),
            counts.get("decisions"),
            counts.get("conflicts"),
            wall_s,
        )

    def _guide(self, solver: Any, guidance: Guidance, polarity: Polarity) -> None:
        variables = np.arange(1, guidance.weights.size + 1)
        if "weights" in self.hooks:
            pairs = zip(variables.tolist(), guidance.weights.astype(float).tolist(), strict=True)
            solver.set_activities(dict(pairs))
        if polarity != "none":
            solver.set_phases(np.where(guidance.polarity, variables, -variables).tolist())


def _solve_here(name: str, cnf: CNF | None, question: _Question) -> Outcome:
    """Solve a formula, or (None) the last one again; the time of listing its clauses counts."""
    if cnf is not None:
        start = time.perf_counter()
        clauses = list(cnf)
        _held[:] = [(cnf, clauses, time.perf_counter() - start)]
    own, clauses, listing_s = _held[0]
    outcome = PySat(name).run(own, clauses, question)
    return replace(outcome, wall_s=outcome.wall_s + listing_s)


def _solve_until(solver: Any, deadline: float) -> bool | None:
    timer = threading.Timer(max(0.0, deadline - time.perf_counter()), solver.interrupt)
    timer.daemon = True
    timer.start()
    try:
        answer: bool | None = solver.solve_limited(expect_interrupt=True)
    finally:
        timer.cancel()
        timer.join()  # it must not meet a solver that is gone
    return answer


def _counts(solver: Any) -> dict[str, int]:
    try:
        return solver.accum_stats() or {}
    except NotImplementedError:  # Kissat keeps them to itself
        return {}


def _values(model: list[int], variables: int) -> NDArray[np.bool_]:
    """Turn a model into values, with False for variables that the solver never heard of."""
    literals = np.array(model, dtype=np.int64)
    values = np.zeros(variables, dtype=bool)
    values[literals[(literals > 0) & (literals <= variables)] - 1] = True
    return values

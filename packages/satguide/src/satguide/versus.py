"""Solvers of python-sat without guidance: what a person would use instead."""

from __future__ import annotations

from functools import cache

from papercuts.errors import UsageError
from satguide.backends import Outcome
from satguide.cnf import CNF
from satguide.pysat_backend import SOLVERS, PySat, python_sat

__all__ = ["names", "python_sat", "solve"]


def names(text: str) -> tuple[str, ...]:
    """Read `NAME[,NAME...]`, the back ends of python-sat; its short forms of names work too.

    Raises `UsageError`, with the list, for a name that is not there.
    """
    known = _known()
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    for name in wanted:
        if name not in known:
            listed = ", ".join(SOLVERS)
            raise UsageError(f"--versus: no solver is called {name!r} (there is {listed})")
    return tuple(dict.fromkeys(known[name] for name in wanted))


@cache
def _known() -> dict[str, str]:
    """Map all names of the solvers, python-sat's short ones too, to that of the back end."""
    aliases = vars(python_sat().SolverNames)
    return {alias: name for name in SOLVERS for alias in (name, *aliases.get(name, ()))}


def solve(name: str, cnf: CNF, *, timeout_s: float | None = None) -> Outcome:
    """Solve a formula by a solver of python-sat, without guidance.

    The time counts from the CNF in memory to the answer; of a run that is killed it is the limit.
    """
    solver = PySat(name)
    return solver.solve(solver.prepare(cnf), None, timeout_s=timeout_s)

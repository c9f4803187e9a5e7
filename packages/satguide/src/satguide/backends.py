"""Solvers by name, behind one interface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from papercuts.errors import OutputError, PapercutsError, UsageError
from papercuts.files import reason
from satguide.cnf import CNF

Polarity = Literal["persistent", "none"]


@dataclass(frozen=True, eq=False)
class Guidance:
    """What is given to a solver: `weights` [variables] > 0, `polarity` [variables] bool."""

    weights: NDArray[np.float32]
    polarity: NDArray[np.bool_]

    @classmethod
    def unit(cls, variables: int) -> Guidance:
        """All w = 1 and p = 1: what the hooks do by themselves, without knowing anything."""
        return cls(np.ones(variables, dtype=np.float32), np.ones(variables, dtype=bool))


@dataclass(frozen=True, eq=False)
class Outcome:
    """How a solve ended.

    `satisfiable` is None where a limit came first. `model` is [variables] bool; `decisions` and
    `conflicts` are the solver's own counts, None where it does not tell; `wall_s` is the time of
    the solve with the building of the problem.
    """

    satisfiable: bool | None
    model: NDArray[np.bool_] | None
    decisions: int | None
    conflicts: int | None
    wall_s: float


class SolverError(PapercutsError):
    """A solver failed: it crashed, said nothing that can be read, or gave a wrong answer."""


class SolverDiedError(SolverError):
    """A solver was killed from outside, or ran out of memory."""


class Backend(Protocol):
    """A solver that takes guidance.

    `hooks` says what of it: weights, polarity, both or nothing (then guidance is an error).
    `interruptible` says whether a solve keeps to a time limit by itself; others are killed.
    """

    hooks: frozenset[str]
    interruptible: bool

    def prepare(self, cnf: CNF) -> Any:
        """Turn a formula into what this solver reads, once for many solves."""

    def solve(
        self,
        prepared: Any,
        guidance: Guidance | None,
        *,
        polarity: Polarity = "persistent",
        seed: int = 0,
        timeout_s: float | None = None,
        conflicts: int | None = None,
    ) -> Outcome:
        """Solve, guided or by plain VSIDS (`guidance` None).

        `timeout_s` and `conflicts` are limits; the second gives the same result on every machine.
        `seed` 0 is the solver's own default; what another one means, the back end says.
        """


EXEC = "exec:"  # what the name of an external solver begins with


def no_place(error: OSError) -> OutputError:
    """Say why no temporary file could be written, and what to do about it."""
    return OutputError(f"no place for temporary files: {reason(error)} (TMPDIR names a folder)")


def backend(name: str, *, here: bool = False) -> Backend:
    """Give the solver called `name`. Raises `UsageError` for an unknown one.

    With `here` the solvers of python-sat run in this process, which they may block or end.
    """
    if name == "clasp":
        from satguide import clasp

        return clasp
    if name.startswith(EXEC):
        from satguide.external import External

        return External(name.removeprefix(EXEC))
    from satguide.pysat_backend import SOLVERS, PySat

    if name in SOLVERS:
        return PySat(name, here=here)
    known = ", ".join(["clasp", *SOLVERS])
    raise UsageError(f"no back end is called {name!r} (there is {known}, and exec:COMMAND)")

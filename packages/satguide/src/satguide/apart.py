"""A solve in a process of its own, so that a time limit, a signal or a crash ends it cleanly."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import numpy as np

from papercuts import errors
from satguide.backends import (
    Guidance,
    Outcome,
    Polarity,
    SolverDiedError,
    SolverError,
    no_place,
)
from satguide.cnf import CNF
from satguide.guarded import Group

_GRACE_S = 0.5  # for a solver that stops by itself at the limit, and can still tell its counts


class Apart:
    """One worker (`satguide.worker`), for one solve. It starts at once, in the background."""

    def __init__(self) -> None:
        with ExitStack() as stack:
            group = stack.enter_context(Group())
            try:
                # Here, so that what a killed worker leaves in it goes too.
                folder = stack.enter_context(
                    tempfile.TemporaryDirectory(prefix="satguide-", ignore_cleanup_errors=True)
                )
            except OSError as error:
                raise no_place(error) from error
            self._process = group.start(
                [sys.executable, "-P", "-m", "satguide.worker", folder],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            self._group = group
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The group is killed before its folder goes.
        self._group.kill()
        self._stack.close()

    def solve(
        self,
        name: str,
        cnf: CNF,
        guidance: Guidance | None,
        *,
        polarity: Polarity = "persistent",
        seed: int = 0,
        timeout_s: float | None = None,
        conflicts: int | None = None,
    ) -> Outcome:
        """Solve by the back end called `name`; see `satguide.backends.Backend`.

        Raises what the back end raises, `SolverDiedError` for a worker that was killed or had too
        little memory, and `SolverError` for one that crashed.
        """
        start = time.perf_counter()
        asked = {
            "backend": name,
            "variables": cnf.variables,
            "literals": cnf.literals.size,
            "clauses": len(cnf),
            "guided": guidance is not None,
            "polarity": polarity,
            "seed": seed,
            "timeout_s": timeout_s,
            "conflicts": conflicts,
        }
        parts = [json.dumps(asked).encode(), b"\n", cnf.literals.tobytes(), cnf.starts.tobytes()]
        if guidance is not None:
            parts += [guidance.weights.astype(np.float32).tobytes(), guidance.polarity.tobytes()]
        try:
            out, said = self._process.communicate(
                b"".join(parts), None if timeout_s is None else timeout_s + _GRACE_S
            )
        except subprocess.TimeoutExpired:
            self._group.kill()
            return Outcome(None, None, None, None, time.perf_counter() - start)
        head, newline, model = out.partition(b"\n")
        if self._process.returncode or not newline:
            raise _obituary(name, self._process.returncode, said)
        return _outcome(name, json.loads(head), model)


def _outcome(name: str, told: dict[str, Any], model: bytes) -> Outcome:
    if "error" in told:
        kind = getattr(errors, told["error"], None)
        if told["error"] == "MemoryError" or "bad_alloc" in told["message"]:
            raise SolverDiedError(f"{name} ran out of memory")
        if isinstance(kind, type) and issubclass(kind, errors.PapercutsError):
            raise kind(told["message"])
        raise SolverError(f"{name} failed: {told['error']}: {told['message']}")
    values = np.frombuffer(model, dtype=bool) if told["model"] else None
    return Outcome(
        told["satisfiable"], values, told["decisions"], told["conflicts"], told["wall_s"]
    )


def _obituary(name: str, code: int, said: bytes) -> SolverError:
    if code == -signal.SIGKILL:
        return SolverDiedError(f"the process of {name} was killed: most likely out of memory")
    return SolverError(f"the process of {name} {how_it_ended(code, said)}")


def how_it_ended(code: int, said: bytes) -> str:
    """Say how a process ended that should not have: its status, and its last word on stderr."""
    lines = said.decode(errors="replace").strip().splitlines()
    last = f" ({lines[-1].strip()[:200]})" if lines else ""
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}{last}"
    return f"ended with status {code}{last}"

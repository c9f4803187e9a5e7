"""Any solver that is a program: it reads a CNF file and prints its answer.

The file carries the guidance in both forms that solvers know, right behind the header: a
`c weight` line and `c heuristic` lines. Both are comments, so a solver that knows neither still
solves the formula.
"""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from papercuts.errors import MissingError, UsageError
from papercuts.files import reason
from satguide.apart import how_it_ended
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

_WORDS: dict[str, bool | None] = {
    "SATISFIABLE": True, "SAT": True,
    "UNSATISFIABLE": False, "UNSAT": False,
    "UNKNOWN": None, "INDETERMINATE": None, "INDET": None,
}  # fmt: skip
_CODES = {10: True, 20: False}  # of the SAT competition
_FLAGS = re.MULTILINE | re.IGNORECASE
# MiniSat and Glucose `decisions : 12`, CaDiCaL and Kissat `c decisions: 12`, clasp `c Choices : 12`
_DECISIONS = re.compile(r"^(?:c\s+)?(?:decisions|choices)\s*:\s*(\d+)", _FLAGS)
_CONFLICTS = re.compile(r"^(?:c\s+)?conflicts\s*:\s*(\d+)", _FLAGS)


class External:
    """A command line, as a `satguide.backends.Backend`. It runs without a shell.

    The name of the CNF file takes the place of `{}` in the command, or stands at its end. Raises
    `UsageError` for a command that is empty or whose quotes do not close.
    """

    hooks = frozenset({"weights", "polarity"})
    interruptible = True

    def __init__(self, command: str) -> None:
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"exec:{command}: {error}") from error
        if not self._words:
            raise UsageError("exec: needs a command, as in exec:glucose or 'exec:kissat -q {}'")
        if not any("{}" in word for word in self._words):
            self._words.append("{}")

    def prepare(self, cnf: CNF) -> CNF:
        """Nothing to prepare: the file holds the guidance too."""
        return cnf

    def solve(
        self,
        prepared: CNF,
        guidance: Guidance | None,
        *,
        polarity: Polarity = "persistent",
        seed: int = 0,  # noqa: ARG002
        timeout_s: float | None = None,
        conflicts: int | None = None,
    ) -> Outcome:
        """Run the program; see `satguide.backends.Backend`. The seed is the program's own affair.

        At the time limit it is killed with all that it has started, as it is when this process
        ends. Raises `UsageError` for a limit of conflicts, `MissingError` for a program that is
        not there, `SolverDiedError` for one that was killed, `SolverError` for one that crashed or
        said nothing that can be read, `OutputError` where there is no place for the file.
        """
        if conflicts is not None:
            raise UsageError("exec: takes no limit of conflicts: give the program its own option")
        start = time.perf_counter()
        try:
            with tempfile.NamedTemporaryFile(prefix="satguide-", suffix=".cnf") as file:
                _write(file, prepared, guidance, polarity)
                file.flush()
                ended = self._run(file.name, timeout_s, start)
        except OSError as error:
            raise no_place(error) from error
        wall_s = time.perf_counter() - start
        if ended is None:
            return Outcome(None, None, None, None, wall_s)
        said = read_answer(*ended, program=self._words[0])
        model = said.values(prepared.variables)
        return Outcome(said.verdict, model, said.decisions, said.conflicts, wall_s)

    def _run(
        self, path: str, timeout_s: float | None, start: float
    ) -> tuple[int, bytes, bytes] | None:
        """Give status, stdout and stderr of the program, or None when the time is up."""
        command = [word.replace("{}", path) for word in self._words]
        with Group() as group:
            try:
                process = group.start(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                )
            except OSError as error:
                raise MissingError(
                    f"{command[0]}: {reason(error)} (exec: needs the program of a solver)"
                ) from error
            left = None
            if timeout_s is not None:
                left = max(0.0, start + timeout_s - time.perf_counter())
            try:
                out, err = process.communicate(timeout=left)
            except subprocess.TimeoutExpired:
                return None
            return process.returncode, out, err


@dataclass
class Answer:
    """What a program said. `literals` is None where it gave no model."""

    program: str
    verdict: bool | None = None
    literals: list[int] | None = None
    decisions: int | None = None
    conflicts: int | None = None
    _said: set[bool | None] = field(default_factory=set)

    def say(self, word: str) -> None:
        """Take a verdict. Raises `SolverError` for a second one that is another."""
        self._said.add(_WORDS[word])
        if len(self._said) > 1:
            raise SolverError(f"{self.program} gave two different answers")
        self.verdict = _WORDS[word]

    @property
    def said_something(self) -> bool:
        """Whether there was a verdict, be it that it is unknown."""
        return bool(self._said)

    def add(self, words: list[str]) -> None:
        """Take literals of the model, up to its 0."""
        if self.literals is None:
            self.literals = []
        try:
            self.literals += [int(word) for word in words if word != "0"]
        except ValueError as error:
            raise SolverError(f"{self.program} gave a model that cannot be read: {error}") from None

    def values(self, variables: int) -> NDArray[np.bool_] | None:
        """Give the model [variables], False where nothing was said; None without a model."""
        if not self.verdict or (self.literals is None and variables):
            return None
        literals = np.array(self.literals or [], dtype=np.int64)
        if np.abs(literals).max(initial=0) > variables:
            raise SolverError(f"{self.program} gave a model with variables that are not there")
        values = np.zeros(variables, dtype=bool)
        values[literals[literals > 0] - 1] = True
        if values[-literals[literals < 0] - 1].any():
            raise SolverError(f"{self.program} gave a model with a variable both true and false")
        return values


def read_answer(code: int, out: bytes, err: bytes, *, program: str) -> Answer:
    """Read what a solver printed: `s` and `v` lines, or the bare words of MiniSat and clasp.

    A model may also be a line of literals behind a bare SAT (`minisat FILE /dev/stdout`). Without
    a word the exit status counts, 10 or 20. Raises `SolverDiedError` for a program that was killed,
    `SolverError` for one that crashed, contradicts itself or says nothing.
    """
    if code == -signal.SIGKILL:
        raise SolverDiedError(f"{program} was killed: most likely out of memory")
    if code < 0:
        raise SolverError(f"{program} {how_it_ended(code, err or out)}")
    answer = Answer(program)
    text = out.decode(errors="replace")
    bare = False
    for line in text.splitlines():
        words = line.split()
        if not words or words[0] == "c":
            continue
        if words[0] == "s" and len(words) > 1 and words[1] in _WORDS:
            answer.say(words[1])
        elif words[0] == "v":
            answer.add(words[1:])
        elif len(words) == 1 and words[0] in _WORDS:
            answer.say(words[0])
            bare = answer.verdict is True
        elif bare and words[-1] == "0" and _are_literals(words):
            answer.add(words)
    if not answer.said_something and code not in _CODES:
        raise SolverError(f"{program} gave no answer: it {how_it_ended(code, err or out)}")
    if not answer.said_something:
        answer.say("SAT" if _CODES[code] else "UNSAT")
    elif code in _CODES and answer.verdict is not _CODES[code]:
        raise SolverError(f"{program} gave one answer and the exit status of another ({code})")
    both = f"{text}\n{err.decode(errors='replace')}"
    for name, pattern in (("decisions", _DECISIONS), ("conflicts", _CONFLICTS)):
        if found := pattern.findall(both):
            setattr(answer, name, int(found[-1]))
    return answer


def _are_literals(words: list[str]) -> bool:
    return all(word.removeprefix("-").isdecimal() for word in words)


def _write(
    file: BinaryIO | tempfile._TemporaryFileWrapper[bytes],
    cnf: CNF,
    guidance: Guidance | None,
    polarity: Polarity,
) -> None:
    from satguide.dimacs import write
    from satguide.weights import heuristic_lines, weight_line

    header: list[bytes] = []
    if guidance is not None:
        header = [weight_line(guidance, polarity), *heuristic_lines(guidance, polarity)]
    write(file, cnf, header=header)  # type: ignore[arg-type]

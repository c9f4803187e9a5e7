"""clasp, in process: a CDCL solver whose branching score takes a factor for each variable.

The score of variable v begins at w_v and every bump adds w_v times the increment (heuristic
modifiers `init` and `factor`), which is w_v times what plain VSIDS would have; `sign` makes the
given value the one that is tried first, always. Weights are 16-bit integers in clasp: w is scaled
by 1000, rounded and clipped to 1..32767.

The counts differ from those of `clingo --mode=clasp` on the same formula, and both are right: the
command line sees DIMACS and takes the settings that clasp has for SAT, while here the formula is a
logic program (a choice over all atoms and a constraint for each clause), which gets those for
answer sets: another restart and deletion policy.
"""

from __future__ import annotations

import math
import tempfile
import time
from dataclasses import dataclass
from typing import Any

import clingo
import numpy as np
from numpy.typing import NDArray

from satguide.backends import Guidance, Outcome, Polarity, no_place
from satguide.cnf import CNF, offsets
from satguide.tokens import lines

SCALE = 1000
LARGEST = 32767
_PATIENCE_S = 0.1  # between two looks for Ctrl-C
SIGN, FACTOR, INIT = 1, 2, 3  # the modifiers

hooks = frozenset({"weights", "polarity"})  # see `satguide.backends.Backend`
interruptible = True


@dataclass(frozen=True, eq=False)
class Prepared:
    """A formula, and its text in clasp's input format."""

    cnf: CNF
    text: bytes


def bias(weights: NDArray[Any]) -> NDArray[np.int64]:
    """Scale weights to clasp's integers, 1 to 32767."""
    return np.clip(np.rint(np.asarray(weights, dtype=np.float64) * SCALE), 1, LARGEST).astype(
        np.int64
    )


def problem_text(cnf: CNF) -> bytes:
    """Write a formula in clasp's input format (aspif).

    A choice over all atoms, and for each clause a constraint against all its literals being false.
    Duplicate literals are dropped, and so are tautologies, which say nothing.
    """
    literals, clause, kept = _distinct(cnf)
    lengths = np.bincount(clause, minlength=len(cnf)).astype(np.int64)[kept]
    starts = offsets(lengths + 5)
    numbers = np.empty(int(starts[-1]), dtype=np.int64)
    inside = np.ones(numbers.size, dtype=bool)
    for column in range(5):
        inside[starts[:-1] + column] = False
    numbers[~inside] = np.column_stack(
        [np.ones_like(lengths), *np.zeros((3, lengths.size), dtype=np.int64), lengths]
    ).ravel()
    numbers[inside] = -literals[kept[clause]]
    return b"asp 1 0 0\n" + _choice(cnf.variables) + lines(numbers, starts[1:])


def _choice(variables: int) -> bytes:
    if not variables:
        return b""
    row = np.r_[1, 1, variables, np.arange(1, variables + 1), 0, 0]
    return lines(row, np.array([row.size]))


def _distinct(
    cnf: CNF,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Give the literals without repetition, the clause of each, and which clauses to keep."""
    literals = cnf.literals.astype(np.int64)
    clause = np.repeat(np.arange(len(cnf)), cnf.lengths())
    kept = np.ones(len(cnf), dtype=bool)
    # Sorted by clause and variable, equal and opposite literals stand side by side.
    keys = clause * (cnf.variables + 1) + np.abs(literals)
    order = np.argsort(keys, kind="stable")
    same = np.zeros(order.size, dtype=bool)
    same[1:] = keys[order[1:]] == keys[order[:-1]]
    if not same.any():
        return literals, clause, kept
    groups = np.cumsum(~same) - 1
    positive = np.bincount(groups, literals[order] > 0) > 0
    negative = np.bincount(groups, literals[order] < 0) > 0
    firsts = order[~same]
    kept[clause[firsts[positive & negative]]] = False
    chosen = np.sort(firsts)
    return literals[chosen], clause[chosen], kept


def heuristic_text(guidance: Guidance, polarity: Polarity = "persistent") -> bytes:
    """Write guidance in clasp's input format: modifiers 2 factor, 3 init, 1 sign."""
    factors = bias(guidance.weights)
    modifiers = [(FACTOR, factors), (INIT, factors)]
    if polarity != "none":
        modifiers.append((SIGN, np.where(guidance.polarity, 1, -1)))
    rows = np.empty((factors.size, len(modifiers), 6), dtype=np.int64)
    rows[:, :] = 7, 0, 0, 0, 1, 0
    rows[:, :, 2] = np.arange(1, factors.size + 1)[:, None]
    for column, (modifier, values) in enumerate(modifiers):
        rows[:, column, 1] = modifier
        rows[:, column, 3] = values
    return lines(rows.ravel(), np.arange(6, rows.size + 1, 6))


def prepare(cnf: CNF) -> Prepared:
    """Write a formula once, for any number of solves."""
    return Prepared(cnf, problem_text(cnf))


def solve(
    prepared: Prepared,
    guidance: Guidance | None,
    *,
    polarity: Polarity = "persistent",
    seed: int = 0,
    timeout_s: float | None = None,
    conflicts: int | None = None,
) -> Outcome:
    """Solve a formula; see `satguide.backends.Backend`. Every solve begins from nothing.

    A limit of `conflicts` ends the run at the first conflict that reaches it. clasp counts the
    conflicts that follow from one another at once, so the count may pass the limit by a few.
    Its `--seed` is `seed` + 1, so 0 is clasp's own default. Raises `OutputError` where there is no
    place for a temporary file.
    """
    start = time.perf_counter()
    cnf = prepared.cnf
    control = _control(prepared, guidance, polarity, seed)
    if conflicts is not None:
        control.configuration.solve.solve_limit = f"{conflicts},umax"  # type: ignore[union-attr]
    model: list[NDArray[np.bool_]] = []

    def keep(found: clingo.Model) -> None:
        values = map(found.is_true, range(1, cnf.variables + 1))
        model.append(np.fromiter(values, dtype=bool, count=cnf.variables))

    end = math.inf if timeout_s is None else start + timeout_s
    # In a thread of its own: Ctrl-C in a callback of clasp's would abort the whole process.
    with control.solve(on_model=keep, async_=True) as handle:
        while not handle.wait(min(_PATIENCE_S, max(0.0, end - time.perf_counter()))):
            if time.perf_counter() >= end:
                handle.cancel()
                break
        result = handle.get()
        wall_s = time.perf_counter() - start
    counts: dict[str, Any] = control.statistics["solving"]["solvers"]
    verdict = None if result.unknown else bool(result.satisfiable)
    return Outcome(
        verdict,
        model[0] if model else None,
        int(counts["choices"]),
        int(counts["conflicts"]),
        wall_s,
    )


def _control(
    prepared: Prepared, guidance: Guidance | None, polarity: Polarity, seed: int
) -> clingo.Control:
    heuristic = "Vsids" if guidance is None else "Domain"
    options = [f"--heuristic={heuristic}", "-t1", f"--seed={seed + 1}", "--sat-prepro=0"]
    control = clingo.Control(options, logger=_ignore)
    # clasp reads files alone; and this is four times faster than adding clauses from Python.
    try:
        with tempfile.NamedTemporaryFile(prefix="satguide-", suffix=".aspif") as file:
            file.write(prepared.text)
            if guidance is not None:
                file.write(heuristic_text(guidance, polarity))
            file.write(b"0\n")
            file.flush()
            control.load_aspif([file.name])
    except OSError as error:
        raise no_place(error) from error
    return control


def _ignore(code: clingo.MessageCode, text: str) -> None:
    """Keep clasp's remarks (about duplicate constraints) off stderr."""

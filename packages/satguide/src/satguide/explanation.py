"""What a network's weights go with: degree, membership in an unsatisfiable core, the backbone.

A core is found by clause selectors under assumptions, the backbone by one test a literal (Janota,
Lynce, Marques-Silva, "Algorithms for computing backbones of propositional formulae", 2015), both
with Glucose 4 of python-sat in a process of its own (`satguide.child`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from papercuts.errors import NegativeResult, UsageError
from satguide.backends import Guidance
from satguide.child import OverTimeError, call, number
from satguide.cnf import CNF
from satguide.evaluation import verdict_of
from satguide.pysat_backend import python_sat

if TYPE_CHECKING:
    from satguide.checkpoint import Checkpoint

_TRIMS = 5  # solves that shrink a core, at most


@dataclass(frozen=True, eq=False)
class Explanation:
    """A formula's guidance beside what is known of its variables, all [variables].

    `core` is true for variables of the clauses of `core_clauses` (indices), None where the formula
    is satisfiable or no core was found in time. `backbone` is 1 or -1 for a variable that is true
    or false in all models, else 0, None where it is not known. `told` is false where the network
    learnt weights only: then nothing is said about its polarities.
    """

    cnf: CNF
    guidance: Guidance
    satisfiable: bool | None
    core_clauses: NDArray[np.int64] | None = None
    backbone: NDArray[np.int8] | None = None
    told: bool = True

    def complete(self, backbone: bool) -> bool:
        """Tell whether all is known that was asked for."""
        open_backbone = backbone and self.satisfiable is True and self.backbone is None
        return self.satisfiable is not None and not open_backbone

    @property
    def degree(self) -> NDArray[np.int64]:
        """How often each variable occurs."""
        return self.cnf.occurrences()

    @property
    def core(self) -> NDArray[np.bool_] | None:
        """Which variables the core has."""
        if self.core_clauses is None:
            return None
        chosen = np.zeros(len(self.cnf), dtype=bool)
        chosen[self.core_clauses] = True
        literals = self.cnf.literals[np.repeat(chosen, self.cnf.lengths())]
        member = np.zeros(self.cnf.variables, dtype=bool)
        member[np.abs(literals) - 1] = True
        return member

    def summary(self) -> dict[str, Any]:
        """Give the formula's record; correlations are with log w, over variables that occur."""
        used = self.degree > 0
        log_w = np.log(self.guidance.weights[used].astype(float))
        degree = self.degree[used]
        record: dict[str, Any] = {
            "formula": self.cnf.name,
            "variables": self.cnf.variables,
            "clauses": len(self.cnf),
            "verdict": verdict_of(self.satisfiable),
            "weight_min": _of(np.min, self.guidance.weights[used]),
            "weight_median": _of(np.median, self.guidance.weights[used]),
            "weight_max": _of(np.max, self.guidance.weights[used]),
            "polarity_true_share": _of(np.mean, self.guidance.polarity[used])
            if self.told
            else None,
            "degree_pearson": pearson(degree, log_w),
            "degree_spearman": pearson(ranks(degree), ranks(log_w)),
        }
        core = None if self.core is None else self.core[used]
        record["core_clauses"] = None if self.core_clauses is None else self.core_clauses.size
        record |= self._membership("core", core, log_w)
        fixed = None if self.backbone is None else self.backbone[used] != 0
        record |= self._membership("backbone", fixed, log_w)
        agreement = None
        if self.told and self.backbone is not None and self.backbone.any():
            known = self.backbone != 0
            agreement = float(np.mean(self.guidance.polarity[known] == (self.backbone[known] > 0)))
        return record | {"backbone_polarity_agreement": agreement}

    def _membership(
        self, name: str, member: NDArray[np.bool_] | None, log_w: NDArray[np.float64]
    ) -> dict[str, Any]:
        inside = outside = correlation = area = None
        if member is not None:
            inside, outside = (
                _of(np.mean, np.exp(log_w[member])),
                _of(np.mean, np.exp(log_w[~member])),
            )
            correlation, area = pearson(member, log_w), auc(log_w, member)
        return {
            f"{name}_variables": None if member is None else int(member.sum()),
            f"{name}_weight_mean": inside,
            f"{name}_rest_weight_mean": outside,
            f"{name}_correlation": correlation,
            f"{name}_auc": area,
        }

    def per_variable(self) -> Iterator[dict[str, Any]]:
        """Give one record a variable."""
        degree, core = self.degree, self.core
        for i in range(self.cnf.variables):
            yield {
                "formula": self.cnf.name,
                "variable": i + 1,
                "weight": float(self.guidance.weights[i]),
                "polarity": bool(self.guidance.polarity[i]) if self.told else None,
                "degree": int(degree[i]),
                "core": None if core is None else bool(core[i]),
                "backbone": None if self.backbone is None else int(self.backbone[i]),
            }


def explain(
    cnf: CNF,
    guidance: Guidance,
    *,
    backbone: bool = True,
    timeout_s: float | None = None,
    told: bool = True,
) -> Explanation:
    """Solve a formula, and find its core or (where asked for) its backbone.

    What the time limit leaves open is None.
    """
    number()  # the process has started before the clock does
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    try:
        found = unsatisfiable_core(cnf, deadline=deadline)
    except OverTimeError:
        return Explanation(cnf, guidance, None, told=told)
    if found is not None:
        return Explanation(cnf, guidance, False, found, told=told)
    try:
        fixed = backbone_of(cnf, deadline=deadline) if backbone else None
    except OverTimeError:
        fixed = None
    return Explanation(cnf, guidance, True, None, fixed, told)


def explain_all(
    checkpoint: Checkpoint,
    formulas: Iterable[CNF],
    *,
    variables: bool = False,
    backbone: bool = True,
    timeout_s: float | None = None,
    model: str | None = None,
    plot: str | None = None,
    force: bool = False,
) -> Iterator[dict[str, Any]]:
    """Yield the records of formulas, one at a time: a summary each, or one record a variable.

    `model` is the name that summaries give for the checkpoint; `plot` is a file for the picture of
    the first formula. Raises `UsageError` where there is a second one
    then, and `NegativeResult`, after all records, where the time limit left something open.
    """
    from satguide.guidance import guide
    from satguide.plot import plot_explanation

    open_ones = 0
    for count, cnf in enumerate(formulas, 1):
        if plot is not None and count > 1:
            raise UsageError(f"--plot draws one formula, and {cnf.name} is a second one")
        found = explain(
            cnf,
            guide(checkpoint, cnf),
            backbone=backbone,
            timeout_s=timeout_s,
            told=checkpoint.polarity != "none",
        )
        open_ones += not found.complete(backbone)
        about = {"version": version("papercuts-satguide"), "model": model}
        summary = [found.summary() | {"satguide": about}]
        yield from found.per_variable() if variables else summary
        if plot is not None:
            plot_explanation(found, plot, force=force)
    if open_ones:
        raise NegativeResult(f"--timeout left {open_ones} of {count} formulas open")


def unsatisfiable_core(cnf: CNF, *, deadline: float | None = None) -> NDArray[np.int64] | None:
    """Find clauses that are unsatisfiable together: indices [core], ascending, or None.

    Each clause has a selector that is assumed; the solver says which it needed. The core is solved
    again, up to `_TRIMS` times, as long as it gets smaller; it is not minimal. `deadline` is on
    `time.monotonic`: past it, `OverTimeError`, or the core so far.
    """
    empty = np.flatnonzero(cnf.lengths() == 0)
    if empty.size:
        return empty[:1].astype(np.int64)
    core = list(range(len(cnf)))
    for trim in range(_TRIMS + 1):
        try:
            smaller = call(_needed, cnf, core, timeout_s=_left(deadline))
        except OverTimeError:
            if trim == 0:
                raise
            break
        if smaller is None:
            return None
        if len(smaller) == len(core):
            break
        core = smaller
    return np.array(core, dtype=np.int64)


def _needed(cnf: CNF, chosen: list[int]) -> list[int] | None:
    """Solve some clauses (indices), each with a selector; give those needed to refute them."""
    clauses, first = list(cnf), cnf.variables + 1
    with python_sat().Solver(name="glucose4") as solver:
        for place, index in enumerate(chosen):
            solver.add_clause([*clauses[index], -(first + place)])
        if solver.solve(assumptions=list(range(first, first + len(chosen)))):
            return None
        return sorted(chosen[selector - first] for selector in solver.get_core() or [])


def backbone_of(cnf: CNF, *, deadline: float | None = None) -> NDArray[np.int8]:
    """Find the literals that are in all models of a satisfiable formula: [variables] of 1, -1, 0.

    Every literal of a first model is a candidate; a model without it strikes out all candidates
    that it lacks, and where there is none the literal is fixed. Raises `OverTimeError` past
    `deadline`, and `ValueError` for an unsatisfiable formula.
    """
    return call(_backbone, cnf, timeout_s=_left(deadline))


def _backbone(cnf: CNF) -> NDArray[np.int8]:
    fixed = np.zeros(cnf.variables, dtype=np.int8)
    with python_sat().Solver(name="glucose4", bootstrap_with=list(cnf)) as solver:
        if not solver.solve():
            raise ValueError("an unsatisfiable formula has no backbone")
        used = set((np.flatnonzero(cnf.occurrences()) + 1).tolist())
        candidates = [v for v in _model(solver) if abs(v) in used]
        while candidates:
            literal = candidates.pop()
            if solver.solve(assumptions=[-literal]):
                model = set(_model(solver))
                candidates = [candidate for candidate in candidates if candidate in model]
            else:
                fixed[abs(literal) - 1] = 1 if literal > 0 else -1
                solver.add_clause([literal])
    return fixed


def _left(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise OverTimeError
    return left_s


def _model(solver: Any) -> list[int]:
    return solver.get_model() or []


def ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """Rank values from 1; equal values share the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[place], dtype=np.float64)


def pearson(x: NDArray[Any], y: NDArray[Any]) -> float | None:
    """Pearson's correlation, None where a side does not vary; point-biserial for a boolean side."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if x.size < 2:
        return None
    x, y = x - x.mean(), y - y.mean()
    scale = float(np.sqrt((x @ x) * (y @ y)))
    # Rounding alone makes equal values differ by some 1e-16 of their size.
    return float(x @ y / scale) if scale > 1e-12 else None


def auc(score: NDArray[Any], member: NDArray[np.bool_]) -> float | None:
    """Give the chance that a member's score is above another's, ties by half; None without both."""
    inside = int(member.sum())
    outside = member.size - inside
    if not inside or not outside:
        return None
    wins = float(ranks(score)[member].sum()) - inside * (inside + 1) / 2
    return wins / (inside * outside)


def _of(function: Any, values: NDArray[Any]) -> float | None:
    return float(function(values)) if values.size else None

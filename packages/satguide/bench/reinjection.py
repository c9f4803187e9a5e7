"""Whether weights stay multiplicative in python-sat's solvers when they are injected again.

    python bench/reinjection.py [--formulas 60] [--model 3sat=CHECKPOINT]

python-sat lets a user set the activities of its MiniSat-like solvers, but not the factor of a
bump, so an initial activity is forgotten as conflicts come in. Here the weights are put in again
after every budget of conflicts, in two ways. `exact`: what each variable gained since the last
time is multiplied by its weight, which is what a factor on every bump would have given, up to the
lag of one budget. `again`: all activities are multiplied by the weights once more. A budget that
ends is a restart too, so restarts alone are an arm of their own. All arms solve the same formulas.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pysat.solvers import Solver

from papercuts.benchmarks import Report, machine, today
from satguide.cnf import CNF
from satguide.families.spec import generator

REPORT = Report(__file__)

SOLVERS = ("minisat22", "glucose42")  # minisatgh and glucose3, 4 search as these do
FAMILIES = (("3sat", 150), ("3col", 150))
ARMS: dict[str, tuple[bool, bool, str, int]] = {
    # phases, initial activities, what happens between budgets, conflicts of a budget
    "nothing": (False, False, "", 0),
    "phases": (True, False, "", 0),
    "initial": (True, True, "", 0),
    "restarts 200": (True, True, "nothing", 200),
    "again 200": (True, True, "again", 200),
    "exact 50": (True, True, "exact", 50),
    "exact 200": (True, True, "exact", 200),
    "exact 1000": (True, True, "exact", 1000),
}
Weights = NDArray[np.float64]


class Injected:
    """A solver whose activities are those of a search with weighted bumps."""

    def __init__(self, solver: Solver, weights: Weights, *, decay: Callable[[int], float]) -> None:
        self.solver, self.weights, self._decay = solver, weights, decay
        self._variables = range(1, weights.size + 1)
        self._set = weights.copy()
        self._conflicts = 0
        solver.set_activities(dict(zip(self._variables, weights.tolist(), strict=True)))

    def inject(self, how: str) -> None:
        """Weigh what was gained since the last time, in units of the increment as it is now."""
        conflicts = self.solver.accum_stats()["conflicts"]
        read = self.solver.get_activities(self._variables)
        now = np.fromiter(read.values(), dtype=np.float64, count=self.weights.size)
        # The increment was 1 when they were set and has grown at every conflict. MiniSat scales
        # all by 1e-100 when one passes 1e100: what was set is then nothing beside what was gained.
        grown = -sum(math.log10(self._decay(c)) for c in range(self._conflicts, conflicts))
        scaled = round(max(0.0, grown - math.log10(max(now.max(), 1e-300))) / 100)
        before = self._set * 10.0 ** (-100 * scaled)
        unit = 10.0 ** (grown - 100 * scaled)
        if how == "exact":
            self._set = (before + self.weights * np.maximum(now - before, 0)) / unit
        else:
            self._set = self.weights * now / unit
        self._conflicts = conflicts
        self.solver.set_activities(dict(zip(self._variables, self._set.tolist(), strict=True)))


def minisat_decay(_conflict: int) -> float:
    """MiniSat's decay of activities."""
    return 0.95


def glucose_decay(conflict: int) -> float:
    """Glucose's: 0.8 in the beginning, 0.01 more every 5000 conflicts up to 0.95."""
    return min(0.95, 0.8 + 0.01 * (conflict // 5000))


def run(solver: str, cnf: CNF, weights: Weights, polarity: NDArray[np.bool_], arm: str) -> Any:
    """Solve once; decisions, conflicts, wall time and how often activities were set."""
    phases, initial, between, budget = ARMS[arm]
    with Solver(solver, bootstrap_with=list(cnf)) as oracle:
        start = time.perf_counter()
        if phases:
            signs = np.where(polarity, 1, -1) * np.arange(1, cnf.variables + 1)
            oracle.set_phases(signs.tolist())
        times = 0
        if initial:
            decay = glucose_decay if solver.startswith("glucose") else minisat_decay
            injected = Injected(oracle, weights, decay=decay)
        while True:
            oracle.conf_budget(budget or -1)
            answer = oracle.solve_limited()
            if answer is not None:
                break
            if between != "nothing":
                injected.inject(between)
                times += 1
        wall = time.perf_counter() - start
        counts = oracle.accum_stats()
    return {
        "answer": answer,
        "decisions": counts["decisions"],
        "conflicts": counts["conflicts"],
        "wall_s": wall,
        "injections": times,
    }


def settings(model: str | None) -> Iterator[tuple[str, Callable[[CNF], tuple[Weights, Any]]]]:
    """Weights that matter: by degree, the same inverted, and a checkpoint's."""

    def by_degree(exponent: float) -> Callable[[CNF], tuple[Weights, Any]]:
        def make(cnf: CNF) -> tuple[Weights, Any]:
            count = np.maximum(cnf.occurrences(), 1).astype(np.float64)
            return (count / count.mean()) ** exponent, np.ones(cnf.variables, dtype=bool)

        return make

    yield "degree", by_degree(1.0)
    yield "inverted", by_degree(-1.0)
    if model is not None:
        from satguide.guidance import guide
        from satguide.models import load

        checkpoint = load(model)

        def learned(cnf: CNF) -> tuple[Weights, Any]:
            found = guide(checkpoint, cnf)
            return found.weights.astype(np.float64), found.polarity

        yield "checkpoint", learned


def compare(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means of every arm, and the paired ratio of decisions and time to `nothing` (95 %)."""
    table = []
    keys = dict.fromkeys((r["solver"], r["family"], r["weights"]) for r in rows)
    for solver, family, weights in keys:
        mine = [
            r for r in rows if (r["solver"], r["family"], r["weights"]) == (solver, family, weights)
        ]
        of = {arm: [r for r in mine if r["arm"] == arm] for arm in ARMS}
        for arm, found in of.items():
            row: dict[str, Any] = {
                "solver": solver, "family": family, "weights": weights, "arm": arm,
                "formulas": len(found),
            }  # fmt: skip
            for key in ("decisions", "conflicts", "wall_s", "injections"):
                row[f"mean_{key}"] = float(np.mean([r[key] for r in found]))
            for key in ("decisions", "wall_s"):
                log = np.log([max(r[key], 1e-6) for r in found])
                log = log - np.log([max(r[key], 1e-6) for r in of["nothing"]])
                half = 1.96 * log.std(ddof=1) / math.sqrt(log.size)
                row[f"{key}_ratio"] = math.exp(log.mean())
                row[f"{key}_ratio_95"] = [math.exp(log.mean() - half), math.exp(log.mean() + half)]
            table.append(row)
    return table


def main() -> None:
    """Run all arms on the same formulas."""
    parser = argparse.ArgumentParser(description="Re-injection of weights in python-sat's solvers.")
    parser.add_argument("--formulas", type=int, default=60)
    parser.add_argument("--model", action="append", default=[], metavar="FAMILY=CHECKPOINT")
    parser.add_argument("--seed", type=int, default=77_000)
    given = parser.parse_args()
    models = {family: family for family, _ in FAMILIES}
    models |= dict(model.split("=", 1) for model in given.model)
    rows = []
    for family, size in FAMILIES:
        make = generator(family)
        weighed = list(settings(models.get(family)))
        for index in range(given.formulas):
            cnf = make(size, given.seed + index)
            for name, weigh in weighed:
                weights, polarity = weigh(cnf)
                for solver in SOLVERS:
                    for arm in ARMS:
                        found = run(solver, cnf, weights, polarity, arm)
                        rows.append(
                            {"solver": solver, "family": f"{family}({size})", "weights": name,
                             "arm": arm, **found}
                        )  # fmt: skip
    found = {
        "date": today(),
        "machine": machine(),
        "formulas": given.formulas,
        "seed": given.seed,
        "rows": compare(rows),
    }
    REPORT.write_results(REPORT.read_results() | {"reinjection": found})
    REPORT.write_section("reinjection", report(found))


def report(found: dict[str, Any]) -> list[str]:
    """Write the table: geometric means of the ratio to the unguided solver, with 95 % intervals."""
    groups: dict[tuple[str, str, str], dict[str, str]] = {}
    for row in found["rows"]:
        low, high = row["decisions_ratio_95"]
        cell = f"{row['decisions_ratio']:.2f} ({low:.2f} to {high:.2f})"
        groups.setdefault((row["solver"], row["family"], row["weights"]), {})[row["arm"]] = cell
    arms = [arm for arm in ARMS if arm != "nothing"]
    return [
        "## Weights in python-sat's solvers: once, or again between conflict budgets",
        "",
        f"{found['date']}; {found['machine']}; `python bench/reinjection.py`; "
        f"{found['formulas']} formulas a family, the same for all. Decisions over those of the "
        "unguided solver, geometric mean of the paired ratios and its 95 % interval.",
        "",
        f"| solver | formulas | weights | {' | '.join(arms)} |",
        "|---|---|---|" + "---|" * len(arms),
        *(
            f"| {' | '.join(group)} | {' | '.join(cells[arm] for arm in arms)} |"
            for group, cells in groups.items()
        ),
    ]


if __name__ == "__main__":
    main()

"""The table of an evaluation: one record an arm, and how the guided arm compares with each."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papercuts.app import FormatName
from papercuts.errors import NegativeResult, UsageError
from papercuts.log import get_logger
from papercuts.streams import check_output, output_format, write_records
from satguide.evaluation import GUIDED, Contest, Result
from satguide.paired import NOTHING, Comparison, compare

logger = get_logger(__name__)

_READ_FIRST = ("arm", "solved", "decisions_mean", "ratio", "wall_mean_s", "par2_s")
_FIELDS = ("satisfiable", "decisions", "conflicts", "wall_s")


@dataclass(eq=False)
class Table:
    """Collects results, four numbers a formula and arm.

    All means are over all formulas. Decisions and conflicts of a run that hit a limit count as the
    largest number that the guided arm or a baseline had on any formula (the paper's rule; of
    another solver, that it had itself). In times it counts as what it took, in PAR2 as twice
    `timeout_s`.
    """

    contest: Contest
    about: dict[str, Any] = field(default_factory=dict)
    rows: dict[str, list[tuple[float, ...]]] = field(default_factory=dict)
    network_s: list[float] = field(default_factory=list)
    disagreements: list[str] = field(default_factory=list)
    outside: int = 0
    first_outside: str = ""
    errors: list[str] = field(default_factory=list)
    _comparisons: dict[tuple[str, str, int], Comparison] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rows = {arm: [] for arm in self.contest.arms}

    def add(self, result: Result) -> None:
        """Take in a formula. One on which arms contradict each other is noted and left out."""
        if result.outside is not None:
            self.outside += 1
            self.first_outside = self.first_outside or f"{result.name} has {result.outside}"
        disagreement = result.disagreement()
        if disagreement is not None:
            self.disagreements.append(disagreement)
            return
        self.errors += [f"{result.name}: {r.error}" for r in result.runs.values() if r.error]
        self.network_s.append(result.network_s)
        for arm, run in result.runs.items():
            values = (getattr(run, name) for name in _FIELDS)
            self.rows[arm].append(tuple(math.nan if v is None else float(v) for v in values))

    def __len__(self) -> int:
        """Count the formulas, without those that were left out."""
        return len(self.network_s)

    def column(self, arm: str, name: str) -> NDArray[np.float64]:
        """Give one number of each formula, NaN where there is none: [formulas]."""
        values = np.array(self.rows[arm], dtype=float).reshape(-1, len(_FIELDS))
        return values[:, _FIELDS.index(name)]

    def unsolved(self, arm: str) -> NDArray[np.bool_]:
        """Tell on which formulas a limit or a failure ended the run of an arm: [formulas]."""
        return np.isnan(self.column(arm, "satisfiable"))

    def counts(self, arm: str, name: str) -> NDArray[np.float64]:
        """Give decisions or conflicts, the largest of all where the run was ended: [formulas]."""
        compared = (GUIDED, *self.contest.baselines)
        together = compared if arm in compared else (arm,)
        seen = np.concatenate([self.column(one, name) for one in together])
        known = seen[~np.isnan(seen)]
        largest = known.max() if known.size else math.nan
        return np.where(self.unsolved(arm), largest, self.column(arm, name))

    def better(self) -> str | None:
        """Name the baseline with fewer decisions on average, None where it is not known."""
        means = {b: self._mean(b, "decisions") for b in self.contest.baselines}
        known = {arm: mean for arm, mean in means.items() if mean is not None}
        return min(known, key=lambda arm: known[arm]) if known else None

    def comparison(self, arm: str, name: str = "decisions") -> Comparison:
        """Compare the guided arm's decisions (or `wall_s`) with those of another arm."""
        timed = name == "wall_s"
        if not timed and arm not in self.contest.baselines:
            return NOTHING  # a decision of another solver is another thing
        if (arm, name, len(self)) not in self._comparisons:
            take = self.column if timed else self.counts
            both = take(GUIDED, name), take(arm, name)
            unknown = any(np.isnan(costs).any() for costs in both)
            found = NOTHING if unknown else compare(*both, seed=self.contest.seed)
            self._comparisons[arm, name, len(self)] = found
        return self._comparisons[arm, name, len(self)]

    def records(self) -> list[dict[str, Any]]:
        """Give one record an arm, the guided one first.

        `ratio` and what follows compare the guided arm with the record's arm; in the guided arm's
        own record, with the better baseline, which `baseline` names.
        """
        better = self.better()
        return [self._record(arm, better if arm == GUIDED else arm) for arm in self.contest.arms]

    def _record(self, arm: str, other: str | None) -> dict[str, Any]:
        satisfiable = self.column(arm, "satisfiable")
        decisions = self.counts(arm, "decisions")
        timed = self.comparison(other, "wall_s") if other else NOTHING
        solver = self.contest.backend if arm not in self.contest.versus else arm
        guided, own = self.par2_s(GUIDED), self.par2_s(other) if other else None
        return {
            "arm": arm,
            "solver": solver,
            "formulas": len(self),
            "solved": int((~np.isnan(satisfiable)).sum()),
            "sat": int((satisfiable == 1).sum()),
            "unsat": int((satisfiable == 0).sum()),
            "unsolved": int(np.isnan(satisfiable).sum()),
            "decisions_mean": self._mean(arm, "decisions"),
            "decisions_median": _finite(np.median(decisions)) if decisions.size else None,
            "decisions_geomean": _finite(np.expm1(np.log1p(decisions).mean()))
            if decisions.size
            else None,
            "conflicts_mean": self._mean(arm, "conflicts"),
            "wall_mean_s": _finite(self.column(arm, "wall_s").mean()) if len(self) else None,
            "par2_s": self.par2_s(arm),
            "network_mean_s": (float(np.mean(self.network_s)) if self.network_s else None)
            if arm == GUIDED
            else None,
            "baseline": other if arm == GUIDED else None,
            **(self.comparison(other) if other else NOTHING).to_dict(),
            "wall_ratio": timed.ratio,
            "wall_ratio_low": timed.ratio_low,
            "wall_ratio_high": timed.ratio_high,
            "par2_ratio": guided / own if guided is not None and own else None,
            "satguide": self.about,
        }

    def par2_s(self, arm: str) -> float | None:
        """Give the mean time over all formulas; one that was not solved counts twice the limit.

        None where a run was not solved and there is no time limit.
        """
        times, unsolved = self.column(arm, "wall_s"), np.isnan(self.column(arm, "satisfiable"))
        if not times.size or (unsolved.any() and self.contest.timeout_s is None):
            return None
        penalty = 2 * (self.contest.timeout_s or 0.0)
        return float(np.where(unsolved, penalty, times).mean())

    def _mean(self, arm: str, name: str) -> float | None:
        counts = self.counts(arm, name)
        return _finite(counts.mean()) if counts.size else None

    def findings(self) -> list[str]:
        """Say what a person should know of the result, a sentence each."""
        said = []
        for arm in self.contest.baselines:
            found = self.comparison(arm)
            if found.ratio is not None and found.change_percent is not None:
                word = "fewer" if found.ratio <= 1 else "more"
                interval = ""
                if found.ratio_low is not None:
                    interval = f", 95 % {found.ratio_low:.3f} to {found.ratio_high:.3f}"
                test = "" if found.t is None else f", paired t {found.t:.1f}, p {found.p:.2g}"
                said.append(
                    f"{abs(found.change_percent):.1f} % {word} decisions than {arm} "
                    f"(ratio {found.ratio:.3f}{interval}{test})"
                )
        par2 = {arm: self.par2_s(arm) for arm in self.contest.arms}
        times = {arm: time for arm, time in par2.items() if time is not None}
        if times:
            fastest = min(times, key=lambda arm: times[arm])
            own = times.get(GUIDED)
            beside = "" if own is None or fastest == GUIDED else f", guided {own:.4g} s"
            said.append(f"fastest by PAR2: {fastest}, {times[fastest]:.4g} s a formula{beside}")
        return said

    def warnings(self) -> list[str]:
        """Say what lessens the result, a sentence each."""
        said = []
        better = self.better()
        ended = {
            arm: int(self.unsolved(arm).sum())
            for arm in (GUIDED, *([better] if better else self.contest.baselines))
        }
        if any(ended.values()):
            runs = " and ".join(f"{count} of {arm}" for arm, count in ended.items() if count)
            said.append(
                f"runs without an answer ({runs}, {len(self)} formulas) count as the largest "
                "number of decisions: ratio is a bound only"
            )
        if self.errors:
            said.append(f"{len(self.errors)} runs failed, as {self.errors[0]}")
        if self.outside:
            many = len(self) + len(self.disagreements)
            said.append(
                f"{self.outside} of {many} formulas are unlike those of the training "
                f"({self.first_outside})"
            )
        return said


def check_outputs(
    output: str, runs: str | None, plot: str | None, *, resume: bool, force: bool
) -> None:
    """Raise before hours of solving what writing the result would raise after them."""
    from satguide.plot import check_plot

    if runs is None and resume:
        raise UsageError("--resume needs --runs FILE: there is no file to go on with")
    if runs is not None and runs == output:
        raise UsageError(f"--runs and --output are both {output}")
    check_plot(plot, force=force)
    check_output(output, force=force)


def report(
    table: Table,
    output: str = "-",
    plot: str | None = None,
    *,
    format: FormatName | None = None,  # noqa: A002
    force: bool = False,
) -> None:
    """Write the records, draw them, and say on stderr what is found.

    A table for people has the columns that they read first. Raises `NegativeResult`, after all
    that, where arms contradicted each other.
    """
    write_table(table, output, format=format, force=force)
    if plot is not None:
        from satguide.plot import plot_evaluation

        plot_evaluation(table, plot, force=force)
    if table.disagreements:
        more = len(table.disagreements) - 1
        rest = f" (and {more} more)" if more else ""
        raise NegativeResult(f"{table.disagreements[0]}{rest}: left out, one of them is wrong")


def write_table(
    table: Table,
    output: str,
    *,
    format: FormatName | None = None,  # noqa: A002
    force: bool = False,
) -> None:
    """Write the records, and say on stderr what is found."""
    chosen, records = output_format(output, format), table.records()
    if chosen == "table":
        records = [{name: record[name] for name in _READ_FIRST} for record in records]
    write_records(records, output, format=chosen, force=force)
    for sentence in table.findings():
        logger.info("%s", sentence)
    for sentence in table.warnings():
        logger.warning("%s", sentence)


def _finite(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None

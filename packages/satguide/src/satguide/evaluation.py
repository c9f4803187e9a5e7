"""Guided and unguided runs on the same formulas, in worker processes, and what came out of them.

The workers import no torch: the network looks at each formula here, on its way to them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from papercuts.errors import UsageError
from papercuts.parallel import ordered_map
from satguide import versus
from satguide.backends import Guidance, Outcome, Polarity, SolverError, backend
from satguide.cnf import CNF

if TYPE_CHECKING:
    from satguide.checkpoint import Checkpoint

GUIDED = "guided"
BASELINES = ("plain", "unit")


@dataclass(frozen=True)
class Contest:
    """Who solves each formula: the back end guided and as each baseline, then other solvers.

    `seed` is that of the back end and of the bootstrap.
    `limit` (conflicts) holds for the back end's runs, `timeout_s` for all; the guided run has it
    less the network's time. `versus` are names that `satguide.versus.names` gave.
    """

    backend: str = "clasp"
    baselines: tuple[str, ...] = BASELINES
    versus: tuple[str, ...] = ()
    polarity: Polarity = "persistent"
    limit: int | None = None
    timeout_s: float | None = None
    seed: int = 0
    jobs: int | None = None
    ray: str | None = None

    def __post_init__(self) -> None:
        for name in self.baselines:
            if name not in BASELINES:
                known = ", ".join(BASELINES)
                raise UsageError(f"--baseline: there is no {name!r} (there is {known})")
        if not self.baselines:
            raise UsageError("--baseline: name at least one of plain, unit")
        if not backend(self.backend).hooks:
            raise UsageError(f"{self.backend} takes no guidance: there is nothing to compare")

    @property
    def arms(self) -> tuple[str, ...]:
        """All who solve, in the order of the table."""
        return (GUIDED, *self.baselines, *self.versus)


@dataclass(frozen=True)
class Run:
    """How one arm did on a formula. `satisfiable` is None where a limit came first.

    `wall_s` is the time from the formula in memory to the answer, the network's included; of a run
    without an answer, the time it took. `sound` is false for a model that leaves a clause false,
    `error` says how a solver failed.
    """

    satisfiable: bool | None
    decisions: int | None
    conflicts: int | None
    wall_s: float
    sound: bool = True
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give the run as it is written."""
        return {
            "verdict": verdict_of(self.satisfiable),
            "sound": self.sound,
            "decisions": self.decisions,
            "conflicts": self.conflicts,
            "wall_s": self.wall_s,
            "error": self.error,
        }

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Run:
        """Make a run of what `to_dict` gave."""
        answer = {"yes": True, "no": False, "undecided": None}[told["verdict"]]
        names = ("decisions", "conflicts", "wall_s", "sound", "error")
        return cls(answer, *(told[name] for name in names))


@dataclass(frozen=True)
class Result:
    """The runs of all arms on one formula.

    `outside` says what of the formula training has not seen, None where there is nothing.
    """

    name: str
    variables: int
    clauses: int
    network_s: float
    outside: str | None
    runs: dict[str, Run] = field(default_factory=dict)

    def disagreement(self) -> str | None:
        """Say which arms contradict each other, or give a wrong model; None where none does."""
        for arm, run in self.runs.items():
            if not run.sound:
                return f"{self.name}: the model of {arm} leaves a clause false"
        said = {run.satisfiable: arm for arm, run in self.runs.items()}
        if True in said and False in said:
            return f"{self.name}: {said[True]} says satisfiable, {said[False]} unsatisfiable"
        return None

    def to_dict(self) -> dict[str, Any]:
        """Give the formula's record."""
        return {
            "formula": self.name,
            "variables": self.variables,
            "clauses": self.clauses,
            "network_s": self.network_s,
            "outside": self.outside,
            "runs": {arm: run.to_dict() for arm, run in self.runs.items()},
        }

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Result:
        """Make a result of what `to_dict` gave."""
        runs = {arm: Run.from_dict(run) for arm, run in told["runs"].items()}
        return cls(
            told["formula"],
            told["variables"],
            told["clauses"],
            told["network_s"],
            told["outside"],
            runs,
        )


@dataclass(frozen=True, eq=False)
class _Task:
    cnf: CNF
    guidance: Guidance
    network_s: float
    outside: str | None
    index: int


def evaluate(
    checkpoint: Checkpoint, formulas: Iterable[CNF], contest: Contest, *, first: int = 0
) -> Iterator[Result]:
    """Let all arms solve every formula; yield the results in order, a bounded number ahead.

    The arms take turns in being the first, so that none gains by its place; `first` is the number
    of the first formula. A solver that dies or fails has not solved the formula. Raises what
    `formulas` raises, after the results of the formulas before.
    """
    run = partial(_solved, contest=contest)
    tasks = _tasks(checkpoint, formulas, first)
    with closing(tasks):
        yield from ordered_map(run, tasks, jobs=contest.jobs, ray=contest.ray)


def _tasks(checkpoint: Checkpoint, formulas: Iterable[CNF], first: int) -> Generator[_Task]:
    import torch

    from satguide.guidance import guide, outside

    guide(checkpoint, CNF.from_clauses(1, [[1]]))  # the first look pays for what torch sets up
    for index, cnf in enumerate(formulas, first):
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # each arm has one core; the others are at work too
        try:
            start = time.perf_counter()
            guidance = guide(checkpoint, cnf)
            network_s = time.perf_counter() - start
        finally:
            torch.set_num_threads(threads)
        yield _Task(cnf, guidance, network_s, outside(checkpoint, cnf), index)


def _solved(task: _Task, contest: Contest) -> Result:
    cnf, solver = task.cnf, backend(contest.backend)
    start = time.perf_counter()
    prepared = solver.prepare(cnf)
    prepare_s = time.perf_counter() - start
    guidance = {GUIDED: task.guidance, "plain": None, "unit": Guidance.unit(cnf.variables)}
    runs = {}
    turn = task.index % len(contest.arms)
    for arm in contest.arms[turn:] + contest.arms[:turn]:
        if arm in contest.versus:
            runs[arm] = _run(cnf, partial(versus.solve, arm, cnf), 0.0, contest.timeout_s)
            continue
        before_s = prepare_s + (task.network_s if arm == GUIDED else 0.0)
        solve = partial(
            solver.solve,
            prepared,
            guidance[arm],
            # The baseline w = 1, p = 1 has its polarity, whatever the guided arm has.
            polarity=contest.polarity if arm == GUIDED else "persistent",
            seed=contest.seed,
            conflicts=contest.limit,
        )
        runs[arm] = _run(cnf, solve, before_s, contest.timeout_s)
    ordered = {arm: runs[arm] for arm in contest.arms}
    return Result(cnf.name, cnf.variables, len(cnf), task.network_s, task.outside, ordered)


def _run(cnf: CNF, solve: Callable[..., Outcome], before_s: float, timeout_s: float | None) -> Run:
    left_s = None if timeout_s is None else max(1e-3, timeout_s - before_s)
    start = time.perf_counter()
    try:
        outcome = solve(timeout_s=left_s)
    except SolverError as error:
        wall_s = before_s + time.perf_counter() - start
        return Run(None, None, None, wall_s, error=str(error))
    model, wall_s = outcome.model, before_s + outcome.wall_s
    late = timeout_s is not None and wall_s > timeout_s  # a limit is never kept to the millisecond
    return Run(
        None if late else outcome.satisfiable,
        outcome.decisions,
        outcome.conflicts,
        wall_s,
        not outcome.satisfiable or (model is not None and cnf.unsatisfied(model).size == 0),
    )


def verdict_of(satisfiable: bool | None) -> str:
    """Put an answer into a word: yes is satisfiable."""
    return "undecided" if satisfiable is None else "yes" if satisfiable else "no"

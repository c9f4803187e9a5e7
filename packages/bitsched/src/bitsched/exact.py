"""The schedule of least makespan, by a constraint solver: OR-Tools CP-SAT (an extra).

The problem is the paper's (section 3): a task computes for c, then reduces for r; the tasks of a
chain (KV head, KV tile) follow each other on one processor with no other chain's between them; the
reduces of one dQ tile (head, q) come one after another. Free are the order of the chains, that of
the tiles in each, and that of the additions.

A task is an interval of fixed length c + r: to wait before the compute or before the reduce blocks
the processor for the same time. Processors are alike, so a chain need not be told which one it
has: at most so many chains may run at a time, and intervals with that property are then handed to
processors one by one.
"""

from __future__ import annotations

import math
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitsched.costs import Costs
from bitsched.lowerbounds import least_load
from bitsched.plan import Ints, Plan
from bitsched.shape import Shape
from bitsched.simulation import simulate
from papercuts.app import need
from papercuts.errors import NegativeResult, UsageError

_LARGEST_TIME = 10**12  # in whole units; CP-SAT sums times in 64 bits


@dataclass(frozen=True)
class Optimum:
    """What the solver found: a plan, its makespan, and a lower bound on every plan's makespan.

    `makespan` and `bound` are in the unit of the costs; `proved` says that they are equal, so that
    no plan is faster. `wall_s` is the time of the search.
    """

    plan: Plan
    makespan: float
    bound: float
    proved: bool
    wall_s: float


def find_optimum(
    shape: Shape,
    processors: int,
    *,
    compute: float,
    reduce: float,
    hint: Plan | None = None,
    count_tiles: bool = True,
    time_limit_s: float = 60.0,
    seed: int = 0,
) -> Optimum:
    """Search for the plan of least makespan on `processors` processors.

    `compute` (c) and `reduce` (r) are times of any unit; decimal fractions are taken at their
    word. The search begins at the plan `hint`, where there is one, and gives it back if it finds
    nothing faster. With `count_tiles` the bound of `least_load` is a constraint of the model; it
    follows from the others, but a solver does not always see it. One thread and a fixed seed
    search, so that the same problem gives the same plan, unless the limit ends the search early.
    Raises `MissingError` without OR-Tools, `UsageError` for costs that are not finite, negative,
    or both 0, and `NegativeResult` where the limit comes before any plan.
    """
    cp_model = need("ortools.sat.python.cp_model", tool="bitsched", extra="exact")
    if processors < 1:
        raise UsageError(f"a plan needs at least one processor, not {processors}")
    c, r, unit = _whole(compute, reduce)
    model = _Model(cp_model, shape, processors, c, r)
    counted = model.count_tiles() if count_tiles else 0
    plan, makespan = hint, None if hint is None else model.begin_at(hint)
    began = time.perf_counter()
    solver, status = _solve(cp_model, model.model, time_limit_s, seed)
    wall_s = time.perf_counter() - began
    # Where the limit ends the search early, the solver may not have come so far.
    bound = max(counted, _least(solver.best_objective_bound))
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        found = round(solver.objective_value)
        if makespan is None or found < makespan:
            plan, makespan = model.plan([solver.value(start) for start in model.starts]), found
    if plan is None or makespan is None:
        raise NegativeResult(
            f"no plan found within {time_limit_s:g} s; none takes less than {float(bound * unit):g}"
        )
    return Optimum(plan, float(makespan * unit), float(bound * unit), makespan <= bound, wall_s)


class _Model:
    """The constraints of one problem. Times are whole multiples of the unit."""

    def __init__(self, cp_model: Any, shape: Shape, processors: int, c: int, r: int) -> None:
        self.shape, self.processors, self.length, self.c = shape, processors, c + r, c
        self.head, self.kv, self.q = _tiles(shape)
        self.tasks = len(self.head)
        # One processor doing everything is always a plan.
        last = self.tasks * self.length
        self.model = model = cp_model.CpModel()
        self.starts = [model.new_int_var(0, last - self.length, "") for _ in range(self.tasks)]
        self.makespan = model.new_int_var(0, last, "makespan")
        whole = [model.new_fixed_size_interval_var(s, self.length, "") for s in self.starts]
        chains = self._add_chains(whole, last)
        reduces: dict[tuple[int, int], list[Any]] = defaultdict(list)
        for task, start in enumerate(self.starts):
            tile = int(self.head[task]), int(self.q[task])
            reduces[tile].append(model.new_fixed_size_interval_var(start + c, r, ""))
        for intervals in reduces.values():
            model.add_no_overlap(intervals)
        model.add_cumulative(chains, [1] * len(chains), processors)
        # Follows from the line above; said again, it lets the solver count the work.
        model.add_cumulative(whole, [1] * self.tasks, processors)
        model.minimize(self.makespan)

    def _add_chains(self, whole: list[Any], last: int) -> list[Any]:
        """Add the chains (KV head, KV tile): their tasks one by one, within an interval each."""
        members: dict[tuple[int, int], list[int]] = defaultdict(list)
        for task in range(self.tasks):
            members[int(self.head[task]) // self.shape.group, int(self.kv[task])].append(task)
        model, chains = self.model, []
        first: dict[tuple[int, int], Any] = {}
        for (kv_head, kv), tasks in members.items():
            begin, end = model.new_int_var(0, last, ""), model.new_int_var(0, last, "")
            size = model.new_int_var(len(tasks) * self.length, last, "")
            chains.append(model.new_interval_var(begin, size, end, ""))
            model.add_no_overlap([whole[task] for task in tasks])
            for task in tasks:
                model.add(self.starts[task] >= begin)
                model.add(self.starts[task] + self.length <= end)
            model.add(end <= self.makespan)
            # Heads are alike: let them begin in their order.
            before = first.get((kv_head - 1, kv))
            first[kv_head, kv] = begin
            if before is not None and kv == min(kv for _, kv in members):
                model.add(before <= begin)
        return chains

    def _chain_numbers(self) -> NDArray[np.int64]:
        """Give the number of each task's chain, unique for (KV head, KV tile): [tasks]."""
        return self.head.astype(np.int64) // self.shape.group * self.shape.n_kv + self.kv

    def count_tiles(self) -> int:
        """Add that the busiest processor has at least `least_load` tiles, and give their time."""
        sizes = np.unique(self._chain_numbers(), return_counts=True)[1]
        least = self.length * int(least_load(sizes, self.processors))
        self.model.add(self.makespan >= least)
        return least

    def begin_at(self, plan: Plan) -> int:
        """Hint at the times of a plan, and give its makespan."""
        run = simulate(plan, Costs(self.c, self.length - self.c))
        tiles = zip(plan.head.tolist(), plan.kv.tolist(), plan.q.tolist(), strict=True)
        start = dict(zip(tiles, (run.end - self.length).tolist(), strict=True))
        mine = zip(self.head.tolist(), self.kv.tolist(), self.q.tolist(), strict=True)
        for variable, tile in zip(self.starts, mine, strict=True):
            self.model.add_hint(variable, round(start[tile]))
        self.model.add_hint(self.makespan, round(run.makespan))
        return round(run.makespan)

    def plan(self, starts: list[int]) -> Plan:
        """Hand the chains of a solution to processors, and read off the order of each sum."""
        when = np.array(starts, dtype=np.int64)
        chain = self._chain_numbers()
        begin: dict[int, int] = {}
        end: dict[int, int] = {}
        for task in np.argsort(when, kind="stable").tolist():
            begin.setdefault(int(chain[task]), int(when[task]))
            end[int(chain[task])] = int(when[task]) + self.length
        free = [0] * self.processors
        place: dict[int, int] = {}
        for one in sorted(begin, key=lambda one: (begin[one], one)):
            processor = next(p for p, since in enumerate(free) if since <= begin[one])
            place[one], free[processor] = processor, end[one]
        owner = np.array([place[int(one)] for one in chain])
        order = np.lexsort((when, owner))
        sizes = np.bincount(owner, minlength=self.processors)
        return Plan(
            head=self.head[order],
            kv=self.kv[order],
            q=self.q[order],
            rank=_ranks(self.head, self.q, when)[order],
            starts=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
            about={
                **self.shape.about,
                "mask": self.shape.mask,
                "heads": self.shape.heads,
                "kv_heads": self.shape.heads // self.shape.group,
                "n_kv": self.shape.n_kv,
                "n_q": self.shape.n_q,
                "schedule": "exact",
            },
        )


def _tiles(shape: Shape) -> tuple[Ints, Ints, Ints]:
    """List the tiles: head, kv and q of each task, [tasks] int32."""
    kv, q = np.nonzero(shape.active)
    head = np.repeat(np.arange(shape.heads), kv.size)
    kv, q = np.tile(kv, shape.heads), np.tile(q, shape.heads)
    return head.astype(np.int32), kv.astype(np.int32), q.astype(np.int32)


def _ranks(head: Ints, q: Ints, when: NDArray[np.int64]) -> Ints:
    """Give the place of each task in time among those of its (head, q): [tasks] int32."""
    order = np.lexsort((when, q, head))
    tile = head[order].astype(np.int64) * (int(q.max()) + 1) + q[order]
    first = np.flatnonzero(np.diff(tile, prepend=tile[0] - 1))
    lengths = np.diff(np.append(first, tile.size))
    rank = np.empty(tile.size, dtype=np.int32)
    rank[order] = np.arange(tile.size) - np.repeat(first, lengths)
    return rank


def _whole(compute: float, reduce: float) -> tuple[int, int, Fraction]:
    """Give c and r as whole multiples of the largest unit that measures both, and that unit."""
    for name, cost in (("c", compute), ("r", reduce)):
        if not math.isfinite(cost) or cost < 0:
            raise UsageError(f"{name} is {cost:g} (expected a number of 0 or more)")
    if compute + reduce == 0:
        raise UsageError("c and r are both 0")
    c, r = Fraction(repr(float(compute))), Fraction(repr(float(reduce)))
    bottom = math.lcm(c.denominator, r.denominator)
    top = math.gcd(int(c * bottom), int(r * bottom))
    unit = Fraction(top, bottom)
    if (c + r) / unit > _LARGEST_TIME:
        raise UsageError(
            f"c {compute!r} and r {reduce!r} have no common measure that the solver can count in; "
            "round them"
        )
    return int(c / unit), int(r / unit), unit


def _least(bound: float) -> int:
    """Round a bound on whole times up (less the solver's own rounding)."""
    return max(0, math.ceil(bound - 1e-6))


def _solve(cp_model: Any, model: Any, time_limit_s: float, seed: int) -> tuple[Any, Any]:
    """Search in a thread, so that Ctrl-C and SIGTERM end it at once."""
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed % 2**31
    solver.parameters.max_time_in_seconds = time_limit_s
    solver.parameters.catch_sigint_signal = False
    ended: list[Any] = []
    search = threading.Thread(target=lambda: ended.append(solver.solve(model)), daemon=True)
    search.start()
    try:
        while search.is_alive():
            search.join(timeout=0.2)
    finally:
        if search.is_alive():
            solver.stop_search()
            search.join()
    return solver, ended[0]

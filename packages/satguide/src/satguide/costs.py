"""What a guided solve costs, measured in worker processes: no torch in here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from papercuts.parallel import ordered_map
from satguide.backends import Guidance, Polarity, backend
from satguide.cnf import CNF

CostName = Literal["decisions", "conflicts", "time"]


@dataclass(frozen=True)
class Meter:
    """How costs are measured. `limit` is in conflicts; a run that hits it costs NaN."""

    backend: str = "clasp"
    cost: CostName = "decisions"
    polarity: Polarity = "persistent"
    limit: int | None = None
    timeout_s: float | None = None
    jobs: int | None = None
    ray: str | None = None


@dataclass(frozen=True, eq=False)
class Task:
    """One formula and the settings to try on it: `weights` and `polarity` [settings, variables].

    With `weights` None it is solved once, unguided.
    """

    cnf: CNF
    weights: NDArray[np.float32] | None = None
    polarity: NDArray[np.bool_] | None = None


def measure(tasks: Sequence[Task], meter: Meter, *, chunk: int = 1) -> Iterator[list[float]]:
    """Yield the costs of every task, in order: one number a setting."""
    run = partial(_run, meter=meter)
    return ordered_map(run, tasks, jobs=meter.jobs, ray=meter.ray, chunk=chunk)


def _run(task: Task, meter: Meter) -> list[float]:
    solver = backend(meter.backend)
    prepared = solver.prepare(task.cnf)
    guided: list[Guidance | None] = [None]
    if task.weights is not None and task.polarity is not None:
        pairs = zip(task.weights, task.polarity, strict=True)
        guided = [Guidance(weights, polarity) for weights, polarity in pairs]
    costs = []
    for guidance in guided:
        outcome = solver.solve(
            prepared,
            guidance,
            polarity=meter.polarity,
            timeout_s=meter.timeout_s,
            conflicts=meter.limit,
        )
        known = outcome.satisfiable is not None
        value = {
            "decisions": outcome.decisions,
            "conflicts": outcome.conflicts,
            "time": outcome.wall_s,
        }[meter.cost]
        costs.append(float(value) if known and value is not None else math.nan)
    return costs

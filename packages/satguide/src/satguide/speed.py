"""How fast solving, training, the network and reading are on this machine."""

from __future__ import annotations

import io
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from papercuts.parallel import seed_for
from satguide import dimacs
from satguide.checkpoint import Checkpoint
from satguide.cnf import CNF
from satguide.costs import Meter, Task, measure
from satguide.families.spec import Stream, generator
from satguide.guidance import guide
from satguide.models import load
from satguide.trainer import Settings, Trainer

_SOLVES = 400
_READ_VARIABLES = 100_000
# Beside the formulas of training, validation and `gen`, which have streams of their own.
_SEED = 7003


def run(repeats: int, jobs: int | None) -> Iterator[dict[str, Any]]:
    """Yield one record per job: its size, and the median, minimum and maximum of its wall time."""
    formulas = _formulas("3sat", 100, _SOLVES)
    tasks = [Task(cnf) for cnf in formulas]
    meter = Meter(jobs=jobs)
    list(measure(tasks[:8], meter))  # starts the processes
    yield _timed(
        "solve_3sat_100", "solves", _SOLVES, repeats, lambda: list(measure(tasks, meter, chunk=8))
    )
    trainer = Trainer(Stream("3sat", (100,)), Settings(seed=_SEED), meter)
    trainer.step()
    yield _timed("train_3sat_100", "iterations", 1, repeats, trainer.step)
    for family, size in (("3sat", 200), ("3col", 250), ("hitag2", 24)):
        checkpoint, (cnf,) = load(family), _formulas(family, size, 1)
        yield _timed(f"guide_{family}_{size}", "formulas", 1, repeats, _Guide(checkpoint, cnf))
    text = _text(_READ_VARIABLES)
    yield _timed("read_dimacs", "clauses", 4 * _READ_VARIABLES, repeats, lambda: _read(text))


class _Guide:
    """One look of the network, formula to weights."""

    def __init__(self, checkpoint: Checkpoint, cnf: CNF) -> None:
        self._checkpoint, self._cnf = checkpoint, cnf
        self()

    def __call__(self) -> object:
        return guide(self._checkpoint, self._cnf)


def _formulas(family: str, size: int, count: int) -> list[CNF]:
    make = generator(family)
    return [make(size, seed_for(_SEED, index)) for index in range(count)]


def _text(variables: int) -> bytes:
    random = np.random.default_rng(_SEED)
    literals = random.integers(1, variables + 1, 12 * variables) * random.choice(
        [-1, 1], 12 * variables
    )
    starts = np.arange(0, literals.size + 1, 3)
    out = io.BytesIO()
    dimacs.write(out, CNF(variables, literals.astype(np.int32), starts))
    return out.getvalue()


def _read(text: bytes) -> CNF:
    return dimacs.read(io.BytesIO(text), "bench")


def _timed(
    job: str, unit: str, size: int, repeats: int, work: Callable[[], object]
) -> dict[str, Any]:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    median = statistics.median(times)
    return {
        "job": job,
        "size": size,
        "unit": unit,
        "repeats": repeats,
        "wall_s": median,
        "wall_s_min": min(times),
        "wall_s_max": max(times),
        "per_s": size / median,
    }

"""How fast pruning, identifying and learning are on this machine, and on the user's data."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from papercuts.errors import UsageError
from tierprune.admg import ADMG
from tierprune.dataset import Table, read_table
from tierprune.discovery import discover, warm_up
from tierprune.identification import identify_pruned
from tierprune.independence import make_test
from tierprune.pruning import prune
from tierprune.query import Band, Query, band_of
from tierprune.simulated import csv_pieces
from tierprune.simulation import random_graph, random_model, read_sizes, sample
from tierprune.tiers import Tiers, read_tiers

NODES, EDGES, TIERS = 2000, 10_000, 20

TestName = Literal["fisherz", "gsq"]


@dataclass(frozen=True)
class _Task:
    name: str
    size: str
    run: Callable[[], int | None]  # gives the number of tests


def measure(
    tiers: str,
    samples: int,
    test: TestName,
    data: str | None = None,
    data_tiers: str | None = None,
    *,
    repeats: int = 3,
    seed: int = 0,
) -> Iterator[dict[str, Any]]:
    """Time each task `repeats` times and yield its record.

    Pruning and identifying run on a random graph of 2,000 variables and 10,000 edges. Learning
    runs on a simulated table (`tiers` and `samples` as of `simulate`), or on the columns of `data`
    that `data_tiers` names, for a query about the last tier and in full. Reading data is not
    counted. Raises `UsageError` where only one of the two is given.
    """
    if (data is None) != (data_tiers is None):
        raise UsageError("--data and --data-tiers go together")
    tasks = [*_graph_tasks(seed)]
    if data is not None and data_tiers is not None:
        named = read_tiers(data_tiers)
        if len(named.names) < 2:
            raise UsageError(f"--data-tiers {data_tiers!r}: at least two variables are needed")
        tasks += _learning_tasks(read_table(data, columns=named.names), named, test)
    else:
        tasks += _learning_tasks(*_simulated(tiers, samples, test, seed), test)
    walls: list[list[float]] = [[] for _ in tasks]
    tests: list[list[int | None]] = [[] for _ in tasks]
    for _ in range(repeats):  # in turns, so that no task has always the same place
        for k, task in enumerate(tasks):
            begun = time.perf_counter()
            tests[k].append(task.run())
            walls[k].append(time.perf_counter() - begun)
    for task, wall_s, found in zip(tasks, walls, tests, strict=True):
        counted = [count for count in found if count is not None]
        yield {
            "task": task.name,
            "size": task.size,
            "runs": repeats,
            "wall_s": statistics.median(wall_s),
            "wall_s_min": min(wall_s),
            "wall_s_max": max(wall_s),
            "tests": int(statistics.median(counted)) if counted else None,
        }


def large_graph(rng: np.random.Generator) -> tuple[ADMG, Tiers, Query]:
    """Draw 2,000 variables in 20 tiers, 10,000 edges (a tenth bidirected), and a late query."""
    each = NODES // TIERS
    names = [f"V{t}_{i}" for t in range(1, TIERS + 1) for i in range(1, each + 1)]
    tiers = Tiers(tuple(tuple(names[k : k + each]) for k in range(0, NODES, each)))
    directed: set[tuple[str, str]] = set()
    while len(directed) < EDGES * 9 // 10:
        a, b = sorted(rng.integers(NODES, size=2).tolist())
        if a < b:
            directed.add((names[a], names[b]))
    confounded: set[tuple[str, str]] = set()
    while len(confounded) < EDGES // 10:
        tier = int(rng.integers(TIERS)) * each
        a, b = sorted((tier + rng.integers(each, size=2)).tolist())
        if a < b:
            confounded.add((names[a], names[b]))
    graph = ADMG.from_edges(names, sorted(directed), sorted(confounded))
    return graph, tiers, Query((f"V{TIERS // 2}_1",), (f"V{TIERS}_1",))


def _graph_tasks(seed: int) -> Iterator[_Task]:
    graph, tiers, query = large_graph(np.random.default_rng(seed))
    size = f"{NODES} variables, {EDGES} edges"
    pruned = prune(graph, tiers, query)

    def run_prune() -> None:
        prune(graph, tiers, query)

    def run_identify() -> None:
        identify_pruned(pruned, tiers.of, query)

    yield _Task("prune", size, run_prune)
    yield _Task("identify", size, run_identify)


def _learning_tasks(table: Table, tiers: Tiers, test: TestName) -> Iterator[_Task]:
    size = f"{len(tiers.names)} variables, {table.rows} rows"
    last = tiers.groups[-1]
    query = Query((last[0],), (last[-1],)) if len(last) > 1 else Query(tiers.groups[-2][:1], last)
    bands = (
        (f"discover for {query}, {test}", band_of(query, tiers)),
        (f"discover all tiers, {test}", Band(1, len(tiers), "all")),
    )
    warm_up(make_test(test, table, tiers.names))
    for name, band in bands:

        def run(band: Band = band) -> int:
            # A fresh test each time: it remembers what it has computed.
            return discover(make_test(test, table, tiers.names), tiers, band).tests

        yield _Task(name, size, run)


def _simulated(spec: str, samples: int, test: TestName, seed: int) -> tuple[Table, Tiers]:
    import tempfile
    from pathlib import Path

    rng = np.random.default_rng(seed)
    graph, tiers = random_graph(read_sizes(spec), rng)
    if len(graph) < 2:
        raise UsageError(f"--tiers {spec!r}: at least two variables are needed")
    model = random_model(graph, rng, kind="gaussian" if test == "fisherz" else "discrete")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "simulated.csv"
        place.write_bytes(b"".join(csv_pieces(graph.names, sample(model, samples, rng))))
        return read_table(str(place)), tiers

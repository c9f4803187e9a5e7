"""Lower bounds of the makespan (sheet item 9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitsched.costs import Costs
from bitsched.plan import Plan
from bitsched.shape import Shape
from bitsched.taskgraph import TaskGraph, task_graph


@dataclass(frozen=True)
class Bounds:
    """No plan takes less than any of these.

    `work`: all work spread over all processors without a gap. `chain`: the longest chain, which
    one processor runs. `reduction`: the additions of the longest sum, one after another, once
    the first tile of it is computed (0 where the order is open: atomics do not wait here).
    `load`: the work of the busiest processor, as chains are not split (`least_load`).
    """

    work: float
    chain: float
    reduction: float
    load: float

    @property
    def best(self) -> float:
        """The largest of the four."""
        return max(self.unordered, self.reduction)

    @property
    def unordered(self) -> float:
        """The largest of those that hold without an order of the sums too."""
        return max(self.work, self.chain, self.load)

    @property
    def binding(self) -> str:
        """The name of the largest; of equals the first of work, chain, reduction, load."""
        return max(("work", "chain", "reduction", "load"), key=lambda name: getattr(self, name))


def bounds(
    target: Plan | Shape | TaskGraph, costs: Costs | None = None, processors: int | None = None
) -> Bounds:
    """Give the lower bounds of a plan, a graph, or a shape on so many processors."""
    if isinstance(target, Shape):
        if processors is None:
            raise ValueError("the bounds of a shape need a number of processors")
        return _of_shape(target, costs or Costs(), processors)
    graph = task_graph(target, costs or Costs()) if isinstance(target, Plan) else target
    if not graph.tasks:
        return Bounds(0.0, 0.0, 0.0, 0.0)
    duration = graph.compute + graph.reduce
    chains = duration if graph.chain is None else _sums(graph.chain, duration)
    if duration.min() == duration.max() and graph.chain is not None:  # tiles can be counted
        sizes = np.bincount(graph.chain)
        load = float(duration[0]) * float(least_load(sizes, graph.processors))
    else:
        load = float(least_load(chains, graph.processors))
    reduction = 0.0
    if graph.target is not None:
        least = np.full(int(graph.target.max()) + 1, np.inf)
        np.minimum.at(least, graph.target, graph.compute)
        total = _sums(graph.target, graph.reduce)
        reduction = float((total + np.where(np.isinf(least), 0.0, least)).max())
    work = float(duration.sum()) / graph.processors
    return Bounds(work, float(chains.max()), reduction, load)


def least_load(sizes: NDArray[Any] | Sequence[float], processors: int) -> float:
    """Give a lower bound on the load of the busiest processor, for chains of these sizes.

    Of the k * processors + 1 longest chains one processor has k + 1 (Graham's pigeonhole for
    identical machines), so at least the k + 1 shortest of them. Where sizes are whole numbers
    (tiles) one has at least ceil(sum / processors), too.
    """
    falling = np.sort(np.asarray(sizes))[::-1]
    before = np.concatenate([[0], np.cumsum(falling)])
    k = np.arange((falling.size - 1) // processors + 1)
    first = k * processors + 1
    most = (before[first] - before[first - k - 1]).max()
    if np.issubdtype(falling.dtype, np.integer):
        return max(int(most), -(-int(before[-1]) // processors))
    return float(most)


def _of_shape(shape: Shape, costs: Costs, processors: int) -> Bounds:
    tile = costs.compute + costs.reduce
    chain = int(shape.active.sum(axis=1).max()) * shape.group * tile
    longest = int(shape.active.sum(axis=0).max())
    sizes = np.tile(shape.active.sum(axis=1) * shape.group, shape.heads // shape.group)
    return Bounds(
        work=shape.tasks * tile / processors,
        chain=chain,
        reduction=costs.compute + costs.reduce * longest,
        load=least_load(sizes, processors) * tile,
    )


def _sums(index: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.bincount(index, weights=values)

"""Lower bounds of the makespan (sheet item 9)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
    """

    work: float
    chain: float
    reduction: float

    @property
    def best(self) -> float:
        """The largest of the three."""
        return max(self.work, self.chain, self.reduction)

    @property
    def binding(self) -> str:
        """The name of the largest."""
        return max(("work", "chain", "reduction"), key=lambda name: getattr(self, name))


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
        return Bounds(0.0, 0.0, 0.0)
    duration = graph.compute + graph.reduce
    chain = duration.max() if graph.chain is None else _sums(graph.chain, duration).max()
    reduction = 0.0
    if graph.target is not None:
        least = np.full(int(graph.target.max()) + 1, np.inf)
        np.minimum.at(least, graph.target, graph.compute)
        total = _sums(graph.target, graph.reduce)
        reduction = float((total + np.where(np.isinf(least), 0.0, least)).max())
    return Bounds(float(duration.sum()) / graph.processors, float(chain), reduction)


def _of_shape(shape: Shape, costs: Costs, processors: int) -> Bounds:
    tile = costs.compute + costs.reduce
    chain = int(shape.active.sum(axis=1).max()) * shape.group * tile
    longest = int(shape.active.sum(axis=0).max())
    return Bounds(shape.tasks * tile / processors, chain, costs.compute + costs.reduce * longest)


def _sums(index: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.bincount(index, weights=values)

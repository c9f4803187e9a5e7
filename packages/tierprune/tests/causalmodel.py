"""Models with explicit latent variables whose effects are exact sums.

Nothing here uses the tool's identification: effects come from the truncated factorisation.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tierprune.admg import ADMG
from tierprune.query import Query


@dataclass
class Model:
    """One table P(v | parents, latents) for each variable, and one P(u) for each latent."""

    graph: ADMG
    levels: list[int]
    latents: list[NDArray[np.float64]]
    tables: list[tuple[list[int], NDArray[np.float64]]]  # axes (v, parents, latents), table

    @classmethod
    def draw(cls, graph: ADMG, seed: int, levels: tuple[int, ...] = (2, 3)) -> "Model":
        rng = np.random.default_rng(seed)
        count = len(graph)
        sizes = [int(rng.choice(levels)) for _ in range(count)]
        edges = list(graph.bidirected())
        latents = [rng.dirichlet([2.0, 2.0]) for _ in edges]
        tables = []
        for v in range(count):
            axes = [v, *(p for p in range(count) if graph.parents[v] >> p & 1)]
            shape = [sizes[axis] for axis in axes]
            for number, edge in enumerate(edges):
                if v in edge:
                    axes.append(count + number)
                    shape.append(2)
            drawn = rng.dirichlet(np.full(sizes[v], 1.5), size=tuple(shape[1:]))
            tables.append((axes, np.moveaxis(drawn, -1, 0)))
        return cls(graph, sizes, latents, tables)

    def joint(self, do: dict[int, int] | None = None) -> NDArray[np.float64]:
        """Give P(v) or, under an intervention, P_x(v), zero where v differs from it."""
        count, do = len(self.graph), do or {}
        operands: list[object] = []
        for number, latent in enumerate(self.latents):
            operands += [latent, [count + number]]
        for v, (axes, table) in enumerate(self.tables):
            if v in do:
                pinned = np.zeros(self.levels[v])
                pinned[do[v]] = 1.0
                operands += [pinned, [v]]
            else:
                operands += [table, axes]
        return np.asarray(np.einsum(*operands, list(range(count)), optimize="greedy"))

    def effect(self, query: Query, values: dict[str, int]) -> float:
        """Give P(outcome | do(treatment), given) at `values` by the truncated factorisation."""
        index = self.graph.index
        joint = self.joint({index[name]: values[name] for name in query.treatment})

        def total(names: tuple[str, ...]) -> float:
            at = {index[name]: values[name] for name in names}
            return float(joint[tuple(at.get(v, slice(None)) for v in range(joint.ndim))].sum())

        return total(query.outcome + query.given) / total(query.given)

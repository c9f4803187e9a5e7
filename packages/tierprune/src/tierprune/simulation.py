"""Random tiered graphs, random models on them, and samples (the paper's generator, section 5).

    rng = np.random.default_rng(0)
    graph, tiers = random_graph([10] * 5, rng)
    model = random_model(graph, rng)
    rows = sample(model, 50_000, rng)

A bidirected edge of the graph is simulated by a latent cause of its two ends. The models can say
exactly what was simulated: `DiscreteModel.distribution` and `GaussianModel.covariance` hold the
latent variables and any intervention.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from papercuts.errors import UsageError
from tierprune.admg import ADMG
from tierprune.bits import bits
from tierprune.tiers import Tiers

Kind = Literal["discrete", "gaussian"]
MOST_SIMULATED = 20_000  # variables; the time to draw a graph grows with their square
_MOST_ROWS = 1 << 20  # of one conditional table
_CHUNK = 1 << 16  # rows that are sampled together: what fits the cache


def random_graph(
    sizes: Sequence[int],
    rng: np.random.Generator,
    *,
    max_parents: int = 5,
    max_neighbours: int = 4,
    bidirected: float = 0.3,
) -> tuple[ADMG, Tiers]:
    """Draw a tiered graph as the paper does.

    `sizes` are the numbers of variables in each tier; `V2_1` is the first variable of tier 2. Each
    variable in turn draws up to `max_parents` parents among all that came before it, as long as
    both have fewer than `max_neighbours` neighbours. Then each directed edge inside a tier turns
    bidirected with probability `bidirected`. Raises `ValueError` for numbers out of range.
    """
    if not sizes or min(sizes) < 1:
        raise ValueError("a tier needs at least one variable")
    if max_parents < 0 or max_neighbours < 0:
        raise ValueError("the most parents and neighbours are 0 or more")
    if not 0 <= bidirected <= 1:
        raise ValueError("the share of bidirected edges lies between 0 and 1")
    groups = tuple(
        tuple(f"V{tier}_{i}" for i in range(1, size + 1)) for tier, size in enumerate(sizes, 1)
    )
    tiers = Tiers(groups)
    names = tiers.names
    degree = [0] * len(names)
    directed: list[tuple[str, str]] = []
    confounded: list[tuple[str, str]] = []
    for i, name in enumerate(names):
        wanted = int(rng.integers(0, max_parents + 1))
        for j in rng.permutation(i).tolist() if wanted else ():
            if not wanted or degree[i] >= max_neighbours:
                break
            if degree[j] >= max_neighbours:
                continue
            wanted -= 1
            degree[i] += 1
            degree[j] += 1
            inside = tiers.of[names[j]] == tiers.of[name]
            turned = inside and bool(rng.random() < bidirected)
            (confounded if turned else directed).append((names[j], name))
    return ADMG.from_edges(names, directed, confounded), tiers


@dataclass(frozen=True)
class DiscreteModel:
    """A Bayesian network whose root causes of pairs, one for each bidirected edge, are latent.

    `states[i]` is the number of states of variable i, `latents` the (i, j) that each latent
    variable causes, `latent_tables` its distribution. `tables[i]` has an axis for each parent of i
    (by number), one for each latent cause of i (by number), and last the states of i.
    """

    graph: ADMG
    states: tuple[int, ...]
    latents: tuple[tuple[int, int], ...]
    latent_tables: tuple[NDArray[np.float64], ...]
    tables: tuple[NDArray[np.float64], ...]

    def causes(self, i: int) -> tuple[list[int], list[int]]:
        """Give the observed and the latent causes of variable i: the axes of its table."""
        return list(bits(self.graph.parents[i])), [k for k, e in enumerate(self.latents) if i in e]

    def distribution(
        self, names: Sequence[str], do: Mapping[str, int] | None = None
    ) -> NDArray[np.float64]:
        """Give P(names | do) exactly, an axis for each name, by the truncated factorisation.

        `do` sets variables to states; a variable of `do` among `names` has its whole mass there.
        Latent variables are summed out. Meant for small graphs: the cost grows exponentially.
        """
        if not names:
            return np.ones(())
        index = self.graph.index
        set_to = {index[name]: state for name, state in (do or {}).items()}
        wanted = [index[name] for name in names]
        mutilated = self.graph.without_into(self.graph.mask(do or {}))
        needed = list(bits(mutilated.ancestors(self.graph.mask(names))))
        operands: list[Any] = []
        used: set[int] = set()
        for i in needed:
            if i in set_to:
                operands += [np.eye(self.states[i])[set_to[i]], [i]]
                continue
            parents, latents = self.causes(i)
            used.update(latents)
            operands += [self.tables[i], [*parents, *(len(self.states) + k for k in latents), i]]
        for k in sorted(used):
            operands += [self.latent_tables[k], [len(self.states) + k]]
        # einsum counts its axes from 0 and has few of them.
        axes = {
            axis: at for at, axis in enumerate(dict.fromkeys(a for s in operands[1::2] for a in s))
        }
        operands[1::2] = [[axes[a] for a in s] for s in operands[1::2]]
        out = np.einsum(*operands, [axes[i] for i in wanted], optimize="greedy")
        return np.asarray(out, dtype=np.float64)


@dataclass(frozen=True)
class GaussianModel:
    """A linear model with Gaussian errors, in which every variable has variance 1.

    `weights[i, j]` is the effect of i on j, `latents` the (i, j) that each standard normal latent
    variable causes, `loadings` its two effects, `noise` the variance of each variable's own error.
    """

    graph: ADMG
    weights: NDArray[np.float64]
    latents: tuple[tuple[int, int], ...]
    loadings: NDArray[np.float64]
    noise: NDArray[np.float64]

    def covariance(self, do: Sequence[str] = ()) -> NDArray[np.float64]:
        """Give the covariance of all variables [n, n]; those of `do` are set at random instead.

        A variable that is set has variance 1 and no causes.
        """
        cut = [self.graph.index[name] for name in do]
        total, errors = self._errors(cut)
        return np.asarray(total.T @ errors @ total)

    def effect(self, treatment: str, outcome: str) -> float:
        """Give the total effect: the change of the mean outcome by one unit of treatment."""
        total, _ = self._errors([])
        return float(total[self.graph.index[treatment], self.graph.index[outcome]])

    def _errors(self, cut: list[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        weights, errors = self.weights.copy(), np.diag(self.noise)
        for (i, j), (a, b) in zip(self.latents, self.loadings, strict=True):
            errors[i, i] += a * a
            errors[j, j] += b * b
            errors[i, j] += a * b
            errors[j, i] += a * b
        weights[:, cut] = errors[cut] = errors[:, cut] = 0.0
        errors[cut, cut] = 1.0
        return np.asarray(np.linalg.inv(np.eye(len(weights)) - weights), dtype=np.float64), errors


Model = DiscreteModel | GaussianModel


def random_model(
    graph: ADMG,
    rng: np.random.Generator,
    *,
    kind: Kind = "discrete",
    states: tuple[int, int] = (2, 3),
) -> Model:
    """Draw parameters for `graph`.

    Discrete: each variable and latent cause has a number of states from `states` (fewest, most),
    each row of a table is uniform on the simplex. Gaussian: effects of size 0.4 to 1 and either
    sign before all variables are scaled to variance 1. Raises `ValueError` for a variable with so
    many causes that its table has over a million rows.
    """
    return _gaussian(graph, rng) if kind == "gaussian" else _discrete(graph, rng, states)


def _discrete(graph: ADMG, rng: np.random.Generator, states: tuple[int, int]) -> DiscreteModel:
    fewest, most = states
    if not 2 <= fewest <= most <= 10:
        raise ValueError("the numbers of states lie between 2 and 10, the fewest first")
    latents = tuple(graph.bidirected())
    counts = rng.integers(fewest, most + 1, len(graph) + len(latents)).tolist()
    tables = []
    for i, name in enumerate(graph.names):
        causes = [*bits(graph.parents[i])]
        causes += [len(graph) + k for k, ends in enumerate(latents) if i in ends]
        shape = [counts[c] for c in causes]
        if np.prod(shape, dtype=float) > _MOST_ROWS:
            raise ValueError(f"{name} has {len(causes)} causes: too many for a table")
        tables.append(rng.dirichlet(np.ones(counts[i]), size=shape or None))
    shares = tuple(rng.dirichlet(np.full(counts[len(graph) + k], 5.0)) for k in range(len(latents)))
    return DiscreteModel(graph, tuple(counts[: len(graph)]), latents, shares, tuple(tables))


def _gaussian(graph: ADMG, rng: np.random.Generator) -> GaussianModel:
    size, latents = len(graph), tuple(graph.bidirected())

    def draw(count: int) -> NDArray[np.float64]:
        return np.asarray(rng.uniform(0.4, 1.0, count) * rng.choice([-1.0, 1.0], count))

    weights, noise = np.zeros((size, size)), np.ones(size)
    loadings = draw(2 * len(latents)).reshape(-1, 2)
    confounding = np.zeros((size, size))  # of the errors of two variables, by their latents
    total = np.zeros((size, size))  # effect of the error of i on j
    for j in graph.order():
        parents = list(bits(graph.parents[j]))
        weights[parents, j] = draw(len(parents))
        mine = [(k, ends.index(j)) for k, ends in enumerate(latents) if j in ends]
        total[:, j] = total[:, parents] @ weights[parents, j]
        total[j, j] = 1.0
        latent = sum(loadings[k, side] ** 2 for k, side in mine)
        confounding[j, j] = latent + 1.0
        for k, side in mine:
            other = latents[k][1 - side]
            value = loadings[k, side] * loadings[k, 1 - side]
            if total[other, other]:  # placed before, and scaled
                confounding[j, other] = confounding[other, j] = value
        scale = 1 / np.sqrt(total[:, j] @ confounding @ total[:, j])
        # The error and its loadings are scaled too, so that its own column starts from 1 again.
        weights[parents, j] *= scale
        noise[j] = scale**2
        for k, side in mine:
            loadings[k, side] *= scale
        confounding[j] *= scale
        confounding[:, j] *= scale
        total[:, j] *= scale
        total[j, j] = 1.0
    return GaussianModel(graph, weights, latents, loadings, noise)


def sample(
    model: Model, rows: int, rng: np.random.Generator, do: Mapping[str, int] | None = None
) -> NDArray[Any]:
    """Draw rows of the observed variables [rows, n], in the order of the graph.

    Discrete: int8, the states from 0. Gaussian: float64. `do` sets variables to values.
    """
    draw = _sample_discrete if isinstance(model, DiscreteModel) else _sample_gaussian
    dtype = np.int8 if isinstance(model, DiscreteModel) else np.float64
    out = np.empty((rows, len(model.graph)), dtype=dtype)
    order = model.graph.order()
    set_to = {model.graph.index[name]: value for name, value in (do or {}).items()}
    for start in range(0, rows, _CHUNK):
        part = out[start : start + _CHUNK]
        columns = draw(model, len(part), rng, order, set_to)  # type: ignore[arg-type]
        for i, column in enumerate(columns):
            part[:, i] = column
    return out


def _sample_discrete(
    model: DiscreteModel,
    rows: int,
    rng: np.random.Generator,
    order: list[int],
    set_to: Mapping[int, int],
) -> list[NDArray[np.int8]]:
    def draw(table: NDArray[np.float64], row: NDArray[np.int32] | None) -> NDArray[np.int8]:
        upto = np.cumsum(table.reshape(-1, table.shape[-1]), axis=1, dtype=np.float32)
        chance = rng.random(rows, dtype=np.float32)
        state = np.zeros(rows, dtype=np.int8)
        for k in range(upto.shape[1] - 1):
            state += chance >= (upto[0, k] if row is None else upto[:, k][row])
        return state

    hidden = [draw(table, None) for table in model.latent_tables]
    columns: list[NDArray[np.int8]] = [np.empty(0, dtype=np.int8)] * len(order)
    for i in order:
        if i in set_to:
            columns[i] = np.full(rows, set_to[i], dtype=np.int8)
            continue
        parents, latents = model.causes(i)
        row: NDArray[np.int32] | None = None
        table = model.tables[i]
        causes = [*(columns[p] for p in parents), *(hidden[k] for k in latents)]
        for cause, size in zip(causes, table.shape, strict=False):
            row = cause.astype(np.int32) if row is None else row * size + cause
        columns[i] = draw(table, row)
    return columns


def _sample_gaussian(
    model: GaussianModel,
    rows: int,
    rng: np.random.Generator,
    order: list[int],
    set_to: Mapping[int, float],
) -> list[NDArray[np.float64]]:
    columns = [rng.standard_normal(rows) * np.sqrt(v) for v in model.noise]
    for (i, j), (a, b) in zip(model.latents, model.loadings, strict=True):
        cause = rng.standard_normal(rows)
        columns[i] += a * cause
        columns[j] += b * cause
    for j in order:
        for i in bits(model.graph.parents[j]):
            columns[j] += model.weights[i, j] * columns[i]
        if j in set_to:
            columns[j] = np.full(rows, float(set_to[j]))
    return columns


def read_sizes(spec: str) -> list[int]:
    """Read `5x10` (5 tiers of 10 variables) or `3,4,2` (their sizes), of 20,000 variables at most.

    Raises `UsageError` for anything else.
    """
    import re

    # 9 digits are more than enough: no number and no list grows without bound
    if match := re.fullmatch(r"([0-9]{1,9})x([0-9]{1,9})", spec):
        total = int(match[1]) * int(match[2])
        sizes = [int(match[2])] * min(int(match[1]), MOST_SIMULATED)
    elif re.fullmatch(r"[0-9]{1,9}(,[0-9]{1,9})*", spec):
        sizes = [int(size) for size in spec.split(",")]
        total = sum(sizes)
    else:
        sizes, total = [], 0
    if total > MOST_SIMULATED:
        raise UsageError(f"--tiers {spec}: at most {MOST_SIMULATED:,} variables are expected")
    if not sizes or min(sizes) < 1:
        raise UsageError(f"--tiers {spec!r}: tiers x variables (5x10) or sizes (3,4,2) expected")
    return sizes


def read_states(spec: str) -> tuple[int, int]:
    """Read `2-3` or `2`, the fewest and the most states of a variable; `UsageError` else."""
    low, dash, high = spec.partition("-")
    try:
        fewest, most = int(low), int(high if dash else low)
    except ValueError:
        fewest, most = 0, 0
    if not 2 <= fewest <= most <= 10:
        raise UsageError(f"--states {spec!r}: a number or a range within 2-10 is expected")
    return fewest, most

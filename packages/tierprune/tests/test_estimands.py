"""Estimands against the truncated factorisation of models with explicit latent variables."""

import random
from collections import Counter

import numpy as np
import pytest
from causalmodel import Model
from smallgraphs import random_admg, random_query, random_tiered

from tierprune.dataset import Coded
from tierprune.estimation import Counts, estimate
from tierprune.expression import Estimand
from tierprune.identification import identify, identify_pruned
from tierprune.pruning import prune
from tierprune.query import Query

FIGURES = 1e-12
ENDS = ((1, 1), (1, 1), (2, 1), (1, 2))  # treatments and outcomes of a random query


def exact(model: Model, estimand: Estimand, query: Query, values: dict[str, int]) -> float:
    """Evaluate an estimand on the model's exact observational joint."""
    joint = model.joint()
    cells = np.indices(joint.shape).reshape(joint.ndim, -1)
    columns = [
        Coded(name, cells[i], tuple(map(str, range(model.levels[i]))))
        for i, name in enumerate(model.graph.names)
        if name in {*estimand.variables, *query.names}
    ]
    named = {name: str(value) for name, value in values.items()}
    (found,) = estimate(
        estimand,
        Counts(columns, joint.ravel()),
        do={name: named[name] for name in query.treatment},
        outcome={name: named[name] for name in query.outcome},
        given={name: named[name] for name in query.given},
        bootstrap=0,
    )
    return found.estimate


def check(seed: int) -> str:
    """Compare one random query in G and in H with the truth; say what kind it was."""
    rng = random.Random(seed)
    given = rng.random() < 0.5
    if rng.random() < 0.6:
        sizes = rng.choice(((2, 2, 2), (1, 2, 2, 1), (3, 3), (2, 3, 2)))
        graph, tiers = random_tiered(
            rng, sizes, directed=rng.uniform(0.3, 0.8), bidirected=rng.uniform(0.2, 0.6)
        )
    else:
        tiers = None
        graph = random_admg(rng, rng.randint(3, 7), directed=0.5, bidirected=rng.uniform(0.1, 0.4))
    query = random_query(rng, graph.names, rng.randint(1, 2) if given else 0, ends=ENDS)
    whole = identify(graph, query)
    if whole.estimand is None:
        return "no"
    model = Model.draw(graph, seed)
    values = {name: rng.randrange(model.levels[graph.index[name]]) for name in query.names}
    truth = model.effect(query, values)
    assert exact(model, whole.estimand, query, values) == pytest.approx(truth, abs=FIGURES, rel=0)
    if tiers is None:
        return "whole"
    pruned = prune(graph, tiers, query)
    part = identify_pruned(pruned, tiers.of, query)
    assert part.estimand is not None
    assert exact(model, part.estimand, query, values) == pytest.approx(truth, abs=FIGURES, rel=0)
    return pruned.band.rule


def test_estimands_of_whole_and_pruned_graphs_give_the_truth() -> None:
    kinds = Counter(check(seed) for seed in range(50))
    assert all(kinds[kind] > 1 for kind in ("whole", "3.2", "3.5", "3.6"))


@pytest.mark.slow
def test_estimands_of_many_graphs_give_the_truth() -> None:
    kinds = Counter(check(seed) for seed in range(1000, 6000))
    assert all(kinds[kind] > 100 for kind in ("whole", "3.2", "3.5", "3.6"))

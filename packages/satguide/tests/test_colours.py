"""Merging what the network cannot tell apart, against refinement written plainly."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from satguide.cnf import CNF
from satguide.colours import merged
from satguide.families.spec import generator
from satguide.graph import adjacency, batch
from satguide.network import GuidanceNetwork, Shape

LITERAL = st.integers(1, 9).flatmap(lambda v: st.sampled_from([v, -v]))
CLAUSES = st.lists(st.lists(LITERAL, max_size=4), min_size=1, max_size=12)
# Copies of one small formula on variables of their own: much of it looks the same.
COPIES = st.tuples(CLAUSES, st.integers(2, 4))


def copies(clauses, count):
    shift = [
        [lit + (9 * k if lit > 0 else -9 * k) for lit in c] for k in range(count) for c in clauses
    ]
    return CNF.from_clauses(9 * count, shift)


def refined(cnf, rounds):
    """Classes of the variables after `rounds` rounds, with multisets as colours."""
    edges = {(c, lit) for c, clause in enumerate(cnf) for lit in clause}
    literals = {s * v: 0 for v in range(1, cnf.variables + 1) for s in (1, -1)}
    degree = Counter(lit for _, lit in edges)
    literals = {lit: degree[lit] for lit in literals}
    clauses = {c: len({lit for k, lit in edges if k == c}) for c in range(len(cnf))}
    for _ in range(rounds):
        heard = {c: sorted(literals[lit] for k, lit in edges if k == c) for c in clauses}
        clauses = numbered({c: (clauses[c], *heard[c]) for c in clauses})
        heard = {lit: sorted(clauses[c] for c, m in edges if m == lit) for lit in literals}
        literals = numbered({m: (literals[m], literals[-m], *heard[m]) for m in literals})
    return [(literals[-v], literals[v]) for v in range(1, cnf.variables + 1)]


def numbered(colours):
    order = {colour: i for i, colour in enumerate(sorted(set(colours.values())))}
    return {node: order[colour] for node, colour in colours.items()}


def partition(classes):
    return [list(classes).index(c) for c in classes]


@given(COPIES, st.integers(1, 4))
def test_classes_are_those_of_colour_refinement(drawn, rounds):
    cnf = copies(*drawn)
    found = merged(adjacency(cnf), rounds)
    expected = refined(cnf, rounds)
    if found is None:
        assert len(set(expected)) > 0.7 * cnf.variables or not any(drawn[0])
    else:
        assert partition(found.class_of.tolist()) == partition(expected)


@pytest.mark.parametrize(
    "cnf",
    [
        generator("3col")(40, 3),
        copies([[1, -2, 3], [2], [], [-3, -3, 1], [4, -4]], 3),
        CNF.from_clauses(5, [[1, 2], [3, 4]]),
    ],
    ids=["3col", "copies", "absent"],
)
def test_the_merged_graph_gives_the_same_answer(cnf):
    torch.manual_seed(0)
    network = GuidanceNetwork(Shape(width=8, layers=3))
    torch.nn.init.normal_(network.read_out[-1].weight)
    found = merged(adjacency(cnf), 3)
    assert found is not None
    assert found.graph.variables < cnf.variables
    whole = network.infer(batch([adjacency(cnf)]))
    for small, large in zip(network.infer(found.graph), whole, strict=True):
        torch.testing.assert_close(small[found.class_of], large, rtol=0, atol=1e-5)
    assert float(whole[1].std()) > 1e-3


def test_one_third_of_3col_is_looked_at():
    found = merged(adjacency(generator("3col")(250, 7)), 4)
    assert found is not None
    assert found.graph.variables <= 250
    assert np.array_equal(found.class_of[0::3], found.class_of[2::3])


def test_nothing_is_merged_where_it_would_not_pay():
    assert merged(adjacency(generator("3sat")(100, 7)), 4) is None
    assert merged(adjacency(CNF.from_clauses(3, [[1, 2], [2, 3]])), 0) is None
    assert merged(adjacency(CNF.from_clauses(3, [])), 4) is None

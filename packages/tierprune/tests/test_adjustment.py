import itertools

import numpy as np
import pytest
from classes import admgs_of, cases, model

from tierprune import (
    ADMG,
    PAG,
    Mark,
    Query,
    Tiers,
    adjust_admg,
    adjust_pag,
    m_separated,
    random_graph,
    random_model,
    true_pag,
)
from tierprune.adjustment import is_valid
from tierprune.query import band_of


def check_class(sizes, by_model):
    for group, pag, tiers, early in cases(sizes):
        graphs = by_model[model(group[0], early)]
        for x, y in itertools.permutations(pag.names[early:], 2):
            query = Query((x,), (y,))
            found = adjust_pag(pag, query, tiers, limit=100)
            never = all(not g.descendants(g.mask([x])) & g.mask([y]) for g in graphs)
            assert (found.reason == "no effect") == never
            if never:
                continue
            others = [name for name in pag.names if name not in (x, y)]
            valid = [
                set(chosen)
                for size in range(len(others) + 1)
                for chosen in itertools.combinations(others, size)
                if all(is_valid(graph, query, set(chosen)) for graph in graphs)
            ]
            minimal = {frozenset(s) for s in valid if not any(other < s for other in valid)}
            assert {frozenset(names) for names in found.sets} == minimal
            assert bool(valid) == (found.reason == "adjustment")
            if valid:
                assert set(found.canonical) in valid


@pytest.mark.parametrize(
    "sizes", [(0, 3), (1, 2), (2, 2), pytest.param((1, 3), marks=pytest.mark.slow)]
)
def test_sets_are_those_that_are_valid_in_every_graph_of_the_class(sizes):
    check_class(sizes, admgs_of(*sizes))


@pytest.mark.slow
def test_sets_are_those_that_are_valid_in_every_graph_of_each_class_of_four():
    check_class((0, 4), admgs_of(0, 4))


def test_of_equally_small_sets_the_first_is_the_one_nearest_to_the_outcome():
    """w -> a and v -> b: {b, a} and the others of two are valid; a and b cause y themselves."""
    edges = [("w", "x"), ("w", "a"), ("a", "y"), ("v", "x"), ("v", "b"), ("b", "y"), ("x", "y")]
    graph = ADMG.from_edges(["w", "v", "a", "b", "x", "y"], edges, [])
    query = Query(("x",), ("y",))
    expected = (("a", "b"), ("w", "b"), ("v", "a"), ("w", "v"))
    assert adjust_admg(graph, query).sets == expected
    assert adjust_admg(graph, query, limit=2).sets[0] == ("a", "b")


def adjusted(model_, query, found):
    """Evaluate an adjustment on the exact joint: P(outcome, given | do(treatment)) or given."""
    sides = query.outcome + query.given
    z = tuple(found.sets[0])
    must = found.given
    rest = tuple(name for name in sides if name not in must)
    names = found.treatment + rest + must + z
    joint = model_.distribution(names)
    letters = {name: chr(97 + i) for i, name in enumerate(names)}

    def sub(which):
        return "".join(letters[name] for name in which)

    every = sub(names)
    condition = joint.sum(
        axis=tuple(range(len(found.treatment), len(found.treatment) + len(rest))), keepdims=True
    )
    kernel = joint / condition
    weights = model_.distribution(must + z)
    return np.einsum(f"{every},{sub(must + z)}->{sub(found.treatment + sides)}", kernel, weights)


def check_numbers(rng, sizes, queries, learned):
    graph, tiers = random_graph(sizes, rng, max_parents=4, bidirected=0.4)
    exact = random_model(graph, rng, states=(2, 2))
    checked = 0
    for _ in range(queries):
        count = rng.integers(1, 3), rng.integers(1, 3), rng.integers(0, 3)
        names = [str(name) for name in rng.choice(graph.names, sum(count), replace=False)]
        query = Query(
            tuple(names[: count[0]]),
            tuple(names[count[0] : count[0] + count[1]]),
            tuple(names[count[0] + count[1] :]),
        )
        if learned:
            pag = true_pag(graph, tiers, band_of(query, tiers))
            found = adjust_pag(pag, query, tiers)
        else:
            found = adjust_admg(graph, query)
        if not found.valid:
            continue
        checked += 1
        sides = query.outcome + query.given
        for values in itertools.product((0, 1), repeat=len(query.treatment)):
            do = dict(zip(query.treatment, values, strict=True))
            truth = exact.distribution(sides, do)
            if found.reason == "no effect":
                free = exact.distribution(sides)
                axes = tuple(range(len(query.outcome)))
                left, right = truth / truth.sum(axes), free / free.sum(axes)
                np.testing.assert_allclose(left, right, atol=1e-10)
            else:
                held = tuple(do[name] for name in found.treatment)
                np.testing.assert_allclose(adjusted(exact, query, found)[held], truth, atol=1e-10)
    return checked


def test_the_formula_of_a_set_found_on_the_pag_equals_the_truncated_factorisation():
    rng = np.random.default_rng(3)
    assert sum(check_numbers(rng, [2, 3, 3], 12, learned=True) for _ in range(3)) > 8


def test_the_formula_of_a_set_found_on_the_graph_equals_the_truncated_factorisation():
    rng = np.random.default_rng(4)
    assert sum(check_numbers(rng, [2, 3, 3], 12, learned=False) for _ in range(3)) > 12


@pytest.mark.slow
def test_sets_found_on_many_pags_equal_the_truncated_factorisation():
    rng = np.random.default_rng(5)
    assert sum(check_numbers(rng, [3, 3, 3], 15, learned=True) for _ in range(60)) > 300


def test_the_m_graph_of_four_variables():
    # M-bias: nothing to adjust for, and not the collider
    graph = ADMG.from_edges("mxy", [("x", "y")], [("m", "x"), ("m", "y")])
    found = adjust_admg(graph, Query(("x",), ("y",)))
    assert (found.sets, found.canonical) == (((),), ())
    confounded = ADMG.from_edges("xy", [("x", "y")], [("x", "y")])
    assert adjust_admg(confounded, Query(("x",), ("y",))).reason == "no set"


def test_all_minimal_sets_are_listed_and_only_those():
    rng = np.random.default_rng(6)
    for _ in range(30):
        graph, _tiers = random_graph([7], rng, bidirected=0.3)
        x, y = (str(name) for name in rng.choice(graph.names, 2, replace=False))
        query = Query((x,), (y,))
        found = adjust_admg(graph, query, limit=1000)
        if found.reason == "no effect":
            continue
        others = [name for name in graph.names if name not in (x, y)]
        valid = [
            frozenset(chosen)
            for size in range(len(others) + 1)
            for chosen in itertools.combinations(others, size)
            if is_valid(graph, query, set(chosen))
        ]
        assert {frozenset(s) for s in found.sets} == {
            s for s in valid if not any(other < s for other in valid)
        }
        assert len(set(found.sets)) == len(found.sets)


def test_edges_before_the_band_do_not_matter():
    # u and w lie before the treatment: whatever joins them, one of them must be held fixed
    tail, arrow = Mark.TAIL, Mark.ARROW
    pag = PAG.from_edges(
        "uwxy", [("u", "x", tail, arrow), ("w", "y", tail, arrow), ("x", "y", tail, arrow)]
    )
    tiers = Tiers((("u", "w"), ("x",), ("y",)))
    found = adjust_pag(pag, Query(("x",), ("y",)), tiers)
    assert set(found.sets) == {("u",), ("w",)}
    # known not to be joined, neither is needed
    assert adjust_pag(pag, Query(("x",), ("y",))).sets == ((),)


def test_an_edge_that_is_not_visible_is_no_cause_to_adjust_for():
    pag = PAG.from_edges("xy", [("x", "y", Mark.CIRCLE, Mark.ARROW)])
    found = adjust_pag(pag, Query(("x",), ("y",)))
    assert (found.reason, found.edge) == ("not amenable", ("x", "y"))
    assert adjust_pag(pag, Query(("y",), ("x",))).reason == "no effect"
    # the same edge from an earlier tier is
    assert adjust_pag(pag, Query(("x",), ("y",)), Tiers((("x",), ("y",)))).sets == ((),)


def test_names_must_be_known():
    pag = PAG.from_edges("xy", [("x", "y", Mark.TAIL, Mark.ARROW)])
    with pytest.raises(ValueError, match="q is not in the graph"):
        adjust_pag(pag, Query(("x",), ("q",)))
    with pytest.raises(ValueError, match="y of the graph has no tier"):
        adjust_pag(pag, Query(("x",), ("y",)), Tiers((("x",),)))


def test_a_validity_check_agrees_with_separation_after_the_first_edges_are_gone():
    graph = ADMG.from_edges("zxmy", [("z", "x"), ("z", "y"), ("x", "m"), ("m", "y")])
    cut = ADMG.from_edges("zxmy", [("z", "x"), ("z", "y"), ("m", "y")])
    assert m_separated(cut, cut.mask("x"), cut.mask("y"), cut.mask("z"))
    query = Query(("x",), ("y",))
    assert is_valid(graph, query, {"z"})
    assert not is_valid(graph, query, set())
    assert not is_valid(graph, query, {"z", "m"})  # m is on the causal path

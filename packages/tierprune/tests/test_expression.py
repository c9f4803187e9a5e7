"""Simplification against numbers, and the four ways to write a formula."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from papercuts.errors import UsageError
from tierprune.admg import ADMG
from tierprune.bits import bits, mask_of
from tierprune.expression import (
    Algebra,
    Estimand,
    Expression,
    Probability,
    Product,
    Quotient,
    Sum,
)
from tierprune.identification import identify
from tierprune.query import Query
from tierprune.rendering import to_json, to_latex, to_text, to_y0

SIZE = 4
Array = NDArray[np.float64]
JOINT: Array = np.random.default_rng(7).dirichlet(np.ones(3**SIZE)).reshape((3,) * SIZE)


def summed(array: Array, mask: int) -> Array:
    return np.asarray(array.sum(axis=tuple(bits(mask)), keepdims=True))


def conditional(variables: int, conditions: int) -> Array:
    everything = (1 << SIZE) - 1
    above = summed(JOINT, everything & ~(variables | conditions))
    return above / summed(above, variables)


def value(node: Expression) -> Array:
    """Compute an expression from its definition, as an array over all variables."""
    match node:
        case Probability():
            return conditional(node.variables, node.given)
        case Product():
            product = np.ones((1,) * SIZE)
            for factor in node.factors:
                product = product * value(factor)
            return product
        case Quotient():
            return value(node.above) / value(node.below)
        case Sum():
            return summed(np.broadcast_to(value(node.body), JOINT.shape), node.bound)
    raise AssertionError


def check_algebra(data: st.DataObject) -> None:
    algebra = Algebra()
    made: list[tuple[Expression, Array]] = []
    sets = st.integers(0, (1 << SIZE) - 1)
    for _ in range(5):
        left = data.draw(sets.filter(bool))
        right = data.draw(sets) & ~left
        made.append((algebra.probability(left, right), conditional(left, right)))
    for _ in range(data.draw(st.integers(1, 8))):
        kind = data.draw(st.sampled_from(["product", "quotient", "sum", "sum"]))
        (a, va), (b, vb) = data.draw(st.sampled_from(made)), data.draw(st.sampled_from(made))
        if kind == "product":
            made.append((algebra.product([a, b]), va * vb))
        elif kind == "quotient":
            made.append((algebra.quotient(a, b), va / vb))
        elif a.free:
            bound = mask_of(i for i in bits(a.free) if data.draw(st.booleans()))
            made.append((algebra.sum(bound, a), summed(np.broadcast_to(va, JOINT.shape), bound)))
    for node, wanted in made:
        got, wanted = np.broadcast_arrays(value(node), wanted)
        np.testing.assert_allclose(got, wanted, rtol=1e-9)


@settings(max_examples=20)
@given(st.data())
def test_what_is_made_equals_what_was_asked_for(data: st.DataObject) -> None:
    check_algebra(data)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.data())
def test_what_is_made_equals_what_was_asked_for_in_many_cases(data: st.DataObject) -> None:
    check_algebra(data)


def test_equal_expressions_are_one() -> None:
    algebra = Algebra()
    one = algebra.product([algebra.probability(1), algebra.probability(4, 2)])
    two = algebra.product([algebra.probability(4, 2), algebra.probability(1)])
    assert one is two


def test_rules() -> None:
    algebra = Algebra()
    a, b_a = algebra.probability(1), algebra.probability(2, 1)
    assert algebra.product([b_a, a]) is algebra.probability(3)
    assert algebra.sum(1, algebra.product([a, b_a])) is algebra.probability(2)
    assert algebra.sum(3, algebra.probability(7)) is algebra.probability(4)
    assert algebra.quotient(algebra.probability(3), a) is b_a
    assert algebra.quotient(a, a) is algebra.one
    assert algebra.sum(0, a) is a
    with pytest.raises(ValueError, match="does not have"):
        algebra.sum(4, a)
    with pytest.raises(ValueError, match="both sides"):
        algebra.probability(1, 1)


def front_door(x: str = "X", m: str = "M", y: str = "Y") -> Estimand:
    graph = ADMG.from_edges([x, m, y], [(x, m), (m, y)], [(x, y)])
    found = identify(graph, Query((x,), (y,))).estimand
    assert found is not None
    return found


def test_a_formula_is_written_in_four_ways() -> None:
    made = front_door()
    assert to_text(made) == "sum_{M} P(M | X) sum_{X'} P(X') P(Y | X', M)"
    assert to_latex(made) == (r"\sum_{M} P(M \mid X) \, \sum_{X'} P(X') \, P(Y \mid X', M)")
    assert to_y0(made) == ("Sum[M]((P(M | X) * Sum[X]((P(X) * P(Y | X, M)))))", {})
    inner = {
        "sum": ["X"],
        "of": {"product": [{"p": ["X"], "given": []}, {"p": ["Y"], "given": ["X", "M"]}]},
    }
    assert to_json(made) == {
        "sum": ["M"],
        "of": {"product": [{"p": ["M"], "given": ["X"]}, inner]},
    }
    assert (made.size, made.written_size) == (7, 7)
    assert made.variables == ("X", "M", "Y")


def test_odd_names_survive() -> None:
    made = front_door("blood pressure", "m_1", "100 % sûr, {oui}")
    assert to_text(made).startswith('sum_{m_1} P(m_1 | "blood pressure") sum_{"blood pressure"')
    assert r"\text{100 \% sûr, \{oui\}} \mid" in to_latex(made)
    assert "M_{1}" in to_latex(front_door(m="M1"))
    text, renamed = to_y0(made)
    assert text == "Sum[V1]((P(V1 | V0) * Sum[V0]((P(V0) * P(V2 | V0, V1)))))"
    assert renamed == {"blood pressure": "V0", "m_1": "V1", "100 % sûr, {oui}": "V2"}


def chain(length: int) -> Estimand:
    """Give a formula in which each part occurs twice in the next one."""
    algebra = Algebra()
    made = algebra.probability(1, 2)
    for _ in range(length):
        made = algebra._intern(Quotient, made.free, made, algebra.product([made, made]))
    return Estimand(("A", "B"), made)


def test_a_long_formula_is_written_with_definitions() -> None:
    text = to_text(chain(30))
    assert len(text.splitlines()) == 30
    first, *_, last = text.splitlines()
    assert first == "Q1(A, B) = P(A | B) / [P(A | B) P(A | B)]"
    assert last == "Q29(A, B) / [Q29(A, B) Q29(A, B)]"
    record = to_json(chain(30))
    assert len(record["definitions"]) == 29
    with pytest.raises(UsageError, match="y0"):
        to_y0(chain(30))

"""Expressions: the values of numpy's own arithmetic, and nothing but the listed pieces."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from papercuts.errors import DataError, UsageError
from zoprox.expression import FUNCTIONS, Expression, looks_like_one

POINTS = np.random.default_rng(1).normal(size=(50, 3))
X, Y, Z = POINTS.T


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(x1**2 + x2**2 + x3**2)/2", (X**2 + Y**2 + Z**2) / 2),
        ("sum(x**2)/2", (POINTS**2).sum(1) / 2),
        ("x[0] - x[-1]*x[1]", X - Z * Y),
        ("sum(abs(x - [1, 2, pi]))", np.abs(POINTS - [1, 2, np.pi]).sum(1)),
        ("norm(x)", np.linalg.norm(POINTS, axis=1)),
        ("sum(x * x1)", (POINTS * X[:, None]).sum(1)),
        ("max(x) - min(x)", np.ptp(POINTS, axis=1)),
        ("max(x1, x2, 0.5)", np.maximum(np.maximum(X, Y), 0.5)),
        ("where(x1 > 0, x2, -inf)", np.where(X > 0, Y, -np.inf)),
        ("x2 if x1 > 0 else 1e3", np.where(X > 0, Y, 1000)),
        ("-logaddexp(-x1**2, log(3) - x2**2)", -np.logaddexp(-(X**2), np.log(3) - Y**2)),
        ("-logsumexp([x1, x2, 2*x3])", -special.logsumexp([X, Y, 2 * Z], axis=0)),
        ("clip(x1, -1, 1) + gammaln(exp(x2))", np.clip(X, -1, 1) + special.gammaln(np.exp(Y))),
        ("3", np.full(50, 3.0)),
        ("x1 > 0 and not x2 > 0", (X > 0) & ~(Y > 0)),
        ("(x1 > 0) & ~(x2 > 0) | (x3 < -1)", (X > 0) & ~(Y > 0) | (Z < -1)),
        ("-1 < x1 <= x2 < 1", (X > -1) & (X <= Y) & (Y < 1)),
        ("all(abs(x) < 1)", (np.abs(POINTS) < 1).all(1)),
        ("log(x1)", np.log(np.where(X > 0, X, np.nan))),
        ("1/(x1 - x1)", np.full(50, np.inf)),
    ],
)
def test_values(text, expected):
    np.testing.assert_allclose(Expression(text, 3)(POINTS), expected, rtol=1e-14)


def test_truth_stays_truth_and_one_coordinate_is_a_number():
    assert Expression("x1 > 0", 3)(POINTS).dtype == np.bool_
    np.testing.assert_array_equal(Expression("x**2", 1)(POINTS[:, :1]), X**2)
    assert Expression("x1", 3)(POINTS[:0]).shape == (0,)


def test_many_points_are_the_same_points():
    points = np.random.default_rng(2).normal(size=(20_000, 3))
    value = Expression("sum(exp(x)) / x1", 3)
    few = np.concatenate([value(points[i : i + 777]) for i in range(0, 20_000, 777)])
    np.testing.assert_array_equal(value(points), few)


@pytest.mark.parametrize(
    ("text", "piece", "why"),
    [
        ("x4 + 1", "'x4'", "x1 to x3"),
        ("x[3]", r"'x\[3\]'", r"x\[0\] to x\[2\]"),
        ("x[-4]", r"'x\[-4\]'", "x"),
        ("x[0.5]", r"'x\[0.5\]'", "whole number"),
        ("x[:, 0]", "x", "whole number"),
        ("y + 1", "'y'", "no such name"),
        ("x0", "'x0'", "no such name"),
        ("np.exp(x1)", "'np.exp'", r"write exp\(...\) alone"),
        ("np.pi", "'np.pi'", "dotted"),
        ("exp", "'exp'", "is a function"),
        ("eval('1')", "'eval'", "no such function"),
        ("__import__('os').system('true')", "__import__", "cannot be called"),
        ("x1.__class__", "'x1.__class__'", "dotted"),
        ("(lambda: 1)()", "'lambda: 1'", "cannot be called"),
        ("[a for a in x]", "'.a for a in x.'", "not a piece"),
        ("'text'", "''text''|\"'text'\"", "not a number"),
        ("f'{x}'", "x", "not a piece"),
        ("2j", "'2j'", "not a number"),
        ("x1 ^ 2", "'x1 . 2'", r"written \*\*"),
        ("x1 in x", "'x1 in x'", "compare"),
        ("exp(x1, x2)", r"'exp\(x1, x2\)'", "2 arguments"),
        ("sum(x, axis=1)", r"'sum\(x, axis=1\)'", "named arguments"),
        ("sum(*x)", r"'\*x'", "not a piece"),
        ("[1, 2]", r"'\[1, 2\]'", "2 numbers for 3 coordinates"),
        ("(y := 1)", "'y := 1'", "not a piece"),
        ("x1 +", "x1 +", "column"),
        ("", "", "empty"),
        ("x1; x2", "", "column"),
        ("1" + "0" * 400, "'1000*...'", "too large"),
        ("(" * 500 + "1" + ")" * 500, "", "parenthes|too deeply"),
        ("-" * 5000 + "1", "", "too deeply|recursion|complex"),
        ("1\x00", "", "null"),
    ],
)
def test_what_is_not_understood_is_named(text, piece, why):
    with pytest.raises(UsageError, match=why) as caught:
        Expression(text, 3)
    assert "\n" not in str(caught.value)
    assert re.search(piece, str(caught.value))


def test_a_vector_is_no_value():
    with pytest.raises(DataError, match="3 values for a point"):
        Expression("x**2", 3)(POINTS)


@given(st.text(alphabet="x123+-*/()[]., <>=&|~^andorimpsqueth_", max_size=30))
def test_nothing_else_is_raised(text):
    try:
        values = Expression(text, 3)(POINTS[:2])
    except (UsageError, DataError):
        return
    assert values.shape == (2,)


def test_an_endless_power_ends():
    values = Expression("9**9**9**9", 3)(POINTS[:1])
    assert values.tolist() == [np.inf]


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("x1**2 + x2**2 < 1", True),
        ("x9 > 0", True),
        ("all(abs(x) < 1)", True),
        ("./check", False),
        ("check", False),
        ("check-constraints", False),
        ("awk -f in.awk", False),
        ("sh -c 'x < 1'", False),
        ("", False),
    ],
)
def test_telling_expressions_from_commands(text, is_one):
    assert looks_like_one(text, 2) is is_one


def test_every_listed_function_is_taken():
    for name in FUNCTIONS:
        for count in (1, 2, 3):
            text = f"{name}({', '.join(['x1', 'x2', 'x3'][:count])})"
            try:
                values = Expression(text, 3)(np.abs(POINTS))
            except UsageError:
                continue
            assert values.shape == (50,)
            break
        else:
            pytest.fail(name)

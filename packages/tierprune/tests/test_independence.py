"""Tests of independence against causal-learn's, closed forms, and each other."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from papercuts.errors import DataError
from tierprune import ADMG, m_separated
from tierprune.dataset import Coded
from tierprune.independence.contingency import Contingency
from tierprune.independence.fisherz import FisherZ
from tierprune.independence.oracle import Oracle

SIZE = 8


def mixed(rows: int, seed: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, SIZE)) @ (np.eye(SIZE) + 0.4 * rng.normal(size=(SIZE, SIZE)))


def coded(data: NDArray[Any]) -> list[Coded]:
    columns = []
    for place, values in enumerate(data.T):
        levels, codes = np.unique(values, return_inverse=True)
        columns.append(Coded(f"v{place}", codes.astype(np.int64), tuple(map(str, levels))))
    return columns


def categories(rows: int, seed: int, most: int = 4) -> NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    cuts = [np.sort(rng.normal(size=rng.integers(1, most))) for _ in range(SIZE)]
    data = mixed(rows, seed)
    return np.array([np.digitize(x, cut) for x, cut in zip(data.T, cuts, strict=True)]).T


def questions(seed: int, size: int, count: int = 40) -> NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    return np.array([rng.permutation(SIZE)[: size + 2] for _ in range(count)])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gsq", "chisq", "fisherz"])
@pytest.mark.parametrize("rows", [60, 2000])
def test_p_values_are_those_of_causal_learn(name: Any, rows: int) -> None:
    from causallearn.utils.cit import CIT

    data = mixed(rows, 3) if name == "fisherz" else categories(rows, 3)
    theirs = CIT(data, name)
    ours = FisherZ(data) if name == "fisherz" else Contingency(coded(data), statistic=name)
    for size in range(SIZE - 1):
        asked = questions(size, size)
        right = [theirs(q[0], q[1], q[2:].tolist()) for q in asked]
        found = ours.p_values(asked[:, 0], asked[:, 1], asked[:, 2:])
        np.testing.assert_allclose(found, right, atol=1e-8)
        decided = ours.decide(asked[:, 0], asked[:, 1], asked[:, 2:])
        assert decided.tolist() == [p > 0.01 for p in right]


def test_a_neighbourhood_that_is_expected_changes_nothing() -> None:
    columns = coded(categories(500, 5))
    for around in ({7: 0b11111111}, {7: 0b10111011, 3: 0b1111}):
        for size in range(5):
            told, plain = Contingency(columns), Contingency(columns)
            told.expect(around, size)
            asked = questions(size, size)
            asked = np.array([q for q in asked if 7 in q[:2]] or asked)
            parts = asked[:, 0], asked[:, 1], asked[:, 2:]
            np.testing.assert_allclose(told.p_values(*parts), plain.p_values(*parts), atol=1e-9)


def test_tables_past_the_limits_are_counted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from tierprune.independence import contingency, tables

    columns = coded(categories(500, 6))
    plain = Contingency(columns)
    monkeypatch.setattr(contingency, "_DENSE_CELLS", 40)
    monkeypatch.setattr(tables, "_WHOLE_CELLS", 40)
    monkeypatch.setattr(tables, "_PART_CELLS", 30)
    monkeypatch.setattr(tables, "_REMEMBERED_CELLS", 200)
    monkeypatch.setattr(tables, "_REMEMBERED_SETS", 5)
    monkeypatch.setattr(tables, "_PAIRS_TOGETHER", 1)
    small = Contingency(columns)
    for size in range(6):
        small.expect(dict.fromkeys(range(SIZE), 0b11111111), size)
        asked = questions(20 + size, size)
        parts = asked[:, 0], asked[:, 1], asked[:, 2:]
        np.testing.assert_allclose(small.p_values(*parts), plain.p_values(*parts), atol=1e-9)


def test_g_squared_of_a_table_by_hand() -> None:
    table = np.array([[30, 10], [20, 40]])
    x, y = np.repeat([0, 0, 1, 1], table.ravel()), np.repeat([0, 1, 0, 1], table.ravel())
    expected = np.outer(table.sum(1), table.sum(0)) / 100
    value = 2 * (table * np.log(table / expected)).sum()
    p = math.erfc(math.sqrt(value / 2))  # chi-squared with one degree of freedom
    assert Contingency(coded(np.column_stack([x, y]))).p_value(0, 1) == pytest.approx(p, rel=1e-9)


def test_nothing_to_compare_is_independent() -> None:
    x = np.tile([0, 1], 20)
    columns = coded(np.column_stack([x, x, np.tile([0, 0, 1, 1], 10)]))
    assert Contingency(columns).p_value(0, 2, [1]) == 1.0


def test_partial_correlations_are_those_of_residuals() -> None:
    data = mixed(300, 4)
    test = FisherZ(data)
    for i, j, *given in itertools.islice(itertools.permutations(range(SIZE), 5), 0, 5000, 97):
        others = np.column_stack([np.ones(300), data[:, given]])
        left, right = (x - others @ np.linalg.lstsq(others, x)[0] for x in (data[:, i], data[:, j]))
        r = np.corrcoef(left, right)[0, 1]
        parts = np.array([i]), np.array([j]), np.array([given])
        assert test.partial(*parts)[0] == pytest.approx(r, abs=1e-10)
        z = math.sqrt(300 - 3 - 3) * abs(math.atanh(r))
        assert test.p_value(i, j, given) == pytest.approx(math.erfc(z / math.sqrt(2)), abs=1e-10)


def test_columns_that_follow_from_others_are_named() -> None:
    data = mixed(100, 5)
    data[:, 2] = data[:, 0] - 2 * data[:, 5]
    names = list("abcdefgh")
    with pytest.raises(DataError, match="'a', 'c', 'f' are linear functions"):
        FisherZ(data, names=names)
    with pytest.raises(DataError, match="'a', 'c' are linear functions"):
        FisherZ(
            np.column_stack([data[:6, 0], data[:6, 1], 3 - data[:6, 0], data[:6, 3:]]), names=names
        )


def test_too_few_rows_for_a_set_are_refused() -> None:
    with pytest.raises(DataError, match="7 rows are too few to condition on 4 variables"):
        FisherZ(mixed(7, 6)).p_value(0, 1, [2, 3, 4, 5])


def test_too_few_rows_for_the_categories_are_refused() -> None:
    with pytest.raises(DataError, match="column 'v0' has 3 categories in 12 rows"):
        Contingency(coded(np.column_stack([np.arange(12) % 3, np.arange(12) % 2])))


def test_the_oracle_says_what_the_graph_does() -> None:
    names = list("abcde")
    graph = ADMG.from_edges(names, [("a", "b"), ("b", "d"), ("c", "d"), ("d", "e")], [("b", "c")])
    oracle = Oracle(graph)
    for i, j in itertools.permutations(range(5), 2):
        others = [k for k in range(5) if k not in (i, j)]
        for size in range(4):
            for given in itertools.combinations(others, size):
                right = m_separated(graph, 1 << i, 1 << j, sum(1 << k for k in given))
                assert oracle.independent(i, j, given) == right


@pytest.mark.slow
def test_the_kernel_test_sees_what_correlation_does_not() -> None:
    from tierprune.independence.kernel import KCI

    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(2, 120))
    data = np.column_stack([x, x**2 + 0.3 * noise, rng.normal(size=120)])
    assert FisherZ(data).independent(0, 1)
    assert not KCI(data).independent(0, 1)
    assert KCI(data).independent(0, 2)


@pytest.mark.parametrize("units", [(1e300, 1e-200, 1e-306, 1), (1e307, 1e-307, 1, 1e150)])
def test_units_do_not_count(units: tuple[float, ...]) -> None:
    data = np.random.default_rng(3).normal(size=(500, 4))
    data[:, 2] += data[:, 0]
    plain, scaled = FisherZ(data), FisherZ(data * units)
    np.testing.assert_allclose(scaled.correlation, np.corrcoef(data.T), atol=1e-12)
    for given in ((), (2,), (2, 3)):
        assert scaled.p_value(0, 1, given) == pytest.approx(plain.p_value(0, 1, given), rel=1e-9)


def test_a_column_that_is_no_different_from_a_constant_is_named() -> None:
    data = np.random.default_rng(3).normal(size=(50, 2))
    data[:, 1] = 5
    with pytest.raises(DataError, match=r"d\.csv: column 'b' cannot be told from a constant"):
        FisherZ(data, names=["a", "b"], source="d.csv")

"""Bounds: the map there and back, its Jacobian against differences, and the file."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate

from papercuts.errors import DataError, InputError, UsageError
from zoprox.bounds import Bounded, Box, read_bounds

INF = np.inf
ALL_KINDS = Box(np.array([-1.0, 0.0, -INF, -INF]), np.array([3.0, INF, 2.0, INF]))
numbers = st.floats(-20, 20)


@given(st.lists(numbers, min_size=4, max_size=4))
def test_there_and_back(free):
    points = ALL_KINDS.from_free(np.array([free]))
    assert ALL_KINDS.holds(points).all()
    back = ALL_KINDS.to_free(points)
    # Near a bound the distance to it has few digits left: compare as points.
    np.testing.assert_allclose(ALL_KINDS.from_free(back), points, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(back, [free], rtol=1e-6, atol=1e-6)


@given(st.lists(st.floats(-5, 5), min_size=4, max_size=4))
def test_the_jacobian_is_the_product_of_the_slopes(free):
    z, step = np.array([free]), 1e-6
    slopes = (ALL_KINDS.from_free(z + step) - ALL_KINDS.from_free(z - step)) / (2 * step)
    expected = np.log(np.abs(slopes)).sum()
    np.testing.assert_allclose(ALL_KINDS.log_jacobian(z), [expected], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("low", "high", "potential", "expected"),
    [
        # The mass of exp(-f) is the same in both coordinates.
        (0.0, INF, lambda x: 2 * x, 0.5),
        (-INF, 1.0, lambda x: (1 - x) / 3, 3.0),
        (0.0, 1.0, lambda x: -np.log(x), 0.5),
        (-2.0, 5.0, lambda x: np.zeros_like(x), 7.0),
    ],
)
def test_the_mass_stays(low, high, potential, expected):
    box = Box(np.array([low]), np.array([high]))
    f = Bounded(lambda points: potential(points[:, 0]), box)
    mass, _ = integrate.quad(lambda z: np.exp(-f(np.array([[z]]))[0]), -60, 60, limit=200)
    assert mass == pytest.approx(expected, rel=1e-7)


def test_far_out_nothing_overflows_or_leaves_the_box():
    box = Box(np.array([0.0, 0.0]), np.array([1.0, INF]))
    free = np.array([[800.0, 700.0], [-800.0, -800.0]])
    assert box.holds(box.from_free(free)).all()
    assert np.isfinite(box.log_jacobian(free)).all()
    huge = Bounded(lambda points: points[:, 1], box)(np.array([[0.0, 1e6]]))
    assert huge.tolist() == [INF]


def test_a_point_on_the_edge_has_no_free_coordinates():
    with pytest.raises(DataError, match=r"number 2, is not inside"):
        ALL_KINDS.to_free(np.array([[0, 1, 1, 1], [3, 1, 1, 1.0]]))


def test_reading(tmp_path):
    path = tmp_path / "box.csv"
    path.write_bytes(b"\xef\xbb\xbflow,high\r\n-1, 3\r\n\r\n0,\r\n,2\r\n-inf,inf\r\n")
    box = read_bounds(str(path), 4)
    np.testing.assert_array_equal(box.low, ALL_KINDS.low)
    np.testing.assert_array_equal(box.high, ALL_KINDS.high)
    path.write_text("# no names\n0,1\n0,2\n")
    assert read_bounds(str(path), 2).volume == 2
    both = read_bounds("-1.5,2e3", 3)
    assert (both.low.tolist(), both.high.tolist()) == ([-1.5] * 3, [2000.0] * 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("low,high\n0,1\n", ": 1 rows of bounds"),
        ("0,1\n1,0\n", ":2: low 1 is not below high 0"),
        ("0,1\n1,1\n", ":2: low 1 is not below"),
        ("0,1\nnan,1\n", ":2: low nan is not below"),
        ("0,1\n1\n", ":2: '1'"),
        ("0,1\n1,2,3\n", ":2: '1,2,3'"),
        ("0,1\nlow,high\n", ":2: 'low,high'"),
        ("0,1\nzero,1\n", ":2: 'zero,1'"),
        ("min,max\n0,1\n", ":1: 'min,max'"),
        (b"0,1\n\xff\xfe,1\n", ":2: not text"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, text, message):
    path = tmp_path / "box.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DataError) as caught:
        read_bounds(str(path), 2)
    assert f"box.csv{message}" in str(caught.value)


def test_bounds_that_cannot_be():
    with pytest.raises(UsageError, match="not below"):
        read_bounds("1,0", 2)
    with pytest.raises(InputError):
        read_bounds("no-such-file.csv", 2)

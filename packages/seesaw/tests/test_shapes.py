import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw.shapes import Cosine, Points, Polynomial, QuarterCosine, Shape, polyline, simplify

LINEAR = polyline((0.0, 1.0), (1.0, 0.1))
WSD = polyline((0.0, 0.7, 1.0), (1.0, 1.0, 0.05))
STEP = polyline((0.0, 0.5, 0.5, 0.8, 0.8, 1.0), (1.0, 1.0, 0.1, 0.1, 0.01, 0.01))
SHAPES = [
    Cosine(0.1),
    Cosine(0.0),
    QuarterCosine(0.0),
    QuarterCosine(0.2),
    Polynomial(0.05, 2.0),
    Polynomial(0.0, 0.5),
    LINEAR,
    WSD,
    STEP,
]


def test_ratios_at_points_worked_out_by_hand() -> None:
    assert Cosine(0.1).ratio([0.0, 0.5, 1.0]) == pytest.approx([1.0, 0.55, 0.1], abs=1e-15)
    assert QuarterCosine(0.0).ratio([0.0, 2 / 3, 1.0]) == pytest.approx([1.0, 0.5, 0.0], abs=1e-15)
    assert Polynomial(0.0, 2.0).ratio([0.0, 0.5, 1.0]) == pytest.approx([1.0, 0.25, 0.0])
    assert LINEAR.ratio([0.0, 0.5, 1.0]) == pytest.approx([1.0, 0.55, 0.1])
    assert WSD.ratio([0.3, 0.7, 0.85, 1.0]) == pytest.approx([1.0, 1.0, 0.525, 0.05])


def test_a_sudden_drop_holds_its_lower_value_at_once() -> None:
    just_before = np.nextafter(0.5, 0.0)
    assert STEP.ratio([0.0, just_before, 0.5, 0.79, 0.8, 1.0]) == pytest.approx(
        [1.0, 1.0, 0.1, 0.1, 0.01, 0.01]
    )
    assert STEP.first_at_or_below([1.0, 0.99, 0.1, 0.05, 0.01]) == pytest.approx(
        [0.0, 0.5, 0.5, 0.8, 0.8]
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_a_ratio_never_reached_is_at_infinity(shape: Shape) -> None:
    if shape.final_ratio > 0.0:
        assert np.isinf(shape.first_at_or_below(shape.final_ratio * 0.99))
    assert float(shape.first_at_or_below(max(shape.final_ratio, 1e-300))) <= 1.0


@settings(deadline=None, max_examples=25)
@given(st.sampled_from(SHAPES), st.floats(0.001, 1.0))
def test_the_inverse_is_the_first_point_at_or_below(shape: Shape, ratio: float) -> None:
    x = float(shape.first_at_or_below(ratio))
    if np.isinf(x):
        assert shape.final_ratio > ratio
        return
    assert float(shape.ratio(x)) <= ratio * (1.0 + 1e-9) + 1e-12
    if x > 1e-6:
        assert float(shape.ratio(x - 1e-6)) > ratio * (1.0 - 1e-12)


GRID = (np.arange(400_000) + 0.5) / 400_000


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("power", "floor"), [(1.0, 0.0), (0.5, 0.0), (2.0, 0.0), (1.0, 0.3), (1.5, 0.2), (0.0, 0.0)]
)
def test_the_mean_is_that_of_a_fine_grid(shape: Shape, power: float, floor: float) -> None:
    grid = float(np.maximum(shape.ratio(GRID) ** power, floor).mean())
    assert shape.mean(power, floor) == pytest.approx(grid, abs=4e-6)


def test_means_in_closed_form() -> None:
    assert Cosine(0.1).mean() == pytest.approx(0.55, abs=1e-12)
    assert QuarterCosine(0.0).mean() == pytest.approx(2.0 / np.pi, abs=1e-12)
    assert QuarterCosine(0.0).mean(2.0) == pytest.approx(0.5, abs=1e-12)
    assert Polynomial(0.0, 3.0).mean() == pytest.approx(0.25, abs=1e-12)
    assert LINEAR.mean() == pytest.approx(0.55, abs=1e-12)
    assert polyline((0.0, 1.0), (1.0, 0.0)).mean(0.5) == pytest.approx(2.0 / 3.0, abs=1e-12)
    assert STEP.mean() == pytest.approx(0.5 + 0.03 + 0.002, abs=1e-12)


@pytest.mark.parametrize(
    ("x", "y", "why"),
    [
        ((0.0, 1.0), (1.0,), "as many"),
        ((0.0,), (1.0,), "at least two"),
        ((0.1, 1.0), (1.0, 0.5), "x must run"),
        ((0.0, 0.6, 0.5, 1.0), (1.0, 0.9, 0.8, 0.7), "x must run"),
        ((0.0, float("nan"), 1.0), (1.0, 0.9, 0.8), "x must run"),
        ((0.0, 0.5, 1.0), (1.0, 0.5, 0.6), "y must start"),
        ((0.0, 1.0), (0.9, 0.5), "y must start"),
        ((0.0, 1.0), (1.0, -0.5), "y must start"),
    ],
)
def test_points_that_are_no_decay_are_refused(
    x: tuple[float, ...], y: tuple[float, ...], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        polyline(x, y)


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)), max_size=60),
    st.sampled_from([1e-3, 1e-2, 0.1]),
)
def test_a_simplified_curve_stays_within_the_tolerance(
    pairs: list[tuple[float, float]], tolerance: float
) -> None:
    x = sorted({0.0, 1.0, *(round(a, 3) for a, _ in pairs)})
    falling = sorted((b for _, b in pairs), reverse=True)
    y = [1.0, *falling, *[0.0] * len(x)][: len(x)]
    curve = polyline(x, y)
    short = simplify(curve, tolerance)
    at = np.union1d(np.linspace(0.0, 1.0, 500), x)
    assert np.abs(short.ratio(at) - curve.ratio(at)).max() <= tolerance + 1e-12
    assert len(short.x) <= len(curve.x)


def test_a_cosine_needs_few_points() -> None:
    short = simplify(Cosine(0.1))
    assert isinstance(short, Points)
    assert len(short.x) < 40
    x = np.linspace(0.0, 1.0, 10_001)
    assert np.abs(short.ratio(x) - Cosine(0.1).ratio(x)).max() < 1.01e-3

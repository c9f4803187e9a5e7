"""The sampler, against the method as the paper's Algorithm 1 writes it: one particle at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from papercuts.errors import DataError
from zoprox import sampler
from zoprox.proposal import draw_components
from zoprox.sampler import one_round, round_rng, sample_rounds
from zoprox.settings import Settings


def half_square(points: np.ndarray) -> np.ndarray:
    return 0.5 * np.einsum("nd,nd->n", points, points)


def two_wells(points: np.ndarray) -> np.ndarray:
    return (points[:, 0] ** 2 - 1) ** 2 + 0.5 * (points[:, 1:] ** 2).sum(axis=1)


def plain_round(potential: Any, s: Settings, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Steps 2 to 7, in loops over numbers; only the random numbers come in arrays."""
    n, d, h = s.particles, s.dim, s.step

    def square(a: np.ndarray, b: np.ndarray) -> float:
        return sum((float(p) - float(q)) ** 2 for p, q in zip(a, b, strict=True))

    y = x + math.sqrt(h) * rng.standard_normal((n, d))
    q = [sum(math.exp(-square(y[j], x[i]) / (2 * h)) for i in range(n)) / n for j in range(n)]
    z = x + math.sqrt(h) * rng.standard_normal((n, d))
    grid = [s.smallest + (h - s.smallest) * t / s.sub_steps for t in range(s.sub_steps + 1)]
    for t in range(s.sub_steps, 0, -1):
        s_t, gap = grid[t], grid[t] - grid[t - 1]
        shares = np.empty((n, n))
        for i in range(n):
            raw = [math.exp(-square(z[i], y[j]) / (2 * (h + s_t))) / q[j] for j in range(n)]
            shares[i] = [value / sum(raw) for value in raw]
        if s.method == "ensemble":
            index = draw_components(rng, shares, s.draws)
        else:
            index = np.repeat(np.arange(n)[:, None], s.draws, axis=1)
        v = 1 / (1 / s_t + 1 / h)
        noise = rng.standard_normal((n, s.draws, d))
        means = np.empty((n, d))
        for i in range(n):
            points = [
                v * (z[i] / s_t + y[index[i, k]] / h) + math.sqrt(v) * noise[i, k]
                for k in range(s.draws)
            ]
            weights = [math.exp(-float(potential(point[None])[0])) for point in points]
            means[i] = sum(w * p for w, p in zip(weights, points, strict=True)) / sum(weights)
        z = z + (gap / s_t) * (means - z) + math.sqrt(gap) * rng.standard_normal((n, d))
    return z


@pytest.mark.parametrize("method", ["ensemble", "single"])
@pytest.mark.parametrize(
    ("particles", "draws", "smallest"), [(5, 12, 0.0), (5, 4, 0.01), (1, 3, 0.0)]
)
def test_a_round_is_the_papers(method: Any, particles: int, draws: int, smallest: float) -> None:
    settings = Settings(particles, 3, 0.4, 3, draws, 1, smallest, method=method)
    start = np.random.default_rng(5).normal(size=(particles, 3))
    expected = plain_round(two_wells, settings, start, np.random.default_rng(9))
    found = one_round(two_wells, settings, start, np.random.default_rng(9)).points
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_the_counter_is_exactly_k_t_n_m_and_every_batch_is_finite() -> None:
    settings = Settings(4, 2, 0.3, 5, 7, 6)
    asked = []

    def counting(points: np.ndarray) -> np.ndarray:
        assert np.isfinite(points).all()
        asked.append(len(points))
        return two_wells(points)

    rounds = list(sample_rounds(counting, settings, np.zeros((4, 2))))
    assert [r.number for r in rounds] == [1, 2, 3, 4, 5, 6]
    assert sum(asked) == sum(r.evaluations for r in rounds) == settings.evaluations == 840
    assert all(np.isfinite(r.points).all() for r in rounds)


def test_rounds_go_on_from_any_round_with_the_same_bytes() -> None:
    settings = Settings(6, 2, 0.3, 3, 20, 5, seed=3)
    whole = list(sample_rounds(two_wells, settings, np.zeros((6, 2))))
    tail = list(sample_rounds(two_wells, settings, whole[1].points, first=3))
    assert [r.points.tobytes() for r in tail] == [r.points.tobytes() for r in whole[2:]]


@pytest.mark.parametrize("method", ["ensemble", "single"])
def test_the_size_of_a_block_changes_nothing(monkeypatch: pytest.MonkeyPatch, method: Any) -> None:
    settings = Settings(7, 2, 0.3, 3, 20, 2, method=method)
    whole = list(sample_rounds(two_wells, settings, np.zeros((7, 2))))
    monkeypatch.setattr(sampler, "BLOCK", 1)
    small = list(sample_rounds(two_wells, settings, np.zeros((7, 2))))
    np.testing.assert_allclose(small[-1].points, whole[-1].points, rtol=1e-13)
    assert small[-1].min_ess == pytest.approx(whole[-1].min_ess)


def test_a_particle_with_all_draws_forbidden_stays_where_it_is() -> None:
    # Allowed is a neighbourhood of 0; the particle at 1000 sees nothing of it with its own noise.
    start = np.array([[0.0], [1000.0]])

    def near(points: np.ndarray) -> np.ndarray:
        return np.where(np.abs(points[:, 0]) < 5, 0.0, np.inf)

    settings = Settings(2, 1, 0.1, 4, 50, 1, method="single")
    (found,) = sample_rounds(near, settings, start)
    assert found.points[1, 0] == 1000
    assert found.points[0, 0] != 0
    assert found.min_ess == 0
    assert found.outside == 0.5
    assert found.values_mean == 0


def test_where_nothing_is_allowed_nothing_moves_and_nothing_is_nan() -> None:
    start = np.arange(6.0).reshape(3, 2)
    settings = Settings(3, 2, 0.1, 2, 10, 2)
    for found in sample_rounds(lambda p: np.full(len(p), np.inf), settings, start):
        np.testing.assert_array_equal(found.points, start)
        assert (found.min_ess, found.median_ess, found.outside) == (0, 0, 1)
        assert math.isnan(found.values_mean)


def test_nan_here_and_there_counts_as_forbidden() -> None:
    def half(fill: float) -> Any:
        return lambda p: np.where(p[:, 0] > 0, half_square(p), fill)

    settings = Settings(5, 2, 0.5, 3, 30, 2)
    start = np.ones((5, 2))
    as_nan = list(sample_rounds(half(math.nan), settings, start))
    as_inf = list(sample_rounds(half(math.inf), settings, start))
    np.testing.assert_array_equal(as_nan[-1].points, as_inf[-1].points)
    assert as_nan[-1].outside == as_inf[-1].outside > 0


@pytest.mark.parametrize("shift", [0.0, 1e4, -1e4, 1e300])
def test_a_constant_in_f_is_no_matter(shift: float) -> None:
    settings = Settings(5, 2, 0.5, 3, 30, 1)
    (plain,) = sample_rounds(lambda p: 0 * half_square(p), settings, np.ones((5, 2)))
    (moved,) = sample_rounds(lambda p: 0 * half_square(p) + shift, settings, np.ones((5, 2)))
    np.testing.assert_allclose(moved.points, plain.points)
    assert moved.median_ess == pytest.approx(30)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda p: np.full(len(p), np.nan), "NaN at all of 10 points"),
        (lambda p: np.full(len(p), -np.inf), "f = -inf at"),
        (lambda p: np.zeros(len(p) - 1), r"shape \(9,\) to 10 points"),
        (lambda p: np.zeros((len(p), 1)), r"shape \(10, 1\) to 10 points"),
    ],
)
def test_a_wrong_answer_is_named(answer: Any, message: str) -> None:
    settings = Settings(2, 2, 0.5, 3, 5, 1)
    with pytest.raises(DataError, match=message):
        list(sample_rounds(answer, settings, np.ones((2, 2))))


def test_a_start_of_another_shape_or_with_nan_is_refused() -> None:
    settings = Settings(2, 2, 0.5, 3, 5, 1)
    with pytest.raises(ValueError, match="the start has shape"):
        list(sample_rounds(half_square, settings, np.ones((3, 2))))
    with pytest.raises(ValueError, match="not finite"):
        list(sample_rounds(half_square, settings, np.full((2, 2), np.nan)))


def test_the_reported_ess_is_that_of_the_weights() -> None:
    # On a flat target every weight is equal, and the ESS is M.
    settings = Settings(3, 1, 0.5, 2, 25, 1)
    (flat,) = sample_rounds(lambda p: np.zeros(len(p)), settings, np.zeros((3, 1)))
    assert flat.min_ess == pytest.approx(25)
    weights = np.array([[0.0, math.log(2), np.inf]])
    means, values, ess = np.empty((1, 1)), np.empty(1), np.empty(1)
    points = np.array([[[1.0], [4.0], [9.0]]])
    outside = sampler.weigh(weights, points, means, values, ess)
    assert outside == 1
    assert means[0, 0] == pytest.approx((1 * 1 + 0.5 * 4) / 1.5)
    assert values[0] == pytest.approx(0.5 * math.log(2) / 1.5)
    assert ess[0] == pytest.approx(1.5**2 / 1.25)


def test_the_random_numbers_of_a_round_depend_on_seed_and_number_alone() -> None:
    assert round_rng(1, 2).random() == round_rng(1, 2).random()
    assert len({round_rng(a, b).random() for a in range(3) for b in range(3)}) == 9

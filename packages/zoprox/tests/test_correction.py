"""The correction: known densities, and a pass that leaves the target as it is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import kstest, multivariate_t

from zoprox.correction import HeavyMixture, corrected


def half_square(points: np.ndarray) -> np.ndarray:
    return 0.5 * np.einsum("nd,nd->n", points, points)


@pytest.mark.parametrize("dim", [1, 2, 3, 6])
def test_the_density_of_g_is_scipys(dim: int) -> None:
    rng = np.random.default_rng(0)
    centres, points = rng.normal(size=(3, dim)), 3 * rng.normal(size=(9, dim))
    expected = np.mean(
        [multivariate_t(centre, 0.3 * np.eye(dim), df=1).pdf(points) for centre in centres], axis=0
    )
    found = HeavyMixture(centres, 0.3).log_density(points)
    np.testing.assert_allclose(found, np.log(np.atleast_1d(expected)), rtol=1e-10)


def test_the_density_of_g_is_finite_however_far_a_point_is() -> None:
    found = HeavyMixture(np.zeros((2, 9)), 1e-20).log_density(np.full((1, 9), 1e60))
    # A Cauchy density falls as the power dim + 1 of the distance over the scale.
    norm = math.log(math.gamma(5)) - 5 * math.log(math.pi) + 9 * math.log(1e10)
    assert found[0] == pytest.approx(norm - 10 * math.log(3e70), rel=1e-12)


def test_draws_of_g_have_that_density() -> None:
    draws = HeavyMixture(np.array([[1.0, -2.0]]), 0.25).draw(np.random.default_rng(1), 40, 100)
    assert draws.shape == (40, 100, 2)
    radius = np.linalg.norm(draws.reshape(-1, 2) - [1, -2], axis=1)
    # In two dimensions P(radius < r) = 1 - 1 / sqrt(1 + r^2 / scale).
    assert kstest(radius, lambda r: 1 - 1 / np.sqrt(1 + r * r / 0.25)).pvalue > 0.003


@pytest.mark.parametrize(
    ("draws", "step"),
    [(3, 0.02), *(pytest.param(*c, marks=pytest.mark.slow) for c in ((1, 0.5), (20, 5.0)))],
)
def test_draws_of_the_target_stay_draws_of_the_target(draws: int, step: float) -> None:
    # Whatever M and h are: a few particles, so that g is a poor proposal, corrected four times.
    rng = np.random.default_rng(draws)
    found = []
    for repeat in range(60):
        points = rng.normal(size=(8, 2))
        for time in range(4):
            points = corrected(half_square, points, step, draws, repeat, time).points
        found.append(points)
    every = np.concatenate(found).ravel()
    # Particles of one repeat are independent when the pass is exact.
    assert kstest(every, "norm").pvalue > 0.003


def test_too_wide_particles_get_the_right_variance() -> None:
    rng = np.random.default_rng(3)
    before = 1.3 * rng.normal(size=(500, 3))
    first = corrected(half_square, before, 0.3, 60, 0, 1)
    after = corrected(half_square, first.points, 0.3, 60, 0, 2)
    error = math.sqrt(2 / before.size)
    assert before.var() > 1.5
    assert after.points.var() == pytest.approx(1, abs=3 * error)
    assert first.moved == pytest.approx(first.acceptance, abs=3 * math.sqrt(0.25 / 500))
    assert first.acceptance > 0.9
    assert first.evaluations == 500 * 60 + 500


def test_the_weights_of_two_modes_come_right() -> None:
    # 0.3 N(-3, 1/4) + 0.7 N(3, 1), from particles that have half in each.
    def potential(points: np.ndarray) -> np.ndarray:
        x = points[:, 0]
        return -np.logaddexp(math.log(0.6) - 2 * (x + 3) ** 2, math.log(0.7) - 0.5 * (x - 3) ** 2)

    rng = np.random.default_rng(4)
    points = np.concatenate([rng.normal(-3, 0.5, (400, 1)), rng.normal(3, 1, (400, 1))])
    found = corrected(potential, points, 0.2, 60, 0, 1).points
    assert (found < 0).mean() == pytest.approx(0.3, abs=3 * math.sqrt(0.21 / 800))


def test_particles_that_are_not_allowed_move_in_and_an_unreachable_set_leaves_them() -> None:
    def near(points: np.ndarray) -> np.ndarray:
        return np.where(np.abs(points[:, 0]) < 1, 0.0, np.inf)

    start = np.array([[0.0], [0.5], [2.0], [-3.0]])
    found = corrected(near, start, 0.5, 200, 0, 1)
    assert (np.abs(found.points) < 1).all()
    nowhere = corrected(lambda p: np.full(len(p), np.inf), start, 0.5, 20, 0, 1)
    np.testing.assert_array_equal(nowhere.points, start)
    assert nowhere.moved == nowhere.acceptance == 0
    assert np.isneginf(nowhere.log_normaliser).all()


def test_the_normalising_constant_is_unbiased_whatever_the_particles_are() -> None:
    rng = np.random.default_rng(6)
    found = [
        corrected(half_square, 3 * rng.normal(size=(6, 2)), 0.5, 50, 0, k).log_normaliser
        for k in range(200)
    ]
    ratios = np.exp(np.concatenate(found)) / (2 * math.pi)
    assert ratios.mean() == pytest.approx(1, abs=3 * ratios.std() / math.sqrt(len(ratios)))


def test_the_reported_spread_is_that_of_repeated_means() -> None:
    points = np.random.default_rng(7).normal(size=(20, 2))
    repeats = [corrected(half_square, points, 0.5, 40, seed, 1) for seed in range(100)]
    means = np.exp([r.log_normaliser[0] for r in repeats])
    said = np.mean([r.relative_sd[0] for r in repeats])
    # The half that g is built from changes with the seed, and the spread with it, a little.
    assert means.std() / means.mean() == pytest.approx(said, rel=0.25)


def test_one_particle_cannot_be_corrected() -> None:
    with pytest.raises(ValueError, match="at least two"):
        corrected(half_square, np.zeros((1, 2)), 0.5, 40, 0, 1)

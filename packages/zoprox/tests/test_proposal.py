"""The mixture behind a round, against scipy's normal densities and exact frequencies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, multivariate_normal

from zoprox.proposal import Mixture, draw_components, log_mixture


def test_log_mixture_is_scipys_mean_of_normal_densities() -> None:
    rng = np.random.default_rng(0)
    points, centres, logs = rng.normal(size=(7, 3)), rng.normal(size=(4, 3)), rng.normal(size=4)
    weights = np.exp(logs) / np.exp(logs).sum()
    expected = sum(
        weight * multivariate_normal(centre, 0.3 * np.eye(3)).pdf(points)
        for weight, centre in zip(weights, centres, strict=True)
    )
    np.testing.assert_allclose(log_mixture(points, centres, 0.3, logs), np.log(expected))


def test_a_point_far_from_everything_keeps_its_log_density() -> None:
    found = log_mixture(np.array([[1e4]]), np.array([[0.0]]), 1.0)
    assert found[0] == pytest.approx(-0.5e8 - 0.5 * np.log(2 * np.pi))


@given(st.integers(1, 12), st.integers(1, 700), st.integers(0, 9))
def test_blocks_do_not_change_a_log_density(dim: int, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, centres = rng.normal(size=(count, dim)), rng.normal(size=(3, dim))
    alone = np.array([log_mixture(point[None], centres, 0.7)[0] for point in points[:5]])
    np.testing.assert_allclose(log_mixture(points, centres, 0.7)[:5], alone, rtol=1e-12)


def test_a_crowd_counts_less() -> None:
    # Nine particles at one place and one far away: each place has half of the weight.
    particles = np.array([[0.0]] * 9 + [[100.0]])
    mixture = Mixture.around(particles, particles, 1.0)
    assert np.exp(mixture.log_weights).sum() == pytest.approx(1)
    assert np.exp(mixture.log_weights[-1]) == pytest.approx(0.5)


def test_responsibilities_are_the_posterior_of_the_component() -> None:
    mixture = Mixture(np.array([[0.0], [1.0]]), np.log([0.25, 0.75]), 0.5)
    joint = np.array(
        [
            0.25 * multivariate_normal(0, 0.8).pdf(0.3),
            0.75 * multivariate_normal(1, 0.8).pdf(0.3),
        ]
    )
    found = mixture.responsibilities(np.array([[0.3]]), 0.3)
    np.testing.assert_allclose(found[0], joint / joint.sum())


@pytest.mark.parametrize("draws", [12, 11])  # with three components: counts, and looking up
def test_components_come_as_often_as_their_probabilities_say(draws: int) -> None:
    probabilities = np.tile([0.2, 0.0, 0.8], (4000, 1))
    found = draw_components(np.random.default_rng(1), probabilities, draws)
    assert found.shape == (4000, draws)
    counts = np.bincount(found.ravel(), minlength=3)
    assert counts[1] == 0
    total = 4000 * draws
    assert chisquare(counts[[0, 2]], [0.2 * total, 0.8 * total]).pvalue > 0.003
    # Draws are independent: the variance of a row's count is that of a binomial.
    ones = (found == 0).sum(axis=1)
    assert ones.var() == pytest.approx(draws * 0.16, rel=3 * np.sqrt(2 / 4000) * 1.2)


def test_a_cumulated_row_that_falls_short_of_one_never_gives_an_index_out_of_range() -> None:
    class Highest(np.random.Generator):
        def random(self, size: tuple[int, int]) -> np.ndarray:  # type: ignore[override]
            return np.full(size, np.nextafter(1, 0))

    probabilities = np.full((1, 10), 0.1)  # cumulated: 0.9999999999999999
    assert np.cumsum(probabilities)[-1] < 1
    found = draw_components(Highest(np.random.PCG64(0)), probabilities, 3)
    assert found.tolist() == [[9, 9, 9]]

"""Distances between draws, against closed forms, plain double loops, and scipy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from zoprox.distances import knn_kl, mmd2, sliced_w2


def normal(seed, shape, mean=0.0, sd=1.0):
    return mean + sd * np.random.default_rng(seed).standard_normal(shape)


def of_seeds(distance, make, seeds=20):
    """Give the mean and its standard error of a distance over seeds."""
    found = [distance(*make(np.random.default_rng(seed))) for seed in range(seeds)]
    return np.mean(found), np.std(found, ddof=1) / math.sqrt(seeds)


# KL


def kl_by_loops(draws, reference, k):
    n, dim = draws.shape
    total = 0.0
    for i, point in enumerate(draws):
        own = sorted(math.dist(point, other) for j, other in enumerate(draws) if j != i)
        others = sorted(math.dist(point, other) for other in reference)
        total += math.log(others[k - 1] / own[k - 1])
    return dim / n * total + math.log(len(reference) / (n - 1))


@pytest.mark.parametrize(("n", "m", "dim", "k"), [(40, 40, 2, 4), (25, 60, 3, 1), (30, 12, 1, 5)])
def test_kl_is_the_formula_written_out(n, m, dim, k):
    draws, reference = normal(1, (n, dim)), normal(2, (m, dim), 0.3, 1.2)
    assert knn_kl(draws, reference, k) == pytest.approx(kl_by_loops(draws, reference, k), abs=1e-12)


@pytest.mark.parametrize(
    ("mean", "sd", "dim"), [(0.0, 1.0, 2), (0.7, 1.0, 2), (0.0, 0.6, 2), (0.5, 0.8, 1)]
)
def test_kl_of_gaussians(mean, sd, dim):
    exact = dim * (math.log(1 / sd) + (sd**2 + mean**2) / 2 - 0.5)
    found, error = of_seeds(
        knn_kl,
        lambda rng: (
            mean + sd * rng.standard_normal((1500, dim)),
            rng.standard_normal((2000, dim)),
        ),
    )
    assert abs(found - exact) < 3 * error + 0.03 * exact + 0.005


def test_kl_knows_which_side_is_which():
    wide, narrow = normal(1, (4000, 1), sd=1.3), normal(2, (4000, 1))
    assert knn_kl(wide, narrow) == pytest.approx(0.345 - math.log(1.3), abs=0.04)
    assert knn_kl(narrow, wide) == pytest.approx(math.log(1.3) - 0.345 / 1.69, abs=0.04)


@pytest.mark.parametrize("copies", [2, 3, 5])
def test_copies_of_all_draws_change_nothing(copies):
    draws, reference = normal(1, (300, 2), 0.7), normal(2, (400, 2))
    exact = knn_kl(draws, reference)
    repeated = np.repeat(draws, copies, axis=0)
    assert knn_kl(repeated, reference) == pytest.approx(exact, abs=1e-12)
    assert knn_kl(draws, np.repeat(reference, copies, axis=0)) == pytest.approx(exact, abs=1e-12)


def test_kl_of_a_chain_that_stays_in_place_now_and_then():
    def chain(rng):
        distinct = rng.standard_normal((1200, 2)) + 0.7
        stays = rng.geometric(0.4, 1200)
        return np.repeat(distinct, stays, axis=0), rng.standard_normal((2000, 2))

    found, error = of_seeds(knn_kl, chain, seeds=10)
    assert abs(found - 0.49) < 3 * error + 0.1


def test_kl_is_infinite_for_one_point_and_needs_neighbours():
    assert knn_kl(np.zeros((9, 2)), normal(0, (9, 2))) == math.inf
    assert knn_kl(normal(0, (9, 2)), np.ones((9, 2))) == math.inf
    assert knn_kl(normal(0, (9, 2)), normal(0, (9, 2))) < 0
    with pytest.raises(ValueError, match="need 5 draws and 4 of the reference"):
        knn_kl(normal(0, (4, 2)), normal(1, (9, 2)))


def test_shapes_must_agree():
    for distance in (knn_kl, sliced_w2, mmd2):
        with pytest.raises(ValueError, match=r"\[draws, dim\] twice"):
            distance(normal(0, (9, 2)), normal(1, (9, 3)))


# Sliced W2


def w2_by_matching(a, b):
    """Try every matching of equally many points on a line."""
    least = min(
        sum((a[i] - b[j]) ** 2 for i, j in enumerate(order))
        for order in itertools.permutations(range(len(b)))
    )
    return math.sqrt(least / len(a))


def test_w2_on_a_line_is_the_best_matching():
    a, b = normal(1, 6), normal(2, 6, 1.0)
    assert sliced_w2(a[:, None], b[:, None]) == pytest.approx(w2_by_matching(a, b), rel=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 9))
def test_unequal_sizes_are_those_of_sets_repeated_to_equal_size(n, m, seed):
    a, b = normal(seed, (n, 2)), normal(seed + 100, (m, 2), 0.5)
    repeated = sliced_w2(np.repeat(a, m, axis=0), np.repeat(b, n, axis=0), directions=7)
    assert sliced_w2(a, b, directions=7) == pytest.approx(repeated, rel=1e-9, abs=1e-12)
    assert sliced_w2(a, b, directions=7) == pytest.approx(sliced_w2(b, a, directions=7), rel=1e-9)


def test_w2_is_above_scipys_w1_and_equals_it_for_a_shift():
    a = normal(1, 300)
    b = normal(2, 200, 0.4, 1.3)
    assert sliced_w2(a[:, None], b[:, None]) >= wasserstein_distance(a, b)
    assert sliced_w2(a[:, None], a[:, None] + 0.8) == pytest.approx(0.8, rel=1e-12)


def test_sliced_w2_is_the_mean_over_directions_written_out():
    a, b = normal(1, (30, 3)), normal(2, (30, 3), 0.3)
    axes = np.random.default_rng(5).standard_normal((3, 16))
    axes /= np.linalg.norm(axes, axis=0)
    squares = [np.mean((np.sort(a @ axis) - np.sort(b @ axis)) ** 2) for axis in axes.T]
    found = sliced_w2(a, b, directions=16, seed=5)
    assert found == pytest.approx(math.sqrt(np.mean(squares)), rel=1e-12)


@pytest.mark.slow
def test_sliced_w2_of_gaussians():
    # Along a direction u: (mean . u)^2 + (sd - 1)^2; over all directions |mean|^2 / d + (sd - 1)^2.
    mean, sd, dim = np.array([1.0, -1.0, 0.5]), 1.5, 3
    exact = math.sqrt(mean @ mean / dim + (sd - 1) ** 2)
    found, error = of_seeds(
        lambda a, b: sliced_w2(a, b, directions=400),
        lambda rng: (
            mean + sd * rng.standard_normal((3000, dim)),
            rng.standard_normal((2000, dim)),
        ),
        seeds=5,
    )
    assert abs(found - exact) < 3 * error + 0.03 * exact  # 400 directions: 2.5 per cent
    assert sliced_w2(normal(1, (50, 3)), normal(1, (50, 3))) == 0


# MMD


def mmd2_by_loops(a, b, scale):
    def kernel(x, y):
        return math.exp(-(math.dist(x, y) ** 2) / (2 * scale**2))

    n, m = len(a), len(b)
    own = sum(kernel(a[i], a[j]) for i in range(n) for j in range(n) if i != j) / (n * (n - 1))
    other = sum(kernel(b[i], b[j]) for i in range(m) for j in range(m) if i != j) / (m * (m - 1))
    return own + other - 2 * sum(kernel(x, y) for x in a for y in b) / (n * m)


def test_mmd_is_the_double_loop():
    a, b = normal(1, (25, 2)), normal(2, (40, 2), 0.5)
    assert mmd2(a, b, 0.8) == pytest.approx(mmd2_by_loops(a, b, 0.8), abs=1e-12)
    both = np.concatenate([a, b])
    median = np.median([math.dist(x, y) for x, y in itertools.combinations(both, 2)])
    assert mmd2(a, b) == pytest.approx(mmd2_by_loops(a, b, median), abs=1e-12)


@pytest.mark.parametrize(("mean", "sd"), [(0.0, 1.0), (0.8, 1.0), (0.0, 1.6)])
def test_mmd_of_gaussians(mean, sd):
    # E k(X, Y) = (s^2 / (s^2 + v))^(d/2) exp(-|gap|^2 / (2 (s^2 + v))), v the sum of the variances.
    dim, s = 2, 1.3

    def expected(v, gap):
        return (s**2 / (s**2 + v)) ** (dim / 2) * math.exp(-dim * gap**2 / (2 * (s**2 + v)))

    exact = expected(2 * sd**2, 0) + expected(2, 0) - 2 * expected(1 + sd**2, mean)
    found, error = of_seeds(
        lambda a, b: mmd2(a, b, s),
        lambda rng: (mean + sd * rng.standard_normal((300, dim)), rng.standard_normal((500, dim))),
    )
    assert abs(found - exact) < 3.5 * error


def test_mmd_of_single_points():
    assert mmd2(np.zeros((3, 2)), np.zeros((4, 2))) == 0
    assert mmd2(np.zeros((3, 2)), np.ones((4, 2)), 0.01) == pytest.approx(2)
    with pytest.raises(ValueError, match="two draws"):
        mmd2(np.zeros((1, 2)), np.ones((4, 2)))

"""The benchmark targets: their densities, draws, volumes and mode weights against one another."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from papercuts.errors import UsageError
from zoprox.benchmarks import NAMES, benchmark
from zoprox.benchmarks.curved import surface

SETS = ("two-tori", "l-shape", "sparse-boxes")
DENSITIES = tuple(name for name in NAMES if name not in SETS)


def drawn(name, number=20_000, dim=None):
    made = benchmark(name, dim)
    return made, made.draw(np.random.default_rng(1), number)


@pytest.mark.parametrize("name", NAMES)
def test_draws_have_the_shape_and_the_mode_weights(name):
    made, points = drawn(name)
    assert points.shape == (20_000, made.dim)
    assert made.weights.sum() == pytest.approx(1)
    belonging = made.modes(points)
    assert belonging.sum(axis=1) == pytest.approx(np.ones(len(points)))
    error = belonging.std(axis=0) / math.sqrt(len(points))
    assert np.all(np.abs(made.mode_weights(points) - made.weights) < 4 * error + 1e-12)
    assert np.isfinite(made.potential(points)).all()


@pytest.mark.parametrize("name", [name for name in DENSITIES if name != "funnel"])
def test_draws_follow_the_density(name):
    # For any shift v, E exp(f(x) - f(x + v)) = 1 under the density: it holds all of f to the draws.
    made, points = drawn(name, 40_000)
    f = made.potential(points)
    for axis in range(made.dim):
        shift = 0.3 * points[:, axis].std() * np.eye(made.dim)[axis]
        if name in ("grid25", "mueller-brown"):
            shift *= 0.1
        for sign in (1, -1):
            ratios = np.exp(f - made.potential(points + sign * shift))
            error = ratios.std() / math.sqrt(len(ratios))
            assert abs(ratios.mean() - 1) < 4 * error, (axis, sign)


@pytest.mark.parametrize("name", ["grid25", "banana"])
def test_densities_are_normalised(name):
    made, points = drawn(name, 50_000)
    # With a proposal that is wide enough the mean of exp(-f)/q is the integral.
    rng = np.random.default_rng(2)
    centre, spread = points.mean(axis=0), 1.5 * np.cov(points.T)
    q = stats.multivariate_t(centre, spread, df=5)
    proposed = q.rvs(50_000, random_state=rng)
    weights = np.exp(-made.potential(proposed) - q.logpdf(proposed))
    assert abs(weights.mean() - 1) < 4 * weights.std() / math.sqrt(len(weights))


def test_gaussian_lasso_is_the_papers_mixture():
    made, points = drawn("gaussian-lasso", 100_000)
    # Moments of the mixture in closed form: Laplace variance 2 / 16; Q^-1 has trace sum 1/q.
    assert points.mean(axis=0) == pytest.approx(np.full(5, 0.5), abs=0.01)
    squares = (points**2).sum(axis=1).mean()
    exact = 0.5 * 5 * 2 / 16 + 0.5 * (5 + sum(1 / q for q in (14, 15, 16, 17, 18)))
    assert squares == pytest.approx(exact, rel=0.01)
    # At the two centres one half is known and the other next to nothing.
    centres = np.array([[1.0] * 5, [0.0] * 5])
    det = 14 * 15 * 16 * 17 * 18
    gaussian = 0.5 * math.sqrt(det / (2 * math.pi) ** 5)
    laplace = 0.5 * 2.0**5
    f = made.potential(centres)
    assert math.exp(-f[0]) == pytest.approx(gaussian + laplace * math.exp(-20), rel=1e-9)
    assert math.exp(-f[1]) == pytest.approx(laplace, rel=1e-3)
    assert benchmark("gaussian-lasso", 3).potential(np.zeros((4, 3))).shape == (4,)


def test_grid_is_a_sum_of_25_gaussians():
    made, points = drawn("grid25", 50)
    marks = (-4, -2, 0, 2, 4)
    sums = sum(
        stats.multivariate_normal.pdf(points, centre, 0.04) / 25
        for centre in itertools.product(marks, marks)
    )
    assert np.exp(-made.potential(points)) == pytest.approx(sums, rel=1e-10)
    assert np.isfinite(made.potential(np.array([[1e3, -1e3]]))).all()


def test_funnel_and_banana_are_their_factors():
    made, points = drawn("funnel", 50, dim=3)
    logs = stats.norm.logpdf(points[:, 0], scale=3)
    scale = np.exp(points[:, :1] / 2)
    logs += stats.norm.logpdf(points[:, 1:], scale=scale).sum(axis=1)
    assert -made.potential(points) == pytest.approx(logs, rel=1e-10)
    assert made.potential(np.array([[-2000.0, 1.0, 0.0]]))[0] == math.inf
    _, points = drawn("funnel", 20_000)
    assert stats.kstest(points[:, 0] / 3, "norm").pvalue > 1e-3
    assert stats.kstest(points[:, 4] * np.exp(-points[:, 0] / 2), "norm").pvalue > 1e-3
    made, points = drawn("banana", 50, dim=3)
    straight = points[:, 1] + 0.03 * points[:, 0] ** 2 - 3
    logs = stats.norm.logpdf(points[:, 0], scale=10) + stats.norm.logpdf(straight)
    logs += stats.norm.logpdf(points[:, 2])
    assert -made.potential(points) == pytest.approx(logs, rel=1e-10)


def test_mueller_brown_has_the_published_minima_and_saddles():
    # Mueller and Brown (1979), table 1: places and energies.
    places = np.array(
        [[-0.558, 1.442], [0.623, 0.028], [-0.050, 0.467], [-0.822, 0.624], [0.212, 0.293]]
    )
    energies = [-146.700, -108.167, -80.768, -40.665, -72.249]
    assert 20 * surface(places) == pytest.approx(energies, abs=0.02)


def test_mueller_browns_weight_is_that_of_a_quadrature():
    def column(x):
        line = np.linspace(-1.5, 3.5, 2001)
        heights = np.exp(-surface(np.stack([np.full_like(line, x), line], axis=1)) - 7)
        return heights.sum(), heights[line > x + 1.446].sum()

    both = quad(lambda x: column(x)[0], -2.5, 2, limit=100, epsrel=1e-4)[0]
    upper = quad(lambda x: column(x)[1], -2.5, 2, limit=100, epsrel=1e-4)[0]
    assert benchmark("mueller-brown").weights[0] == pytest.approx(upper / both, abs=2e-3)


@pytest.mark.parametrize("name", SETS)
def test_sets_are_known_by_their_test(name):
    made, points = drawn(name, 5000)
    assert made.inside(points).all()
    assert (made.potential(points) == 0).all()
    # The share of a box that is inside, times the box, is the volume.
    low, high = points.min(axis=0) - 0.1, points.max(axis=0) + 0.1
    box = low + (high - low) * np.random.default_rng(2).random((200_000, made.dim))
    inside = made.inside(box)
    assert np.array_equal(made.potential(box) == 0, inside)
    assert np.isposinf(made.potential(box)[~inside]).all()
    share = inside.mean()
    error = math.sqrt(share * (1 - share) / len(box))
    volume = float(np.prod(high - low))
    assert abs(share * volume - made.volume) < 4 * error * volume
    # And draws fill it evenly: moments as of the box's points that are inside.
    kept = box[inside]
    both = points.std(axis=0) * math.sqrt(1 / len(points) + 1 / len(kept))
    assert np.all(np.abs(points.mean(axis=0) - kept.mean(axis=0)) < 4 * both)


def test_the_tori_are_the_papers():
    inside = benchmark("two-tori").inside
    assert inside(np.array([[0, 0, 0], [20, 0, 0.9], [10, 10, 0], [-10, 0, 0], [-16, 0, 0]])).all()
    assert not inside(np.array([[10, 0, 0], [-13, 0, 0], [0, 0, 1.1], [-5, 0, 0]])).any()


def test_boxes_in_more_dimensions():
    made, points = drawn("sparse-boxes", 2000, dim=4)
    assert len(made.weights) == 81
    assert made.volume == 81
    assert made.inside(points).all()
    assert not made.inside(np.array([[0.0, 0, 0, 1.5], [6, 0, 0, 0]])).any()
    assert made.mode_weights(points) == pytest.approx(made.weights, abs=0.012)


def test_names_and_dimensions_that_are_none():
    with pytest.raises(UsageError, match=r"bench:fennel: no such benchmark .*funnel"):
        benchmark("fennel")
    with pytest.raises(UsageError, match=r"in 4 dimensions \(expected --dim 3\)"):
        benchmark("two-tori", 4)
    with pytest.raises(UsageError, match="--dim 5 or another of at least 2"):
        benchmark("funnel", 1)


def test_benchmarks_are_targets_of_the_command(zoprox, tmp_path):
    small = ["-n", 10, "--mc", 20, "--rounds", 2, "--sub", 2, "--step", 1, "--keep", 1]
    code, out, err = zoprox("sample", "--target", "bench:banana", "--dim", 2, *small)
    assert code == 0, err
    assert len(out.splitlines()) == 10
    code, out, err = zoprox("uniform", "--inside", "bench:l-shape", "--dim", 2, *small)
    assert code == 0, err
    code, _, err = zoprox("uniform", "--inside", "bench:banana", "--dim", 2, *small)
    assert code == 2
    assert "is no set" in err

"""Eight schools (Rubin 1981): the density of the bench, exact quadrature, and a run of the sampler.

Given tau, theta and mu are Gaussian in closed form; tau is integrated by quadrature. The five
densities of `bench/posteriors.py` are held to posteriordb's reference draws where these are there.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from zoprox.correction import corrected
from zoprox.sampler import sample_rounds
from zoprox.settings import Settings


def load():
    path = Path(__file__).parent.parent / "bench" / "posteriors.py"
    spec = importlib.util.spec_from_file_location("zoprox_bench_posteriors", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


posteriors = load()
Y, S = posteriors.EFFECTS, posteriors.ERRORS
MODEL = posteriors.posterior("eight_schools")
needs_draws = pytest.mark.skipif(
    posteriors.folder() is None, reason="no reference draws: set PAPERCUTS_DATA"
)


def mu_given_tau(tau):
    """Give mean and variance of mu, and log p(tau | y) up to a constant, for tau [n]."""
    precision = 1 / (S**2 + tau[:, None] ** 2)
    variance = 1 / (1 / 25 + precision.sum(axis=1))
    mean = variance * (precision * Y).sum(axis=1)
    log = 0.5 * np.log(precision).sum(axis=1) + 0.5 * np.log(variance)
    log -= 0.5 * ((precision * Y**2).sum(axis=1) - mean**2 / variance)
    log -= np.log1p((tau / 5) ** 2)
    return mean, variance, log


def exact():
    """Give mean and sd of the eight theta, mu and tau, by quadrature in log tau."""
    u = np.linspace(-14, 7, 8001)
    tau = np.exp(u)
    m, v, log = mu_given_tau(tau)
    weights = np.exp(log + u - (log + u).max())
    weights /= weights.sum()
    shrink = S**2 / (S**2 + tau[:, None] ** 2)  # of theta towards mu
    theta = shrink * m[:, None] + (1 - shrink) * Y
    theta_variance = (1 - shrink) * S**2 + shrink**2 * v[:, None]
    means = np.column_stack([theta, m, tau])
    seconds = np.column_stack([theta_variance + theta**2, v + m**2, tau**2])
    mean = weights @ means
    return mean, np.sqrt(weights @ seconds - mean**2)


def test_the_density_is_the_product_of_its_conditionals():
    # p(theta, mu, tau | y) = p(tau | y) p(mu | tau, y) p(theta | mu, tau, y), each in closed form.
    points = np.random.default_rng(1).standard_normal((200, 10)) * 1.3
    values = MODEL.parameters(points)
    theta, mu, tau = values[:, :8], values[:, 8], values[:, 9]
    mean, variance, log = mu_given_tau(tau)
    log = log + stats.norm.logpdf(mu, mean, np.sqrt(variance))
    spread = 1 / (1 / S**2 + 1 / tau[:, None] ** 2)
    centre = spread * (Y / S**2 + (mu / tau**2)[:, None])
    log += stats.norm.logpdf(theta, centre, np.sqrt(spread)).sum(axis=1)
    log += 9 * np.log(tau)  # the Jacobian: eight theta = mu + tau eta, and log tau
    gap = log + MODEL.potential(points)
    assert gap == pytest.approx(np.full(200, gap[0]), abs=1e-8)


def test_quadrature_is_as_published():
    # Gelman et al., Bayesian Data Analysis, treat the same data with a flat prior; with the priors
    # of posteriordb: mu 4.4 +- 3.3, tau 3.6 +- 3.2 (its reference, 10,000 draws).
    mean, sd = exact()
    assert mean[8:] == pytest.approx([4.4, 3.6], abs=0.1)
    assert sd[8:] == pytest.approx([3.3, 3.2], abs=0.1)


def test_far_points_are_not_allowed_rather_than_nan():
    far = np.zeros((3, 10))
    far[0, 9], far[1, 9], far[2, 0] = 800, -800, 1e200
    with np.errstate(over="ignore"):
        values = MODEL.potential(far)
    assert not np.isnan(values).any()
    assert values[0] == math.inf


@pytest.mark.slow
@needs_draws
def test_quadrature_agrees_with_the_reference_draws():
    draws = posteriors.reference(MODEL)
    mean, sd = exact()
    error = sd / math.sqrt(len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 4 * error)
    assert draws.std(axis=0) / sd == pytest.approx(np.ones(10), abs=0.06)


@pytest.mark.slow
@needs_draws
@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("name", posteriors.FILES)
def test_densities_are_those_of_the_reference_draws(name, raw):
    # Under exp(-f), E grad f = 0 and E (u - E u) grad f = 1 (Stein's identity), in each coordinate.
    model = posteriors.posterior(name, raw=raw)
    draws = posteriors.reference(model)
    u = model.free(draws)
    assert model.parameters(u) == pytest.approx(draws, rel=1e-6)
    for axis in range(model.dim):
        small = 1e-4 * u[:, axis].std() * np.eye(model.dim)[axis]
        slope = (model.potential(u + small) - model.potential(u - small)) / (2 * small[axis])
        for found, truth in ((slope, 0), ((u[:, axis] - u[:, axis].mean()) * slope, 1)):
            error = found.std() / math.sqrt(len(found))
            assert abs(found.mean() - truth) < 4 * error, axis


def sampled(settings, kept):
    start = np.random.default_rng(0).standard_normal((settings.particles, 10))
    rounds = list(sample_rounds(MODEL.potential, settings, start))[-kept:]
    return np.concatenate(
        [
            corrected(
                MODEL.potential, r.points, settings.step, settings.draws, settings.seed, r.number
            ).points
            for r in rounds
        ]
    )


@pytest.mark.slow
def test_a_run_agrees_with_quadrature_and_the_reference():
    """Check 8: every mean within 0.1 reference sd, every sd within 10 %."""
    values = MODEL.parameters(sampled(Settings(200, 10, 0.5, 10, 500, 30), 20))
    truths = [exact()]
    if posteriors.folder() is not None:
        draws = posteriors.reference(MODEL)
        truths.append((draws.mean(axis=0), draws.std(axis=0)))
    for mean, sd in truths:
        assert np.abs((values.mean(axis=0) - mean) / sd).max() < 0.1
        assert np.abs(values.std(axis=0) / sd - 1).max() < 0.1

import math

import pytest
import torch
from torch.distributions import Bernoulli, LogNormal, Normal
from torch.distributions import kl_divergence as reference_kl

from satguide import policy

DTYPES = [torch.float64, torch.float32]


def answers(dtype, seed=0, variables=400):
    """What a network may say: rho over all of [-8, 8], mu over some orders of magnitude of w."""
    random = torch.Generator().manual_seed(seed)
    rho = 16 * torch.rand(variables, generator=random, dtype=torch.float64) - 8
    rho[:2] = torch.tensor([-8.0, 8.0])
    mu = 1.5 * torch.randn(variables, generator=random, dtype=torch.float64)
    return rho.to(dtype), mu.to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sigma", [0.03, 0.1, 0.7])
def test_log_prob_is_that_of_torch_distributions(dtype, sigma):
    rho, mu = answers(dtype)
    draws = policy.draw(rho, mu, sigma, 50, torch.Generator().manual_seed(1))
    found = policy.log_prob(rho, mu, sigma, draws)
    assert (found.dtype, found.shape) == (dtype, (50, 400))
    weights = draws.log_weight.double().exp()
    expected = LogNormal(mu.double(), sigma).log_prob(weights)
    expected += Bernoulli(logits=rho.double()).log_prob(draws.polarity.double())
    # In fp32 z = (log w - mu) / sigma is exact to a rounding, and its square to 1e-6 of itself.
    assert torch.allclose(found.double(), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sigma", [0.03, 0.1, 0.7])
def test_kl_divergence_is_that_of_torch_distributions(dtype, sigma):
    rho, mu = answers(dtype)
    old_rho, old_mu = answers(dtype, seed=1)
    found = policy.kl_divergence(rho, mu, old_rho, old_mu, sigma)
    assert found.dtype == dtype
    new, old = (
        (Bernoulli(logits=r.double()), LogNormal(m.double(), sigma))
        for r, m in ((rho, mu), (old_rho, old_mu))
    )
    expected = reference_kl(new[0], old[0]) + reference_kl(new[1], old[1])
    assert torch.allclose(found.double(), expected, rtol=1e-6, atol=1e-6)
    normal = reference_kl(Normal(mu.double(), sigma), Normal(old_mu.double(), sigma))
    assert torch.allclose(reference_kl(new[1], old[1]), normal)  # of w as of log w


def test_kl_divergence_from_itself_is_zero_and_flat():
    rho, mu = (x.requires_grad_() for x in answers(torch.float64))
    kl = policy.kl_divergence(rho, mu, rho.detach(), mu.detach(), 0.1)
    kl.sum().backward()
    assert kl.abs().max() < 1e-14
    assert rho.grad.abs().max() < 1e-14
    assert not mu.grad.any()


def test_draws_have_the_moments_of_the_policy():
    rho = torch.tensor([-2.0, 0.0, 3.0])
    mu = torch.tensor([-1.0, 0.0, 2.0])
    draws = policy.draw(rho, mu, 0.1, 10_000, torch.Generator().manual_seed(3))
    z = (draws.log_weight - mu) / 0.1
    assert draws.polarity.dtype == torch.bool
    assert (z.mean(0) * math.sqrt(10_000)).abs().max() < 4
    assert (z.var(0) - 1).abs().max() < 4 * math.sqrt(2 / 10_000)
    p = torch.sigmoid(rho)
    error = draws.polarity.float().mean(0) - p
    assert (error / torch.sqrt(p * (1 - p) / 10_000)).abs().max() < 4
    together = torch.cat([z, draws.polarity.float()], 1)
    off_diagonal = torch.corrcoef(together.T) - torch.eye(6)
    assert off_diagonal.abs().max() < 4.5 / math.sqrt(10_000)


def test_draws_depend_on_the_generator_alone():
    rho, mu = answers(torch.float32)
    one, two = (policy.draw(rho, mu, 0.1, 5, torch.Generator().manual_seed(7)) for _ in range(2))
    assert torch.equal(one.log_weight, two.log_weight)
    assert torch.equal(one.polarity, two.polarity)


def test_the_mode_is_where_the_density_is_highest():
    rho, mu = torch.tensor([-1.0, 2.0, 0.0]), torch.tensor([-0.5, 1.0, 0.0])
    sigma = 0.3
    weights, polarity = policy.mode(rho, mu, sigma)
    assert torch.allclose(weights, LogNormal(mu, sigma).mode)
    assert polarity.tolist() == [False, True, False]
    grid = torch.linspace(0.2, 5, 10_001)[:, None]
    densest = grid[LogNormal(mu, sigma).log_prob(grid).argmax(0), 0]
    assert torch.allclose(weights, densest, atol=3e-4)

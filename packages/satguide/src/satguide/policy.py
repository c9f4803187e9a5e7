"""The distribution of weights and polarities that a network's output stands for.

Independently for every variable, w ~ LogNormal(mu, sigma) and p ~ Bernoulli(sigmoid(rho)). At test
time the mode is used: w = exp(mu - sigma^2), p = 1 if rho > 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from satguide.exploration import Latent

SIGMA = 0.1  # the paper's


@dataclass(frozen=True, eq=False)
class Draws:
    """Samples of the policy: `log_weight` [samples, variables], `polarity` the same, bool."""

    log_weight: Tensor
    polarity: Tensor


def draw(
    rho: Tensor,
    mu: Tensor,
    sigma: float,
    samples: int,
    generator: torch.Generator,
    latent: Latent | None = None,
) -> Draws:
    """Draw `samples` settings of all variables; with `latent`, log w has its correlation."""
    shape = (samples, mu.numel())
    if latent is None:
        noise = torch.randn(shape, generator=generator)
    else:
        noise = latent.draw(samples, generator)
    uniform = torch.rand(shape, generator=generator)
    return Draws(mu + sigma * noise, uniform < torch.sigmoid(rho))


def mode(rho: Tensor, mu: Tensor, sigma: float) -> tuple[Tensor, Tensor]:
    """Give the most likely weights [variables] and polarities [variables] bool."""
    return torch.exp(mu - sigma**2), rho > 0


def log_prob(rho: Tensor, mu: Tensor, sigma: float, draws: Draws) -> Tensor:
    """Compute the log-density of the drawn (w, p): [samples, variables].

    A formula's is the sum over its variables.
    """
    z = (draws.log_weight - mu) / sigma
    log_normal = -0.5 * z * z - math.log(sigma * math.sqrt(2 * math.pi)) - draws.log_weight
    return log_normal + logsigmoid(torch.where(draws.polarity, rho, -rho))


def kl_divergence(rho: Tensor, mu: Tensor, old_rho: Tensor, old_mu: Tensor, sigma: float) -> Tensor:
    """KL(new || old) per variable: [variables]. Both policies have the same sigma."""
    p = torch.sigmoid(rho)
    bernoulli = p * (rho - old_rho) + softplus(old_rho) - softplus(rho)
    return bernoulli + (mu - old_mu) ** 2 / (2 * sigma**2)

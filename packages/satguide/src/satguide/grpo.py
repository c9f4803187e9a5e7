"""Group-relative policy optimisation (paper, training section), written out.

For formula i and its samples j, with advantage A_ij and r = exp(log p - log p_old),

    maximise  mean_ij min(r A, g(A)) - beta mean_i KL(new || old)_i,
    g(A) = (1 + eps) A where A >= 0, (1 - eps) A elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from satguide.exploration import Latent
from satguide.graph import Batch
from satguide.policy import Draws, kl_divergence, log_prob


@dataclass(frozen=True)
class Objective:
    """The constants of the objective. Without `polarity` only the weights are learnt."""

    sigma: float = 0.1
    clip: float = 0.2
    kl: float = 0.1
    polarity: bool = True


@dataclass(frozen=True, eq=False)
class Experience:
    """What the policy that sampled an iteration knew: all of it without gradient.

    `rho`, `mu` [variables]; `draws` of [samples, variables]; `advantage` [samples, formulas];
    `latent` is the correlation of the draws, None where they are independent.
    """

    rho: Tensor
    mu: Tensor
    draws: Draws
    advantage: Tensor
    latent: Latent | None = None

    def part(self, variables: Tensor, formulas: Sequence[int]) -> Experience:
        """Cut out what concerns some of the formulas; `variables` are theirs."""
        draws = Draws(self.draws.log_weight[:, variables], self.draws.polarity[:, variables])
        advantage = self.advantage[:, list(formulas)]
        latent = None if self.latent is None else self.latent.part(formulas)
        return Experience(self.rho[variables], self.mu[variables], draws, advantage, latent)


def advantages(costs: Tensor) -> Tensor:
    """Turn costs [samples, formulas] into advantages, the same shape.

    Fewer decisions than the formula's mean is good, in units of the formula's own spread (standard
    deviation, ddof 1). Equal costs give exactly zero.
    """
    centred = costs - costs.mean(0, keepdim=True)
    equal = costs.amax(0) == costs.amin(0)
    centred = torch.where(equal, torch.zeros_like(centred), centred)
    return -centred / (costs.std(0, keepdim=True) + 1e-8)


def fill_missing(costs: Tensor) -> Tensor:
    """Give runs that hit their limit (NaN) the largest count of the batch (paper, reward)."""
    missing = torch.isnan(costs)
    if not bool(missing.any()):
        return costs
    known = costs[~missing]
    return torch.where(missing, known.max() if known.numel() else costs.new_zeros(()), costs)


def per_formula(values: Tensor, batch: Batch) -> Tensor:
    """Sum [..., variables] over the variables of each formula: [..., formulas]."""
    out = values.new_zeros(*values.shape[:-1], batch.formulas)
    return out.index_add(-1, batch.formula_of_variable(), values)


def centred(mu: Tensor, batch: Batch) -> Tensor:
    """Take the mean of each formula's mu away: [variables].

    All weights of a formula times the same number is the same guidance, so this changes nothing
    for the solver. For learning it does: the common part of n variables' noise says nothing about
    the cost, and left in it makes most of the ratio's variance.
    """
    mean = per_formula(mu, batch) / batch.variable_starts.diff().clamp(min=1)
    return mu - mean[batch.formula_of_variable()]


def loss(
    rho: Tensor, mu: Tensor, batch: Batch, old: Experience, terms: Objective
) -> tuple[Tensor, dict[str, float]]:
    """Compute the negative objective, and what to log of it.

    The log-probability ratio is summed in fp32 per variable, as a difference: the two sums alone
    would lose digits that the ratio needs.
    """
    if not terms.polarity:
        rho = old.rho
    change, kl_parts = _change(rho, mu, old, terms.sigma)
    # A ratio past e^80 would overflow to infinity, and times an advantage of zero to NaN.
    ratio = torch.exp(per_formula(change, batch).clamp(max=80.0))
    gain = old.advantage
    bound = torch.where(gain >= 0, (1 + terms.clip) * gain, (1 - terms.clip) * gain)
    surrogate = torch.minimum(ratio * gain, bound).mean()
    kl = per_formula(kl_parts, batch).mean()
    clipped = (ratio.detach() * gain > bound).float().mean()
    said = {"kl": float(kl.detach()), "clipped": float(clipped)}
    return terms.kl * kl - surrogate, said


def _change(rho: Tensor, mu: Tensor, old: Experience, sigma: float) -> tuple[Tensor, Tensor]:
    """Give log p - log p_old [samples, variables] and the KL divergence [variables].

    Only their sums over the variables of a formula mean something where the draws are correlated.
    """
    if old.latent is None:
        then = log_prob(old.rho, old.mu, sigma, old.draws)
        kl = kl_divergence(rho, mu, old.rho, old.mu, sigma)
        return log_prob(rho, mu, sigma, old.draws) - then, kl
    moved = (mu - old.mu) / sigma
    pulled = old.latent.solve(moved)
    score = old.latent.solve((old.draws.log_weight - old.mu) / sigma)
    signs = torch.where(old.draws.polarity, 1.0, -1.0)
    bernoulli = logsigmoid(signs * rho) - logsigmoid(signs * old.rho)
    kl = kl_divergence(rho, old.mu, old.rho, old.mu, sigma) + 0.5 * moved * pulled
    return moved * score - 0.5 * moved * pulled + bernoulli, kl

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.distributions import Bernoulli, LogNormal, kl_divergence

from satguide import grpo, policy
from satguide.cnf import CNF
from satguide.graph import adjacency, batch
from satguide.network import GuidanceNetwork

pytestmark = pytest.mark.usefixtures("one_thread")

SAMPLES = 7


def formulas(*sizes):
    """A batch of formulas with these numbers of variables; what their clauses are is no matter."""
    return batch([adjacency(CNF.from_clauses(n, [list(range(1, n + 1))])) for n in sizes])


def experience(whole, sigma, dtype=torch.float64, seed=0):
    random = torch.Generator().manual_seed(seed)
    rho, mu = torch.randn(2, whole.variables, generator=random).to(dtype)
    draws = policy.draw(rho, mu, sigma, SAMPLES, random)
    costs = torch.randint(5, 90, (SAMPLES, whole.formulas), generator=random).to(dtype)
    return grpo.Experience(rho, mu, draws, grpo.advantages(costs))


def naive(rho, mu, sizes, old, terms):
    """The objective of the sheet's item 8, formula by formula and sample by sample."""
    surrogate = kl = 0.0
    first = 0
    for i, n in enumerate(sizes):
        own = slice(first, first + n)
        first += n
        weight, turn = LogNormal(mu[own], terms.sigma), Bernoulli(logits=rho[own])
        old_weight = LogNormal(old.mu[own], terms.sigma)
        old_turn = Bernoulli(logits=old.rho[own])
        for j in range(SAMPLES):
            w = old.draws.log_weight[j, own].exp()
            p = old.draws.polarity[j, own].to(w.dtype)
            log_p = weight.log_prob(w).sum() + turn.log_prob(p).sum()
            log_p_old = old_weight.log_prob(w).sum() + old_turn.log_prob(p).sum()
            r, a = torch.exp(log_p - log_p_old), float(old.advantage[j, i])
            g = (1 + terms.clip) * a if a >= 0 else (1 - terms.clip) * a
            surrogate += torch.minimum(r * a, r.new_tensor(g)) / (len(sizes) * SAMPLES)
        kl += kl_divergence(weight, old_weight).sum() / len(sizes)
        kl += kl_divergence(turn, old_turn).sum() / len(sizes)
    return terms.kl * kl - surrogate, kl.item()


@pytest.mark.parametrize("step", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("sizes", [(3,), (2, 1), (1, 3, 2)])
def test_loss_and_gradient_are_those_of_the_objective_written_out(sizes, step):
    whole, terms = formulas(*sizes), grpo.Objective(sigma=0.1, clip=0.2, kl=0.3)
    old = experience(whole, terms.sigma)
    random = torch.Generator().manual_seed(9)
    moved = [x + step * torch.randn(x.shape, generator=random) for x in (old.rho, old.mu)]
    ours, theirs = ([x.clone().requires_grad_() for x in moved] for _ in range(2))
    loss, said = grpo.loss(*ours, whole, old, terms)
    expected, kl = naive(*theirs, sizes, old, terms)
    loss.backward()
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-9, abs=1e-12)
    assert said["kl"] == pytest.approx(kl, rel=1e-9, abs=1e-12)
    for own, other in zip(ours, theirs, strict=True):
        assert torch.allclose(own.grad, other.grad, rtol=1e-8, atol=1e-10)
    assert said["clipped"] == 0 if step == 0 else step < 0.1 or said["clipped"] > 0


def test_loss_in_fp32_is_close_to_fp64():
    whole, terms = formulas(100, 150), grpo.Objective()
    old = experience(whole, terms.sigma, torch.float32)
    wide = grpo.Experience(
        old.rho.double(),
        old.mu.double(),
        policy.Draws(old.draws.log_weight.double(), old.draws.polarity),
        old.advantage.double(),
    )
    shift = 0.003 * torch.randn(2, 250, generator=torch.Generator().manual_seed(2))
    rho, mu = old.rho + shift[0], old.mu + shift[1]
    narrow, _ = grpo.loss(rho, mu, whole, old, terms)
    exact, _ = grpo.loss(rho.double(), mu.double(), whole, wide, terms)
    assert narrow.item() == pytest.approx(exact.item(), abs=2e-5)


@pytest.mark.parametrize(
    ("advantage", "ratio", "expected", "slope"),
    [
        (2.0, 1.0, 2.0, 2.0),
        (2.0, 1.19, 2.38, 2.0),
        (2.0, 1.5, 2.4, 0.0),  # clipped at (1 + 0.2) A: nothing more to gain
        (2.0, 0.5, 1.0, 2.0),  # a good sample made rarer is not clipped
        (-2.0, 1.0, -2.0, -2.0),
        (-2.0, 0.81, -1.62, -2.0),
        (-2.0, 0.5, -1.6, 0.0),  # clipped at (1 - 0.2) A
        (-2.0, 1.5, -3.0, -2.0),  # a bad sample made likelier is not clipped
        (0.0, 1.7, 0.0, 0.0),
    ],
)
def test_the_surrogate_is_clipped_on_one_side(advantage, ratio, expected, slope):
    # One variable whose polarity was true with probability 1/4, and is so with ratio / 4 now.
    logit = math.log(0.25 * ratio / (1 - 0.25 * ratio))
    rho = torch.tensor([logit], dtype=torch.float64, requires_grad=True)
    mu = torch.zeros(1, dtype=torch.float64)
    draws = policy.Draws(torch.zeros(1, 1, dtype=torch.float64), torch.tensor([[True]]))
    old_rho = torch.tensor([math.log(1 / 3)], dtype=torch.float64)
    old = grpo.Experience(old_rho, mu, draws, torch.tensor([[advantage]], dtype=torch.float64))
    loss, said = grpo.loss(rho, mu, formulas(1), old, grpo.Objective(clip=0.2, kl=0.0))
    loss.backward()
    assert -loss.item() == pytest.approx(expected)
    assert said["clipped"] == float(slope == 0 and advantage != 0)
    # d ratio / d rho = ratio (1 - p) with p = ratio / 4
    assert -rho.grad.item() == pytest.approx(slope * ratio * (1 - 0.25 * ratio))


def test_without_polarity_only_the_weights_are_learnt():
    whole = formulas(3)
    old = experience(whole, 0.1)
    rho, mu = ((x + 0.05).requires_grad_() for x in (old.rho, old.mu))
    loss, _ = grpo.loss(rho, mu, whole, old, grpo.Objective(polarity=False))
    loss.backward()
    expected, _ = naive(old.rho, mu.detach(), (3,), old, grpo.Objective())
    assert loss.item() == pytest.approx(expected.item())
    assert rho.grad is None
    assert mu.grad.abs().min() > 0


def test_advantages_by_hand():
    costs = torch.tensor([[10.0, 5.0], [20.0, 5.0], [30.0, 8.0]], dtype=torch.float64)
    # mean 20, deviation sqrt((100 + 0 + 100) / 2) = 10; mean 6, deviation sqrt(6 / 2)
    expected = [[1.0, 1 / math.sqrt(3)], [0.0, 1 / math.sqrt(3)], [-1.0, -2 / math.sqrt(3)]]
    found = grpo.advantages(costs)
    assert torch.allclose(found, torch.tensor(expected, dtype=torch.float64), atol=1e-8)


@settings(max_examples=30)
@given(st.floats(0, 3e7, width=32), st.integers(2, 50))
def test_equal_costs_give_an_advantage_of_exactly_zero(cost, samples):
    # The mean of equal numbers need not equal them in fp32.
    assert not grpo.advantages(torch.full((samples, 2), cost)).any()


def test_formulas_with_equal_costs_do_not_touch_the_others():
    costs = torch.tensor([[7.1, 3.0], [7.1, 4.0], [7.1, 9.0]])
    found = grpo.advantages(costs)
    assert not found[:, 0].any()
    assert torch.equal(found[:, 1:], grpo.advantages(costs[:, 1:]))


@pytest.mark.slow
def test_with_equal_costs_the_update_is_exactly_zero(checkpoint):
    network = GuidanceNetwork(checkpoint.network.shape)
    network.load_state_dict(checkpoint.network.state_dict())
    before = {name: value.clone() for name, value in network.state_dict().items()}
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2, weight_decay=0.0)
    cnf = CNF.from_clauses(3, [[1, 2], [-1, 3], [-2, -3]])
    whole = batch([adjacency(cnf)])
    with torch.no_grad():
        rho, mu = network(whole)
    draws = policy.draw(rho, mu, 0.1, SAMPLES, torch.Generator().manual_seed(4))
    old = grpo.Experience(rho, mu, draws, grpo.advantages(torch.full((SAMPLES, 1), 41.3)))
    for _ in range(3):
        loss, _ = grpo.loss(*network(whole), whole, old, grpo.Objective(kl=0.0))
        optimizer.zero_grad()
        loss.backward()
        gradients = [p.grad for p in network.parameters()]
        assert all(g is not None and not g.any() for g in gradients)
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name])


def test_missing_costs_are_the_largest_of_the_batch():
    nan = math.nan
    costs = torch.tensor([[3.0, nan, 9.0], [nan, 4.0, 2.0]])
    assert grpo.fill_missing(costs).tolist() == [[3.0, 9.0, 9.0], [9.0, 4.0, 2.0]]
    known = torch.tensor([[3.0, 1.0]])
    assert torch.equal(grpo.fill_missing(known), known)


def test_a_batch_of_which_nothing_is_known_teaches_nothing():
    filled = grpo.fill_missing(torch.full((4, 2), math.nan))
    assert not grpo.advantages(filled).any()


def test_values_are_summed_over_the_variables_of_each_formula():
    values = torch.tensor([[1.0, 2.0, 4.0, 8.0, 16.0, 32.0], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]])
    found = grpo.per_formula(values, formulas(1, 3, 2))
    assert found.tolist() == [[1.0, 14.0, 48.0], [1.0, 3.0, 2.0]]


def test_a_part_of_an_experience_is_what_concerns_its_formulas():
    whole = formulas(2, 1, 3)
    old = experience(whole, 0.1)
    part = old.part(torch.tensor([3, 4, 5, 0, 1]), [2, 0])
    assert torch.equal(part.rho, torch.cat([old.rho[3:], old.rho[:2]]))
    assert torch.equal(part.mu, torch.cat([old.mu[3:], old.mu[:2]]))
    assert torch.equal(part.draws.log_weight[:, :3], old.draws.log_weight[:, 3:])
    assert torch.equal(part.draws.polarity[:, 3:], old.draws.polarity[:, :2])
    assert torch.equal(part.advantage, old.advantage[:, [2, 0]])

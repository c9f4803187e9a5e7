"""Correlated exploration noise against the correlation that is written down, and what it is for."""

import json
import math
import zlib
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.distributions import Bernoulli, MultivariateNormal, kl_divergence

from satguide import grpo, policy, trainer
from satguide.cnf import CNF
from satguide.costs import Meter
from satguide.exploration import Latent
from satguide.network import Shape
from satguide.trainer import Settings, Trainer

pytestmark = pytest.mark.usefixtures("one_thread")

SIZES = (6, 1, 9)
STARTS = (0, 6, 7, 16)
SHARE = 0.7


def features(seed=0, width=4, dtype=torch.float32):
    random = torch.Generator().manual_seed(seed)
    mixed = torch.randn(16, width, generator=random) @ torch.randn(width, width, generator=random)
    return (mixed + 3).to(dtype)


def written(rows, share):
    """R of the module's head for one formula, in numpy: (1 - s) I + s B B', all in fp64."""
    x = rows.double().numpy()
    x = x - x.mean(0)
    values, vectors = np.linalg.eigh(x.T @ x / len(x))
    spread = x @ vectors / np.sqrt(values.clip(0) + 1e-3 * max(values[-1], 1e-12))
    lengths = np.linalg.norm(spread, axis=1, keepdims=True)
    b = spread / np.maximum(lengths, 1e-6)
    return (1 - share) * np.eye(len(x)) + share * b @ b.T


def correlation(share=SHARE):
    """R of all formulas, side by side."""
    whole = np.zeros((16, 16))
    for a, b in pairwise(STARTS):
        whole[a:b, a:b] = written(features()[a:b], share)
    return whole


def test_draws_have_the_correlation_that_is_written_down():
    count = 20_000
    noise = Latent.of(features(), STARTS, SHARE).draw(count, torch.Generator().manual_seed(1))
    expected = correlation()
    found = (noise.T @ noise / count).double().numpy()
    # Var of x_i x_j is R_ii R_jj + R_ij^2 for a Gaussian.
    error = np.sqrt((np.outer(expected.diagonal(), expected.diagonal()) + expected**2) / count)
    assert (np.abs(found - expected) / error).max() < 4.5
    assert (noise.mean(0).abs().numpy() / np.sqrt(expected.diagonal() / count)).max() < 4
    several = [i for i in range(16) if i != 6]  # variable 6 is alone in its formula
    assert expected.diagonal()[several] == pytest.approx(np.ones(15))
    assert expected[6, 6] == pytest.approx(1 - SHARE)


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
def test_solving_is_numpys_inverse(share):
    latent = Latent.of(features().double(), STARTS, share)
    values = torch.randn(3, 2, 16, generator=torch.Generator().manual_seed(2)).double()
    inverse = np.linalg.inv(correlation(share))
    assert np.allclose(latent.solve(values).numpy(), values.numpy() @ inverse, rtol=1e-9)
    assert np.allclose(latent.solve(values[0, 0]).numpy(), inverse @ values[0, 0].numpy())


def experience(latent, sigma=0.1):
    random = torch.Generator().manual_seed(3)
    rho, mu = torch.randn(2, 16, generator=random).double()
    noise = torch.randn(5, 16, generator=random).double()
    draws = policy.Draws(mu + sigma * noise, torch.rand(5, 16, generator=random) < 0.5)
    return grpo.Experience(rho, mu, draws, torch.zeros(5, len(SIZES)).double(), latent)


def shifted(old, step=0.05):
    random = torch.Generator().manual_seed(4)
    change = step * torch.randn(2, 16, generator=random).double()
    return old.rho + change[0], old.mu + change[1]


def test_ratio_and_divergence_are_those_of_the_multivariate_normal():
    sigma = 0.1
    old = experience(Latent.of(features().double(), STARTS, SHARE))
    rho, mu = shifted(old)
    change, kl = grpo._change(rho, mu, old, sigma)
    first = 0
    for size in SIZES:
        own = slice(first, first + size)
        first += size
        matrix = torch.from_numpy(sigma**2 * correlation()[own, own])
        new, then = (MultivariateNormal(m[own], matrix) for m in (mu, old.mu))
        turn, turned = (Bernoulli(logits=r[own]) for r in (rho, old.rho))
        x, p = old.draws.log_weight[:, own], old.draws.polarity[:, own].double()
        ratio = new.log_prob(x) - then.log_prob(x)
        ratio += (turn.log_prob(p) - turned.log_prob(p)).sum(-1)
        assert torch.allclose(change[:, own].sum(-1), ratio, rtol=1e-8)
        divergence = kl_divergence(new, then) + kl_divergence(turn, turned).sum()
        assert kl[own].sum().item() == pytest.approx(divergence.item(), rel=1e-8)


def test_a_small_share_is_the_independent_policy():
    old = experience(Latent.of(features().double(), STARTS, 1e-7))
    alone = experience(None)
    rho, mu = shifted(old)
    for one, two in zip(grpo._change(rho, mu, old, 0.1), grpo._change(rho, mu, alone, 0.1),
                        strict=True):  # fmt: skip
        assert torch.allclose(one, two, atol=1e-4)
    tiny = Latent.of(features(), STARTS, 1e-7)
    noise = tiny.draw(2000, torch.Generator().manual_seed(5))
    off_diagonal = noise.T @ noise / 2000 - torch.eye(16)
    assert off_diagonal.abs().max() < 5 * math.sqrt(2 / 2000)


def test_a_part_is_what_concerns_its_formulas():
    latent = Latent.of(features().double(), STARTS, SHARE)
    values = torch.randn(2, 16, generator=torch.Generator().manual_seed(6)).double()
    part = latent.part([2, 0])
    columns = [*range(7, 16), *range(6)]
    assert torch.equal(part.solve(values[:, columns]), latent.solve(values)[:, columns])
    assert part.share == SHARE


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 1.5, math.nan])
def test_a_share_that_is_none(share):
    with pytest.raises(ValueError, match="share must lie between 0 and 1"):
        Latent.of(features(), STARTS, share)


@pytest.mark.parametrize(
    "rows",
    [torch.zeros(0, 4), torch.ones(1, 4), torch.zeros(5, 4), torch.full((5, 4), 0.1)],
    ids=["no variables", "one", "zero features", "constant features"],
)
def test_features_that_tell_nothing(rows):
    count = len(rows)
    latent = Latent.of(rows, (0, count), SHARE)
    noise = latent.draw(7, torch.Generator().manual_seed(7))
    assert noise.shape == (7, count)
    assert noise.isfinite().all()
    assert latent.solve(noise).isfinite().all()


# In training


class Roles:
    """Formulas in which 30 variables of 40 play one role: they are frequent, and all alike."""

    def draw(self, *seed):
        order = (np.random.default_rng(seed).permutation(40) + 1).tolist()
        return CNF.from_clauses(40, [order[:30], order[:30], [-v for v in order]])

    def training(self, seed, first, count):
        return [self.draw(seed, 0, i) for i in range(first, first + count)]

    def validation(self, seed, count):
        return [self.draw(seed, 1, i) for i in range(count)]


def cost_of_the_role(tasks, meter, *, chunk=1):
    """Stand in for the solver: (mean of log w over the frequent variables - 1)^2."""
    for task in tasks:
        frequent = task.cnf.occurrences() > 1
        log_weight = np.zeros((1, 40)) if task.weights is None else np.log(task.weights)
        yield ((log_weight[:, frequent].mean(1) - 1) ** 2).tolist()


def with_noise(tasks, meter, *, chunk=1):
    """The same with noise of 0.1, as the counts of a solver have it, the same for the same w."""
    for task, costs in zip(tasks, cost_of_the_role(tasks, meter), strict=True):
        random = np.random.default_rng(zlib.crc32(task.weights.tobytes()))
        yield (np.array(costs) + 0.1 * random.normal(size=len(costs))).tolist()


def settings(latent, **changes):
    small = {"formulas": 4, "samples": 6, "steps": 3, "minibatch": 3, "validation": 3}
    return Settings(Shape(4, 1), **{**small, "average": 0.9, "latent": latent, **changes})


def records(run, count):
    found = [run.step() for _ in range(count)]
    return [{k: v for k, v in record.items() if not k.endswith("_s")} for record in found]


@pytest.mark.slow
def test_a_training_with_shared_noise_is_its_seeds_and_can_be_restored(monkeypatch):
    monkeypatch.setattr(trainer, "measure", cost_of_the_role)
    one, two, alone = (Trainer(Roles(), settings(s), Meter()) for s in (0.8, 0.8, 0.0))
    first = records(one, 2)
    torch.rand(1)  # whatever else draws random numbers
    assert records(two, 2) == first
    assert records(alone, 2) != first
    tensors, numbers = one.state()
    again = Trainer(Roles(), settings(0.8), Meter())
    again.restore({k: v.clone() for k, v in tensors.items()}, json.loads(json.dumps(numbers)))
    assert (records(again, 2), again.validate()) == (records(one, 2), one.validate())
    for name, value in again.state()[0].items():
        assert torch.equal(value, one.state()[0][name]), name


@pytest.mark.slow
@pytest.mark.parametrize("clauses", [(0, []), (1, [[1]]), (3, []), (2, [[1, -2], [-1, 2]])])
def test_a_training_on_formulas_without_anything_to_tell(monkeypatch, clauses):
    class Bare:
        def training(self, *numbers):
            return [CNF.from_clauses(*clauses)] * numbers[-1]

        validation = training

    def measure(tasks, meter, *, chunk=1):
        for task in tasks:
            yield np.arange(1.0, 1 + len(task.weights)).tolist()

    monkeypatch.setattr(trainer, "measure", measure)
    run = Trainer(Bare(), settings(0.5), Meter())
    records(run, 2)
    run.validate()
    assert all(p.isfinite().all() for p in run.network.parameters())


@pytest.mark.slow
def test_shared_noise_finds_the_weight_of_a_role_faster(monkeypatch):
    """What it is for: 30 weights that act as one, each for a thirtieth of the effect."""
    left = []
    for latent in (0.0, 0.9):
        changes = {"formulas": 6, "minibatch": 6, "samples": 16, "steps": 4}
        changes |= {"lr": 1e-2, "warmup": 1, "average": 0.0}
        run = Trainer(Roles(), settings(latent, **changes), Meter())
        monkeypatch.setattr(trainer, "measure", with_noise)
        records(run, 25)
        monkeypatch.setattr(trainer, "measure", cost_of_the_role)
        left.append(run.validate())
    assert left[1] < 0.3 * left[0]

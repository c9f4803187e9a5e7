"""Training by the solver's own feedback: one `step()` an iteration, exact to resume.

An iteration draws N formulas and M settings for each, solves them all, and takes a few gradient
steps of GRPO on what came out. Everything random derives from the seed and the iteration's number,
so a trainer that is restored goes on exactly where it stopped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from papercuts.parallel import seed_for
from satguide import grpo, policy
from satguide.cnf import CNF
from satguide.costs import Meter, Task, measure
from satguide.exploration import Latent
from satguide.graph import Adjacency, Batch, adjacency, batch
from satguide.network import GuidanceNetwork, Shape
from satguide.prior import Prior, fit

_BLOCK = 12  # settings of one formula that go to a worker together


class Source(Protocol):
    """Where formulas come from."""

    def training(self, seed: int, first: int, count: int) -> list[CNF]:
        """Give the training formulas `first` to `first + count - 1`."""

    def validation(self, seed: int, count: int) -> list[CNF]:
        """Give `count` formulas that are never trained on."""


class Diverged(ArithmeticError):  # noqa: N818 (what the training did)
    """A number of the training is no longer finite."""


@dataclass(frozen=True)
class Settings:
    """How to train. The defaults are the sheet's for a small network and two cores.

    An iteration has `formulas` N and `samples` M of each, then `steps` gradient steps on
    `minibatch` formulas each (what is left of a pass and is no whole minibatch is not learnt from);
    `warmup` is in iterations. `average` is the decay of the running mean of the networks that is
    validated (0: the last network).

    Beyond the paper, and off by default: `latent` is the share of the noise that goes along the
    network's features (`satguide.exploration`), `centre` takes the mean of each formula's mu away
    (`satguide.grpo.centred`), `whiten` is about the beginning (`GuidanceNetwork.whiten`), and the
    layers under the read-out learn at `body_lr` times `lr`.
    """

    shape: Shape = field(default_factory=Shape)
    formulas: int = 20
    samples: int = 24
    steps: int = 8
    minibatch: int = 10
    lr: float = 1e-3
    warmup: int = 5
    sigma: float = policy.SIGMA
    latent: float = 0.0
    whiten: bool = False
    body_lr: float = 1.0
    centre: bool = False
    clip: float = 0.2
    kl: float = 0.1
    grad_norm: float = 1.0
    average: float = 0.0
    validation: int = 200
    seed: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Give the settings by name, `shape` spread out."""
        return {**self.shape.as_dict(), **{k: v for k, v in asdict(self).items() if k != "shape"}}


class Trainer:
    """A network in training, its optimiser, its running mean and the best of it so far.

    It begins as `init` or anew, and is fitted to `prior` where that is given.
    """

    def __init__(
        self,
        source: Source,
        settings: Settings,
        meter: Meter,
        *,
        init: GuidanceNetwork | None = None,
        prior: Prior | None = None,
    ) -> None:
        self.source, self.settings, self.meter = source, settings, meter
        self.iteration = 0
        with torch.random.fork_rng(devices=[]):  # whoever imports this keeps their own draws
            torch.manual_seed(seed_for(settings.seed, 0) % 2**63)
            self.network, self.averaged, self.best = (
                GuidanceNetwork(settings.shape) for _ in range(3)
            )
        if init is not None:
            self.network.load_state_dict(init.state_dict())
        elif settings.whiten:
            first = self.source.training(settings.seed, 0, settings.formulas)
            random = torch.Generator().manual_seed(seed_for(settings.seed, 0))
            self.network.whiten(batch([adjacency(cnf) for cnf in first]), random)
        if prior is not None:
            fit(self.network, prior, source, settings)
        self.averaged.load_state_dict(self.network.state_dict())
        self.best.load_state_dict(self.network.state_dict())
        self.best_cost: float | None = None
        self.best_iteration = 0
        self.worst: float | None = None  # the largest cost of a run on the validation formulas
        self.optimizer = torch.optim.AdamW(self._groups(), lr=settings.lr, weight_decay=0.0)
        self._validation: list[CNF] | None = None
        self._validation_graphs: list[Adjacency] = []

    def step(self) -> dict[str, Any]:
        """Run one iteration and say what happened."""
        s, start = self.settings, time.perf_counter()
        formulas = self.source.training(s.seed, self.iteration * s.formulas, s.formulas)
        graphs = [adjacency(cnf) for cnf in formulas]
        whole = batch(graphs)
        with torch.no_grad():
            rho, mu, features = self.network.look(whole)
            mu = self._gauged(mu, whole)
        if not bool(features.isfinite().all() and mu.isfinite().all()):
            raise Diverged(f"what the network says in iteration {self.iteration + 1} is not finite")
        random = torch.Generator().manual_seed(seed_for(s.seed, 2 * self.iteration + 1))
        latent = None
        if s.latent:
            latent = Latent.of(features, whole.variable_starts.tolist(), s.latent)
        draws = policy.draw(rho, mu, s.sigma, s.samples, random, latent)
        raw = self._costs(formulas, whole, draws)
        solved = time.perf_counter()
        costs = grpo.fill_missing(raw)
        old = grpo.Experience(rho, mu, draws, grpo.advantages(costs), latent)
        said = self._learn(graphs, whole, old)
        self.iteration += 1
        self._update_average()
        return {
            "iteration": self.iteration,
            "cost": float(costs.mean()),
            "unfinished": int(torch.isnan(raw).sum()),
            "mu_std": float(mu.std()) if mu.numel() > 1 else None,
            "positive": float((rho > 0).float().mean()) if rho.numel() else None,
            **said,
            "solve_s": solved - start,
            "learn_s": time.perf_counter() - solved,
        }

    def _gauged(self, mu: Tensor, formulas: Batch) -> Tensor:
        return grpo.centred(mu, formulas) if self.settings.centre else mu

    def _groups(self) -> list[dict[str, Any]]:
        """Give the parameters by learning rate: the read-out, and what is under it."""
        top = list(self.network.read_out.parameters())
        under = [*self.network.encode.parameters(), *self.network.rounds.parameters()]
        return [
            {"params": under, "factor": self.settings.body_lr},
            {"params": top, "factor": 1.0},
        ]

    def _costs(self, formulas: Sequence[CNF], whole: Batch, draws: policy.Draws) -> Tensor:
        """Solve every formula under every setting: [samples, formulas]."""
        samples = self.settings.samples
        bounds = whole.variable_starts.tolist()
        weights = torch.exp(draws.log_weight).numpy()
        polarity = draws.polarity.numpy()
        tasks = [
            Task(cnf, weights[j : j + _BLOCK, a:b], polarity[j : j + _BLOCK, a:b])
            for cnf, a, b in zip(formulas, bounds[:-1], bounds[1:], strict=True)
            for j in range(0, samples, _BLOCK)
        ]
        flat = [cost for costs in measure(tasks, self.meter) for cost in costs]
        return torch.tensor(flat).reshape(len(formulas), samples).T

    def _learn(
        self, graphs: Sequence[Adjacency], whole: Batch, old: grpo.Experience
    ) -> dict[str, float]:
        s = self.settings
        terms = grpo.Objective(s.sigma, s.clip, s.kl, polarity=self.meter.polarity != "none")
        random = np.random.default_rng(seed_for(s.seed, 2 * self.iteration + 2))
        bounds = whole.variable_starts.tolist()
        for group in self.optimizer.param_groups:
            group["lr"] = group["factor"] * s.lr * min(1.0, (self.iteration + 1) / max(1, s.warmup))
        said: dict[str, float] = {}
        order: list[int] = []
        for _ in range(s.steps):
            if len(order) < min(s.minibatch, len(graphs)):
                order = random.permutation(len(graphs)).tolist()
            chosen, order = order[: s.minibatch], order[s.minibatch :]
            part = batch([graphs[i] for i in chosen])
            columns = torch.cat([torch.arange(bounds[i], bounds[i + 1]) for i in chosen])
            rho, mu = self.network(part)
            mu = self._gauged(mu, part)
            loss, said = grpo.loss(rho, mu, part, old.part(columns, chosen), terms)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            norm = float(nn.utils.clip_grad_norm_(self.network.parameters(), s.grad_norm))
            if not math.isfinite(norm):
                raise Diverged(f"the gradient of iteration {self.iteration + 1} is {norm}")
            self.optimizer.step()
            said["grad_norm"] = norm
        return said

    def _update_average(self) -> None:
        # A young average forgets faster, so that it does not remember the beginning.
        decay = min(self.settings.average, self.iteration / (self.iteration + 10))
        if not self.settings.average:
            decay = 0.0
        with torch.no_grad():
            pairs = zip(self.averaged.parameters(), self.network.parameters(), strict=True)
            for mean, value in pairs:
                mean.lerp_(value, 1 - decay)

    def validation_formulas(self) -> list[CNF]:
        """Give the formulas that are only validated on."""
        if self._validation is None:
            self._validation = self.source.validation(self.settings.seed, self.settings.validation)
            self._validation_graphs = [adjacency(cnf) for cnf in self._validation]
        return self._validation

    def baselines(self) -> dict[str, float]:
        """Measure the validation formulas under plain VSIDS and under w = 1, p = 1: mean costs."""
        formulas = self.validation_formulas()
        plain = measure([Task(cnf) for cnf in formulas], self.meter, chunk=4)
        unit = [
            Task(
                cnf,
                np.ones((1, cnf.variables), dtype=np.float32),
                np.ones((1, cnf.variables), dtype=bool),
            )
            for cnf in formulas
        ]
        costs = {
            "plain": _flat(plain),
            "unit": _flat(measure(unit, replace(self.meter, polarity="persistent"), chunk=4)),
        }
        for found in costs.values():
            self._remember(found)
        return {name: self._mean(found) for name, found in costs.items()}

    def validate(self) -> float:
        """Measure the validation formulas at the mode; keep the network if it is the best yet."""
        formulas = self.validation_formulas()
        tasks = []
        with torch.no_grad():
            for cnf, graph in zip(formulas, self._validation_graphs, strict=True):
                alone = batch([graph])
                rho, mu = self.averaged(alone)
                mu = self._gauged(mu, alone)
                weights, polarity = policy.mode(rho, mu, self.settings.sigma)
                tasks.append(Task(cnf, weights.numpy()[None], polarity.numpy()[None]))
        costs = _flat(measure(tasks, self.meter, chunk=4))
        self._remember(costs)
        cost = self._mean(costs)
        if self.best_cost is None or cost < self.best_cost:
            self.best_cost, self.best_iteration = cost, self.iteration
            self.best.load_state_dict(self.averaged.state_dict())
        return cost

    def _remember(self, costs: Tensor) -> None:
        known = costs[~torch.isnan(costs)]
        if known.numel():
            self.worst = max(float(known.max()), -math.inf if self.worst is None else self.worst)

    def _mean(self, costs: Tensor) -> float:
        """Mean over formulas [formulas]; a run that hit its limit costs as much as the worst.

        The worst is the most expensive run of all validations and baselines so far, not of this
        one alone, so that a validation is not the better for leaving hard formulas unfinished.
        Where every run hit its limit the mean is infinite, so that it is never taken for the best.
        """
        missing = torch.isnan(costs)
        if bool(missing.all()):
            return math.inf
        if self.worst is not None:
            costs = torch.where(missing, self.worst, costs)
        return float(costs.mean())

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything that the next iteration depends on: tensors, and plain numbers."""
        tensors: dict[str, Tensor] = {}
        for prefix, network in self._networks().items():
            tensors |= {prefix + name: value for name, value in network.state_dict().items()}
        for index, parameter in enumerate(self.network.parameters()):
            for name, value in self.optimizer.state.get(parameter, {}).items():
                tensors[f"optimizer.{index}.{name}"] = value
        numbers = {
            "iteration": self.iteration,
            "best_cost": self.best_cost,
            "best_iteration": self.best_iteration,
            "worst": self.worst,
        }
        return tensors, numbers

    def restore(self, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
        """Go back to a `state()`.

        Raises `KeyError`, `TypeError`, `ValueError` or `RuntimeError` for what is none, or is one
        of another shape.
        """
        if not all(bool(value.isfinite().all()) for value in tensors.values()):
            raise ValueError("some of its numbers are not finite")
        iteration, best_iteration = (_count(numbers[k]) for k in ("iteration", "best_iteration"))
        best_cost, worst = (_number(numbers[name]) for name in ("best_cost", "worst"))
        for prefix, network in self._networks().items():
            own = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
            network.load_state_dict(own)
        for index, parameter in enumerate(self.network.parameters()):
            prefix = f"optimizer.{index}."
            own = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
            if own:
                _check_moments(own, parameter)
                # Copies: the optimiser writes into its state, which may still be someone else's.
                self.optimizer.state[parameter] = {k: v.clone() for k, v in own.items()}
        self.iteration, self.best_iteration = iteration, best_iteration
        self.best_cost, self.worst = best_cost, worst

    def _networks(self) -> dict[str, GuidanceNetwork]:
        return {"network.": self.network, "average.": self.averaged, "best.": self.best}


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r} counts nothing")
    return value


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | None):
        raise TypeError(f"{value!r} is no number")
    return None if value is None else float(value)


def _check_moments(moments: dict[str, Tensor], parameter: Tensor) -> None:
    """Raise `ValueError` for a state of AdamW that does not belong to the parameter."""
    expected = {"step": torch.Size(), "exp_avg": parameter.shape, "exp_avg_sq": parameter.shape}
    found = {name: value.shape for name, value in moments.items()}
    if found != expected or any(v.dtype != parameter.dtype for v in moments.values()):
        raise ValueError(f"the optimiser's state has {found}, expected {expected}")


def _flat(costs: Iterable[list[float]]) -> Tensor:
    """Join the costs of all tasks: [runs] fp64."""
    return torch.tensor([cost for row in costs for cost in row], dtype=torch.float64)

import json
import math

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from satguide import policy, trainer
from satguide.cnf import CNF
from satguide.costs import Meter
from satguide.families.spec import Stream
from satguide.graph import adjacency, batch
from satguide.network import GuidanceNetwork, Shape
from satguide.trainer import Settings, Trainer

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.slow]

VARIABLES = 8
SETTINGS = Settings(
    shape=Shape(16, 2), formulas=8, samples=16, steps=4, minibatch=8, lr=5e-3, validation=20
)
SMALL = Settings(
    shape=Shape(4, 1), formulas=4, samples=6, steps=3, minibatch=3, validation=3, average=0.9
)


class Toy:
    """Formulas whose variables are rare or frequent, and mostly of one sign."""

    def draw(self, *seed):
        random = np.random.default_rng(seed)
        often = random.choice([2, 6], VARIABLES)
        signs = random.choice([-1, 1], VARIABLES)
        literals = []
        for v, (count, sign) in enumerate(zip(often.tolist(), signs.tolist(), strict=True), 1):
            literals += [v * sign] * count + [-v * sign]
        rows = [literals[i::7] for i in range(7)]  # no variable twice in a clause
        return CNF.from_clauses(VARIABLES, rows)

    def training(self, seed, first, count):
        return [self.draw(seed, 0, i) for i in range(first, first + count)]

    def validation(self, seed, count):
        return [self.draw(seed, 1, i) for i in range(count)]


def wanted(cnf):
    """What costs nothing: log w by how often a variable occurs, the sign that it mostly has."""
    of_sign = [
        np.bincount(sign * cnf.literals[sign * cnf.literals > 0], minlength=VARIABLES + 1)[1:]
        for sign in (1, -1)
    ]
    return np.where(sum(of_sign) > 5, 0.6, -0.4), of_sign[0] > of_sign[1]


def known_cost(tasks, meter, *, chunk=1):
    """Stand in for the solver: squared distance of log w to its target, 0.1 for a wrong sign."""
    for task in tasks:
        log_weight, polarity = np.zeros((1, VARIABLES)), np.ones((1, VARIABLES), dtype=bool)
        if task.weights is not None:
            log_weight, polarity = np.log(task.weights), task.polarity
        target, sign = wanted(task.cnf)
        distance = ((log_weight - target) ** 2).sum(1)
        yield (distance + 0.1 * (polarity != sign).sum(1)).tolist()


@pytest.fixture
def stub(monkeypatch):
    monkeypatch.setattr(trainer, "measure", known_cost)


def errors(run):
    """How far the trained policy is from the optimum, on formulas that it never saw."""
    distance, wrong = [], 0
    for cnf in Toy().validation(99, 20):
        with torch.no_grad():
            rho, mu = run.network(batch([adjacency(cnf)]))
        target, sign = wanted(cnf)
        distance += np.abs(mu.numpy() - target).tolist()
        wrong += int(((rho > 0).numpy() != sign).sum())
    return np.array(distance), wrong


def test_training_goes_down_towards_a_known_optimum(stub):
    run = Trainer(Toy(), Settings(**{**vars(SETTINGS), "lr": 1e-2, "warmup": 1}), Meter())
    start = run.validate()
    for _ in range(12):
        run.step()
    assert start > 2
    assert run.validate() < 0.4 * start


@pytest.mark.slow
def test_training_converges_to_a_known_optimum(stub):
    run = Trainer(Toy(), SETTINGS, Meter())
    costs = [run.step()["cost"] for _ in range(200)]
    distance, wrong = errors(run)
    # A sample costs (mu - target)^2 + sigma^2 a variable in the mean: the optimum is mu = target,
    # where 8 variables cost 0.08. What is left is the noise of a constant learning rate.
    assert distance.mean() < 0.03
    assert distance.max() < 0.1
    assert wrong == 0
    assert np.mean(costs[-50:]) == pytest.approx(0.085, abs=0.006)
    # The mode is w = exp(mu - sigma^2): it has no noise to pay for.
    assert run.validate() < 0.01


def without_times(record):
    return {k: v for k, v in record.items() if not k.endswith("_s")}


def steps(run, count):
    return [without_times(run.step()) for _ in range(count)]


def assert_same_state(one, two):
    (tensors, numbers), (others, other_numbers) = one.state(), two.state()
    assert numbers == other_numbers
    assert tensors.keys() == others.keys()
    for name, value in tensors.items():
        assert torch.equal(value, others[name]), name


def test_a_restored_training_goes_on_as_if_nothing_had_been(stub):
    straight, cut = (Trainer(Toy(), SMALL, Meter()) for _ in range(2))
    expected = steps(straight, 2), straight.validate(), steps(straight, 3), straight.validate()
    before = steps(cut, 2), cut.validate()
    tensors, numbers = cut.state()
    data, text = save({k: v.contiguous() for k, v in tensors.items()}), json.dumps(numbers)
    again = Trainer(Toy(), SMALL, Meter())
    again.restore(load(data), json.loads(text))
    assert_same_state(again, cut)
    steps(cut, 1)  # what is restored must not hang on what it was taken from
    assert (*before, steps(again, 3), again.validate()) == expected
    assert_same_state(again, straight)


def test_a_trainer_restored_from_a_living_one_is_its_own(stub):
    one, two = (Trainer(Toy(), SMALL, Meter()) for _ in range(2))
    steps(one, 1)
    two.restore(*one.state())
    kept = {name: value.clone() for name, value in one.state()[0].items()}
    steps(two, 1)
    for name, value in one.state()[0].items():
        assert torch.equal(value, kept[name]), name


def test_a_state_of_another_shape_is_refused(stub):
    tensors, numbers = Trainer(Toy(), SMALL, Meter()).state()
    other = Trainer(Toy(), SETTINGS, Meter())
    with pytest.raises(RuntimeError, match="size mismatch"):
        other.restore(tensors, numbers)


def test_a_trainer_leaves_the_global_random_numbers_alone():
    before = torch.get_rng_state()
    Trainer(Toy(), SMALL, Meter())
    assert torch.equal(torch.get_rng_state(), before)


def test_the_same_seed_gives_the_same_training_and_another_does_not(stub):
    one, two = (Trainer(Toy(), SMALL, Meter()) for _ in range(2))
    torch.rand(1)  # whatever else draws random numbers
    first = steps(one, 2)
    assert steps(two, 2) == first
    assert_same_state(one, two)
    other = Trainer(Toy(), Settings(**{**vars(SMALL), "seed": 1}), Meter())
    assert steps(other, 2) != first


@pytest.mark.slow
def test_costs_are_the_same_under_any_number_of_workers():
    found = []
    for jobs in (1, 2):
        run = Trainer(Stream("3sat", (30,)), SMALL, Meter(jobs=jobs))
        found.append((run.baselines(), steps(run, 2), run.validate()))
    assert found[0] == found[1]
    assert found[0][1][0]["cost"] > 1


def test_costs_reach_the_sample_that_caused_them(monkeypatch):
    # 30 samples go out in blocks; each must come back to its own row and formula.
    def measure(tasks, meter, *, chunk=1):
        for task in tasks:
            size = task.cnf.variables
            yield (100 * size + task.weights[:, 0] + task.polarity[:, -1]).tolist()

    monkeypatch.setattr(trainer, "measure", measure)
    formulas = [CNF.from_clauses(n, [list(range(1, n + 1))]) for n in (2, 5, 3)]
    whole = batch([adjacency(cnf) for cnf in formulas])
    run = Trainer(Toy(), Settings(**{**vars(SMALL), "samples": 30}), Meter())
    draws = policy.draw(torch.zeros(10), torch.zeros(10), 0.1, 30, torch.Generator().manual_seed(1))
    found = run._costs(formulas, whole, draws)
    for column, (first, last) in enumerate([(0, 1), (2, 6), (7, 9)]):
        weight = torch.exp(draws.log_weight[:, first])
        expected = 100 * (last - first + 1) + weight + draws.polarity[:, last]
        assert torch.allclose(found[:, column], expected)


def test_equal_costs_change_nothing(monkeypatch):
    def measure(tasks, meter, *, chunk=1):
        return ([41.3] * len(task.weights) for task in tasks)

    monkeypatch.setattr(trainer, "measure", measure)
    run = Trainer(Toy(), Settings(**{**vars(SMALL), "kl": 0.0}), Meter())
    before = {name: value.clone() for name, value in run.network.state_dict().items()}
    steps(run, 3)
    for name, value in run.network.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_the_record_counts_the_runs_that_hit_their_limit(monkeypatch):
    def measure(tasks, meter, *, chunk=1):
        return ([math.nan, 4.0, 1.0, 1.0, 1.0, 2.0] for _ in tasks)

    monkeypatch.setattr(trainer, "measure", measure)
    record = Trainer(Toy(), SMALL, Meter()).step()
    assert record["unfinished"] == 4
    assert record["cost"] == pytest.approx(13 / 6)  # the missing ones cost 4, the most of all


def test_baselines_are_plain_and_unit_weights(monkeypatch):
    def measure(tasks, meter, *, chunk=1):
        for task in tasks:
            if task.weights is None:
                yield [10.0]
            else:
                assert task.weights.tolist() == [[1.0] * VARIABLES]
                assert task.polarity.tolist() == [[True] * VARIABLES]
                yield [math.nan if task is tasks[0] else 6.0 + (task is tasks[1])]

    monkeypatch.setattr(trainer, "measure", measure)
    run = Trainer(Toy(), SMALL, Meter())
    found = run.baselines()
    # What was not solved costs 10, the most of both baselines.
    assert found == {"plain": 10.0, "unit": pytest.approx((10 + 7 + 6) / 3)}


def test_an_unfinished_validation_costs_the_most_that_any_run_did(stub, monkeypatch):
    run = Trainer(Toy(), SMALL, Meter())

    def validate(run, *costs):
        with monkeypatch.context() as patch:
            patch.setattr(trainer, "measure", lambda *_, **__: ([cost] for cost in costs))
            return run.validate()

    assert validate(run, math.nan, 4.0, 6.0) == pytest.approx((6 + 4 + 6) / 3)
    assert validate(run, 1.0, 2.0, 30.0) == 11
    # Left unfinished, the dear formula is not cheaper than it was when it was solved.
    assert validate(run, 1.0, 2.0, math.nan) == 11
    assert (run.worst, run.best_cost) == (30.0, pytest.approx(16 / 3))
    again = Trainer(Toy(), SMALL, Meter())
    tensors, numbers = run.state()
    again.restore(tensors, json.loads(json.dumps(numbers)))
    assert validate(again, math.nan, 3.0, 3.0) == validate(run, math.nan, 3.0, 3.0) == 12


def test_validation_keeps_the_best_network(stub, monkeypatch):
    run = Trainer(Toy(), SMALL, Meter())
    costs, networks = [5.0, math.nan, 3.0, 4.0, 3.0], []
    for cost in costs:
        run.step()
        networks.append({k: v.clone() for k, v in run.averaged.state_dict().items()})
        with monkeypatch.context() as patch:
            patch.setattr(trainer, "measure", lambda tasks, *_, c=cost, **__: [[c]] * len(tasks))
            found = run.validate()
        assert found == (math.inf if math.isnan(cost) else cost)  # nothing solved is never best
    assert (run.best_cost, run.best_iteration) == (3.0, 3)
    for name, value in run.best.state_dict().items():
        assert torch.equal(value, networks[2][name])


def test_validation_asks_for_the_mode_of_the_averaged_network(stub, monkeypatch):
    run = Trainer(Toy(), SMALL, Meter())
    steps(run, 3)
    asked = []
    monkeypatch.setattr(
        trainer, "measure", lambda tasks, *_, **__: asked.extend(tasks) or [[1.0]] * len(tasks)
    )
    run.validate()
    assert len(asked) == SMALL.validation
    for task, cnf in zip(asked, Toy().validation(SMALL.seed, 3), strict=True):
        assert task.cnf.literals.tolist() == cnf.literals.tolist()
        rho, mu = run.averaged.infer(batch([adjacency(cnf)]))
        assert np.allclose(task.weights, np.exp(mu.numpy() - 0.1**2), rtol=1e-5)
        assert task.polarity.tolist() == [(rho > 0).tolist()]


@pytest.mark.parametrize("average", [0.0, 0.05, 0.9])
def test_the_average_forgets_faster_while_it_is_young(stub, average):
    run = Trainer(Toy(), Settings(**{**vars(SMALL), "average": average, "lr": 0.05}), Meter())
    mean = [p.detach().clone() for p in run.network.parameters()]
    for k in range(1, 5):
        run.step()
        decay = min(average, k / (k + 10))
        mean = [
            decay * old + (1 - decay) * new.detach()
            for old, new in zip(mean, run.network.parameters(), strict=True)
        ]
        for ours, expected in zip(run.averaged.parameters(), mean, strict=True):
            assert torch.allclose(ours, expected, atol=1e-7)


def test_the_learning_rate_warms_up(stub):
    run = Trainer(Toy(), Settings(**{**vars(SMALL), "lr": 0.01, "warmup": 4}), Meter())
    found = []
    for _ in range(6):
        run.step()
        found.append(run.optimizer.param_groups[0]["lr"])
    assert found == pytest.approx([0.0025, 0.005, 0.0075, 0.01, 0.01, 0.01])


def test_gradients_are_clipped_and_every_formula_is_used_in_a_pass(stub, monkeypatch):
    run = Trainer(Toy(), Settings(**{**vars(SMALL), "steps": 4, "minibatch": 2}), Meter())
    used, clips = [], []
    batches, clip = trainer.batch, torch.nn.utils.clip_grad_norm_
    monkeypatch.setattr(trainer, "batch", lambda graphs: used.append(graphs) or batches(graphs))
    monkeypatch.setattr(
        torch.nn.utils, "clip_grad_norm_", lambda p, norm: clips.append(norm) or clip(p, norm)
    )
    run.step()
    whole, *parts = used
    assert [len(part) for part in parts] == [2] * 4
    for one, two in (parts[:2], parts[2:]):
        assert {id(g) for g in [*one, *two]} == {id(g) for g in whole}
    assert clips == [1.0] * 4


def test_a_training_may_begin_with_a_network(stub):
    init = GuidanceNetwork(SMALL.shape)
    with torch.no_grad():
        init.read_out[-1].bias.copy_(torch.tensor([0.5, -0.25]))
    run = Trainer(Toy(), SMALL, Meter(), init=init)
    for network in (run.network, run.averaged, run.best):
        for name, value in network.state_dict().items():
            assert torch.equal(value, init.state_dict()[name])


def test_without_polarity_the_polarity_is_not_learnt(monkeypatch):
    given = []

    def measure(tasks, meter, *, chunk=1):
        given.append(meter.polarity)
        return known_cost(tasks, meter)

    monkeypatch.setattr(trainer, "measure", measure)
    run = Trainer(Toy(), SMALL, Meter(polarity="none"))
    steps(run, 1)
    assert given == ["none"]
    # The last layer begins at zero, so that only its row for mu has moved.
    last = run.network.read_out[-1]
    assert not last.weight[0].any()
    assert not last.bias[0].any()
    assert last.weight[1].any()


def test_settings_by_name():
    found = Settings(shape=Shape(8, 3), kl=0.5).as_dict()
    assert (found["width"], found["layers"], found["kl"], found["sigma"]) == (8, 3, 0.5, 0.1)
    assert "shape" not in found
    assert json.loads(json.dumps(found)) == found

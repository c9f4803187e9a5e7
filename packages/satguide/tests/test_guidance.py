import numpy as np
import pytest
import torch

from satguide.checkpoint import Checkpoint
from satguide.cnf import CNF
from satguide.families import threesat
from satguide.graph import adjacency, batch
from satguide.guidance import guide, measures, outside
from satguide.network import GuidanceNetwork, Shape

pytestmark = pytest.mark.usefixtures("one_thread")


def constant(rho, mu):
    """A checkpoint that says the same of every variable."""
    network = GuidanceNetwork(Shape(4, 1))
    with torch.no_grad():
        network.read_out[-1].bias.copy_(torch.tensor([rho, mu]))
    return Checkpoint(network.requires_grad_(False), sigma=0.1)


def test_guidance_is_the_mode_of_the_policy(checkpoint):
    cnf = threesat.generate(40, 1)
    graph = batch([adjacency(cnf)])
    network = GuidanceNetwork(checkpoint.network.shape)
    network.load_state_dict(checkpoint.network.state_dict())
    network.requires_grad_(False)
    network.read_out[-1].bias[0] -= network(graph)[0].median()  # so that both polarities occur
    found = guide(Checkpoint(network, 0.1), cnf)
    rho, mu = network(graph)
    assert (found.weights.dtype, found.polarity.dtype) == (np.float32, np.bool_)
    assert np.allclose(found.weights, np.exp(mu.numpy() - 0.01), rtol=1e-5)
    assert found.polarity.tolist() == (rho > 0).tolist()
    assert len(set(found.polarity.tolist())) == 2


@pytest.mark.parametrize(
    ("mu", "weight"), [(-90.0, 1e-3), (-7.0, 1e-3), (0.01, 1.0), (3.0, 19.886), (4.0, 32.0)]
)
def test_weights_stay_within_what_every_back_end_can_say(mu, weight):
    # exp(3 - 0.1^2) = 19.886
    cnf = CNF.from_clauses(2, [[1, -2]])
    assert guide(constant(1.0, mu), cnf).weights == pytest.approx([weight] * 2, rel=1e-4)
    assert guide(constant(1.0, 200.0), cnf).weights.tolist() == [32.0] * 2  # exp overflows


@pytest.mark.parametrize("rho", [-3.0, 3.0])
def test_a_variable_in_no_clause_gets_weight_one_and_true(rho):
    found = guide(constant(rho, 1.0), CNF.from_clauses(4, [[1, -3], []]))
    assert found.weights[[1, 3]].tolist() == [1.0, 1.0]
    assert found.polarity[[1, 3]].tolist() == [True, True]
    assert found.weights[[0, 2]] == pytest.approx([np.exp(0.99)] * 2)
    assert found.polarity[[0, 2]].tolist() == [rho > 0] * 2


@pytest.mark.parametrize(("variables", "clauses"), [(0, []), (0, [[]]), (3, []), (1, [[1, -1]])])
def test_degenerate_formulas_are_guided(checkpoint, variables, clauses):
    found = guide(checkpoint, CNF.from_clauses(variables, clauses))
    assert found.weights.shape == found.polarity.shape == (variables,)
    assert np.isfinite(found.weights).all()


def test_guiding_twice_gives_the_same(checkpoint):
    cnf = threesat.generate(30, 2)
    one, two = guide(checkpoint, cnf), guide(checkpoint, cnf)
    assert one.weights.tolist() == two.weights.tolist()
    assert one.polarity.tolist() == two.polarity.tolist()


def test_measures_of_a_formula():
    cnf = CNF.from_clauses(4, [[1, 2, 3], [-1], [2, -3, 4], [1, 2, 3, 4, -4]])
    assert measures(cnf) == {
        "variables": 4,
        "clauses_per_variable": 1.0,
        "literals_per_clause": 3.0,
    }
    empty = {"variables": 0, "clauses_per_variable": 0.0, "literals_per_clause": 0.0}
    assert measures(CNF.from_clauses(0, [])) == empty


SEEN = {
    "variables": [50, 100],
    "clauses_per_variable": [4.0, 5.0],
    "literals_per_clause": [3.0, 3.0],
}


@pytest.mark.parametrize(
    ("variables", "clauses", "length", "words"),
    [
        (100, 450, 3, None),
        (1000, 4500, 3, None),  # larger than in training is what guidance is for
        (100, 361, 3, None),  # within the tenth of slack
        (100, 549, 3, None),
        (100, 350, 3, "3.5 clauses per variable, in training 4 to 5"),
        (100, 560, 3, "5.6 clauses per variable, in training 4 to 5"),
        (100, 450, 5, "5 literals per clause, in training 3 to 3"),
        (100, 450, 2, "2 literals per clause, in training 3 to 3"),
    ],
)
def test_a_formula_outside_of_the_training_range_is_told(
    checkpoint, variables, clauses, length, words
):
    row = list(range(1, length + 1))
    cnf = CNF.from_clauses(variables, [row] * clauses)
    assert outside(Checkpoint(checkpoint.network, 0.1, {"range": SEEN}), cnf) == words


def test_a_checkpoint_that_remembers_no_range_tells_nothing(checkpoint):
    assert outside(checkpoint, CNF.from_clauses(1, [[1]])) is None

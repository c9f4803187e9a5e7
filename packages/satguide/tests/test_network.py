import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from satguide.cnf import CNF
from satguide.graph import adjacency, batch
from satguide.network import GuidanceNetwork, Shape, parameters

pytestmark = pytest.mark.usefixtures("one_thread")

VARIABLES = 6
literals = st.integers(-VARIABLES, VARIABLES).filter(bool)
formulas = st.lists(st.lists(literals, max_size=4), max_size=12)
few = settings(max_examples=12)


@pytest.fixture(scope="module")
def network(checkpoint):
    return checkpoint.network


def ask(network, clauses, variables=VARIABLES):
    rho, mu = network(batch([adjacency(CNF.from_clauses(variables, clauses))]))
    return torch.stack([rho, mu], 1)


def dense(weights, layers, variables, clauses):
    """The sheet's network written down as it is printed, node by node, without a graph library.

    `weights` are the network's parameters by name. Returns the literals' features, as a dictionary
    by DIMACS literal, and the answers [variables, 2].
    """

    def linear(name, x):
        return weights[f"{name}.weight"] @ x + weights[f"{name}.bias"]

    def mlp(name, x):
        hidden = linear(f"{name}.0", x)
        return linear(f"{name}.2", hidden / (1 + torch.exp(-hidden)))

    def norm(name, x):
        spread = torch.sqrt(((x - x.mean()) ** 2).mean() + 1e-5)
        return weights[f"{name}.weight"] * (x - x.mean()) / spread + weights[f"{name}.bias"]

    def mean(rows):
        zero = torch.zeros_like(weights["encode.3.bias"])
        return sum(rows, zero) / max(1, len(rows))

    def encode(degree):
        feature = torch.log(torch.tensor([1.0 + degree], dtype=torch.float64))
        return norm("encode.3", mlp("encode", feature))

    edges = [set(clause) for clause in clauses]
    signed = [s * v for v in range(1, variables + 1) for s in (1, -1)]
    standing_in = {x: [i for i, clause in enumerate(edges) if x in clause] for x in signed}
    literal = {x: encode(len(standing_in[x])) for x in signed}
    clause = [encode(len(own)) for own in edges]
    for k in range(layers):
        name = f"rounds.{k}"
        heard = [mean([literal[x] for x in sorted(own)]) for own in edges]
        clause = [
            norm(f"{name}.clause_norm", c + mlp(f"{name}.clause", torch.cat([c, h])))
            for c, h in zip(clause, heard, strict=True)
        ]
        heard = {x: mean([clause[i] for i in standing_in[x]]) for x in signed}
        literal = {
            x: norm(
                f"{name}.literal_norm",
                own + mlp(f"{name}.literal", torch.cat([own, literal[-x], heard[x]])),
            )
            for x, own in literal.items()
        }
    answers = [
        mlp("read_out", torch.cat([literal[-v], literal[v]])) for v in range(1, variables + 1)
    ]
    out = torch.stack(answers)
    return literal, torch.stack([out[:, 0].clamp(-8, 8), out[:, 1]], 1)


def doubles(network):
    return {k: v.detach().double().requires_grad_() for k, v in network.state_dict().items()}


@settings(max_examples=5)
@given(formulas)
def test_the_network_is_the_sheets(network, clauses):
    _, expected = dense(doubles(network), 2, VARIABLES, clauses)
    assert torch.allclose(ask(network, clauses).double(), expected, atol=2e-5)


def test_the_gradient_of_every_parameter_is_that_of_the_dense_network(network):
    clauses = [[1, -2, 3], [-1, 2], [2, 3, -4], [4], [-3, -4, 5, 1], [2, 2, -5], [6, -6]]
    trained = GuidanceNetwork(network.shape)
    trained.load_state_dict(network.state_dict())
    pull = torch.linspace(-1, 2, 2 * VARIABLES).reshape(VARIABLES, 2)
    (ask(trained, clauses) * pull).sum().backward()
    weights = doubles(network)
    (dense(weights, 2, VARIABLES, clauses)[1] * pull).sum().backward()
    for name, parameter in trained.named_parameters():
        largest = float(weights[name].grad.abs().max())
        assert largest > 0, name
        assert torch.allclose(parameter.grad.double(), weights[name].grad, atol=1e-5 * largest), (
            name
        )


@few
@given(formulas, st.permutations(range(1, VARIABLES + 1)))
def test_renaming_variables_permutes_the_answers(network, clauses, names):
    renamed = [[names[x - 1] if x > 0 else -names[-x - 1] for x in clause] for clause in clauses]
    there = ask(network, renamed)[torch.tensor(names) - 1]
    assert torch.allclose(there, ask(network, clauses), atol=1e-5)


@few
@given(formulas, st.randoms(use_true_random=False))
def test_the_order_of_clauses_and_literals_means_nothing(network, clauses, random):
    shuffled = [random.sample(clause, len(clause)) for clause in clauses]
    random.shuffle(shuffled)
    assert torch.allclose(ask(network, shuffled), ask(network, clauses), atol=1e-5)


@few
@given(formulas, st.integers(1, VARIABLES))
def test_negating_a_variable_swaps_the_roles_of_its_literals(network, clauses, variable):
    # What the other variables are told is the same; the variable itself is read out with its two
    # halves, the features of its literals in the formula as it was, exchanged.
    halves = []
    hook = network.read_out.register_forward_pre_hook(lambda _, given: halves.append(given[0]))
    try:
        before = ask(network, clauses)
    finally:
        hook.remove()
    negated = [[-x if abs(x) == variable else x for x in clause] for clause in clauses]
    after = ask(network, negated)
    first, second = halves[0][variable - 1].chunk(2)
    swapped = network.read_out(torch.cat([second, first])).clone()
    swapped[0] = swapped[0].clamp(-8, 8)
    expected = before.clone()
    expected[variable - 1] = swapped
    assert torch.allclose(after, expected, atol=1e-5)


def test_the_two_halves_are_not_read_alike(network):
    # Else the test before would hold of a network that could not learn a polarity.
    (one,), (other,) = ask(network, [[1], [1]], 1), ask(network, [[-1], [-1]], 1)
    assert (one - other).abs().min() > 1e-3


@few
@given(st.lists(formulas, min_size=2, max_size=4))
def test_a_batch_says_of_each_formula_what_it_says_of_it_alone(network, many):
    graphs = [adjacency(CNF.from_clauses(VARIABLES, clauses)) for clauses in many]
    together = torch.stack(network(batch(graphs)), 1)
    alone = torch.cat([ask(network, clauses) for clauses in many])
    assert torch.allclose(together, alone, atol=1e-5)


@few
@given(formulas, st.integers(1, 30))
def test_inference_in_blocks_of_any_size_is_the_forward_pass(network, clauses, rows):
    graph = batch([adjacency(CNF.from_clauses(VARIABLES, clauses))])
    rho, mu = network.infer(graph, rows=rows)
    assert torch.allclose(torch.stack([rho, mu], 1), ask(network, clauses), atol=1e-5)


@pytest.mark.parametrize("clauses", [[], [[]]])
def test_a_formula_without_variables_has_no_answers(network, clauses):
    graph = batch([adjacency(CNF.from_clauses(0, clauses))])
    for rho, mu in (network(graph), network.infer(graph)):
        assert rho.shape == mu.shape == (0,)


def test_a_new_network_says_that_nothing_is_known():
    new = GuidanceNetwork(Shape(width=16, layers=3))
    assert not ask(new, [[1, 2], [-1, 3, 4], [5, 6]]).any()


def test_the_polarity_logit_is_clamped_and_the_log_weight_is_not(network):
    loud = GuidanceNetwork(network.shape)
    loud.load_state_dict(network.state_dict())
    with torch.no_grad():
        loud.read_out[-1].bias.copy_(torch.tensor([1e3, 1e3]))
    rho, mu = ask(loud, [[1, 2], [-3]]).T
    assert rho.tolist() == [8.0] * VARIABLES
    assert (mu > 900).all()


@pytest.mark.parametrize(("width", "layers"), [(1, 0), (8, 2), (32, 4)])
def test_the_number_of_parameters(width, layers):
    d = width
    encoder = (2 * d + 2 * d) + (2 * d * d + d) + 2 * d
    a_round = (2 * d * d + d + d * d + d) + (3 * d * d + d + d * d + d) + 4 * d
    read_out = (4 * d * d + 2 * d) + (4 * d + 2)
    network = GuidanceNetwork(Shape(width, layers))
    assert parameters(network) == encoder + layers * a_round + read_out


@pytest.mark.parametrize(("width", "layers"), [(0, 1), (-3, 2), (4, -1)])
def test_no_network_of_an_impossible_shape(width, layers):
    with pytest.raises(ValueError, match="no network"):
        Shape(width, layers)


def test_answers_are_the_same_numbers_every_time(network):
    random = np.random.default_rng(3)
    clauses = (random.integers(1, 200, (800, 3)) * random.choice([-1, 1], (800, 3))).tolist()
    one, two = ask(network, clauses, 200), ask(network, clauses, 200)
    assert torch.equal(one, two)

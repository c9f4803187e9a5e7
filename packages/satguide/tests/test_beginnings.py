"""Beyond the paper, a training may begin with whitened features, symmetry, centring, a prior."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from papercuts.errors import DataError, InputError
from satguide import clasp, grpo, prior
from satguide.backends import Guidance
from satguide.cnf import CNF
from satguide.families import threesat
from satguide.families.spec import Stream
from satguide.graph import adjacency, batch
from satguide.network import WHITE, GuidanceNetwork, Shape
from satguide.trainer import Settings

FORMULAS = [threesat.generate(20 + size, size) for size in range(4)]


def network(symmetric=False):
    torch.manual_seed(3)
    made = GuidanceNetwork(Shape(8, 2, symmetric))
    with torch.no_grad():
        made.read_out[-1].weight.normal_()
    return made


def read_out_inputs(made, graph):
    """What the first layer of the read-out sees, once for each order of the literals."""
    seen = []
    handle = made.read_out[0].register_forward_hook(lambda *given: seen.append(given[2]))
    made(graph)
    handle.remove()
    return torch.cat(seen).detach().double()


@pytest.mark.parametrize("symmetric", [False, True])
def test_whitening_gives_directions_equal_spread_as_far_as_it_may_enlarge_them(symmetric):
    graph = batch([adjacency(cnf) for cnf in FORMULAS])
    made = network(symmetric)
    before = made.read_out[0]
    inputs = []
    handle = before.register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
    made(graph)
    handle.remove()
    x = torch.cat(inputs).detach().double()
    values = torch.linalg.eigvalsh(torch.cov(x.T, correction=0)).flip(0)
    made.whiten(graph, torch.Generator().manual_seed(1))
    hidden = read_out_inputs(made, graph)
    found = torch.linalg.eigvalsh(torch.cov(hidden.T, correction=0)).flip(0)
    expected = 4 * values / (values + WHITE * values[0])  # twice the whitened ones
    assert torch.allclose(found, expected, atol=2e-3)
    assert hidden.mean(0).abs().max() < 1e-3


def test_a_symmetric_network_turns_the_polarity_of_a_negated_variable_and_nothing_else():
    made = network(symmetric=True)
    cnf = FORMULAS[1]
    literals = cnf.literals.copy()
    literals[np.abs(literals) == 5] *= -1
    turned = CNF(cnf.variables, literals, cnf.starts)
    (rho, mu), (rho_turned, mu_turned) = (
        made.infer(batch([adjacency(formula)])) for formula in (cnf, turned)
    )
    signs = torch.ones(cnf.variables)
    signs[4] = -1
    assert torch.allclose(rho_turned, signs * rho, atol=1e-6)
    assert torch.allclose(mu_turned, mu, atol=1e-6)
    assert rho[4].abs() > 1e-3  # so that the test can fail


def test_centring_takes_each_formulas_mean_away():
    graph = batch([adjacency(cnf) for cnf in FORMULAS])
    mu = torch.arange(graph.variables, dtype=torch.float32)
    found = grpo.centred(mu, graph).split([cnf.variables for cnf in FORMULAS])
    for piece, whole in zip(found, mu.split([c.variables for c in FORMULAS]), strict=True):
        assert torch.allclose(piece, whole - whole.mean())


def test_weights_times_a_number_are_the_same_guidance():
    cnf = threesat.generate(60, 4)
    prepared = clasp.prepare(cnf)
    weights = np.where(np.arange(60) % 3 == 0, 2.0, 0.5).astype(np.float32)
    polarity = np.arange(60) % 2 == 0
    counts = {
        clasp.solve(prepared, Guidance(factor * weights, polarity)).decisions
        for factor in (0.5, 1.0, 4.0)
    }
    assert len(counts) == 1


def test_a_prior_is_read_back_from_what_weights_writes(tmp_path):
    path = tmp_path / "prior.jsonl"
    rows = [{"variable": v, "weight": w, "polarity": None} for v, w in ((2, 0.5), (1, 4))]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert prior.read_table(str(path)).tolist() == pytest.approx([np.log(4), np.log(0.5)])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"variable": 1, "weight": 0}', "1: no weight of a variable"),
        ('{"variable": 1, "weight": 1}\n{"variable": true, "weight": 1}', "2: no weight"),
        ('{"variable": 1, "weight": 1}\n{"variable": 1, "weight": 2}', "2: variable 1 stands"),
        ('{"variable": 1, "weight": 1}\n{"variable": 3, "weight": 2}', "without a gap"),
        ("", "without a gap"),
    ],
)
def test_a_prior_that_is_none_is_said_so(tmp_path, text, said):
    path = tmp_path / "prior.jsonl"
    path.write_text(text)
    with pytest.raises(DataError, match=said):
        prior.read_table(str(path))


def test_a_weight_that_no_float_holds_is_none(tmp_path):
    path = tmp_path / "prior.csv"
    path.write_text(f"variable,weight\n1,{10**400}\n")
    with pytest.raises(DataError, match="2: no weight of a variable"):
        prior.read_table(str(path))


@pytest.mark.slow
def test_a_prior_has_a_weight_for_each_variable():
    source = Stream.parse("gen:3sat:20")
    with pytest.raises(DataError, match="has 20 variables, the prior 7"):
        prior.fit(network(), prior.Table(np.zeros(7, dtype=np.float32)), source, Settings())


def test_a_folder_has_the_weights_of_each_formula(tmp_path):
    for name, weight in (("a", 2), ("b", 8)):
        row = {"variable": 1, "weight": weight}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    tables = prior.read(str(tmp_path))
    for name, weight in (("x/a.cnf", 2), ("b.CNF.gz", 8), ("b.dimacs", 8)):
        assert tables.of(CNF.from_clauses(1, [[1]], name=name)).tolist() == [
            pytest.approx(np.log(weight))
        ]
    with pytest.raises(InputError, match=r"c\.jsonl"):
        tables.of(CNF.from_clauses(1, [[1]], name="c.cnf"))
    with pytest.raises(DataError, match="has 2 variables, the prior 1"):
        tables.of(CNF.from_clauses(2, [[1]], name="a.cnf"))
    before = prior.origin(str(tmp_path))
    assert before["name"] == tmp_path.name
    (tmp_path / "b.jsonl").write_text('{"variable": 1, "weight": 9}\n')
    assert prior.origin(str(tmp_path)) != before


class OneFormula:
    """A family of one formula, so that a table of weights means something."""

    def training(self, *numbers):
        return [FORMULAS[2]] * numbers[2]

    validation = None


@pytest.mark.slow
def test_the_network_takes_over_what_it_can_tell_from_the_structure(monkeypatch):
    monkeypatch.setattr(prior, "STEPS", 60)
    degrees = FORMULAS[2].occurrences()
    told = np.log(degrees / degrees.mean()).astype(np.float32)
    torch.manual_seed(0)
    assert (
        prior.fit(GuidanceNetwork(Shape(8, 1)), prior.Table(told), OneFormula(), Settings()) > 0.95
    )


@pytest.mark.slow
def test_tables_of_several_formulas_are_taken_over(tmp_path, monkeypatch):
    monkeypatch.setattr(prior, "STEPS", 80)
    monkeypatch.setattr(prior, "_FORMULAS", 2)
    named = [replace(cnf, name=f"{k}.cnf") for k, cnf in enumerate(FORMULAS[:2])]
    for k, cnf in enumerate(named):
        rows = [{"variable": v, "weight": float(w)} for v, w in enumerate(cnf.occurrences() + 1, 1)]
        (tmp_path / f"{k}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    class Both:
        def training(self, *_):
            return named

    torch.manual_seed(0)
    made = GuidanceNetwork(Shape(8, 1))
    assert prior.fit(made, prior.read(str(tmp_path)), Both(), Settings()) > 0.95

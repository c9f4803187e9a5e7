"""`satguide explain`: cores, backbones and correlations against brute force and closed forms."""

import itertools
import json
import math
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from satguide import explanation as e
from satguide.backends import Guidance, backend
from satguide.cli import app
from satguide.cnf import CNF
from satguide.families import colouring, threesat
from satguide.plot import _groups


def random_cnf(seed):
    random = np.random.default_rng(seed)
    variables = int(random.integers(2, 10))
    clauses = []
    for _ in range(int(random.integers(1, 5 * variables))):
        chosen = random.choice(variables, min(variables, int(random.integers(1, 4))), replace=False)
        clauses.append([int(v + 1) * int(random.choice([1, -1])) for v in chosen])
    return CNF.from_clauses(variables, clauses)


def models(cnf):
    """All assignments that satisfy a formula, by trying each: [models, variables]."""
    every = np.array(list(itertools.product([False, True], repeat=cnf.variables)))
    good = np.ones(len(every), dtype=bool)
    for clause in cnf:
        true = [every[:, abs(literal) - 1] == (literal > 0) for literal in clause]
        good &= np.any(true, axis=0)
    return every[good]


def satisfiable(cnf, name):
    solver = backend(name)
    return solver.solve(solver.prepare(cnf), None).satisfiable


def guidance(variables, seed=0):
    random = np.random.default_rng(seed)
    weights = random.lognormal(0, 0.5, variables).astype(np.float32)
    return Guidance(weights, random.random(variables) < 0.5)


def test_the_backbone_is_what_all_models_share():
    kinds = set()
    for seed in range(60):
        cnf = random_cnf(seed)
        every = models(cnf)
        if not len(every):
            with pytest.raises(ValueError, match="unsatisfiable"):
                e.backbone_of(cnf)
            continue
        expected = np.where(every.all(axis=0), 1, np.where(~every.any(axis=0), -1, 0))
        assert e.backbone_of(cnf).tolist() == expected.tolist()
        kinds |= set(expected.tolist())
    assert kinds == {-1, 0, 1}


def test_a_core_is_unsatisfiable_and_there_is_one_exactly_where_no_model_is():
    sizes = []
    for seed in range(60):
        cnf = random_cnf(seed)
        core = e.unsatisfiable_core(cnf)
        assert (core is None) == bool(len(models(cnf)))
        if core is not None:
            clauses = list(cnf)
            part = CNF.from_clauses(cnf.variables, [clauses[i] for i in core.tolist()])
            assert not len(models(part))
            assert sorted(set(core.tolist())) == core.tolist()
            sizes.append(len(core) / len(cnf))
    assert min(sizes) < 0.5


def test_the_core_of_a_larger_formula_is_refuted_by_another_solver():
    cnf = colouring.generate(60, 3)
    core = e.unsatisfiable_core(cnf)
    clauses = list(cnf)
    part = CNF.from_clauses(cnf.variables, [clauses[i] for i in core.tolist()])
    assert not satisfiable(part, "cadical195")
    assert len(core) < len(cnf)


def test_a_core_of_a_planted_contradiction_is_that_contradiction():
    other = [[v, v + 1, -(v + 2)] for v in range(3, 40)]
    clauses = [*other[:20], [1, 2], [-1, 2], [1, -2], [-1, -2], *other[20:]]
    found = e.explain(CNF.from_clauses(42, clauses), guidance(42))
    assert found.core_clauses.tolist() == [20, 21, 22, 23]
    assert np.flatnonzero(found.core).tolist() == [0, 1]
    assert found.backbone is None
    summary = found.summary()
    weights = found.guidance.weights.astype(float)
    rest = weights[2:41]  # variable 42 occurs nowhere
    assert summary["core_weight_mean"] == pytest.approx(weights[:2].mean())
    assert summary["core_rest_weight_mean"] == pytest.approx(rest[found.degree[2:41] > 0].mean())


def test_an_empty_clause_is_a_core():
    assert e.unsatisfiable_core(CNF.from_clauses(2, [[1], [], [2]])).tolist() == [1]


def test_pearson_is_numpys_and_point_biserial_for_members():
    random = np.random.default_rng(1)
    x, y = random.normal(size=50), random.normal(size=50)
    assert e.pearson(x, y) == pytest.approx(np.corrcoef(x, y)[0, 1])
    member = x > 0.3
    m1, m0 = y[member].mean(), y[~member].mean()
    share = member.mean()
    biserial = (m1 - m0) / y.std() * math.sqrt(share * (1 - share))
    assert e.pearson(member, y) == pytest.approx(biserial)
    assert e.pearson(np.full(5, 0.1), np.arange(5)) is None
    assert e.pearson(np.array([1.0]), np.array([2.0])) is None


def test_ranks_share_ties_and_give_spearman():
    assert e.ranks(np.array([3.0, 1.0, 3.0, 2.0, 3.0])).tolist() == [4, 1, 4, 2, 4]
    random = np.random.default_rng(2)
    x = random.permutation(30).astype(float)
    y = x + random.permutation(30)
    y += np.arange(30) / 1000  # no ties: the textbook's formula holds
    d = e.ranks(x) - e.ranks(y)
    expected = 1 - 6 * (d @ d) / (30 * (30**2 - 1))
    assert e.pearson(e.ranks(x), e.ranks(y)) == pytest.approx(expected)
    assert e.pearson(e.ranks(x), e.ranks(np.exp(x))) == pytest.approx(1)


def test_auc_counts_the_pairs():
    random = np.random.default_rng(3)
    score = random.integers(0, 8, 40).astype(float)
    member = random.random(40) < 0.4
    pairs = [
        (a > b) + 0.5 * (a == b) for a in score[member].tolist() for b in score[~member].tolist()
    ]
    assert e.auc(score, member) == pytest.approx(np.mean(pairs))
    assert e.auc(score, np.zeros(40, dtype=bool)) is None


def test_the_summary_is_the_statistics_of_its_variables():
    cnf = threesat.generate(30, 2)
    found = e.explain(cnf, guidance(30))
    rows = list(found.per_variable())
    log_w = np.log([row["weight"] for row in rows])
    summary = found.summary()
    degree = [row["degree"] for row in rows]
    assert degree == [sum(abs(x) == v for c in cnf for x in c) for v in range(1, 31)]
    assert summary["degree_pearson"] == pytest.approx(np.corrcoef(degree, log_w)[0, 1])
    assert summary["verdict"] == ("yes" if satisfiable(cnf, "minisat22") else "no")


def test_polarity_agrees_with_the_backbone_where_it_is_told_so():
    cnf = CNF.from_clauses(4, [[1], [-2], [3], [1, 4]])
    told = Guidance(np.array([1, 2, 3, 4], np.float32), np.array([True, True, True, True]))
    found = e.explain(cnf, told)
    assert found.backbone.tolist() == [1, -1, 1, 0]
    assert found.summary()["backbone_polarity_agreement"] == pytest.approx(2 / 3)
    assert found.summary()["backbone_variables"] == 3
    left_out = e.explain(cnf, told, backbone=False)
    assert left_out.backbone is None
    assert left_out.complete(backbone=False)


def test_a_variable_that_occurs_nowhere_is_no_evidence():
    cnf = CNF.from_clauses(9, [[1, 2], [-1, 2], [3, -2, 1]])
    found = e.explain(cnf, guidance(9))
    used = found.degree > 0
    expected = np.corrcoef(found.degree[used], np.log(found.guidance.weights[used]))[0, 1]
    assert found.summary()["degree_pearson"] == pytest.approx(expected, abs=1e-6)
    assert found.backbone.tolist() == [0, 1] + [0] * 7


def test_past_the_limit_the_answer_is_left_open(checkpoint_file, tmp_path, capfd):
    cnf = threesat.generate(30, 2)
    found = e.explain(cnf, guidance(30), timeout_s=-1.0)
    assert (found.satisfiable, found.core, found.backbone) == (None, None, None)
    assert found.summary()["verdict"] == "undecided"
    path = tmp_path / "hard.cnf"
    assert app.run(["gen", "hitag2", "--size", "8", "-o", str(path)]) == 0
    capfd.readouterr()
    assert app.run(["explain", str(checkpoint_file), str(path), "--timeout", "0.05"]) == 1
    said = capfd.readouterr()
    assert json.loads(said.out)["verdict"] == "undecided"
    assert "--timeout left 1 of 1 formulas open" in said.err


def test_the_command_prints_formulas_or_variables(checkpoint_file, tmp_path, capfd):
    path = tmp_path / "f.cnf"
    assert app.run(["gen", "3sat", "--size", "20", "--count", "2", "-o", str(path)]) == 0
    capfd.readouterr()
    model = str(checkpoint_file)
    assert app.run(["explain", model, str(path)]) == 0
    summaries = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [summary["formula"] for summary in summaries] == [f"{path}#1", f"{path}#2"]
    assert [summary["satguide"]["model"] for summary in summaries] == [model, model]
    assert app.run(["explain", model, str(path), "--variables", "--format", "csv"]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 1 + 40


def test_what_is_found_is_kept_where_the_time_ends(monkeypatch):
    """A core that cannot be made smaller in time is still a core."""
    cnf, calls = colouring.generate(60, 3), []
    whole = e.call

    def once(*given, **limit):
        calls.append(given)
        if len(calls) > 1:
            raise e.OverTimeError
        return whole(*given, **limit)

    monkeypatch.setattr(e, "call", once)
    found = e.explain(cnf, guidance(cnf.variables), timeout_s=60)
    clauses = list(cnf)
    part = CNF.from_clauses(cnf.variables, [clauses[i] for i in found.core_clauses.tolist()])
    assert not satisfiable(part, "cadical195")
    assert len(calls) == 2


def test_no_picture_of_polarities_that_were_not_learnt():
    cnf = CNF.from_clauses(4, [[1], [-2], [3], [1, 4]])
    for told in (True, False):
        found = e.explain(cnf, guidance(4), told=told)
        names = [name for name, *_ in _groups(found, found.degree > 0)]
        assert any("polarity" in name for name in names) == told
    assert names == ["not in the backbone", "backbone"]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_it_at_once(number, code, checkpoint_file, tmp_path):
    path = tmp_path / "hard.cnf"
    assert app.run(["gen", "hitag2", "--size", "6", "-o", str(path)]) == 0
    process = subprocess.Popen(
        [sys.executable, "-m", "satguide", "explain", str(checkpoint_file), str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 30
    below = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while len(below.read_text().split()) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(2)  # for the solver to be at work
    process.send_signal(number)
    out, err = process.communicate(timeout=5)
    word = "interrupted" if code == 130 else "terminated"
    assert (process.returncode, out, err.splitlines()[-1]) == (code, "", f"satguide: {word}")


@pytest.mark.slow
def test_the_command_draws_one_formula(checkpoint_file, tmp_path):
    path, picture, model = tmp_path / "f.cnf", tmp_path / "p.png", str(checkpoint_file)
    assert app.run(["gen", "3sat", "--size", "20", "--count", "2", "-o", str(path)]) == 0
    assert app.run(["explain", model, str(path), "--plot", str(picture)]) == 2
    picture.unlink()  # of the first formula, before the second was seen
    assert app.run(["gen", "3sat", "--size", "20", "-o", str(path), "--force"]) == 0
    assert app.run(["explain", model, str(path), "--plot", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert app.run(["explain", model, str(path), "--plot", str(picture)]) == 73

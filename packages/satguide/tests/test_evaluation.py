"""`satguide eval`: runs, the table, limits, disagreements, solvers of python-sat beside."""

import json
import os
import sys
import time

import numpy as np
import pytest

from papercuts.errors import UsageError
from satguide import clasp, evaluation, evaluation_runs, evaluation_table, versus
from satguide.backends import Guidance, Outcome, SolverDiedError, backend
from satguide.cli import app
from satguide.cnf import CNF
from satguide.evaluation import Contest, Result, Run
from satguide.evaluation_runs import tabulate
from satguide.evaluation_table import Table
from satguide.families import hitag2
from satguide.families.generate import Plan, formulas
from satguide.guidance import guide
from satguide.paired import ratio_interval
from satguide.plot import plot_evaluation
from satguide.pysat_backend import SOLVERS


@pytest.fixture(scope="module")
def some():
    return [cnf for _, cnf in formulas(Plan("3sat", (40,), seed=1), 6)]


def result(name, guided, plain, unit=None, seconds=1.0):
    """A result from decisions; None stands for a run that hit a limit."""
    counts = {"guided": guided, "plain": plain, **({} if unit is None else {"unit": unit})}
    runs = {
        arm: Run(None if n is None else True, 9999 if n is None else n, 1, seconds)
        for arm, n in counts.items()
    }
    return Result(name, 3, 4, 0.25, None, runs)


def test_the_arms_are_the_solver_guided_unguided_and_with_unit_weights(checkpoint, some):
    results = list(evaluation.evaluate(checkpoint, iter(some), Contest(jobs=1)))
    assert [found.name for found in results] == [cnf.name for cnf in some]
    for found, cnf in zip(results, some, strict=True):
        prepared = clasp.prepare(cnf)
        settings = {
            "guided": guide(checkpoint, cnf),
            "plain": None,
            "unit": Guidance.unit(cnf.variables),
        }
        for arm, guidance in settings.items():
            alone = clasp.solve(prepared, guidance)
            run = found.runs[arm]
            assert (run.satisfiable, run.decisions) == (alone.satisfiable, alone.decisions)
        assert found.runs["guided"].wall_s > found.network_s > 0


def test_the_network_is_in_the_time_of_the_guided_arm(checkpoint, some, monkeypatch):
    def slow(checkpoint, cnf):
        time.sleep(0.05)
        return Guidance.unit(cnf.variables)

    monkeypatch.setattr("satguide.guidance.guide", slow)
    (found,) = evaluation.evaluate(checkpoint, some[:1], Contest(jobs=1, timeout_s=0.049))
    assert found.runs["guided"].wall_s > 0.05
    assert found.runs["guided"].satisfiable is None  # the network alone took the time
    assert found.runs["unit"].satisfiable is not None


@pytest.mark.slow
def test_results_are_the_same_from_workers(checkpoint, some):
    def counts(jobs):
        found = evaluation.evaluate(checkpoint, iter(some), Contest(jobs=jobs))
        return [[(run.satisfiable, run.decisions) for run in r.runs.values()] for r in found]

    assert counts(1) == counts(2)


def test_formulas_are_asked_for_one_by_one(checkpoint, some):
    asked = []

    def stream():
        for number, cnf in enumerate(some):
            asked.append(number)
            yield cnf

    results = evaluation.evaluate(checkpoint, stream(), Contest(jobs=1))
    next(results)
    assert asked == [0]
    results.close()


def test_the_table_is_the_statistics_of_the_columns():
    guided, plain, unit = [10, 20, 90], [20, 40, 100], [10, 50, 130]
    table = Table(Contest())
    for number, counts in enumerate(zip(guided, plain, unit, strict=True)):
        table.add(result(f"f{number}", *counts))
    first, second, third = table.records()
    assert [first["arm"], second["arm"], third["arm"]] == ["guided", "plain", "unit"]
    assert (first["decisions_mean"], first["decisions_median"]) == (40, 20)
    assert first["decisions_geomean"] == pytest.approx((11 * 21 * 91) ** (1 / 3) - 1)
    assert first["baseline"] == "plain"  # 53.3 on average, unit has 63.3
    assert first["ratio"] == second["ratio"] == pytest.approx(120 / 160)
    assert third["ratio"] == pytest.approx(120 / 190)
    difference = np.array(plain) - np.array(guided)
    assert second["t"] == pytest.approx(difference.mean() / (difference.std(ddof=1) / 3**0.5))
    assert second["change_percent"] == pytest.approx(-25)
    assert (first["wall_mean_s"], first["par2_s"], first["network_mean_s"]) == (1, 1, 0.25)
    assert second["network_mean_s"] is None


def test_a_run_that_hit_a_limit_counts_as_the_largest_of_all():
    """The paper's rule: dropping such runs would compare the easy formulas only."""
    table = Table(Contest(baselines=("plain",), timeout_s=10))
    table.add(result("a", 10, 20))
    table.add(result("b", None, 12_000))  # 9999 when it was ended
    table.add(result("c", 30, None))
    table.add(result("d", 40, 60))
    guided, plain = table.records()
    assert (guided["solved"], plain["solved"]) == (3, 3)
    assert (guided["unsolved"], plain["unsolved"]) == (1, 1)
    assert guided["decisions_mean"] == (10 + 12_000 + 30 + 40) / 4
    assert plain["decisions_mean"] == (20 + 12_000 + 12_000 + 60) / 4
    assert guided["ratio"] == pytest.approx(12_080 / 24_080)
    assert guided["par2_s"] == (1 + 20 + 1 + 1) / 4
    assert guided["wall_mean_s"] == 1
    assert table.warnings() == [
        "runs without an answer (1 of guided and 1 of plain, 4 formulas) count as the largest "
        "number of decisions: ratio is a bound only"
    ]
    without = Table(Contest(baselines=("plain",)))
    without.add(result("b", None, 4))
    assert without.records()[0]["par2_s"] is None
    assert without.records()[0]["ratio"] == 9999 / 4  # what it had when it was ended


def test_the_ratio_of_the_times_has_an_interval():
    table = Table(Contest(versus=("minisat22",), baselines=("plain",)))
    random = np.random.default_rng(1)
    times = random.gamma(4, 1, (50, 2)).tolist()
    for number, (own, other) in enumerate(times):
        runs = {"guided": own, "plain": other, "minisat22": 2 * own}
        runs = {arm: Run(True, 1, 1, wall) for arm, wall in runs.items()}
        table.add(Result(f"f{number}", 3, 4, 0.0, None, runs))
    guided, plain, other = table.records()
    means = np.mean(times, axis=0)
    assert guided["wall_ratio"] == plain["wall_ratio"] == pytest.approx(means[0] / means[1])
    expected = ratio_interval(*np.array(times).T)
    assert (plain["wall_ratio_low"], plain["wall_ratio_high"]) == pytest.approx(expected)
    assert (other["wall_ratio_low"], other["wall_ratio_high"]) == pytest.approx((0.5, 0.5))
    assert other["ratio"] is None


def test_the_arms_take_turns_in_being_the_first(checkpoint, some, monkeypatch):
    order = []

    class Spy(Liar):
        def solve(self, prepared, guidance, **options):
            unit = guidance is not None and (guidance.weights == 1).all()
            order.append("plain" if guidance is None else "unit" if unit else "guided")
            return clasp.solve(prepared, guidance, **options)

    monkeypatch.setattr(evaluation, "backend", lambda _: Spy(()))
    found = list(evaluation.evaluate(checkpoint, some[:3], Contest(jobs=1), first=1))
    assert order[::3] == ["plain", "unit", "guided"]
    assert all([*one.runs] == ["guided", "plain", "unit"] for one in found)


def test_a_solver_that_takes_no_weights_says_so(checkpoint, monkeypatch):
    said = []
    monkeypatch.setattr(evaluation_runs.logger, "warning", lambda *words: said.append(words[1]))
    for name in ("minisat22", "maplesat"):
        tabulate(checkpoint, [], Table(Contest(name)))
    assert said == ["maplesat"]


def test_a_solver_that_fails_has_not_solved(checkpoint, some, monkeypatch):
    class Dead(Liar):
        def solve(self, prepared, guidance, **options):
            if guidance is None:
                raise SolverDiedError("it was killed")
            return clasp.solve(prepared, guidance, **options)

    monkeypatch.setattr(evaluation, "backend", lambda _: Dead(()))
    table = Table(Contest(jobs=1))
    tabulate(checkpoint, some[:2], table)
    assert [record["unsolved"] for record in table.records()] == [0, 2, 0]
    assert f"2 runs failed, as {some[0].name}: it was killed" in table.warnings()


def test_formulas_unlike_the_training_are_counted_and_said_once():
    table = Table(Contest(baselines=("plain",)))
    for number in range(3):
        strange = "9 clauses per variable, in training 4 to 5" if number else None
        table.add(Result(f"f{number}", 3, 4, 0.1, strange, result("", 1, 1).runs))
    (said,) = table.warnings()
    assert said.startswith("2 of 3 formulas are unlike")
    assert "f1 has 9 clauses" in said


class Liar:
    """A back end that answers wrongly on some formulas, in one arm."""

    hooks = clasp.hooks

    def __init__(self, wrong):
        self.wrong = wrong
        self.prepare = clasp.prepare

    def solve(self, prepared, guidance, **options):
        honest = clasp.solve(prepared, guidance, **options)
        if guidance is not None or prepared.cnf.name not in self.wrong:
            return honest
        return Outcome(not honest.satisfiable, None, 1, 1, 0.0)


def test_a_wrong_answer_is_named_and_left_out(some, checkpoint_file, tmp_path, monkeypatch, capfd):
    folder = tmp_path / "f"
    assert (
        app.run(["gen", "3sat", "--size", "40", "--count", "6", "--seed", "1", "-o", str(folder)])
        == 0
    )
    names = {str(folder / "3sat-40-0002.cnf"), str(folder / "3sat-40-0004.cnf")}
    monkeypatch.setattr(evaluation, "backend", lambda _: Liar(names))
    capfd.readouterr()
    argv = ["eval", str(checkpoint_file), str(folder), "--jobs", "1", "--runs", f"{tmp_path}/c"]
    assert app.run(argv) == 1
    said = capfd.readouterr()
    assert [json.loads(line)["formulas"] for line in said.out.splitlines()] == [4, 4, 4]
    assert said.err.splitlines()[-1].startswith(f"satguide: error: {min(names)}: ")
    assert "(and 1 more)" in said.err
    assert len((tmp_path / "c").read_text().splitlines()) == 6


def test_a_model_that_leaves_a_clause_false_is_a_wrong_answer():
    cnf = CNF.from_clauses(2, [[1], [2]], name="x")
    outcome = Outcome(True, np.array([True, False]), 1, 1, 0.1)
    run = evaluation._run(cnf, lambda **_: outcome, 0.0, None)
    assert not run.sound
    found = Result("x", 2, 2, 0.0, None, {"guided": run})
    assert found.disagreement() == "x: the model of guided leaves a clause false"
    assert (run.to_dict()["verdict"], run.to_dict()["sound"]) == ("yes", False)
    assert Result.from_dict(found.to_dict()) == found


def test_solvers_of_python_sat_agree_and_count(checkpoint, some):
    contest = Contest(versus=versus.names("minisat22,kissat404"), jobs=1, baselines=("plain",))
    table = Table(contest)
    tabulate(checkpoint, some, table)
    assert not table.disagreements
    by_arm = {record["arm"]: record for record in table.records()}
    expected = sum(
        versus.python_sat().Solver(name="glucose4", bootstrap_with=list(cnf)).solve()
        for cnf in some
    )
    assert {record["sat"] for record in by_arm.values()} == {expected}
    alone = backend("minisat22")
    decisions = [alone.solve(alone.prepare(cnf), None).decisions for cnf in some]
    assert by_arm["minisat22"]["decisions_mean"] == pytest.approx(np.mean(decisions))
    assert by_arm["kissat404"]["decisions_mean"] is None
    assert by_arm["minisat22"]["ratio"] is None
    assert by_arm["minisat22"]["par2_ratio"] == pytest.approx(
        by_arm["guided"]["par2_s"] / by_arm["minisat22"]["par2_s"]
    )


@pytest.mark.slow
def test_a_solver_that_cannot_be_interrupted_is_killed_and_replaced(some):
    hard = hitag2.generate(8, 1)
    start = time.monotonic()
    outcome = versus.solve("kissat404", hard, timeout_s=0.1)
    assert time.monotonic() - start < 5  # minutes, if it were let run
    assert (outcome.satisfiable, outcome.wall_s) == (None, 0.1)
    again = versus.solve("kissat404", some[0], timeout_s=30)
    assert again.satisfiable == clasp.solve(clasp.prepare(some[0]), None).satisfiable


def test_names_of_solvers():
    assert versus.names("g4, cadical195,glucose4") == ("glucose4", "cadical195")
    assert versus.names("minisat-gh,minisatgh,mcm") == ("minisatgh", "maplecm")
    assert versus.names("") == ()
    with pytest.raises(UsageError, match=r"no solver is called 'kisat' .*kissat404"):
        versus.names("kisat")


@pytest.mark.slow
def test_every_solver_that_is_named_solves(some):
    for name in versus.names(",".join(SOLVERS)):
        for cnf in some[:3]:
            outcome = versus.solve(name, cnf, timeout_s=30)
            honest = clasp.solve(clasp.prepare(cnf), None).satisfiable
            assert outcome.satisfiable == honest, name
            assert outcome.model is None or not cnf.unsatisfied(outcome.model).size


@pytest.mark.slow
def test_the_picture_has_every_arm_and_formula(tmp_path):
    table = Table(Contest(versus=("minisat22",)))
    for number in range(20):
        found = result(f"f{number}", 3 + number, 5 + number, 2 * number, seconds=1 + number)
        found.runs["minisat22"] = Run(True, None, None, 0.5)
        table.add(found)
    path = tmp_path / "p.svg"
    plot_evaluation(table, str(path))
    first = path.read_text()
    for arm in table.contest.arms:
        assert f"<!-- {arm} -->" in first  # matplotlib's comment above the outline of a text
    points = first.split('<g id="PathCollection_1">')[1].split("</g>\n   </g>")[0]
    assert points.count("<use ") == 20
    plot_evaluation(table, str(path), force=True)
    assert path.read_text() == first


@pytest.mark.parametrize(
    "extra",
    [
        ["--baseline", "plane"],
        ["--versus", "x"],
        ["--plot", "p.pdf"],
        ["--backend", "x"],
        ["--backend", "kissat404"],
        ["--resume"],
    ],
)
def test_what_makes_no_sense_is_wrong_usage(extra, checkpoint_file, capfd):
    assert app.run(["eval", str(checkpoint_file), os.devnull, *extra]) == 2
    assert capfd.readouterr().out == ""


def test_a_bad_formula_in_the_stream_is_named_by_its_line(checkpoint_file, tmp_path, capfd):
    path = tmp_path / "two.cnf"
    path.write_text("p cnf 2 1\n1 2 0\np cnf 2 1\n1 3 0\n")
    assert app.run(["eval", str(checkpoint_file), str(path), "--jobs", "1"]) == 65
    assert f"{path}:4: " in capfd.readouterr().err


def test_a_table_for_people_has_the_columns_that_they_read_first(checkpoint_file, tmp_path, capfd):
    path = tmp_path / "f.cnf"
    assert app.run(["gen", "3sat", "--size", "20", "-o", str(path)]) == 0
    argv = ["eval", str(checkpoint_file), str(path), "--jobs", "1", "--format", "table"]
    assert app.run(argv) == 0
    head = capfd.readouterr().out.splitlines()[0].split()
    assert head == list(evaluation_table._READ_FIRST)


SOLVER = """
import itertools, sys
lines = [line.split() for line in open(sys.argv[1])]
weights = next((line[2:] for line in lines if line[:2] == ["c", "weight"]), None)
clauses = [[int(word) for word in line[:-1]] for line in lines if line[0] not in ("c", "p")]
n = int(next(line[2] for line in lines if line[0] == "p"))
told = 5 if weights and {"1.0000", "-1.0000"} - set(weights) == {"1.0000", "-1.0000"} else 7
print("c decisions :", told if weights else 10)
for values in itertools.product([False, True], repeat=n):
    if all(any(values[abs(x) - 1] == (x > 0) for x in clause) for clause in clauses):
        print("s SATISFIABLE")
        print("v", *(v if value else -v for v, value in enumerate(values, 1)), 0)
        sys.exit(10)
print("s UNSATISFIABLE")
sys.exit(20)
"""


def test_a_program_may_be_the_back_end(checkpoint_file, tmp_path, capfd):
    (tmp_path / "solver.py").write_text(SOLVER)
    path = tmp_path / "f.cnf"
    path.write_text("p cnf 3 2\n1 -2 0\n2 3 0\np cnf 2 3\n1 2 0\n-1 0\n-2 0\n")
    command = f"exec:{sys.executable} -S {tmp_path / 'solver.py'} {{}}"
    argv = ["eval", str(checkpoint_file), str(path), "--jobs", "1", "--backend", command]
    assert app.run(argv) == 0
    records = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [(r["arm"], r["decisions_mean"]) for r in records] == [
        ("guided", 5), ("plain", 10), ("unit", 7),
    ]  # fmt: skip
    assert {(r["sat"], r["unsat"], r["solved"]) for r in records} == {(1, 1, 2)}
    assert [r["ratio"] for r in records] == pytest.approx([5 / 7, 5 / 10, 5 / 7])

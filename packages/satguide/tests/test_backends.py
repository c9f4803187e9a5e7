"""The back ends against each other, against brute force, and against what they are told."""

import itertools
import math
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from pysat.solvers import Solver

from papercuts.errors import MissingError, UsageError
from satguide import child
from satguide.backends import Guidance, SolverDiedError, SolverError, backend
from satguide.cnf import CNF
from satguide.external import read_answer
from satguide.families import colouring, hitag2, threesat
from satguide.pysat_backend import SOLVERS

GUIDED = [name for name, solver in SOLVERS.items() if solver.hooks]
WEIGHTED = [name for name, solver in SOLVERS.items() if "weights" in solver.hooks]


def random_cnf(rng, variables):
    """Clauses of all widths, with repeated and opposite literals."""
    widths = rng.integers(1, 6, int(rng.integers(1, 5 * variables)))
    clauses = [rng.integers(1, variables + 1, k) * rng.choice([-1, 1], k) for k in widths]
    return CNF.from_clauses(variables, [clause.tolist() for clause in clauses])


def random_guidance(rng, variables):
    weights = np.exp(rng.normal(0, 1, variables)).astype(np.float32)
    return Guidance(weights, rng.random(variables) < 0.5)


def has_model(cnf):
    """Decide by brute force."""
    every = itertools.product([False, True], repeat=cnf.variables)
    return any(cnf.unsatisfied(np.array(values, dtype=bool)).size == 0 for values in every)


def check(name, cnf, guidance, expected, **options):
    solver = backend(name)
    outcome = solver.solve(solver.prepare(cnf), guidance, **options)
    assert outcome.satisfiable is expected, (name, list(cnf))
    if expected:
        assert cnf.unsatisfied(outcome.model).size == 0
    else:
        assert outcome.model is None
    return outcome


def of_python_sat(cnf, name):
    with Solver(name=name, bootstrap_with=list(cnf)) as solver:
        return solver.solve()


def mixed(count):
    """Formulas of all kinds, satisfiable and not, with the verdict of CaDiCaL."""
    rng = np.random.default_rng(count)
    for index in range(count):
        kinds = {
            0: lambda: threesat.generate(int(rng.integers(20, 90)), index),  # noqa: B023
            1: lambda: colouring.generate(int(rng.integers(20, 60)), index),  # noqa: B023
            2: lambda: random_cnf(rng, int(rng.integers(5, 40))),
            3: lambda: hitag2.generate(int(rng.integers(34, 44)), index),  # noqa: B023
        }
        cnf = kinds[index % 4 if index % 8 != 3 else 0]()
        yield index, cnf, of_python_sat(cnf, "cadical195"), random_guidance(rng, cnf.variables)


def test_every_solver_agrees_with_brute_force():
    rng = np.random.default_rng(5)
    seen = set()
    for index in range(30):
        cnf = random_cnf(rng, 7)
        expected = has_model(cnf)
        seen.add(expected)
        check("clasp", cnf, random_guidance(rng, 7) if index % 2 else None, expected)
        for name in SOLVERS:
            guidance = random_guidance(rng, 7) if index % 2 and name in GUIDED else None
            check(name, cnf, guidance, expected, polarity="none" if index % 3 else "persistent")
    assert seen == {False, True}


@pytest.mark.parametrize("name", ["clasp", *SOLVERS])
def test_an_empty_clause_an_empty_formula_and_variables_in_no_clause(name):
    check(name, CNF.from_clauses(3, [[1, 2], []]), None, False)
    check(name, CNF.from_clauses(0, []), None, True)
    guidance = Guidance.unit(5) if name not in SOLVERS or name in GUIDED else None
    check(name, CNF.from_clauses(5, [[2], [-2, 3]]), guidance, True)


def test_verdicts_are_those_of_other_solvers():
    for index, cnf, expected, guidance in mixed(24):
        name = ["clasp", "clasp", "glucose42", "minisat22"][index % 4]
        check(name, cnf, guidance if index % 3 else None, expected)


@pytest.mark.slow
def test_verdicts_are_those_of_other_solvers_on_many_formulas():
    """Check 2 of the method."""
    found = {True: 0, False: 0}
    for index, cnf, expected, guidance in mixed(520):
        assert of_python_sat(cnf, "glucose42") is expected
        check("clasp", cnf, None, expected)
        check("clasp", cnf, guidance, expected)
        check("clasp", cnf, guidance, expected, polarity="none")
        check(GUIDED[index % len(GUIDED)], cnf, guidance, expected)
        found[expected] += 1
    assert min(found.values()) > 100


def test_a_planted_state_of_the_cipher_is_found():
    instance = hitag2.instance(32, 4, planted=True)
    guidance = random_guidance(np.random.default_rng(1), instance.cnf.variables)
    outcome = check("clasp", instance.cnf, guidance, True)
    state = hitag2.decode(outcome.model)
    assert state.tolist() == instance.state.tolist()
    assert hitag2.key_stream(state) == hitag2.key_stream(instance.state)


# What the hooks of python-sat do


@pytest.mark.parametrize("name", WEIGHTED)
def test_the_heaviest_variable_is_decided_first(name):
    """The example of python-sat's own documentation of `set_activities`."""
    cnf = CNF.from_clauses(3, [[-1, 2], [-3, -2]])
    true = np.ones(3, dtype=bool)
    first = check(name, cnf, Guidance(np.array([2.0, 0.0, 1.0], np.float32), true), True)
    assert first.model.tolist() == [True, True, False]
    third = check(name, cnf, Guidance(np.array([1.0, 0.0, 2.0], np.float32), true), True)
    assert third.model.tolist() == [False, False, True]


@pytest.mark.parametrize("name", GUIDED)
def test_the_given_value_is_tried_first(name):
    cnf = CNF.from_clauses(6, [[v, -(v % 6 + 1)] for v in range(1, 7)])
    for value in (True, False):  # both satisfy the cycle of implications
        guidance = Guidance(np.ones(6, np.float32), np.full(6, value))
        assert check(name, cnf, guidance, True).model.tolist() == [value] * 6


@pytest.mark.parametrize("name", ["minisat22", "maplesat", "cadical195"])
def test_a_limit_of_conflicts(name):
    cnf = threesat.generate(120, 4)
    solver = backend(name)
    outcome = solver.solve(solver.prepare(cnf), None, conflicts=20)
    assert outcome.satisfiable is None
    assert 20 <= outcome.conflicts < 30


@pytest.mark.parametrize("name", ["minisat22", pytest.param("cadical195", marks=pytest.mark.slow)])
def test_a_time_limit(name):
    cnf = threesat.generate(320, 1)
    solver = backend(name)
    outcome = solver.solve(solver.prepare(cnf), None, timeout_s=0.1)
    assert outcome.satisfiable is None
    assert outcome.wall_s < 3


def test_what_a_solver_does_not_take_is_wrong_usage():
    cnf = CNF.from_clauses(1, [[1]])
    for name, guidance, options in (
        ("kissat404", Guidance.unit(1), {}),
        ("lingeling", None, {"conflicts": 3}),
        ("exec:true", None, {"conflicts": 3}),
    ):
        solver = backend(name)
        with pytest.raises(UsageError, match="takes n"):
            solver.solve(solver.prepare(cnf), guidance, **options)
    for name in ("clap", "exec:", "exec:a 'b", "Glucose4"):
        with pytest.raises(UsageError):
            backend(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["glucose4", pytest.param("kissat404", marks=pytest.mark.slow)])
def test_a_solver_that_is_late_is_killed_at_the_limit(name):
    """Glucose looks at limits when it restarts, seconds later on this formula."""
    solver = backend(name)
    prepared = solver.prepare(hitag2.generate(8, 1))
    start = time.monotonic()
    outcome = solver.solve(prepared, None, timeout_s=0.2)
    assert time.monotonic() - start < 1.5
    assert (outcome.satisfiable, outcome.wall_s) == (None, 0.2)
    check(name, CNF.from_clauses(1, [[1], [-1]]), None, False)  # by another process
    assert solver.solve(prepared, None, timeout_s=0.1).satisfiable is None  # and not by the last


def test_the_process_of_the_solvers_is_given_the_formula_once(monkeypatch):
    sent, honest = [], child.call

    def spy(function, name, cnf, *rest, **limit):
        sent.append(cnf)
        return honest(function, name, cnf, *rest, **limit)

    monkeypatch.setattr(child, "call", spy)
    solver = backend("minisat22")
    one, two = (solver.prepare(threesat.generate(20, seed)) for seed in (0, 1))
    answers = [solver.solve(prepared, None).satisfiable for prepared in (one, one, two, one)]
    assert [cnf is None for cnf in sent] == [False, True, False, False]
    assert answers[0] == answers[1] == answers[3] == of_python_sat(one.cnf, "cadical195")
    assert answers[2] == of_python_sat(two.cnf, "cadical195")


@pytest.mark.slow
def test_a_process_of_the_solvers_that_dies_is_replaced():
    for number, kind, why in (
        (signal.SIGKILL, SolverDiedError, "memory"),
        (signal.SIGSEGV, SolverError, "SIGSEGV"),
    ):
        with pytest.raises(kind, match=why):
            child.call(signal.raise_signal, number)
        assert child.call(abs, -3) == 3
    with pytest.raises(child.OverTimeError):
        child.call(time.sleep, 60, timeout_s=0.1)
    with pytest.raises(ValueError, match="math domain"):
        child.call(math.sqrt, -1)
    assert child.call(abs, -3) == 3


# Programs


def program(tmp_path, body):
    """Write a solver in Python, and give its command."""
    path = tmp_path / "solver.py"
    path.write_text(f"import os, signal, sys, time\n{body}\n")
    return f"exec:{sys.executable} -S {path}"


def solve(command, cnf, guidance=None, **options):
    solver = backend(command)
    return solver.solve(solver.prepare(cnf), guidance, **options)


CHAIN = CNF.from_clauses(2, [[1], [-1, -2]])


@pytest.mark.parametrize(
    ("out", "verdict", "counts"),
    [
        (
            b"c hi\ns SATISFIABLE\nv 1\nv -2 0\nc decisions : 7 (1 % random)\nc conflicts: 3\n",
            True,
            (7, 3),
        ),
        (b"SAT\n1 -2 0\n", True, (None, None)),
        (b"v 1 -2\ns SATISFIABLE\r\n", True, (None, None)),
        (
            b"decisions             : 12   (0.00 % random)\nconflicts  : 4   (4 /sec)\nUNSAT\n",
            False,
            (12, 4),
        ),
        (
            b"s UNSATISFIABLE\nc Choices  : 18 (Domain: 18)\nc Conflicts  : 15 (Analyzed: 15)\n",
            False,
            (18, 15),
        ),
        (b"UNKNOWN\n", None, (None, None)),
        (b"INDETERMINATE\n", None, (None, None)),
        (b"s UNKNOWN\n", None, (None, None)),
    ],
)
def test_what_solvers_print_is_read(out, verdict, counts):
    answer = read_answer(0, out, b"", program="it")
    assert answer.verdict is verdict
    assert (answer.decisions, answer.conflicts) == counts
    if verdict:
        assert answer.values(2).tolist() == [True, False]


@pytest.mark.parametrize(
    ("code", "out", "why"),
    [
        (0, b"", "no answer"),
        (1, b"hello\n", "status 1"),
        (-11, b"s SATISFIABLE\nv 1 0\n", "SIGSEGV"),
        (0, b"s SATISFIABLE\ns UNSATISFIABLE\n", "two different"),
        (20, b"s SATISFIABLE\nv 1 0\n", "exit status of another"),
        (10, b"s SATISFIABLE\nv 1 x 0\n", "cannot be read"),
        (10, b"s SATISFIABLE\nv 3 0\n", "not there"),
        (10, b"s SATISFIABLE\nv 1 -1 0\n", "both true and false"),
    ],
)
def test_what_no_solver_should_print_is_an_error(code, out, why):
    with pytest.raises(SolverError, match=why):
        read_answer(code, out, b"", program="it").values(2)


def test_the_exit_status_counts_where_nothing_is_printed():
    assert read_answer(20, b"", b"", program="it").verdict is False
    answer = read_answer(10, b"", b"", program="it")
    assert (answer.verdict, answer.values(2)) == (True, None)
    with pytest.raises(SolverDiedError, match="memory"):
        read_answer(-9, b"", b"", program="it")


def test_a_program_gets_the_formula_with_both_forms_of_guidance(tmp_path):
    copy = "open(sys.argv[1], 'w').write(open(sys.argv[2]).read())"
    command = program(tmp_path, f"{copy}\nprint('s UNKNOWN')")
    seen = tmp_path / "seen file"
    guidance = Guidance(np.array([0.5, 2.0], np.float32), np.array([True, False]))
    outcome = solve(f"{command} '{seen}' {{}}", CHAIN, guidance)
    assert outcome.satisfiable is None
    assert seen.read_text().splitlines() == [
        "p cnf 2 2",
        "c weight 0.5000 -2.0000",
        "c heuristic 2 1 500 1 0", "c heuristic 3 1 500 1 0", "c heuristic 1 1 1 1 0",
        "c heuristic 2 2 2000 1 0", "c heuristic 3 2 2000 1 0", "c heuristic 1 2 -1 1 0",
        "1 0",
        "-1 -2 0",
    ]  # fmt: skip
    solve(f"{command} '{seen}'", CHAIN)
    assert seen.read_text() == "p cnf 2 2\n1 0\n-1 -2 0\n"


@pytest.mark.slow
def test_a_program_is_killed_with_all_that_it_started(tmp_path):
    body = """
import subprocess
child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"])
open(sys.argv[1], "w").write(f"{child.pid}")
time.sleep(60)
"""
    command = program(tmp_path, body)
    outcome = solve(f"{command} {tmp_path / 'pid'} {{}}", CHAIN, timeout_s=1.0)
    assert outcome.satisfiable is None
    assert 1.0 <= outcome.wall_s < 5
    assert gone(int((tmp_path / "pid").read_text()))


def gone(pid):
    """Tell whether a process has ended (a zombie of another parent has)."""
    for _ in range(50):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_a_program_that_is_not_there_or_fails(tmp_path):
    with pytest.raises(MissingError, match="no such file"):
        solve("exec:no-such-solver-anywhere", CHAIN)
    (tmp_path / "plain").write_text("x")
    with pytest.raises(MissingError, match="permission denied"):
        solve(f"exec:{tmp_path / 'plain'}", CHAIN)
    crash = "print('Segmentation what', file=sys.stderr); os.kill(os.getpid(), signal.SIGSEGV)"
    command = program(tmp_path, crash)
    with pytest.raises(SolverError, match=r"SIGSEGV.*Segmentation what"):
        solve(command, CHAIN)

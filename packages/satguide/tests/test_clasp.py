import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papercuts.errors import OutputError
from satguide import clasp, tokens
from satguide.backends import Guidance
from satguide.cnf import CNF
from satguide.families import threesat

few = settings(max_examples=25)
literals = st.integers(-6, 6).filter(bool)
formulas = st.lists(st.lists(literals, max_size=5), max_size=12)


def degree_weights(cnf, exponent=2.0):
    count = cnf.occurrences().astype(np.float64)
    weights = (count / count.mean()) ** exponent
    return Guidance(weights.astype(np.float32), np.ones(cnf.variables, dtype=bool))


def inverted(guidance):
    return Guidance((1 / guidance.weights).astype(np.float32), guidance.polarity)


# The text that clasp reads


@few
@given(st.lists(st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=4), max_size=8))
def test_numbers_are_written_as_python_writes_them(rows):
    ends = np.cumsum([len(row) for row in rows], dtype=np.int64)
    flat = np.array([number for row in rows for number in row], dtype=np.int64)
    expected = "".join(" ".join(map(str, row)) + "\n" for row in rows)
    assert tokens.lines(flat, ends) == expected.encode()


def test_long_texts_are_written_in_blocks(monkeypatch):
    numbers = np.arange(-50, 50)
    whole = tokens.lines(numbers, np.arange(10, 101, 10))
    monkeypatch.setattr(tokens, "_BLOCK", 7)
    assert tokens.lines(numbers, np.arange(10, 101, 10)) == whole


@few
@given(formulas)
def test_a_formula_becomes_a_choice_and_a_constraint_for_each_clause(clauses):
    lines = ["asp 1 0 0", "1 1 6 1 2 3 4 5 6 0 0"]
    for clause in clauses:
        distinct = list(dict.fromkeys(clause))
        if not any(-literal in distinct for literal in distinct):
            numbers = [1, 0, 0, 0, len(distinct), *(-literal for literal in distinct)]
            lines.append(" ".join(map(str, numbers)))
    text = clasp.problem_text(CNF.from_clauses(6, clauses)).decode()
    assert text.splitlines() == lines


def test_guidance_becomes_modifiers():
    guidance = Guidance(np.array([1.0, 0.0001, 99.0], np.float32), np.array([True, False, True]))
    assert clasp.heuristic_text(guidance).decode().splitlines() == [
        "7 2 1 1000 1 0", "7 3 1 1000 1 0", "7 1 1 1 1 0",
        "7 2 2 1 1 0", "7 3 2 1 1 0", "7 1 2 -1 1 0",
        "7 2 3 32767 1 0", "7 3 3 32767 1 0", "7 1 3 1 1 0",
    ]  # fmt: skip
    assert clasp.heuristic_text(guidance, "none").decode().splitlines() == [
        "7 2 1 1000 1 0", "7 3 1 1000 1 0",
        "7 2 2 1 1 0", "7 3 2 1 1 0",
        "7 2 3 32767 1 0", "7 3 3 32767 1 0",
    ]  # fmt: skip


# What guidance does


def test_the_heaviest_variable_is_decided_first_and_by_its_polarity():
    # 1 implies 2 and 3 excludes 2, so whichever of 1 and 3 is decided first is true.
    prepared = clasp.prepare(CNF.from_clauses(3, [[-1, 2], [-3, -2]]))
    true = np.ones(3, dtype=bool)
    first = clasp.solve(prepared, Guidance(np.array([2.0, 0.1, 1.0]), true))
    assert first.model.tolist() == [True, True, False]
    third = clasp.solve(prepared, Guidance(np.array([1.0, 0.1, 2.0]), true))
    assert third.model.tolist() == [False, False, True]
    lone = clasp.prepare(CNF(4, np.zeros(0, np.int32), np.zeros(1, np.int64)))
    wanted = np.array([True, False, False, True])
    assert clasp.solve(lone, Guidance(np.ones(4), wanted)).model.tolist() == wanted.tolist()


def test_unit_weights_give_the_same_counts_twice():
    prepared = clasp.prepare(threesat.generate(100, 3))
    counts = [
        (outcome.decisions, outcome.conflicts)
        for outcome in (clasp.solve(prepared, Guidance.unit(100)) for _ in range(2))
    ]
    assert counts[0] == counts[1]
    assert counts[0][0] > 100


@pytest.mark.slow
def test_inverted_degree_weights_multiply_the_decisions():
    """Check 3 of the method, by a limit: more than five times as many even where it is cut off."""
    cnf = threesat.generate(150, 1003)
    prepared, weights = clasp.prepare(cnf), degree_weights(cnf)
    right = clasp.solve(prepared, weights).decisions
    wrong = clasp.solve(prepared, inverted(weights), conflicts=5 * right)
    assert wrong.decisions > 5 * right


@pytest.mark.slow
def test_inverted_degree_weights_multiply_the_decisions_of_many_formulas():
    right = wrong = 0
    for seed in range(1000, 1012):
        cnf = threesat.generate(150, seed)
        prepared, weights = clasp.prepare(cnf), degree_weights(cnf)
        right += clasp.solve(prepared, weights).decisions
        wrong += clasp.solve(prepared, inverted(weights), conflicts=30_000).decisions
    assert wrong > 5 * right


# Limits


@pytest.mark.parametrize(("seed", "verdict"), [(0, True), (2, False)])
def test_the_verdict_is_open_exactly_when_the_limit_of_conflicts_is_reached(seed, verdict):
    prepared = clasp.prepare(threesat.generate(60, seed))
    whole = clasp.solve(prepared, None)
    assert whole.satisfiable is verdict
    assert whole.conflicts > 5
    for limit in range(1, whole.conflicts + 3):
        cut = clasp.solve(prepared, None, conflicts=limit)
        if cut.satisfiable is None:
            assert cut.conflicts >= limit
        else:
            assert cut.satisfiable is whole.satisfiable
            assert (cut.decisions, cut.conflicts) == (whole.decisions, whole.conflicts)
    assert clasp.solve(prepared, None, conflicts=whole.conflicts + 1).satisfiable is not None


def test_a_time_limit_ends_a_run_and_changes_no_other(pigeons):
    hard = clasp.solve(clasp.prepare(pigeons(11)), None, timeout_s=0.1)
    assert (hard.satisfiable, hard.model) == (None, None)
    assert hard.conflicts > 0
    assert 0.05 < hard.wall_s < 2
    prepared = clasp.prepare(threesat.generate(80, 2))
    free, timed = clasp.solve(prepared, None), clasp.solve(prepared, None, timeout_s=60)
    assert (free.decisions, free.conflicts) == (timed.decisions, timed.conflicts)


def test_formulas_at_the_edge():
    def verdict(variables, clauses):
        outcome = clasp.solve(clasp.prepare(CNF.from_clauses(variables, clauses)), None)
        return outcome.satisfiable, None if outcome.model is None else outcome.model.tolist()

    assert verdict(0, []) == (True, [])
    assert verdict(0, [[]]) == (False, None)
    assert verdict(2, [[], [1, 2]]) == (False, None)
    assert verdict(1, [[-1, -1], [1, -1]]) == (True, [False])
    assert verdict(2, [[1, 1], [-1, 2], [-2, -2]]) == (False, None)


def test_a_folder_that_is_not_there_for_temporary_files(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(OutputError, match="no place for temporary files"):
        clasp.solve(clasp.prepare(threesat.generate(20, 0)), None)
    assert not list(tmp_path.iterdir())


def test_nothing_is_left_behind(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    clasp.solve(clasp.prepare(threesat.generate(20, 0)), Guidance.unit(20))
    assert not list(tmp_path.iterdir())

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satguide.cnf import CNF, offsets

literals = st.integers(-6, 6).filter(bool)
formulas = st.lists(st.lists(literals, max_size=5), max_size=12)
few = settings(max_examples=25)


@few
@given(formulas)
def test_clauses_come_back_as_they_were_given(clauses):
    cnf = CNF.from_clauses(6, clauses, name="here")
    assert list(cnf) == clauses
    assert (len(cnf), cnf.variables, cnf.name) == (len(clauses), 6, "here")
    assert cnf.literals.dtype == np.int32
    assert cnf.starts.dtype == np.int64
    assert cnf.lengths().tolist() == [len(clause) for clause in clauses]
    flat = [abs(literal) for clause in clauses for literal in clause]
    assert cnf.occurrences().tolist() == [flat.count(v) for v in range(1, 7)]


@few
@given(formulas, st.lists(st.booleans(), min_size=6, max_size=6))
def test_the_clauses_that_an_assignment_leaves_false(clauses, values):
    cnf = CNF.from_clauses(6, clauses)
    expected = [
        i
        for i, clause in enumerate(clauses)
        if not any(values[abs(literal) - 1] == (literal > 0) for literal in clause)
    ]
    assert cnf.unsatisfied(np.array(values)).tolist() == expected
    assert cnf.unsatisfied(np.array(values, dtype=np.int8)).tolist() == expected


def test_a_formula_without_variables_is_true_unless_it_has_an_empty_clause():
    nothing = np.zeros(0, dtype=bool)
    assert CNF.from_clauses(0, []).unsatisfied(nothing).tolist() == []
    assert CNF.from_clauses(0, [[]]).unsatisfied(nothing).tolist() == [0]


@pytest.mark.parametrize(
    ("variables", "clauses"), [(2, [[1, 3]]), (2, [[-3]]), (2, [[1, 0, 2]]), (0, [[1]])]
)
def test_a_literal_out_of_range_is_refused(variables, clauses):
    with pytest.raises(ValueError, match=f"from 1 to {variables}"):
        CNF.from_clauses(variables, clauses)


@pytest.mark.parametrize("starts", [[], [1, 2], [0, 1], [0, 3]])
def test_clause_bounds_must_cover_the_literals(starts):
    with pytest.raises(ValueError, match="starts"):
        CNF(2, np.array([1, 2], dtype=np.int32), np.array(starts, dtype=np.int64))


def test_an_assignment_of_another_length_is_refused():
    with pytest.raises(ValueError, match=r"\[2\].*\[3\]"):
        CNF.from_clauses(2, [[1, 2]]).unsatisfied(np.zeros(3, dtype=bool))


def test_offsets_are_where_pieces_begin():
    assert offsets(np.array([2, 0, 3])).tolist() == [0, 2, 2, 5]
    assert offsets(np.array([], dtype=np.int64)).tolist() == [0]

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satguide.cnf import CNF
from satguide.graph import adjacency, batch

literals = st.integers(-5, 5).filter(bool)
formulas = st.lists(st.lists(literals, max_size=6), max_size=10)
few = settings(max_examples=20)


def rows(starts, values):
    return [values[a:b].tolist() for a, b in itertools.pairwise(starts)]


def node(literal):
    """The sheet's index: 2(v - 1) + 1 for v, 2(v - 1) for its negation."""
    return 2 * (abs(literal) - 1) + (literal > 0)


@few
@given(formulas)
def test_every_clause_has_one_edge_to_each_of_its_literals(clauses):
    graph = adjacency(CNF.from_clauses(5, clauses))
    assert graph.variables == 5
    of_clause = rows(graph.clause_starts, graph.literals)
    assert of_clause == [sorted({node(x) for x in clause}) for clause in clauses]
    of_literal = rows(graph.literal_starts, graph.clauses)
    assert of_literal == [
        [i for i, row in enumerate(of_clause) if literal in row] for literal in range(10)
    ]


@few
@given(formulas, st.randoms(use_true_random=False))
def test_duplicate_and_shuffled_literals_give_the_same_graph(clauses, random):
    doubled = [[*clause, random.choice(clause)] if clause else [] for clause in clauses]
    for clause in doubled:
        random.shuffle(clause)
    one, two = (adjacency(CNF.from_clauses(5, rows)) for rows in (clauses, doubled))
    for name in ("clause_starts", "literals", "literal_starts", "clauses"):
        assert getattr(one, name).tolist() == getattr(two, name).tolist()


def test_a_tautology_has_an_edge_to_both_signs():
    graph = adjacency(CNF.from_clauses(2, [[2, -2, 1]]))
    assert graph.literals.tolist() == [1, 2, 3]


@few
@given(st.lists(formulas, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_a_batch_is_its_formulas_side_by_side(many, random):
    sizes = [random.randint(5, 7) for _ in many]
    cnfs = [CNF.from_clauses(n, clauses) for n, clauses in zip(sizes, many, strict=True)]
    together = batch([adjacency(cnf) for cnf in cnfs])
    shifted, first = [], 0
    for cnf in cnfs:
        shifted += [[x + first if x > 0 else x - first for x in clause] for clause in cnf]
        first += cnf.variables
    whole = adjacency(CNF.from_clauses(first, shifted))
    assert together.literals_of.indptr.tolist() == whole.clause_starts.tolist()
    assert together.literals_of.indices.tolist() == whole.literals.tolist()
    assert together.clauses_of.indptr.tolist() == whole.literal_starts.tolist()
    assert together.clauses_of.indices.tolist() == whole.clauses.tolist()
    assert (together.formulas, together.variables) == (len(cnfs), first)
    expected = [i for i, n in enumerate(sizes) for _ in range(n)]
    assert together.formula_of_variable().tolist() == expected


@few
@given(formulas)
def test_the_transposes_that_are_given_are_those_that_would_be_computed(clauses):
    together = batch([adjacency(CNF.from_clauses(5, clauses))])
    for lists in (together.literals_of, together.clauses_of):
        given_transpose = lists.__dict__.pop("transposed")
        assert lists.transposed.indptr.tolist() == given_transpose.indptr.tolist()
        assert lists.transposed.indices.tolist() == given_transpose.indices.tolist()


def test_a_batch_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one formula"):
        batch([])

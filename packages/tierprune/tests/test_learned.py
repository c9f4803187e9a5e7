import itertools

import pytest
from classes import admgs_of, cases, model

from papercuts.errors import DataError
from tierprune import GraphFile, Mark, Query, Tiers
from tierprune.formats import parse
from tierprune.graphfile import Edge
from tierprune.identification import identify
from tierprune.learned import answer
from tierprune.rendering import to_text


def file_of(pag):
    names = pag.names
    edges = [Edge(names[i], names[j], at_i, at_j) for i, j, at_i, at_j in pag.edges()]
    return GraphFile([*names], edges, "edges")


@pytest.mark.parametrize("sizes", [(0, 3), (1, 2), (2, 2)])
def test_verdicts_hold_in_every_graph_of_the_class(sizes):
    verdicts = set()
    for group, pag, tiers, early in cases(sizes):
        graphs = admgs_of(*sizes)[model(group[0], early)]
        for x, y in itertools.permutations(pag.names[early:], 2):
            query = Query((x,), (y,))
            found = answer(file_of(pag), tiers, query, enumerate_=100)
            real = {identify(graph, query).verdict for graph in graphs}
            verdicts.add(found.verdict)
            if found.verdict == "yes":
                assert real == {"yes"}
            if found.members is not None:
                assert found.members.complete
                assert found.members.total == len(group)
                # the readings leave nothing open in graphs this small
                assert found.members.open == 0
                assert (found.members.identified == len(group)) == (real == {"yes"})
    # No class this small refutes an effect in every member; one that does has a test below.
    assert verdicts == {"yes", "undecided"}


def test_a_set_and_its_formula():
    graph = parse("a -> x\na -> y\nx -> y\nb -> y", "edges")
    tiers = Tiers((("a", "b"), ("x",), ("y",)))
    found = answer(graph, tiers, Query(("x",), ("y",)))
    assert (found.verdict, found.by, to_text(found.estimand)) == (
        "yes",
        "adjustment",
        "sum_{a} P(a) P(y | a, x)",
    )
    given = answer(graph, tiers, Query(("x",), ("y",), ("b",)))
    assert to_text(given.estimand) == "sum_{a} P(a | b) P(y | a, x, b)"
    assert found.to_dict()["adjust_for"] == ["a"]


def test_a_cause_that_may_be_confounded_is_undecided_until_the_members_are_asked():
    graph = parse("x o-> y", "edges")
    query = Query(("x",), ("y",))
    alone = answer(graph, None, query)
    assert (alone.verdict, alone.members) == ("undecided", None)
    asked = answer(graph, None, query, enumerate_=10)
    # x <-> y has no effect; x -> y may hide confounding
    assert asked.verdict == "undecided"
    assert (asked.members.identified, asked.members.not_identified) == (1, 1)
    assert asked.members.answer == "some"


def test_a_class_in_which_no_member_identifies_the_effect_is_a_no():
    graph = parse("x -> y\nz o-> y", "edges")
    tiers = Tiers((("x", "y", "z"),))
    found = answer(graph, tiers, Query(("x",), ("y",)), enumerate_=10)
    assert (found.verdict, found.members.answer) == ("no", "none")


def test_no_effect_is_an_answer():
    graph = parse("x o-> y", "edges")
    found = answer(graph, None, Query(("y",), ("x",)))
    assert (found.verdict, found.by, to_text(found.estimand)) == ("yes", "no effect", "P(x)")


def test_a_sample_of_members_proves_nothing():
    text = "\n".join(f"v{i} o-o v{j}" for j in range(6) for i in range(j))
    found = answer(parse(text, "edges"), None, Query(("v0",), ("v1",)), enumerate_=5)
    assert (found.verdict, found.members.complete) == ("undecided", False)
    assert "no proof for the others" in found.notes[-1]


def test_marks_that_contradict_one_another_are_said_to():
    graph = parse("a <-> b\nb -> c\nc -> a\nd o-> a", "edges")
    found = answer(graph, None, Query(("b",), ("a",)), enumerate_=5)
    assert (found.verdict, found.members.answer) == ("undecided", "no graph")


def test_a_set_from_marks_that_contradict_one_another_comes_with_a_warning():
    # b -> c -> a <-> b has an almost directed cycle; the effect of x is asked about elsewhere
    graph = parse("a <-> b\nb -> c\nc -> a\nz -> x\nx -> y\nd o-> a", "edges")
    found = answer(graph, None, Query(("x",), ("y",)))
    assert (found.verdict, found.adjustment.sets) == ("yes", ((),))
    assert "made them contradict" in found.notes[0]


def test_selection_bias_is_refused():
    graph = GraphFile(["a", "b"], [Edge("a", "b", Mark.TAIL, Mark.TAIL)], "edges")
    with pytest.raises(DataError, match="the edge a --- b says that there is selection bias"):
        answer(graph, None, Query(("a",), ("b",)))

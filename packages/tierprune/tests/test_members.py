import pytest
from classes import cases, classes, mag, model

from tierprune import ADMG, PAG, Band, Mark, Tiers, list_members
from tierprune.ancestral import Ends, confounded, most_confounded, plain

SMALL = [(0, 3), (1, 2), (2, 1), (2, 2), (1, 3)]


@pytest.mark.parametrize(
    ("sizes", "count"), [((0, 3), 11), ((1, 2), 10), ((2, 2), 46), ((3, 1), 8), ((1, 3), 163)]
)
def test_the_classes_enumerated_here_are_as_many_as_published_for_tiered_graphs(sizes, count):
    # 92 = 2 * 46 and 88 = 11 * 8 with the classes of the first tier
    assert len(classes(*sizes)) == count


def test_members_are_exactly_the_graphs_of_the_class():
    for group, pag, tiers, early in cases(*SMALL):
        last = len(tiers)
        found = list_members(pag, tiers, Band(last, last, "3.2"))
        assert {m.pag().marks.tobytes() for m in found.graphs} == {
            mag(graph, early).marks.tobytes() for graph in group
        }
        assert (found.total, found.complete) == (len(group), True)


@pytest.mark.slow
def test_members_are_exactly_the_graphs_of_each_class_of_four_variables():
    for group, pag, tiers, early in cases((0, 4)):
        found = list_members(pag, tiers)
        assert {m.pag().marks.tobytes() for m in found.graphs} == {
            mag(graph, early).marks.tobytes() for graph in group
        }


def test_tiers_multiply():
    names = ("a", "b", "c", "d")
    circle = (Mark.CIRCLE, Mark.CIRCLE)
    pag = PAG.from_edges(names, [("a", "b", *circle), ("c", "d", *circle)])
    tiers = Tiers((("a", "b"), ("c", "d")))
    found = list_members(pag, tiers)
    assert (found.total, len(found.graphs), found.complete) == (9, 9, True)
    assert list_members(pag, tiers, Band(2, 2, "3.2")).total == 3
    some = list_members(pag, tiers, limit=5, seed=1)
    assert (some.total, some.complete) == (9, False)
    assert len({m.pag().marks.tobytes() for m in some.graphs}) == 5
    everything = {m.pag().marks.tobytes() for m in found.graphs}
    assert {m.pag().marks.tobytes() for m in some.graphs} <= everything


def test_a_large_class_is_sampled_without_listing_it():
    names = tuple(f"v{i}" for i in range(9))
    circle = (Mark.CIRCLE, Mark.CIRCLE)
    pag = PAG.from_edges(names, [(a, b, *circle) for i, b in enumerate(names) for a in names[:i]])
    found = list_members(pag, limit=20, seed=3)
    assert (len(found.graphs), found.complete, found.total) == (20, False, None)
    again = list_members(pag, limit=20, seed=3)
    assert [m.pag() for m in found.graphs] == [m.pag() for m in again.graphs]


def test_marks_that_contradict_one_another_have_no_member():
    # a <-> b with b an ancestor of a
    arrow = Mark.ARROW
    pag = PAG.from_edges(
        "abc",
        [("a", "b", arrow, arrow), ("b", "c", Mark.TAIL, arrow), ("c", "a", Mark.TAIL, arrow)],
    )
    assert list_members(pag).total == 0


def test_a_member_is_read_as_graphs_around_those_that_it_stands_for():
    # every ADMG of the class is a subgraph of some member's largest reading, and the other
    # readings have the independences of the class
    for group, pag, tiers, early in cases((0, 3), (1, 2), (2, 2)):
        last = len(tiers)
        separations = model(group[0], early)
        for ends in list_members(pag, tiers, Band(last, last, "3.2")).graphs:
            for graph in (plain(ends), confounded(ends), confounded(ends, backwards=True)):
                early_dag = ADMG.from_edges(
                    graph.names,
                    [(a, b) for j, b in enumerate(graph.names[:early]) for a in graph.names[:j]]
                    + [(graph.names[i], graph.names[j]) for i, j in graph.directed()],
                    [(graph.names[i], graph.names[j]) for i, j in graph.bidirected()],
                )
                assert model(early_dag, early) == separations


def test_hidden_confounding_is_added_only_where_it_can_hide():
    pag = PAG.from_edges(
        ("z", "x", "y", "w"),
        [("z", "x", 3, 2), ("x", "y", 3, 2), ("w", "y", 3, 2)],
    )
    graph = most_confounded(Ends(pag))
    # z -> x and w -> y are invisible; x -> y is visible by z, which has no edge to y
    assert [(graph.names[i], graph.names[j]) for i, j in graph.bidirected()] == [
        ("z", "x"),
        ("y", "w"),
    ]
    apart = Ends(pag, Tiers((("z", "w"), ("x",), ("y",))))
    assert not list(most_confounded(apart).bidirected())

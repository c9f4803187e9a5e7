"""Queries, and the band that each rule gives."""

import pytest

from papercuts.errors import UsageError
from tierprune import formats
from tierprune.estimation import read_assignments
from tierprune.graphfile import Edge, GraphFile
from tierprune.pag import Mark
from tierprune.query import Band, Query, band_of, make_query, split_names
from tierprune.tiers import Tiers, parse_tiers

TIERS = Tiers((("a1", "a2"), ("b1", "b2"), ("c1", "c2"), ("d1", "d2")))


@pytest.mark.parametrize(
    ("treatment", "outcome", "given", "band"),
    [
        ("b1", "c1", "", Band(2, 3, "3.2")),
        ("b1 c1", "a1 d1", "", Band(2, 4, "3.2")),
        ("c1", "b1", "", Band(3, 2, "3.2")),
        ("c1", "d1", "a1 b1", Band(3, 4, "3.5")),
        ("b1 c1", "d1", "b2", Band(1, 4, "3.6")),
        ("c1", "c2", "d1", Band(1, 4, "3.6")),
        ("b1", "c1", "a1 b2", Band(1, 3, "3.6")),
    ],
)
def test_band(treatment: str, outcome: str, given: str, band: Band) -> None:
    query = Query(tuple(treatment.split()), tuple(outcome.split()), tuple(given.split()))
    assert band_of(query, TIERS) == band


def test_forced_band_is_that_of_rule_3_2() -> None:
    query = Query(("b1",), ("c1",), ("b2", "d1"))
    assert band_of(query, TIERS, force_tight=True) == Band(2, 3, "3.2")
    before = Query(("b1",), ("c1",), ("a1",))
    assert band_of(before, TIERS, force_tight=True).rule == "3.5"


def test_query_reads_as_probability() -> None:
    assert str(Query(("x1", "x2"), ("y",), ("z",))) == "P(y | do(x1, x2), z)"


@pytest.mark.parametrize(
    ("do", "outcome", "given", "message"),
    [
        (["a"], ["a"], None, "a is in treatment and in outcome"),
        (["a"], ["b"], ["b"], "b is in outcome and in given"),
        (["a,a"], ["b"], None, "a is twice in treatment"),
        (["a"], ["q"], None, "q is not in the variables"),
        (["A"], ["b"], None, r"A is not in the variables \(did you mean a\?\)"),
        ([""], ["b"], None, "at least one treatment"),
    ],
)
def test_wrong_queries(
    do: list[str], outcome: list[str], given: list[str] | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        make_query(do, outcome, given, ["a", "b", "c"])


def test_names_of_an_option() -> None:
    known = ["a", "b", "x, y", 'say "z"']
    assert split_names(["a, b", "x, y"], known) == ("a", "b", "x, y")
    assert split_names(['"x, y",a', '"say ""z"""'], known) == ("x, y", "a", 'say "z"')


@pytest.mark.parametrize(
    "name",
    ['smokes "daily"', "a, b", "a < b", "C:\\dir", 'back\\"', "-> x", "new\nline", 'é "q", #'],
)
def test_a_name_as_an_edge_list_prints_it_can_be_pasted(name: str) -> None:
    graph = GraphFile([name, "y"], [Edge(name, "y", Mark.TAIL, Mark.ARROW)], "edges")
    printed = formats.dumps(graph).removesuffix(" -> y\n")
    assert split_names([f"{printed},y"], [name, "y"]) == (name, "y")
    doubled = '"' + name.replace('"', '""') + '"'
    for written in {printed, doubled}:
        if not written.endswith('\\"""') and "->" not in written:
            assert split_names([f"y, {written}"], [name, "y"]) == ("y", name)
    if printed.startswith('"'):
        assert parse_tiers(f"{printed},z<y").groups == ((name, "z"), ("y",))


def test_a_value_follows_a_quoted_name() -> None:
    known = ['smokes "daily"', "a, b"]
    for text in (r'"smokes \"daily\""=yes', '"smokes ""daily"""=yes', 'smokes "daily"=yes'):
        assert read_assignments([text + ',"a, b"=1'], known, "--do") == {
            'smokes "daily"': "yes", "a, b": "1",
        }  # fmt: skip

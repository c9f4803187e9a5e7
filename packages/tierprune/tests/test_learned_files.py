"""The mark of a learned graph in files, and what `id`, `estimate` and `prune` make of it."""

import json
from pathlib import Path

import pytest

from papercuts.errors import DataError
from tierprune import formats
from tierprune.cli import app
from tierprune.graphfile import GraphFile
from tierprune.identification import identify
from tierprune.query import Query

FORMATS = ("edges", "dot", "graphml", "dagitty")
CHAIN = "a -> b\nb -> x\nx -> y\n"
TIERS = "a<b<x<y"
# P(n13 | do(n10)) has a hedge (n10 <-> n13), but the PAG of this graph has no circle.
HEDGED = """n00 -> n12
n00 -> n10
n00 -> n13
n12 -> n11
n10 -> n11
n10 -> n13
n11 -> n13
n10 <-> n13
"""


def run(capsys: pytest.CaptureFixture[str], *argv: str, code: int = 0) -> tuple[str, str]:
    found = app.run([*argv])
    out, err = capsys.readouterr()
    assert found == code, err
    return out, err


@pytest.fixture
def learn(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    def made(text: str, tiers: str, *ask: str, format_: str = "edges") -> str:
        truth, learned = tmp_path / "t.edges", tmp_path / f"l.{format_}"
        truth.write_text(text)
        argv = ["discover", "--truth", str(truth), "--tiers", tiers, *ask, "--force"]
        run(capsys, *argv, "-o", str(learned))
        return str(learned)

    return made


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("to", FORMATS)
def test_every_format_keeps_the_mark(format_: str, to: str) -> None:
    plain = formats.parse(CHAIN, "edges")
    for tiers in ((3, 4), None):
        graph = GraphFile(plain.names, plain.edges, format_, learned=True, learned_tiers=tiers)
        once = formats.parse(formats.dumps(graph), format_)  # type: ignore[arg-type]
        text = formats.dumps(formats.converted(once, to))
        again = formats.parse(text, to)  # type: ignore[arg-type]
        assert (again.learned, again.learned_tiers) == (True, tiers)
        assert formats.dumps(again) == text
    unmarked = formats.parse(formats.dumps(formats.converted(plain, to)), to)  # type: ignore[arg-type]
    assert not unmarked.learned


@pytest.mark.parametrize(
    ("format_", "text", "expected"),
    [
        ("edges", "# mine\n  #learned: tiers 3 to 4\nx -> y", (True, (3, 4))),
        ("edges", "# learned: no tiers\nx -> y", (True, (1, 0))),
        ("edges", "# learned: tiers 2 to 1\nx -> y", (True, (2, 1))),
        ("dagitty", 'pag { learned="no tiers" x -> y }', (True, (1, 0))),
        ("edges", "x -> y  # learned: tiers 3 to 4", (False, None)),
        ("edges", "# learned from Ann\nx -> y", (False, None)),
        ("dot", 'digraph { graph [learned="tiers 3 to 4"]; x -> y }', (True, (3, 4))),
        ("dot", "digraph { learned=true; x -> y }", (True, None)),
        ("dot", "digraph { learned=no; x -> y }", (False, None)),
        ("dagitty", "pag { x -> y }", (True, None)),
        ("dagitty", 'pag { learned="tiers 3 to 4" x -> y }', (True, (3, 4))),
        ("dagitty", "dag { x -> y }", (False, None)),
    ],
)
def test_marks_as_people_may_write_them(
    format_: formats.FormatName, text: str, expected: tuple[bool, object]
) -> None:
    graph = formats.parse(text, format_)
    assert (graph.learned, graph.learned_tiers) == expected
    assert len(graph.edges) == 1


@pytest.mark.parametrize(
    ("format_", "text", "where"),
    [
        ("edges", "x -> y\n# learned: tier 3", "FILE:2"),
        ("edges", "# learned: tiers 1 to 2\nx -> y\n# learned: tiers 3 to 4", "FILE:3"),
        ("dot", "digraph { learned=some; x -> y }", "FILE"),
        ("dagitty", "pag { learned=some x -> y }", "FILE"),
    ],
)
def test_a_mark_that_is_not_understood_is_refused(
    format_: formats.FormatName, text: str, where: str
) -> None:
    with pytest.raises(DataError, match=f"^{where}: .*learned"):
        formats.parse(text, format_, "FILE")


@pytest.mark.parametrize("format_", FORMATS)
def test_a_learned_graph_without_circles_gives_no_wrong_yes(
    learn, capsys: pytest.CaptureFixture[str], format_: str
) -> None:
    tiers = "n00<n10,n11,n12,n13"
    ask = ["--tiers", tiers, "--do", "n10", "--outcome", "n13"]
    graph = formats.parse(HEDGED, "edges").admg()
    assert identify(graph, Query(("n10",), ("n13",))).verdict == "no"
    path = learn(HEDGED, tiers, *ask[2:], format_=format_)
    assert not formats.read(path).has_circles()
    out, err = run(capsys, "id", path, *ask)
    assert json.loads(out)["verdict"] == "undecided"
    assert "read as learned" in err
    ask[3] = "n10=1"
    assert "not identified by this graph" in run(capsys, "estimate", path, "-", *ask, code=1)[1]


@pytest.mark.parametrize("format_", FORMATS)
def test_a_query_beyond_the_learned_tiers_is_refused(
    learn, capsys: pytest.CaptureFixture[str], format_: str
) -> None:
    path = learn(CHAIN, TIERS, "--do", "x", "--outcome", "y", format_=format_)
    out, err = run(capsys, "id", path, "--tiers", TIERS, "--do", "a", "--outcome", "y", code=65)
    assert out == ""
    assert err == (
        f"tierprune: error: {path}: tiers 1 to 2 were not learned, and P(y | do(a)) needs tiers 1 "
        "to 4; to learn that: tierprune discover DATA --tiers SPEC --do a --outcome y\n"
    )
    argv = ["--tiers", TIERS, "--do", "a=1", "--outcome", "y"]
    assert "tiers 1 to 2 were not learned" in run(capsys, "estimate", path, "-", *argv, code=65)[1]
    argv = ["prune", path, "--tiers", TIERS, "--do", "b", "--outcome", "y"]
    assert "tier 2 was not learned" in run(capsys, *argv, code=65)[1]
    argv = ["id", path, "--tiers", TIERS, "--do", "x", "--outcome", "y"]
    assert json.loads(run(capsys, *argv)[0])["formula"] == "P(y | x)"


def test_an_outcome_after_the_learned_tiers_is_refused_too(
    learn, capsys: pytest.CaptureFixture[str]
) -> None:
    path = learn(CHAIN, TIERS, "--do", "b", "--outcome", "x")  # y is not in the file
    ask = ["id", path, "--tiers", TIERS, "--do"]
    err = run(capsys, *ask, "x", "--outcome", "y", "--given", "b", code=65)[1]
    assert "tier 4 was not learned" in err
    assert err.endswith(" --do x --outcome y --given b\n")
    # what is set after all outcomes changes nothing, and need not be in the file
    assert json.loads(run(capsys, *ask, "b,y", "--outcome", "x")[0])["formula"] == "P(x | b)"
    assert json.loads(run(capsys, *ask, "y", "--outcome", "a")[0])["formula"] == "P(a)"
    assert "z is not in the variables" in run(capsys, *ask, "z", "--outcome", "a", code=2)[1]


@pytest.mark.parametrize("format_", [*FORMATS, "json"])
def test_an_outcome_before_the_treatment_learns_no_tiers(
    learn, capsys: pytest.CaptureFixture[str], format_: str
) -> None:
    path = learn(CHAIN, TIERS, "--do", "y", "--outcome", "b", format_=format_)
    ask = ["--tiers", TIERS, "--do"]
    if format_ != "json":
        assert "no tiers" in Path(path).read_text()
        assert "tiers 4" not in Path(path).read_text()
    for more in (["y"], ["x"]):
        record = json.loads(run(capsys, "id", path, *ask, *more, "--outcome", "b")[0])
        assert (record["verdict"], record["formula"]) == ("yes", "P(b)")
    pruned = run(capsys, "prune", path, *ask, "y", "--outcome", "b", "--to", "edges")[0]
    assert pruned.startswith("# learned: no tiers\n")
    err = run(capsys, "id", path, *ask, "b", "--outcome", "y", code=65)[1]
    assert "tiers 2 to 4 were not learned" in err


def test_a_band_inside_the_learned_one_will_do(learn, capsys: pytest.CaptureFixture[str]) -> None:
    path = learn(CHAIN, TIERS, "--full")
    for do, outcome in (("a", "y"), ("b", "x"), ("x", "y")):
        ask = ["id", path, "--tiers", TIERS, "--do", do, "--outcome", outcome]
        assert json.loads(run(capsys, *ask)[0])["verdict"] == "yes"


def test_what_prune_leaves_is_what_was_learned(learn, capsys: pytest.CaptureFixture[str]) -> None:
    path = learn(CHAIN, TIERS, "--full")
    argv = ["prune", path, "--tiers", TIERS, "--do", "b", "--outcome", "x"]
    for format_ in FORMATS:
        text = run(capsys, *argv, "--to", format_)[0]
        graph = formats.parse(text, format_)  # type: ignore[arg-type]
        assert (graph.learned, graph.learned_tiers) == (True, (2, 3))


def test_the_record_has_the_tiers_as_keys(learn) -> None:
    path = learn(CHAIN, TIERS, "--do", "x", "--outcome", "y", format_="json")
    record = json.loads(Path(path).read_text())
    assert (record["first_tier"], record["last_tier"]) == (3, 4)

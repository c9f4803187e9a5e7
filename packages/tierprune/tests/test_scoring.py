import json

import numpy as np
import pytest
from classes import cases

from tierprune import PAG, Band, Mark, Tiers, random_graph, score, true_pag
from tierprune.cli import app
from tierprune.discovery import discover
from tierprune.independence.oracle import Oracle

ARROW, TAIL, CIRCLE = Mark.ARROW, Mark.TAIL, Mark.CIRCLE


def test_scores_counted_by_hand():
    truth = PAG.from_edges(
        "abcd", [("a", "b", TAIL, ARROW), ("b", "c", CIRCLE, ARROW), ("c", "d", ARROW, ARROW)]
    )
    learned = PAG.from_edges(
        "dcba", [("b", "a", CIRCLE, CIRCLE), ("b", "c", TAIL, ARROW), ("a", "c", TAIL, ARROW)]
    )
    found = {s.part: (s.found, s.true, s.both) for s in score(learned, truth)}
    assert found == {
        "adjacency": (3, 3, 2),
        "arrowhead": (2, 4, 1),
        "tail": (2, 1, 0),
        "circle": (2, 1, 0),
    }
    edges = score(learned, truth)[0]
    assert (edges.precision, edges.recall, edges.f1) == pytest.approx((2 / 3, 2 / 3, 2 / 3))


def test_scores_by_tier_add_up_and_a_band_leaves_the_rest_out():
    rng = np.random.default_rng(0)
    graph, tiers = random_graph([3, 3, 3], rng)
    other, _ = random_graph([3, 3, 3], rng)
    truth, learned = true_pag(graph, tiers), true_pag(other, tiers)
    scores = score(learned, truth, tiers=tiers, by_tier=True)
    whole, parts = scores[:4], scores[4:]
    for i, total in enumerate(whole):
        assert sum(s.both for s in parts[i::4]) == total.both
        assert sum(s.found for s in parts[i::4]) == total.found
    assert {s.tier for s in parts} == {1, 2, 3}
    late = score(learned, truth, tiers=tiers, band=Band(2, 3, "3.2"))
    assert late[0].true == sum(s.true for s in parts[4::4])
    assert all(s.f1 == 1 for s in score(truth, truth, tiers=tiers) if s.true)


def test_the_true_pag_has_the_marks_that_all_members_share():
    for group, pag, tiers, _ in cases((0, 3), (1, 2), (2, 2)):
        last = len(tiers)
        assert true_pag(group[0], tiers, Band(last, last, "3.2")) == pag


@pytest.mark.slow
def test_the_true_pag_is_what_discovery_finds_with_unlimited_data():
    rng = np.random.default_rng(7)
    for _ in range(6):
        graph, tiers = random_graph([4, 4, 4], rng, max_neighbours=5)
        assert true_pag(graph, tiers) == discover(Oracle(graph), tiers).pag
        band = Band(2, 3, "3.2")
        assert true_pag(graph, tiers, band) == discover(Oracle(graph), tiers, band).pag
    graph, _ = random_graph([7], rng, bidirected=0.5)
    assert true_pag(graph) == discover(Oracle(graph), Tiers((graph.names,))).pag


def test_variables_must_be_the_same():
    with pytest.raises(ValueError, match="b is not in the truth"):
        score(PAG("ab"), PAG("a"))


@pytest.fixture
def files(tmp_path):
    (tmp_path / "g.edges").write_text("a -> b\na -> c\nb -> c\nd <-> c\n")
    (tmp_path / "l.edges").write_text("a -> b\nb o-> c\nd\n")
    return [str(tmp_path / "l.edges"), str(tmp_path / "g.edges")]


def test_the_command_scores_against_the_pag_of_a_graph(files, capsys):
    tiers = "a<b<c,d"
    assert app.run(["score", *files, "--tiers", tiers, "--by-tier"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    edges = records[0]
    assert (edges["part"], edges["tier"]) == ("adjacency", None)
    assert (edges["found"], edges["true"], edges["both"]) == (2, 4, 2)
    assert (edges["precision"], edges["recall"]) == (1.0, 0.5)
    assert [r["tier"] for r in records[4::4]] == [1, 2, 3]
    assert records[4]["precision"] is None  # there is nothing in tier 1
    argv = ["score", *files, "--tiers", tiers, "--do", "b", "--outcome", "b"]
    assert app.run(argv) == 2
    assert app.run([*argv[:-1], "c"]) == 0
    capsys.readouterr()


def test_a_truth_may_be_a_pag(tmp_path, capsys):
    (tmp_path / "p.edges").write_text("a o-> b\n")
    path = str(tmp_path / "p.edges")
    assert app.run(["score", path, path]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[3])["both"] == 1
    (tmp_path / "m.edges").write_text("a -> b\n")
    # as a graph its PAG is a o-o b; as a PAG it is itself
    assert app.run(["score", str(tmp_path / "m.edges"), str(tmp_path / "m.edges")]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[1])["both"] == 0
    assert app.run(["score", str(tmp_path / "m.edges"), str(tmp_path / "m.edges"), "--as-pag"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[1])["both"] == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--by-tier"], 2, "need --tiers"),
        (["--tiers", "a<b<c"], 65, "d has no tier"),
        (["--tiers", "a<b<c,d", "--do", "a"], 2, "both --do and --outcome"),
        (["--tiers", "c<a<b,d"], 65, "c"),
    ],
)
def test_wrong_input_is_named(files, arguments, code, message, capsys):
    assert app.run(["score", *files, *arguments]) == code
    assert message in capsys.readouterr().err


def test_a_variable_that_one_graph_lacks_is_named(files, tmp_path, capsys):
    (tmp_path / "x.edges").write_text("a -> b\n")
    assert app.run(["score", files[0], str(tmp_path / "x.edges")]) == 65
    assert "x.edges: c of" in capsys.readouterr().err

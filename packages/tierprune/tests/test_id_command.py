"""`tierprune id` and `tierprune estimate`: answers, formats, exit codes."""

import json
from pathlib import Path

import numpy as np
import pytest

from tierprune.cli import app
from tierprune.schema import schema

GRAPH = "age -> drug\nage -> bp\ndrug -> bp\nbp -> stroke\nage -> stroke\n"
TIERS = "age<drug<bp<stroke"
ASK = ["--tiers", TIERS, "--do", "drug", "--outcome", "stroke"]


@pytest.fixture
def graph(tmp_path: Path) -> str:
    path = tmp_path / "g.txt"
    path.write_text(GRAPH)
    return str(path)


@pytest.fixture
def bow(tmp_path: Path) -> str:
    path = tmp_path / "bow.txt"
    path.write_text("x -> y\nx <-> y\nw -> x\n")
    return str(path)


@pytest.fixture
def data(tmp_path: Path) -> str:
    rng = np.random.default_rng(0)
    age = rng.integers(0, 3, 2000)
    drug = (rng.random(2000) < 0.3 + 0.1 * age).astype(int)
    bp = (rng.random(2000) < 0.5 - 0.2 * drug + 0.15 * age).astype(int)
    stroke = (rng.random(2000) < 0.1 + 0.2 * bp + 0.05 * age).astype(int)
    lines = [
        "age,drug,bp,stroke",
        *(",".join(map(str, r)) for r in zip(age, drug, bp, stroke, strict=True)),
    ]
    path = tmp_path / "d.csv"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def matches(record: object, name: str) -> bool:
    validator = pytest.importorskip("jsonschema").Draft202012Validator
    return bool(validator(schema()["$defs"][name]).is_valid(record))


def test_the_four_formats(graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = {}
    for name in ("text", "latex", "y0", "json"):
        assert app.run(["id", graph, *ASK, "--format", name]) == 0
        said[name] = capsys.readouterr().out
    record = json.loads(said["json"])
    assert matches(record, "id")
    assert (record["verdict"], record["rule"], record["hedge"]) == ("yes", "3.2", None)
    assert said["text"] == f"P(stroke | do(drug)) = {record['formula']}\n"
    assert said["latex"].startswith(r"P(\text{stroke} \mid \mathrm{do}(\text{drug})) = \sum")
    assert said["y0"].startswith("Sum[V0")


def test_rule_and_dropped_edges_are_told(graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["id", graph, "--tiers", TIERS, "--do", "bp", "--outcome", "stroke"]) == 0
    captured = capsys.readouterr()
    assert "Proposition 3.2" in captured.err
    assert "4 edges kept, 1 dropped" in captured.err
    assert json.loads(captured.out)["dropped_edges"] == 1
    assert app.run(["id", graph, "--full", *ASK]) == 0
    assert json.loads(capsys.readouterr().out)["rule"] is None


def test_a_hedge_is_an_answer_unless_strict(bow: str, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["id", bow, "--tiers", "w<x,y", "--do", "x", "--outcome", "y"]
    assert app.run(ask) == 0
    record = json.loads(capsys.readouterr().out)
    assert matches(record, "id")
    assert record["verdict"] == "no"
    assert record["hedge"] == {
        "effect": "P(y | do(x))",
        "larger": ["x", "y"],
        "smaller": ["y"],
        "roots": ["y"],
    }
    assert app.run([*ask, "--strict", "--format", "text"]) == 1
    captured = capsys.readouterr()
    assert captured.out.startswith("P(y | do(x)) is not identifiable\nhedge for P(y | do(x)):\n")
    assert captured.err.endswith("error: P(y | do(x)): identifiable: no\n")


@pytest.mark.parametrize(
    ("more", "code", "why"),
    [
        (["--tiers", TIERS, "--do", "drg", "--outcome", "stroke"], 2, "drg"),
        (["--tiers", TIERS, "--do", "drug", "--outcome", "drug"], 2, "drug"),
        (["--tiers", "drug<age<bp<stroke", "--do", "drug", "--outcome", "bp"], 65, "age -> drug"),
        (["--tiers", "age<drug<bp", "--do", "drug", "--outcome", "bp"], 65, "stroke"),
        ([*ASK, "--enumerate", "3"], 2, "no circles"),
    ],
)
def test_bad_questions(
    graph: str, more: list[str], code: int, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["id", graph, *more]) == code
    captured = capsys.readouterr()
    assert why in captured.err
    assert captured.out == ""


def test_a_learned_graph_is_answered_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pag.txt"
    path.write_text("a o-> x\nb o-> x\nx -> y\n")
    ask = ["id", str(path), "--tiers", "a,b<x<y", "--do", "x", "--outcome", "y"]
    assert app.run(ask) == 0
    record = json.loads(capsys.readouterr().out)
    assert matches(record, "id_learned")
    assert (record["verdict"], record["formula"]) == ("yes", "P(y | x)")


def test_estimates_and_their_difference(
    graph: str, data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ask = ["estimate", graph, data, "--tiers", TIERS, "--do", "drug=1", "--outcome", "stroke"]
    assert app.run(ask) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["outcome"] for record in records] == [{"stroke": "0"}, {"stroke": "1"}]
    assert sum(record["estimate"] for record in records) == pytest.approx(1)
    assert all(matches(record, "estimate") for record in records)
    assert app.run([*ask[:-1], "stroke=1", "--versus", "drug=0"]) == 0
    captured = capsys.readouterr()
    (record,) = map(json.loads, captured.out.splitlines())
    assert matches(record, "estimate")
    assert record["difference"] == pytest.approx(-0.04, abs=0.05)  # -0.2 * 0.2 by construction
    assert record["difference_low"] < record["difference"] < record["difference_high"]
    assert "thinnest cell under do(drug=1): age=0, drug=1 (" in captured.err


def test_what_estimate_refuses(
    graph: str, bow: str, data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        code = app.run(["estimate", *arguments])
        captured = capsys.readouterr()
        assert captured.out == ""
        return code, captured.err

    rows = Path(data).read_text().splitlines()
    thin = tmp_path / "thin.csv"
    thin.write_text("\n".join(row for row in rows if not row.startswith("2,1,")) + "\n")
    common = ("--tiers", TIERS, "--outcome", "stroke=1")
    code, said = run(graph, str(thin), *common, "--do", "drug=1")
    assert code == 65
    assert "thin.csv: the formula conditions on the cell age=2, drug=1, which has 0 rows" in said
    code, said = run(graph, data, *common, "--do", "drug=9")
    assert (code, "drug has no value '9'" in said) == (2, True)
    code, said = run(graph, data, *common, "--do", "drug")
    assert (code, "a value is expected" in said) == (2, True)
    code, said = run(bow, data, "--tiers", "w<x,y", "--do", "x=1", "--outcome", "y")
    assert (code, "hedge: x, y" in said) == (1, True)
    short = tmp_path / "short.csv"
    short.write_text("\n".join(row.rpartition(",")[0] for row in rows) + "\n")
    code, said = run(graph, str(short), *common, "--do", "drug=1")
    assert (code, "'stroke'" in said) == (65, True)


def test_a_learned_graph_without_circles_may_hide_confounding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """x -> y alone in a tier: known, P(y | x) is the answer; learned, no mark excludes x <-> y."""
    path = tmp_path / "g.edges"
    path.write_text("x -> y\n")
    ask = ["id", str(path), "--tiers", "x,y", "--do", "x", "--outcome", "y"]
    assert app.run(ask) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "yes"
    assert app.run([*ask, "--as-pag"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert matches(record, "id_learned")
    assert record["verdict"] == "undecided"
    assert app.run([*ask, "--as-pag", "--full"]) == 2
    assert "--full is for a graph that is known" in capsys.readouterr().err


def test_the_range_over_the_graphs_of_a_learned_class(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """x o-> y is x <-> y, whose effect is P(y), or x -> y, which may hide confounding."""
    graph, data = tmp_path / "p.edges", tmp_path / "d.csv"
    graph.write_text("x o-> y\n")
    rows = [(0, 0)] * 30 + [(0, 1)] * 10 + [(1, 0)] * 12 + [(1, 1)] * 48
    data.write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in rows))
    ask = ["estimate", str(graph), str(data), "--tiers", "x,y", "--outcome", "y=1"]
    ask += ["--do", "x=1", "--versus", "x=0"]
    assert app.run(ask) == 1
    assert capsys.readouterr().out == ""
    assert app.run([*ask, "--enumerate", "10"]) == 0
    said = capsys.readouterr()
    (record,) = [json.loads(line) for line in said.out.splitlines()]
    assert matches(record, "estimate")
    assert (record["verdict"], record["members"]) == ("undecided", 1)
    assert record["formula"] == "P(y)"
    assert record["estimate"] == pytest.approx(58 / 100)
    assert record["difference"] == 0
    assert "y=1: the difference is 0 to 0 over the graphs that identify it" in said.err

"""The command `discover`: formats, refusals, and the record of a comparison."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tierprune import Band, Contingency, discover, formats, random_graph, random_model, sample
from tierprune.cli import app
from tierprune.dataset import Coded
from tierprune.schema import schema
from tierprune.scoring import score, true_pag

TIERS = "a,b<x,m<y"


@pytest.fixture
def data(tmp_path: Path) -> str:
    """A linear model: a -> x -> m -> y, b -> x, b -> y; the tiers are those of TIERS."""
    rng = np.random.default_rng(1)
    a, b, e, f, g = rng.normal(size=(5, 2000))
    x = a + b + e
    m = x + f
    y = m + b + g
    path = tmp_path / "d.csv"
    rows = zip(a, b, x, m, y, strict=True)
    path.write_text("a,b,x,m,y\n" + "".join(f"{','.join(f'{v:.6f}' for v in r)}\n" for r in rows))
    return str(path)


@pytest.fixture
def truth(tmp_path: Path) -> str:
    path = tmp_path / "g.edges"
    path.write_text("a -> x\nb -> x\nx -> m\nm -> y\nb -> y\n")
    return str(path)


def said(capsys: pytest.CaptureFixture[str], *argv: str, code: int = 0) -> tuple[str, str]:
    found = app.run(["discover", *argv])
    out, err = capsys.readouterr()
    assert found == code, err
    return out, err


def edges(text: str) -> set[str]:
    return {line for line in text.splitlines() if line and not line.startswith("#")}


def test_the_edges_of_a_query(capsys: pytest.CaptureFixture[str], data: str) -> None:
    out, err = said(capsys, data, "--tiers", TIERS, "--do", "x", "--outcome", "y")
    assert edges(out) == {"a -> x", "b -> x", "x -> m", "b -> y", "m -> y"}
    assert "tiers 2 to 3 of 3 (Proposition 3.2): 5 edges, " in err


def test_data_and_the_true_graph_agree(
    capsys: pytest.CaptureFixture[str], data: str, truth: str
) -> None:
    for more in ([], ["--full"], ["--given", "a"], ["--given", "m"]):
        asked = ["--tiers", TIERS, "--do", "x", "--outcome", "y", *more]
        assert said(capsys, data, *asked)[0] == said(capsys, "--truth", truth, *asked)[0]


@pytest.mark.parametrize("format_", ["edges", "dot", "graphml", "dagitty"])
def test_each_format_is_read_again(
    capsys: pytest.CaptureFixture[str], truth: str, tmp_path: Path, format_: str
) -> None:
    path = str(tmp_path / f"pag.{format_}")
    asked = ["--truth", truth, "--tiers", TIERS, "--full"]
    said(capsys, *asked, "-o", path)
    plain = said(capsys, *asked, "--format", format_)[0]
    assert plain == Path(path).read_text()
    found = formats.read(path).pag()
    pairs = {frozenset((found.names[i], found.names[j])) for i, j, *_ in found.edges()}
    assert pairs == set(map(frozenset, ("ax", "bx", "xm", "my", "by")))
    said(capsys, *asked, "-o", path, code=73)
    said(capsys, *asked, "-o", path, "--force")


def test_the_records_match_the_schema(
    capsys: pytest.CaptureFixture[str], data: str, truth: str
) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    query = ["--tiers", TIERS, "--do", "x", "--outcome", "y"]
    for asked in ([data, *query, "--format", "json", "--max-cond", "1"],
                  ["--truth", truth, "--tiers", TIERS, "--full", "--format", "json"],
                  [data, *query, "--compare"]):  # fmt: skip
        jsonschema.validate(json.loads(said(capsys, *asked)[0]), schema())


def test_the_record_has_sets_and_counts(capsys: pytest.CaptureFixture[str], truth: str) -> None:
    query = ["--tiers", TIERS, "--do", "x", "--outcome", "y"]
    found = json.loads(said(capsys, "--truth", truth, *query, "--format", "json")[0])
    given = {(s["a"], s["b"]): s["given"] for s in found["sepsets"]}
    assert given == {
        ("a", "m"): ["x"], ("b", "m"): ["x"], ("a", "y"): ["b", "x"], ("x", "y"): ["b", "m"],
    }  # fmt: skip
    assert found["tests"] == sum(tier["tests"] for tier in found["tiers"])
    assert [tier["tier"] for tier in found["tiers"]] == [2, 3]
    assert found["contradictions"] == []


def test_a_comparison(capsys: pytest.CaptureFixture[str], data: str) -> None:
    out, _ = said(capsys, data, "--tiers", TIERS, "--do", "m", "--outcome", "y", "--compare")
    found = json.loads(out)
    assert found["same_edges"] is True
    assert found["tests"]["full"] - found["tests"]["query"] == 1  # a and b: one test
    assert found["tests"]["ratio"] == found["tests"]["full"] / found["tests"]["query"]


def test_an_outcome_before_the_treatment_needs_nothing(
    capsys: pytest.CaptureFixture[str], data: str
) -> None:
    out, err = said(capsys, data, "--tiers", TIERS, "--do", "y", "--outcome", "b")
    assert not any("-" in line for line in edges(out))
    assert "no edge is needed" in err


def test_a_bound_that_matters_is_said(capsys: pytest.CaptureFixture[str], data: str) -> None:
    asked = [data, "--tiers", TIERS, "--do", "x", "--outcome", "y"]
    out, err = said(capsys, *asked, "--max-cond", "1")
    assert "a -> y" in edges(out)
    assert "--max-cond 1: sets of more variables were not tried" in err


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (["--do", "x"], 2, "--do and --outcome are needed"),
        ([], 2, "--do and --outcome are needed"),
        (["--do", "x", "--outcome", "z"], 2, "z is not in the variables"),
        (["--do", "x", "--outcome", "x"], 2, "x is in treatment and in outcome"),
        (["--do", "x", "--outcome", "y", "--full", "--compare"], 2, "leave out --full"),
        (["--do", "x", "--outcome", "y", "--truth", "g"], 2, "give one of them"),
        (["--full", "--plot", "p.png"], 2, "--plot shows a query"),
        (["--do", "x", "--outcome", "y", "--test", "gsq"], 65, "has 2000 different values"),
    ],
)
def test_wrong_usage_is_named(
    capsys: pytest.CaptureFixture[str], data: str, more: list[str], code: int, message: str
) -> None:
    _, err = said(capsys, data, "--tiers", TIERS, *more, code=code)
    assert message in err
    assert err.count("\n") == 1


def test_a_column_that_the_data_lack_is_named(
    capsys: pytest.CaptureFixture[str], data: str
) -> None:
    asked = [data, "--tiers", TIERS + ",q", "--do", "x", "--outcome", "y"]
    assert f"{data}: there is no column 'q'" in said(capsys, *asked, code=65)[1]


@pytest.mark.parametrize("alpha", ["0", "1", "-0.1", "1.5", "nan"])
def test_a_level_outside_0_and_1_is_refused(
    capsys: pytest.CaptureFixture[str], data: str, alpha: str
) -> None:
    asked = [data, "--tiers", TIERS, "--do", "x", "--outcome", "y", "--alpha", alpha]
    err = said(capsys, *asked, code=2)[1]
    assert f"--alpha {alpha}: a number above 0 and below 1 is expected" in err


def test_a_level_that_is_high_is_said_once(capsys: pytest.CaptureFixture[str], data: str) -> None:
    asked = [data, "--tiers", TIERS, "--do", "x", "--outcome", "y", "--alpha"]
    assert said(capsys, *asked, "0.999")[1].count("--alpha 0.999 is high: most pairs that are") == 1
    assert "is high" not in said(capsys, *asked, "0.5")[1]


def test_columns_in_no_tier_are_named(capsys: pytest.CaptureFixture[str], data: str) -> None:
    asked = [data, "--tiers", "a<x<y", "--do", "x", "--outcome", "y"]
    assert "2 columns are in no tier and not used: b, m" in said(capsys, *asked)[1]
    asked[2] = "a,b<x<y"
    assert "1 column is in no tier and not used: m" in said(capsys, *asked)[1]
    asked[2] = TIERS
    assert "in no tier" not in said(capsys, *asked)[1]


def test_words_where_numbers_are_needed_name_the_way_out(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "d.csv"
    path.write_text("x,y\n" + "low,1.5\nhigh,2.5\n" * 20)
    err = said(capsys, str(path), "--tiers", "x<y", "--do", "x", "--outcome", "y", code=65)[1]
    assert "'low' is not a number (expected a number, or --test gsq for categories)" in err
    assert err.count("\n") == 1


def test_a_column_spelt_otherwise_is_suggested(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "d.csv"
    path.write_text("SMOKE,diet,ill\n" + "1,2,3.5\n2,1,4\n" * 20)
    for name, known in (("smoke", "SMOKE"), ("dieet", "diet")):
        asked = ["--tiers", f"{name}<ill", "--do", name, "--outcome", "ill"]
        err = said(capsys, str(path), *asked, code=65)[1]
        assert f"there is no column '{name}'; did you mean {known}? (expected one of" in err
    # A column that has its tier is not meant by another name.
    asked = ["--tiers", "diet,diets<ill", "--do", "diet", "--outcome", "ill"]
    assert "did you mean" not in said(capsys, str(path), *asked, code=65)[1]


def test_a_learned_graph_is_no_truth(
    capsys: pytest.CaptureFixture[str], truth: str, tmp_path: Path
) -> None:
    learned = str(tmp_path / "learned.edges")
    asked = ["--tiers", TIERS, "--do", "x", "--outcome", "y"]
    said(capsys, "--truth", truth, *asked, "--full", "-o", learned)
    err = said(capsys, "--truth", learned, *asked, code=65)[1]
    assert f"{learned}: this graph was learned: it stands for a class of graphs" in err


def test_a_variable_that_the_true_graph_lacks_is_named(
    capsys: pytest.CaptureFixture[str], truth: str
) -> None:
    asked = ["--truth", truth, "--tiers", TIERS + ",q", "--do", "x", "--outcome", "y"]
    assert f"{truth}: q of the tiers is not in the graph\n" in said(capsys, *asked, code=65)[1]
    asked[3] = "a,b<X,m<y"
    err = said(capsys, *asked[:-3], "X", *asked[-2:], code=65)[1]
    assert "X of the tiers is not in the graph (did you mean x?)" in err


def test_a_true_graph_that_breaks_the_tiers_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "g.edges"
    path.write_text("a <-> x\nx -> y\ny -> a\n")
    asked = ["--truth", str(path), "--tiers", "a<x<y", "--do", "x", "--outcome", "y"]
    assert f"{path}:1: a <-> x joins tiers 1 and 2" in said(capsys, *asked, code=65)[1]
    path.write_text("x -> y\ny -> a\n")
    assert f"{path}:2: y -> a goes from tier 3 back" in said(capsys, *asked, code=65)[1]


@pytest.mark.slow
def test_the_picture_is_drawn(
    capsys: pytest.CaptureFixture[str], truth: str, tmp_path: Path
) -> None:
    path = tmp_path / "p.svg"
    said(
        capsys,
        "--truth",
        truth,
        "--tiers",
        TIERS,
        "--do",
        "x",
        "--outcome",
        "y",
        "--plot",
        str(path),
    )
    assert "<svg" in path.read_text()


@pytest.mark.slow
def test_a_query_is_learnt_as_well_as_in_the_full_graph() -> None:
    """20 samples of 5 tiers of 6 binary variables, 50,000 rows each."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        graph, tiers = random_graph([6] * 5, rng)
        rows = sample(random_model(graph, rng, states=(2, 2)), 50_000, rng)
        test = Contingency(
            [
                Coded(n, c.astype(np.int64), ("0", "1"))
                for n, c in zip(tiers.names, rows.T, strict=True)
            ]
        )
        first, last = sorted(rng.integers(1, 6, 2).tolist())
        band = Band(first, last, "3.2")
        full, part = discover(test, tiers), discover(test, tiers, band)
        truth = true_pag(graph, tiers, band)
        mine = score(part.pag, truth, tiers=tiers, band=band)
        whole = score(full.pag, truth, tiers=tiers, band=band)
        for a, b in zip(mine, whole, strict=True):
            assert (a.part, a.precision, a.recall) == (b.part, b.precision, b.recall)
        assert part.tests < full.tests or (first, last) == (1, 5)

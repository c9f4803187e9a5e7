"""What several commands say of their inputs: two at stdin, compressed data, an edge that is 0."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import numpy as np
import pytest

from tierprune.cli import app


def said(capsys: pytest.CaptureFixture[str], *argv: str, code: int = 0) -> tuple[str, str]:
    found = app.run(argv)
    out, err = capsys.readouterr()
    assert found == code, err
    return out, err


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """x -> m -> y among three binary variables, and data of it."""
    graph, data = tmp_path / "g.edges", tmp_path / "d.csv"
    graph.write_text("x -> m\nm -> y\nx -> y\n")
    rng = np.random.default_rng(0)
    rows = rng.integers(2, size=(200, 3)).tolist()
    data.write_text("x,m,y\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    return str(graph), str(data)


QUERY = ["--tiers", "x<m<y", "--do", "x=1", "--outcome", "y=1"]


@pytest.mark.parametrize(
    "argv",
    [
        ["estimate", "-", "-", *QUERY],
        ["estimate", "-", "d", "--tiers", "-", *QUERY[2:]],
        ["estimate", "g", "-", "--tiers", "-", *QUERY[2:]],
        ["prune", "-", "--tiers", "-", "--do", "x", "--outcome", "y"],
        ["discover", "-", "--tiers", "-", "--full"],
        ["discover", "--tiers", "-", "--full"],
        ["check", "--tiers", "-"],
    ],
)
def test_two_inputs_cannot_be_stdin(capsys: pytest.CaptureFixture[str], argv: list[str]) -> None:
    assert "cannot both be stdin" in said(capsys, *argv, code=2)[1]


@pytest.mark.parametrize("size", ["0x3", "3x0", "0x0", "00x5"])
def test_an_empty_size_is_wrong_usage(capsys: pytest.CaptureFixture[str], size: str) -> None:
    err = said(capsys, "need", "--tiers", size, "--do", "a", "--outcome", "b", code=2)[1]
    assert "at least 1 each" in err


def test_gzip_at_stdin_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, files: tuple[str, str]
) -> None:
    for path, argv in (
        (files[1], ["discover", "-", "--tiers", "x<m<y", "--full"]),
        (files[0], ["prune", "-", "--tiers", "x<m<y", "--do", "x", "--outcome", "y"]),
    ):
        packed = io.BytesIO(gzip.compress(Path(path).read_bytes()))
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(packed))
        err = said(capsys, *argv, code=65)[1]
        assert "stdin: this looks like gzip (expected plain text; pipe it through gzip -dc)" in err


def test_a_graph_with_circles_cannot_be_pruned(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "pag.edges"
    path.write_text("x -> y\na o-> b\n")
    argv = ["prune", str(path), "--tiers", "x<y,a,b", "--do", "x", "--outcome", "y"]
    err = said(capsys, *argv, code=65)[1]
    assert f"{path}:2: the edge between a and b has a circle" in err
    assert "`tierprune id`" in err


def test_an_effect_that_the_graph_rules_out_is_said_to_be(
    capsys: pytest.CaptureFixture[str], files: tuple[str, str], tmp_path: Path
) -> None:
    graph = tmp_path / "none.edges"
    graph.write_text("x -> m\ny\n")
    argv = [*QUERY, "--versus", "x=0", "--bootstrap", "0", "--format", "json"]
    out, err = said(capsys, "estimate", str(graph), files[1], *argv)
    assert json.loads(out)["difference"] == 0
    assert "no directed path leads from x to y in the graph" in err
    out, err = said(capsys, "estimate", *files, *argv)
    assert json.loads(out)["difference"] != 0
    assert "no directed path" not in err


def test_each_thinnest_cell_says_its_setting(
    capsys: pytest.CaptureFixture[str], files: tuple[str, str]
) -> None:
    argv = [*QUERY, "--versus", "x=0", "--bootstrap", "0"]
    err = said(capsys, "estimate", *files, *argv)[1]
    assert "thinnest cell under do(x=1): x=1 (" in err
    assert "thinnest cell under do(x=0): x=0 (" in err


def test_a_thinnest_cell_that_both_settings_share_is_said_once(
    capsys: pytest.CaptureFixture[str], files: tuple[str, str], tmp_path: Path
) -> None:
    graph = tmp_path / "none.edges"
    graph.write_text("m -> y\nx\n")
    argv = ["--tiers", "x,m<y", "--do", "x=1", "--versus", "x=0", "--given", "m=1"]
    argv += ["--outcome", "y=1", "--bootstrap", "0"]
    err = said(capsys, "estimate", str(graph), files[1], *argv)[1]
    assert "thinnest cell under do(x=1) and do(x=0): m=1 (" in err


def test_a_value_must_be_written_as_in_the_data(
    capsys: pytest.CaptureFixture[str], files: tuple[str, str]
) -> None:
    argv = [*QUERY[:2], "--do", "x=1.0", "--outcome", "y=1"]
    err = said(capsys, "estimate", *files, *argv, code=2)[1]
    assert "x has no value '1.0' (it has 0, 1; did you mean 1?)" in err


def test_a_comparison_does_not_depend_on_what_runs_first(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(300, 20)).cumsum(axis=1)
    names = [f"V{t}_{i}" for t in range(1, 5) for i in range(1, 6)]
    path = tmp_path / "d.csv"
    path.write_text(",".join(names) + "\n" + "".join(
        ",".join(map(repr, row)) + "\n" for row in data.tolist()
    ))  # fmt: skip
    argv = [str(path), "--tiers", "4x5", "--do", "V4_1", "--outcome", "V4_2", "--compare"]
    found = json.loads(said(capsys, "discover", *argv)[0])
    assert found["tests"]["query"] < found["tests"]["full"]
    assert found["wall_s"]["query"] < found["wall_s"]["full"]


def test_one_edge_is_singular(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "g.edges"
    path.write_text("a -> x\n")
    err = said(capsys, "discover", "--truth", str(path), "--tiers", "a<x", "--full")[1]
    assert ": 1 edge, 1 test, " in err

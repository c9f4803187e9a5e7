"""What `discover --format json` writes is a graph that other commands read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from papercuts.errors import DataError
from tierprune import formats
from tierprune.cli import app

TRUTH = "u\na -> x\nb -> x\nx -> m\nm <-> n\nm -> y\nb -> y\n"
TIERS = "a,b,u<x,m,n<y"


@pytest.mark.parametrize("more", [["--full"], ["--do", "x", "--outcome", "y"]])
def test_a_record_is_the_graph_of_the_edge_list(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, more: list[str]
) -> None:
    (tmp_path / "g.edges").write_text(TRUTH)
    asked = ["discover", "--truth", str(tmp_path / "g.edges"), "--tiers", TIERS, *more, "-o"]
    for name in ("pag.edges", "pag.json", "pag.json.gz"):
        assert app.run([*asked, str(tmp_path / name)]) == 0
    plain = formats.read(str(tmp_path / "pag.edges"))
    answers = []
    for name in ("pag.edges", "pag.json", "pag.json.gz"):
        graph = formats.read(str(tmp_path / name))
        assert set(graph.names) == set(plain.names)
        ends = (
            {frozenset(((e.a, e.at_a), (e.b, e.at_b))) for e in g.edges} for g in (graph, plain)
        )
        assert next(ends) == next(ends)
        assert (graph.learned, graph.learned_tiers) == (True, plain.learned_tiers)
        capsys.readouterr()
        query = ["--tiers", TIERS, "--do", "x", "--outcome", "y", "--format", "json"]
        assert app.run(["id", str(tmp_path / name), *query]) == 0
        found = json.loads(capsys.readouterr().out)
        answers.append([found[key] for key in ("verdict", "by", "criterion", "adjust_for")])
    assert answers == [["yes", "adjustment", "adjustment", ["b"]]] * 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1', "g.json:1: "),
        ('{"a": 1}', "g.json:1: JSON that is no learned graph (expected the record of `tierprune"),
        ('{"a": 1}\n{"a": 1}\n', "g.json: 2 lines"),
        ('\n{"variables": ["a"], "first_tier": 1, "last_tier": 1, "edges": '
         '[{"a": "a", "b": "c", "edge": "-->"}]}', "g.json:2: an edge of a and c, of which one"),
        ('{"variables": ["a", "c"], "first_tier": 1, "last_tier": 1, "edges": '
         '[{"a": "a", "b": "c", "edge": "=>"}]}', "g.json:1: JSON that is no learned graph"),
    ],
)  # fmt: skip
def test_other_json_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "g.json"
    path.write_text(text)
    with pytest.raises(DataError) as error:
        formats.read(str(path))
    assert message in str(error.value)

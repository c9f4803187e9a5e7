import json

import pytest

from tierprune.cli import app
from tierprune.demonstration import demo_lines, exponential_family
from tierprune.speed import large_graph

# The published growth: tests of the full search and of the one for the query.
FAMILY = {3: (53, 41), 4: (110, 62), 5: (247, 87), 6: (596, 116), 7: (1493, 149)}


@pytest.mark.parametrize("size", FAMILY)
def test_the_exponential_family_costs_what_it_should(size):
    assert exponential_family(size) == FAMILY[size]


@pytest.mark.slow
def test_the_demo_shows_the_claim(capsys):
    lines = list(demo_lines())
    text = "\n".join(lines)
    assert "300 of 300 random queries" in text
    assert (
        " ".join(lines[-1].split()) == "precision and recall equal to the full search 5 of 5 seeds"
    )
    assert app.run(["demo"]) == 0
    assert capsys.readouterr().out == text + "\n"


@pytest.mark.slow
def test_the_measured_graph_has_the_size_it_says():
    import numpy as np

    graph, tiers, _ = large_graph(np.random.default_rng(0))
    assert len(graph) == 2000
    assert len(list(graph.directed())) + len(list(graph.bidirected())) == 10_000
    assert len(tiers) == 20


def test_bench_measures_the_users_data(tmp_path, capsys):
    data = str(tmp_path / "d.csv")
    assert app.run(["simulate", "--tiers", "2x3", "--samples", "200", "--data", data]) == 0
    argv = [
        "bench",
        "--repeats",
        "1",
        "--data",
        data,
        "--data-tiers",
        str(tmp_path / "d.tiers.json"),
    ]
    assert app.run(argv) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [r["task"].split()[0] for r in records] == ["prune", "identify", "discover", "discover"]
    assert records[2]["tests"] <= records[3]["tests"]
    assert records[2]["size"] == "6 variables, 200 rows"
    assert app.run(["bench", "--data", data]) == 2
    assert "--data and --data-tiers go together" in capsys.readouterr().err
    one = tmp_path / "one.json"
    one.write_text('[["V1_1"]]')
    assert app.run([*argv[:-1], str(one)]) == 2
    assert "at least two variables are needed" in capsys.readouterr().err

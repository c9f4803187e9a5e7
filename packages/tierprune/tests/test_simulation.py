import json

import numpy as np
import pytest

from papercuts.errors import UsageError
from tierprune import ADMG, formats, random_graph, random_model, read_tiers, sample
from tierprune.cli import app
from tierprune.components import check_tiers
from tierprune.simulated import csv_pieces
from tierprune.simulation import read_sizes, read_states


def test_graphs_are_as_the_paper_says():
    rng = np.random.default_rng(0)
    turned = inside = 0
    for _ in range(60):
        graph, tiers = random_graph([10] * 5, rng)
        assert tiers.groups[1][0] == "V2_1"
        check_tiers(graph, tiers)
        neighbours = [
            (p | c | s).bit_count()
            for p, c, s in zip(graph.parents, graph.children, graph.spouses, strict=True)
        ]
        assert max(neighbours) <= 4
        assert max(mask.bit_count() for mask in graph.parents) <= 5
        assert not any(p & s for p, s in zip(graph.parents, graph.spouses, strict=True))
        bidirected = len(list(graph.bidirected()))
        turned += bidirected
        of = [tiers.of[name] for name in graph.names]
        inside += bidirected + sum(of[i] == of[j] for i, j in graph.directed())
    assert abs(turned / inside - 0.3) < 3 * (0.3 * 0.7 / inside) ** 0.5


def test_options_of_the_graph_bound_it():
    rng = np.random.default_rng(1)
    graph, _ = random_graph([8, 8], rng, max_parents=1, bidirected=0)
    assert max(mask.bit_count() for mask in graph.parents) == 1
    assert not list(graph.bidirected())
    whole, _ = random_graph([20], rng, bidirected=1)
    assert not list(whole.directed())
    with pytest.raises(ValueError, match="share of bidirected"):
        random_graph([2], rng, bidirected=2)


def test_samples_follow_the_exact_joint_also_under_an_intervention():
    rng = np.random.default_rng(12)
    graph = ADMG.from_edges("xmy", [("x", "m"), ("m", "y")], [("x", "y")])
    model = random_model(graph, rng)
    for do in (None, {"m": 1}):
        rows = sample(model, 100_000, rng, do)
        exact = model.distribution("xmy", do)
        seen = np.zeros_like(exact)
        np.add.at(seen, tuple(rows.T), 1 / len(rows))
        assert np.abs(seen - exact).max() < 0.01  # six standard errors
    # x and y are confounded: seeing x is not setting it
    seeing = model.distribution("xy")
    doing = model.distribution("y", {"x": 0})
    assert np.abs(seeing[0] / seeing[0].sum() - doing).max() > 0.01


def test_a_joint_by_hand_equals_the_models():
    graph = ADMG.from_edges("ab", [("a", "b")], [("a", "b")])
    model = random_model(graph, np.random.default_rng(3), states=(2, 2))
    (latent,), (a, b) = model.latent_tables, model.tables
    by_hand = np.zeros((2, 2))
    for u in range(2):
        for i in range(2):
            for j in range(2):
                by_hand[i, j] += latent[u] * a[u, i] * b[i, u, j]
    np.testing.assert_allclose(model.distribution("ab"), by_hand, atol=1e-15)
    set_a = sum(latent[u] * b[1, u] for u in range(2))
    np.testing.assert_allclose(model.distribution("b", {"a": 1}), set_a, atol=1e-15)


def test_gaussian_variables_have_variance_one_and_the_covariance_said():
    rng = np.random.default_rng(4)
    graph, _ = random_graph([4, 4, 4], rng)
    model = random_model(graph, rng, kind="gaussian")
    np.testing.assert_allclose(np.diag(model.covariance()), 1, atol=1e-12)
    rows = sample(model, 100_000, rng)
    np.testing.assert_allclose(np.cov(rows.T), model.covariance(), atol=0.03)
    chain = ADMG.from_edges("xmy", [("x", "m"), ("m", "y")])
    made = random_model(chain, rng, kind="gaussian")
    assert made.effect("x", "y") == pytest.approx(made.weights[0, 1] * made.weights[1, 2])


@pytest.mark.parametrize("scale", [1, 3000])
def test_csv_holds_the_numbers(scale):
    rows = np.random.default_rng(5).standard_normal((500, 3)) * scale
    rows[0] = 0, -1e-9, -0.5
    text = b"".join(csv_pieces("abc", rows)).decode()
    assert text.splitlines()[0] == "a,b,c"
    read = np.array([line.split(",") for line in text.splitlines()[1:]]).astype(float)
    assert np.abs(read - rows).max() < 6e-7
    assert text.splitlines()[1] == "0.000000,0.000000,-0.500000"
    states = np.arange(10, dtype=np.int8).reshape(5, 2)
    assert b"".join(csv_pieces("ab", states)) == b"a,b\n0,1\n2,3\n4,5\n6,7\n8,9\n"


def test_the_command_writes_data_truth_and_tiers(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = "simulate --tiers 4x6 --seed 1 --samples 50 --data d.csv --truth g.dot"
    command = words.split()
    assert app.run(command) == 0
    assert "tiers: d.tiers.json" in capsys.readouterr().err
    tiers = read_tiers("d.tiers.json")
    graph = formats.read("g.dot")
    check_tiers(graph, tiers)
    lines = (tmp_path / "d.csv").read_text().splitlines()
    assert lines[0].split(",") == [*tiers.names] == graph.names
    assert len(lines) == 51
    assert app.run(command) == 73
    first = (tmp_path / "d.csv").read_bytes()
    assert app.run([*command, "--force"]) == 0
    assert (tmp_path / "d.csv").read_bytes() == first
    assert json.loads((tmp_path / "d.tiers.json").read_text())["tiers"][3][5] == "V4_6"


def test_the_command_writes_data_to_stdout(capsys):
    assert app.run(["simulate", "--tiers", "2,1", "--samples", "3", "--kind", "gaussian"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "V1_1,V1_2,V2_1"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--tiers 0x3", "--tiers '0x3'"),
        ("--tiers five", "--tiers 'five'"),
        ("--states 1-3", "--states '1-3'"),
        ("--states 3-2", "--states '3-2'"),
        ("--truth -", "a place each"),
        (
            "--tiers 1x60 --max-parents 60 --max-neighbours 60 --states 9 --samples 1",
            "too many for a table",
        ),
    ],
)
def test_wrong_options_are_named(arguments, message, capsys):
    assert app.run(["simulate", *arguments.split()]) == 2
    assert message in capsys.readouterr().err


def test_sizes_and_states_are_read():
    assert read_sizes("3x2") == [2, 2, 2]
    assert read_sizes("3,2") == [3, 2]
    assert (read_states("2-3"), read_states("4")) == ((2, 3), (4, 4))
    with pytest.raises(UsageError):
        read_sizes("3,0")
    assert sum(read_sizes("200x100")) == 20_000
    for many in ("99999999x99999", "201x100", "20000,1", "10000000000x1"):
        with pytest.raises(UsageError):
            read_sizes(many)

"""What `diag` says, against arviz, closed forms, and runs whose faults are known."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from arviz_stats.base import array_stats

from papercuts.errors import DataError, UsageError
from zoprox.diagnosis import diagnose, records
from zoprox.draws import Draws, write_draws
from zoprox.schema import schema


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def told(runs, reference=None):
    """Give the records by parameter."""
    return {record["parameter"]: record for record in records(runs, reference)}


def test_figures_are_arvizs_with_a_particle_as_a_chain():
    points = np.cumsum(normal(1, 40, 5, 2), axis=0)
    found = told([Draws(points, ("a", "b"))])
    chains = points[:, :, 1].T
    assert found["b"]["ess_bulk"] == pytest.approx(array_stats.ess(chains, method="bulk"))
    tail = array_stats.ess(chains, method="tail", prob=(0.05, 0.95))
    assert found["b"]["ess_tail"] == pytest.approx(tail)
    assert found["b"]["r_hat"] == pytest.approx(array_stats.rhat(chains, method="rank"))
    assert found["b"]["mcse_mean"] == pytest.approx(array_stats.mcse(chains, method="mean"))
    assert found["b"]["mean"] == pytest.approx(points[..., 1].mean())
    assert found["b"]["sd"] == pytest.approx(points[..., 1].std(ddof=1))
    assert found["b"]["draws"] == 200
    assert found["b"]["chains"] == 5
    assert found["all"]["ess_bulk"] == min(found[name]["ess_bulk"] for name in "ab")
    assert found["all"]["r_hat"] == max(found[name]["r_hat"] for name in "ab")
    assert found["all"]["mean"] is None


def test_independent_draws_are_found_to_be_so():
    found = told([Draws(normal(seed, 50, 20, 1)) for seed in (1, 2)])["x1"]
    assert found["ess_bulk"] == pytest.approx(2000, rel=0.2)
    assert found["mcse_mean"] == pytest.approx(1 / math.sqrt(2000), rel=0.15)
    for key in ("r_hat", "r_hat_rounds", "r_hat_runs"):
        assert found[key] == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(
    ("moved", "sees"),
    [
        (lambda x: x + 4 * (np.arange(20)[:, None] % 2), "r_hat"),  # particles kept in two modes
        (lambda x: x + 0.2 * np.arange(50)[:, None, None], "r_hat_rounds"),  # a drift
    ],
)
def test_r_hat_sees_what_is_wrong(moved, sees):
    found = told([Draws(moved(normal(1, 50, 20, 1)))])["x1"]
    assert found[sees] > 1.2
    assert found["r_hat_runs"] is None
    assert found["ess_bulk"] < 100


def test_r_hat_of_runs_sees_runs_that_differ():
    found = told([Draws(normal(1, 10, 50, 1)), Draws(normal(2, 10, 50, 1) + 3)])["x1"]
    assert found["r_hat_runs"] > 1.5
    assert found["r_hat_rounds"] > 1.5
    assert found["chains"] == 100


def test_few_rounds_are_one_chain_a_run():
    found = told([Draws(normal(1, 2, 500, 1)), Draws(normal(2, 3, 400, 1))])["x1"]
    assert (found["draws"], found["chains"], found["runs"]) == (2200, 2, 2)
    assert found["ess_bulk"] == pytest.approx(2000, rel=0.2)


def test_runs_of_unequal_length_are_cut_to_the_last_rounds_of_each():
    long, short = normal(1, 30, 5, 1), normal(2, 8, 3, 1)
    found = told([Draws(long), Draws(short)])["x1"]
    chains = np.concatenate([long[-8:, :, 0].T, short[:, :, 0].T])
    assert found["ess_bulk"] == pytest.approx(array_stats.ess(chains, method="bulk"))
    assert found["draws"] == 174


@pytest.mark.parametrize("points", [np.ones((9, 3, 1)), normal(0, 1, 2, 1), normal(0, 1, 1, 1)])
def test_what_cannot_be_told_is_null(points):
    found = told([Draws(points)], normal(1, 50, 1))["x1"]
    assert found["r_hat"] is None
    assert found["ess_bulk"] is None
    json.loads(json.dumps(found, allow_nan=False))
    if points.size > 4:
        assert found["kl"] is None  # infinite
        assert found["sliced_w2"] > 0.5


def test_distances_to_a_reference_are_in_its_standard_deviations():
    points = normal(1, 10, 100, 2) * [1e-3, 2e4] + [0.5e-3, 0]
    reference = normal(2, 2000, 2) * [1e-3, 1e4]
    found = told([Draws(points)], reference)
    first, second = found["x1"], found["x2"]
    assert first["mean_error"] == pytest.approx(0.5, abs=0.08)
    assert first["sd_error"] == pytest.approx(0, abs=0.07)
    assert first["sliced_w2"] == pytest.approx(0.5, abs=0.1)
    assert first["kl"] == pytest.approx(0.125, abs=0.1)
    assert second["sd_error"] == pytest.approx(1, abs=0.12)
    assert second["sliced_w2"] == pytest.approx(1, abs=0.12)
    together = found["all"]
    assert together["sd_error"] == second["sd_error"]
    assert together["mean_error"] == pytest.approx(0.5, abs=0.08)
    assert together["sliced_w2"] == pytest.approx(math.sqrt((0.25 + 1) / 2), abs=0.1)
    assert together["kl"] > second["kl"]
    for record in (first, second, together):
        assert record["sliced_w2_floor"] < 0.12
        assert abs(record["kl_floor"]) < 0.12
        assert record["mmd2"] > 3 * abs(record["mmd2_floor"])


@pytest.mark.slow
def test_exact_draws_are_at_the_floor():
    found = told([Draws(normal(1, 10, 100, 3))], normal(2, 2000, 3))["all"]
    assert found["kl"] == pytest.approx(found["kl_floor"], abs=0.1)
    assert found["sliced_w2"] == pytest.approx(found["sliced_w2_floor"], abs=0.05)
    assert found["mmd2"] == pytest.approx(0, abs=0.004)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    points = normal(1, 10, 8, 2)
    write_draws(Draws(points), "a.npy")
    write_draws(Draws(points, ("x2", "x1")), "swapped.csv")
    write_draws(Draws(points[:, :, ::-1], ("x2", "x1")), "same.csv")
    write_draws(Draws(points, ("mu", "tau")), "named.csv")
    write_draws(Draws(normal(2, 9, 8, 3)), "three.npy")
    return tmp_path


def test_files_become_records_that_fit_the_schema(folder, zoprox):
    code, out, _ = zoprox("diag", "a.npy", "a.npy", "--ref", "same.csv")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [row["parameter"] for row in rows] == ["x1", "x2", "all"]
    assert rows[0]["chains"] == 16
    assert rows[0]["mean_error"] == pytest.approx(0, abs=1e-12)  # matched by name
    validator = pytest.importorskip("jsonschema").Draft202012Validator(schema()["$defs"]["diag"])
    assert all(validator.is_valid(row) for row in rows)
    code, out, _ = zoprox("diag", "a.npy", "--format", "csv")
    assert code == 0
    assert "mean_error" not in out
    assert len(out.splitlines()) == 4


def test_a_reference_with_other_names_is_taken_in_order(folder, zoprox):
    code, out, err = zoprox("diag", "a.npy", "--ref", "named.csv")
    assert code == 0
    assert "mu, tau, are taken in order for x1, x2" in err
    assert json.loads(out.splitlines()[1])["mean_error"] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("paths", "reference", "error", "message"),
    [
        (["a.npy", "named.csv"], None, DataError, r"named\.csv: the parameters are mu, tau"),
        (["a.npy", "swapped.csv"], None, DataError, r"x2, x1 \(expected x1, x2, as in a\.npy"),
        (["three.npy"], "a.npy", DataError, r"a\.npy: the parameters are x1, x2 \(expected 3"),
        (["-", "a.npy"], "-", UsageError, "stdin can be only one"),
    ],
)
def test_what_does_not_fit_together(folder, paths, reference, error, message):
    with pytest.raises(error, match=message):
        list(diagnose(paths, reference))


def test_a_reference_that_never_changes(folder):
    np.save("still.npy", np.ones((9, 2)))
    with pytest.raises(DataError, match="never changes"):
        list(diagnose(["a.npy"], "still.npy"))

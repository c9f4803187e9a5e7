"""The picture of a training run."""

import json

import pytest

from satguide.cli import app
from satguide.training_plot import plot_training


@pytest.fixture
def log(tmp_path):
    """Three iterations, of which the first and the last were validated, one of these in vain."""
    rows = [{"iteration": i, "cost": 50.0 - i, "wall_s": 300.0 * i} for i in (1, 2, 3)]
    base = {"baseline_plain": 48.0, "baseline_unit": 47.0}
    rows[0] |= {"validation": None, "ratio": None, **base}
    rows[2] |= {"validation": 42.5, "ratio": 42.5 / 47, **base}
    path = tmp_path / "m.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.slow
def test_the_picture_has_validation_both_baselines_and_the_samples(log, tmp_path):
    path = tmp_path / "m.svg"
    plot_training(str(log), str(path), what="decisions")
    drawn = path.read_text()
    for label in (  # matplotlib's comment above the outline of a text
        "validation",
        "baseline plain",
        "baseline unit weights",
        "sampled in training",
        "iteration",
        "decisions, mean",
        "best 42.5 (0.904 of the better baseline), iteration 3; 15 min in all",
    ):
        assert f"<!-- {label} -->" in drawn


@pytest.mark.slow
def test_a_run_that_solved_nothing_has_a_picture_too(tmp_path):
    log, path = tmp_path / "m.jsonl", tmp_path / "m.svg"
    row = {"iteration": 1, "cost": 5.0, "wall_s": 2.0}
    row |= {"validation": None, "ratio": None, "baseline_plain": 4.0, "baseline_unit": None}
    log.write_text(json.dumps(row) + "\n")
    plot_training(str(log), str(path), what="time")
    text = path.read_text()
    assert "<!-- time (s), mean -->" in text
    assert "<!-- no validation formula was solved -->" in text
    assert "baseline plain" in text
    assert "baseline unit" not in text


@pytest.mark.slow
def test_train_draws_at_the_end_and_looks_at_the_place_before(tmp_path, capfd):
    path, picture = tmp_path / "m.safetensors", tmp_path / "m.svg"
    small = "--width 4 --layers 1 --formulas 2 --samples 2 --steps 1 --minibatch 2 --validation 2"
    argv = ["train", "gen:3sat:12", *small.split(), "--iterations", "1", "--jobs", "1"]
    argv += ["-o", str(path), "--plot"]
    assert app.run([*argv, "p.pdf"]) == 2
    picture.write_text("mine")
    assert app.run([*argv, str(picture)]) == 73
    assert not path.exists()
    picture.unlink()
    assert app.run([*argv, str(picture)]) == 0
    assert "<!-- validation -->" in picture.read_text()

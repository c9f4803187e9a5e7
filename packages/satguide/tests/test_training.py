"""A training run: its log, its checkpoint, and going on after it was cut short."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from papercuts.errors import DataError, InputError, OutputError, UsageError
from satguide import checkpoint as checkpoints
from satguide import clasp, grpo, training
from satguide.checkpoint import read
from satguide.cli import app
from satguide.costs import Meter, measure
from satguide.network import Shape
from satguide.trainer import Settings
from satguide.training import Run, default_log, train

# Importing torch.optim alone costs more than most fast tests of a tool together.
pytestmark = pytest.mark.slow

TINY = Settings(Shape(8, 1), formulas=3, samples=4, steps=2, minibatch=2, validation=3, average=0.5)
METER = Meter(jobs=1)
TIMES = {"wall_s", "solve_s", "learn_s"}


def run_to(folder: Path, name: str, **changes) -> Run:
    output = str(folder / name)
    return Run(output, default_log(output), **{"iterations": 4, "validate_every": 2, **changes})


def records(run: Run) -> list[dict]:
    lines = [json.loads(line) for line in Path(run.log).read_text().splitlines()]
    return [{k: v for k, v in line.items() if k not in TIMES} for line in lines]


class StoppedError(Exception):
    pass


def stop_at(iteration: int):
    def watch(record):
        if record["iteration"] == iteration:
            raise StoppedError

    return watch


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    run = run_to(tmp_path_factory.mktemp("whole"), "m.safetensors")
    train("gen:3sat:12", TINY, METER, run)
    return run


def test_the_log_has_one_record_an_iteration_and_validates_when_asked(whole):
    found = records(whole)
    assert [r["iteration"] for r in found] == [1, 2, 3, 4]
    assert [("validation" in r) for r in found] == [False, True, False, True]
    base = min(found[1]["baseline_plain"], found[1]["baseline_unit"])
    assert found[1]["ratio"] == pytest.approx(found[1]["validation"] / base)


def test_the_checkpoint_is_the_network_that_validated_best(whole):
    made = read(whole.output).made
    validations = {r["iteration"]: r["validation"] for r in records(whole) if "validation" in r}
    assert made["best_validation"] == min(validations.values())
    assert validations[made["best_iteration"]] == made["best_validation"]
    assert made["source"] == "gen:3sat:12"
    assert made["settings"]["formulas"] == 3
    assert not whole.part.exists()


def test_a_run_that_was_cut_short_reaches_the_same_numbers(whole, tmp_path):
    run = run_to(tmp_path, "m.safetensors")
    with pytest.raises(StoppedError):
        train("gen:3sat:12", TINY, METER, run, watch=stop_at(3))
    assert read(str(run.part)).network.shape == TINY.shape  # usable while it runs
    # A record that was begun when the power went.
    with Path(run.log).open("a") as log:
        log.write('{"iteration": 4, "cos')
    resumed = run_to(tmp_path, "m.safetensors", resume=True)
    train("gen:3sat:12", TINY, METER, resumed)
    assert records(resumed) == records(whole)
    states = (read(r.output).network.state_dict() for r in (resumed, whole))
    first, second = states
    assert all(torch.equal(first[name], second[name]) for name in second)


def test_an_unfinished_run_is_neither_lost_nor_mixed_with_another(tmp_path):
    run = run_to(tmp_path, "m.safetensors")
    with pytest.raises(InputError, match="no unfinished run"):
        train("gen:3sat:12", TINY, METER, run_to(tmp_path, "m.safetensors", resume=True))
    with pytest.raises(StoppedError):
        train("gen:3sat:12", TINY, METER, run, watch=stop_at(1))
    with pytest.raises(OutputError, match="--resume goes on"):
        train("gen:3sat:12", TINY, METER, run_to(tmp_path, "m.safetensors", force=False))
    again = run_to(tmp_path, "m.safetensors", resume=True)
    with pytest.raises(UsageError, match="it was gen:3sat:12, now gen:3sat:13"):
        train("gen:3sat:13", TINY, METER, again)
    other = Settings(Shape(8, 1), formulas=4, samples=4, steps=2, minibatch=2, validation=3)
    with pytest.raises(UsageError, match="formulas was 3, now 4"):
        train("gen:3sat:12", other, METER, again)
    rarer = run_to(tmp_path, "m.safetensors", resume=True, validate_every=3)
    with pytest.raises(UsageError, match="it was 2, now 3"):
        train("gen:3sat:12", TINY, METER, rarer)
    Path(run.log).write_text("")
    with pytest.raises(DataError, match="0 records"):
        train("gen:3sat:12", TINY, METER, again)


def test_outputs_are_checked_before_anything_is_computed(tmp_path):
    (tmp_path / "m.safetensors").write_text("mine")
    with pytest.raises(OutputError, match="--force"):
        train("gen:3sat:12", TINY, METER, run_to(tmp_path, "m.safetensors"))
    assert (tmp_path / "m.safetensors").read_text() == "mine"
    for run in (Run("-", "log.jsonl"), Run("m.safetensors", "-")):
        with pytest.raises(UsageError, match="needs files"):
            train("gen:3sat:12", TINY, METER, run)


@pytest.mark.parametrize("suffix", ["safetensors.lock", "jsonl"])
def test_two_trainings_do_not_write_to_one_place(tmp_path, suffix):
    run, held = run_to(tmp_path, "m.safetensors", iterations=1), tmp_path / f"m.{suffix}"
    with training._locked(held, passing=True):
        again = Run(**{**vars(run), "force": True})
        with pytest.raises(OutputError, match=f"{suffix}: another training run"):
            train("gen:3sat:12", TINY, METER, again)
    assert list(tmp_path.iterdir()) == []
    train("gen:3sat:12", TINY, METER, run)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.jsonl", "m.safetensors"]


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    """What is in the .part file of a run that stopped after an iteration."""
    run = run_to(tmp_path_factory.mktemp("state"), "m.safetensors")
    with pytest.raises(StoppedError):
        train("gen:3sat:12", TINY, METER, run, watch=stop_at(1))
    return *checkpoints.read_tensors(str(run.part)), Path(run.log).read_bytes()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("init",), None),
        (("trainer",), [1]),
        (("trainer", "iteration"), "x"),
        pytest.param(("trainer", "iteration"), -1, marks=pytest.mark.slow),
        pytest.param(("trainer", "best_cost"), "x", marks=pytest.mark.slow),
        (("trainer", "best_cost"), 10**400),
        pytest.param(("trainer", "worst"), None, marks=pytest.mark.slow),
        pytest.param(("progress",), 3, marks=pytest.mark.slow),
        (("progress", "wall_s"), None),
        pytest.param(("progress", "wall_s"), float("nan"), marks=pytest.mark.slow),
        (("progress", "baselines"), [1]),
        pytest.param(("progress", "baselines", "plain"), "x", marks=pytest.mark.slow),
        pytest.param(("progress", "seen"), {"variables": 3}, marks=pytest.mark.slow),
        (("progress", "seen"), {"variables": ["a", "b"]}),
        (("optimizer.0.exp_avg",), torch.zeros(3)),
        pytest.param(("optimizer.0.exp_avg",), None, marks=pytest.mark.slow),
        (("optimizer.1.exp_avg_sq",), torch.zeros(16, dtype=torch.float64)),
        (("network.encode.0.bias",), torch.full((16,), torch.nan)),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_state_that_is_none_is_refused_in_one_line(state, tmp_path, path, value):
    tensors, about, log = dict(state[0]), json.loads(json.dumps(state[1])), state[2]
    place = tensors if path[0] in tensors else about
    for name in path[:-1]:
        place = place[name]
    if value is None and path[-1] != "wall_s":
        del place[path[-1]]
    else:
        place[path[-1]] = value
    run = run_to(tmp_path, "m.safetensors", resume=True)
    Path(run.log).write_bytes(log)
    save_file(tensors, run.part, {"format": "1", "satguide": json.dumps(about)})
    with pytest.raises(DataError, match=r"m\.safetensors\.part: not the state of a training run"):
        train("gen:3sat:12", TINY, METER, run)


@pytest.mark.parametrize(
    ("meter", "words"),
    [
        (Meter("cadical103", jobs=1), "cadical103 takes no guidance"),
        (Meter("maplesat", polarity="none", jobs=1), "maplesat takes polarities only"),
    ],
)
def test_a_solver_that_cannot_be_guided_is_not_trained_for(tmp_path, meter, words):
    with pytest.raises(UsageError, match=words):
        train("gen:3sat:12", TINY, meter, run_to(tmp_path, "m.safetensors"))
    assert list(tmp_path.iterdir()) == []


def test_costs_that_are_not_known_are_nothing_to_learn_from(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "satguide.trainer.measure", lambda tasks, *_, **__: [[float("nan")]] * len(tasks)
    )
    run = run_to(tmp_path, "m.safetensors")
    with pytest.raises(DataError, match="nothing to learn from: clasp tells the decisions of no"):
        train("gen:3sat:12", TINY, METER, run)
    assert not Path(run.output).exists()


def test_a_training_is_one_process(tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="not for torchrun"):
        train("gen:3sat:12", TINY, METER, run_to(tmp_path, "m.safetensors"))


@pytest.mark.slow
def test_a_killed_command_resumes_to_the_same_log(tmp_path):
    small = "--width 8 --layers 1 --formulas 4 --samples 4 --steps 2 --minibatch 2 --validation 4"
    argv = [sys.executable, "-m", "satguide", "train", "gen:3sat:60", *small.split()]
    argv += ["--iterations", "30", "--validate-every", "5", "--jobs", "2"]
    subprocess.run([*argv, "-o", str(tmp_path / "whole.safetensors")], check=True)
    cut = [*argv, "-o", str(tmp_path / "cut.safetensors")]
    process = subprocess.Popen(cut, start_new_session=True)
    log = tmp_path / "cut.jsonl"
    while not (log.exists() and log.read_text().count("\n") >= 7):
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    subprocess.run([*cut, "--resume"], check=True)
    runs = [
        Run(str(tmp_path / f"{n}.safetensors"), str(tmp_path / f"{n}.jsonl"))
        for n in ("cut", "whole")
    ]
    assert records(runs[0]) == records(runs[1])
    assert len(records(runs[0])) == 30
    first, second = (read(r.output) for r in runs)
    assert all(
        torch.equal(value, second.network.state_dict()[name])
        for name, value in first.network.state_dict().items()
    )


@pytest.mark.slow
def test_a_ray_cluster_gives_the_same_run(whole, tmp_path):
    run = run_to(tmp_path, "m.safetensors")
    train("gen:3sat:12", TINY, Meter(jobs=2, ray="local"), run)
    assert records(run) == records(whole)


# The command


SMALL = "--width 4 --layers 1 --formulas 2 --samples 2 --steps 1 --minibatch 2 --validation 2"


def trained(tmp_path, *words):
    path = str(tmp_path / "new.safetensors")
    argv = ["train", "gen:3sat:12", *SMALL.split(), "--jobs", "1", "-o", path, "--force", *words]
    assert app.run(argv) == 0
    return path


@pytest.mark.usefixtures("one_thread")
def test_a_training_begins_with_a_given_checkpoint(checkpoint, checkpoint_file, tmp_path):
    path = str(tmp_path / "new.safetensors")
    begin = ["--init", str(checkpoint_file), "--iterations", "1", "--lr", "0", "-o", path]
    assert app.run(["train", "gen:3sat:12", *SMALL.split()[4:], "--jobs", "1", *begin]) == 0
    found = read(path)
    assert found.network.shape == checkpoint.network.shape
    given = checkpoint.network.state_dict()
    assert all(torch.equal(v, given[k]) for k, v in found.network.state_dict().items())
    digest = hashlib.sha256(checkpoint_file.read_bytes()).hexdigest()
    assert found.made["init"] == {"name": checkpoint_file.name, "sha256": digest}
    assert (found.made["settings"]["width"], found.made["settings"]["layers"]) == (8, 2)
    assert read(trained(tmp_path, "--iterations", "1")).made["init"] is None


@pytest.mark.parametrize(
    "words", ["--width 32", "--layers 4", "--symmetric", "--whiten", "--prior p.jsonl"]
)
def test_init_goes_with_nothing_that_is_for_a_new_network(checkpoint_file, tmp_path, capfd, words):
    path = str(tmp_path / "m.safetensors")
    argv = ["train", "gen:3sat:12", "-o", path, "--init", str(checkpoint_file), *words.split()]
    assert app.run(argv) == 2
    assert f"{words.split()[0]} is for a new network" in capfd.readouterr().err


def test_the_limits_of_a_solve_reach_the_solver(tmp_path, monkeypatch):
    given = []

    def spy(tasks, meter, **options):
        given.append((meter.limit, meter.timeout_s))
        return measure(tasks, meter, **options)

    monkeypatch.setattr("satguide.trainer.measure", spy)
    trained(tmp_path, "--iterations", "1", "--limit", "9000", "--timeout", "60")
    assert set(given) == {(9000, 60.0)}


def test_what_a_training_began_with_is_the_same_when_it_resumes(checkpoint, tmp_path):
    run = run_to(tmp_path, "m.safetensors")
    begin = {"init": checkpoint.network, "origin": {"name": "a", "sha256": "00"}}
    settings = Settings(**{**vars(TINY), "shape": checkpoint.network.shape})
    with pytest.raises(StoppedError):
        train("gen:3sat:12", settings, METER, run, **begin, watch=stop_at(1))
    again = run_to(tmp_path, "m.safetensors", resume=True)
    with pytest.raises(UsageError, match="other settings"):
        train("gen:3sat:12", settings, METER, again)
    other = {**begin, "origin": {"name": "a", "sha256": "01"}}
    with pytest.raises(UsageError, match="sha256 was 00, now 01"):
        train("gen:3sat:12", settings, METER, again, **other)
    train("gen:3sat:12", settings, METER, again, **begin)
    assert len(records(again)) == 4


@pytest.mark.usefixtures("one_thread")
def test_weights_alone_are_learnt_and_used(tmp_path, monkeypatch, capfd):
    path = trained(tmp_path, "--polarity", "none", "--iterations", "1")
    assert read(path).polarity == "none"
    formula = str(tmp_path / "f.cnf")
    assert app.run(["gen", "3sat", "--size", "12", "-o", formula]) == 0
    capfd.readouterr()
    assert app.run(["weights", path, formula]) == 0
    told = [json.loads(line)["polarity"] for line in capfd.readouterr().out.splitlines()]
    assert told == [None] * 12
    assert app.run(["weights", path, formula, "--polarity", "persistent"]) == 0
    told = [json.loads(line)["polarity"] for line in capfd.readouterr().out.splitlines()]
    assert told == [True] * 12  # there is none to tell
    used = []
    solve = clasp.solve

    def spy(prepared, guidance, *, polarity, **options):
        unit = guidance is not None and (guidance.weights == 1).all()
        used.append("plain" if guidance is None else f"unit {polarity}" if unit else polarity)
        return solve(prepared, guidance, polarity=polarity, **options)

    class Here:
        """Solves in this process, where the test can look."""

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def solve(self, _, cnf, guidance, **options):
            return clasp.solve(clasp.prepare(cnf), guidance, **options)

    monkeypatch.setattr(clasp, "solve", spy)
    monkeypatch.setattr("satguide.solving.Apart", Here)
    assert app.run(["eval", path, formula, "--jobs", "1"]) == 0
    assert app.run(["solve", path, formula]) in (10, 20)
    assert app.run(["solve", path, formula, "--polarity", "persistent"]) in (10, 20)
    assert used == ["none", "plain", "unit persistent", "none", "persistent"]


def diverging(monkeypatch, after):
    """Make the objective of the gradient steps after so many not a number."""
    told, steps = grpo.loss, []

    def loss(*given):
        steps.append(1)
        value, said = told(*given)
        return (value * float("nan") if len(steps) > after else value), said

    monkeypatch.setattr(grpo, "loss", loss)


def test_a_training_that_diverges_keeps_the_best_network(tmp_path, monkeypatch, capfd):
    run = run_to(tmp_path, "m.safetensors")
    diverging(monkeypatch, 2 * TINY.steps)
    finished = train("gen:3sat:12", TINY, METER, run)
    assert len(records(run)) == 2
    assert finished.made["best_iteration"] == 2
    assert finished.made["iterations"] == 2
    assert all(value.isfinite().all() for value in finished.network.parameters())
    assert not run.part.exists()


def test_a_training_that_diverges_at_once_says_so(tmp_path, monkeypatch, capfd):
    diverging(monkeypatch, 0)
    words = ["train", "gen:3sat:12", "-o", str(tmp_path / "m.safetensors"), "--jobs", "1"]
    assert app.run([*words, "--validation", "2", "--formulas", "2"]) == 1
    said = capfd.readouterr().err
    assert "training diverged: the gradient of iteration 1 is nan" in said
    assert not (tmp_path / "m.safetensors").exists()

"""Training runs: the arithmetic of a step, exact resume at every step, and two processes."""

import dataclasses
import errno
import json
import os
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from papercuts.errors import DataError, OutputError, UsageError
from seesaw.baseline import BaseSchedule
from seesaw.compare import compare_runs
from seesaw.corpus import Corpus
from seesaw.model import ModelShape, next_byte_loss
from seesaw.planner import make_plan
from seesaw.train import World, pair_configs, train_runs
from seesaw.trainer import TrainConfig, Trainer

LONGER = make_plan(lr=1e-2, batch=4, seq_len=8, tokens=24_000, multiple_of=2)
TINY = ModelShape(width=16, layers=1, heads=2)
PLAN = make_plan(lr=1e-2, batch=4, seq_len=8, tokens=800, multiple_of=2)
TEXT = np.random.default_rng(0).integers(97, 123, size=6000, dtype=np.uint8).tobytes()
CORPUS = Corpus.from_bytes(TEXT, 8)
CONFIG = TrainConfig(
    PLAN,
    shape=TINY,
    micro_batch=3,
    noise_points=2,
    noise_batch=8,
    noise_micro=2,
    validation_sequences=16,
)
# As long as PLAN, with the same first, peak and last step, but another rate in one phase.
SAME_LENGTH = dataclasses.replace(
    PLAN,
    phases=(
        PLAN.phases[0],
        dataclasses.replace(PLAN.phases[1], lr=PLAN.phases[1].lr * 0.99),
        *PLAN.phases[2:],
    ),
)
PAIR = pair_configs(CONFIG, seeds=[0, 1])


def lines(records: Any) -> list[str]:
    return [json.dumps(record) for record in records]


@pytest.fixture(scope="module")
def whole() -> list[str]:
    """The log of the pair of runs, for two seeds, without interruption."""
    return lines(train_runs(PAIR, CORPUS))


@pytest.mark.slow
def test_log_follows_the_schedules(whole: list[str]):
    records = [json.loads(line) for line in whole]
    for run, schedule in (("base", BaseSchedule.of(PLAN)), ("seesaw", PLAN)):
        for seed in (0, 1):
            steps = [
                r for r in records if (r.get("run"), r.get("seed")) == (run, seed) and "lr" in r
            ]
            expected = [schedule.step_at(k) for k in range(schedule.steps)]
            assert [r["step"] for r in steps] == list(range(1, schedule.steps + 1))
            assert [(r["batch"], r["lr"]) for r in steps] == [(e.batch, e.lr) for e in expected]
            assert [r["tokens"] for r in steps] == [
                schedule.tokens_before_step(k + 1) for k in range(schedule.steps)
            ]
    ends = [r for r in records if r.get("event") == "end"]
    assert [(e["run"], e["seed"], e["steps"], e["tokens"]) for e in ends] == [
        (run, seed, steps, tokens)
        for seed in (0, 1)
        for run, steps, tokens in (
            ("base", BaseSchedule.of(PLAN).steps, BaseSchedule.of(PLAN).tokens),
            ("seesaw", PLAN.steps, PLAN.tokens),
        )
    ]
    assert records[-1] == json.loads(json.dumps(compare_runs(ends)))


@pytest.mark.slow
def test_both_runs_of_a_seed_start_from_the_same_weights_and_data(whole: list[str]):
    first = {
        (r["run"], r["seed"]): r["loss"]
        for r in map(json.loads, whole)
        if r.get("step") == 1 and "loss" in r
    }
    assert first["base", 0] == first["seesaw", 0]
    assert first["base", 1] == first["seesaw", 1] != first["base", 0]


@pytest.mark.slow
def test_only_base_runs_measure_noise_at_their_points(whole: list[str]):
    noise = [r for r in map(json.loads, whole) if "grad_norm_sq" in r]
    steps = BaseSchedule.of(PLAN).steps
    assert [(r["run"], r["seed"], r["step"], r["batch"]) for r in noise] == [
        ("base", seed, step, batch)
        for seed in (0, 1)
        for step in (steps // 2, steps)
        for batch in (2, 8)
    ]


@pytest.mark.slow
def test_resume_anywhere_gives_the_same_log_byte_for_byte(tmp_path: Path):
    one_seed = PAIR[:2]
    whole = lines(train_runs(one_seed, CORPUS))
    checkpoint = tmp_path / "run.ckpt"
    got: list[str] = []
    while len(got) < len(whole):
        interrupted = train_runs(
            one_seed, CORPUS, checkpoint=checkpoint, checkpoint_every=3, done=len(got)
        )
        got += lines(islice(interrupted, 4))
        interrupted.close()
    assert got == whole
    after_all = train_runs(one_seed, CORPUS, checkpoint=checkpoint, done=len(whole))
    assert list(after_all) == []


@pytest.mark.slow
def test_checkpoint_ahead_of_the_log_is_not_used(whole: list[str], tmp_path: Path):
    checkpoint = tmp_path / "run.ckpt"
    started = train_runs(PAIR, CORPUS, checkpoint=checkpoint, checkpoint_every=5)
    list(islice(started, 12))
    again = train_runs(PAIR, CORPUS, checkpoint=checkpoint, done=7)
    assert lines(islice(again, 10)) == whole[7:17]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"seed": 7}, TEXT),
        ({"micro_batch": 2}, TEXT),
        ({"shape": ModelShape(width=8, layers=1, heads=1)}, TEXT),
        ({"schedule": SAME_LENGTH}, TEXT),
        ({}, TEXT[::-1]),
    ],
)
def test_checkpoint_of_other_runs_is_refused(tmp_path: Path, changes: dict[str, Any], text: bytes):
    checkpoint = tmp_path / "run.ckpt"
    config = dataclasses.replace(CONFIG, noise_points=0)
    list(islice(train_runs([config], CORPUS, checkpoint=checkpoint, checkpoint_every=1), 3))
    other = dataclasses.replace(config, **changes)
    with pytest.raises(UsageError, match="belongs to"):
        next(train_runs([other], Corpus.from_bytes(text, 8), checkpoint=checkpoint, done=3))


@pytest.mark.parametrize("content", [b"", b"no checkpoint", b"PK\x03\x04 torn"])
def test_file_that_is_no_checkpoint(tmp_path: Path, content: bytes):
    checkpoint = tmp_path / "run.ckpt"
    checkpoint.write_bytes(content)
    with pytest.raises(DataError, match="not a checkpoint"):
        next(train_runs([CONFIG], CORPUS, checkpoint=checkpoint))


@pytest.mark.slow
@pytest.mark.parametrize("micro_batch", [1, 3, 4, 64])
def test_step_is_adamw_on_the_mean_gradient_whatever_the_micro_batch(micro_batch: int):
    trainer = Trainer(dataclasses.replace(CONFIG, micro_batch=micro_batch, seed=3), CORPUS)
    rows = torch.from_numpy(
        CORPUS.train[np.random.default_rng([3, 0]).permutation(len(CORPUS.train))[:4]]
    ).long()
    loss = next_byte_loss(trainer.model(rows[:, :-1]), rows[:, 1:])
    names, parameters = zip(*trainer.model.named_parameters(), strict=True)
    gradients = torch.autograd.grad(loss, parameters)
    mean_loss = float(loss.detach())
    norm = sum(float(g.square().sum()) for g in gradients) ** 0.5
    lr = PLAN.step_at(0).lr
    before = [p.detach().clone() for p in parameters]

    record = trainer.step()
    assert record["loss"] == pytest.approx(mean_loss, rel=1e-5)
    assert record["grad_norm"] == pytest.approx(norm, rel=1e-4)
    # The first AdamW step from zero moments is lr * g / (|g| + eps), g clipped to norm 1.
    clip = min(1.0, 1.0 / norm)
    for name, old, new, gradient in zip(names, before, parameters, gradients, strict=True):
        g = gradient * clip
        expected = old - lr * g / (g.abs() + 1e-8)
        clear = g.abs() > 1e-5  # below, rounding of the sum decides the sign
        torch.testing.assert_close(new[clear], expected[clear], rtol=0, atol=2e-5, msg=name)


@pytest.mark.slow
def test_noise_is_the_mean_over_pieces_and_the_norm_of_the_whole():
    trainer = Trainer(CONFIG, CORPUS)
    before = [p.detach().clone() for p in trainer.model.parameters()]
    small, large = trainer.measure_noise()
    chosen = torch.randperm(len(CORPUS.validation), generator=torch.Generator().manual_seed(0))[:8]
    rows = torch.from_numpy(CORPUS.validation[chosen.numpy()]).long()

    def flat_gradient(part: torch.Tensor) -> torch.Tensor:
        trainer.model.zero_grad()
        next_byte_loss(trainer.model(part[:, :-1]), part[:, 1:]).backward()
        return torch.cat([p.grad.flatten() for p in trainer.model.parameters()])

    pieces = [float(flat_gradient(rows[i : i + 2]).square().sum()) for i in range(0, 8, 2)]
    assert small["grad_norm_sq"] == pytest.approx(np.mean(pieces), rel=1e-4)
    assert large["grad_norm_sq"] == pytest.approx(
        float(flat_gradient(rows).square().sum()), rel=1e-4
    )
    assert all(torch.equal(a, b) for a, b in zip(before, trainer.model.parameters(), strict=True))


@pytest.mark.slow
def test_validation_loss_is_the_mean_over_the_held_out_sequences():
    config = dataclasses.replace(CONFIG, validation_sequences=10**6)
    trainer = Trainer(config, CORPUS)
    rows = torch.from_numpy(np.ascontiguousarray(CORPUS.validation)).long()
    with torch.no_grad():
        expected = float(next_byte_loss(trainer.model(rows[:, :-1]), rows[:, 1:]))
    loss, tokens = trainer.validation_loss()
    assert loss == pytest.approx(expected, rel=1e-5)
    assert tokens == len(rows) * 8


@pytest.mark.slow
def test_training_learns_a_text_that_can_be_learned():
    corpus = Corpus.from_bytes(b"one two three four " * 400, 16)
    plan = make_plan(lr=2e-2, batch=2, seq_len=16, tokens=6000)
    ends = [
        r
        for r in train_runs(pair_configs(TrainConfig(plan, shape=TINY), seeds=[0]), corpus)
        if r.get("event") == "end"
    ]
    # Only the first byte or two of a sequence leave a doubt about the place in the cycle.
    assert [end["validation_loss"] < 0.6 for end in ends] == [True, True]


@pytest.mark.slow
def test_bfloat16_stays_near_float32():
    losses = {
        dtype: [
            r["loss"]
            for r in train_runs([dataclasses.replace(CONFIG, dtype=dtype, noise_points=0)], CORPUS)
            if "loss" in r
        ]
        for dtype in ("float32", "bfloat16")
    }
    assert losses["float32"] == pytest.approx(losses["bfloat16"], abs=0.05)
    assert losses["float32"] != losses["bfloat16"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dtype": "float16"}, "dtype float16"),
        ({"micro_batch": 0}, "1 or more"),
        ({"noise_batch": 9}, "multiple of its pieces"),
        ({"noise_batch": 2}, "more than one"),
    ],
)
def test_settings_that_make_no_run(changes: dict[str, Any], message: str):
    with pytest.raises(UsageError, match=message):
        dataclasses.replace(CONFIG, **changes)


@pytest.mark.parametrize(
    ("changes", "text", "world", "message"),
    [
        ({}, Corpus.from_bytes(TEXT, 16), World(), "sequences of 16"),
        ({"noise_batch": 4000}, CORPUS, World(), "only 36 are held out"),
        ({"schedule": LONGER}, CORPUS, World(), "takes 3028 sequences .* has 713"),
        ({"noise_points": 0}, CORPUS, World(0, 4), "no multiple of 4"),
    ],
)
def test_what_a_later_run_would_stop_at_is_refused_before_the_first_step(
    changes: dict[str, Any], text: Corpus, world: World, message: str
):
    later = dataclasses.replace(CONFIG, seed=1, **changes)
    with pytest.raises((UsageError, DataError), match=message):
        next(train_runs([CONFIG, later], text, world=world))


@pytest.mark.slow
def test_checkpoint_that_the_disk_has_no_room_for(tmp_path: Path, monkeypatch: Any):
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    checkpoint = tmp_path / "run.ckpt"
    config = dataclasses.replace(CONFIG, noise_points=0)
    runs = train_runs([config], CORPUS, checkpoint=checkpoint, checkpoint_every=2)
    next(runs)
    saved = checkpoint.read_bytes()
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OutputError, match=r"run.ckpt: No space left"):
        list(runs)
    assert checkpoint.read_bytes() == saved
    assert [path.name for path in tmp_path.iterdir()] == ["run.ckpt"]


@pytest.mark.slow
def test_checkpoints_come_with_time_whatever_a_step_costs(tmp_path: Path):
    checkpoint = tmp_path / "run.ckpt"
    config = dataclasses.replace(CONFIG, noise_points=0)
    saved = []
    for seconds in (0.0, 3600.0):
        checkpoint.unlink(missing_ok=True)
        runs = train_runs([config], CORPUS, checkpoint=checkpoint, checkpoint_seconds=seconds)
        list(islice(runs, 4))
        saved.append(torch.load(checkpoint, weights_only=True)["position"]["records"])
    assert saved == [3, 0]


def test_unknown_run_and_missing_plan():
    with pytest.raises(UsageError, match="no run is called cosine"):
        pair_configs(CONFIG, seeds=[0], runs=["cosine"])
    with pytest.raises(UsageError, match="from a Seesaw plan"):
        pair_configs(dataclasses.replace(CONFIG, schedule=BaseSchedule.of(PLAN)), seeds=[0])
    only_base = pair_configs(CONFIG, seeds=[4, 5], runs=["base"])
    assert [(c.run, c.seed) for c in only_base] == [("base", 4), ("base", 5)]


SCRIPT = """
import json, sys
from pathlib import Path
import numpy as np, torch
from seesaw.corpus import Corpus
from seesaw.model import ModelShape
from seesaw.planner import make_plan
from seesaw.train import join_world, pair_configs, train_runs
from seesaw.trainer import TrainConfig

torch.set_num_threads(1)
log, tokens = Path(sys.argv[1]), int(sys.argv[2])
text = np.random.default_rng(0).integers(97, 123, size=3 * tokens, dtype=np.uint8).tobytes()
plan = make_plan(lr=1e-2, batch=4, seq_len=8, tokens=tokens, multiple_of=2)
config = TrainConfig(plan, shape=ModelShape(width=16, layers=1, heads=2), micro_batch=3,
                     noise_points=2, noise_batch=8, noise_micro=2)
with join_world() as world:
    whole = b""
    if log.exists():
        written = log.read_bytes()
        whole = written[: written.rfind(b"\\n") + 1]
    if world.rank == 0:
        log.write_bytes(whole)
    records = train_runs(pair_configs(config, seeds=[0]), Corpus.from_bytes(text, 8), world=world,
                         checkpoint=log.with_suffix(".ckpt"), checkpoint_every=5,
                         done=whole.count(b"\\n"))
    for record in records:
        if world.rank == 0:
            with log.open("a") as stream:
                stream.write(json.dumps(record) + "\\n")
"""


def run_script(tmp_path: Path, log: Path, tokens: int, *launcher: str) -> subprocess.Popen[bytes]:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, *launcher, str(script), str(log), str(tokens)], env=environment
    )


@pytest.mark.slow
def test_two_processes_train_as_one_does(tmp_path: Path):
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    assert run_script(tmp_path, one, 1200).wait(300) == 0
    assert run_script(tmp_path, two, 1200, *launcher).wait(300) == 0
    first, second = (
        [json.loads(line) for line in log.read_text().splitlines()] for log in (one, two)
    )
    assert len(first) == len(second) > 60
    for alone, shared in zip(first, second, strict=True):
        assert alone.keys() == shared.keys()
        for key, value in alone.items():
            if isinstance(value, float):
                assert shared[key] == pytest.approx(value, rel=2e-3, abs=2e-4), (key, alone)
            else:
                assert shared[key] == value


@pytest.mark.slow
def test_killed_at_random_steps_and_resumed_the_log_is_the_same(tmp_path: Path):
    whole, killed = tmp_path / "whole.jsonl", tmp_path / "killed.jsonl"
    assert run_script(tmp_path, whole, 6000).wait(300) == 0
    total = whole.read_bytes().count(b"\n")
    rng = np.random.default_rng()
    stops = sorted(rng.integers(1, total - 20, size=3).tolist())
    for stop in stops:
        process = run_script(tmp_path, killed, 6000)
        while process.poll() is None:
            if killed.exists() and killed.read_bytes().count(b"\n") >= stop:
                process.send_signal(signal.SIGKILL)
            time.sleep(0.005)
        assert process.returncode == -signal.SIGKILL, stops
    assert run_script(tmp_path, killed, 6000).wait(300) == 0
    assert killed.read_bytes() == whole.read_bytes(), stops

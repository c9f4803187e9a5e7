"""The comparisons of the training bench: their texts, batches, runs, and where the logs lie."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

from seesaw.baseline import BaseSchedule
from seesaw.corpus import Corpus, read_sources, read_text, stdlib_root
from seesaw.plan import SeesawPlan
from seesaw.planner import make_plan
from seesaw.trainer import TrainConfig

MARGIN = 0.02
SEQ_LEN = 64
CUT = 1.1
PILOT_SEED = 100


@dataclasses.dataclass(frozen=True)
class Part:
    """One comparison: a text, a batch at the start, and the runs on it."""

    name: str
    text: str
    batch: int
    tokens: int
    seeds: int
    arms: tuple[str, ...]
    pilot_tokens: int
    pilot_lrs: tuple[float, ...]
    noise: tuple[int, int, int]  # points, whole batch, pieces

    def jobs(self) -> list[tuple[str, int, float | None]]:
        """Name the reported runs; their learning rate comes from the pilots."""
        return [(arm, seed, None) for arm in self.arms for seed in range(self.seeds)]


PARTS = {
    part.name: part
    for part in (
        Part(
            name="headline",
            text="stdlib",
            batch=8,
            tokens=5_120_000,
            seeds=5,
            arms=("base", "seesaw"),
            pilot_tokens=2_048_000,
            pilot_lrs=(1e-3, 2e-3, 4e-3, 8e-3),
            noise=(10, 512, 8),
        ),
        Part(
            name="shakespeare",
            text="shakespeare",
            batch=4,
            tokens=1_024_000,
            seeds=5,
            arms=("base", "seesaw"),
            pilot_tokens=1_024_000,
            pilot_lrs=(5e-4, 1e-3, 2e-3, 4e-3),
            noise=(5, 512, 8),
        ),
        Part(
            name="past",
            text="stdlib",
            batch=128,
            tokens=2_560_000,
            seeds=5,
            arms=("base", "seesaw", "fixed"),
            pilot_tokens=2_560_000,
            pilot_lrs=(7.5e-4, 1.5e-3, 3e-3, 6e-3),
            noise=(4, 2048, 32),
        ),
    )
}


def parts_at_hand() -> list[str]:
    """Name the parts whose texts are here."""
    folder = os.environ.get("PAPERCUTS_DATA")
    here = folder is not None and (Path(folder) / "text" / "tinyshakespeare.txt").exists()
    return [name for name, part in PARTS.items() if here or part.text != "shakespeare"]


def log_path(logs: Path, part: str, arm: str, seed: int, lr: float | None) -> Path:
    tail = "" if lr is None else f"-{lr:g}"
    return logs / f"{part}-{arm}-{seed}{tail}.jsonl"


def read_log(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def best_lr(logs: Path, part: Part) -> float:
    """Give the pilots' best learning rate for cosine."""

    def loss(lr: float) -> float:
        return float(
            read_log(log_path(logs, part.name, "pilot", PILOT_SEED, lr))[-1]["validation_loss"]
        )

    return min(part.pilot_lrs, key=loss)


def corpus_of(part: Part, arm: str) -> Corpus:
    if arm == "pilot":
        return Corpus.from_bytes(read_sources(stdlib_root() / "test"), SEQ_LEN)
    if part.text == "shakespeare":
        path = Path(os.environ["PAPERCUTS_DATA"]) / "text" / "tinyshakespeare.txt"
        return Corpus.from_bytes(path.read_bytes(), SEQ_LEN)
    return Corpus.from_bytes(read_text(part.text), SEQ_LEN)


def plan_of(part: Part, lr: float, tokens: int) -> SeesawPlan:
    """Plan with the invariant held for whole batches too: they are small here (`compensate`)."""
    return make_plan(
        lr=lr,
        batch=part.batch,
        seq_len=SEQ_LEN,
        tokens=tokens,
        warmup=0.1,
        base="cosine",
        final=0.1,
        cut=CUT,
        compensate=True,
    )


def config_of(part: Part, arm: str, seed: int, lr: float) -> TrainConfig:
    plan = plan_of(part, lr, part.pilot_tokens if arm == "pilot" else part.tokens)
    points, whole, pieces = part.noise
    settings: dict[str, Any] = {
        "run": arm,
        "seed": seed,
        "micro_batch": 64,
        "dtype": "bfloat16",
        "validation_sequences": 4096,
        "noise_batch": whole,
        "noise_micro": pieces,
    }
    if arm == "seesaw":
        return TrainConfig(schedule=plan, **settings)
    if arm == "fixed":
        return TrainConfig(schedule=BaseSchedule(plan, lambda _: 1.0), **settings)
    return TrainConfig(
        schedule=BaseSchedule.of(plan), noise_points=points if arm == "base" else 0, **settings
    )

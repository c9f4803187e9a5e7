"""Training runs in a row: one stream of records, one checkpoint, exact resume, `torchrun`."""

from __future__ import annotations

import os
import pickle
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import torch
from torch import distributed

from papercuts.errors import DataError, OutputError, UsageError
from papercuts.log import get_logger
from seesaw.baseline import BaseSchedule
from seesaw.compare import compare_runs
from seesaw.plan import SeesawPlan
from seesaw.trainer import TrainConfig, Trainer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from seesaw.corpus import Corpus

CHECKPOINT_FORMAT = 1

T = TypeVar("T")

logger = get_logger(__name__)


@dataclass(frozen=True)
class World:
    """The processes that train together: this one's rank, and how many they are."""

    rank: int = 0
    size: int = 1


@contextmanager
def join_world(device: str = "cpu") -> Iterator[World]:
    """Join the process group of `torchrun` (gloo on the CPU, nccl on GPUs), and leave it again.

    Without `torchrun`'s environment this process is the whole world.
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield World()
        return
    on_gpu = device.startswith("cuda")
    if on_gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    distributed.init_process_group("nccl" if on_gpu else "gloo")
    try:
        yield World(distributed.get_rank(), size)
    finally:
        distributed.destroy_process_group()


def pair_configs(
    config: TrainConfig, *, seeds: Sequence[int], runs: Sequence[str] = ("base", "seesaw")
) -> list[TrainConfig]:
    """Make the configurations of the runs of each seed: `base`, `seesaw`, or both.

    `config.schedule` is the Seesaw plan. The base runs follow the schedule that it came from, and
    only they measure gradient noise. Raises UsageError for another name of a run.
    """
    if not isinstance(config.schedule, SeesawPlan):
        raise UsageError("a pair of runs is made from a Seesaw plan")
    base = BaseSchedule.of(config.schedule)
    kinds = {
        "base": replace(config, run="base", schedule=base),
        "seesaw": replace(config, run="seesaw", noise_points=0),
    }
    unknown = [run for run in runs if run not in kinds]
    if unknown:
        raise UsageError(f"no run is called {unknown[0]} (expected base or seesaw)")
    return [replace(kinds[run], seed=seed) for seed in seeds for run in runs]


def train_runs(
    configs: Sequence[TrainConfig],
    corpus: Corpus,
    *,
    world: World | None = None,
    checkpoint: Path | None = None,
    checkpoint_every: int = 200,
    done: int = 0,
) -> Iterator[dict[str, Any]]:
    """Train each configuration in turn and yield the records of all.

    Each run closes with an end record (`event` "end": `steps`, `tokens`, `validation_loss`,
    `validation_tokens`), and all of them with one of `event` "comparison" where a seed has both a
    base and a Seesaw run.

    With `checkpoint`, the state is saved there every `checkpoint_every` optimizer steps and at
    each run's end, whole or not at all; where the file exists, training goes on from it. `done` is
    the number of records that an interrupted call has written (on rank 0): so many are not yielded
    again, and on the CPU those that follow are, bit for bit, the ones of a call without
    interruption. In a process group every rank calls this with the same arguments, and rank 0
    keeps the records.

    Raises UsageError for a checkpoint of other runs, DataError for one that cannot be read.
    """
    world = world or World()
    at = _agree(world, lambda: _find_position(checkpoint, configs, corpus, done))
    done = _agree(world, lambda: done)

    def save() -> None:
        if checkpoint is not None and world.rank == 0:
            _save(checkpoint, at, _identity(configs, corpus))

    while at.run < len(configs):
        trainer = Trainer(configs[at.run], corpus, rank=world.rank, world_size=world.size)
        if at.state is not None:
            trainer.load_state_dict(at.state)
        while not trainer.finished:
            for record in trainer.advance():
                at.records += 1
                if at.records > done:
                    yield record
            if trainer.steps_done % checkpoint_every == 0:
                at.state = trainer.state_dict()
                save()
        end = trainer.end_record()
        at.records += 1
        if at.records > done:
            yield end
        at.run, at.state = at.run + 1, None
        at.ends.append(end)
        save()
    comparison = compare_runs(at.ends)
    if comparison is not None and at.records >= done:
        yield comparison


@dataclass
class _Position:
    """How far a call of `train_runs` has come; `records` counts what it yielded up to here."""

    run: int = 0
    records: int = 0
    ends: list[dict[str, Any]] = field(default_factory=list)
    state: dict[str, Any] | None = None


def _agree(world: World, ask: Callable[[], T]) -> T:
    """Ask rank 0 and tell every other rank its answer."""
    if world.size == 1:
        return ask()
    answer = [ask() if world.rank == 0 else None]
    distributed.broadcast_object_list(answer, src=0)
    return cast("T", answer[0])


def _identity(configs: Sequence[TrainConfig], corpus: Corpus) -> dict[str, Any]:
    return {
        "text": corpus.digest,
        "train_sequences": len(corpus.train),
        "runs": [config.identity() for config in configs],
    }


def _find_position(
    checkpoint: Path | None, configs: Sequence[TrainConfig], corpus: Corpus, done: int
) -> _Position:
    """Read the checkpoint, if there is one that the records written so far reach up to.

    Records that were lost after the checkpoint was saved can only be had by training again from
    the start, so then it is left unused.
    """
    if checkpoint is None or not checkpoint.exists():
        return _Position()
    try:
        saved = torch.load(checkpoint, map_location="cpu", weights_only=True)
        version, identity = saved["format"], saved["identity"]
        position = _Position(**saved["position"])
    except (RuntimeError, KeyError, TypeError, EOFError, pickle.UnpicklingError) as error:
        raise DataError("not a checkpoint of seesaw train", path=checkpoint) from error
    if version != CHECKPOINT_FORMAT:
        raise DataError(
            f"checkpoint format {version}", path=checkpoint, expected=str(CHECKPOINT_FORMAT)
        )
    wanted = _identity(configs, corpus)
    for key, value in wanted.items():
        if identity.get(key) != value:
            what = {"text": "another text", "runs": "other runs or settings"}
            raise UsageError(
                f"{checkpoint}: the checkpoint belongs to {what.get(key, 'another split')};"
                " remove it to start again"
            )
    if position.records > done:
        logger.warning("%s: records were lost since; training again from the start", checkpoint)
        return _Position()
    return position


def _save(path: Path, position: _Position, identity: dict[str, Any]) -> None:
    """Write the checkpoint beside its place, flush it to the disk, and rename it."""
    partial = path.with_name(path.name + ".new")
    contents = {
        "format": CHECKPOINT_FORMAT,
        "identity": identity,
        "position": dict(vars(position)),  # not asdict, which copies every tensor
    }
    try:
        with partial.open("wb") as stream:
            torch.save(contents, stream)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    except OSError as error:
        raise OutputError(f"{path}: cannot write the checkpoint: {error.strerror}") from error

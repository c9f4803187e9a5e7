"""Training runs in a row: one stream of records, one checkpoint, exact resume, `torchrun`."""

from __future__ import annotations

import io
import os
import pickle
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import torch
from torch import distributed

from papercuts.errors import DataError, OutputError, PapercutsError, UsageError
from papercuts.log import get_logger
from papercuts.streams import open_output
from seesaw.baseline import BaseSchedule
from seesaw.compare import compare_runs
from seesaw.plan import SeesawPlan
from seesaw.trainer import TrainConfig, Trainer, make_sampler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from seesaw.corpus import Corpus

CHECKPOINT_FORMAT = 2
CHECKPOINT_SECONDS = 30.0

T = TypeVar("T")

logger = get_logger(__name__)


@dataclass(frozen=True)
class World:
    """The processes that train together: this one's rank, and how many they are."""

    rank: int = 0
    size: int = 1


def count_processes() -> int:
    """Count the processes that `torchrun` started with this one; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


@contextmanager
def join_world(device: str = "cpu") -> Iterator[World]:
    """Join the process group of `torchrun` (gloo on the CPU, nccl on GPUs), and leave it again.

    Without `torchrun`'s environment this process is the whole world.
    """
    size = count_processes()
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


def check_runs(configs: Sequence[TrainConfig], corpus: Corpus, world_size: int = 1) -> None:
    """Refuse, before the first step of the first run, what any of the runs would stop at.

    It needs no process group, and is best called before there is one: each process then ends by
    itself, and none while another still waits to be connected.

    Raises UsageError and DataError as `seesaw.trainer.make_sampler` does.
    """
    for config in configs:
        make_sampler(config, corpus, world_size=world_size)


def train_runs(
    configs: Sequence[TrainConfig],
    corpus: Corpus,
    *,
    world: World | None = None,
    checkpoint: Path | None = None,
    checkpoint_every: int | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    done: int = 0,
) -> Iterator[dict[str, Any]]:
    """Train each configuration in turn and yield the records of all.

    Each run closes with an end record (`event` "end": `steps`, `tokens`, `validation_loss`,
    `validation_tokens`), and all of them with one of `event` "comparison" where a seed has both a
    base and a Seesaw run.

    With `checkpoint`, the state is saved there, whole or not at all: at the start, after the first
    step that ends `checkpoint_seconds` or more after the last save, at each run's end, and with
    `checkpoint_every` also whenever a run's steps are a multiple of it. Where the file exists,
    training goes on from it. `done` is the number of records that an interrupted call has written:
    so many are not yielded again, and on the CPU those that follow are, bit for bit, the ones of a
    call without interruption. In a process group every rank calls this with the same
    configurations and text; `checkpoint` and `done` are rank 0's, which keeps the records.

    Raises UsageError and DataError before the first step as `check_runs` does, UsageError for a
    checkpoint of other runs, DataError for one that cannot be read, OutputError for one that
    cannot be written.
    """
    world = world or World()
    check_runs(configs, corpus, world.size)
    found = on_first(world, lambda: _find_position(checkpoint, configs, corpus, done))
    at, done = _agree(world, (cast("_Position", found), done))
    saved_s = time.monotonic()

    def save(trainer: Trainer | None = None) -> None:
        nonlocal saved_s
        if checkpoint is not None and world.rank == 0:
            at.state = None if trainer is None else trainer.state_dict()
            _save(checkpoint, at, _identity(configs, corpus))
        saved_s = time.monotonic()

    if at.records == 0:
        save()  # what is begun can only be gone on with as the same runs
    while at.run < len(configs):
        trainer = Trainer(configs[at.run], corpus, rank=world.rank, world_size=world.size)
        if at.state is not None:
            trainer.load_state_dict(at.state)
        while not trainer.finished:
            for record in trainer.advance():
                at.records += 1
                if at.records > done:
                    yield record
            # No rank waits for another in here, so rank 0 may go by its own clock.
            on_step = checkpoint_every is not None and trainer.steps_done % checkpoint_every == 0
            if on_step or time.monotonic() - saved_s >= checkpoint_seconds:
                save(trainer)
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


def on_first(world: World, do: Callable[[], T]) -> T | None:
    """Do something on rank 0 alone and give its result there; what it refuses, all ranks do.

    Raises on every rank the PapercutsError that `do` raised on rank 0.
    """
    result: T | None = None
    refusal: PapercutsError | None = None
    if world.rank == 0:
        try:
            result = do()
        except PapercutsError as error:
            refusal = error
    refusal = _agree(world, refusal)
    if refusal is not None:
        raise refusal
    return result


def _agree(world: World, value: T) -> T:
    """Give every rank the value that rank 0 has."""
    if world.size == 1:
        return value
    values = [value]
    distributed.broadcast_object_list(values, src=0)
    return values[0]


def _identity(configs: Sequence[TrainConfig], corpus: Corpus) -> dict[str, Any]:
    return {
        "text": corpus.digest,
        "train_sequences": len(corpus.train),
        "runs": [config.identity() for config in configs],
    }


def check_checkpoint(
    checkpoint: Path, configs: Sequence[TrainConfig], corpus: Corpus
) -> dict[str, Any] | None:
    """Read a checkpoint and give its content; None where there is no such file.

    Raises UsageError where it belongs to other runs, DataError where it is none.
    """
    if not checkpoint.exists():
        return None
    try:
        saved = torch.load(checkpoint, map_location="cpu", weights_only=True)
        version, identity = saved["format"], saved["identity"]
    except (RuntimeError, KeyError, TypeError, EOFError, pickle.UnpicklingError) as error:
        raise DataError("not a checkpoint of seesaw train", path=checkpoint) from error
    if version != CHECKPOINT_FORMAT:
        raise DataError(
            f"checkpoint format {version}", path=checkpoint, expected=str(CHECKPOINT_FORMAT)
        )
    for key, value in _identity(configs, corpus).items():
        if identity.get(key) != value:
            what = {"text": "another text", "runs": "another plan, other runs or settings"}
            raise UsageError(
                f"{checkpoint}: the checkpoint belongs to {what.get(key, 'another split')}"
                " (--force without --resume starts again)"
            )
    return cast("dict[str, Any]", saved["position"])


def _find_position(
    checkpoint: Path | None, configs: Sequence[TrainConfig], corpus: Corpus, done: int
) -> _Position:
    """Read the checkpoint, if there is one that the records written so far reach up to.

    Records that were lost after the checkpoint was saved can only be had by training again from
    the start, so then it is left unused.
    """
    saved = None if checkpoint is None else check_checkpoint(checkpoint, configs, corpus)
    if saved is None:
        return _Position()
    position = _Position(**saved)
    if position.records > done:
        logger.warning("%s: records were lost since; training again from the start", checkpoint)
        return _Position()
    return position


def _save(path: Path, position: _Position, identity: dict[str, Any]) -> None:
    """Write the checkpoint, whole or not at all, and onto the disk before it takes its name."""
    contents = {
        "format": CHECKPOINT_FORMAT,
        "identity": identity,
        "position": dict(vars(position)),  # not asdict, which copies every tensor
    }
    buffer = io.BytesIO()  # torch.save hides what the system says about a full disk
    torch.save(contents, buffer)
    with open_output(path, force=True) as out:
        out.write(buffer.getbuffer())
        out.flush()
        try:
            os.fsync(out.fileno())
        except OSError as error:
            raise OutputError(f"{path}: {error.strerror}") from error

"""What `seesaw train` does with its options: text, runs, checkpoint and log."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from papercuts.hardware import pick_device, pick_dtype
from papercuts.log import get_logger, progress
from papercuts.streams import ResumableOutput
from seesaw.corpus import Corpus, read_text
from seesaw.model import ModelShape as Shape
from seesaw.plan import SeesawPlan
from seesaw.train import World, join_world, pair_configs, train_runs
from seesaw.trainer import TrainConfig

__all__ = ["Shape", "train_to"]


def train_to(
    output: str,
    *,
    plan: SeesawPlan,
    text: str,
    runs: Sequence[str],
    seeds: Iterable[int],
    shape: Shape,
    micro_batch: int = 32,
    noise_points: int = 0,
    log_every: int = 1,
    device: str = "auto",
    dtype: str = "auto",
    resume: bool = False,
    force: bool = False,
) -> None:
    """Train the runs of each seed and write their records to `output` (- is stdout).

    Beside an output file lies `OUTPUT.ckpt` until the work is complete; with `resume` it goes on
    from there. Under torchrun every process calls this, and the first one writes.

    Raises UsageError, DataError, InputError and OutputError as the parts do.
    """
    corpus = Corpus.from_bytes(read_text(text), plan.seq_len, path=text)
    place = _local_device(device)
    config = TrainConfig(
        plan,
        shape=shape,
        micro_batch=micro_batch,
        noise_points=noise_points,
        log_every=log_every,
        device=place,
        dtype=str(pick_dtype(dtype, place)).removeprefix("torch."),
    )
    configs = pair_configs(config, seeds=list(seeds), runs=runs)
    with join_world(place) as world:
        first = world.rank == 0
        opened: AbstractContextManager[ResumableOutput | None] = nullcontext()
        if first:
            opened = ResumableOutput(output, force=force, resume=resume)
        with opened as out:
            done = 0 if out is None else out.done
            checkpoint = None if output == "-" else Path(f"{output}.ckpt")
            for record in _told(configs, corpus, world, checkpoint, done):
                if out is not None:
                    out.write(record)
        if first and checkpoint is not None:
            checkpoint.unlink(missing_ok=True)


def _told(
    configs: Sequence[TrainConfig],
    corpus: Corpus,
    world: World,
    checkpoint: Path | None,
    done: int,
) -> Iterable[dict[str, Any]]:
    """Pass the records on, with a progress bar, and the ends and the comparison said on stderr."""
    logger = get_logger(__name__)
    total = sum(config.schedule.steps for config in configs)
    with progress("training steps", total=total) as bar:
        for record in train_runs(configs, corpus, world=world, checkpoint=checkpoint, done=done):
            event = record.get("event")
            if world.rank == 0 and event == "end":
                logger.info(
                    f"{record['run']} seed {record['seed']}: {record['steps']} steps, "
                    f"validation loss {record['validation_loss']:.4f}"
                )
            elif world.rank == 0 and event == "comparison":
                logger.info(
                    f"Seesaw minus base: {record['difference']:+.4f} nats, "
                    f"{100 * record['steps_saved']:.1f} % fewer steps"
                )
            elif event is None and "loss" in record:
                bar.advance(configs[0].log_every)
            yield record


def _local_device(name: str) -> str:
    device = str(pick_device(name))
    return f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if device == "cuda" else device

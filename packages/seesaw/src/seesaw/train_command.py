"""What `seesaw train` does with its options: plan, text, runs, checkpoint and log."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from papercuts.errors import DataError, UsageError
from papercuts.files import written_directly
from papercuts.hardware import pick_device, pick_dtype
from papercuts.log import get_logger, progress
from papercuts.streams import ResumableOutput, read_records
from seesaw.baseline import BaseSchedule
from seesaw.corpus import Corpus, read_text
from seesaw.planfile import from_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from seesaw.plan import SeesawPlan
    from seesaw.trainer import TrainConfig

DTYPES = ("auto", "fp32", "bf16")


def read_inputs(plan: str, text: str, run: str = "both") -> tuple[SeesawPlan, Corpus]:
    """Read the plan and the text of a command, before torch, which takes seconds to import.

    Raises UsageError where both are stdin, or one is under torchrun, InputError for a file that
    cannot be read, DataError for a file that holds no plan and for a text shorter than `run` (base,
    seesaw or both) takes.
    """
    if plan == text == "-":
        raise UsageError("--plan and --text cannot both be stdin")
    if "-" in (plan, text) and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UsageError(
            "--plan and --text must be files under torchrun, where every process reads"
        )
    made = from_records(read_records(plan), plan)
    corpus = Corpus.from_bytes(read_text(text), made.seq_len, path=text)
    tokens = {"base": BaseSchedule.of(made).tokens, "seesaw": made.tokens}
    needed = tokens.get(run, max(tokens.values())) // made.seq_len
    if needed > len(corpus.train):
        raise DataError(
            f"{len(corpus.train)} sequences of {made.seq_len} bytes to train on",
            path=text,
            expected=f"{needed}: a longer text, or a plan of fewer tokens",
        )
    return made, corpus


def train_to(
    output: str,
    *,
    plan: SeesawPlan,
    corpus: Corpus,
    run: str,
    seeds: Iterable[int],
    shape: tuple[int, int, int],
    micro_batch: int = 32,
    noise_points: int = 0,
    log_every: int = 1,
    device: str = "auto",
    dtype: str = "auto",
    resume: bool = False,
    force: bool = False,
) -> None:
    """Train the runs of each seed and write their records to `output` (- is stdout).

    `shape` is the model's width, layers and heads. Beside an output file, `OUTPUT.ckpt` lies until
    the work is complete, and `resume` goes on from there; where the output is written directly
    (stdout, a device, a FIFO) there is no checkpoint. Under torchrun every process calls this, and
    the first one writes.

    Raises UsageError, DataError, InputError and OutputError as the parts do, before the first step
    where that is possible.
    """
    from seesaw.model import ModelShape
    from seesaw.train import (
        check_runs,
        count_processes,
        join_world,
        on_first,
        pair_configs,
        train_runs,
    )
    from seesaw.trainer import TrainConfig

    if dtype not in DTYPES:
        raise UsageError(f"--dtype {dtype}: training is in fp32 or bf16 (or auto)")
    place = _local_device(device)
    noise_micro = TrainConfig.noise_micro
    config = TrainConfig(
        plan,
        shape=ModelShape(*shape),
        micro_batch=micro_batch,
        noise_points=noise_points,
        noise_batch=_noise_batch(noise_points, corpus, TrainConfig.noise_batch, noise_micro),
        noise_micro=noise_micro,
        log_every=log_every,
        device=place,
        dtype=str(pick_dtype(dtype, place)).removeprefix("torch."),
    )
    runs = ("base", "seesaw") if run == "both" else (run,)
    configs = pair_configs(config, seeds=list(seeds), runs=runs)
    check_runs(configs, corpus, count_processes())
    with join_world(place) as world, ExitStack() as stack:
        opened = on_first(
            world, lambda: stack.enter_context(_open_log(output, configs, corpus, resume, force))
        )
        if opened is None:
            for _ in train_runs(configs, corpus, world=world):
                pass
            return
        out, checkpoint = opened
        records = train_runs(configs, corpus, world=world, checkpoint=checkpoint, done=out.done)
        for record in _told(configs, records):
            out.write(record)


@contextmanager
def _open_log(
    output: str, configs: Sequence[TrainConfig], corpus: Corpus, resume: bool, force: bool
) -> Iterator[tuple[ResumableOutput, Path | None]]:
    """Open the output, and give it with the place of its checkpoint.

    A checkpoint of other runs is refused before anything is written, one that is not to be gone on
    with is removed once the output is ours, and a complete output needs none.
    """
    from seesaw.train import check_checkpoint

    out = ResumableOutput(output, force=force, resume=resume)
    if written_directly(output):
        with out:
            yield out, None
        return
    checkpoint = out.part.with_suffix(".ckpt")
    if resume:
        check_checkpoint(checkpoint, configs, corpus)
    with out:
        if not resume:
            checkpoint.unlink(missing_ok=True)
        yield out, checkpoint
    checkpoint.unlink(missing_ok=True)


def _noise_batch(points: int, corpus: Corpus, most: int, piece: int) -> int:
    """Give the largest noise batch, at most `most`, of whole pieces that are held out."""
    held_out = len(corpus.validation)
    if points > 0 and held_out < 2 * piece:
        raise UsageError(
            f"--noise-points needs {2 * piece} held-out sequences and the text leaves {held_out}"
        )
    return min(most, held_out // piece * piece) if points > 0 else most


def _told(
    configs: Sequence[TrainConfig], records: Iterable[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Pass the records on, with a progress bar, and the ends and the comparison said on stderr."""
    logger = get_logger(__name__)
    total = 0
    steps_before = {}
    for config in configs:
        steps_before[config.run, config.seed] = total
        total += config.schedule.steps
    with progress("training steps", total=total) as bar:
        for record in records:
            event = record.get("event")
            if event == "end":
                logger.info(
                    f"{record['run']} seed {record['seed']}: {record['steps']} steps, "
                    f"validation loss {record['validation_loss']:.4f}"
                )
            elif event == "comparison":
                logger.info(
                    f"Seesaw minus base: {record['difference']:+.4f} nats, "
                    f"{100 * record['steps_saved']:.1f} % fewer steps"
                )
            else:
                done = steps_before[record["run"], record["seed"]] + record["step"]
                bar.advance(done - bar.done)
            yield record


def _local_device(name: str) -> str:
    device = str(pick_device(name))
    return f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if device == "cuda" else device

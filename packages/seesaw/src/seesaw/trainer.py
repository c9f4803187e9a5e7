"""One training run: a `ByteModel` follows a schedule, one optimizer step at a time."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.parallel import DistributedDataParallel

from papercuts.errors import UsageError
from seesaw.baseline import schedule_digest
from seesaw.corpus import Corpus, take_sequences
from seesaw.lr import SeesawLR
from seesaw.model import ByteModel, ModelShape, next_byte_loss
from seesaw.sampler import SeesawBatchSampler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from seesaw.baseline import StepSchedule

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class TrainConfig:
    """All that a run depends on, besides its text.

    `run` names it in its records; runs with one `seed` start from the same weights and see the
    same sequences in the same order. `micro_batch` is the most sequences that one process takes
    through the model at once, so memory stays flat when the batch grows. `dtype` is that of the
    matrix products (`bfloat16` under autocast); weights and optimizer stay in float32. AdamW has
    the paper's constants. At `noise_points` places of the run, gradients of `noise_batch` held-out
    sequences are measured, by pieces of `noise_micro` and as a whole, without touching the run.
    """

    schedule: StepSchedule
    run: str = "seesaw"
    seed: int = 0
    shape: ModelShape = field(default_factory=ModelShape)
    micro_batch: int = 32
    dtype: str = "float32"
    device: str = "cpu"
    betas: tuple[float, float] = (0.9, 0.95)
    eps: float = 1e-8
    weight_decay: float = 0.0
    grad_clip: float = 1.0
    log_every: int = 1
    noise_points: int = 0
    noise_batch: int = 256
    noise_micro: int = 8
    validation_sequences: int = 2048

    def __post_init__(self) -> None:
        """Refuse settings that make no run."""
        if self.dtype not in DTYPES:
            raise UsageError(f"dtype {self.dtype} (expected {' or '.join(DTYPES)})")
        if min(self.micro_batch, self.log_every, self.validation_sequences, self.noise_micro) < 1:
            raise UsageError("micro-batches, logging interval and validation must be 1 or more")
        if self.noise_batch % self.noise_micro or self.noise_batch <= self.noise_micro:
            raise UsageError(
                f"the noise batch {self.noise_batch} must be a multiple of its pieces of"
                f" {self.noise_micro}, and more than one"
            )

    def identity(self) -> dict[str, Any]:
        """Name what the run's numbers depend on, as plain values, for a checkpoint to compare."""
        return {
            "run": self.run,
            "seed": self.seed,
            "shape": repr(self.shape),
            "schedule": schedule_digest(self.schedule),
            "micro_batch": self.micro_batch,
            "dtype": self.dtype,
            "optimizer": [*self.betas, self.eps, self.weight_decay, self.grad_clip],
            "log_every": self.log_every,
            "noise": [self.noise_points, self.noise_batch, self.noise_micro],
            "validation_sequences": self.validation_sequences,
        }


def make_sampler(
    config: TrainConfig, corpus: Corpus, *, rank: int = 0, world_size: int = 1
) -> SeesawBatchSampler:
    """Make the sampler of a run, and refuse here what the run would meet only at a later step.

    Raises UsageError for a text cut to another length than the plan's, for batches that the
    processes cannot share and for a noise batch larger than what is held out, DataError for a text
    shorter than the plan.
    """
    if corpus.seq_len != config.schedule.seq_len:
        raise UsageError(
            f"the text is cut into sequences of {corpus.seq_len} tokens and the plan's are of"
            f" {config.schedule.seq_len}"
        )
    if config.noise_points > 0 and config.noise_batch > len(corpus.validation):
        raise UsageError(
            f"the noise batch is {config.noise_batch} sequences and only"
            f" {len(corpus.validation)} are held out"
        )
    return SeesawBatchSampler(
        len(corpus.train), config.schedule, rank=rank, world_size=world_size, seed=config.seed
    )


class Trainer:
    """The state of one run between two optimizer steps.

    In a process group every rank builds one, with its `rank` and `world_size`; gradients are then
    averaged by DistributedDataParallel, and `step` gives the same record on every rank.

    Raises UsageError and DataError as `make_sampler` does.
    """

    def __init__(
        self, config: TrainConfig, corpus: Corpus, *, rank: int = 0, world_size: int = 1
    ) -> None:
        self.sampler = make_sampler(config, corpus, rank=rank, world_size=world_size)
        self.config, self.corpus, self.world_size = config, corpus, world_size
        self.model = ByteModel(config.shape, corpus.seq_len, seed=config.seed).to(config.device)
        self.parallel = DistributedDataParallel(self.model) if world_size > 1 else None
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=config.schedule.peak_lr,
            betas=config.betas,
            eps=config.eps,
            weight_decay=config.weight_decay,
            foreach=True,
        )
        self.scheduler = SeesawLR(self.optimizer, config.schedule)
        self._batches = iter(self.sampler)
        points, steps = config.noise_points, config.schedule.steps
        self._noise_steps = frozenset(max(1, steps * (i + 1) // points) for i in range(points))

    @property
    def steps_done(self) -> int:
        """Optimizer steps done so far."""
        return int(self.scheduler.last_epoch)

    @property
    def finished(self) -> bool:
        """Whether all steps of the schedule are done."""
        return self.steps_done >= self.config.schedule.steps

    def advance(self) -> list[dict[str, Any]]:
        """Do one optimizer step; give its record where one is due, and the noise where due."""
        record = self.step()
        done = self.steps_done
        records = [record] if done % self.config.log_every == 0 or self.finished else []
        if done in self._noise_steps:
            records += self.measure_noise()
        return records

    def step(self) -> dict[str, Any]:
        """Do one optimizer step and give its record.

        `step` counts from 1 and `tokens` includes this step's; `loss` is the mean over the batch in
        nats a byte, before the update, and `grad_norm` that of the gradient before clipping.
        """
        step = self.steps_done
        before, batch, lr = self.config.schedule.step_at(step)
        loss = self._accumulate(next(self._batches))
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.grad_clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.scheduler.step()
        if self.world_size > 1:
            torch.distributed.all_reduce(loss)
            loss /= self.world_size
        return {
            "run": self.config.run,
            "seed": self.config.seed,
            "step": step + 1,
            "tokens": before + batch * self.corpus.seq_len,
            "lr": lr,
            "batch": batch,
            "loss": float(loss),
            "grad_norm": float(norm),
        }

    def validation_loss(self) -> tuple[float, int]:
        """Give the mean loss in nats a byte over the held-out sequences, and how many tokens."""
        count = min(self.config.validation_sequences, len(self.corpus.validation))
        # Evenly spaced, so that a part of the held-out text still covers all of its blocks.
        indices = [i * len(self.corpus.validation) // count for i in range(count)]
        total = 0.0
        with torch.no_grad():
            for piece in _pieces(indices, self.config.micro_batch):
                loss = self._loss(self.model, self.corpus.validation, piece)
                total += float(loss) * len(piece)
        return total / count, count * self.corpus.seq_len

    def measure_noise(self) -> list[dict[str, Any]]:
        """Give the squared gradient norms of a small and of a large batch at the present weights.

        Both are over the same held-out sequences: the mean over all pieces of `noise_micro`, and
        the norm of the whole; so their expectations are |G|^2 + S/batch.
        """
        config, rows = self.config, self.corpus.validation
        generator = torch.Generator().manual_seed(config.seed)
        order = torch.randperm(len(rows), generator=generator)[: config.noise_batch].tolist()
        parameters = list(self.model.parameters())
        pieces = _pieces(order, config.noise_micro)
        whole = [torch.zeros_like(parameter) for parameter in parameters]
        small = 0.0
        for piece in pieces:
            # autograd.grad leaves .grad and the hooks of DistributedDataParallel alone.
            gradients = torch.autograd.grad(self._loss(self.model, rows, piece), parameters)
            small += sum(float(g.square().sum()) for g in gradients) / len(pieces)
            torch._foreach_add_(whole, gradients, alpha=1.0 / len(pieces))
        large = sum(float(g.square().sum()) for g in whole)
        return [
            {
                "run": config.run,
                "seed": config.seed,
                "step": self.steps_done,
                "batch": size,
                "grad_norm_sq": norm,
            }
            for size, norm in ((config.noise_micro, small), (config.noise_batch, large))
        ]

    def end_record(self) -> dict[str, Any]:
        """Measure the validation loss and close the run's log with it."""
        loss, tokens = self.validation_loss()
        return {
            "event": "end",
            "run": self.config.run,
            "seed": self.config.seed,
            "steps": self.steps_done,
            "tokens": self.config.schedule.tokens_before_step(self.steps_done),
            "validation_loss": loss,
            "validation_tokens": tokens,
        }

    def state_dict(self) -> dict[str, Any]:
        """Give everything that the remaining steps depend on."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "sampler": self.sampler.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly where `state_dict` was taken."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.sampler.load_state_dict(state["sampler"])
        self._batches = iter(self.sampler)

    def _accumulate(self, indices: list[int]) -> Tensor:
        """Add up the gradients of this rank's part of a batch; give its mean loss."""
        total = torch.zeros((), device=self.config.device)
        pieces = _pieces(indices, self.config.micro_batch)
        for number, piece in enumerate(pieces, start=1):
            last = number == len(pieces)
            # Only the last piece's backward pass exchanges gradients between the processes.
            waiting = nullcontext() if self.parallel is None or last else self.parallel.no_sync()
            with waiting:
                model = self.parallel or self.model
                loss = self._loss(model, self.corpus.train, piece) * (len(piece) / len(indices))
                loss.backward()  # type: ignore[no-untyped-call]
            total += loss.detach()
        return total

    def _loss(self, model: torch.nn.Module, rows: NDArray[Any], indices: Sequence[int]) -> Tensor:
        """Give the mean loss of some sequences, float32."""
        tokens = torch.from_numpy(take_sequences(rows, indices)).to(self.config.device).long()
        kind = torch.device(self.config.device).type
        dtype = DTYPES[self.config.dtype]
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=dtype is torch.bfloat16):
            logits = model(tokens[:, :-1])
        return next_byte_loss(logits, tokens[:, 1:])


def _pieces(indices: Sequence[int], most: int) -> list[Sequence[int]]:
    """Split into the fewest pieces of at most `most`, of sizes that differ by one at the most."""
    count = -(-len(indices) // most)
    edges = [i * len(indices) // count for i in range(count + 1)]
    return [indices[a:b] for a, b in pairwise(edges)]

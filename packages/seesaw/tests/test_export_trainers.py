"""The exported files in their real trainers, on a toy model on the CPU, checked at every step."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

import pytest
import torch

from seesaw.export import export_plan
from seesaw.planner import make_plan

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from seesaw.plan import SeesawPlan

pytestmark = [
    pytest.mark.slow,
    # The trainers' own dependencies warn of their own futures; our files are checked by result.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

SEQ_LEN = 8
ROWS = 97  # smaller than the run and prime, so batches cross the passes over the dataset
CASES = {
    "whole": {"cut": 1.3},
    "micro": {"cut": 2.0, "micro_batch": 2},
    "odd": {"cut": 1.5, "micro_batch": 3, "batch": 6},
    "sgd": {"cut": 2.0, "optimizer": "sgd", "micro_batch": 4},
}


def toy_plan(case: str) -> SeesawPlan:
    options: dict[str, Any] = {"batch": 4, **CASES[case]}
    return make_plan(lr=0.03, seq_len=SEQ_LEN, tokens=SEQ_LEN * 360, warmup=0.2, **options)


def load(plan: SeesawPlan, to: str, folder: Path) -> ModuleType:
    path = folder / f"exported_{to}.py"
    path.write_text(export_plan(plan, to), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Rows(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """Row i: features that depend on i, a target, and i itself."""

    def __init__(self, rows: int = ROWS) -> None:
        generator = torch.Generator().manual_seed(7)
        self.x = torch.randn(rows, 3, generator=generator, dtype=torch.float64)
        self.labels = torch.randn(rows, generator=generator, dtype=torch.float64)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"x": self.x[index], "labels": self.labels[index], "row": torch.tensor(index)}


class Toy(torch.nn.Module):
    """Least squares in double precision, which notes the rows that it is trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(3, dtype=torch.float64))
        self.seen: list[list[int]] = []

    def forward(self, x: Any, labels: Any, row: Any) -> dict[str, torch.Tensor]:
        self.seen.append(row.tolist())
        return {"loss": ((x @ self.weight - labels) ** 2).mean()}


def by_step(plan: SeesawPlan, seen: list[list[int]]) -> list[list[int]]:
    """Join the micro-batches that were seen into the plan's steps; none may be left over."""
    left = iter(seen)
    steps = []
    for step in plan.walk():
        rows: list[int] = []
        while len(rows) < step.batch:
            rows += next(left)
        assert len(rows) == step.batch
        steps.append(rows)
    assert next(left, None) is None
    return steps


def reference(plan: SeesawPlan, steps: list[list[int]]) -> torch.Tensor:
    """Train on the same rows by whole batches in a bare loop; give the weights."""
    data, model = Rows(), Toy()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.0, weight_decay=0.0)
    for number, rows in enumerate(steps):
        optimizer.param_groups[0]["lr"] = plan.step_at(number).lr
        index = torch.tensor(rows)
        model(data.x[index], data.labels[index], index)["loss"].backward()
        optimizer.step()
        optimizer.zero_grad()
    return model.weight.detach()


def check_run(plan: SeesawPlan, model: Toy, lrs: list[float], updates: list[int]) -> None:
    """Every step's lr, its rows, the size of its micro-batches, and the weights at the end.

    `updates` holds the number of micro-batches that had been seen at each optimizer step.
    """
    assert len(lrs) == plan.steps == len(updates)
    assert lrs == pytest.approx([step.lr for step in plan.walk()], rel=1e-12)
    accumulated = [after - before for before, after in zip([0, *updates], updates, strict=False)]
    assert accumulated == [plan.phase_at_step(step).grad_accum for step in range(plan.steps)]
    if plan.micro_batch:
        assert {len(rows) for rows in model.seen} == {plan.micro_batch}
    steps = by_step(plan, model.seen)
    order = [row for rows in steps for row in rows]
    for start in range(0, len(order) - ROWS, ROWS):
        assert sorted(order[start : start + ROWS]) == list(range(ROWS))
    torch.testing.assert_close(model.weight.detach(), reference(plan, steps), rtol=1e-9, atol=0)


def hf_trainer(module: ModuleType, model: Any, folder: Path, data: Any, **options: Any) -> Any:
    from transformers import TrainerCallback, TrainingArguments

    class Recorder(TrainerCallback):
        def __init__(self) -> None:
            self.lrs: list[float] = []
            self.updates: list[int] = []

        def on_pre_optimizer_step(self, *_: Any, **kwargs: Any) -> None:
            self.lrs.append(kwargs["optimizer"].param_groups[0]["lr"])
            self.updates.append(len(getattr(model, "seen", [])))

    defaults = {"save_strategy": "no", "logging_steps": 1, "report_to": [], "use_cpu": True}
    args = TrainingArguments(
        str(folder),
        **{**defaults, **options},
        dataloader_pin_memory=False,
        remove_unused_columns=False,
        disable_tqdm=True,
        max_grad_norm=0.0,
        lr_scheduler_type="linear",  # which the export must override
    )
    recorder = Recorder()
    trainer = module.SeesawTrainer(model=model, args=args, train_dataset=data, callbacks=[recorder])
    trainer.recorder = recorder
    return trainer


@pytest.mark.parametrize("case", CASES)
def test_hf_trainer_follows_the_plan(case: str, tmp_path: Path) -> None:
    plan = toy_plan(case)
    model = Toy()
    trainer = hf_trainer(load(plan, "hf", tmp_path), model, tmp_path / "out", Rows())
    trainer.train()
    check_run(plan, model, trainer.recorder.lrs, trainer.recorder.updates)
    logged = [entry for entry in trainer.state.log_history if "loss" in entry]
    assert [entry["batch"] for entry in logged] == [step.batch for step in plan.walk()]
    assert [entry["tokens"] for entry in logged] == [
        step.tokens_before + step.batch * SEQ_LEN for step in plan.walk()
    ]
    for key in ("planned_lr", "learning_rate"):
        assert [entry[key] for entry in logged] == pytest.approx(trainer.recorder.lrs, rel=1e-12)


def test_hf_trainer_resumes_at_the_exact_sequence(tmp_path: Path) -> None:
    plan = toy_plan("micro")
    module = load(plan, "hf", tmp_path)
    whole = Toy()
    trainer = hf_trainer(
        module, whole, tmp_path / "out", Rows(), save_strategy="steps", save_steps=13
    )
    trainer.train()
    resumed = Toy()
    again = hf_trainer(module, resumed, tmp_path / "again", Rows())
    again.train(resume_from_checkpoint=str(tmp_path / "out" / "checkpoint-13"))
    done = sum(plan.phase_at_step(step).grad_accum for step in range(13))
    assert resumed.seen == whole.seen[done:]
    assert again.recorder.lrs == trainer.recorder.lrs[13:]
    assert torch.equal(resumed.weight, whole.weight)


class Tokens(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """Sequences of which some labels are masked, so that rows weigh differently."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(3)
        self.ids = torch.randint(0, 16, (ROWS, SEQ_LEN), generator=generator)

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        labels = self.ids[index].clone()
        labels[: index % (SEQ_LEN - 2)] = -100
        return {"input_ids": self.ids[index], "labels": labels}


def language_model() -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=16, n_positions=SEQ_LEN, n_embd=8, n_layer=1, n_head=2,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    return GPT2LMHeadModel(config).double()


def test_hf_micro_batches_give_the_loss_per_token_of_the_whole_step(tmp_path: Path) -> None:
    """A real causal model divides by the labels of the whole step, however it is cut."""
    states = []
    for micro in (None, 2):
        plan = make_plan(
            lr=0.01, batch=4, seq_len=SEQ_LEN, tokens=SEQ_LEN * 120, cut=2.0, micro_batch=micro
        )
        folder = tmp_path / str(micro)
        folder.mkdir()
        model = language_model()
        trainer = hf_trainer(load(plan, "hf", folder), model, folder / "out", Tokens())
        trainer.train()
        losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
        states.append((torch.nn.utils.parameters_to_vector(model.parameters()), losses))
    (whole, whole_losses), (cut, cut_losses) = states
    torch.testing.assert_close(cut, whole, rtol=1e-7, atol=1e-9)
    assert cut_losses == pytest.approx(whole_losses, rel=1e-3)


def test_hf_trainer_refuses_its_own_accumulation(tmp_path: Path) -> None:
    module = load(toy_plan("whole"), "hf", tmp_path)
    with pytest.raises(ValueError, match="gradient_accumulation_steps=1"):
        hf_trainer(module, Toy(), tmp_path, Rows(), gradient_accumulation_steps=2)


def lightning_run(
    module: ModuleType, folder: Path, *, checkpoint: str | None = None, save_at: int = 0
) -> tuple[Toy, list[float], list[int], list[dict[str, float]]]:
    """Train with the exported data module and callback; give what was recorded."""
    from lightning.pytorch import LightningModule, Trainer
    from lightning.pytorch.callbacks import ModelCheckpoint

    lrs: list[float] = []
    updates: list[int] = []
    logged: list[dict[str, float]] = []

    class Module(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.toy = Toy()

        def training_step(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
            return self.toy(**batch)["loss"]

        def configure_optimizers(self) -> torch.optim.Optimizer:
            optimizer = torch.optim.AdamW(self.parameters(), lr=1.0, weight_decay=0.0)
            optimizer.register_step_post_hook(self.record)
            return optimizer

        def record(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
            lrs.append(optimizer.param_groups[0]["lr"])
            updates.append(len(self.toy.seen))

        def on_train_batch_end(self, *_: Any) -> None:
            if len(logged) < self.trainer.global_step:
                logged.append({k: float(v) for k, v in self.trainer.callback_metrics.items()})

    callbacks: list[Any] = [module.SeesawCallback()]
    if save_at:
        callbacks += [
            ModelCheckpoint(folder, every_n_train_steps=save_at, save_top_k=-1, filename="{step}"),
            ModelCheckpoint(folder, every_n_epochs=1, save_top_k=-1, filename="end-{step}"),
        ]
    trainer = Trainer(
        **module.TRAINER,
        callbacks=callbacks,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=bool(save_at),
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = Module()
    trainer.fit(model, datamodule=module.SeesawData(Rows()), ckpt_path=checkpoint)
    return model.toy, lrs, updates, logged


@pytest.mark.parametrize("case", CASES)
def test_lightning_trainer_follows_the_plan(case: str, tmp_path: Path) -> None:
    plan = toy_plan(case)
    toy, lrs, updates, logged = lightning_run(load(plan, "lightning", tmp_path), tmp_path)
    check_run(plan, toy, lrs, updates)
    assert [entry["seesaw_batch"] for entry in logged] == [step.batch for step in plan.walk()]
    assert [entry["seesaw_lr"] for entry in logged] == pytest.approx(lrs, rel=1e-6)


@pytest.mark.parametrize("case", ["whole", "micro"])
def test_lightning_trainer_resumes_at_the_exact_sequence(case: str, tmp_path: Path) -> None:
    """From the middle of a phase, the step before its end, and its end, saved in two ways."""
    plan = toy_plan(case)
    module = load(plan, "lightning", tmp_path)
    whole, lrs, _, _ = lightning_run(module, tmp_path, save_at=1)
    ends = [phase.start_step for phase in plan.phases[1:]]
    middle = (ends[0] + ends[1]) // 2
    names = [f"step={step}" for step in (3, middle, ends[0] - 1, *ends, plan.steps - 1)]
    names += [f"end-step={step}" for step in ends]
    for name in names:
        resumed, lrs_again, _, _ = lightning_run(
            module, tmp_path, checkpoint=str(tmp_path / f"{name}.ckpt")
        )
        step = int(name.rpartition("=")[2])
        done = sum(plan.phase_at_step(number).grad_accum for number in range(step))
        assert resumed.seen == whole.seen[done:], name
        assert lrs_again == lrs[step:], name
        assert torch.equal(resumed.weight, whole.weight), name

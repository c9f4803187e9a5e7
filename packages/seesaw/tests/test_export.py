"""The exported texts: they parse, hold the plan exactly, and use options that the trainers have."""

from __future__ import annotations

import importlib.util
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from papercuts.errors import UsageError
from seesaw.export import FORMATS, export_plan
from seesaw.export.olmo_core import stages_of
from seesaw.planner import make_plan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from seesaw.plan import SeesawPlan

ROOT = Path(__file__).parents[3]
PYTHON_FORMATS = [name for name in FORMATS if name != "olmo-core"]
PUBLISHED = {"lr": 3e-3, "batch": 256, "seq_len": 1024, "tokens": 3.3e9}


def plans() -> dict[str, SeesawPlan]:
    return {
        "plain": make_plan(**PUBLISHED),
        "doubling": make_plan(**PUBLISHED, cut=2.0),
        "micro": make_plan(**PUBLISHED, micro_batch=32, gpus=4),
        "capped": make_plan(**PUBLISHED, cut=2.0, cap_batch=512, gpus=2),
        "no warmup": make_plan(**PUBLISHED, cut=2.0, warmup=0.0, optimizer="sgd"),
        "tiny lr": make_plan(**{**PUBLISHED, "lr": 1e-5}, cut=4.0),
    }


PLANS = plans()


def load(text: str, folder: Path) -> ModuleType:
    path = folder / "exported.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("exported", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_table(module: Any, plan: SeesawPlan) -> None:
    """The literal table, and what `plan_at` makes of it around every change and in the warmup."""
    rows = [(p.start_step, p.start_token, p.lr, p.batch, p.grad_accum) for p in plan.phases]
    assert rows == module.PHASES
    assert (plan.steps, plan.seq_len, plan.peak_lr) == (
        module.STEPS, module.SEQ_LEN, module.PEAK_LR,
    )  # fmt: skip
    around = {p.start_step + d for p in plan.phases for d in (-1, 0, 1)} | {0, 1, 100, 1257, 1258}
    for step in sorted(around & set(range(plan.steps))):
        want = plan.step_at(step)
        lr, batch, grad_accum, before = module.plan_at(step)
        assert (lr, batch, before * plan.seq_len) == (want.lr, want.batch, want.tokens_before)
        assert grad_accum == plan.phase_at_step(step).grad_accum


@pytest.mark.parametrize("to", PYTHON_FORMATS)
@pytest.mark.parametrize("name", PLANS)
def test_python_exports_hold_the_plan(name: str, to: str) -> None:
    """Compiled without the imports of the trainers, which need not be installed."""
    text = export_plan(PLANS[name], to)
    standard = "bisect|json|runpy|sys|pathlib|contextlib"
    code = re.sub(rf"^(from|import) (?!{standard}).*$", "", text, flags=re.MULTILINE)
    code = code[: code.index("\n\n\n", code.index("def plan_at"))]
    module: dict[str, Any] = {}
    exec(compile(code, f"{to}.py", "exec"), module)  # noqa: S102 - our own text
    compile(text, f"{to}.py", "exec")
    check_table(
        type("Module", (), module | {"plan_at": staticmethod(module["plan_at"])}), PLANS[name]
    )
    if to != "megatron":
        sequences = sum(phase.steps * phase.batch for phase in PLANS[name].phases)
        assert f"takes {sequences} sequences" in text
    assert "seesaw" not in {
        line.split()[1] for line in text.splitlines() if line.startswith("from ")
    }


def test_python_exports_are_ruff_clean(tmp_path: Path) -> None:
    """By the rules of this repository, formatting included."""
    for name, plan in PLANS.items():
        for to in PYTHON_FORMATS:
            (tmp_path / f"{name.replace(' ', '_')}_{to}.py").write_text(export_plan(plan, to))
    config = str(ROOT / "pyproject.toml")
    for command in (["check", "--no-cache"], ["format", "--check", "--no-cache"]):
        run = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--config", config, str(tmp_path)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert run.returncode == 0, run.stdout


def test_unknown_format_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match="hf, lightning, olmo-core, megatron, deepspeed, torch"):
        export_plan(PLANS["plain"], "jax")


# The plain PyTorch file


def toy_plan(**options: Any) -> SeesawPlan:
    return make_plan(lr=0.01, batch=4, seq_len=8, tokens=8 * 300, warmup=0.2, **options)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"cut": 1.3}, {"cut": 2.0, "micro_batch": 2}])
def test_torch_file_in_its_documented_loop(options: dict[str, Any], tmp_path: Path) -> None:
    """The loop of the file's docstring: every lr and batch, and the same weights after a resume."""
    plan = toy_plan(**options)
    exported = load(export_plan(plan, "torch"), tmp_path)
    data = torch.randn(53, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

    def train(first: int, last: int, state: dict[str, Any] | None) -> tuple[Any, ...]:
        weight = torch.nn.Parameter(torch.zeros(2, dtype=torch.float64))
        optimizer = torch.optim.AdamW([weight], lr=exported.PEAK_LR)
        scheduler = exported.make_scheduler(optimizer)
        if state:
            weight.data.copy_(state["weight"])
            optimizer.load_state_dict(state["optimizer"])
            scheduler.load_state_dict(state["scheduler"])
        sampler = exported.PlanBatches(len(data), first=first)
        batches = iter(torch.utils.data.DataLoader(range(len(data)), batch_sampler=sampler))
        lrs, rows = [], []
        for step in range(first, last):
            grad_accum = exported.plan_at(step)[2]
            for _ in range(grad_accum):
                index = next(batches)
                rows.append(index.tolist())
                (((data[index] - weight) ** 2).mean() / grad_accum).backward()
            lrs.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        state = {
            "weight": weight.detach().clone(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
        }
        return lrs, rows, state, batches

    lrs, rows, state, batches = train(0, plan.steps, None)
    assert next(batches, None) is None
    assert lrs == pytest.approx([step.lr for step in plan.walk()], rel=1e-12)
    order = [row for micro in rows for row in micro]
    assert len(order) == sum(step.batch for step in plan.walk())
    half = plan.steps // 2
    lrs_1, rows_1, saved, _ = train(0, half, None)
    lrs_2, rows_2, resumed, _ = train(half, plan.steps, saved)
    assert (lrs_1 + lrs_2, rows_1 + rows_2) == (lrs, rows)
    assert torch.equal(resumed["weight"], state["weight"])


@settings(max_examples=30, deadline=None)
@given(
    size=st.integers(1, 40), world=st.sampled_from([1, 2]), seed=st.integers(0, 3), data=st.data()
)
def test_batch_sampler_gives_each_sequence_once(
    size: int, world: int, seed: int, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Ranks share out each step; every pass over the data is a permutation; resuming is exact."""
    plan = toy_plan(cut=1.5, micro_batch=2, gpus=world)
    exported = load(export_plan(plan, "torch"), tmp_path_factory.getbasetemp())
    ranks = [exported.PlanBatches(size, rank=rank, world=world, seed=seed) for rank in range(world)]
    order: list[int] = []
    for step in range(plan.steps):
        parts = [rank.micro_batches(step) for rank in ranks]
        assert {len(part) for part in parts} == {plan.phase_at_step(step).grad_accum}
        assert {len(micro) for part in parts for micro in part} == {2}
        order += [row for part in parts for micro in part for row in micro]
        assert len(order) * plan.seq_len == plan.tokens_before_step(step + 1)
    for start in range(0, len(order) - size + 1, size):
        assert sorted(order[start : start + size]) == list(range(size))
    first = data.draw(st.integers(0, plan.steps))
    rest = exported.PlanBatches(size, first=first, world=world, seed=seed)
    done = sum(plan.phase_at_step(step).grad_accum for step in range(first))
    assert list(rest) == list(ranks[0])[done:]
    assert len(rest) == len(list(rest))


def test_batch_sampler_refuses_another_number_of_devices(tmp_path: Path) -> None:
    exported = load(export_plan(toy_plan(cut=2.0, micro_batch=2), "torch"), tmp_path)
    with pytest.raises(ValueError, match="batch 4 does not fit 2 devices"):
        exported.PlanBatches(10, world=2)


# OLMo-core: what ai2-olmo-core 3.0.0 does with the YAML, written out again from its semantics


def olmo_lr(stages: list[dict[str, Any]], tokens: int) -> float:
    """ComposableScheduler.get_lr with linear stages; `tokens` include the current step."""
    start = 0
    for stage in stages:
        if tokens < start + stage["duration"]:
            part = (tokens - start) / stage["duration"]
            return stage["start_lr"] + (stage["end_lr"] - stage["start_lr"]) * part
        start += stage["duration"]
    return stages[-1]["end_lr"]


def olmo_run(config: dict[str, Any]) -> Iterator[tuple[int, int, float]]:
    """Tokens before, batch in tokens and lr of each step that OLMo-core's trainer takes."""
    callback = config["trainer"]["callbacks"]["batch_size_scheduler"]
    schedule = list(zip(callback["batch_sizes"], callback["schedule"], strict=True))
    batch = config["data_loader"]["global_batch_size"]
    tokens = batches = 0
    while tokens < config["trainer"]["max_duration"]["value"]:
        target = [size for size, start in schedule if tokens >= start["value"]][-1]
        if batches % (target // batch) == 0:  # the data loader refuses any other place
            batches //= target // batch
            batch = target
        assert batch == target, "the file names a place where the batch cannot change"
        yield tokens, batch, olmo_lr(config["train_module"]["scheduler"]["stages"], tokens + batch)
        tokens += batch
        batches += 1


@pytest.mark.parametrize("name", ["doubling", "capped", "no warmup", "tiny lr"])
def test_olmo_core_runs_the_plan(name: str) -> None:
    """Every phase starts less than one new batch late, with its own lr and batch from there on."""
    plan = PLANS[name]
    config = yaml.safe_load(export_plan(plan, "olmo-core"))
    callback = config["trainer"]["callbacks"]["batch_size_scheduler"]
    assert len(set(callback["batch_sizes"])) == len(callback["batch_sizes"])
    stages = stages_of(plan)
    assert [(stage.batch, stage.lr) for stage in stages] == [(p.batch, p.lr) for p in plan.phases]
    for stage, phase in zip(stages, plan.phases, strict=True):
        assert 0 <= stage.start - phase.start_token < phase.batch * plan.seq_len
    steps = 0
    for tokens, batch, lr in olmo_run(config):
        steps += 1
        stage = [stage for stage in stages if stage.start <= tokens][-1]
        assert batch == stage.batch * plan.seq_len
        want = stage.lr * plan.lr_factor_in_warmup(tokens + batch)
        assert math.isclose(lr, want, rel_tol=1e-12)
    assert abs(steps - plan.steps) <= len(plan.phases)


def test_olmo_core_aligned_plan_is_run_exactly() -> None:
    """Where every phase starts at a multiple of its batch, nothing is moved."""
    plan = make_plan(
        lr=1e-3, batch=4, seq_len=16, tokens=16 * 4096, cut=2.0, base="step:0.5@0.5,0.75"
    )
    assert [p.start_token for p in plan.phases] == [stage.start for stage in stages_of(plan)]
    run = list(olmo_run(yaml.safe_load(export_plan(plan, "olmo-core"))))
    assert [(tokens, batch) for tokens, batch, _ in run] == [
        (step.tokens_before, step.batch * 16) for step in plan.walk()
    ]
    assert [lr for *_, lr in run] == pytest.approx([step.lr for step in plan.walk()], rel=1e-12)


def test_olmo_core_refuses_what_its_callback_refuses() -> None:
    with pytest.raises(UsageError, match=r"whole factors only, not from 256 to 281 .*--cut 2"):
        export_plan(PLANS["plain"], "olmo-core")


# Megatron-LM: options of its main branch since pull request 4411 (April 2026)

MEGATRON_OPTIONS = {
    "--seq-length", "--train-samples", "--step-batch-size-schedule", "--micro-batch-size",
    "--lr", "--min-lr", "--lr-decay-style",
}  # fmt: skip


def megatron_schedule(text: str, seq_length: int) -> list[tuple[int, int]]:
    """StepBatchsizeNumMicroBatchesCalculator._parse_schedule, without its unit suffixes."""
    pairs = [entry.split(":") for entry in text.replace(",", " ").split()]
    return [(int(float(start)) // seq_length, int(float(batch))) for start, batch in pairs]


@pytest.mark.parametrize("name", PLANS)
def test_megatron_follows_the_plan(name: str, tmp_path: Path) -> None:
    plan = PLANS[name]
    exported = load(export_plan(plan, "megatron"), tmp_path)
    options = dict(zip(exported.ARGUMENTS[::2], exported.ARGUMENTS[1::2], strict=True))
    assert set(options) <= MEGATRON_OPTIONS
    assert ("--micro-batch-size" in options) == bool(plan.micro_batch)
    assert float(options["--lr"]) == plan.peak_lr
    assert int(options["--train-samples"]) * plan.seq_len == plan.tokens
    schedule = megatron_schedule(options["--step-batch-size-schedule"], plan.seq_len)

    class Scheduler:
        max_lr = plan.peak_lr
        num_steps = 0
        get_lr = exported.get_lr

    scheduler = Scheduler()
    samples = 0
    for number, step in enumerate(plan.walk()):
        if number % 7 == 0 or plan.phase_at_step(number).start_step in (number, number - 1):
            batch = [size for start, size in schedule if samples >= start][-1]
            scheduler.num_steps = samples
            assert batch == step.batch
            assert scheduler.get_lr({}) == pytest.approx(step.lr, rel=1e-12)
            assert scheduler.get_lr({"max_lr": 1.0}) == pytest.approx(step.lr / plan.peak_lr)
        samples += step.batch


def test_megatron_launcher_starts_the_script_with_the_arguments(tmp_path: Path) -> None:
    """With a stand-in for megatron.core: its class is patched, its script gets both arguments."""
    core = tmp_path / "megatron" / "core"
    core.mkdir(parents=True)
    (core / "optimizer_param_scheduler.py").write_text("class OptimizerParamScheduler: pass\n")
    script = tmp_path / "scripts" / "pretrain.py"
    script.parent.mkdir()
    (script.parent / "helper.py").write_text("")
    script.write_text(
        "import helper, json, sys\n"
        "from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler as S\n"
        "S.num_steps, S.max_lr = 0, 1.0\n"
        "print(json.dumps([sys.argv, S().get_lr({})]))\n"
    )
    launcher = tmp_path / "seesaw_megatron.py"
    launcher.write_text(export_plan(PLANS["micro"], "megatron"))
    run = subprocess.run(
        [sys.executable, str(launcher), str(script), "--bf16"],
        capture_output=True, text=True, check=True, env={"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    argv, factor = json.loads(run.stdout)
    assert argv[:2] == [str(script), "--bf16"]
    assert argv[argv.index("--micro-batch-size") + 1] == "32"
    assert factor == pytest.approx(PLANS["micro"].step_at(0).lr / PLANS["micro"].peak_lr)


# DeepSpeed 0.19.8: its engine, written out again as far as the exported step uses it


class Engine:
    """What train_step calls, with DeepSpeed's own checks and its rule for the end of a step."""

    dp_world_size = 4

    def __init__(self, config: dict[str, int]) -> None:
        self.accumulation = config["gradient_accumulation_steps"]
        self.micro = config["train_micro_batch_size_per_gpu"]
        assert config["train_batch_size"] == self.micro * self.accumulation * self.dp_world_size
        self.global_steps = 0
        self.boundary = False
        self.optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(()))], lr=1.0)
        self.pending: list[float] = []
        self.done: list[tuple[float, int, float]] = []

    def set_train_batch_size(self, train_batch_size: int) -> None:
        assert train_batch_size % (self.micro * self.dp_world_size) == 0
        self.accumulation = train_batch_size // (self.micro * self.dp_world_size)

    def set_train_micro_batch_size(self, micro_batch_size: int) -> None:
        self.micro = micro_batch_size

    def set_gradient_accumulation_boundary(self, is_boundary: bool) -> None:
        self.boundary = is_boundary

    def backward(self, loss: torch.Tensor) -> None:
        self.pending.append(float(loss) / self.accumulation)

    def step(self) -> None:
        if self.boundary:
            batch = len(self.pending) * self.micro * self.dp_world_size
            self.done.append((self.optimizer.param_groups[0]["lr"], batch, sum(self.pending)))
            self.pending = []
            self.global_steps += 1


@pytest.mark.slow
@pytest.mark.parametrize("micro", [None, 2])
def test_deepspeed_step_follows_the_plan(micro: int | None, tmp_path: Path) -> None:
    plan = make_plan(
        lr=0.01, batch=16, seq_len=8, tokens=8 * 2000, cut=1.5, micro_batch=micro, gpus=4
    )
    exported = load(export_plan(plan, "deepspeed"), tmp_path)
    check_table(exported, plan)
    engine = Engine(exported.DS_CONFIG)
    batches = iter(exported.PlanBatches(100, rank=1, world=4))
    while engine.global_steps < exported.STEPS:
        loss = exported.train_step(engine, batches, lambda _, rows: torch.tensor(float(len(rows))))
        assert loss == pytest.approx(engine.micro)
    assert next(batches, None) is None
    want = [(step.lr, step.batch) for step in plan.walk()]
    assert [(lr, batch) for lr, batch, _ in engine.done] == want
    means = [mean for *_, mean in engine.done]
    assert means == pytest.approx([micro or step.batch // 4 for step in plan.walk()])


def test_deepspeed_file_prints_its_configuration(tmp_path: Path) -> None:
    path = tmp_path / "seesaw_deepspeed.py"
    text = export_plan(PLANS["micro"], "deepspeed")
    path.write_text(text.replace("import torch\n", ""))  # only the samplers use it
    run = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == {
        "train_batch_size": 256,
        "train_micro_batch_size_per_gpu": 32,
        "gradient_accumulation_steps": 2,
    }

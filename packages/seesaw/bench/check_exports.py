# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = [
#     "ai2-olmo-core==3.0.0",
#     "megatron-core==0.16.1",
#     "papercuts",
#     "papercuts-seesaw",
# ]
#
# [tool.uv.sources]
# papercuts = { path = "../../../shared", editable = true }
# papercuts-seesaw = { path = "..", editable = true }
# ///
"""Feed the OLMo-core and Megatron-LM exports to those libraries' own classes.

Run with `uv run --script packages/seesaw/bench/check_exports.py [olmo-core] [megatron]`: one line a
check, and an AssertionError where one fails. megatron-core 0.16.1 has the lr scheduler that the
export patches; it is older than --step-batch-size-schedule, which is not checked here.
"""

from __future__ import annotations

import math
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from seesaw.export import export_plan
from seesaw.planner import make_plan

if TYPE_CHECKING:
    from seesaw.plan import SeesawPlan

PLAN = make_plan(lr=3e-3, batch=256, seq_len=1024, tokens=3.3e9, cut=2.0, micro_batch=32, gpus=4)


def check_olmo_core(plan: SeesawPlan) -> str:
    """Decode the YAML with OLMo-core and walk its scheduler at every step of the plan."""
    import yaml
    from olmo_core.config import Config
    from olmo_core.optim.scheduler import ComposableScheduler
    from olmo_core.train import TrainerConfig
    from olmo_core.train.callbacks import BatchSizeSchedulerCallback

    config: dict[str, Any] = yaml.safe_load(export_plan(plan, "olmo-core"))
    scheduler = Config.from_dict(config["train_module"]["scheduler"])
    assert isinstance(scheduler, ComposableScheduler)
    trainer = TrainerConfig.from_dict({"save_folder": "out", **config["trainer"]})
    assert trainer.max_duration.value == plan.total_tokens
    callback = trainer.callbacks["batch_size_scheduler"]
    assert isinstance(callback, BatchSizeSchedulerCallback)
    for step in plan.walk():
        batch = step.batch * plan.seq_len
        due = [
            size
            for size, start in zip(callback.batch_sizes, callback.schedule, strict=True)
            if start.due(step=0, tokens=step.tokens_before, epoch=1)
        ]
        assert due[-1] == batch
        lr = scheduler.get_lr(plan.peak_lr * 7.0, step.tokens_before + batch, plan.tokens)
        assert math.isclose(lr, step.lr, rel_tol=1e-12)  # whatever the callback made of initial_lr
    return f"olmo-core: {plan.steps} steps, batch and lr as planned"


def check_megatron(plan: SeesawPlan) -> str:
    """Step megatron-core's own scheduler, with the exported get_lr, through the plan."""
    from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler

    exported: dict[str, Any] = {"__name__": "exported"}
    exec(export_plan(plan, "megatron"), exported)  # noqa: S102 - our own text
    OptimizerParamScheduler.get_lr = exported["get_lr"]
    group: dict[str, Any] = {"max_lr": plan.peak_lr, "params": []}
    scheduler = OptimizerParamScheduler(
        SimpleNamespace(param_groups=[group]),
        init_lr=0.0,
        max_lr=plan.peak_lr,
        min_lr=0.0,
        lr_warmup_steps=0,
        lr_decay_steps=plan.tokens // plan.seq_len,
        lr_decay_style="constant",
        start_wd=0.1,
        end_wd=0.1,
        wd_incr_steps=1,
        wd_incr_style="constant",
    )
    for step in plan.walk():
        assert math.isclose(group["lr"], step.lr, rel_tol=1e-12)
        scheduler.step(increment=step.batch)
    return f"megatron: {plan.steps} steps, lr as planned"


CHECKS = {"olmo-core": check_olmo_core, "megatron": check_megatron}

if __name__ == "__main__":
    for name in sys.argv[1:] or CHECKS:
        print(CHECKS[name](PLAN))

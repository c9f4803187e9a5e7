"""Seesaw: decay the learning rate half as much in log-scale, grow the batch instead.

from seesaw import make_plan, SeesawLR, SeesawBatchSampler

plan = make_plan(lr=3e-3, batch=256, seq_len=1024, tokens=3.3e9)
scheduler = SeesawLR(optimizer, plan)
loader = DataLoader(dataset, batch_sampler=SeesawBatchSampler(dataset, plan))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seesaw.check import Finding, check_plan
    from seesaw.curve import read_curve
    from seesaw.export import export_plan
    from seesaw.lr import SeesawLR
    from seesaw.measured import plan_from_curve
    from seesaw.noise import NoiseEstimate, estimate_noise
    from seesaw.plan import Phase, SeesawPlan, Step
    from seesaw.planfile import from_records, to_rows
    from seesaw.planner import make_plan
    from seesaw.published import reproduce
    from seesaw.recursion import Problem, make_problem
    from seesaw.risk import Simulation, simulate
    from seesaw.sampler import SeesawBatchSampler
    from seesaw.schedule import Schedule, make_schedule
    from seesaw.summary import Summary, summarize

__all__ = [
    "Finding",
    "NoiseEstimate",
    "Phase",
    "Problem",
    "Schedule",
    "SeesawBatchSampler",
    "SeesawLR",
    "SeesawPlan",
    "Simulation",
    "Step",
    "Summary",
    "check_plan",
    "estimate_noise",
    "export_plan",
    "from_records",
    "make_plan",
    "make_problem",
    "make_schedule",
    "plan_from_curve",
    "read_curve",
    "reproduce",
    "simulate",
    "summarize",
    "to_rows",
]

_HOMES = {
    "Finding": "check",
    "NoiseEstimate": "noise",
    "Phase": "plan",
    "Problem": "recursion",
    "Schedule": "schedule",
    "SeesawBatchSampler": "sampler",
    "SeesawLR": "lr",
    "SeesawPlan": "plan",
    "Simulation": "risk",
    "Step": "plan",
    "Summary": "summary",
    "check_plan": "check",
    "estimate_noise": "noise",
    "export_plan": "export",
    "from_records": "planfile",
    "make_plan": "planner",
    "make_problem": "recursion",
    "make_schedule": "schedule",
    "plan_from_curve": "measured",
    "read_curve": "curve",
    "reproduce": "published",
    "simulate": "risk",
    "summarize": "summary",
    "to_rows": "planfile",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)

"""Schedules for deterministic attention and other fixed-order reductions, with proofs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bitsched.bits import Bits, compare_bits
    from bitsched.checking import Finding, check
    from bitsched.comparing import compare
    from bitsched.costs import Costs
    from bitsched.exact import Optimum, find_optimum
    from bitsched.exporting import export_plan
    from bitsched.fitting import fit, read_timings
    from bitsched.gantt import draw, plan_timeline
    from bitsched.graphcommand import run_graph
    from bitsched.lowerbounds import Bounds, bounds
    from bitsched.masks import make_shape
    from bitsched.plan import Plan
    from bitsched.planfile import read_plan, write_plan
    from bitsched.planning import make_plan
    from bitsched.proving import Proof, prove
    from bitsched.shape import Shape
    from bitsched.simulation import DeadlockError, Simulation, simulate
    from bitsched.taskgraph import TaskGraph, task_graph
    from bitsched.tasklist import read_tasks

__all__ = [
    "Bits",
    "Bounds",
    "Costs",
    "DeadlockError",
    "Finding",
    "Optimum",
    "Plan",
    "Proof",
    "Shape",
    "Simulation",
    "TaskGraph",
    "bounds",
    "check",
    "compare",
    "compare_bits",
    "draw",
    "export_plan",
    "find_optimum",
    "fit",
    "make_plan",
    "make_shape",
    "plan_timeline",
    "prove",
    "read_plan",
    "read_tasks",
    "read_timings",
    "run_graph",
    "simulate",
    "task_graph",
    "write_plan",
]

_HOMES = {
    "Bits": "bits",
    "Bounds": "lowerbounds",
    "Costs": "costs",
    "DeadlockError": "simulation",
    "Finding": "checking",
    "Optimum": "exact",
    "Plan": "plan",
    "Proof": "proving",
    "Shape": "shape",
    "Simulation": "simulation",
    "TaskGraph": "taskgraph",
    "bounds": "lowerbounds",
    "check": "checking",
    "compare": "comparing",
    "compare_bits": "bits",
    "draw": "gantt",
    "export_plan": "exporting",
    "find_optimum": "exact",
    "fit": "fitting",
    "make_plan": "planning",
    "make_shape": "masks",
    "plan_timeline": "gantt",
    "prove": "proving",
    "read_plan": "planfile",
    "read_tasks": "tasklist",
    "read_timings": "fitting",
    "run_graph": "graphcommand",
    "simulate": "simulation",
    "task_graph": "taskgraph",
    "write_plan": "planfile",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)

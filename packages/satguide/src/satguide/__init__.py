"""Guidance for CDCL solvers, learnt from their own decision counts (arXiv 2505.16053).

In short:

    import satguide

    checkpoint = satguide.load("3sat")               # one that ships, or a path
    cnf = satguide.read_dimacs("formula.cnf")
    guidance = satguide.guide(checkpoint, cnf)       # weights [variables], polarity [variables]
    solver = satguide.backend("clasp")
    outcome = solver.solve(solver.prepare(cnf), guidance, polarity=checkpoint.polarity)
    outcome.satisfiable, outcome.model, outcome.decisions
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from satguide.backends import Guidance, Outcome, backend
    from satguide.checkpoint import Checkpoint
    from satguide.cnf import CNF
    from satguide.costs import Meter
    from satguide.dimacs import load as read_dimacs
    from satguide.dimacs import write as write_dimacs
    from satguide.evaluation import Contest, evaluate
    from satguide.explanation import explain
    from satguide.families.spec import generator
    from satguide.guidance import guide
    from satguide.models import load
    from satguide.network import GuidanceNetwork, Shape
    from satguide.trainer import Settings, Trainer
    from satguide.training import Run, train

__all__ = [
    "CNF",
    "Checkpoint",
    "Contest",
    "Guidance",
    "GuidanceNetwork",
    "Meter",
    "Outcome",
    "Run",
    "Settings",
    "Shape",
    "Trainer",
    "backend",
    "evaluate",
    "explain",
    "generator",
    "guide",
    "load",
    "read_dimacs",
    "train",
    "write_dimacs",
]

# Where each public name comes from, MODULE or MODULE:NAME, imported when somebody asks for it.
_HOME = {
    "CNF": "satguide.cnf",
    "Checkpoint": "satguide.checkpoint",
    "Contest": "satguide.evaluation",
    "Guidance": "satguide.backends",
    "GuidanceNetwork": "satguide.network",
    "Meter": "satguide.costs",
    "Outcome": "satguide.backends",
    "Run": "satguide.training",
    "Settings": "satguide.trainer",
    "Shape": "satguide.network",
    "Trainer": "satguide.trainer",
    "backend": "satguide.backends",
    "evaluate": "satguide.evaluation",
    "explain": "satguide.explanation",
    "generator": "satguide.families.spec",
    "guide": "satguide.guidance",
    "load": "satguide.models",
    "read_dimacs": "satguide.dimacs:load",
    "train": "satguide.training",
    "write_dimacs": "satguide.dimacs:write",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'satguide' has no attribute '{name}'")
    module, _, other = _HOME[name].partition(":")
    return getattr(import_module(module), other or name)

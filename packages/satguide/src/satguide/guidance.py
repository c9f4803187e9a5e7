"""From a checkpoint and a formula to guidance: one look of the network, in memory linear in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from papercuts.log import get_logger
from satguide import policy
from satguide.backends import Guidance
from satguide.checkpoint import Checkpoint
from satguide.cnf import CNF
from satguide.colours import merged
from satguide.graph import adjacency, batch

# The exponent of what a 4-decimal weight can hold, and of what clasp's 16 bits can: beyond, a
# weight would lose its sign in a `c weight` line.
_LOWEST, _HIGHEST = 1e-3, 32.0


def guide(checkpoint: Checkpoint, cnf: CNF, *, device: torch.device | str = "cpu") -> Guidance:
    """Ask the network for the weight and the polarity of every variable: the policy's mode.

    Weights are clipped to 0.001..32, what every back end can express. A variable that occurs in no
    clause gets w = 1 and p = 1, and so does p of every variable where only weights were learnt.
    """
    network, graph = checkpoint.network, adjacency(cnf)
    # `to` walks over all modules, a fifth of a look where there is nothing to move.
    if next(network.parameters()).device != torch.device(device):
        network = network.to(device)
    if fewer := merged(graph, network.shape.layers, device):
        rho, mu = (answer[fewer.class_of] for answer in network.infer(fewer.graph))
    else:
        rho, mu = network.infer(batch([graph], device))
    if checkpoint.centre:
        mu = mu - mu.mean()
    weights, polarity = policy.mode(rho, mu, checkpoint.sigma)
    found = Guidance(
        weights.clamp(_LOWEST, _HIGHEST).cpu().numpy().astype(np.float32), polarity.cpu().numpy()
    )
    absent = cnf.occurrences() == 0
    found.weights[absent] = 1.0
    found.polarity[absent] = True
    if checkpoint.polarity == "none":
        found.polarity[:] = True
    return found


def measures(cnf: CNF) -> dict[str, float]:
    """Measure what training remembers of a formula, to tell later ones that are unlike it."""
    clauses = max(1, len(cnf))
    return {
        "variables": cnf.variables,
        "clauses_per_variable": len(cnf) / max(1, cnf.variables),
        "literals_per_clause": cnf.literals.size / clauses,
    }


def outside(checkpoint: Checkpoint, cnf: CNF) -> str | None:
    """Say what of a formula lies outside the training range (10 % of slack), or None.

    More variables than in training are no reason: guidance is meant to carry over to larger sizes.
    """
    seen: dict[str, Any] = checkpoint.made.get("range", {})
    found = measures(cnf)
    for name in ("clauses_per_variable", "literals_per_clause"):
        if name in seen:
            low, high = seen[name]
            if not 0.9 * low <= found[name] <= 1.1 * high:
                words = name.replace("_", " ")
                return f"{found[name]:.3g} {words}, in training {low:.3g} to {high:.3g}"
    return None


def warn_outside(checkpoint: Checkpoint, cnf: CNF, path: str) -> None:
    """Warn where the formula read from `path` lies outside the training range."""
    if unlike := outside(checkpoint, cnf):
        name = "stdin" if path == "-" else path
        get_logger(__name__).warning("%s is unlike the formulas of training: %s", name, unlike)

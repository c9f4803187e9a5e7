"""A beginning for training from weights that somebody already has.

In a family whose variables keep their meaning (a cipher, one circuit under many constraints) a
table of weights can come from a person who knows it or from a search. The network is fitted to the
table before the first iteration; it sees structure only, so what it takes over is what it can tell
from the structure, and it can say it of other formulas too.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from papercuts.errors import DataError
from papercuts.log import get_logger, progress
from papercuts.streams import read_records
from satguide.graph import adjacency, batch
from satguide.grpo import centred

if TYPE_CHECKING:
    from satguide.network import GuidanceNetwork
    from satguide.trainer import Settings, Source

STEPS = 600
RATE = 3e-3  # at the beginning; it falls to zero along a cosine
_FORMULAS = 4  # a step

logger = get_logger(__name__)


def read(path: str) -> NDArray[np.float32]:
    """Read log w [variables] from records with `variable` and `weight`, as `weights` writes them.

    Raises `DataError` for a record that is none, and where a variable is missing or stands twice.
    """
    found: dict[int, float] = {}
    for record in read_records(path):
        variable: Any = record.data.get("variable")
        weight: Any = record.data.get("weight")
        if not _is_variable(variable) or not _is_weight(weight):
            raise record.error("no weight of a variable", expected="variable >= 1 and weight > 0")
        if variable in found:
            raise record.error(f"variable {variable} stands there twice")
        found[variable] = math.log(weight)
    if not found or max(found) != len(found):
        raise DataError(f"{path}: {len(found)} variables, expected all from 1 on without a gap")
    return np.array([found[v] for v in range(1, len(found) + 1)], dtype=np.float32)


def _is_variable(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_weight(value: Any) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return 0 < value <= sys.float_info.max  # compared exactly, also an integer that no float holds


def fit(
    network: GuidanceNetwork, log_weights: NDArray[np.float32], source: Source, settings: Settings
) -> float:
    """Fit mu to the table on training formulas; give the share of its variance that is explained.

    The common part of all log w is left out (`satguide.grpo.centred`). Raises `DataError` for a
    formula with another number of variables than the table.
    """
    wanted = torch.from_numpy(log_weights - log_weights.mean())
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
    error = math.nan
    with progress("fitting the prior", STEPS) as bar:
        for step in range(STEPS):
            formulas = source.training(settings.seed, step * _FORMULAS, _FORMULAS)
            for cnf in formulas:
                if cnf.variables != wanted.numel():
                    raise DataError(
                        f"{cnf.name} has {cnf.variables} variables, the prior {wanted.numel()}"
                    )
            graph = batch([adjacency(cnf) for cnf in formulas])
            _, mu = network(graph)
            loss = ((centred(mu, graph).reshape(len(formulas), -1) - wanted) ** 2).mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            for group in optimizer.param_groups:
                group["lr"] = RATE * 0.5 * (1 + math.cos(math.pi * step / STEPS))
            optimizer.step()
            error = float(loss.detach())
            bar.advance()
    explained = 1 - error / max(float(wanted.var(unbiased=False)), 1e-12)
    logger.info("the network explains %.1f %% of the prior's variance", 100 * explained)
    return explained

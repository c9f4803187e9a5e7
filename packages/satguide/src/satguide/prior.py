"""A beginning for training from weights that somebody already has.

In a family whose variables keep their meaning (a cipher, one circuit under many constraints) one
table of weights can come from a person who knows it or from a search; elsewhere there may be a
table for each of a folder of formulas. The network is fitted to the tables before the first
iteration; it sees structure only, so what it takes over is what it can tell from the structure, and
it can say it of other formulas too.
"""

from __future__ import annotations

import hashlib
import math
import re
import sys
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from papercuts.errors import DataError
from papercuts.log import get_logger, progress
from papercuts.streams import read_records
from satguide.graph import adjacency, batch
from satguide.grpo import centred
from satguide.models import file_origin

if TYPE_CHECKING:
    from satguide.cnf import CNF
    from satguide.network import GuidanceNetwork
    from satguide.trainer import Settings, Source

STEPS = 1500
RATE = 3e-3  # at the beginning; it falls to zero along a cosine
_FORMULAS = 4  # a step
_LAST = 10  # steps, over which the share explained is measured
_SUFFIX = re.compile(r"\.(cnf|dimacs)(\.(gz|xz|zst))?$", re.IGNORECASE)

logger = get_logger(__name__)


class Prior(Protocol):
    """Weights to begin with."""

    def of(self, cnf: CNF) -> NDArray[np.float32]:
        """Give log w [variables] of a formula. Raises `DataError` where it has other variables."""


class Table:
    """One table for all formulas, log w [variables]."""

    def __init__(self, log_weights: NDArray[np.float32]) -> None:
        self.log_weights = log_weights

    def of(self, cnf: CNF) -> NDArray[np.float32]:
        """Give the table, for a formula of as many variables."""
        return _fitting(self.log_weights, cnf)


class Tables:
    """A table for each formula: the weights of NAME.cnf are in the folder's NAME.jsonl."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self._read = lru_cache(maxsize=4096)(read_table)

    def of(self, cnf: CNF) -> NDArray[np.float32]:
        """Read the table of a formula. Raises `InputError` where there is none."""
        name = _SUFFIX.sub("", Path(cnf.name).name)
        return _fitting(self._read(str(self.folder / f"{name}.jsonl")), cnf)


def read(path: str) -> Prior:
    """Read a table, or find the folder of tables."""
    return Tables(path) if Path(path).is_dir() else Table(read_table(path))


def origin(path: str) -> dict[str, str]:
    """Say what file or folder it was: its name, and the SHA-256 of it or of all its tables."""
    if not Path(path).is_dir():
        return file_origin(path)
    digest = hashlib.sha256()
    for file in sorted(Path(path).glob("*.jsonl")):
        digest.update(f"{file.name}\0{file_origin(str(file))['sha256']}\0".encode())
    return {"name": Path(path).name, "sha256": digest.hexdigest()}


def read_table(path: str) -> NDArray[np.float32]:
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


def _fitting(log_weights: NDArray[np.float32], cnf: CNF) -> NDArray[np.float32]:
    if cnf.variables != log_weights.size:
        raise DataError(f"{cnf.name} has {cnf.variables} variables, the prior {log_weights.size}")
    return log_weights


def _is_variable(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_weight(value: Any) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return 0 < value <= sys.float_info.max  # compared exactly, also an integer that no float holds


def fit(network: GuidanceNetwork, prior: Prior, source: Source, settings: Settings) -> float:
    """Fit mu to the prior on training formulas; give the share of its variance that is explained.

    The common part of a formula's log w is left out (`satguide.grpo.centred`), and so is the
    variance between formulas. Raises `DataError` for a formula with another number of variables
    than its table.
    """
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
    error = total = 0.0
    with progress("fitting the prior", STEPS) as bar:
        for step in range(STEPS):
            formulas = source.training(settings.seed, step * _FORMULAS, _FORMULAS)
            tables = [prior.of(cnf) for cnf in formulas]
            wanted = torch.from_numpy(np.concatenate([table - table.mean() for table in tables]))
            graph = batch([adjacency(cnf) for cnf in formulas])
            _, mu = network(graph)
            loss = ((centred(mu, graph) - wanted) ** 2).mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            for group in optimizer.param_groups:
                group["lr"] = RATE * 0.5 * (1 + math.cos(math.pi * step / STEPS))
            optimizer.step()
            if step >= STEPS - _LAST:
                error += float(loss.detach())
                total += float(wanted.square().mean())
            bar.advance()
    explained = 1 - error / max(total, 1e-12)
    logger.info("the network explains %.1f %% of the prior's variance", 100 * explained)
    return explained

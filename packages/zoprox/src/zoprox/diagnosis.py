"""What `diag` says of draws: mean, spread, effective sample size, R-hat, distance to a reference.

ESS, R-hat and MCSE are arviz's (Vehtari et al. 2021). A chain is a particle over its rounds. In a
round of `ensemble` particles are drawn from one mixture, so they are not quite independent;
several runs with other seeds, given together, show what that hides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papercuts.errors import DataError, UsageError
from papercuts.log import get_logger
from zoprox.distances import Sample, knn_kl, mmd2, sliced_w2, thinned
from zoprox.draws import Draws, read_draws

_ARVIZ: Any = import_module("arviz_stats.base").array_stats  # has no types
ALL = "all"  # the record of all parameters together
_FEWEST = 4  # draws that a chain must have for a split R-hat
_MOST = 5000  # draws on either side that the distances look at
_NEIGHBOURS = 4


def diagnose(
    paths: Sequence[str], reference: str | None = None, *, seed: int = 0
) -> Iterator[dict[str, Any]]:
    """Give a record for each parameter of the draws in `paths`, and one for all together.

    Files are runs of one target: their particles are pooled as chains. `seed` is for the
    directions of the sliced distance and for the parting of the reference. Raises as `read_draws`,
    `DataError` for runs or a reference of other parameters, and `UsageError` where stdin is to be
    read twice.
    """
    if [*paths, reference].count("-") > 1:
        raise UsageError("stdin can be only one of the files")
    runs = [read_draws(path) for path in paths]
    for path, run in zip(paths[1:], runs[1:], strict=True):
        if run.names != runs[0].names:
            raise DataError(
                f"the parameters are {_listed(run.names)}",
                path=path,
                expected=f"{_listed(runs[0].names)}, as in {paths[0]}",
            )
    against = None if reference is None else _matched(read_draws(reference), runs[0], reference)
    yield from records(runs, against, seed=seed)


def records(
    runs: Sequence[Draws], reference: Sample | None = None, *, seed: int = 0
) -> Iterator[dict[str, Any]]:
    """Give the records of runs with equal parameters; `reference` [draws, dim] is compared with.

    Each record has the same keys; what cannot be told is None. `r_hat` compares particles over
    their rounds, `r_hat_rounds` the rounds with one another (it sees a drift), `r_hat_runs` the
    runs. With fewer than four rounds the draws of a run are one chain.

    Against a reference: `mean_error` (in standard deviations of the reference), `sd_error`
    (relative), and the distances, for which every parameter is divided by its standard deviation
    in the reference: `kl`, `sliced_w2`, `mmd2`, and under `_floor` the same for independent draws
    of the reference itself, as many as there are (at most half of it).
    """
    names = runs[0].names
    pooled = np.concatenate([run.pooled() for run in runs])
    chains = _chains(runs)
    shared = {"draws": len(pooled), "chains": len(chains), "runs": len(runs)}
    compared = None if reference is None else _Compared(pooled, reference, seed)
    found: list[dict[str, Any]] = []
    for index, name in enumerate(names):
        record: dict[str, Any] = {
            "parameter": name,
            **shared,
            "mean": float(pooled[:, index].mean()),
            "sd": float(pooled[:, index].std(ddof=1)) if len(pooled) > 1 else None,
            **_convergence(chains[:, :, index], [run.points[:, :, index] for run in runs]),
        }
        if compared is not None:
            record |= compared.of(index)
        found.append(record)
        yield record
    total: dict[str, Any] = dict.fromkeys(found[0]) | {"parameter": ALL, **shared}
    for key in ("ess_bulk", "ess_tail"):
        total[key] = min(_known(found, key), default=None)
    for key in ("r_hat", "r_hat_rounds", "r_hat_runs"):
        total[key] = max(_known(found, key), default=None)
    if compared is not None:
        total |= compared.of_all()
    yield total


def _chains(runs: Sequence[Draws]) -> NDArray[np.float64]:
    """Give all chains [chains, draws, dim], cut to the last rounds that all runs have."""
    rounds = min(len(run.points) for run in runs)
    if rounds >= _FEWEST:
        if any(len(run.points) > rounds for run in runs):
            get_logger(__name__).warning(
                f"the runs differ in length: ESS and R-hat are of the last {rounds} rounds of each"
            )
        return np.concatenate([run.points[-rounds:].swapaxes(0, 1) for run in runs])
    draws = min(len(run.pooled()) for run in runs)
    return np.stack([run.pooled()[-draws:] for run in runs])


def _convergence(
    chains: NDArray[np.float64], runs: Sequence[NDArray[np.float64]]
) -> dict[str, float | None]:
    """Give ESS, MCSE and R-hat of one parameter: `chains` [chains, draws], runs [rounds, N]."""
    width = min(run.shape[1] for run in runs)
    rounds = np.concatenate([run[:, :width] for run in runs])
    draws = min(run.size for run in runs)
    pooled = np.stack([run.reshape(-1)[-draws:] for run in runs])
    enough = chains.shape[1] >= _FEWEST and np.ptp(chains) > 0
    return {
        "ess_bulk": _number(_ARVIZ.ess(chains, method="bulk")) if enough else None,
        "ess_tail": _number(_ARVIZ.ess(chains, method="tail", prob=(0.05, 0.95)))
        if enough
        else None,
        "mcse_mean": _number(_ARVIZ.mcse(chains, method="mean")) if enough else None,
        "r_hat": _r_hat(chains),
        "r_hat_rounds": _r_hat(rounds) if len(rounds) > 1 else None,
        "r_hat_runs": _r_hat(pooled) if len(pooled) > 1 else None,
    }


def _r_hat(chains: NDArray[np.float64]) -> float | None:
    if chains.shape[1] < _FEWEST or np.ptp(chains) == 0:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):  # chains that all stand still: infinity
        return _number(_ARVIZ.rhat(chains, method="rank"))


class _Compared:
    """Draws beside a reference, both [draws, dim] in standard deviations of the reference."""

    def __init__(self, draws: Sample, reference: Sample, seed: int) -> None:
        self._seed = seed
        self._sd = reference.std(axis=0, ddof=1) if len(reference) > 1 else np.zeros(1)
        if not (self._sd > 0).all():
            raise DataError("a parameter of the reference never changes")
        self._means = (draws.mean(axis=0) - reference.mean(axis=0)) / self._sd
        self._sds = draws.std(axis=0, ddof=min(1, len(draws) - 1)) / self._sd - 1
        self._draws = thinned(draws, _MOST) / self._sd
        self._reference = thinned(reference, _MOST) / self._sd
        mixed = np.random.default_rng(seed).permutation(self._reference)
        size = min(len(self._draws), len(mixed) // 2)
        self._floor = mixed[:size], mixed[size:]

    def of(self, index: int) -> dict[str, float | None]:
        """Compare one parameter."""
        errors = {"mean_error": float(self._means[index]), "sd_error": float(self._sds[index])}
        return errors | self._distances(slice(index, index + 1))

    def of_all(self) -> dict[str, float | None]:
        """Compare all parameters together; the errors are the largest."""
        errors = {
            "mean_error": float(self._means[np.abs(self._means).argmax()]),
            "sd_error": float(self._sds[np.abs(self._sds).argmax()]),
        }
        return errors | self._distances(slice(None))

    def _distances(self, columns: slice) -> dict[str, float | None]:
        measured: dict[str, float | None] = {}
        sides = (self._draws, self._reference), self._floor
        for end, (first, second) in zip(("", "_floor"), sides, strict=True):
            a, b = first[:, columns], second[:, columns]
            few = min(len(a), len(b)) <= _NEIGHBOURS
            measured[f"kl{end}"] = None if few else _number(knn_kl(a, b, _NEIGHBOURS))
            measured[f"sliced_w2{end}"] = None if few else sliced_w2(a, b, seed=self._seed)
            measured[f"mmd2{end}"] = None if few else mmd2(a, b)
        return measured


def _matched(reference: Draws, draws: Draws, path: str) -> Sample:
    """Give the reference's draws [draws, dim] with the parameters in the order of `draws`.

    By name where the reference has all names; else by place where there are equally many.
    """
    table = reference.pooled()
    if set(draws.names) <= set(reference.names):
        return table[:, [reference.names.index(name) for name in draws.names]]
    if reference.dim != draws.dim:
        raise DataError(
            f"the parameters are {_listed(reference.names)}",
            path=path,
            expected=f"{draws.dim}: {_listed(draws.names)}",
        )
    get_logger(__name__).info(
        f"{path}: its parameters, {_listed(reference.names)}, are taken in order for "
        f"{_listed(draws.names)}"
    )
    return table


def _number(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


def _known(found: Sequence[dict[str, Any]], key: str) -> list[float]:
    return [record[key] for record in found if record[key] is not None]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")

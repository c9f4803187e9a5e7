"""Five posteriors of stan-dev/posteriordb, their log densities rewritten in NumPy.

Data and reference draws are read from the folder `posteriors` of `$PAPERCUTS_DATA`: the files
`data/NAME.json.zip` and `reference_posteriors/draws/draws/NAME.json.zip` of that repository, named
`NAME.data.json.zip` and `NAME.draws.json.zip`. The numbers of eight schools stand here.

A posterior is sampled in coordinates without bounds, near a standard Gaussian where a plain fit
can bring it there: a linear regression y ~ N(X b, sigma^2) is written around its least squares
fit, b = b0 + s R^-1 u with X = Q R, and log sigma = log s + u / sqrt(2 n). `raw` leaves the
coordinates as they are, with log sigma.
"""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FILES = {
    "eight_schools": ("eight_schools", "eight_schools-eight_schools_noncentered"),
    "arK": ("arK", "arK-arK"),
    "gp_regr": ("gp_pois_regr", "gp_pois_regr-gp_regr"),
    "kidscore_momiq": ("kidiq", "kidiq-kidscore_momiq"),
    "blr": ("sblri", "sblri-blr"),
}
EFFECTS = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])  # of coaching in eight schools (Rubin 1981)
ERRORS = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])  # their standard errors


@dataclass(frozen=True)
class Posterior:
    """A posterior in `dim` coordinates without bounds.

    `potential` gives -log density (with the Jacobian) at points [n, dim]; `parameters` maps them
    to the model's own parameters [n, len(names)], and `free` maps these back.
    """

    name: str
    dim: int
    potential: Callable[[Array], Array]
    parameters: Callable[[Array], Array]
    free: Callable[[Array], Array]
    names: tuple[str, ...]


def folder() -> Path | None:
    """Give the folder of data and draws, None where there is none."""
    found = Path(os.environ.get("PAPERCUTS_DATA", "../shared/data")) / "posteriors"
    return found if found.is_dir() else None


def reference(posterior: Posterior) -> Array:
    """Give posteriordb's reference draws, [draws, len(names)], ten chains one after another."""
    chains = _read(f"{FILES[posterior.name][1]}.draws.json.zip")
    return np.array(
        [np.concatenate([chain[name] for chain in chains]) for name in posterior.names]
    ).T


def posterior(name: str, *, raw: bool = False) -> Posterior:
    """Give one of the five by its name."""
    if name == "eight_schools":
        return eight_schools()
    data = _read(f"{FILES[name][0]}.data.json.zip")
    if name == "gp_regr":
        return gp_regr(np.array(data["x"], float), np.array(data["y"], float))
    if name == "arK":
        y, lags = np.array(data["y"], float), data["K"]
        columns = [np.ones(len(y) - lags)]
        columns += [y[lags - k : len(y) - k] for k in range(1, lags + 1)]
        names = ("alpha", *(f"beta[{k}]" for k in range(1, lags + 1)), "sigma")
        model = _Regression(np.array(columns).T, y[lags:], 10.0, _log_cauchy)
    elif name == "kidscore_momiq":
        x, y = np.array(data["mom_iq"], float), np.array(data["kid_score"], float)
        names = ("beta[1]", "beta[2]", "sigma")
        model = _Regression(np.stack([np.ones_like(x), x], axis=1), y, math.inf, _log_cauchy)
    else:
        matrix = np.array(data["X"], float)
        names = (*(f"beta[{k}]" for k in range(1, data["D"] + 1)), "sigma")
        model = _Regression(matrix, np.array(data["y"], float), 10.0, _log_normal_10)
    return model.posterior(name, names, raw=raw)


def eight_schools() -> Posterior:
    """theta_j = mu + tau eta_j; y_j ~ N(theta_j, s_j); mu ~ N(0, 5), tau ~ half-Cauchy(5).

    Coordinates: the eight eta, mu / 5, log tau.
    """

    def parameters(points: Array) -> Array:
        mu, tau = 5 * points[:, 8:9], np.exp(points[:, 9:])
        return np.concatenate([mu + tau * points[:, :8], mu, tau], axis=1)

    def free(values: Array) -> Array:
        mu, tau = values[:, 8:9], values[:, 9:]
        return np.concatenate([(values[:, :8] - mu) / tau, mu / 5, np.log(tau)], axis=1)

    def potential(points: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            tau = np.exp(points[:, 9])
            gaps = (5 * points[:, 8:9] + tau[:, None] * points[:, :8] - EFFECTS) / ERRORS
            f = 0.5 * (gaps**2).sum(axis=1) + 0.5 * (points[:, :9] ** 2).sum(axis=1)
            f += np.log1p((tau / 5) ** 2) - points[:, 9]
        return np.where(np.isnan(f), np.inf, f)

    names = (*(f"theta[{j}]" for j in range(1, 9)), "mu", "tau")
    return Posterior("eight_schools", 10, potential, parameters, free, names)


def gp_regr(x: Array, y: Array) -> Posterior:
    """Gaussian process, squared-exponential kernel; sigma is the noise's variance, as there.

    rho ~ Gamma(25, 4), alpha ~ half-N(0, 2), sigma ~ half-N(0, 1); coordinates are their logs.
    """
    squares = (x[:, None] - x) ** 2
    eye = np.eye(len(x))

    def potential(points: Array) -> Array:
        f = np.full(len(points), np.inf)
        # Beyond these the density is 0 to machine precision, and the matrix singular.
        usable = np.flatnonzero((np.abs(points) < 7).all(axis=1))
        rho, alpha, sigma = np.exp(points[usable]).T
        exponents = -0.5 * squares / (rho * rho)[:, None, None]
        covariance = (alpha * alpha)[:, None, None] * np.exp(exponents)
        covariance += sigma[:, None, None] * eye
        root = np.linalg.cholesky(covariance)
        white = np.linalg.solve(root, np.broadcast_to(y[:, None], (*root.shape[:2], 1)))[..., 0]
        logs = -0.5 * (white**2).sum(axis=1)
        logs -= np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        logs += 24 * np.log(rho) - 4 * rho - 0.5 * (alpha / 2) ** 2 - 0.5 * sigma**2
        f[usable] = -logs - points[usable].sum(axis=1)
        return f

    return Posterior("gp_regr", 3, potential, np.exp, np.log, ("rho", "alpha", "sigma"))


def _log_cauchy(sigma: Array) -> Array:
    return -np.log1p((sigma / 2.5) ** 2)


def _log_normal_10(sigma: Array) -> Array:
    return -0.5 * (sigma / 10) ** 2


@dataclass(frozen=True)
class _Regression:
    """y ~ N(X b, sigma^2), b ~ N(0, `width`), log prior of sigma up to a constant."""

    matrix: Array
    y: Array
    width: float
    log_prior: Callable[[Array], Array]

    def posterior(self, name: str, names: tuple[str, ...], *, raw: bool) -> Posterior:
        count, columns = self.matrix.shape
        ortho, upper = np.linalg.qr(self.matrix)
        fit = np.linalg.solve(upper, ortho.T @ self.y)
        # Residuals are orthogonal to the columns: sum (y - X b)^2 = rest + |R (b - fit)|^2.
        rest = float(((self.y - self.matrix @ fit) ** 2).sum())
        s = math.sqrt(rest / (count - columns))
        scale = s * np.linalg.inv(upper).T

        def parameters(points: Array) -> Array:
            logs = points[:, columns:]
            if raw:
                return np.concatenate([points[:, :columns], np.exp(logs)], axis=1)
            b = fit + points[:, :columns] @ scale
            return np.concatenate([b, s * np.exp(logs / math.sqrt(2 * count))], axis=1)

        def free(values: Array) -> Array:
            b, logs = values[:, :columns], np.log(values[:, columns:])
            if raw:
                return np.concatenate([b, logs], axis=1)
            places = (b - fit) @ upper.T / s
            return np.concatenate([places, (logs - math.log(s)) * math.sqrt(2 * count)], axis=1)

        def potential(points: Array) -> Array:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                found = parameters(points)
                b, sigma = found[:, :columns], found[:, columns]
                squares = rest + (((b - fit) @ upper.T) ** 2).sum(axis=1)
                logs = -count * np.log(sigma) - 0.5 * squares / sigma**2
                logs += self.log_prior(sigma) - 0.5 * ((b / self.width) ** 2).sum(axis=1)
                f = -logs - np.log(sigma)  # the Jacobian of log sigma
            return np.where(np.isfinite(f), f, np.inf)

        return Posterior(name, columns + 1, potential, parameters, free, names)


def _read(name: str) -> Any:
    here = folder()
    if here is None:
        raise FileNotFoundError("set PAPERCUTS_DATA to the folder that has posteriors/")
    with zipfile.ZipFile(here / name) as archive:
        return json.loads(archive.read(archive.namelist()[0]))

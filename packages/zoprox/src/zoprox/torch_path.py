"""The same rounds in torch, for a target that is a torch function: batches on a GPU.

The arithmetic is that of `sampler`, step by step; the random numbers are torch's, so a run agrees
with NumPy's in law, not number by number (given NumPy's numbers it does, and a test gives it them).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
import torch

from papercuts.errors import DataError, UsageError
from papercuts.parallel import seed_for
from zoprox.potential import Points
from zoprox.sampler import Round
from zoprox.settings import Settings

TorchFunction = Callable[[torch.Tensor], torch.Tensor]  # [points, dim] to f [points]

_BLOCK = 1 << 22  # points asked for at once


class Noise(Protocol):
    """Where a round's random numbers come from."""

    def normal(self, *shape: int) -> torch.Tensor:
        """Give standard normal numbers."""

    def components(self, probabilities: torch.Tensor, draws: int) -> torch.Tensor:
        """Give `draws` indices for each row of `probabilities` [rows, components]."""


class TorchNoise:
    """Random numbers of one round from a generator on the device."""

    def __init__(self, seed: int, number: int, device: torch.device, dtype: torch.dtype) -> None:
        self._generator = torch.Generator(device)
        self._generator.manual_seed(seed_for(seed, number))
        self._device = device
        self._dtype = dtype

    def normal(self, *shape: int) -> torch.Tensor:
        """Give standard normal numbers."""
        return torch.randn(shape, generator=self._generator, device=self._device, dtype=self._dtype)

    def components(self, probabilities: torch.Tensor, draws: int) -> torch.Tensor:
        """Give `draws` indices for each row of `probabilities` [rows, components]."""
        return torch.multinomial(probabilities, draws, replacement=True, generator=self._generator)


def sample_rounds_torch(
    function: TorchFunction,
    settings: Settings,
    start: Points,
    *,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float64,
    first: int = 1,
) -> Iterator[Round]:
    """Yield rounds `first` to K on `device`; see `sampler.sample_rounds`.

    Raises `UsageError` for the rejection method, which has no torch path, and `DataError` for a
    target that answers wrongly.
    """
    if settings.method == "rejection":
        raise UsageError("--method rejection runs in NumPy only: leave out --device")
    if start.shape != (settings.particles, settings.dim):
        raise ValueError(
            f"the start has shape {start.shape}, not {(settings.particles, settings.dim)}"
        )
    place = torch.device(device)
    points = torch.tensor(start, device=place, dtype=dtype)
    with torch.inference_mode():
        for number in range(first, settings.rounds + 1):
            began = time.perf_counter()
            noise = TorchNoise(settings.seed, number, place, dtype)
            points, ess, value, outside = torch_round(function, settings, points, noise)
            asked = settings.sub_steps * settings.particles * settings.draws
            yield Round(
                number=number,
                points=points.cpu().numpy().astype(np.float64),
                values_mean=value,
                min_ess=float(ess.min()),
                median_ess=float(np.median(ess.cpu().numpy())),
                outside=outside / asked,
                evaluations=asked,
                seconds=time.perf_counter() - began,
            )


def torch_round(
    function: TorchFunction, settings: Settings, particles: torch.Tensor, noise: Noise
) -> tuple[torch.Tensor, torch.Tensor, float, int]:
    """Noise and denoise once: new particles [N, dim], ESS [T, N], mean f, values not finite."""
    step, sub_steps, draws = settings.step, settings.sub_steps, settings.draws
    count, dim = particles.shape
    scale = math.sqrt(step)
    noised = particles + scale * noise.normal(count, dim)
    logs = None if settings.method == "single" else -_log_mixture(noised, particles, step)
    places = particles + scale * noise.normal(count, dim)
    variances = np.linspace(settings.smallest, step, sub_steps + 1)
    ess = torch.empty((sub_steps, count), device=particles.device, dtype=particles.dtype)
    outside = torch.zeros((), device=particles.device, dtype=torch.int64)
    values = torch.empty(count, device=particles.device, dtype=particles.dtype)
    for index, t in enumerate(range(sub_steps, 0, -1)):
        s, drop = float(variances[t]), float(variances[t] - variances[t - 1])
        variance = 1 / (1 / s + 1 / step)
        towards = noised * (variance / step)
        chosen = None
        if logs is not None:
            shares = torch.softmax(logs - _squares(places, noised) / (2 * (step + s)), dim=1)
            chosen = noise.components(shares, draws)
        means = torch.empty_like(places)
        rows = max(1, _BLOCK // draws)
        for first in range(0, count, rows):
            part = slice(first, min(first + rows, count))
            size = part.stop - part.start
            points = noise.normal(size * draws, dim).view(size, draws, dim)
            points *= math.sqrt(variance)
            points += towards[part, None, :] if chosen is None else towards[chosen[part]]
            points += (places[part] * (variance / s))[:, None, :]
            f = _checked(function(points.view(-1, dim)), size * draws).view(size, draws)
            low = f.min(dim=1).values
            allowed = torch.isfinite(low)
            weights = torch.exp(torch.where(allowed, low, 0.0)[:, None] - f)
            total = torch.where(allowed, weights.sum(dim=1), 1.0)
            means[part] = torch.bmm(weights[:, None, :], points)[:, 0, :] / total[:, None]
            ess[index, part] = torch.where(allowed, total**2 / (weights**2).sum(dim=1), 0.0)
            finite = torch.isfinite(f)
            outside += f.numel() - finite.sum()
            values[part] = (weights * torch.where(finite, f, 0.0)).sum(dim=1) / total
        moved = places + (drop / s) * (means - places) + math.sqrt(drop) * noise.normal(count, dim)
        places = torch.where(ess[index, :, None] > 0, moved, places)
    arrived = ess[-1] > 0
    found = torch.where(arrived[:, None], places, particles)
    value = float(values[arrived].mean()) if bool(arrived.any()) else math.nan
    return found, ess, value, int(outside)


def _squares(places: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
    # Differences, not the expanded square, which loses digits far from the origin.
    return torch.cdist(places, centres, compute_mode="donot_use_mm_for_euclid_dist").square()


def _log_mixture(points: torch.Tensor, centres: torch.Tensor, variance: float) -> torch.Tensor:
    """Give log q at every point, less a constant that no weight sees."""
    return torch.logsumexp(_squares(points, centres) / (-2 * variance), dim=1)


def _checked(f: torch.Tensor, count: int) -> torch.Tensor:
    """Turn NaN into +inf; see `sampler.checked_values`."""
    if f.shape != (count,):
        raise DataError(
            f"the target answered with shape {tuple(f.shape)} to {count} points",
            expected=f"({count},), one value a point",
        )
    bad = torch.isnan(f)
    wrong = torch.isneginf(f).any()
    # One look at the device for both.
    everything, minus = torch.stack([bad.all(), wrong]).tolist()
    if everything:
        raise DataError(f"the target answered NaN at all of {count} points")
    if minus:
        raise DataError("the target answered f = -inf", expected="a number or +inf")
    return torch.where(bad, math.inf, f)

"""A target that is a torch function, as the torch path of the sampler asks for it."""

from __future__ import annotations

import math
from typing import Any

import torch

from papercuts.errors import DataError
from zoprox.bounds import Box
from zoprox.python_target import as_users, load_function, split_spec, tensor_place
from zoprox.targets import Target


class TorchTarget:
    """The function of `target` on its device: [n, dim] tensors to f [n], +inf or finite.

    With a `box` its points are free coordinates, and f has the Jacobian of the change of variables,
    as in `zoprox.bounds`; a membership test takes the box as a part of the set. Called with points
    of any device and type; `device` and `dtype` are those that the user asked for.
    """

    def __init__(self, target: Target, box: Box | None = None) -> None:
        assert target.target is not None  # noqa: S101 (settled by the command)
        self._path, name = split_spec(target.target)
        self._function = load_function(self._path, name)
        self._target = target
        self.device, self.dtype = tensor_place(target.device or "auto", target.dtype)
        self._box = None if box is None else _TorchBox(box, self.device, self.dtype)

    def __call__(self, points: torch.Tensor) -> torch.Tensor:
        """Give f of every row. Raises `DataError` for what the function raises, with its line."""
        if self._box is None:
            return self._values(points)
        if not self._target.inside:
            values = self._values(self._box.from_free(points))
            return values - self._box.log_jacobian(points)
        within = self._box.holds(points)
        values = torch.full((len(points),), math.inf, device=points.device, dtype=points.dtype)
        if bool(within.any()):
            values[within] = self._values(points[within])
        return values

    def _values(self, points: torch.Tensor) -> torch.Tensor:
        with as_users(self._path):
            answer = self._function(points)
        if not isinstance(answer, torch.Tensor) or answer.numel() != len(points):
            shape = tuple(answer.shape) if isinstance(answer, torch.Tensor) else type(answer)
            raise DataError(
                f"{self._target.target}: {shape} for {len(points)} points",
                expected="a tensor with one value for each row",
            )
        answer = answer.reshape(-1)
        if not self._target.inside:
            return -answer if self._target.log_density else answer
        yes = answer == 1
        if bool((~yes & (answer != 0)).any()):
            raise DataError(
                f"{self._target.target}: an answer that is neither",
                expected="1 or 0, true or false",
            )
        return torch.where(yes, 0.0, math.inf).to(points.dtype)


class _TorchBox:
    """`zoprox.bounds.Box` on a device."""

    def __init__(self, box: Box, device: Any, dtype: Any) -> None:
        self._low, self._high = (
            torch.tensor(side, device=device, dtype=dtype) for side in (box.low, box.high)
        )
        below, above = torch.isfinite(self._low), torch.isfinite(self._high)
        self._two, self._over, self._under = below & above, below & ~above, ~below & above

    def holds(self, points: torch.Tensor) -> torch.Tensor:
        return ((points >= self._low) & (points <= self._high)).all(dim=1)

    def from_free(self, free: torch.Tensor) -> torch.Tensor:
        width = self._high - self._low
        points = torch.where(self._two, self._low + width * torch.sigmoid(free), free)
        points = torch.where(self._over, self._low + free.exp(), points)
        points = torch.where(self._under, self._high - free.exp(), points)
        return points.clamp(self._low, self._high)

    def log_jacobian(self, free: torch.Tensor) -> torch.Tensor:
        softplus = torch.nn.functional.softplus
        slopes = (self._high - self._low).log() - softplus(-free) - softplus(free)
        slopes = torch.where(self._two, slopes, torch.where(self._over | self._under, free, 0.0))
        return slopes.sum(dim=1)

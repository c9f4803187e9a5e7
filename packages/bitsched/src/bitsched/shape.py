"""Which tiles an attention backward pass computes: heads, KV tiles, Q tiles, and a mask."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Mask = Literal["full", "causal", "window", "blocks"]


@dataclass(frozen=True, eq=False)
class Shape:
    """`heads` query heads, each with a grid of KV tiles by Q tiles.

    `active` [n_kv, n_q] bool says which tiles the mask leaves; it is the same for every head.
    `group` query heads share one KV head (grouped queries): the dK and dV of a KV tile then sum
    over the group, in the same chain. Raises `ValueError` for a shape that is not one.
    """

    heads: int
    active: NDArray[np.bool_]
    group: int = 1
    mask: Mask = "full"
    about: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.heads < 1 or self.active.ndim != 2 or self.active.size == 0:
            raise ValueError("a shape needs at least one head, one KV tile and one Q tile")
        if self.group < 1 or self.heads % self.group:
            raise ValueError(f"{self.heads} heads are not groups of {self.group}")

    @property
    def n_kv(self) -> int:
        """The number of KV tiles."""
        return int(self.active.shape[0])

    @property
    def n_q(self) -> int:
        """The number of Q tiles."""
        return int(self.active.shape[1])

    @property
    def tasks(self) -> int:
        """The number of tiles of all heads."""
        return self.heads * int(self.active.sum())


def full(n_kv: int, n_q: int) -> NDArray[np.bool_]:
    """Leave every tile."""
    return np.ones((n_kv, n_q), dtype=bool)


def causal(n_kv: int, n_q: int, stride: int = 1) -> NDArray[np.bool_]:
    """Leave tile (i, j) where some query of Q tile j sees some key of KV tile i.

    A KV tile is `stride` Q tiles wide (block_n = stride * block_m): j // stride >= i.
    """
    return np.arange(n_q)[None, :] // stride >= np.arange(n_kv)[:, None]

"""Exploration noise that goes along the network's own features, instead of variable by variable.

The paper draws log w independently for every variable. Where k variables play one role (the same
gate of a cipher, step after step), the effect of that role's weight is then spread over k small
independent kicks, and a sample tells 1/k as much about it. Here the noise of the variables of a
formula has the correlation

    R = (1 - s) I + s B B',   B the whitened features of the variables, scaled to rows of length 1,

so variables that look alike to the network move together (the idea of latent exploration: Chiappa
et al., NeurIPS 2023). Each log w alone still has the policy's sigma, and s = 0 is the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

_RIDGE = 1e-3  # of the largest variance: a feature direction that hardly varies is no direction


@dataclass(frozen=True, eq=False)
class Latent:
    """The correlation of the noise in each of several formulas, side by side.

    `directions` holds B, [variables of the formula, features], `factors` the Cholesky factor of
    (1 - s)/s I + B'B, [features, features].
    """

    share: float
    directions: Sequence[Tensor]
    factors: Sequence[Tensor]

    @classmethod
    def of(cls, features: Tensor, starts: Sequence[int], share: float) -> Latent:
        """Build it from features [variables, f]; formula i has the rows starts[i]:starts[i + 1].

        `share` is s, between 0 and 1, both excluded.
        """
        if not 0 < share < 1:
            raise ValueError(f"the share must lie between 0 and 1, not be {share}")
        pieces = [features[a:b] for a, b in pairwise(starts)]
        directions = [_whitened(piece) for piece in pieces]
        eye = torch.eye(features.shape[1])
        inner = [(1 - share) / share * eye + b.T @ b for b in directions]
        return cls(share, directions, [torch.linalg.cholesky(matrix) for matrix in inner])

    def part(self, formulas: Sequence[int]) -> Latent:
        """Keep some of the formulas."""
        chosen = list(formulas)
        return Latent(
            self.share, [self.directions[i] for i in chosen], [self.factors[i] for i in chosen]
        )

    def draw(self, samples: int, generator: torch.Generator) -> Tensor:
        """Draw noise [samples, variables] with this correlation, of variance 1.

        A variable whose features are the mean of its formula's has only its own part, 1 - s.
        """
        parts = []
        for b in self.directions:
            own = torch.randn(samples, b.shape[0], generator=generator)
            shared = torch.randn(samples, b.shape[1], generator=generator)
            parts.append((1 - self.share) ** 0.5 * own + self.share**0.5 * shared @ b.T)
        return torch.cat(parts, dim=1)

    def solve(self, values: Tensor) -> Tensor:
        """Apply the inverse of R: [..., variables] to the same shape (Woodbury's identity)."""
        sizes = [b.shape[0] for b in self.directions]
        parts = []
        pieces = torch.split(values, sizes, dim=-1)
        for piece, b, factor in zip(pieces, self.directions, self.factors, strict=True):
            inner = torch.cholesky_solve((piece @ b).reshape(-1, b.shape[1]).T, factor).T
            parts.append((piece - (inner @ b.T).reshape(piece.shape)) / (1 - self.share))
        return torch.cat(parts, dim=-1)


def _whitened(features: Tensor) -> Tensor:
    """Centre features [variables, f], give every direction the same variance, every row length 1.

    A row that is the mean of all, which no direction moves, becomes zero.
    """
    # In fp64: in fp32 LAPACK may fail on features that lie near a plane.
    centred = features.double() - features.double().mean(0)
    values, vectors = torch.linalg.eigh(centred.T @ centred / max(1, len(features)))
    scale = (values.clamp(min=0) + _RIDGE * values[-1].clamp(min=1e-12)).rsqrt()
    spread = centred @ (vectors * scale)
    lengths = torch.linalg.vector_norm(spread, dim=1, keepdim=True)
    unit: Tensor = spread / lengths.clamp(min=1e-6)
    return unit.to(features.dtype)

"""How to sample: the numbers of the method (paper, Algorithm 1), checked once."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

Method = Literal["ensemble", "single", "rejection"]
METHODS: tuple[Method, ...] = ("ensemble", "single", "rejection")


@dataclass(frozen=True)
class Settings:
    """One run, in the paper's symbols.

    `particles` N, `dim` d, `step` h (variance of a round's noise), `sub_steps` T, `draws` M (Monte
    Carlo draws a particle and sub-step), `rounds` K. `smallest` is beta_min, where the variance
    grid of the reverse path ends. `method`: `ensemble` is the paper's; in `single` every particle
    is denoised towards its own noised place only (proximal sampling chain by chain); `rejection` is
    proximal sampling with exact rejection, for potentials that are nowhere below 0. Raises
    `ValueError` for what cannot be.
    """

    particles: int
    dim: int
    step: float
    sub_steps: int = 10
    draws: int = 2000
    rounds: int = 100
    smallest: float = 0.0
    seed: int = 0
    method: Method = "ensemble"

    def __post_init__(self) -> None:
        for name in ("particles", "dim", "sub_steps", "draws"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.rounds < 0:
            raise ValueError(f"rounds must not be negative, as {self.rounds} is")
        if not (math.isfinite(self.step) and self.step > 0):
            raise ValueError(f"the step h must be a positive number, not {self.step}")
        if not 0 <= self.smallest < self.step:
            raise ValueError(
                f"beta_min must lie in [0, h), not be {self.smallest} with h = {self.step}"
            )
        if self.method not in METHODS:
            raise ValueError(f"no method {self.method!r} (expected {', '.join(METHODS)})")

    @property
    def evaluations(self) -> int:
        """K T N M: the values of f that the rounds of `ensemble` and `single` ask for."""
        return self.rounds * self.sub_steps * self.particles * self.draws

    def as_dict(self) -> dict[str, Any]:
        """Give the fields by name."""
        return asdict(self)

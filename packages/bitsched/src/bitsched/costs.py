"""What the model charges: computing a tile, adding its share to dQ, and telling another SM."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from papercuts.errors import UsageError

Ints = NDArray[np.int32]
MOST = 1e12  # sums of so many are still far from what a double holds
FOLDED = ("sym",)  # the schedules whose kernel keeps two KV tiles' state, and so more registers


@dataclass(frozen=True)
class Costs:
    """Costs in any one unit of time (sheet items 2 and 11).

    `compute` is c, `reduce` is r. `latency_local` and `latency_remote` pass between the end of
    one SM's addition and the start of the next one's by another SM, of the same or of another L2
    partition; SMs are dealt to `partitions` equal runs of neighbours. `register_penalty` is added
    to the compute time of each tile of a folded schedule, `join_latency` to the first tile of
    each chain that has to wait its turn in a sum (it passes while the turn is waited for). Raises
    `ValueError` for a cost that is negative or not finite, and when c + r is 0.
    """

    compute: float = 5.0
    reduce: float = 1.0
    latency_local: float = 0.0
    latency_remote: float = 0.0
    partitions: int = 2
    register_penalty: float = 0.0
    join_latency: float = 0.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 <= value <= MOST:
                raise ValueError(f"{name} is {value}: it must be 0 to {MOST:g}")
        if self.compute + self.reduce <= 0:
            raise ValueError("compute and reduce are both 0")
        if not 1 <= self.partitions <= 1024:
            raise ValueError(f"{self.partitions} partitions: there are 1 to 1024")

    def partition(self, processors: int) -> Ints:
        """Give the L2 partition of each processor: [processors]."""
        index = np.arange(processors, dtype=np.int64)
        return (index * self.partitions // max(processors, 1)).astype(np.int32)

    def tile(self, schedule: object) -> float:
        """Give the compute time of one tile under a schedule."""
        return self.compute + (self.register_penalty if schedule in FOLDED else 0.0)

    def named(self) -> dict[str, float]:
        """Give the costs that a plan was made for, by name: those that are not 0, and c and r."""
        always = ("compute", "reduce")
        return {name: value for name, value in vars(self).items() if value or name in always}


def make_costs(
    compute: float = 5.0,
    reduce: float = 1.0,
    latency: str | None = None,
    partitions: int = 2,
    register_penalty: float = 0.0,
    join_latency: float = 0.0,
) -> Costs:
    """Make costs from the words of the command line; `latency` is LOCAL or LOCAL,REMOTE.

    Raises `UsageError` for what is no cost.
    """
    local = remote = 0.0
    if latency is not None:
        try:
            parts = [float(part) for part in latency.split(",")]
            local, remote = parts[0], parts[-1]
        except ValueError:
            parts = []
        if len(parts) not in (1, 2):
            raise UsageError(f"--latency {latency!r} is not LOCAL or LOCAL,REMOTE")
    try:
        return Costs(compute, reduce, local, remote, partitions, register_penalty, join_latency)
    except ValueError as error:
        raise UsageError(str(error)) from None

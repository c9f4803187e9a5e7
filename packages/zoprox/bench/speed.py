"""Time a round against bare NumPy arithmetic of the same shapes, and the torch path where it runs.

    python packages/zoprox/bench/speed.py [REPEATS]

Goal: at most 1.3 times the bare arithmetic at N = 100, T = 10, M = 2000, d = 5. About a minute with
the default of 9 repeats. Prints JSON Lines.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np

from zoprox.benchmarks import benchmark
from zoprox.settings import Settings
from zoprox.speed import SHAPES, measure


def on_torch(repeats: int) -> list[dict[str, object]]:
    import torch

    from zoprox.torch_path import sample_rounds_torch

    def half_square(points: torch.Tensor) -> torch.Tensor:
        return 0.5 * (points * points).sum(dim=1)

    found: list[dict[str, object]] = []
    for device in ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]:
        for dtype in (torch.float64, torch.float32):
            for particles, sub_steps, draws, dim in SHAPES[:3]:
                settings = Settings(particles, dim, 0.1, sub_steps, draws, repeats + 1)
                start = np.random.default_rng(0).standard_normal((particles, dim))
                rounds = sample_rounds_torch(
                    half_square, settings, start, device=device, dtype=dtype
                )
                next(rounds)
                began = time.perf_counter()
                count = sum(1 for _ in rounds)
                found.append(
                    {
                        "path": f"torch {device} {dtype}",
                        "particles": particles,
                        "draws": draws,
                        "dim": dim,
                        "seconds_a_round": (time.perf_counter() - began) / count,
                    }
                )
    return found


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    target = benchmark("gaussian-lasso", 5).potential
    for particles, sub_steps, draws, dim in SHAPES:
        settings = Settings(particles, dim, 0.1, sub_steps, draws, 1)
        print(json.dumps({"f": "half square"} | measure(settings, repeats=repeats)), flush=True)
    official = Settings(100, 5, 0.1, 10, 2000, 1)
    record = measure(official, repeats=repeats, potential=target)
    print(json.dumps({"f": "gaussian-lasso"} | record), flush=True)
    for other in on_torch(repeats):
        print(json.dumps(other), flush=True)


if __name__ == "__main__":
    main()

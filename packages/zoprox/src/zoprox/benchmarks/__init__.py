"""Densities whose truth is known: the targets `bench:NAME`, each with an exact sampler.

Each is drawn from directly, so that a run can be compared with as many exact draws as are wanted,
and says what share of the mass each of its modes has.
"""

from __future__ import annotations

from collections.abc import Callable

from papercuts.errors import UsageError
from zoprox.benchmarks import curved, mixtures, regions
from zoprox.benchmarks.benchmark import Benchmark

__all__ = ["NAMES", "Benchmark", "benchmark"]

# Each with its usual dimension, and whether it has others.
_MAKERS: dict[str, tuple[Callable[[int], Benchmark], int, bool]] = {
    "gaussian-lasso": (mixtures.gaussian_lasso, 5, True),
    "grid25": (mixtures.grid25, 2, False),
    "two-tori": (regions.two_tori, 3, False),
    "l-shape": (regions.l_shape, 2, False),
    "sparse-boxes": (regions.sparse_boxes, 2, True),
    "funnel": (curved.funnel, 5, True),
    "banana": (curved.banana, 2, True),
    "mueller-brown": (curved.mueller_brown, 2, False),
}
NAMES = tuple(_MAKERS)


def benchmark(name: str, dim: int | None = None) -> Benchmark:
    """Give a benchmark by name, in its usual dimension or in `dim`.

    Raises `UsageError` for a name that is none, with the names that are, and for a dimension in
    which it does not exist.
    """
    if name not in _MAKERS:
        raise UsageError(f"bench:{name}: no such benchmark (expected {', '.join(NAMES)})")
    make, usual, others = _MAKERS[name]
    if dim is None:
        dim = usual
    if dim != usual and not (others and dim >= 2):
        wanted = f"--dim {usual}" + (" or another of at least 2" if others else "")
        raise UsageError(f"bench:{name}: no such benchmark in {dim} dimensions (expected {wanted})")
    return make(dim)

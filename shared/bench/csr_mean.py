"""Times `csr_mean` beside PyTorch's other ways to average over neighbour lists, on the CPU.

    OMP_NUM_THREADS=1 uv run python shared/bench/csr_mean.py

Every way runs once a round, in turn, so that a busy machine slows all alike. A line of the output
has the median seconds of a way and the ratio to `csr_mean` in the same round (over 1: `csr_mean` is
faster), as median and range over the rounds. "forward" is without a gradient; "both" is forward and
backward. What does not change between the epochs of a training (transposed lists, degrees) is made
beforehand, for every way.
"""

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable

import torch
from torch import Tensor

from papercuts.kernels.csr import NeighbourLists

Way = Callable[[Tensor], Tensor]


def ways(lists: NeighbourLists) -> dict[str, Way]:
    """Give every way as a function of x, [sources, features]."""
    indptr, indices, rows = lists.indptr, lists.indices, lists.edge_rows()
    degrees = indptr.diff().clamp(min=1).float()[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that sparse CSR is in beta
        weights = torch.repeat_interleave(1 / degrees[:, 0], indptr.diff())
        matrix = torch.sparse_csr_tensor(indptr, indices, weights, size=(lists.rows, lists.sources))

    def segment_reduce(x: Tensor) -> Tensor:
        values = x.index_select(0, indices)
        return torch.segment_reduce(values, "mean", offsets=indptr, initial=0)

    def index_add(x: Tensor) -> Tensor:
        out = x.new_zeros(lists.rows, x.shape[1])
        return out.index_add(0, rows, x.index_select(0, indices)) / degrees

    def embedding_bag(x: Tensor) -> Tensor:
        return torch.nn.functional.embedding_bag(
            indices, x, indptr, mode="mean", include_last_offset=True
        )

    return {
        "csr_mean": lists.mean,
        "torch.sparse CSR @ x": lambda x: matrix @ x,
        "embedding_bag mean": embedding_bag,
        "index_select, segment_reduce": segment_reduce,
        "index_select, index_add": index_add,
    }


def seconds(way: Way, x: Tensor, grad: Tensor | None) -> float:
    """Time one forward pass, and one backward pass too where there is a gradient to hand in."""
    start = time.perf_counter()
    out = way(x)
    if grad is not None:
        torch.autograd.grad((out,), (x,), (grad,))
    return time.perf_counter() - start


def main() -> None:
    """Run the rounds and print one JSON line for each way and pass."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()

    generator = torch.Generator().manual_seed(0)
    owners = torch.randint(options.nodes, (options.edges,), generator=generator)
    degrees = torch.bincount(owners, minlength=options.nodes)
    indptr = torch.cat([torch.zeros(1, dtype=torch.int64), degrees.cumsum(0)])
    indices = torch.randint(options.nodes, (options.edges,), generator=generator)
    lists = NeighbourLists(indptr, indices, options.nodes)
    x = torch.randn(options.nodes, options.features, generator=generator)
    grad = torch.randn(options.nodes, options.features, generator=generator)
    known = ways(lists)
    expected = lists.mean(x)
    for name, way in known.items():
        torch.testing.assert_close(way(x), expected, rtol=1e-4, atol=1e-5, msg=name)

    for part, given in (("forward", None), ("both", grad)):
        values = x.clone().requires_grad_(given is not None)
        for way in known.values():
            seconds(way, values, given)  # the first pass also builds what is kept
        rounds = [
            {name: seconds(way, values, given) for name, way in known.items()}
            for _ in range(options.rounds)
        ]
        for name in known:
            ratios = [one[name] / one["csr_mean"] for one in rounds]
            row = {
                "pass": part,
                "way": name,
                "wall_s": round(statistics.median(one[name] for one in rounds), 4),
                "ratio": round(statistics.median(ratios), 2),
                "ratio_range": [round(min(ratios), 2), round(max(ratios), 2)],
            }
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()

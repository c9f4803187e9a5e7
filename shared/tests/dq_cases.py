"""Partial dQ tiles and the orders in which plans add them; `test_dq.py` loads this file.

Run as a program, with TRITON_INTERPRET=1, it sums every case twice in Triton and saves both: the
interpreter must be chosen before Triton is imported.
"""

import sys
from dataclasses import dataclass

import torch

from papercuts.kernels.csr import NeighbourLists
from papercuts.kernels.dq import accumulate_dq


@dataclass(frozen=True)
class Case:
    heads: int
    lists: list[list[int]]  # of row head * n_q + q: its tasks, in the order of their addition
    block_m: int = 4
    width: int = 8
    dtype: torch.dtype = torch.float32
    index: torch.dtype = torch.int64
    offset: int = 0  # elements that the tiles lie into their storage


def orders(heads: int, n: int, causal: bool, rank) -> list[list[int]]:
    """List the tasks of each row by rank(i, j, n); task ids count (head, i, j) in C order."""
    ids = {
        (h, i, j): task
        for task, (h, i, j) in enumerate(
            (h, i, j)
            for h in range(heads)
            for i in range(n)
            for j in range(n)
            if j >= i or not causal
        )
    }
    return [
        [
            ids[h, i, j]
            for i in sorted(range(n), key=lambda i: rank(i, j, n))
            if (h, i, j) in ids
        ]
        for h in range(heads)
        for j in range(n)
    ]  # fmt: skip


def symmetric(i: int, j: int, n: int) -> int:
    """Rank under the symmetric shift: the long KV tiles shifted, the short ones after them."""
    a = n // 2
    if i >= a:
        return i
    return (min(j - (a - 1), a - 1) - i) % a if j >= a - 1 else j - i


ASCENDING = orders(2, 6, causal=True, rank=lambda i, *_: i)
SHIFT = orders(2, 6, causal=False, rank=lambda i, j, n: (j - i) % n)
CASES = {
    "ascending, causal": Case(2, ASCENDING),
    "descending, causal": Case(2, orders(2, 6, causal=True, rank=lambda i, *_: -i)),
    "symmetric shift, causal": Case(2, orders(2, 6, causal=True, rank=symmetric)),
    "cyclic shift, full": Case(2, SHIFT),
    "three blocks": Case(2, SHIFT, block_m=48, width=48),
    "odd sizes": Case(2, SHIFT, block_m=5, width=7),
    "bf16": Case(2, SHIFT, dtype=torch.bfloat16),
    "fp16": Case(2, ASCENDING, dtype=torch.float16),
    "int32": Case(2, ASCENDING, index=torch.int32),
    "not at the start of their storage": Case(2, ASCENDING, offset=3),
    "a list is empty": Case(1, [[2, 0], [], [1]]),
    "no lists": Case(1, []),
    "no width": Case(1, [[0]], width=0),
}


def inputs(case: Case) -> tuple[NeighbourLists, torch.Tensor]:
    """Draw tiles of very different sizes, so that another order gives other bits."""
    flat = [task for tasks in case.lists for task in tasks]
    indptr = torch.tensor([0, *(len(tasks) for tasks in case.lists)], dtype=case.index).cumsum(0)
    lists = NeighbourLists(
        indptr.to(case.index), torch.tensor(flat, dtype=case.index), max(flat, default=-1) + 1
    )
    shape = (lists.sources, case.block_m, case.width)
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(shape, generator=generator).exp() * torch.randn(shape, generator=generator)
    room = torch.zeros(drawn.numel() + case.offset, dtype=case.dtype)
    tiles = room[case.offset :].view(shape)
    tiles.copy_(drawn)
    return lists, tiles


def run(case: Case, backend: str) -> torch.Tensor:
    """Accumulate a case."""
    return accumulate_dq(*inputs(case), case.heads, backend=backend)


if __name__ == "__main__":
    torch.save({n: [run(c, "triton") for _ in range(2)] for n, c in CASES.items()}, sys.argv[1])

"""The dQ of an attention backward pass, summed from its partial tiles in a fixed order.

    dq[h, q] = ((0 + tiles[t0]) + tiles[t1]) + ...     for t0, t1, ... the list of row h * n_q + q

Each partial tile is what one KV tile adds to the dQ of one Q tile. A deterministic backward pass
adds them in one order that a plan fixes beforehand; here the lists are that plan. Every addition is
one fp32 addition and none is left to the hardware's order, so the bits are the same on every run,
in PyTorch and in Triton.

    lists = NeighbourLists(indptr, order, sources=len(tiles))  # of papercuts.kernels.csr
    dq = accumulate_dq(lists, tiles, heads=8)
"""
# ruff: noqa: TID253 (imported upon first use, by papercuts.kernels)

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from papercuts import kernels
from papercuts.kernels.csr import NeighbourLists

if TYPE_CHECKING:
    from papercuts.kernels import Backend

_VALUE_TYPES = (torch.float16, torch.bfloat16, torch.float32)


def accumulate_dq(
    lists: NeighbourLists, tiles: Tensor, heads: int, *, backend: Backend | None = None
) -> Tensor:
    """Sum partial dQ tiles in the order of the lists.

    `tiles` is [tasks, block_m, width] in fp16, bf16 or fp32. Row h * n_q + q of `lists` names, in
    the order in which they are added, the tasks that add to Q tile q of head h. Gives [heads,
    n_q * block_m, width] in fp32, 0 where a list is empty. No gradient is defined. Raises
    `ValueError` for other tiles, or rows that are not the same number for each head.
    """
    _check(lists, tiles, heads)
    dq = cast("Tensor", kernels.call("dq_accumulate", lists, tiles, backend=backend))
    return dq.view(heads, lists.rows // heads * tiles.shape[1], tiles.shape[2])


def accumulate_reference(lists: NeighbourLists, tiles: Tensor) -> Tensor:
    """Sum partial tiles in plain PyTorch: [rows, block_m, width] fp32; see `accumulate_dq`.

    The n-th addition of all rows is one step, so that each sum grows in the order of its list.
    """
    out = torch.zeros(lists.rows, *tiles.shape[1:], dtype=torch.float32, device=tiles.device)
    begin, lengths = lists.indptr[:-1], lists.indptr.diff()
    for step in range(int(lengths.max()) if lists.rows else 0):
        rows = (lengths > step).nonzero()[:, 0]
        out[rows] += tiles[lists.indices[begin[rows] + step]].float()
    return out


def _check(lists: NeighbourLists, tiles: Tensor, heads: int) -> None:
    if tiles.ndim != 3 or tiles.shape[0] != lists.sources:
        raise ValueError(
            f"tiles must be [{lists.sources}, block_m, width], one tile a task, "
            f"not {list(tiles.shape)}"
        )
    if tiles.dtype not in _VALUE_TYPES:
        allowed = ", ".join(_kind(dtype) for dtype in _VALUE_TYPES)
        raise ValueError(f"tiles must be one of {allowed}, not {_kind(tiles.dtype)}")
    if tiles.device != lists.device:
        raise ValueError(f"tiles are on {tiles.device}, the lists on {lists.device}")
    if heads < 1 or lists.rows % heads:
        raise ValueError(f"{lists.rows} lists are not the same number for each of {heads} heads")


def _kind(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")

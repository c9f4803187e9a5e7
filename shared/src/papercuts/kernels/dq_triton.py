"""The Triton version of `papercuts.kernels.dq`: one program sums one piece of one dQ tile.

It walks the list of its Q tile from first to last and adds one partial tile after another in fp32.
There are no atomics, no waiting and no tree, so neither the order in which programs run nor the
block size changes a bit.
"""
# ruff: noqa: TID253 (imported upon first use, by papercuts.kernels)

from __future__ import annotations

import contextlib

import torch
import triton  # type: ignore[import-untyped]
import triton.language as tl  # type: ignore[import-untyped]
from torch import Tensor

from papercuts.kernels.csr import NeighbourLists

_MAX_BLOCK = 1024
_ELEMENTS_PER_WARP = 256  # 8 values in each of 32 threads


# Triton compiles the annotations too, and knows no others than constexpr.
@triton.jit  # type: ignore[untyped-decorator]
def _accumulate(  # type: ignore[no-untyped-def]
    out,  # [rows, elements] fp32, contiguous
    tiles,  # [tasks, elements], contiguous
    indptr,
    order,
    elements,
    BLOCK: tl.constexpr,  # noqa: N803
):
    # 64-bit, since row * elements passes 2^31 on tensors that fit a GPU.
    row = tl.program_id(0).to(tl.int64)
    places = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    wanted = places < elements
    begin = tl.load(indptr + row)
    end = tl.load(indptr + row + 1)
    total = tl.full([BLOCK], 0.0, tl.float32)
    for position in range(begin, end):
        task = tl.load(order + position).to(tl.int64)
        partial = tl.load(tiles + task * elements + places, mask=wanted, other=0.0)
        total += partial.to(tl.float32)
    tl.store(out + row * elements + places, total, mask=wanted)


def accumulate_triton(lists: NeighbourLists, tiles: Tensor) -> Tensor:
    """Sum partial tiles in Triton; see `papercuts.kernels.dq.accumulate_reference`."""
    out = torch.empty(lists.rows, *tiles.shape[1:], dtype=torch.float32, device=tiles.device)
    if out.numel() == 0:
        return out
    elements = tiles.shape[1] * tiles.shape[2]
    block = min(_MAX_BLOCK, triton.next_power_of_2(elements))
    # Triton launches on the current GPU, which need not be that of the tiles.
    here = torch.cuda.device(tiles.device) if tiles.is_cuda else contextlib.nullcontext()
    with here:
        _accumulate[(lists.rows, triton.cdiv(elements, block))](
            out,
            tiles.contiguous(),
            lists.indptr,
            lists.indices,
            elements,
            BLOCK=block,
            num_warps=max(1, min(8, block // _ELEMENTS_PER_WARP)),
            enable_fp_fusion=False,  # nothing to fuse; Triton warns when it is left unsaid
        )
    return out

"""The Triton version of `papercuts.kernels.csr`: one gather kernel serves both directions.

A program sums one list for one block of features, a block of edges at a time. There is no `tl.dot`
in it (so no TF32) and there are no atomics: the result does not depend on the order in which
programs run.
"""
# ruff: noqa: TID253 (imported upon first use, by papercuts.kernels)

from __future__ import annotations

import contextlib

import torch
import triton  # type: ignore[import-untyped]
import triton.language as tl  # type: ignore[import-untyped]
from torch import Tensor

from papercuts.kernels.csr import NeighbourLists, accumulator_type, mean_with

_MAX_BLOCK_FEATURES = 128
_MIN_BLOCK_EDGES, _MAX_BLOCK_EDGES = 4, 32
_ELEMENTS_PER_WARP = 256  # 8 values in each of 32 threads


# Triton compiles the annotations too, and knows no others than constexpr.
@triton.jit  # type: ignore[untyped-decorator]
def _sum_lists(  # type: ignore[no-untyped-def]
    out,  # [rows, features], contiguous
    x,  # [sources, features], any strides
    indptr,
    indices,
    row_divisor,  # [rows] or None
    source_divisor,  # [sources] or None
    features,
    x_row_stride,
    x_column_stride,
    ACCUMULATOR: tl.constexpr,  # noqa: N803
    BLOCK_EDGES: tl.constexpr,  # noqa: N803
    BLOCK_FEATURES: tl.constexpr,  # noqa: N803
):
    # 64-bit, since row * features passes 2^31 on graphs that fit a GPU.
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK_FEATURES + tl.arange(0, BLOCK_FEATURES)
    wanted = columns < features
    begin = tl.load(indptr + row)
    end = tl.load(indptr + row + 1)
    partial = tl.zeros([BLOCK_EDGES, BLOCK_FEATURES], ACCUMULATOR)
    for first in range(begin, end, BLOCK_EDGES):
        edges = first + tl.arange(0, BLOCK_EDGES)
        real = edges < end
        sources = tl.load(indices + edges, mask=real, other=0).to(tl.int64)
        places = sources[:, None] * x_row_stride + columns[None, :] * x_column_stride
        values = tl.load(x + places, mask=real[:, None] & wanted[None, :], other=0.0)
        values = values.to(ACCUMULATOR)
        if source_divisor is not None:
            values = values / tl.load(source_divisor + sources, mask=real, other=1.0)[:, None]
        partial += values
    total = tl.sum(partial, axis=0)
    if row_divisor is not None:
        total = total / tl.load(row_divisor + row)
    tl.store(out + row * features + columns, total.to(out.dtype.element_ty), mask=wanted)


def mean_triton(lists: NeighbourLists, x: Tensor) -> Tensor:
    """Average over neighbour lists in Triton; see `NeighbourLists.mean`."""
    return mean_with(sum_triton, lists, x)


def sum_triton(
    lists: NeighbourLists, x: Tensor, row_divisor: Tensor | None, source_divisor: Tensor | None
) -> Tensor:
    """Sum over neighbour lists in Triton; see `papercuts.kernels.csr.SumLists`."""
    features = x.shape[1]
    out = torch.empty(lists.rows, features, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    block_features = min(_MAX_BLOCK_FEATURES, triton.next_power_of_2(features))
    # As many edges at a time as a list of middling length has: longer blocks would idle.
    degree = triton.next_power_of_2(max(1, lists.edges // lists.rows))
    block_edges = min(_MAX_BLOCK_EDGES, max(_MIN_BLOCK_EDGES, degree))
    # Triton launches on the current GPU, which need not be that of x.
    here = torch.cuda.device(x.device) if x.is_cuda else contextlib.nullcontext()
    with here:
        _sum_lists[(lists.rows, triton.cdiv(features, block_features))](
            out,
            x,
            lists.indptr,
            lists.indices,
            row_divisor,
            source_divisor,
            features,
            x.stride(0),
            x.stride(1),
            ACCUMULATOR=_ACCUMULATORS[accumulator_type(x.dtype)],
            BLOCK_EDGES=block_edges,
            BLOCK_FEATURES=block_features,
            num_warps=max(1, min(8, block_edges * block_features // _ELEMENTS_PER_WARP)),
            enable_fp_fusion=False,  # nothing to fuse; Triton warns when it is left unsaid
        )
    return out


_ACCUMULATORS = {torch.float32: tl.float32, torch.float64: tl.float64}

"""Mean aggregation over neighbour lists in CSR form, forward and backward.

    out[i] = mean of x[j] over j in indices[indptr[i]:indptr[i + 1]],   0 where the list is empty

The gradient is the same gather over the transposed lists, so both directions are deterministic and
neither needs atomics. Sums run in fp32 (in fp64 for fp64 inputs) and are rounded once, at the end.

    lists = NeighbourLists(indptr, indices, sources=len(x))   # checked once, kept for all epochs
    out = lists.mean(x)
    out = csr_mean(indptr, indices, x)                        # the same for a graph used once
"""
# ruff: noqa: TID253 (imported upon first use, by papercuts.kernels)

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from papercuts import kernels

if TYPE_CHECKING:
    from papercuts.kernels import Backend

_INDEX_TYPES = (torch.int32, torch.int64)
_VALUE_TYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class NeighbourLists:
    """The neighbour lists of a directed graph: row i lists the sources that it averages over.

    `indptr` is [rows + 1] and `indices` [edges], int32 or int64, on one device; an index lies in
    [0, `sources`). A source may stand in a list more than once, and then counts as often.

    Raises `ValueError` for anything else. `check=False` leaves out the checks that read the values
    (about 1 ms for a million edges; on a GPU they wait for it): wrong values are then undefined
    behaviour on a GPU.
    """

    def __init__(
        self, indptr: Tensor, indices: Tensor, sources: int, *, check: bool = True
    ) -> None:
        for name, tensor in (("indptr", indptr), ("indices", indices)):
            if tensor.ndim != 1 or tensor.dtype not in _INDEX_TYPES:
                raise ValueError(
                    f"{name} must be one-dimensional and int32 or int64, "
                    f"not {_kind(tensor.dtype)} of shape {tuple(tensor.shape)}"
                )
        if indptr.numel() == 0:
            raise ValueError("indptr must have one entry more than there are rows, so at least one")
        if indptr.device != indices.device:
            raise ValueError(f"indptr is on {indptr.device}, indices on {indices.device}")
        if sources < 0:
            raise ValueError(f"the number of sources cannot be {sources}")
        if check:
            _check_values(indptr, indices, sources)
        index_type = torch.promote_types(indptr.dtype, indices.dtype)
        self.indptr = indptr.to(index_type).contiguous()
        self.indices = indices.to(index_type).contiguous()
        self.sources = sources

    @property
    def rows(self) -> int:
        """The number of lists."""
        return self.indptr.numel() - 1

    @property
    def edges(self) -> int:
        """The total length of all lists."""
        return self.indices.numel()

    @property
    def device(self) -> torch.device:
        """The device of both tensors."""
        return self.indices.device

    @cached_property
    def transposed(self) -> NeighbourLists:
        """The lists of the reversed edges: for each source, the rows that list it, ascending.

        Built at the first backward pass and kept.
        """
        order = torch.argsort(self.indices, stable=True)
        ends = torch.bincount(self.indices, minlength=self.sources).cumsum(0)
        indptr = torch.cat([ends.new_zeros(1), ends]).to(self.indptr.dtype)
        return NeighbourLists(indptr, self.edge_rows()[order], self.rows, check=False)

    def edge_rows(self) -> Tensor:
        """Give the row of every edge: [edges], ascending."""
        rows = torch.arange(self.rows, dtype=self.indices.dtype, device=self.device)
        return torch.repeat_interleave(rows, self.indptr.diff(), output_size=self.edges)

    def mean(self, x: Tensor, *, backend: Backend | None = None) -> Tensor:
        """Average `x` over every list: [sources, features] to [rows, features], differentiable.

        `x` is fp16, bf16, fp32 or fp64, of any strides, on the lists' device; the result has its
        dtype. Raises `ValueError` for another `x`.
        """
        return cast("Tensor", kernels.call("csr_mean", self, x, backend=backend))


def csr_mean(
    indptr: Tensor,
    indices: Tensor,
    x: Tensor,
    *,
    check: bool = True,
    backend: Backend | None = None,
) -> Tensor:
    """Average `x` over the neighbour lists of a graph that is used once.

    Shapes, dtypes and errors as in `NeighbourLists`, with one source for each row of `x`. For a
    graph that is used again, keep a `NeighbourLists`: it is checked and transposed only once.
    """
    lists = NeighbourLists(indptr, indices, x.shape[0] if x.ndim else 0, check=check)
    return lists.mean(x, backend=backend)


def mean_reference(lists: NeighbourLists, x: Tensor) -> Tensor:
    """Average over neighbour lists in plain PyTorch; see `NeighbourLists.mean`."""
    return mean_with(sum_reference, lists, x)


SumLists: TypeAlias = Callable[[NeighbourLists, Tensor, Tensor | None, Tensor | None], Tensor]
"""(lists, x, row_divisor or None, source_divisor or None) to, in the dtype of x,
out[i] = (sum over j in list i of x[j] / source_divisor[j]) / row_divisor[i]."""


def mean_with(sum_lists: SumLists, lists: NeighbourLists, x: Tensor) -> Tensor:
    """Make the differentiable mean out of a weighted sum; this is all that a backend adds."""
    _check_features(lists, x)
    degrees = lists.indptr.diff().clamp(min=1).to(accumulator_type(x.dtype))
    return cast("Tensor", _Sum.apply(x, lists, False, degrees, None, sum_lists))


class _Sum(torch.autograd.Function):
    """A weighted sum over the lists, whose gradient is one over the transposed lists."""

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        x: Tensor,
        lists: NeighbourLists,
        backwards: bool,
        row_divisor: Tensor | None,
        source_divisor: Tensor | None,
        sum_lists: SumLists,
    ) -> Tensor:
        ctx.save_for_backward(row_divisor, source_divisor)  # type: ignore[arg-type]  # None is fine
        ctx.rest = (lists, backwards, sum_lists)  # type: ignore[attr-defined]
        return sum_lists(lists.transposed if backwards else lists, x, row_divisor, source_divisor)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        row_divisor, source_divisor = ctx.saved_tensors
        lists, backwards, sum_lists = ctx.rest
        # By `apply`, so that the gradient has a gradient too.
        grad = _Sum.apply(grads[0], lists, not backwards, source_divisor, row_divisor, sum_lists)
        return grad, None, None, None, None, None


def sum_reference(
    lists: NeighbourLists, x: Tensor, row_divisor: Tensor | None, source_divisor: Tensor | None
) -> Tensor:
    """Sum over neighbour lists in plain PyTorch; see `SumLists`."""
    if not x.shape[1]:
        # embedding_bag reads an index that is not there, and now and then says so.
        return x.new_zeros(lists.rows, 0)
    values = x.to(accumulator_type(x.dtype))
    if source_divisor is not None:
        values = values / source_divisor[:, None]
    if x.device.type in ("cpu", "cuda"):
        # The fastest of PyTorch's ways on a CPU, and it makes no [edges, features] copy.
        out = torch.nn.functional.embedding_bag(
            lists.indices, values.contiguous(), lists.indptr, mode="sum", include_last_offset=True
        )
    else:
        out = sum_by_index_add(lists, values)
    if row_divisor is not None:
        out /= row_divisor[:, None]
    return out.to(x.dtype)


def sum_by_index_add(lists: NeighbourLists, values: Tensor) -> Tensor:
    """Sum over neighbour lists with operations that every device has; copies a row per edge."""
    out = values.new_zeros(lists.rows, values.shape[1])
    return out.index_add_(0, lists.edge_rows(), values.index_select(0, lists.indices))


def accumulator_type(dtype: torch.dtype) -> torch.dtype:
    """Give the dtype in which values of `dtype` are summed."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def _check_values(indptr: Tensor, indices: Tensor, sources: int) -> None:
    edges = indices.numel()
    if int(indptr[0]) != 0 or int(indptr[-1]) != edges:
        raise ValueError(
            f"indptr must begin with 0 and end with the number of indices, {edges}, "
            f"but goes from {int(indptr[0])} to {int(indptr[-1])}"
        )
    if bool((indptr[1:] < indptr[:-1]).any()):
        row = int((indptr[1:] < indptr[:-1]).nonzero()[0])
        raise ValueError(f"indptr must not decrease, but does after entry {row}")
    if edges:
        low, high = (int(bound) for bound in torch.aminmax(indices))
        if low < 0 or high >= sources:
            wrong = low if low < 0 else high
            raise ValueError(f"indices must be from 0 to {sources - 1}, but one is {wrong}")


def _check_features(lists: NeighbourLists, x: Tensor) -> None:
    if x.ndim != 2 or x.shape[0] != lists.sources:
        raise ValueError(
            f"x must be [{lists.sources}, features], one row a source, not {list(x.shape)}"
        )
    if x.dtype not in _VALUE_TYPES:
        allowed = ", ".join(_kind(dtype) for dtype in _VALUE_TYPES)
        raise ValueError(f"x must be one of {allowed}, not {_kind(x.dtype)}")
    if x.device != lists.device:
        raise ValueError(f"x is on {x.device}, the neighbour lists on {lists.device}")


def _kind(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")

"""The attention backward pass in tiles, as FlashAttention computes it, on the CPU in torch.

    S = q k^T / sqrt(width)       P = exp(S - lse), recomputed from the saved logsumexp
    dV_i += P^T dO_j              dP = dO_j V_i^T
    dS = P * (dP - delta_j)       delta = rowsum(dO * O)
    dK_i += dS^T q_j / sqrt(width)
    dQ_j += dS k_i / sqrt(width)  in the order that the plan fixes

(Dao et al. 2022, algorithm 4; Dao 2023, algorithm 2.) dK and dV of a KV tile grow along its chain,
in the order of the processor that has it. Sums are kept in fp32, as on a GPU.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from bitsched.execution import execute
from bitsched.plan import Plan, counted
from bitsched.taskgraph import group_of
from bitsched.tokens import Tokens, tokens_of
from bitsched.tokens import seen as seen_by_token
from papercuts.errors import UsageError
from papercuts.kernels.csr import NeighbourLists

Precision = Literal["fp32", "bf16"]
MOST_SCORES = 2**28  # of one head, and numbers in a tensor: 1 GiB in fp32


@dataclass(frozen=True)
class Gradients:
    """dQ [heads, length_q, width]; dK and dV [kv_heads, length_kv, width]."""

    dq: Tensor
    dk: Tensor
    dv: Tensor

    def tensors(self) -> tuple[Tensor, ...]:
        """Give the three."""
        return tuple(getattr(self, field.name) for field in fields(self))


@dataclass(frozen=True)
class Attention:
    """A forward pass: its inputs, and what it saves for the backward pass.

    `q`, `out` and `out_grad` are [heads, length_q, width], `k` and `v` [kv_heads, length_kv,
    width], in fp32 (of values that bf16 holds, under `precision` bf16). `lse` (infinite for a
    query that sees no key) and `delta` are [heads, length_q]; `seen` [length_q, length_kv] says
    which query sees which key.
    """

    tokens: Tokens
    q: Tensor
    k: Tensor
    v: Tensor
    out_grad: Tensor
    out: Tensor
    lse: Tensor
    delta: Tensor
    seen: Tensor
    precision: Precision

    @property
    def group(self) -> int:
        """How many query heads share a KV head."""
        return self.q.shape[0] // self.k.shape[0]

    @property
    def scale(self) -> float:
        """Divides the products of queries and keys."""
        return 1 / math.sqrt(self.q.shape[2])


def forward(
    plan: Plan, *, seqlen: int | None = None, width: int, precision: Precision, seed: int
) -> Attention:
    """Draw inputs from a standard normal and run the forward pass that a plan's backward needs.

    `seqlen` and `UsageError` as in `bitsched.tokens.tokens_of`, and `UsageError` for more than the
    scores of a head, or the tensors of all, have room for.
    """
    tokens = tokens_of(plan, seqlen)
    lengths = max(tokens.length_q, tokens.n_q), max(tokens.length_kv, tokens.n_kv)
    if lengths[0] * lengths[1] > MOST_SCORES or tokens.heads * max(lengths) * width > MOST_SCORES:
        what = f"{counted(tokens.heads, 'head')} of {lengths[0]} queries by {lengths[1]} keys"
        raise UsageError(
            f"{what} of width {width} are more than can be run: "
            f"at most {MOST_SCORES} scores a head, numbers a tensor"
        )
    heads, kv_heads = tokens.heads, tokens.heads // group_of(plan)
    generator = torch.Generator().manual_seed(seed)

    def draw(count: int, length: int) -> Tensor:
        drawn = torch.randn(count, length, width, generator=generator)
        return _rounded(drawn, precision)

    q, out_grad = draw(heads, tokens.length_q), draw(heads, tokens.length_q)
    k, v = draw(kv_heads, tokens.length_kv), draw(kv_heads, tokens.length_kv)
    seen = torch.from_numpy(seen_by_token(plan, tokens))
    out, lse = torch.empty_like(q), torch.empty(heads, tokens.length_q)
    for head in range(heads):  # one at a time, for the memory's sake
        kv_head = head // (heads // kv_heads)
        scores = (q[head] @ k[kv_head].T * width**-0.5).masked_fill(~seen, -torch.inf)
        lse[head] = scores.logsumexp(1).nan_to_num(neginf=torch.inf)
        out[head] = (scores - lse[head][:, None]).exp() @ v[kv_head]
    out = _rounded(out, precision)
    delta = (out_grad * out).sum(2)
    return Attention(tokens, q, k, v, out_grad, out, lse, delta, seen, precision)


def backward(
    plan: Plan, saved: Attention, *, threads: int, delays_s: Sequence[float] | None = None
) -> Gradients:
    """Compute the gradients as the plan says, on threads; see `bitsched.execution.execute`.

    Every product has one thread and every sum one order, the plan's; under a plan without an
    order dQ is summed as the threads come. The gradients have the dtype of the precision.
    """
    tiles = _Tiles(plan, saved)
    dq = torch.zeros_like(saved.q)

    def add(task: int, share: Tensor) -> None:
        dq[tiles.head[task], saved.tokens.queries(tiles.q[task])] += share

    with one_thread_a_product():
        execute(plan, tiles.compute, add, threads=threads, delays_s=delays_s)
    dtype = torch.bfloat16 if saved.precision == "bf16" else torch.float32
    return Gradients(*(total.to(dtype) for total in (dq, tiles.dk, tiles.dv)))


def dq_tiles(plan: Plan, saved: Attention) -> Tensor:
    """Give what each task adds to dQ: [tasks, block_q, width] fp32, before any of it is added.

    Where the queries do not fill the last tile, zeros do.
    """
    tiles, block_q = _Tiles(plan, saved), saved.tokens.block_q
    made = saved.q.new_zeros(plan.tasks, block_q, saved.q.shape[2])
    with one_thread_a_product():
        for task in range(plan.tasks):
            share = tiles.compute(task)
            made[task, : share.shape[0]] = share
    return made


def dq_lists(plan: Plan) -> NeighbourLists:
    """List the tasks of each dQ tile in the order in which they add: row head * n_q + q.

    For `papercuts.kernels.dq.accumulate_dq`, which sums tiles as `dq_tiles` gives them. Raises
    `UsageError` for a plan without an order.
    """
    if not plan.ordered:
        raise UsageError("the plan fixes no order of the sums (its ranks are -1)")
    tokens = tokens_of(plan)
    row = plan.head.astype(np.int64) * tokens.n_q + plan.q
    ends = np.cumsum(np.bincount(row, minlength=tokens.heads * tokens.n_q))
    order = np.lexsort((plan.rank, row))
    return NeighbourLists(
        torch.from_numpy(np.concatenate(([0], ends))), torch.from_numpy(order), plan.tasks
    )


class _Tiles:
    """Computes tiles, and keeps what their chains sum up: dk and dv [kv_heads, seqlen, width]."""

    def __init__(self, plan: Plan, saved: Attention) -> None:
        self.saved = saved
        self.head, self.kv, self.q = plan.head.tolist(), plan.kv.tolist(), plan.q.tolist()
        self.dk, self.dv = torch.zeros_like(saved.k), torch.zeros_like(saved.v)

    def compute(self, task: int) -> Tensor:
        """Add a task's shares of dK and dV, and give that of dQ: [block_m, width]."""
        saved, scale = self.saved, self.saved.scale
        h, kv_head = self.head[task], self.head[task] // self.saved.group
        rows, keys = saved.tokens.queries(self.q[task]), saved.tokens.keys(self.kv[task])
        qj, dout = saved.q[h, rows], saved.out_grad[h, rows]
        ki, vi = saved.k[kv_head, keys], saved.v[kv_head, keys]
        scores = (qj @ ki.T).mul_(scale).masked_fill_(~saved.seen[rows, keys], -torch.inf)
        p = scores.sub_(saved.lse[h, rows, None]).exp_()
        ds = (dout @ vi.T).sub_(saved.delta[h, rows, None]).mul_(p)
        p, ds = _rounded(p, saved.precision), _rounded(ds, saved.precision)
        self.dv[kv_head, keys] += p.T @ dout
        self.dk[kv_head, keys] += (ds.T @ qj).mul_(scale)
        return (ds @ ki).mul_(scale)


def autograd(saved: Attention) -> Gradients:
    """Give the gradients of the same inputs by torch's autograd, without tiles, in fp64."""
    q, k, v = (of.double().requires_grad_() for of in (saved.q, saved.k, saved.v))
    hidden = ~saved.seen
    blind = hidden.all(1)
    for head in range(q.shape[0]):
        kv_head = head // saved.group
        scores = (q[head] @ k[kv_head].T * saved.scale).masked_fill(hidden, -torch.inf)
        weights = scores.masked_fill(blind[:, None], 0.0).softmax(1).masked_fill(hidden, 0.0)
        # Head by head, so that only one matrix of scores is held.
        ((weights @ v[kv_head]) * saved.out_grad[head].double()).sum().backward()  # type: ignore[no-untyped-call]
    assert q.grad is not None  # noqa: S101
    assert k.grad is not None  # noqa: S101
    assert v.grad is not None  # noqa: S101
    return Gradients(q.grad, k.grad, v.grad)


def largest_error(got: Gradients, exact: Gradients) -> float:
    """Give the largest absolute difference over dQ, dK and dV, NaN where there is one in any."""
    pairs = zip(got.tensors(), exact.tensors(), strict=True)
    return worst(float((one.double() - other).abs().max()) for one, other in pairs)


def worst(values: Iterable[float]) -> float:
    """Give the largest value, NaN if any is: `max` would pass over it, and hide a wrong result."""
    return float(np.max(list(values)))


def random_delays(plan: Plan, mean_s: float, seed: int, run: int) -> list[float] | None:
    """Draw how long each task waits before it adds: [tasks] seconds, exponential."""
    if mean_s == 0:
        return None
    drawn = np.random.default_rng((seed, run)).exponential(mean_s, plan.tasks)
    return drawn.tolist()  # type: ignore[no-any-return]


def _rounded(values: Tensor, precision: Precision) -> Tensor:
    """Round to what the precision holds; the dtype stays fp32, in which all is summed."""
    return values.bfloat16().float() if precision == "bf16" else values


@contextmanager
def one_thread_a_product() -> Iterator[None]:
    """Let torch use one thread in each operation while it lasts: a plan's threads are enough."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)

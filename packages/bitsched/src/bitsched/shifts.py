"""The paper's conflict-free schedules: cyclic shift and symmetric shift (sheet items 7 and 8)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bitsched.chains import Chains, Longs
from bitsched.plan import Plan
from bitsched.shape import Shape, causal

Table = NDArray[np.int64]  # [tasks of one head on its processors, (processor, kv, q, rank)]


def shift(shape: Shape, processors: int) -> Plan:
    """Start SM i at Q tile i and walk round: at no step do two SMs add to the same dQ tile.

    Chains fill the processors in waves, and each head's part of a wave is shifted by itself; the
    parts of a head are added one after another. Raises `ValueError` unless the mask is full.
    """
    if not shape.active.all():
        raise ValueError("the cyclic shift is for the full mask: another one leaves gaps in it")
    kv_heads = shape.heads // shape.group
    index = np.arange(kv_heads * shape.n_kv)
    kv_head, kv = index // shape.n_kv, index % shape.n_kv
    # More SMs at one head than it has Q tiles would meet: then they work in teams of so many.
    width = processors if min(processors, shape.n_kv) <= shape.n_q else shape.n_q
    teams = processors // width
    turn = kv_head // teams * shape.n_kv + kv
    wave, processor = turn // width, kv_head % teams * width + turn % width
    part = np.stack([kv_head, wave], axis=1)
    _, first, inverse, size = np.unique(
        part, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    inverse = inverse.reshape(-1)
    local, size = index - first[inverse], size[inverse]
    before = kv - local  # the tiles of this head in earlier waves
    step = np.arange(shape.n_q)
    q = (local[:, None] + step) % shape.n_q
    rank = before[:, None] + (np.minimum(q, size[:, None] - 1) - local[:, None]) % size[:, None]
    tile = (shape.heads // kv_heads, shape.n_q)
    head = np.arange(shape.heads).reshape(kv_heads, shape.group)[kv_head]
    chains = Chains(
        np.repeat(head, shape.n_q, axis=1).reshape(-1).astype(np.int32),
        np.repeat(kv, tile[0] * tile[1]).astype(np.int32),
        np.tile(q, (1, tile[0])).reshape(-1).astype(np.int32),
        np.tile(rank, (1, tile[0])).reshape(-1).astype(np.int32),
        np.arange(index.size + 1) * (tile[0] * tile[1]),
    )
    order = np.argsort(wave, kind="stable")
    return chains.take(order).on_processors(processor[order], processors, {})


def symmetric(shape: Shape, processors: int) -> Plan:
    """Fold the causal triangle: SM i of n/2 runs KV tile i, then KV tile n - 1 - i (item 8).

    An odd n is padded by one KV and one Q tile, whose tasks are then left out. Raises
    `ValueError` unless the mask is causal with as many Q tiles as KV tiles, and there are n/2
    processors or more.
    """
    n = shape.n_kv
    if shape.n_q != n or not np.array_equal(shape.active, causal(n, n)):
        raise ValueError("the symmetric shift is for the causal mask with n_q = n_kv")
    half = (n + 1) // 2
    if processors < half:
        raise ValueError(f"the symmetric shift of {n} tiles needs {half} processors or more")
    slots = processors // half
    long, short = _folded(2 * half)
    long, short = (part[(part[:, 1] < n) & (part[:, 2] < n)] for part in (long, short))
    kv_heads = shape.heads // shape.group
    rows: list[Table] = []
    for table, phase in ((long, 0), (short, 1)):
        count = table.shape[0]
        kv_head = np.repeat(np.arange(kv_heads), shape.group * count)
        member = np.tile(np.repeat(np.arange(shape.group), count), kv_heads)
        place, kv, q, rank = np.tile(table, (kv_heads * shape.group, 1)).T
        processor = (kv_head % slots) * half + place
        head = kv_head * shape.group + member
        rows.append(
            np.stack([processor, kv_head, np.full(head.size, phase), head, kv, q, rank], axis=1)
        )
    merged = np.concatenate(rows)
    # In the order of processors, then heads of KV, then phases; the walk stays as it is.
    order = np.lexsort((merged[:, 2], merged[:, 1], merged[:, 0]))
    processor, _, _, head, kv, q, rank = merged[order].T.astype(np.int32)
    counts = np.bincount(processor, minlength=processors)
    starts = np.concatenate([[0], np.cumsum(counts)])
    return Plan(head, kv, q, _without_gaps(head, q, rank), starts)


def _folded(n: int) -> tuple[Table, Table]:
    """Give both phases of one head for even n: processor, KV tile, Q tile, rank of each task."""
    half = n // 2
    i = np.arange(half)[:, None]
    step = np.arange(half + 1)
    q = (i + step) % (half + 1) + half - 1
    rank = (np.minimum(q - (half - 1), half - 1) - i) % half
    long = []
    for place in range(half):
        rows = np.arange(place, half - 1)  # the triangle below the rectangle
        walk = np.concatenate([q[place], rows])
        ranks = np.concatenate([rank[place], rows - place])
        long.append(np.stack([np.full(walk.size, place)] * 2 + [walk, ranks], axis=1))
    short = []
    for place in range(half):
        kv = n - 1 - place
        rows = np.arange(n - 1, kv - 1, -1)
        one = np.ones(rows.size, dtype=np.int64)
        short.append(np.stack([one * place, one * kv, rows, one * (kv)], axis=1))
    return np.concatenate(long), np.concatenate(short)


def _without_gaps(
    head: NDArray[np.int32], q: NDArray[np.int32], rank: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Make the ranks of each sum 0, 1, 2, ... where the padding left some out."""
    target: Longs = head.astype(np.int64) * (int(q.max()) + 1) + q
    order = np.lexsort((rank, target))
    count = np.bincount(target)
    first = np.cumsum(count) - count
    dense = np.empty_like(rank)
    dense[order] = np.arange(order.size) - first[target[order]]
    return dense

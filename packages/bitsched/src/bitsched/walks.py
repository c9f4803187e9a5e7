"""Ascending, descending and shortest-first walks, for any mask (sheet items 5, 6 and 10)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bitsched.chains import Chains, Longs
from bitsched.shape import Shape


def ascending(shape: Shape) -> Chains:
    """Walk each KV tile's Q tiles upwards, KV tiles in order, and add in their order."""
    return in_queue_order(_walk(shape, np.arange(shape.n_kv)))


def descending(shape: Shape) -> Chains:
    """Walk the Q tiles downwards, but add by rising KV tile still (paper: descending Q-tile)."""
    return in_queue_order(_walk(shape, np.arange(shape.n_kv), down=True))


def shortest_first(shape: Shape) -> Chains:
    """Take the shortest KV tiles of a head first, and add in this order.

    Shortest processing time first, as flash-attention does under a causal mask: the last KV tile
    comes first, starts at its diagonal and never waits for a longer one.
    """
    length = shape.active.sum(axis=1)
    return in_queue_order(_walk(shape, np.lexsort((-np.arange(shape.n_kv), length))))


def reversed_sums(chains: Chains) -> Chains:
    """Add every sum in the opposite order (the trap of sheet item 6)."""
    size = np.bincount(_sums(chains))[_sums(chains)]
    return replace(chains, rank=(size - 1 - chains.rank).astype(np.int32))


def unordered(chains: Chains) -> Chains:
    """Leave the order of every sum open: atomics."""
    return replace(chains, rank=np.full(chains.tasks, -1, dtype=np.int32))


def in_queue_order(chains: Chains) -> Chains:
    """Let every sum take its shares in the order of the chains: no chain waits for a later one."""
    target = _sums(chains)
    order = np.argsort(target, kind="stable")
    count = np.bincount(target)
    first = np.cumsum(count) - count
    rank = np.empty(chains.tasks, dtype=np.int32)
    rank[order] = np.arange(chains.tasks) - first[target[order]]
    return replace(chains, rank=rank)


def _sums(chains: Chains) -> Longs:
    return chains.head.astype(np.int64) * (int(chains.q.max(initial=0)) + 1) + chains.q


def _walk(shape: Shape, kv_order: Longs, *, down: bool = False) -> Chains:
    """Give the chains of all KV heads, their KV tiles in one order; the ranks are still 0."""
    place = np.empty(shape.n_kv, dtype=np.int64)
    place[kv_order] = np.arange(shape.n_kv)
    kv, q = np.nonzero(shape.active)
    if down:
        kv, q = kv[::-1], q[::-1]
    members = np.arange(shape.group)
    # One KV head: for each KV tile all heads of its group, for each head the Q tiles.
    all_kv, all_q = np.tile(kv, shape.group), np.tile(q, shape.group)
    member = np.repeat(members, kv.size)
    order = np.argsort(place[all_kv], kind="stable")
    all_kv, all_q, member = all_kv[order], all_q[order], member[order]
    kv_heads = shape.heads // shape.group
    lengths = (shape.active.sum(axis=1) * shape.group)[kv_order]
    lengths = np.tile(lengths[lengths > 0], kv_heads)
    head = np.repeat(np.arange(kv_heads) * shape.group, all_kv.size) + np.tile(member, kv_heads)
    return Chains(
        head.astype(np.int32),
        np.tile(all_kv, kv_heads).astype(np.int32),
        np.tile(all_q, kv_heads).astype(np.int32),
        np.zeros(head.size, dtype=np.int32),
        np.concatenate([[0], np.cumsum(lengths)]),
    )

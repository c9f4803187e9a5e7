"""List scheduling: a plan for any mask, window, group and number of SMs (sheet item 10)."""

from __future__ import annotations

from typing import Any

import numpy as np

from bitsched.chains import Chains, Longs
from bitsched.costs import Costs
from bitsched.kernel import Kernel, sift_down
from bitsched.plan import Plan

PRIORITIES = ("cyclic", "remaining", "given")


def list_schedule(
    chains: Chains, processors: int, costs: Costs, tile: float, priority: str
) -> Plan:
    """Let each free processor take the next chain, and in it the tile that no one is adding to.

    At each moment the processor that is free first picks, among the tiles left in its chain for
    one query head, one whose dQ tile can take the share as soon as it is computed: the lemma as
    a test of feasibility. Where all are taken it picks the one that is free first. Among several
    it prefers, by `priority`, the Q tile that follows its last one in a ring (`cyclic`), the one
    to whose sum most shares are missing (`remaining`), or the first as the chain is given
    (`given`). Sums take their shares in the order of the picks, which is the order in time, so
    no plan of this kind waits for ever. `tile` is the compute time of a tile.
    """
    tasks = chains.tasks
    n_q = int(chains.q.max()) + 1
    target = chains.head.astype(np.int64) * n_q + chains.q
    left = np.bincount(target)
    segment_end = _segments(chains)
    looked_at = int((segment_end - np.arange(tasks)).sum()) // 4
    owner, order, rank = PICK(
        looked_at, float(tile), float(costs.reduce), chains.starts, segment_end,
        chains.q.astype(np.int64), target, n_q, PRIORITIES.index(priority),
        left, np.zeros(left.size), np.zeros(left.size, dtype=np.int64),
        np.arange(tasks), np.full(tasks, -1), np.full(chains.chains, -1),
        np.zeros(processors), *(np.full(processors, -1) for _ in range(4)),
    )  # fmt: skip
    order = np.asarray(order, dtype=np.int64)
    picked = Chains(
        chains.head[order], chains.kv[order], chains.q[order],
        np.asarray(rank, dtype=np.int32)[order], chains.starts,
    )  # fmt: skip
    return picked.on_processors(np.asarray(owner, dtype=np.int64), processors, {})


def _segments(chains: Chains) -> Longs:
    """Give, for each task, the end of its run of tasks of one query head in its chain."""
    same = np.zeros(chains.tasks, dtype=bool)
    same[1:] = chains.head[1:] == chains.head[:-1]
    same[chains.starts[:-1]] = False
    first = np.flatnonzero(~same)
    ends = np.append(first[1:], chains.tasks)
    return np.repeat(ends, ends - first)


def _pick(
    compute: Any, reduce: Any, starts: Any, segment_end: Any, q: Any, target: Any, n_q: Any,
    priority: Any, left: Any, free_at: Any, added: Any, order: Any, rank: Any, owner: Any,
    clock: Any, chain_of: Any, at: Any, last_q: Any, heap: Any,
) -> Any:  # fmt: skip
    """Pick task by task; `order` holds the tasks of each chain, those picked in front.

    `heap` holds the processors, the one that is free first at its root (of equals the lower).
    """
    processors = len(clock)
    chains = len(starts) - 1
    size = processors
    for p in range(processors):
        heap[p] = p
    following = 0
    while size > 0:
        p = heap[0]
        k = chain_of[p]
        if k < 0 or at[p] == starts[k + 1]:
            if following < chains:
                chain_of[p] = following
                owner[following] = p
                at[p] = starts[following]
                last_q[p] = -1
                following += 1
            else:
                size -= 1
                heap[0] = heap[size]
        else:
            a = at[p]
            now = clock[p]
            turn = now + compute
            best = -1
            best_wait = 0.0
            best_score = 0
            for i in range(a, segment_end[a]):
                t = order[i]
                g = target[t]
                wait = max(0.0, free_at[g] - turn)
                if best >= 0 and wait > best_wait:
                    continue
                if priority == 0:
                    # A fresh chain starts where its KV tile is in the ring of Q tiles.
                    came = last_q[p] if last_q[p] >= 0 else k % n_q - 1
                    score = -((q[t] - came - 1) % n_q)
                elif priority == 1:
                    score = left[g]
                else:
                    score = -t
                if best < 0 or wait < best_wait or score > best_score:
                    best = i
                    best_wait = wait
                    best_score = score
            t = order[best]
            for i in range(best, a, -1):
                order[i] = order[i - 1]
            order[a] = t
            g = target[t]
            rank[t] = added[g]
            added[g] += 1
            left[g] -= 1
            last_q[p] = q[t]
            clock[p] = turn + best_wait + reduce
            free_at[g] = clock[p]
            at[p] = a + 1
        # The root became later, or is another: sift it down.
        sift_down(heap, size, clock, heap[0])
    return owner, order, rank


PICK = Kernel(_pick, helpers=(sift_down,))

"""Which processor takes which chain: in waves, or each free one the next in the queue."""

from __future__ import annotations

from typing import Any

import numpy as np

from bitsched.chains import Chains, Longs
from bitsched.costs import Costs
from bitsched.kernel import Kernel, sift_down
from bitsched.plan import Plan
from bitsched.simulation import simulate
from bitsched.taskgraph import Floats, predecessors
from bitsched.taskgraph import chains as chain_numbers


def in_waves(chains: Chains, processors: int, *, snake: bool = False) -> Longs:
    """Deal chain k to processor k mod P; with `snake` every second wave runs backwards.

    With as many processors as KV tiles this gives SM i the KV tile i of each head; the snake
    gives it n - 1 - i in odd heads (sheet items 5 and 6). Returns the processor of each chain.
    """
    index = np.arange(chains.chains)
    wave, place = index // processors, index % processors
    return np.where((wave % 2 == 1) & snake, processors - 1 - place, place)


def longest_first(chains: Chains) -> Longs:
    """Give the order of the chains by falling length, equal ones as they stand."""
    return np.argsort(-chains.lengths, kind="stable")


def dynamic(chains: Chains, processors: int, costs: Costs, tile: float) -> Longs:
    """Let each processor that becomes free take the next chain (sheet item 10).

    `tile` is the compute time of a tile. Of two that are free at the same time the lower number
    takes it. Every sum must take its shares in the order of the chains, or partly so that no
    chain waits for a later one; otherwise a processor may wait for a chain that nobody starts:
    then the rest of the chains are dealt in waves, and the simulator names the deadlock. Returns
    the processor of each chain.
    """
    tasks = chains.tasks
    before = _predecessors(chains)
    owner = np.repeat(np.arange(chains.chains), chains.lengths)
    part = costs.partition(processors).astype(np.int64)
    (result,) = TAKE(
        tasks, float(tile), float(costs.reduce), chains.starts, before, owner, part,
        float(costs.latency_local), float(costs.latency_remote), float(costs.join_latency),
        np.full(tasks, -1.0), np.full(tasks, -1), np.full(chains.chains, -1),
        np.zeros(processors), *(np.full(processors, -1) for _ in range(6)),
    )  # fmt: skip
    found = np.asarray(result, dtype=np.int64)
    return np.where(found < 0, np.arange(found.size) % processors, found)


def redealt(plan: Plan, way: str, costs: Costs) -> Plan:
    """Deal the chains of a plan again, in the order in which it starts them.

    A chain that waits for another comes after it, where there is such an order. `way` is `waves`,
    `dynamic` or `longest`; ranks stay as they are. Raises `DeadlockError` for a plan that cannot
    run.
    """
    start = simulate(plan, costs).start
    chain, processor = chain_numbers(plan), plan.processor()
    begins = np.ones(plan.tasks, dtype=bool)
    begins[1:] = (chain[1:] != chain[:-1]) | (processor[1:] != processor[:-1])
    first = np.flatnonzero(begins)
    chains = Chains(plan.head, plan.kv, plan.q, plan.rank, np.append(first, plan.tasks))
    chains = chains.take(_waiting_last(chains, start[first]))
    if way == "longest":
        chains = chains.take(longest_first(chains))
    about = plan.about | {"assign": way}
    if way == "waves":
        return chains.on_processors(in_waves(chains, plan.processors), plan.processors, about)
    tile = costs.tile(plan.about.get("schedule"))
    owner = dynamic(chains, plan.processors, costs, tile)
    return chains.on_processors(owner, plan.processors, about | {"costs": costs.named()})


def _waiting_last(chains: Chains, start: Floats) -> Longs:
    """Order chains by their start, each after those that it waits for (if that is possible)."""
    import networkx as nx

    before = _predecessors(chains)
    owner = np.repeat(np.arange(chains.chains), chains.lengths)
    later = np.flatnonzero(before >= 0)
    pairs = np.unique(owner[before[later]] * chains.chains + owner[later])
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(chains.chains))
    graph.add_edges_from(
        zip(*(part.tolist() for part in divmod(pairs, chains.chains)), strict=True)
    )
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    try:
        order = list(nx.lexicographical_topological_sort(graph, key=lambda k: (start[k], k)))
    except nx.NetworkXUnfeasible:  # chains that wait for one another, as under the shift
        return np.argsort(start, kind="stable")
    return np.array(order, dtype=np.int64)


def _predecessors(chains: Chains) -> Longs:
    ends = np.array([0, chains.tasks], dtype=np.int64)
    return predecessors(Plan(chains.head, chains.kv, chains.q, chains.rank, ends))


def _take(
    compute: Any, reduce: Any, starts: Any, before: Any, owner: Any, part: Any,
    local: Any, remote: Any, join: Any, end: Any, first_waiter: Any, result: Any,
    clock: Any, at: Any, last: Any, next_waiter: Any, ready: Any, heap: Any,
    joined: Any,
) -> Any:  # fmt: skip
    """Run all chains; `heap` holds the free processors, the one that is free first at its root.

    Processors that run are advanced until each waits for a chain that nobody has taken or is at
    its chain's end. Those that wait become free later than the first free one takes a chain, so
    that one is the next in time.
    """
    processors = len(clock)
    chains = len(starts) - 1
    free = processors
    for p in range(processors):
        heap[p] = p  # all free at 0, and in order: a heap already
    for chain in range(chains):
        if free == 0:
            break
        p = heap[0]
        free -= 1
        sift_down(heap, free, clock, heap[free])
        result[chain] = p
        at[p] = starts[chain]
        joined[p] = -1
        last[p] = starts[chain + 1]
        ready[0] = p
        count = 1
        while count > 0:
            count -= 1
            p = ready[count]
            t = at[p]
            now = clock[p]
            blocked = False
            while t < last[p]:
                turn = now + compute
                u = before[t]
                if u >= 0:
                    if joined[p] < 0:
                        turn += join
                    if end[u] < 0:
                        next_waiter[p] = first_waiter[u]
                        first_waiter[u] = p
                        blocked = True
                        break
                    other = result[owner[u]]
                    wait = 0.0
                    if other != p:
                        wait = local if part[other] == part[p] else remote
                    turn = max(turn, end[u] + wait)
                    joined[p] = 0
                now = turn + reduce
                end[t] = now
                w = first_waiter[t]
                while w >= 0:
                    ready[count] = w
                    count += 1
                    w = next_waiter[w]
                t += 1
            at[p] = t
            clock[p] = now
            if not blocked:
                k = free
                free += 1
                while k > 0:
                    parent = (k - 1) // 2
                    a = heap[parent]
                    if now < clock[a] or (now == clock[a] and p < a):
                        heap[k] = a
                        k = parent
                    else:
                        break
                heap[k] = p
    return (result,)


TAKE = Kernel(_take, helpers=(sift_down,))

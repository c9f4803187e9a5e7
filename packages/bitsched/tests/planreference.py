"""What the tests of plans share: shapes by name, and an independent reading of a plan as a DAG."""

import itertools
from collections import defaultdict

import networkx as nx
import numpy as np

from bitsched.costs import Costs
from bitsched.plan import Plan
from bitsched.shape import Shape, causal, full


def square(mask: str, n: int, heads: int) -> Shape:
    return Shape(heads, full(n, n) if mask == "full" else causal(n, n), mask=mask)


def dag(plan: Plan, costs: Costs, *, head_barrier: bool = False) -> nx.DiGraph:
    """Write the paper's graph down edge by edge: compute and reduce edges, then the zero ones."""
    graph = nx.DiGraph()
    folded = costs.register_penalty if plan.about.get("schedule") == "sym" else 0.0
    sums = defaultdict(dict)
    where = {}
    for p in range(plan.processors):
        tasks = range(int(plan.starts[p]), int(plan.starts[p + 1]))
        for t in tasks:
            graph.add_edge(("begin", t), ("computed", t), weight=costs.compute + folded)
            graph.add_edge(("turn", t), ("end", t), weight=costs.reduce)
            graph.add_edge(("computed", t), ("turn", t), weight=0)
            where[t] = p
            if plan.rank[t] >= 0:
                sums[plan.head[t], plan.q[t]][int(plan.rank[t])] = t
        for u, v in itertools.pairwise(tasks):
            graph.add_edge(("end", u), ("begin", v), weight=0)
    for ranks in sums.values():
        for a, b in itertools.pairwise(sorted(ranks)):
            u, v = ranks[a], ranks[b]
            graph.add_edge(("end", u), ("turn", v), weight=_delay(plan, costs, where[u], where[v]))
    if head_barrier:
        for t in range(plan.tasks):
            graph.add_edge(("end", t), ("ended", int(plan.head[t])), weight=0)
            for before in range(int(plan.head[t])):
                graph.add_edge(("ended", before), ("begin", t), weight=0)
    return graph


def _delay(plan: Plan, costs: Costs, one: int, other: int) -> float:
    if one == other:
        return 0.0
    part = [p * costs.partitions // plan.processors for p in (one, other)]
    return costs.latency_local if part[0] == part[1] else costs.latency_remote


def longest_path(graph: nx.DiGraph) -> float:
    return float(nx.dag_longest_path_length(graph))


def random_plan(seed: int, tasks: int, processors: int, *, runs: bool) -> Plan:
    """Deal random tiles to processors; with `runs` the ranks follow an order that can be run."""
    rng = np.random.default_rng(seed)
    cells = rng.choice(2 * 8 * 8, size=tasks, replace=False)
    head, kv, q = cells // 64, cells // 8 % 8, cells % 8
    processor = rng.integers(processors, size=tasks)
    rank = np.zeros(tasks, dtype=np.int32)
    for number in np.unique(head * 8 + q):
        same = np.flatnonzero(head * 8 + q == number)
        rank[same] = np.arange(same.size) if runs else rng.permutation(same.size)
    order = np.argsort(processor, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(processor, minlength=processors))])
    columns = (a[order].astype(np.int32) for a in (head, kv, q, rank))
    return Plan(*columns, starts)

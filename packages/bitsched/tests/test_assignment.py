"""Who takes which chain: against a plain event loop that looks at every task in order of time."""

import heapq

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planreference import square

from bitsched.assignment import dynamic, in_waves, longest_first, redealt
from bitsched.chains import Chains
from bitsched.costs import Costs
from bitsched.planning import make_plan
from bitsched.shape import Shape
from bitsched.simulation import simulate
from bitsched.walks import ascending, descending, in_queue_order, shortest_first


def by_events(chains: Chains, processors: int, costs: Costs) -> list[int]:
    """Give the processor of each chain, found by an event for every task."""
    added: dict[tuple[int, int, int], tuple[float, int]] = {}
    waiting: dict[tuple[int, int, int], list[tuple[float, int]]] = {}
    owner, following = [-1] * chains.chains, 0
    at, last = [0] * processors, [0] * processors
    part = costs.partition(processors)
    events = [(0.0, p) for p in range(processors)]
    while events:
        now, p = heapq.heappop(events)
        begin = now
        if at[p] == last[p]:
            if following == chains.chains:
                continue
            at[p], last[p] = chains.starts[following], chains.starts[following + 1]
            owner[following] = p
            following += 1
        t = at[p]
        name = (int(chains.head[t]), int(chains.q[t]), int(chains.rank[t]))
        turn = begin + costs.compute
        if name[2] > 0:
            due = (*name[:2], name[2] - 1)
            if due not in added:
                waiting.setdefault(due, []).append((begin, p))
                continue
            end, other = added[due]
            delay = costs.latency_local if part[p] == part[other] else costs.latency_remote
            turn = max(turn, end + (delay if other != p else 0))
        added[name] = (turn + costs.reduce, p)
        at[p] += 1
        heapq.heappush(events, (turn + costs.reduce, p))
        for event in waiting.pop(name, []):
            heapq.heappush(events, event)
    return owner


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 9), st.integers(1, 4), st.integers(1, 11), st.integers(1, 5),
    st.integers(0, 4), st.sampled_from([ascending, descending, shortest_first]), st.booleans(),
)  # fmt: skip
def test_a_free_processor_takes_the_next_chain(n, heads, processors, c, r, walk, longest) -> None:
    chains = walk(square("causal", n, heads))
    if longest:
        chains = in_queue_order(chains.take(longest_first(chains)))
        assert (np.diff(chains.lengths) <= 0).all()
    for costs in (Costs(c, r), Costs(c, r, 1, 3)):
        assert dynamic(chains, processors, costs, c).tolist() == by_events(
            chains, processors, costs
        )


def test_waves_give_an_sm_its_kv_tile_and_the_snake_its_mirror() -> None:
    chains = ascending(square("causal", 4, 2))
    assert in_waves(chains, 4).tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert in_waves(chains, 4, snake=True).tolist() == [0, 1, 2, 3, 3, 2, 1, 0]


@pytest.mark.parametrize("way", ["dynamic", "longest", "waves"])
def test_dealing_again_keeps_the_chains_and_gives_what_planning_gives(way: str) -> None:
    shape: Shape = square("causal", 8, 5)
    costs = Costs(4, 1)
    plan = make_plan(shape, "asc", 8, costs)
    again = redealt(plan, way, costs)
    assert sorted(zip(again.head, again.kv, again.q, again.rank, strict=True)) == sorted(
        zip(plan.head, plan.kv, plan.q, plan.rank, strict=True)
    )
    if way == "dynamic":
        direct = make_plan(shape, "asc", 8, costs, assign="dynamic")
        assert np.array_equal(again.kv, direct.kv)
        assert np.array_equal(again.head, direct.head)
        assert simulate(again, costs).makespan == simulate(direct, costs).makespan
    if way == "waves":
        assert np.array_equal(again.kv, plan.kv)

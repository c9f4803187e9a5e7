"""The simulator against networkx: the longest path of the graph that the plan means."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planreference import dag, longest_path, random_plan, square

from bitsched import kernel
from bitsched.costs import Costs
from bitsched.masks import make_shape
from bitsched.planning import make_plan
from bitsched.shape import Shape
from bitsched.simulation import DeadlockError, simulate
from bitsched.taskgraph import TaskGraph

COSTS = [Costs(5, 1), Costs(1, 2, 0.5, 1.25, 2, 0.25)]
SHAPES = {
    "full": square("full", 6, 3),
    "causal": square("causal", 6, 4),
    "odd": square("causal", 5, 2),
    "window": make_shape("window:3,1", n="9", heads=2),
    "groups": make_shape("causal", n="6x4", heads=4, kv_heads=2),
    "blocks": Shape(3, np.random.default_rng(1).random((5, 7)) < 0.5, mask="blocks"),
}


def adds_up(run, graph) -> bool:
    """Walk the critical path: what each task adds to it must make the makespan."""
    total, before = 0.0, None
    for t in run.critical_path.tolist():
        turn = run.end[t] - graph.reduce[t]
        if before is not None and turn > run.compute_end[t]:
            assert graph.before[t] == before
            total += (0 if graph.latency is None else graph.latency[t]) + graph.reduce[t]
        else:
            assert run.start[t] == (0 if before is None else run.end[before])
            total += graph.compute[t] + graph.reduce[t]
        before = t
    return total == run.makespan


@pytest.mark.parametrize("costs", [pytest.param(COSTS[0], marks=pytest.mark.slow), COSTS[1]])
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("schedule", ["asc", "desc", "spt", "shift", "sym", "list", "atomic"])
def test_every_schedule_takes_its_longest_path(name: str, schedule: str, costs: Costs) -> None:
    if (schedule, name) not in {("shift", "full"), ("sym", "causal"), ("sym", "odd")} and (
        schedule in ("shift", "sym")
    ):
        return
    for sms in (4, SHAPES[name].n_kv):
        plan = make_plan(SHAPES[name], schedule, sms, costs)
        run = simulate(plan, costs)
        assert run.makespan == longest_path(dag(plan, costs))
        assert adds_up(run, run.graph)


@pytest.mark.parametrize("schedule", ["asc", "desc", "spt"])
def test_a_barrier_between_heads_is_an_edge_between_all_their_tasks(schedule: str) -> None:
    for costs in COSTS:
        plan = make_plan(SHAPES["causal"], schedule, 6, costs)
        run = simulate(plan, costs, head_barrier=True)
        assert run.makespan == longest_path(dag(plan, costs, head_barrier=True))
        assert adds_up(run, run.graph)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 6), st.booleans())
def test_random_plans_take_their_longest_path_or_deadlock_on_a_cycle(
    seed: int, tasks: int, processors: int, runs: bool
) -> None:
    plan, costs = random_plan(seed, tasks, processors, runs=runs), COSTS[seed % 2]
    graph = dag(plan, costs)
    if nx.is_directed_acyclic_graph(graph):
        assert simulate(plan, costs).makespan == longest_path(graph)
        return
    with pytest.raises(DeadlockError) as caught:
        simulate(plan, costs)
    stuck = set().union(*(nx.descendants(graph, n) | {n} for n in _on_cycles(graph)))
    assert caught.value.cycle
    assert set(caught.value.waiting) <= {t for kind, t in stuck if kind in ("end", "turn")}


def _on_cycles(graph: nx.DiGraph) -> list:
    return [n for part in nx.strongly_connected_components(graph) if len(part) > 1 for n in part]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 5))
def test_graphs_with_further_edges_and_phases(seed: int, tasks: int, processors: int) -> None:
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.integers(tasks + 1, size=processors - 1))
    starts = np.concatenate([[0], cuts, [tasks]])
    # Any order of the tasks that keeps to the processors' own: edges follow it, so it can run.
    when = np.empty(tasks)
    for a, b in itertools.pairwise(starts):
        when[a:b] = np.sort(rng.random(b - a))
    order = np.argsort(when)
    pairs = [(u, v) for i, u in enumerate(order) for v in order[i + 1 :] if rng.random() < 0.1]
    before = np.full(tasks, -1)
    for i in range(1, tasks):
        if rng.random() < 0.5:
            before[order[i]] = order[rng.integers(i)]
    phase = np.empty(tasks, dtype=np.int64)
    phase[order] = np.sort(rng.integers(3, size=tasks))
    compute, reduce, latency = rng.integers(0, 9, size=(3, tasks)).astype(float)
    edges = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    task_graph = TaskGraph(compute, reduce, starts, before, latency, edges, phase)
    graph = nx.DiGraph()
    for t in range(tasks):
        graph.add_edge(("begin", t), ("computed", t), weight=compute[t])
        graph.add_edge(("computed", t), ("turn", t), weight=0)
        graph.add_edge(("turn", t), ("end", t), weight=reduce[t])
        if before[t] >= 0:
            graph.add_edge(("end", before[t]), ("turn", t), weight=latency[t])
        for u in np.flatnonzero(phase < phase[t]):
            graph.add_edge(("end", u), ("begin", t), weight=0)
    for a, b in itertools.pairwise(starts):
        pairs += [(t, t + 1) for t in range(a, b - 1)]
    graph.add_edges_from((("end", u), ("begin", v), {"weight": 0}) for u, v in pairs)
    run = simulate(task_graph)
    assert run.makespan == longest_path(graph)
    assert adds_up(run, task_graph)


def test_a_task_of_no_length_that_a_barrier_holds_up_is_not_its_own_reason() -> None:
    """Its end is the time at which its phase opens, too: the path once went round for ever."""
    none = np.zeros(2)
    graph = TaskGraph(
        np.array([0.0, 2.0]), none, np.array([0, 1, 2]), np.array([-1, -1]), phase=np.array([1, 0])
    )
    run = simulate(graph)
    assert run.end.tolist() == [2, 2]
    assert run.critical_path.tolist() == [1, 0]


@pytest.mark.slow
def test_compiled_and_plain_runs_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    for least in (10**9, 0):
        monkeypatch.setattr(kernel, "COMPILED_FROM", least)
        for costs in COSTS:
            plans = [make_plan(SHAPES["causal"], name, 7, costs) for name in ("asc", "list")]
            found = [simulate(plan, costs).end.tolist() for plan in plans]
            found.append(simulate(plans[0], costs, head_barrier=True).end.tolist())
            runs.append([found, [plan.kv.tolist() for plan in plans]])
    assert runs[:2] == runs[2:]

"""The exact optimum: against closed forms, brute force, and the simulator."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("ortools")

from bitsched.checking import check, faults
from bitsched.cli import app
from bitsched.costs import Costs
from bitsched.exact import find_optimum
from bitsched.lowerbounds import bounds, least_load
from bitsched.plan import Plan
from bitsched.planning import make_plan
from bitsched.schema import schema
from bitsched.shape import Shape, causal, full
from bitsched.simulation import simulate
from papercuts.errors import NegativeResult, UsageError


def shape(mask, n, heads, group=1):
    return Shape(heads, causal(n, n) if mask == "causal" else full(n, n), group, mask)


@pytest.mark.parametrize("n", [1, 2, 3, 4, pytest.param(5, marks=pytest.mark.slow), 6])
@pytest.mark.parametrize("mask", ["causal", "full"])
@pytest.mark.parametrize(("c", "r"), [(5, 1), (1, 3)])
def test_the_optimum_is_the_closed_form(mask, n, c, r):
    """Sheet check 3: nothing is faster, and a schedule is as fast; proved from scratch."""
    closed = 2 * (n + 1) * (c + r) / 2 if mask == "causal" else 2 * n * (c + r)
    found = find_optimum(shape(mask, n, 2), n, compute=c, reduce=r, count_tiles=False)
    assert (found.makespan, found.bound, found.proved) == (closed, closed, True)
    assert simulate(found.plan, Costs(c, r)).makespan == closed
    findings = check(found.plan)
    assert [f.verdict for f in findings if f.name != "lemma"] == ["yes"] * 4
    assert faults(found.plan, findings) == []


def finish(lists, before, c, r):
    """Run lists of tasks, one a processor, to the end; None where they wait for ever."""
    end, clock, place = {}, [0] * len(lists), [0] * len(lists)
    moved = True
    while moved:
        moved = False
        for p, tasks in enumerate(lists):
            while place[p] < len(tasks):
                task = tasks[place[p]]
                if before.get(task) is not None and before[task] not in end:
                    break
                clock[p] = max(clock[p] + c, end.get(before.get(task), 0)) + r
                end[task] = clock[p]
                place[p] += 1
                moved = True
    return max(clock) if len(end) == sum(map(len, lists)) else None


def every_schedule(active, heads, group, processors, c, r):
    """Give the least makespan over all chains' orders, tiles' orders and orders of addition."""
    tasks = [(h, i, j) for h in range(heads) for i, j in np.argwhere(active).tolist()]
    chains, sums = {}, {}
    for task in tasks:
        chains.setdefault((task[0] // group, task[1]), []).append(task)
        sums.setdefault((task[0], task[2]), []).append(task)
    orders = []
    for owner in itertools.product(range(processors), repeat=len(chains)):
        for queue in itertools.permutations(chains):
            dealt = [
                [k for k in queue if owner[list(chains).index(k)] == p] for p in range(processors)
            ]
            if dealt not in orders:
                orders.append(dealt)
    best = None
    walks = [list(itertools.permutations(chain)) for chain in chains.values()]
    additions = [list(itertools.permutations(tiles)) for tiles in sums.values()]
    for walk in itertools.product(*walks):
        by_chain = dict(zip(chains, walk, strict=True))
        for adding in itertools.product(*additions):
            before = {b: a for tiles in adding for a, b in itertools.pairwise(tiles)}
            for dealt in orders:
                lists = [[t for k in queue for t in by_chain[k]] for queue in dealt]
                time = finish(lists, before, c, r)
                if time is not None and (best is None or time < best):
                    best = time
    return best


@pytest.mark.parametrize(
    ("active", "heads", "group", "processors", "c", "r"),
    [
        (causal(2, 2), 1, 1, 2, 5, 1),
        (causal(2, 2), 1, 1, 2, 1, 4),
        (full(2, 2), 1, 1, 2, 1, 4),
        (full(2, 2), 1, 1, 3, 2, 3),
        (full(3, 1), 1, 1, 3, 1, 2),
        (full(3, 1), 1, 1, 2, 3, 1),
        (np.array([[1, 1, 0], [0, 1, 1]], dtype=bool), 1, 1, 2, 1, 5),
        (causal(2, 2), 2, 2, 2, 1, 3),
        (causal(2, 2), 1, 1, 2, 0, 2),
        (causal(2, 2), 1, 1, 2, 2, 0),
    ],
)
def test_the_optimum_is_that_of_brute_force(active, heads, group, processors, c, r):
    found = find_optimum(Shape(heads, active, group, "blocks"), processors, compute=c, reduce=r)
    assert found.proved
    assert found.makespan == every_schedule(active, heads, group, processors, c, r)
    assert simulate(found.plan, Costs(c, r)).makespan == found.makespan


@settings(max_examples=30)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(1, 3))
def test_the_counting_bound_never_passes_the_best_deal(sizes, processors):
    best = min(
        max(sum(s for s, p in zip(sizes, owner, strict=True) if p == q) for q in range(processors))
        for owner in itertools.product(range(processors), repeat=len(sizes))
    )
    assert max(-(-sum(sizes) // processors), max(sizes)) <= least_load(sizes, processors) <= best


SMALL = [
    (shape("causal", 5, 2), 5),
    (shape("full", 3, 2), 4),
    (shape("causal", 4, 4, 2), 3),
    (shape("causal", 3, 1), 2),
    (Shape(2, np.array([[1, 1, 0, 1], [0, 1, 1, 0], [1, 1, 1, 1]], dtype=bool), 1, "blocks"), 2),
]


@pytest.mark.parametrize(("target", "processors"), SMALL)
@pytest.mark.parametrize(("c", "r"), [(5, 1), (1, 3)])
def test_the_bounds_never_pass_the_optimum(target, processors, c, r):
    """From scratch: the solver is not told of the bound that it is held against."""
    least = bounds(target, Costs(c, r), processors)
    found = find_optimum(target, processors, compute=c, reduce=r, count_tiles=False)
    assert found.proved
    assert least.best <= found.makespan
    assert max(least.work, least.chain) <= least.load
    assert bounds(found.plan, Costs(c, r)) == least


def test_the_load_bound_is_the_optimum_where_the_work_bound_is_not():
    least = bounds(shape("causal", 8, 3), Costs(5, 1), 8)
    assert (least.work, least.load, least.best, least.binding) == (81, 84, 84, "load")
    made = make_plan(shape("causal", 8, 3), "exact", 8, time_limit_s=20)
    assert (made.about["makespan"], made.about["bound"]) == (84, 84)


@settings(max_examples=30)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(1, 3))
def test_the_bound_of_times_is_that_of_tiles_without_the_rounding(sizes, processors):
    times = np.array(sizes) / 8
    found = least_load(times, processors) * 8
    assert found <= least_load(sizes, processors) == max(found, -(-sum(sizes) // processors))


def test_counting_sees_what_the_work_bound_does_not():
    assert least_load([6] * 18, 4) == 30  # one of four processors has five of the 18 chains
    found = find_optimum(shape("full", 6, 3), 4, compute=5, reduce=1)
    assert (found.makespan, found.proved) == (180, True)  # the work bound is 162


def test_decimal_costs_are_taken_at_their_word():
    found = find_optimum(shape("causal", 4, 2), 4, compute=0.3, reduce=0.05)
    assert (found.makespan, found.bound) == (1.75, 1.75)


def test_the_same_problem_gives_the_same_plan():
    first, second = (
        find_optimum(shape("causal", 5, 2), 5, compute=5, reduce=1, seed=3).plan for _ in range(2)
    )
    for name in ("head", "kv", "q", "rank", "starts"):
        assert np.array_equal(getattr(first, name), getattr(second, name))


def test_the_limit_leaves_the_best_known_plan_and_a_bound():
    hint = make_plan(shape("causal", 8, 3), "list", 8)
    found = find_optimum(
        shape("causal", 8, 3),
        8,
        compute=5,
        reduce=1,
        hint=hint,
        count_tiles=False,
        time_limit_s=0.1,
    )
    assert not found.proved
    assert found.bound <= 84 <= found.makespan <= simulate(hint, Costs(5, 1)).makespan


def test_make_plan_exact_is_never_slower_than_the_named_ones():
    odd = Shape(4, np.array([[1, 1, 1, 0], [0, 1, 1, 1], [1, 0, 1, 1]], dtype=bool), 2, "blocks")
    exact, auto = make_plan(odd, "exact", 3), make_plan(odd, "auto", 3)
    assert simulate(exact).makespan <= simulate(auto).makespan
    assert exact.about["proved"] is True
    assert exact.about["bound"] == simulate(exact).makespan
    assert faults(exact, check(exact)) == []


@pytest.mark.parametrize(("c", "r"), [(-1, 1), (0, 0), (float("nan"), 1), (1, float("inf"))])
def test_wrong_costs(c, r):
    with pytest.raises(UsageError, match=r"c |r "):
        find_optimum(shape("full", 2, 1), 2, compute=c, reduce=r)


def test_costs_without_a_common_measure():
    with pytest.raises(UsageError, match="no common measure"):
        find_optimum(shape("full", 2, 1), 2, compute=1e13, reduce=1e-9)


def test_a_plan_is_a_plan():
    found = find_optimum(shape("causal", 3, 1, 1), 5, compute=5, reduce=1)
    assert isinstance(found.plan, Plan)
    assert found.plan.processors == 5


def test_prove(capsys):
    assert app.run(["prove", "--n", "4", "--heads", "2"]) == 0
    said = capsys.readouterr()
    record = json.loads(said.out)
    pytest.importorskip("jsonschema").validate(record, schema())
    assert record | {"wall_s": 0} == {
        "mask": "causal", "n": 4, "heads": 2, "processors": 4, "c": 5.0, "r": 1.0,
        "makespan": 30.0, "bound": 30.0, "gap": 1.0, "verdict": "yes", "closed_form": 30.0,
        "equal": True, "schedule": "sym", "from_scratch": False, "wall_s": 0, "seed": 0,
    }  # fmt: skip
    assert "30 is the least makespan, equal to the closed form m(n+1)(c+r)/2 = 30" in said.err


def test_prove_where_the_closed_form_is_out_of_reach(capsys):
    """One head: its longest chain takes n (c + r), more than the work divided evenly."""
    assert app.run(["prove", "--n", "4", "--heads", "1", "--format", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["verdict"], record["makespan"], record["equal"]) == ("yes", 24.0, False)


def test_prove_short_of_time_prints_what_it_has(capsys, monkeypatch):
    from bitsched import proving

    def hurried(*args, **options):
        return find_optimum(*args, **options | {"count_tiles": False, "time_limit_s": 0.1})

    monkeypatch.setattr(proving, "find_optimum", hurried)
    assert app.run(["prove", "--n", "8", "--heads", "3"]) == 1
    said = capsys.readouterr()
    record = json.loads(said.out)
    assert record["verdict"] == "undecided"
    assert record["bound"] <= 84 <= record["makespan"]
    assert "not proved within" in said.err
    assert "lies between" in said.err


def test_the_counted_bound_holds_however_short_the_search():
    """The best named plan takes what the count of tiles says: nothing is left to search."""
    target = shape("causal", 8, 3)
    hint = make_plan(target, "list", 8)
    words = {"compute": 5, "reduce": 1, "hint": hint, "time_limit_s": 1e-9}
    found = find_optimum(target, 8, **words)
    assert (found.makespan, found.bound, found.proved) == (84, 84, True)
    assert not find_optimum(target, 8, count_tiles=False, **words).proved


def test_no_plan_in_time():
    with pytest.raises(NegativeResult, match="no plan found within 1e-09 s"):
        find_optimum(shape("full", 6, 2), 6, compute=5, reduce=1, time_limit_s=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "heads", "mask"), [(12, 2, "causal"), (12, 2, "full"), (16, 4, "causal")]
)
def test_larger_ones_from_scratch(n, heads, mask):
    found = find_optimum(
        shape(mask, n, heads), n, compute=5, reduce=1, count_tiles=False, time_limit_s=300
    )
    assert found.proved
    assert found.makespan == (heads * (n + 1) * 3 if mask == "causal" else heads * n * 6)

"""`check` refuses what is wrong with a plan, and names the tile."""

from dataclasses import replace

import numpy as np
import pytest
from planreference import square

from bitsched.checking import Finding, check, faults
from bitsched.plan import Plan
from bitsched.planning import make_plan

SHIFT = make_plan(square("full", 4, 2), "shift", 4)
ASC = make_plan(square("causal", 4, 2), "asc", 4)


def named(plan: Plan, name: str) -> Finding:
    return next(f for f in check(plan) if f.name == name)


def without(plan: Plan, task: int) -> Plan:
    columns = {c: np.delete(getattr(plan, c), task) for c in ("head", "kv", "q", "rank")}
    starts = plan.starts - (plan.starts > task)
    return replace(plan, starts=starts, **columns)


def swapped(plan: Plan, column: str, a: int, b: int) -> Plan:
    values = getattr(plan, column).copy()
    values[[a, b]] = values[[b, a]]
    return replace(plan, **{column: values})


def moved(plan: Plan, a: int, b: int) -> Plan:
    for column in ("head", "kv", "q", "rank"):
        plan = swapped(plan, column, a, b)
    return plan


def task(plan: Plan, head: int, kv: int, q: int) -> int:
    return int(np.flatnonzero((plan.head == head) & (plan.kv == kv) & (plan.q == q))[0])


@pytest.mark.parametrize("plan", [SHIFT, ASC])
def test_a_sound_plan_passes(plan: Plan) -> None:
    assert not faults(plan, check(plan))
    assert {f.name: f.verdict for f in check(plan)} == {
        "tiles": "yes", "chains": "yes", "order": "yes", "deadlock": "yes",
        "lemma": "yes" if plan is SHIFT else "no",
    }  # fmt: skip


def test_two_swapped_ranks_of_one_sum_break_the_lemma() -> None:
    a, b = task(SHIFT, 1, 2, 3), task(SHIFT, 1, 0, 3)
    plan = swapped(SHIFT, "rank", a, b)
    (fault,) = (f for f in faults(plan, check(plan)) if f.name == "lemma")
    # KV tiles 3, 2, 1, 0 add at Q tile 3 in this order; now 3, 0, 1, 2.
    assert [1, 3, 0, 1] in fault.edges
    assert [1, 3, 1, 2] in fault.edges
    assert "head 1 KV 1 Q 3 waits for KV 0" in fault.message or "head 1 KV 2" in fault.message


def test_two_swapped_ranks_of_different_sums_are_no_order() -> None:
    plan = swapped(SHIFT, "rank", task(SHIFT, 1, 2, 3), task(SHIFT, 1, 2, 0))
    fault = named(plan, "order")
    assert fault.verdict == "no"
    # Their ranks were 1 and 2: now two tiles of each sum have the same rank.
    assert fault.tiles == [[1, 1, 3], [1, 2, 3], [1, 2, 0], [1, 3, 0]]
    assert fault.message.startswith("ranks of 2 dQ tiles are not 0, 1, 2, ...: head 1 KV 1 Q 3")


def test_a_missing_tile_is_named() -> None:
    plan = without(ASC, task(ASC, 1, 2, 3))
    fault = named(plan, "tiles")
    assert (fault.verdict, fault.tiles) == ("no", [[1, 2, 3]])
    assert fault.message == "1 tile missing: head 1 KV 2 Q 3"


def test_a_tile_that_is_there_twice_and_one_outside_the_mask_are_named() -> None:
    q = ASC.q.copy()
    q[task(ASC, 0, 0, 1)] = 2
    q[task(ASC, 1, 3, 3)] = 0
    fault = named(replace(ASC, q=q), "tiles")
    assert fault.tiles == [[0, 0, 1], [1, 3, 3], [0, 0, 2], [1, 3, 0]]
    assert fault.message == (
        "2 tiles missing: head 0 KV 0 Q 1, head 1 KV 3 Q 3; "
        "1 tile there twice: head 0 KV 0 Q 2; 1 tile not in the mask: head 1 KV 3 Q 0"
    )


def test_a_chain_on_two_processors_is_split() -> None:
    starts = SHIFT.starts.copy()
    starts[1] -= 1  # the last tile of SM 0 goes to SM 1
    fault = named(replace(SHIFT, starts=starts), "chains")
    assert (fault.verdict, fault.count) == ("no", 1)
    assert fault.tiles == [[1, 0, 3]]
    assert "head 1 KV 0 Q 3" in fault.message


def test_a_chain_with_another_between_is_split() -> None:
    plan = moved(SHIFT, 3, 4)  # the last tile of head 0 and the first of head 1
    assert named(plan, "chains").count == 2


def test_a_cycle_is_a_deadlock_with_its_tiles() -> None:
    """Two SMs, two sums: each SM first adds to what the other must add to before it."""
    zero = np.zeros(4, dtype=np.int32)
    plan = Plan(
        zero, np.array([0, 0, 1, 1], np.int32), np.array([0, 1, 1, 0], np.int32),
        np.array([1, 0, 1, 0], np.int32), np.array([0, 2, 4]),
    )  # fmt: skip
    fault = named(plan, "deadlock")
    assert fault.verdict == "no"
    assert sorted(fault.tiles) == [[0, 0, 0], [0, 1, 1]]
    assert "head 0 KV 0 Q 0" in fault.message
    assert "head 0 KV 1 Q 1" in fault.message
    assert named(plan, "tiles").verdict == "undecided"  # it does not say what it should hold


def test_atomics_are_refused() -> None:
    plan = make_plan(square("causal", 4, 2), "atomic", 4)
    assert {f.name: f.verdict for f in check(plan)} == {
        "tiles": "yes", "chains": "yes", "order": "no", "deadlock": "yes", "lemma": "undecided",
    }  # fmt: skip


def test_the_lemma_condemns_where_it_was_promised_or_with_strict() -> None:
    findings = check(ASC)
    assert not faults(ASC, findings)
    assert [f.name for f in faults(ASC, findings, strict=True)] == ["lemma"]
    promised = replace(ASC, about=ASC.about | {"conflict_free": True})
    assert [f.name for f in faults(promised, check(promised))] == ["lemma"]


def test_chains_of_grouped_heads_hold_the_whole_group() -> None:
    from bitsched.masks import make_shape

    plan = make_plan(make_shape("causal", n="4", heads=4, kv_heads=2), "asc", 4)
    assert named(plan, "chains").message == "8 chains, each on one processor"
    alone = replace(plan, about=plan.about | {"kv_heads": 4})
    assert named(alone, "chains").message == "16 chains, each on one processor"

"""What holds for every plan of every schedule: whole, runnable, above the bounds, auto the best."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planreference import square

from bitsched.checking import check, faults
from bitsched.costs import Costs
from bitsched.lowerbounds import bounds
from bitsched.masks import make_shape
from bitsched.planning import candidates, make_plan
from bitsched.shape import Shape
from bitsched.simulation import simulate
from papercuts.errors import UsageError


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    group, kv_heads = draw(st.sampled_from([1, 1, 2, 3])), draw(st.integers(1, 3))
    n_kv, n_q = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    kind = draw(st.sampled_from(["full", "causal", "square", "window", "blocks"]))
    if kind == "blocks":
        rng = np.random.default_rng(draw(st.integers(0, 10**6)))
        active = rng.random((n_kv, n_q)) < draw(st.sampled_from([0.2, 0.5, 0.9]))
        active[rng.integers(n_kv), rng.integers(n_q)] = True
        return Shape(group * kv_heads, active, group, "blocks")
    words = {"heads": group * kv_heads, "kv_heads": kv_heads}
    if kind == "square":
        return make_shape("causal", n=str(n_kv), **words)
    mask = f"window:{draw(st.integers(0, 4))},{draw(st.integers(0, 4))}"
    return make_shape(mask if kind == "window" else kind, n=f"{n_q}x{n_kv}", **words)


costs = st.builds(
    Costs, st.integers(1, 8), st.integers(0, 8), st.integers(0, 3), st.integers(0, 5),
)  # fmt: skip


def sound(shape: Shape, sms: int, costs: Costs) -> None:
    """Every candidate passes `check` and keeps to the bounds; `auto` is as fast as the fastest."""
    best = simulate(make_plan(shape, "auto", sms, costs), costs).makespan
    least = bounds(shape, costs, sms)
    for plan in candidates(shape, sms, costs):
        assert not faults(plan, check(plan, shape)), (plan.about, check(plan, shape))
        run = simulate(plan, costs)
        assert plan.processors == sms
        assert run.makespan >= run.bounds.best - 1e-9
        assert run.makespan >= least.best - 1e-9
        assert best <= run.makespan


@settings(max_examples=10, deadline=None)
@given(shapes(), st.integers(1, 9), costs)
def test_every_candidate_is_sound_and_auto_is_never_slower(
    shape: Shape, sms: int, costs: Costs
) -> None:
    sound(shape, sms, costs)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(shapes(), st.integers(1, 9), costs)
def test_every_candidate_is_sound_on_many_shapes(shape: Shape, sms: int, costs: Costs) -> None:
    sound(shape, sms, costs)


@settings(max_examples=20, deadline=None)
@given(shapes(), st.integers(1, 9))
def test_an_open_order_takes_every_tile_and_waits_for_nothing(shape: Shape, sms: int) -> None:
    plan = make_plan(shape, "atomic", sms)
    assert [f.name for f in faults(plan, check(plan, shape))] == ["order"]
    assert simulate(plan).stalled.max() == 0


@pytest.mark.parametrize(("n", "m"), [(4, 2), (6, 2), (8, 4), (12, 2)])
def test_list_is_at_most_one_addition_above_the_optimum(n: int, m: int) -> None:
    for mask, tiles in (("causal", m * (n + 1) / 2), ("full", m * n)):
        run = simulate(make_plan(square(mask, n, m), "list", n), Costs(5, 1))
        assert tiles * 6 <= run.makespan <= tiles * 6 + (mask == "causal")


def test_list_comes_near_the_work_bound_where_no_closed_form_is_known() -> None:
    window = make_shape("window:511,0", seqlen="4096", block="64x128", heads=4, kv_heads=2)
    rng = np.random.default_rng(3)
    blocks = Shape(8, rng.random((24, 40)) < 0.4, mask="blocks")
    for shape, sms, most in ((window, 12, 1.07), (blocks, 13, 1.07)):
        assert simulate(make_plan(shape, "list", sms)).gap < most


def test_bounds_by_hand() -> None:
    shape = make_shape("causal", n="4", heads=2, kv_heads=1)
    found = bounds(shape, Costs(5, 1), 3)
    # 20 tiles; the longest chain is KV tile 0 of two heads; Q tile 3 sums four shares.
    assert (found.work, found.chain, found.reduction) == (40.0, 48.0, 9.0)
    assert (found.best, found.binding) == (48.0, "chain")
    plan = make_plan(shape, "asc", 3)
    assert simulate(plan, Costs(5, 1)).bounds == found


def test_register_penalty_makes_descending_beat_symmetric() -> None:
    """The paper's reversal at head width 128 (sheet item 11), as far as the model goes."""
    shape = square("causal", 16, 8)
    for penalty in (0.0, 0.5):
        costs = Costs(5, 1, register_penalty=penalty)
        times = make_plan(shape, "auto", 16, costs, assign="waves").about["auto"]
        assert (times["sym"] < times["desc"]) is (penalty == 0.0)


def test_latency_well_above_c_makes_shift_lose_to_ascending() -> None:
    """The paper's reversal at 16,384 tokens: each step of the shift waits for another SM."""
    shape = square("full", 32, 4)
    costs = Costs(5, 1, latency_local=9, latency_remote=9)
    times = {
        name: simulate(make_plan(shape, name, 32, costs), costs).makespan
        for name in ("shift", "asc")
    }
    assert times["shift"] > 4 * 32 * 6
    assert times["shift"] > times["asc"]


@pytest.mark.parametrize(
    ("shape", "schedule", "sms", "message"),
    [
        (square("causal", 4, 2), "shift", 4, "full mask"),
        (square("full", 4, 2), "sym", 4, "causal mask"),
        (square("causal", 8, 2), "sym", 3, "4 processors or more"),
        (square("causal", 8, 2), "swirl", 3, "no schedule 'swirl'"),
        (square("causal", 8, 2), "asc", 0, "at least one"),
    ],
)
def test_a_schedule_that_does_not_apply_says_why(
    shape: Shape, schedule: str, sms: int, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        make_plan(shape, schedule, sms)  # type: ignore[arg-type]

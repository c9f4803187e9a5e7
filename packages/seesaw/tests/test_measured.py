import logging
from collections.abc import Sequence

import numpy as np
import pytest

from papercuts.errors import DataError, UsageError
from seesaw.curve import LrCurve, Unit
from seesaw.measured import plan_from_curve, schedule_from_curve
from seesaw.planner import make_plan
from seesaw.schedule import make_schedule
from seesaw.summary import schedule_of


def curve(at: Sequence[float], lr: Sequence[float], unit: Unit = "steps") -> LrCurve:
    lines = np.arange(len(at)) + 11
    return LrCurve(np.asarray(at, float), np.asarray(lr, float), unit, lines, "run.csv")


def logged(base: str, steps: int = 2000, every: int = 1, first: int = 0) -> LrCurve:
    """Log a schedule as a trainer does: at step s the rate of step s."""
    schedule = make_schedule(base, tokens=steps)
    at = np.arange(first, steps, every)
    return curve(at.tolist(), (3e-3 * schedule.ratio(at)).tolist())


@pytest.mark.parametrize("base", ["cosine", "linear", "wsd:0.4", "step:0.5@0.4,0.7", "poly:2"])
@pytest.mark.parametrize("every", [1, 10])
def test_a_logged_schedule_gives_the_plan_of_its_formula(base: str, every: int) -> None:
    made = plan_from_curve(logged(base, every=every), batch=64, seq_len=16, cut=2.0)
    formula = make_plan(lr=3e-3, batch=64, seq_len=16, tokens=2000 * 64 * 16, base=base, cut=2.0)
    assert made.total_tokens == formula.total_tokens
    assert made.warmup_tokens == pytest.approx(formula.warmup_tokens, abs=every * 64 * 16)
    assert made.start_ratio == pytest.approx(0.1, abs=1e-9)
    assert [p.batch for p in made.phases] == [p.batch for p in formula.phases]
    assert [p.lr for p in made.phases] == pytest.approx([p.lr for p in formula.phases])
    for a, b in zip(made.phases, formula.phases, strict=True):
        assert abs(a.start_step - b.start_step) <= every + 1


def test_steps_alone_count_sequences_as_tokens() -> None:
    made = plan_from_curve(logged("cosine"), batch=512, cut=2.0)
    assert (made.seq_len, made.total_tokens) == (1, 2000 * 512)
    longer = plan_from_curve(logged("cosine"), batch=512, seq_len=1024, cut=2.0)
    assert [p.steps for p in made.phases] == [p.steps for p in longer.phases]


def test_a_curve_over_tokens() -> None:
    made = plan_from_curve(
        curve([0, 1000, 2000], [1.0, 0.5, 0.25], "tokens"), batch=2, seq_len=10, cut=2.0
    )
    assert made.total_tokens == 3000  # one interval past the last point of a log that starts at 0
    assert [p.start_token for p in made.phases] == [0, 1000, 2000]
    with pytest.raises(UsageError, match="name seq_len"):
        plan_from_curve(curve([1, 2], [1.0, 0.5], "tokens"), batch=2)


def test_the_length_of_the_run() -> None:
    from_0 = schedule_from_curve(curve([0, 5, 10], [1, 0.5, 0.2]), batch=1)
    assert from_0.total_tokens == 15
    from_5 = schedule_from_curve(curve([5, 10, 15], [1, 0.5, 0.2]), batch=1)
    assert from_5.total_tokens == 15
    given = schedule_from_curve(curve([5, 10, 15], [1, 0.5, 0.2]), batch=1, tokens=40)
    assert given.total_tokens == 40
    assert given.ratio([15, 30, 40]) == pytest.approx([0.2, 0.2, 0.2])
    with pytest.raises(UsageError, match="must not end before"):
        schedule_from_curve(curve([5, 10, 15], [1, 0.5, 0.2]), batch=1, tokens=14)


def test_jitter_is_smoothed_but_a_rise_is_not() -> None:
    lr = [1.0, 1.0, 0.99999, 1.00001, 0.8, 0.80002, 0.5]
    schedule = schedule_from_curve(curve(range(1, 8), lr), batch=10)
    assert schedule.warmup_tokens == 0
    assert np.all(np.diff(schedule.ratio(np.arange(71))) <= 0.0)
    lr[5] = 0.81
    with pytest.raises(DataError, match=r"run.csv:16: lr rises to 0.81 after 0.8"):
        schedule_from_curve(curve(range(1, 8), lr), batch=10)
    assert schedule_from_curve(curve(range(1, 8), lr), batch=10, jitter=0.02).final_ratio < 0.6


def test_the_rise_is_the_warmup() -> None:
    schedule = schedule_from_curve(curve([0, 1, 2, 3, 4], [0.2, 0.6, 1.0, 1.0, 0.5]), batch=100)
    assert (schedule.warmup_tokens, schedule.start_ratio) == (200, pytest.approx(0.2))
    late = schedule_from_curve(curve([1, 2, 3, 4], [0.6, 1.0, 1.0, 0.5]), batch=100)
    assert (late.warmup_tokens, late.start_ratio) == (200, pytest.approx(0.2))


def test_a_point_logged_twice_counts_once() -> None:
    made = schedule_from_curve(curve([1, 1, 2, 3], [1.0, 1.0, 0.5, 0.25]), batch=10)
    assert made.ratio([10, 20, 30]) == pytest.approx([1.0, 0.5, 0.25])


def test_the_rows_after_a_restart_win() -> None:
    whole = logged("cosine", every=10)
    steps = np.concatenate([np.arange(0, 1430, 10), np.arange(1340, 1600, 10)])
    steps = np.concatenate([steps, np.arange(1345, 2000, 10)])  # beside the steps of before
    lr = 3e-3 * make_schedule("cosine", tokens=2000).ratio(steps)
    schedule = schedule_from_curve(curve(steps.tolist(), lr.tolist()), batch=8)
    expected = schedule_from_curve(whole, batch=8)
    assert schedule.total_tokens == (1995 + 10) * 8
    tokens = np.arange(0, 1990) * 8
    assert schedule.ratio(tokens) == pytest.approx(expected.ratio(tokens), abs=1e-4)
    later = [1.0, 0.9, 0.5, 0.9, 0.7, 0.2]
    replaced = schedule_from_curve(curve([10, 20, 30, 20, 30, 40], later), batch=1)
    assert replaced.ratio([20, 30, 40]) == pytest.approx([0.9, 0.7, 0.2])


def test_a_restart_at_another_learning_rate_is_none() -> None:
    why = r"run.csv:14: steps go from 30 to 20, where lr was 0.9 before and is 0.8 now .*resumed"
    with pytest.raises(DataError, match=why):
        schedule_from_curve(curve([10, 20, 30, 20, 30], [1.0, 0.9, 0.5, 0.8, 0.4]), batch=1)
    back_and_forth = [5, 9] * 1001 + [1]
    with pytest.raises(DataError, match="steps go from 9 to 5"):
        schedule_from_curve(curve(back_and_forth, [1.0] * 2003), batch=1)


@pytest.mark.parametrize(("tokens", "warns"), [(1000, False), (1010, False), (1020, True)])
def test_a_long_hold_is_warned_of(
    caplog: pytest.LogCaptureFixture, tokens: int, warns: bool
) -> None:
    at = np.arange(0, 1000, 10)
    with caplog.at_level(logging.WARNING):
        schedule_from_curve(curve(at.tolist(), (1.0 - at / 1000).tolist()), batch=1, tokens=tokens)
    held = "the curve ends at token 990; its last learning rate is held to 1020"
    assert [record.getMessage() for record in caplog.records] == ([held] if warns else [])


@pytest.mark.parametrize(
    ("at", "lr", "why"),
    [
        ([0, 1, 2], [1.0, float("nan"), 0.5], "run.csv:12: lr is nan"),
        ([0, 1, 2], [1.0, 0.5, float("inf")], "run.csv:13: lr is inf"),
        ([0, 1, 2], [1.0, -0.5, 0.2], "run.csv:12: lr is -0.5"),
        ([-1, 1, 2], [1.0, 0.5, 0.2], "run.csv:11: step is -1"),
        ([0, 5, 4], [1.0, 0.5, 0.2], "run.csv:13: steps go from 5 to 4"),
        ([0, 5, 5], [1.0, 0.5, 0.2], "run.csv:13: steps go from 5 to 5"),
        (
            [0, 1, 2, 3],
            [0.5, 0.1, 1.0, 0.2],
            "run.csv:12: lr falls from 0.5 to 0.1 before its peak",
        ),
        ([0, 1, 2, 3], [1.0, 0.5, 0.1, 0.2], "run.csv:14: lr rises to 0.2 after 0.1"),
        ([0, 1, 2, 3], [1.0, 0.5, 0.0, 0.1], "run.csv:14: lr rises to 0.1 after 0"),
        ([1, 2], [0.0, 0.0], "run.csv:11: the learning rate is 0 throughout"),
        ([1, 2, 3], [0.1, 0.2, 0.3], "run.csv:13: the learning rate still rises at the end"),
        ([1], [0.1], "run.csv:11: one point is no curve"),
    ],
)
def test_what_is_no_decay_is_named_with_its_line(
    at: list[float], lr: list[float], why: str
) -> None:
    with pytest.raises(DataError, match=why):
        schedule_from_curve(curve(at, lr), batch=10)


def test_a_plan_holds_its_curve_to_a_thousandth() -> None:
    made = plan_from_curve(logged("cosine"), batch=64, cut=2.0)
    assert made.base.startswith("curve:0=1;")
    tokens = np.linspace(made.warmup_tokens, made.total_tokens, 999)
    truth = make_schedule("cosine", tokens=made.total_tokens)
    assert np.abs(schedule_of(made).ratio(tokens) - truth.ratio(tokens)).max() < 3e-3

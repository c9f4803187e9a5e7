import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papercuts.errors import UsageError
from seesaw.cuts import count_cuts, thresholds
from seesaw.schedule import make_schedule


def authors_thresholds(total: int, warmup: int, final: float, factor: float) -> list[int]:
    """Item 7 of the method sheet, word for word."""
    count = int(math.log(final) / math.log(factor))
    tokens = []
    for k in range(1, count + 1):
        x = max(-1.0, min(1.0, 2 * (factor**k - final) / (1 - final) - 1))
        tokens.append(warmup + round((total - warmup) * math.acos(x) / math.pi))
    return tokens


@pytest.mark.parametrize("total", [3_300_000_000, 6_600_000_000, 13_200_000_000])
def test_cosine_thresholds_are_the_authors(total: int) -> None:
    made = thresholds(make_schedule("cosine", tokens=total), 1.1, 1024 * 256)
    expected = authors_thresholds(total, total // 10, 0.1, 1 / 1.1)
    assert len(made) == 24
    assert max(abs(a - b) for a, b in zip(made, expected, strict=True)) <= 1
    # The authors' config writes the factor with seven digits: the same cuts, to 1e-6 of the run.
    literal = authors_thresholds(total, total // 10, 0.1, 0.9090909)
    assert max(abs(a - b) for a, b in zip(made, literal, strict=True)) < 1e-6 * total


@settings(deadline=None)
@given(st.floats(0.001, 0.9), st.floats(1.01, 4.0))
def test_the_count_is_the_whole_factors_that_fit(final: float, cut: float) -> None:
    count = count_cuts(final, cut)
    assert cut**-count >= final * (1.0 - 1e-6)
    assert cut ** -(count + 1) < final * (1.0 + 1e-6)


def test_a_final_ratio_that_is_a_power_of_the_cut_counts_in_full() -> None:
    for k in range(1, 30):
        assert count_cuts(1.1**-k, 1.1) == k
        assert count_cuts(0.1**k, 10.0) == k


def test_step_decay_cuts_fall_together_at_its_milestones() -> None:
    schedule = make_schedule("step:0.25@0.5,0.75", tokens=1_000_000)
    assert thresholds(schedule, 2.0, 100) == [500_000, 500_000, 750_000, 750_000]
    assert thresholds(schedule, 4.0, 100) == [500_000, 750_000]
    assert thresholds(schedule, 3.0, 100) == [500_000, 750_000]  # 1/9 is reached at 1/16


@pytest.mark.parametrize("base", ["linear", "quarter-cosine", "poly:2", "cosine"])
def test_a_schedule_that_ends_at_0_stops_within_its_last_step(base: str) -> None:
    schedule = make_schedule(base, tokens=1_000_000, final=0.0)
    made = thresholds(schedule, 1.1, 1000)
    assert made[-1] <= 1_000_000 - 1000
    after = float(schedule.first_token_at_or_below(1.1 ** -(len(made) + 1)))
    assert after > 1_000_000 - 1000


def test_each_threshold_is_where_the_ratio_is_reached() -> None:
    schedule = make_schedule("linear", tokens=1_000_000, warmup=0, final=0.1)
    # 1 - 0.9 x = 1.5**-k, so x = (1 - 1.5**-k) / 0.9.
    expected = [round((1 - 1.5**-k) / 0.9 * 1e6) for k in range(1, 6)]
    assert thresholds(schedule, 1.5, 1000) == expected


@pytest.mark.parametrize("cut", [1.0, 0.9, float("nan"), float("inf"), -2.0])
def test_a_cut_must_be_above_1(cut: float) -> None:
    with pytest.raises(UsageError, match="cut must be above 1"):
        thresholds(make_schedule(tokens=1e9), cut, 1000)


def test_a_cut_next_to_1_is_refused_before_it_fills_the_memory() -> None:
    with pytest.raises(UsageError, match="cuts"):
        thresholds(make_schedule(tokens=1e9), 1.0 + 1e-9, 1000)


def test_a_curve_that_spends_its_end_at_0_has_finitely_many_cuts() -> None:
    schedule = make_schedule("curve:0=1;0.5=0.25;0.5=0;1=0", tokens=1000, warmup=0)
    assert thresholds(schedule, 2.0, 10) == [333, 500]

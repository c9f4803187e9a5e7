"""The step that a pilot finds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from papercuts.errors import DataError
from zoprox.potential import Counted
from zoprox.sampler import one_round, round_rng
from zoprox.settings import Settings
from zoprox.tuning import LOSS, TARGET, choose_step, first_step, pilot_evaluations


def gaussian(deviation: float) -> Any:
    return lambda points: 0.5 * (points * points).sum(axis=1) / deviation**2


def test_the_first_step_is_the_median_squared_distance_to_the_nearest() -> None:
    # Gaps of 1, 1, 3 on a line: nearest distances 1, 1, 1, 3.
    assert first_step(np.array([[0.0], [1.0], [2.0], [5.0]])) == 1
    assert first_step(np.array([[0.0], [4.0]])) == 16
    assert first_step(np.zeros((5, 2))) == 1
    assert first_step(np.zeros((1, 2))) == 1


@pytest.mark.parametrize(
    ("dim", "deviation", "steps"),
    [(1, 1.0, 5), (5, 1.0, 3), pytest.param(5, 0.01, 40, marks=pytest.mark.slow)],
)
def test_the_step_is_the_largest_within_both_limits(dim: int, deviation: float, steps: int) -> None:
    settings = Settings(60, dim, 1.0, steps, 200, 6)
    points = deviation * np.random.default_rng(0).normal(size=(60, dim))
    step = choose_step(gaussian(deviation), points, settings)
    run = Settings(60, dim, step, steps, 200, 6)
    shares = []
    for number in range(4):
        path = one_round(gaussian(deviation), run, points, round_rng(1, number))
        points = path.points
        shares.append((np.median(path.ess) / 200, np.median(path.ess[-1]) / 200))
    overall, last = np.mean(shares, axis=0)
    used = max(TARGET / overall, (1 - last ** (1 / dim)) / LOSS)
    assert used == pytest.approx(1, rel=0.3)


def test_where_most_start_outside_a_wall_the_step_fits_the_inside() -> None:
    def boxes(points: np.ndarray) -> np.ndarray:
        near = np.abs(np.abs(points) - 1) < 0.25
        return np.where(near.all(axis=1), 0.0, np.inf)

    start = 3 * np.random.default_rng(0).normal(size=(60, 2))
    step = choose_step(boxes, start, Settings(60, 2, 1.0, 5, 200, 6))
    assert 0.02 < step < 1


@pytest.mark.slow
def test_the_step_scales_with_the_target() -> None:
    settings = Settings(60, 3, 1.0, 5, 200, 6)
    start = np.random.default_rng(0).normal(size=(60, 3))
    small = choose_step(gaussian(1), start, settings)
    large = choose_step(gaussian(1000), 1000 * start, settings)
    assert large / small == pytest.approx(1e6, rel=0.02)  # three digits are given


@pytest.mark.slow
def test_a_start_far_too_wide_or_too_narrow_ends_near_the_same_step() -> None:
    settings = Settings(60, 2, 1.0, 5, 200, 6)
    start = np.random.default_rng(0).normal(size=(60, 2))
    steps = [choose_step(gaussian(1), scale * start, settings) for scale in (0.05, 1, 10)]
    assert max(steps) / min(steps) < 2


def test_the_pilot_costs_what_is_said() -> None:
    settings = Settings(7, 2, 1.0, 3, 50, 6)
    counted = Counted(gaussian(1))
    choose_step(counted, np.ones((7, 2)), settings)
    assert counted.evaluations == pilot_evaluations(settings)


def test_a_flat_or_forbidden_target_is_no_endless_pilot() -> None:
    settings = Settings(5, 2, 1.0, 3, 50, 6)
    assert math.isfinite(choose_step(lambda p: np.zeros(len(p)), np.ones((5, 2)), settings))
    with pytest.raises(DataError, match="no allowed point"):
        choose_step(lambda p: np.full(len(p), np.inf), np.ones((5, 2)), settings)

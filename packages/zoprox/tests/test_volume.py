"""Volumes of sets whose volume is known, and the doubts about others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from zoprox.correction import Corrected, corrected
from zoprox.volume import estimate_volume


def estimate(inside: Any, points: np.ndarray, step: float, draws: int, rounds: int = 6) -> Any:
    def potential(p: np.ndarray) -> np.ndarray:
        return np.where(inside(p), 0.0, np.inf)

    found: list[Corrected] = []
    for number in range(rounds):
        found.append(corrected(potential, points, step, draws, 0, number))
        points = found[-1].points
    return estimate_volume(found, draws)


def ball(points: np.ndarray) -> np.ndarray:
    return (points * points).sum(axis=1) <= 1


@pytest.mark.parametrize("dim", [1, 3, 5])
def test_the_volume_of_a_ball(dim: int) -> None:
    start = np.random.default_rng(0).normal(size=(60, dim)) / math.sqrt(dim)
    found = estimate(ball, start, 0.1, 300)
    exact = math.pi ** (dim / 2) / math.gamma(dim / 2 + 1)
    assert found.trusted
    assert found.relative_error < 0.05
    assert found.volume == pytest.approx(exact, abs=3 * found.standard_error)
    assert math.exp(found.log_volume) == pytest.approx(found.volume)
    assert found.draws == 6 * 60 * 300


def test_two_boxes_apart_of_which_each_has_particles() -> None:
    def boxes(points: np.ndarray) -> np.ndarray:
        x, y = np.abs(points[:, 0]), points[:, 1]
        return (np.abs(x - 10) <= 0.5) & (np.abs(y) <= 1)

    rng = np.random.default_rng(1)
    start = rng.uniform(-0.5, 0.5, (80, 2)) + np.where(rng.random((80, 1)) < 0.9, [-10, 0], [10, 0])
    found = estimate(boxes, start, 0.05, 200)
    assert found.volume == pytest.approx(4, abs=3 * found.standard_error)


@pytest.mark.slow
def test_the_error_covers_the_truth_in_repeats() -> None:
    rng = np.random.default_rng(2)
    far = []
    for _ in range(40):
        found = estimate(ball, rng.normal(size=(10, 2)) / 2, 0.1, 40, rounds=4)
        far.append((found.volume - math.pi) / found.standard_error)
    assert np.mean(np.abs(far) < 2) >= 0.8  # 0.95 but for the few rounds
    assert abs(np.mean(far)) < 3 / math.sqrt(40) * 1.3


def test_doubts_are_said() -> None:
    empty = estimate(lambda p: np.zeros(len(p), bool), np.zeros((4, 2)), 0.1, 20)
    assert (empty.volume, empty.why) == (0.0, "no draw was inside")
    few = estimate(ball, np.random.default_rng(3).normal(size=(4, 2)), 0.1, 2, rounds=2)
    assert not few.trusted
    # Rounds that disagree by more than their own errors: the particles had not arrived.
    rounds = [
        Corrected(np.zeros((9, 1)), 1.0, 1.0, np.full(2, value), np.full(2, 0.001), 90)
        for value in (0.0, 1.0)
    ]
    assert "scatter" in estimate_volume(rounds, 9).why
    stuck = [Corrected(np.zeros((9, 1)), 0.1, 0.1, np.zeros(2), np.full(2, 0.001), 90)]
    assert "only 10% of the particles would move" in estimate_volume(stuck, 9).why
    with pytest.raises(ValueError, match="at least one"):
        estimate_volume([], 9)

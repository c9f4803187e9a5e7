"""Proximal sampling with rejection, against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import kstest

from papercuts.errors import DataError
from zoprox.rejection import rejection_round
from zoprox.sampler import sample_rounds
from zoprox.settings import Settings


def test_a_round_on_a_parabola_has_the_closed_form_law() -> None:
    # x' given x, for f = x^2 / (2 v): N(a x, a h + a^2 h) with a = v / (v + h).
    v, h, x, count = 0.5, 0.3, 2.0, 4000
    start = np.full((count, 1), x)
    found, tries, _ = rejection_round(
        lambda p: p[:, 0] ** 2 / (2 * v), start, h, 10**6, np.random.default_rng(0)
    )
    a = v / (v + h)
    assert kstest(found[:, 0], "norm", (a * x, math.sqrt(a * h + a * a * h))).pvalue > 0.003
    # A try at y is kept with the probability E exp(-f(y + sqrt(h) xi)); tries are geometric.
    assert (tries >= 1).all()


def test_in_and_out_stays_uniform_on_an_interval() -> None:
    def inside(points: np.ndarray) -> np.ndarray:
        return np.where(np.abs(points[:, 0]) <= 1, 0.0, np.inf)

    start = np.random.default_rng(1).uniform(-1, 1, (3000, 1))
    settings = Settings(3000, 1, 0.1, 10, 200, 3, method="rejection")
    *_, last = sample_rounds(inside, settings, start)
    assert kstest(last.points[:, 0], "uniform", (-1, 2)).pvalue > 0.003
    assert 0 < last.outside < 1


def test_evaluations_are_what_the_target_saw_and_stop_at_t_m_a_particle() -> None:
    asked = []

    def nowhere(points: np.ndarray) -> np.ndarray:
        asked.append(len(points))
        return np.full(len(points), np.inf)

    settings = Settings(3, 2, 0.1, 4, 25, 2, method="rejection")
    start = np.ones((3, 2))
    first, second = sample_rounds(nowhere, settings, start)
    assert first.evaluations == second.evaluations == 3 * 4 * 25 == sum(asked) / 2
    np.testing.assert_array_equal(second.points, start)
    assert second.min_ess == 0


def test_f_below_zero_is_refused() -> None:
    settings = Settings(3, 1, 0.1, 4, 25, 1, method="rejection")
    with pytest.raises(DataError, match="f >= 0"):
        list(sample_rounds(lambda p: p[:, 0] ** 2 - 1, settings, np.zeros((3, 1))))

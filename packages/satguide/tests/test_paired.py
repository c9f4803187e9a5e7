"""Paired statistics against closed forms, mpmath and the normal theory."""

import math

import mpmath
import numpy as np
import pytest

from satguide.paired import NOTHING, compare, paired_t, ratio_interval, student_two_sided


@pytest.mark.parametrize("degrees", [1, 2, 3, 10, 59, 199, 5000])
@pytest.mark.parametrize("t", [0.0, 1e-3, 0.7, -2.2, 7.1, 40.0])
def test_student_is_the_incomplete_beta_function_of_mpmath(t, degrees):
    x = mpmath.mpf(degrees) / (degrees + mpmath.mpf(t) ** 2)
    expected = float(mpmath.betainc(mpmath.mpf(degrees) / 2, 0.5, 0, x, regularized=True))
    assert student_two_sided(t, degrees) == pytest.approx(expected, rel=1e-10, abs=1e-300)


@pytest.mark.parametrize("t", [0.3, 1.0, 2.5, 20.0])
def test_student_has_closed_forms_for_one_and_two_degrees(t):
    assert student_two_sided(t, 1) == pytest.approx(1 - 2 / math.pi * math.atan(t), rel=1e-12)
    assert student_two_sided(t, 2) == pytest.approx(1 - t / math.sqrt(2 + t * t), rel=1e-11)


def test_t_is_the_mean_difference_over_its_standard_error():
    random = np.random.default_rng(1)
    other, own = random.lognormal(5, 1, 80), random.lognormal(4.9, 1, 80)
    d = other - own
    t, p = paired_t(own, other)
    assert t == pytest.approx(d.mean() / (np.sqrt(d.var(ddof=1) / 80)))
    assert p == pytest.approx(student_two_sided(abs(t), 79))
    assert paired_t(other, own)[0] == pytest.approx(-t)


def test_the_interval_of_the_ratio_is_that_of_the_delta_method():
    random = np.random.default_rng(2)
    other = random.gamma(4, 100, 3000)
    own = 0.7 * other * random.uniform(0.8, 1.2, 3000)
    ratio = own.mean() / other.mean()
    error = np.std(own - ratio * other, ddof=1) / math.sqrt(3000) / other.mean()
    low, high = ratio_interval(own, other)
    assert low == pytest.approx(ratio - 1.96 * error, abs=0.1 * error)
    assert high == pytest.approx(ratio + 1.96 * error, abs=0.1 * error)


def test_the_interval_holds_the_true_ratio_as_often_as_it_says():
    random = np.random.default_rng(3)
    hits = 0
    for run in range(200):
        other = random.gamma(3, 1, 60)
        own = 0.8 * other * random.uniform(0.5, 1.5, 60)
        low, high = ratio_interval(own, other, seed=run, resamples=400)
        hits += low <= 0.8 <= high
    assert 175 <= hits <= 200


def test_a_setting_against_itself_and_against_half():
    costs = np.array([10.0, 20.0, 40.0])
    same = compare(costs, costs)
    assert (same.ratio, same.ratio_low, same.ratio_high, same.t) == (1.0, 1.0, 1.0, None)
    half = compare(costs / 2, costs)
    assert half.ratio == half.ratio_low == half.ratio_high == 0.5
    assert half.change_percent == -50
    assert half.t > 0


def test_what_cannot_be_said_of_few_formulas_is_none():
    one = compare(np.array([3.0]), np.array([4.0]))
    assert (one.ratio, one.t, one.p, one.ratio_low) == (0.75, None, None, None)
    assert compare(np.array([]), np.array([])) == NOTHING
    assert compare(np.zeros(3), np.zeros(3)) == NOTHING
    with pytest.raises(ValueError, match="one length"):
        compare(np.ones(3), np.ones(2))


def test_the_interval_is_the_same_for_the_same_seed_only():
    random = np.random.default_rng(4)
    own, other = random.gamma(3, 1, 30), random.gamma(3, 1, 30)
    assert ratio_interval(own, other, seed=1) == ratio_interval(own, other, seed=1)
    assert ratio_interval(own, other, seed=1) != ratio_interval(own, other, seed=2)

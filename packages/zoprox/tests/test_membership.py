"""Membership tests as potentials."""

from __future__ import annotations

import numpy as np
import pytest

from papercuts.errors import DataError
from zoprox.bounds import Box
from zoprox.membership import Inside
from zoprox.targets import Target, open_target

POINTS = np.random.default_rng(3).uniform(-2, 2, size=(60, 2))
WITHIN = (POINTS**2).sum(1) < 1
DISC = np.where(WITHIN, 0.0, np.inf)
AWK = "awk '{{ print ($1*$1 + $2*$2 < 1) {} }}'"


@pytest.mark.parametrize("answer", [WITHIN, WITHIN.astype(int), WITHIN.astype(float)])
def test_one_and_zero_true_and_false(answer):
    np.testing.assert_array_equal(Inside(lambda _: answer)(POINTS), DISC)


@pytest.mark.parametrize(
    "named",
    [
        {"expression": "x1**2 + x2**2 < 1"},
        {"command": AWK.format("")},
        {"command": AWK.format('? "True" : "false"')},
    ],
)
def test_the_same_disc_by_every_way(named):
    with open_target(Target(inside=True, **named), 2) as potential:
        np.testing.assert_array_equal(potential(POINTS), DISC)


@pytest.mark.parametrize("wrong", [2.0, -1.0, np.nan, 0.5, np.inf])
def test_anything_else_is_told(wrong):
    answer = np.where(np.arange(60) == 7, wrong, 1.0)
    with pytest.raises(DataError, match=f"answered {wrong} for the point"):
        Inside(lambda _: answer)(POINTS)


def test_outside_the_box_nobody_is_asked():
    box = Box(np.array([0.0, -1.0]), np.array([1.0, np.inf]))
    held = (POINTS[:, 0] >= 0) & (POINTS[:, 0] <= 1) & (POINTS[:, 1] >= -1)
    asked = []

    def everywhere(points):
        asked.append(len(points))
        return np.ones(len(points))

    values = Inside(everywhere, box)(POINTS)
    np.testing.assert_array_equal(values, np.where(held, 0, np.inf))
    assert asked == [held.sum()]
    Inside(everywhere, box)(np.full((3, 2), 9.0))
    assert len(asked) == 1

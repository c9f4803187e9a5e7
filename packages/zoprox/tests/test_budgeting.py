"""`budget` counts what `sample` then asks for, to the last evaluation."""

from __future__ import annotations

import json

import pytest

BASE = ["--dim", 2, "-n", 7, "--mc", 11, "--rounds", 5, "--sub", 3]


def record(zoprox, *words):
    code, out, err = zoprox("budget", *words)
    assert code == 0, err
    (line,) = out.splitlines()
    return json.loads(line)


def test_the_formulas(zoprox):
    found = record(zoprox, *BASE, "--step", 1, "--keep", 2)
    assert found["round_evaluations"] == 5 * 3 * 7 * 11
    assert found["correction_evaluations"] == 2 * (7 * 11 + 7)
    assert found["pilot_evaluations"] == 0
    assert found["evaluations"] == 5 * 3 * 7 * 11 + 2 * (7 * 11 + 7)
    assert found["points_a_sub_step"] == 77
    assert found["sub_steps"] == 15
    assert found["draws"] == 14
    assert found["exact"] is True


@pytest.mark.parametrize(
    "more",
    [
        ["--step", 1],
        ["--step", "auto"],
        ["--step", 1, "--no-correct"],
        ["--step", 1, "--keep", 99],
        ["--step", 1, "--method", "single"],
        ["--step", 1, "-n", 1],
    ],
)
def test_it_is_what_a_run_asks_for(zoprox, more):
    words = [*BASE, "--expr", "sum(x**2)/2", *more]
    expected = record(zoprox, *words)
    code, out, _ = zoprox("sample", *words, "-q")
    assert code == 0
    about = json.loads(out.splitlines()[0])["zoprox"]
    for key in ("evaluations", "round_evaluations", "correction_evaluations", "pilot_evaluations"):
        assert about[key] == expected[key]
    assert len(out.splitlines()) == expected["draws"]


def test_the_time_of_a_target_is_measured(files, zoprox):
    (files / "slow.py").write_text(
        "import time\ndef f(x):\n    time.sleep(1e-4 * len(x))\n    return x[:, 0]**2\n"
    )
    found = record(zoprox, *BASE, "--step", 1, "--target", "slow.py:f")
    assert 0.9e-4 < found["evaluation_s"] < 20e-4
    assert found["target_s"] == pytest.approx(found["evaluation_s"] * found["evaluations"])


def test_rejection_has_a_bound_only(zoprox):
    assert record(zoprox, *BASE, "--step", 1, "--method", "rejection")["exact"] is False


def test_what_cannot_be(zoprox):
    assert zoprox("budget", *BASE, "--step", -1)[0] == 2
    assert zoprox("budget", *BASE, "--expr", "x7")[0] == 2

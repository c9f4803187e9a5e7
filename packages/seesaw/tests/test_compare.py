"""The paired comparison against tables of Student's distribution and arithmetic by hand."""

import pytest

from seesaw.compare import compare_runs, paired_interval, student_quantile


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [(1, 12.7062), (2, 4.30265), (3, 3.18245), (4, 2.77645), (9, 2.26216), (30, 2.04227)],
)
def test_student_quantiles_of_the_tables(degrees: int, quantile: float):
    assert student_quantile(0.975, degrees) == pytest.approx(quantile, rel=1e-5)


def test_other_levels():
    assert student_quantile(0.95, 5) == pytest.approx(2.01505, rel=1e-5)
    assert student_quantile(0.995, 1) == pytest.approx(63.6567, rel=1e-5)


def test_interval_by_hand():
    # mean 2, standard deviation 1, three values: 2 +- 4.30265 / sqrt(3)
    assert paired_interval([1.0, 2.0, 3.0]) == pytest.approx((-0.48414, 4.48414), abs=1e-4)
    assert paired_interval([1.0]) == (None, None)


def end(run: str, seed: int, loss: float, steps: int) -> dict[str, object]:
    return {"event": "end", "run": run, "seed": seed, "validation_loss": loss, "steps": steps}


def test_runs_are_paired_by_seed():
    ends = [
        end("base", 0, 1.0, 100),
        end("seesaw", 1, 2.5, 62),
        end("seesaw", 0, 1.1, 62),
        end("base", 1, 2.3, 100),
        end("base", 2, 9.0, 100),
        end("fixed", 0, 9.0, 100),
    ]
    compared = compare_runs(ends)
    assert compared is not None
    low, high = paired_interval([0.1, 0.2])
    assert compared["seeds"] == 2
    assert compared["difference"] == pytest.approx(0.15)
    assert (compared["difference_low"], compared["difference_high"]) == pytest.approx((low, high))
    assert (compared["base_loss"], compared["seesaw_loss"]) == pytest.approx((1.65, 1.8))
    assert compared["base_loss_sd"] == pytest.approx(0.919239, rel=1e-5)
    assert (compared["base_steps"], compared["seesaw_steps"]) == (100, 62)
    assert compared["steps_saved"] == pytest.approx(0.38)


def test_no_pair_no_comparison():
    assert compare_runs([end("base", 0, 1.0, 1), end("seesaw", 1, 1.0, 1)]) is None

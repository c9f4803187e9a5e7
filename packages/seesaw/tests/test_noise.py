import math
from typing import Any

import numpy as np
import pytest

from papercuts.errors import DataError, UsageError
from papercuts.streams import Record
from seesaw.noise import NormLog, estimate_noise, estimate_windows, read_norms


def log_of(batch: list[float], norm_sq: list[float], step: list[float] | None = None) -> NormLog:
    return NormLog(
        np.array(batch, float),
        np.array(norm_sq, float),
        None if step is None else np.array(step, float),
    )


def gradients(
    rng: np.random.Generator, batch: int, runs: int, scale: float = 40.0, dim: int = 50
) -> np.ndarray:
    """Draw squared norms of mean gradients with |G|^2 = 1 and noise trace `scale`."""
    true = np.full(dim, 1.0 / math.sqrt(dim))
    noise = rng.normal(size=(runs, dim)) * math.sqrt(scale / dim / batch)
    return np.asarray(np.sum((true + noise) ** 2, axis=1))


def test_two_batches_give_the_formula_of_the_sheet() -> None:
    # Item 12 with b = 4, B = 16.
    small, large = 5.0, 2.0
    made = estimate_noise(log_of([4, 16], [small, large]), seq_len=8, at_batch=64)
    trace = (small - large) / (1 / 4 - 1 / 16)
    grad_sq = (16 * large - 4 * small) / 12
    assert made.noise_trace == pytest.approx(trace)
    assert made.grad_sq == pytest.approx(grad_sq)
    assert made.noise_scale == pytest.approx(trace / grad_sq)
    assert made.noise_scale_tokens == pytest.approx(8 * trace / grad_sq)
    assert made.mean_share == pytest.approx(grad_sq / (grad_sq + trace / 64))
    assert (made.verdict, made.batches, made.records) == ("yes", (4.0, 16.0), 2)
    assert made.noise_scale_low is None
    assert "no interval" in made.message


def test_means_on_a_line_are_fitted_exactly_whatever_their_number() -> None:
    batches = [1, 2, 4, 8, 16]
    made = estimate_noise(log_of(batches, [3.0 + 7.0 / b for b in batches]))
    assert made.grad_sq == pytest.approx(3.0)
    assert made.noise_trace == pytest.approx(7.0)


@pytest.mark.parametrize("batches", [(8, 128), (4, 32, 256)])
def test_a_known_noise_scale_is_found(batches: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    norms = [gradients(rng, batch, 3000) for batch in batches]
    made = estimate_noise(NormLog(np.repeat(np.array(batches, float), 3000), np.concatenate(norms)))
    assert made.verdict == "yes"
    assert made.noise_scale == pytest.approx(40.0, rel=0.05)
    assert made.noise_scale_low is not None
    assert made.noise_scale_high is not None
    assert made.noise_scale_low < 40.0 < made.noise_scale_high
    assert made.noise_scale_high - made.noise_scale_low < 6.0


def test_the_interval_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(7)
    hits = 0
    for seed in range(120):
        log = NormLog(
            np.repeat([8.0, 64.0], 100),
            np.concatenate([gradients(rng, 8, 100), gradients(rng, 64, 100)]),
        )
        made = estimate_noise(log, confidence=0.9, seed=seed)
        assert made.noise_scale_low is not None
        high = math.inf if made.noise_scale_high is None else made.noise_scale_high
        hits += made.noise_scale_low <= 40.0 <= high
    assert 97 <= hits <= 118  # 108 +- 3 standard deviations


def test_steps_that_hold_both_batches_are_paired() -> None:
    # The gradient shrinks along the run, the two batches of a step shrink together: pairing sees
    # a constant noise scale where independent records see a wide spread.
    rng = np.random.default_rng(9)
    steps = np.arange(400)
    size = 2.0 ** -(steps / 60.0)
    small = size * gradients(rng, 8, 400)
    large = size * gradients(rng, 64, 400)
    batch = np.repeat([8.0, 64.0], 400)
    norm_sq = np.concatenate([small, large])
    paired = estimate_noise(NormLog(batch, norm_sq, np.concatenate([steps, steps]).astype(float)))
    alone = estimate_noise(NormLog(batch, norm_sq))
    assert paired.noise_scale == pytest.approx(alone.noise_scale)
    assert paired.noise_scale_low is not None
    assert paired.noise_scale_high is not None
    assert paired.noise_scale_low < 40.0 < paired.noise_scale_high
    alone_high = alone.noise_scale_high or math.inf
    assert alone.noise_scale_low is not None
    assert paired.noise_scale_high - paired.noise_scale_low < 0.5 * (
        alone_high - alone.noise_scale_low
    )
    assert (paired.first_step, paired.last_step) == (0.0, 399.0)


def test_steps_with_one_batch_only_are_left_out_where_others_have_two() -> None:
    made = estimate_noise(log_of([4, 16, 4, 16, 4], [5, 2, 5, 2, 900], [1, 1, 2, 2, 3]))
    assert made.records == 4
    assert made.grad_sq == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("small", "large", "why"),
    [
        (2.0, 5.0, "no noise to be seen"),
        (2.0, 2.0, "no noise to be seen"),
        (16.0, 3.0, "noise hides the gradient"),
    ],
)
def test_impossible_estimates_are_undecided(small: float, large: float, why: str) -> None:
    made = estimate_noise(log_of([4, 16], [small, large]))
    assert made.verdict == "undecided"
    assert made.noise_scale is None
    assert made.mean_share is None
    assert why in made.message


def test_an_interval_without_an_upper_end_is_undecided() -> None:
    # |G|^2 is 0.47 with a standard error of 0.7: it may well be 0, the scale without bound.
    made = estimate_noise(log_of([4, 4, 16, 16], [5.0, 9.0, 1.9, 2.3]))
    assert made.grad_sq == pytest.approx((16 * 2.1 - 4 * 7.0) / 12)
    assert made.noise_scale is not None
    assert made.verdict == "undecided"
    assert made.noise_scale_low is not None
    assert made.noise_scale_high is None
    assert "no upper end" in made.message


def test_windows_follow_the_run() -> None:
    steps = list(range(40))
    small = [1.0 + (10.0 if s < 20 else 90.0) / 4 for s in steps]
    large = [1.0 + (10.0 if s < 20 else 90.0) / 16 for s in steps]
    log = log_of([4] * 40 + [16] * 40, small + large, [float(s) for s in steps * 2])
    first, second = estimate_windows(log, 2)
    assert (first.noise_scale, second.noise_scale) == (pytest.approx(10.0), pytest.approx(90.0))
    assert (first.last_step, second.first_step) == (19.0, 20.0)
    assert estimate_windows(log, 1) == [estimate_noise(log)]
    with pytest.raises(DataError, match="need a step"):
        estimate_windows(log_of([4, 16], [5, 2]), 2)
    with pytest.raises(UsageError, match="windows"):
        estimate_windows(log, 0)
    with pytest.raises(DataError, match="two batch sizes"):
        estimate_windows(log_of([4, 16], [5, 2], [0, 9]), 2)


def records(rows: list[dict[str, Any]]) -> list[Record]:
    return [Record(row, "norms.jsonl", line) for line, row in enumerate(rows, 1)]


def test_norms_come_squared_or_not_and_as_text() -> None:
    log = read_norms(
        records(
            [
                {"batch": 4, "grad_norm": 3.0, "step": 1},
                {"eval_loss": 3.0},
                {"batch": "16", "grad_norm": "2.0", "step": "1"},
            ]
        )
    )
    assert log.batch.tolist() == [4.0, 16.0]
    assert log.norm_sq.tolist() == [9.0, 4.0]
    assert log.step is not None
    assert log.step.tolist() == [1.0, 1.0]
    plain = read_norms(records([{"b": 4, "n": 3, "step": None}]), batch_field="b", norm_field="n")
    assert plain.norm_sq.tolist() == [9.0]
    measured = [{"batch": 4, "grad_norm": 3.0, "step": 1}, {"batch": 16, "grad_norm_sq": 2.0}]
    assert read_norms(records(measured)).batch.tolist() == [16.0]
    nested = [{"b": {"size": 4}, "n_sq": 3}]
    named = read_norms(records(nested), batch_field="b.size", norm_field="n_sq")
    assert (named.norm_sq.tolist(), named.step) == ([3.0], None)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"batch": 0, "grad_norm": 1}, "norms.jsonl:2: batch is 0"),
        ({"batch": True, "grad_norm": 1}, "2: batch is True"),
        ({"grad_norm": 1}, "2: there is no 'batch'"),
        ({"batch": 4, "grad_norm": -1}, "2: grad_norm is -1"),
        ({"batch": 4, "grad_norm": "x"}, "2: grad_norm is 'x'"),
        ({"batch": 4, "grad_norm_sq": math.inf}, "2: grad_norm_sq is inf"),
        ({"batch": 4, "grad_norm": 1e200}, r"2: grad_norm is 1e\+200 .*square is finite"),
        ({"batch": 4, "grad_norm": 1e-200}, "2: grad_norm is 1e-200"),
    ],
)
def test_a_bad_record_is_named_with_its_line(row: dict[str, Any], why: str) -> None:
    with pytest.raises(DataError, match=why):
        read_norms(records([{"batch": 4, "grad_norm": 1.0}, row]))


def test_too_little_to_go_on() -> None:
    with pytest.raises(DataError, match="no record has a gradient norm"):
        read_norms(records([{"batch": 4}]))
    with pytest.raises(DataError, match="all gradient norms are at batch 4"):
        estimate_noise(log_of([4, 4], [1, 2]))
    with pytest.raises(UsageError, match="confidence"):
        estimate_noise(log_of([4, 16], [5, 2]), confidence=1.0)


@pytest.mark.parametrize(
    "options", [{"at_batch": value} for value in (0.0, -1.0, math.nan, math.inf)] + [{"seq_len": 0}]
)
def test_options_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(options))} must be a finite number above 0"):
        estimate_noise(log_of([4, 16], [5, 2]), **options)


@pytest.mark.parametrize("exponent", [-1000, -300, 300, 1000])
def test_the_unit_of_the_norms_does_not_matter(exponent: int) -> None:
    unit = 2.0**exponent
    batch, norm_sq = [4, 4, 64, 64], np.array([14.0, 15.0, 3.0, 3.1])
    plain = estimate_noise(log_of(batch, norm_sq.tolist()))
    scaled = estimate_noise(log_of(batch, (norm_sq * unit).tolist()))
    expected = {"noise_trace": plain.noise_trace * unit, "grad_sq": plain.grad_sq * unit}
    assert scaled.to_dict() == {**plain.to_dict(), **expected}


def test_extreme_norms_and_batches_stay_numbers_or_are_refused() -> None:
    apart = estimate_noise(log_of([4, 16], [1e300, 1e-300]))
    assert (apart.verdict, apart.noise_scale) == ("undecided", None)
    assert math.isfinite(apart.noise_trace)
    large = estimate_noise(log_of([1e200, 4e200], [5.0, 2.0]))
    assert large.noise_scale == pytest.approx(4e200)  # S = 4e200, |G|^2 = 1
    with pytest.raises(DataError, match="too large"):
        estimate_noise(log_of([1e200, 4e200], [5e200, 2e200]))

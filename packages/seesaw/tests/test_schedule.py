import numpy as np
import pytest

from papercuts.errors import UsageError
from seesaw.schedule import BASES, curve_spec, is_curve, make_schedule, step_gamma
from seesaw.shapes import Cosine, polyline


def test_warmup_is_linear_and_decay_follows_it() -> None:
    cosine = make_schedule("cosine", tokens=1000, warmup=0.1, start=0.2, final=0.1)
    assert cosine.warmup_tokens == 100
    assert cosine.ratio([0, 50, 100, 550, 1000, 1200]) == pytest.approx(
        [0.2, 0.6, 1.0, 0.55, 0.1, 0.1]
    )


def test_defaults_are_those_of_the_authors_but_lemma_1_has_no_warmup() -> None:
    cosine = make_schedule(tokens=3.3e9)
    assert (cosine.warmup_tokens, cosine.start_ratio, cosine.final_ratio) == (330_000_000, 0.1, 0.1)
    assert make_schedule("quarter-cosine", tokens=3.3e9).warmup_tokens == 0
    assert make_schedule("quarter-cosine", tokens=3.3e9, warmup=0.1).warmup_tokens == 330_000_000


def test_warmup_from_1_on_counts_tokens() -> None:
    assert make_schedule(tokens=1000, warmup=250).warmup_tokens == 250
    assert make_schedule(tokens=1000, warmup=0.25).warmup_tokens == 250


def test_continuous_limits_of_the_sheet() -> None:
    # Item 9: w + (1 - w)(1 + final)/2; linear to zero 1/2; WSD saves d/2; Lemma 1 saves 1 - 2/pi.
    assert make_schedule("cosine", tokens=1e9).steps_fraction() == pytest.approx(0.595, abs=1e-9)
    linear = make_schedule("linear", tokens=1e9, warmup=0, final=0)
    assert linear.steps_fraction() == pytest.approx(0.5, abs=1e-12)
    wsd = make_schedule("wsd:0.3", tokens=1e9, warmup=0.1, final=0)
    assert 1.0 - wsd.steps_fraction() == pytest.approx(0.15, abs=1e-12)
    quarter = make_schedule("quarter-cosine", tokens=1e9, final=0)
    assert 1.0 - quarter.steps_fraction() == pytest.approx(0.36338, abs=5e-6)
    step = make_schedule("step:0.5@0.4,0.8", tokens=1e9, warmup=0.1)
    assert step.steps_fraction() == pytest.approx(0.4 + 0.4 * 0.5 + 0.2 * 0.25, abs=1e-9)


def test_milestones_and_decay_are_fractions_of_all_tokens() -> None:
    step = make_schedule("step:0.1@0.5,0.75", tokens=1000, warmup=0.2)
    assert step.first_token_at_or_below([0.5, 0.05]) == pytest.approx([500, 750])
    assert step.final_ratio == pytest.approx(0.01)
    wsd = make_schedule("wsd:0.4", tokens=1000, warmup=0.2, final=0.5)
    assert wsd.ratio([600, 800, 1000]) == pytest.approx([1.0, 0.75, 0.5])


def test_step_gamma() -> None:
    assert step_gamma("step:0.3@0.5") == 0.3
    assert step_gamma("step") == 0.1
    assert step_gamma("cosine") is None


def test_a_curve_spec_makes_the_curve_again() -> None:
    shape = polyline((0.0, 0.25, 0.25, 1.0), (1.0, 0.9, 0.4, 0.1))
    spec = curve_spec(shape)
    assert spec == "curve:0=1;0.25=0.9;0.25=0.4;1=0.1"
    assert is_curve(spec)
    assert not is_curve("cosine")
    made = make_schedule(spec, tokens=1000, warmup=0)
    assert made.ratio([0, 125, 250, 625, 1000]) == pytest.approx([1.0, 0.95, 0.4, 0.25, 0.1])
    assert make_schedule(shape, tokens=1000, warmup=0).base == spec


@pytest.mark.parametrize("base", BASES)
def test_every_base_is_a_decay_that_its_spec_makes_again(base: str) -> None:
    schedule = make_schedule(base, tokens=10_000)
    tokens = np.arange(schedule.warmup_tokens, 10_001)
    ratio = schedule.ratio(tokens)
    assert ratio[0] == 1.0
    assert np.all(np.diff(ratio) <= 0.0)
    assert ratio[-1] == pytest.approx(schedule.final_ratio)
    again = make_schedule(schedule.base, tokens=10_000)
    assert np.array_equal(again.ratio(tokens), ratio)


@pytest.mark.parametrize(
    ("base", "options", "why"),
    [
        ("sawtooth", {}, "unknown base schedule 'sawtooth'"),
        ("cosine:3", {}, "unknown base schedule"),
        ("wsd:x", {}, "'x' in the base schedule 'wsd:x' is not a number"),
        ("wsd:0.95", {}, "wsd decay must lie"),
        ("wsd:0", {}, "wsd decay must lie"),
        ("poly:-1", {}, "power of poly"),
        ("poly:nan", {}, "not a number"),
        ("step:1.5@0.5", {}, "gamma"),
        ("step:0.5@0.5,0.4", {}, "must rise"),
        ("step:0.5@0.05", {}, "between warmup"),
        ("step:0.5@1", {}, "must rise"),
        ("step", {"final": 0.1}, "its own end"),
        ("curve:0=1;1=2", {}, "bad curve"),
        ("curve:nonsense", {}, "bad curve"),
        ("curve", {}, "bad curve"),
        ("cosine", {"final": 1.0}, "final ratio"),
        ("cosine", {"final": -0.1}, "final ratio"),
        ("cosine", {"start": 1.5}, "start ratio"),
        ("cosine", {"warmup": 1000}, "must be shorter than the run"),
        ("cosine", {"warmup": 2000}, "must be shorter than the run"),
        ("cosine", {"warmup": -1}, "warmup must be 0 or more"),
        ("cosine", {"warmup": float("nan")}, "warmup must be 0 or more"),
        ("cosine", {"tokens": 0}, "tokens must be at least 1"),
        ("cosine", {"tokens": float("inf")}, "tokens must be at least 1"),
    ],
)
def test_what_is_no_schedule_is_refused(base: str, options: dict[str, float], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        make_schedule(base, **{"tokens": 1000, **options})  # type: ignore[arg-type]


def test_a_shape_of_ones_own() -> None:
    assert make_schedule(Cosine(0.1), tokens=1000).base.startswith("curve:0=1;")

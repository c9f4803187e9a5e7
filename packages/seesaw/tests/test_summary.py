import dataclasses
import math
from typing import Any

import pytest

from papercuts.errors import UsageError
from seesaw.planner import make_plan
from seesaw.schedule import make_schedule
from seesaw.summary import (
    base_steps,
    cuts_taken,
    describe,
    effective_lrs,
    schedule_of,
    stability,
    staircase_fraction,
    summarize,
)


def plan(**options: Any) -> Any:
    return make_plan(**{"lr": 3e-3, "batch": 256, "seq_len": 1024, "tokens": 3.3e9, **options})


def test_the_figures_of_the_papers_first_setting() -> None:
    made = summarize(plan())
    assert (made.steps_base, made.steps_plan, made.phases) == (12589, 7756, 25)
    assert made.saving == pytest.approx(1.0 - 7756 / 12589)
    assert made.continuous_saving == pytest.approx(0.405, abs=1e-9)
    assert (made.batch, made.end_batch, made.tokens) == (256, 2521, 3_300_596_736)
    assert made.end_lr == pytest.approx(3e-3 * 1.1**-12)
    assert made.stable == "edge"
    assert made.growth_per_cut == pytest.approx(1.0)


@pytest.mark.parametrize(("cut", "saving"), [(1.1, 0.3378), (1.01, 0.3604), (1.001, 0.3631)])
def test_check_3_of_the_sheet_at_ordinary_batches(cut: float, saving: float) -> None:
    made = summarize(plan(base="quarter-cosine", final=0, cut=cut))
    assert made.staircase_saving == pytest.approx(saving, abs=5e-5)
    assert made.continuous_saving == pytest.approx(1.0 - 2.0 / math.pi, abs=1e-6)
    assert made.saving == pytest.approx(saving, abs=2e-3)  # batches are whole, steps finite


def test_the_staircase_is_the_sum_over_its_stairs() -> None:
    schedule = make_schedule("linear", tokens=1e6, warmup=0.2, final=0.1)
    # Cuts of 2 at 1 - 0.9 x = 1/2, 1/4, 1/8.
    x = [0.0, *((1.0 - 2.0**-k) / 0.9 for k in (1, 2, 3)), 1.0]
    stairs = sum((x[k + 1] - x[k]) * 2.0**-k for k in range(4))
    assert staircase_fraction(schedule, 2.0, 2.0) == pytest.approx(0.2 + 0.8 * stairs, rel=1e-12)
    capped = sum((x[k + 1] - x[k]) * max(2.0**-k, 0.4) for k in range(4))
    assert staircase_fraction(schedule, 2.0, 2.0, 0.4) == pytest.approx(0.2 + 0.8 * capped)


def test_the_limits_off_the_default_point_are_those_of_fine_plans() -> None:
    for options in (
        {"beta": 1.0}, {"beta": 1.001**2}, {"beta": 1.001**0.5}, {"cap_batch": 2 * 65536},
        {"optimizer": "sgd"},
    ):  # fmt: skip
        made = plan(batch=65536, seq_len=1, tokens=1e11, cut=1.001, **options)
        limits = summarize(made, cap_batch=options.get("cap_batch"))  # type: ignore[arg-type]
        assert limits.saving == pytest.approx(limits.staircase_saving, abs=2e-5)
        assert limits.saving == pytest.approx(limits.continuous_saving, abs=5e-4)


@pytest.mark.parametrize(
    ("alpha", "beta", "optimizer", "verdict"),
    [
        (2.0, 1.0, "adam", "yes"),
        (2.0**0.75, 2.0**0.5, "adam", "yes"),
        (2.0**0.5, 2.0, "adam", "edge"),
        (2.0**0.25, 2.0**1.5, "adam", "no"),
        (1.0, 4.0, "adam", "no"),
        (2.0**-0.5, 2.0, "adam", "no"),  # double the batch and raise lr by sqrt(2)
        (1.0, 2.0, "sgd", "yes"),
        (0.9, 2.2, "sgd", "no"),
        (1.4142135, 2.0, "adam", "edge"),  # as printed in papers
        (1.4142136, 2.0, "adam", "edge"),
        (1.41, 2.0, "adam", "no"),
        (0.9999, 2.0, "sgd", "yes"),
    ],
)
def test_the_stability_lemma(alpha: float, beta: float, optimizer: str, verdict: str) -> None:
    assert stability(alpha, beta, optimizer) == verdict


def test_the_tolerance_is_on_the_growth_of_all_cuts() -> None:
    # sqrt(1.1)/1.0488 - 1 is 8.4e-6, so 118 cuts come to 0.099 % and 119 to over 0.1 %.
    assert stability(1.0488, 1.1, cuts=118) == "edge"
    assert stability(1.0488, 1.1, cuts=119) == "no"
    # sqrt(1.1)/1.0489 - 1 is -8.7e-5: the other side.
    assert stability(1.0489, 1.1, cuts=11) == "edge"
    assert stability(1.0489, 1.1, cuts=12) == "yes"
    assert stability(1.0, 2.0**1e-6) == stability(1.0, 2.0**1e-6, cuts=0) == "edge"
    assert (cuts_taken(plan()), cuts_taken(plan(cut=2.0)), cuts_taken(plan(final=0.99))) == (
        24,
        3,
        0,
    )
    merged = plan(base="step:0.25@0.5,0.75", cut=2.0)
    assert (len(merged.phases), cuts_taken(merged)) == (3, 4)


def test_the_last_line_says_what_the_rows_do() -> None:
    def said(made: Any) -> str:
        return describe(summarize(made))[-1]

    assert said(plan()).startswith("stable, as aggressive as can be")
    assert said(plan(alpha=1.4142135, beta=2.0)).startswith("stable, as aggressive as can be")
    assert said(plan(beta=1.05)).endswith("falls to 0.327 of its start")
    assert said(plan(beta=1.0999)) == "stable: the effective learning rate never grows"
    assert said(plan(multiple_of=256, compensate=True)).startswith("stable, as aggressive")
    assert said(plan(cap_batch=512)).endswith("falls to 0.203 of its start")
    assert said(plan(cut=20.0)) == "no cut is taken: the schedule never falls that far"
    coarse = plan(multiple_of=256)
    reached = f"stable: the effective learning rate reaches {summarize(coarse).max_growth:.4g} "
    assert said(coarse).startswith(reached)
    assert said(plan(beta=1.3)).endswith("learning rate grows by 1.182 at each cut")
    assert said(plan(alpha=1.000498, beta=1.001)).endswith("grows by 1.0000019 at each cut")
    last = dataclasses.replace(coarse.phases[-1], lr=coarse.peak_lr)
    edited = dataclasses.replace(coarse, phases=(*coarse.phases[:-1], last))
    assert said(edited).startswith("UNSTABLE: the effective learning rate reaches 3.162 times")


def test_what_a_person_should_notice_is_said() -> None:
    assert "the batch stays at 256 sequences" in describe(summarize(plan(cap_batch=256)))[1]
    assert "--cap-batch 1000 stops it" in describe(summarize(plan(), cbs=1000))[1]
    warned = describe(summarize(plan(warmup=3000)))[2]
    assert warned.startswith("the warmup of 3000 tokens is less than one step")
    assert not any("warmup" in line for line in describe(summarize(plan(warmup=0))))


@pytest.mark.parametrize("cbs", [math.nan, math.inf, -5.0, 0.0])
def test_a_critical_batch_size_that_is_none(cbs: float) -> None:
    with pytest.raises(UsageError, match="cbs must be a finite number above 0"):
        summarize(plan(cut=2.0), cbs=cbs)


def test_the_effective_lr_grows_only_past_the_edge() -> None:
    edge, wild = plan(cut=2.0), plan(cut=2.0, beta=4.0)
    assert effective_lrs(edge) == pytest.approx([1.0] * 4)
    assert effective_lrs(wild) == pytest.approx([1.0, 2.0, 4.0, 8.0])
    assert summarize(wild).max_growth == pytest.approx(8.0)
    assert summarize(wild).growth_per_cut == pytest.approx(2.0)


def test_the_critical_batch_size_is_compared() -> None:
    made = plan(cut=2.0)  # 256, 512, 1024, 2048
    assert summarize(made).within_cbs == "undecided"
    assert summarize(made, cbs=2048).within_cbs == "yes"
    over = summarize(made, cbs=1000)
    assert over.within_cbs == "no"
    assert over.cbs_token == made.phases[2].start_token


@pytest.mark.parametrize(
    "base", ["cosine", "quarter-cosine", "linear", "wsd:0.3", "poly:2", "step:0.3@0.4,0.8"]
)
def test_a_plan_knows_its_base_schedule(base: str) -> None:
    final = None if base.startswith("step") else 0.05
    made = plan(base=base, final=final, warmup=0.07, start=0.3)
    schedule = make_schedule(base, tokens=3.3e9, final=final, warmup=0.07, start=0.3)
    tokens = [0, 1e8, 231e6, 1e9, 2.5e9, 3.3e9]
    assert schedule_of(made).ratio(tokens) == pytest.approx(schedule.ratio(tokens), rel=1e-12)


def test_base_steps_round_up() -> None:
    assert base_steps(plan(tokens=256 * 1024 * 1000)) == 1000
    assert base_steps(plan(tokens=256 * 1024 * 1000 + 1)) == 1001

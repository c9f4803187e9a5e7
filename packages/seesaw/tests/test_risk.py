import math
from typing import Any

import numpy as np
import pytest

from papercuts.errors import UsageError
from seesaw.plan import SeesawPlan
from seesaw.planner import make_plan
from seesaw.recursion import Problem, make_problem, parse_spectrum
from seesaw.risk import base_segment, plan_segments, simulate
from seesaw.schedule import make_schedule
from seesaw.summary import schedule_of

STEPS = 1000


def plan(**options: Any) -> SeesawPlan:
    return make_plan(
        **{"lr": 3e-3, "batch": 64, "seq_len": 16, "tokens": 64 * 16 * STEPS, **options}
    )


@pytest.fixture(scope="module")
def problem() -> Problem:
    return make_problem(parse_spectrum("power:1.5", 30))


def brute_force(made: SeesawPlan, problem: Problem, eta: float, batch: float) -> list[float]:
    """Run plan and base step by step, straight from item 11 of the sheet."""
    lam, risks = problem.eigenvalues, []
    schedule = schedule_of(made)
    size = made.base_batch * made.seq_len
    count = math.ceil(made.total_tokens / size)
    base = [(1.0, float(schedule.ratio((i + 1) * size))) for i in range(count)]
    own = [(s.batch / made.base_batch, s.lr / made.peak_lr) for s in made.walk()]
    for steps in (base, own):
        m = problem.initial.copy()
        for growth, ratio in steps:
            b = batch * growth
            noise = (lam @ m + problem.sigma**2) / b
            rate = eta / problem.trace * ratio
            if made.optimizer == "adam":
                rate *= problem.sigma * math.sqrt(problem.trace / batch)
                rate /= math.sqrt((1 + 1 / b) * (lam**2 @ m) + problem.trace * noise)
            m = m * ((1 - rate * lam) ** 2 + rate**2 * lam**2 / b) + rate**2 * lam * noise
        risks.append(0.5 * float(lam @ m))
    return risks


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"cut": 2.0, "beta": 4.0},
        {"optimizer": "sgd", "cut": 1.5},
        {"base": "step:0.3@0.4,0.7", "cap_batch": 100},
        {"warmup": 0, "base": "linear", "final": 0.0},
    ],
)
def test_simulation_is_the_recursion_over_the_plans_own_steps(
    problem: Problem, options: dict[str, Any]
) -> None:
    made = plan(**options)
    result = simulate(made, problem, eta=0.2, batch=3.0)
    base, own = brute_force(made, problem, 0.2, 3.0)
    assert result.risk_base == pytest.approx(base, rel=1e-9)
    assert result.risk_plan == pytest.approx(own, rel=1e-9)
    assert result.risk_ratio == pytest.approx(own / base, rel=1e-9)
    assert (result.steps_base, result.steps_plan) == (STEPS, made.steps)
    assert result.phases[-1].risk == result.risk_plan
    assert [p.steps for p in result.phases] == [p.steps for p in made.phases]
    assert result.initial_risk == pytest.approx(0.5 * problem.trace * 10.0 / 30)


def test_a_seesaw_plan_has_the_risk_of_its_base(problem: Problem) -> None:
    # The paper's claim, on the baseline that it is made for: alpha = sqrt(beta) costs nothing.
    for options in ({}, {"cut": 2.0}, {"optimizer": "sgd"}):
        made = plan(**options)  # type: ignore[arg-type]
        result = simulate(made, problem, staircase=True)
        assert result.risk_ratio == pytest.approx(1.0, abs=0.01)
        assert result.steps_plan <= 0.72 * result.steps_base
        assert result.mean_share < 0.05
        only_lr = plan(beta=1.0, **options)  # type: ignore[arg-type]
        assert result.risk_base == pytest.approx(simulate(only_lr, problem).risk_plan, rel=5e-3)
    # Against the smooth schedule, small cuts are near it too.
    assert simulate(plan(cut=1.02), problem).risk_ratio == pytest.approx(1.0, abs=0.015)


def test_past_the_noise_scale_the_plan_loses(problem: Problem) -> None:
    # At a rate where the last batches drown the noise no batch ramp replaces the decay.
    past = simulate(plan(cut=2.0, beta=4.0), problem, eta=1.0, staircase=True)
    assert past.mean_share > 0.5
    assert past.risk_ratio > 1.8
    edge = simulate(plan(cut=2.0), problem, eta=1.0, staircase=True)
    assert edge.mean_share < 0.15
    assert edge.risk_ratio < 1.06


@pytest.mark.parametrize("steps", [150, 700, 999, 4000])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_scaled_runs_keep_phases_and_savings(problem: Problem, steps: int, optimizer: str) -> None:
    made = plan(cut=1.5, optimizer=optimizer)
    result = simulate(made, problem, steps=steps)
    assert result.steps_base == steps
    assert result.steps_plan / steps == pytest.approx(made.steps / STEPS, abs=2.0 / steps + 0.003)
    scaled = {p.phase: p.steps * p.batch / 4.0 for p in result.phases}
    for phase in made.phases:
        share = phase.tokens / made.total_tokens * steps
        ratio = phase.batch / made.base_batch
        assert scaled.get(phase.phase, 0.0) == pytest.approx(share, abs=ratio + 1e-9)


def test_scaling_to_the_plans_own_steps_changes_nothing(problem: Problem) -> None:
    made = plan(cut=2.0)
    assert simulate(made, problem, steps=STEPS).to_dict() == simulate(made, problem).to_dict()


def test_a_plan_of_a_billion_steps_is_scaled_down(problem: Problem) -> None:
    made = plan(tokens=64 * 16 * 1e9)
    result = simulate(made, problem, steps=2000)
    assert (result.steps_base, len(result.phases)) == (2000, 25)


def test_warmup_reaches_each_step() -> None:
    made = plan(warmup=0.1, start=0.2)
    pieces = plan_segments(made, 2.0, 1.0)
    assert pieces[0][0] is pieces[1][0]
    warm = pieces[0][1]
    assert isinstance(warm.lr, np.ndarray)
    assert warm.lr == pytest.approx(2.0 * (0.2 + 0.8 * np.arange(1, 101) / 100))
    assert pieces[1][1].lr == 2.0
    assert sum(segment.steps for _, segment in pieces) == made.steps


def test_the_base_follows_its_schedule_step_by_step() -> None:
    schedule = make_schedule("linear", tokens=1000, warmup=0, final=0.0)
    segment = base_segment(schedule, 2.0, 4.0, 10)
    assert segment.lr == pytest.approx(2.0 * (1.0 - np.arange(1, 11) / 10))
    assert (segment.batch, segment.steps) == (4.0, 10)


def test_divergence_is_a_result(problem: Problem) -> None:
    made = simulate(plan(optimizer="sgd"), problem, eta=50.0)
    assert made.base_diverged
    assert made.diverged
    assert math.isnan(made.risk_ratio)
    assert math.isinf(made.risk_plan)


@pytest.mark.parametrize("options", [{"eta": 0.0}, {"batch": -1.0}, {"steps": 0}])
def test_values_out_of_range(problem: Problem, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        simulate(plan(), problem, **options)

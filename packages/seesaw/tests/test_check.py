import dataclasses
import math
from typing import Any

import pytest

from papercuts.errors import UsageError
from seesaw.baseline import BaseSchedule
from seesaw.check import Finding, check_plan
from seesaw.plan import SeesawPlan
from seesaw.planner import make_plan


def plan(**options: Any) -> SeesawPlan:
    return make_plan(**{"lr": 3e-3, "batch": 256, "seq_len": 1024, "tokens": 3.3e9, **options})


def findings(made: SeesawPlan, **options: Any) -> dict[str, Finding]:
    return {finding.name: finding for finding in check_plan(made, **options)}


def edited(made: SeesawPlan, number: int, **values: Any) -> SeesawPlan:
    phases = list(made.phases)
    phases[number] = dataclasses.replace(phases[number], **values)
    return dataclasses.replace(made, phases=tuple(phases))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"base": "step:0.3@0.4,0.8"},
        {"base": "quarter-cosine", "final": 0},
        {"optimizer": "sgd"},
        {"cap_batch": 700, "cut": 2.0},
        {"micro_batch": 16, "gpus": 8, "cut": 2.0},
        {"micro_batch": 32, "gpus": 8, "compensate": True},
        {"batch": 8, "seq_len": 64, "tokens": 5e6, "multiple_of": 8, "compensate": True},
        {"optimizer": "sgd", "multiple_of": 256, "compensate": True},
        {"cap_batch": 700, "multiple_of": 64, "compensate": True},
        {"alpha": 1.4142135, "beta": 2.0},  # factors as a paper prints them
        {"alpha": 1.0488, "beta": 1.1},
    ],
)
def test_a_plan_made_here_is_sound(options: dict[str, Any]) -> None:
    found = findings(plan(**options), cbs=100_000, weight_decay=0.0)
    assert {name: f.verdict for name, f in found.items()} == dict.fromkeys(
        [
            "stability",
            "effective_lr",
            "product",
            "equivalence",
            "tokens",
            "divisibility",
            "critical_batch",
            "weight_decay",
        ],
        "yes",
    )


def test_a_ramp_past_the_edge_is_unstable() -> None:
    found = findings(plan(cut=2.0, beta=4.0))
    assert found["stability"].verdict == "no"
    assert found["stability"].value == pytest.approx(2.0)
    assert found["effective_lr"].verdict == "no"
    assert found["effective_lr"].value == pytest.approx(8.0)
    assert "most aggressive" in findings(plan(cut=2.0))["stability"].message


def test_an_unstable_ramp_says_by_how_much_it_grows() -> None:
    slow = findings(plan(alpha=1.000498, beta=1.001))["stability"]
    assert slow.verdict == "no"
    assert "grows by 1.0000019 at each cut" in slow.message  # and 1.004 in 2302 cuts
    assert "1.000498 is below sqrt(beta)" in slow.message


def test_edited_rows_are_noticed() -> None:
    made = plan(cut=2.0)
    louder = findings(edited(made, 2, lr=made.phases[2].lr * 1.5))
    assert louder["effective_lr"].verdict == "no"
    assert louder["equivalence"].verdict == "no"
    assert louder["equivalence"].value == pytest.approx(0.5)
    assert "phase 2" in louder["equivalence"].message
    late = findings(edited(made, 2, start_token=made.phases[2].start_token + 2 * 512 * 1024))
    assert late["tokens"].verdict == "no"
    early = findings(edited(made, 2, start_token=made.phases[2].start_token - 512 * 1024))
    assert early["tokens"].verdict == "no"
    product = findings(dataclasses.replace(made, alpha=made.alpha * (1 + 1e-11)))["product"]
    assert product.verdict == "no"


def test_coarse_batches_leave_the_line_and_compensation_returns_to_it() -> None:
    coarse = findings(plan(multiple_of=256))["equivalence"]
    assert coarse.verdict == "undecided"
    assert coarse.value == pytest.approx(abs(1.5**0.5 - 1.0), abs=0.07)
    moved = findings(plan(multiple_of=256, compensate=True))
    assert moved["equivalence"].value == pytest.approx(0.0, abs=1e-12)
    assert moved["effective_lr"].value == pytest.approx(1.0, abs=1e-8)


def test_another_machine_may_not_divide_the_batches() -> None:
    found = findings(plan(), micro_batch=8, gpus=8)["divisibility"]
    assert (found.verdict, found.value, found.limit) == ("no", 281.0, 64.0)
    assert "phase 1" in found.message
    assert findings(plan(multiple_of=64), micro_batch=8, gpus=8)["divisibility"].verdict == "yes"


def test_the_critical_batch_size() -> None:
    made = plan(cut=2.0)
    assert findings(made)["critical_batch"].verdict == "undecided"
    over = findings(made, cbs=1000)["critical_batch"]
    assert (over.verdict, over.value, over.limit) == ("no", 2048.0, 1000.0)
    assert f"token {made.phases[2].start_token}" in over.message
    assert findings(made, cbs=2048)["critical_batch"].verdict == "yes"


def test_weight_decay_is_weaker_by_the_sum_of_lr_over_steps() -> None:
    made = plan(warmup=0, cut=1.001)
    found = findings(made)["weight_decay"]
    # Per token the sum falls by cut**1.5 instead of cut: integral of r^1.5 over that of r.
    schedule_mean = 0.55
    from seesaw.shapes import Cosine

    assert found.value == pytest.approx(Cosine(0.1).mean(1.5) / schedule_mean, abs=2e-3)
    assert found.verdict == "undecided"
    kept = findings(made, weight_decay=0.1)["weight_decay"]
    assert kept.verdict == "undecided"
    assert kept.message.endswith(f"{0.1 / found.value:.3g} instead of 0.1 keeps it")
    assert findings(made, weight_decay=0.0)["weight_decay"].verdict == "yes"


@pytest.mark.parametrize(
    "options", [{}, {"batch": 8, "seq_len": 64, "tokens": 1e6}, {"base": "wsd", "warmup": 0.05}]
)
def test_weight_decay_is_the_sum_over_every_step(options: dict[str, Any]) -> None:
    made = plan(**{"tokens": 3e8, **options})
    base = BaseSchedule.of(made)
    total = sum(step.lr for step in made.walk())
    whole = sum(base.step_at(k).lr for k in range(base.steps))
    assert findings(made)["weight_decay"].value == pytest.approx(total / whole, rel=5e-3)


def test_the_tokens_of_a_measured_curve_cannot_be_compared() -> None:
    found = findings(plan(base="curve:0=1;0.5=0.4;1=0.1"))["tokens"]
    assert (found.verdict, found.value) == ("undecided", None)


def test_findings_have_the_same_keys() -> None:
    for finding in check_plan(plan()):
        assert list(finding.to_dict()) == ["name", "verdict", "value", "limit", "message"]


@pytest.mark.parametrize(
    "options",
    [
        {"cbs": 0},
        {"cbs": math.nan},
        {"cbs": math.inf},
        {"gpus": 0},
        {"micro_batch": -1},
        {"weight_decay": -0.1},
    ],
)
def test_values_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        check_plan(plan(), **options)

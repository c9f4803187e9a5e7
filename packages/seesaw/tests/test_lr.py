"""`SeesawLR` against the plan, the closed form of Algorithm 1, and itself after a resume."""

import dataclasses
import io
import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from papercuts.errors import UsageError
from papercuts.streams import Record
from seesaw.baseline import BaseSchedule, schedule_digest
from seesaw.lr import SeesawLR
from seesaw.plan import SeesawPlan, Step
from seesaw.planfile import from_records, to_rows
from seesaw.planner import make_plan

PLAN = make_plan(lr=4e-3, batch=4, seq_len=8, tokens=4000, warmup=0.1)


def optimizer_with(*rates: float) -> torch.optim.Optimizer:
    groups = [{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": rate} for rate in rates]
    return torch.optim.AdamW(groups)


def follow(optimizer: torch.optim.Optimizer, scheduler: SeesawLR, steps: int) -> list[list[float]]:
    seen = []
    for _ in range(steps):
        seen.append([group["lr"] for group in optimizer.param_groups])
        optimizer.step()
        scheduler.step()
    return seen


@pytest.mark.slow  # torch.optim takes seconds to import
def test_every_step_has_the_plans_learning_rate_exactly():
    optimizer = optimizer_with(PLAN.peak_lr)
    seen = follow(optimizer, SeesawLR(optimizer, PLAN), PLAN.steps)
    assert [lr for (lr,) in seen] == [step.lr for step in PLAN.walk()]


@pytest.mark.slow  # torch.optim takes seconds to import
def test_closed_form_warmup_and_cuts():
    optimizer = optimizer_with(PLAN.peak_lr)
    seen = [lr for (lr,) in follow(optimizer, SeesawLR(optimizer, PLAN), PLAN.steps)]
    # Warmup: from a tenth of the peak, linear in the tokens that include the step's own (32).
    assert seen[0] == pytest.approx(4e-3 * (0.1 + 0.9 * 32 / 400), rel=1e-12)
    # Then divided by sqrt(1.1) at the first cut, and so on 24 times where the run has the room.
    assert seen[PLAN.phases[1].start_step] == pytest.approx(4e-3 / math.sqrt(1.1), rel=1e-12)
    longer = make_plan(lr=4e-3, batch=4, seq_len=8, tokens=400_000)
    last = SeesawLR(optimizer, longer).lr_at(longer.steps - 1)
    assert last == pytest.approx([4e-3 * 1.1**-12], rel=1e-12)


@pytest.mark.slow  # torch.optim takes seconds to import
def test_groups_keep_their_ratio_to_the_peak():
    optimizer = optimizer_with(4e-3, 4e-4, 1e-2)
    for step, rates in zip(
        PLAN.walk(), follow(optimizer, SeesawLR(optimizer, PLAN), PLAN.steps), strict=True
    ):
        assert rates == pytest.approx([step.lr, step.lr / 10, step.lr * 2.5], rel=1e-14)


@pytest.mark.slow  # torch.optim takes seconds to import
def test_learning_rate_stays_past_the_end():
    optimizer = optimizer_with(PLAN.peak_lr)
    seen = follow(optimizer, SeesawLR(optimizer, PLAN), PLAN.steps + 3)
    assert seen[-3:] == [[PLAN.phases[-1].lr]] * 3


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(stop=st.integers(0, PLAN.steps))
def test_resume_at_any_step_is_exact(stop: int):
    first = optimizer_with(4e-3, 1e-3)
    scheduler = SeesawLR(first, PLAN)
    follow(first, scheduler, stop)
    file = io.BytesIO()
    torch.save(scheduler.state_dict(), file)
    rest = follow(first, scheduler, PLAN.steps - stop)

    file.seek(0)
    second = optimizer_with(4e-3, 1e-3)
    resumed = SeesawLR(second, PLAN)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    assert follow(second, resumed, PLAN.steps - stop) == rest


@pytest.mark.slow  # torch.optim takes seconds to import
def test_other_plan_or_other_groups_are_refused():
    state = SeesawLR(optimizer_with(4e-3), PLAN).state_dict()
    longer = make_plan(lr=4e-3, batch=4, seq_len=8, tokens=8000)
    with pytest.raises(UsageError, match="plan_steps"):
        SeesawLR(optimizer_with(4e-3), longer).load_state_dict(state)
    other = dataclasses.replace(PLAN, start_ratio=0.2)
    with pytest.raises(UsageError, match="plan_digest"):
        SeesawLR(optimizer_with(4e-3), other).load_state_dict(state)
    with pytest.raises(UsageError, match="1 parameter groups"):
        SeesawLR(optimizer_with(4e-3, 4e-3), PLAN).load_state_dict(state)


@pytest.mark.parametrize(
    ("batch", "tokens", "steps"),
    [(128, 3.3e9, 25178), (256, 3.3e9, 12589), (512, 6.6e9, 12589), (8192, 3.3e9, 394)],
)
def test_base_schedule_has_the_published_cosine_steps(batch: int, tokens: float, steps: int):
    plan = make_plan(lr=3e-3, batch=batch, seq_len=1024, tokens=tokens)
    assert BaseSchedule.of(plan).steps == steps


def test_base_schedule_is_the_cosine_that_the_plan_came_from():
    base = BaseSchedule.of(PLAN)
    for step in range(base.steps):
        before, batch, lr = base.step_at(step)
        after = before + 32
        share = 0.1 + 0.9 * after / 400
        if after >= 400:
            done = (min(after, 4000) - 400) / 3600
            share = 0.1 + 0.9 * (1 + math.cos(math.pi * done)) / 2
        assert (before, batch) == (32 * step, 4)
        assert lr == pytest.approx(4e-3 * share, rel=1e-12)
    assert base.tokens == 4000


@pytest.mark.parametrize("spec", ["linear", "wsd:0.3", "poly:2", "quarter-cosine"])
def test_base_schedule_of_every_named_base_meets_the_plan_at_its_cuts(spec: str):
    plan = make_plan(lr=1.0, batch=2, seq_len=4, tokens=80_000, base=spec, final=0.1)
    base = BaseSchedule.of(plan)
    for phase in plan.phases[1:]:
        step = phase.start_token // 8
        # The phase opens at the first step past the cut: within two base steps of it.
        assert base.step_at(step + 2).lr <= phase.base_lr * (1 + 1e-9)
        assert base.step_at(step - 2 - phase.batch // 2).lr >= phase.base_lr


def test_base_schedule_of_a_measured_curve():
    curve = "curve:0=1;0.5=0.8;1=0.2"
    plan = make_plan(lr=2.0, batch=2, seq_len=5, tokens=1100, warmup=100, base=curve)
    base = BaseSchedule.of(plan)
    assert base.steps == 110
    # After warmup 1000 tokens: at 350 seen, a quarter of them; at 850, three quarters.
    assert base.step_at(34).lr == pytest.approx(2.0 * 0.9, rel=1e-12)
    assert base.step_at(84).lr == pytest.approx(2.0 * 0.5, rel=1e-12)
    assert base.step_at(109).lr == pytest.approx(2.0 * 0.2, rel=1e-12)


def test_digest_is_the_same_for_equal_plans_however_their_batches_are_split():
    records = [Record(json.loads(json.dumps(row)), "plan", 1) for row in to_rows(PLAN)]
    assert schedule_digest(from_records(records)) == schedule_digest(PLAN)
    split = make_plan(lr=4e-3, batch=4, seq_len=8, tokens=4000, micro_batch=1, gpus=1)
    assert split.phases != PLAN.phases
    assert schedule_digest(split) == schedule_digest(PLAN)
    assert schedule_digest(BaseSchedule.of(split)) == schedule_digest(BaseSchedule.of(PLAN))


def changed_phase(**values: float) -> SeesawPlan:
    changed = dataclasses.replace(PLAN.phases[3], **values)
    return dataclasses.replace(PLAN, phases=(*PLAN.phases[:3], changed, *PLAN.phases[4:]))


def test_digest_tells_every_other_plan_and_the_base_schedules_apart():
    others = [
        dataclasses.replace(PLAN, warmup_tokens=401),
        dataclasses.replace(PLAN, start_ratio=0.2),
        changed_phase(lr=math.nextafter(PLAN.phases[3].lr, 1.0)),
        changed_phase(batch=PLAN.phases[3].batch + 1),
        make_plan(lr=4e-3, batch=4, seq_len=8, tokens=4000, base="linear"),
    ]
    digests = {schedule_digest(one) for one in [PLAN, *others]}
    digests |= {schedule_digest(BaseSchedule.of(one)) for one in (PLAN, others[-1])}
    assert len(digests) == 8


@dataclasses.dataclass
class Constant:
    """A schedule that is neither a plan nor a base schedule."""

    peak_lr: float = 1e-3
    seq_len: int = 8
    steps: int = 10
    tokens: int = 160

    def step_at(self, step: int) -> Step:
        return Step(self.tokens_before_step(step), 2, self.peak_lr)

    def tokens_before_step(self, step: int) -> int:
        return 16 * step


@pytest.mark.slow
def test_digest_of_another_kind_of_schedule_is_that_of_its_steps():
    assert schedule_digest(Constant()) == schedule_digest(Constant())
    assert schedule_digest(Constant()) != schedule_digest(Constant(peak_lr=2e-3))
    state = SeesawLR(optimizer_with(1e-3), Constant()).state_dict()
    SeesawLR(optimizer_with(1e-3), Constant()).load_state_dict(state)

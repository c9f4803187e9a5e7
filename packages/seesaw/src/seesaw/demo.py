"""The paper's claim on one page: two schedules, fewer steps, the same risk."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from seesaw.chart import Series, text_chart
from seesaw.plan import SeesawPlan
from seesaw.planner import make_plan
from seesaw.published import reproduce
from seesaw.recursion import make_problem, parse_spectrum
from seesaw.risk import Simulation, simulate
from seesaw.summary import describe, schedule_of, summarize

LR, BATCH, SEQ_LEN, TOKENS = 3e-3, 256, 1024, 3.3e9
BASE_STEPS = 40_000


def demo_lines() -> Iterator[str]:
    """Yield the demo's text line by line."""
    plan = make_plan(lr=LR, batch=BATCH, seq_len=SEQ_LEN, tokens=TOKENS)
    yield "seesaw plan --lr 3e-3 --batch 256 --seq 1024 --tokens 3.3e9 (the paper's 150M model)"
    yield ""
    yield from _charts(plan)
    yield from describe(summarize(plan))
    yield ""
    yield f"Exact risks on noisy linear regression (100 directions, {BASE_STEPS} base steps):"
    yield ""
    yield from _risk_table()
    yield ""
    results = reproduce()
    same = sum(result.verdict == "yes" for result in results)
    yield f"Published step and token counts that come out exactly: {same} of {len(results)}."


def _charts(plan: SeesawPlan) -> Iterator[str]:
    tokens = np.linspace(0, plan.total_tokens, 400)
    base = plan.peak_lr * schedule_of(plan).ratio(tokens)
    phases = [plan.phase_at_token(int(t)) for t in tokens]
    warmup = [plan.lr_factor_in_warmup(int(t)) for t in tokens]
    lr = [phase.lr * factor for phase, factor in zip(phases, warmup, strict=True)]
    flat = [float(plan.base_batch)] * len(tokens)
    grown = [float(phase.batch) for phase in phases]
    for title, cosine, seesaw in (("learning rate", base, lr), ("batch", flat, grown)):
        curves = [Series("cosine", ".", tokens, cosine), Series("Seesaw", "#", tokens, seesaw)]
        yield from text_chart(curves, title=title, x_label="G tokens", x_unit=1e9)
        yield ""


def _risk_table() -> Iterator[str]:
    """Compare Seesaw, and a ramp past the stable edge, with the cosine that both come from."""
    problem = make_problem(parse_spectrum("power:1.5", 100))
    rows: list[tuple[str, Simulation]] = []
    for name, alpha in (
        ("Seesaw: lr / sqrt(1.1), batch * 1.1", None),
        ("too far: lr kept, batch * 1.21", 1.0),
    ):
        plan = make_plan(lr=LR, batch=BATCH, seq_len=SEQ_LEN, tokens=TOKENS, cut=1.1, alpha=alpha)
        rows.append((name, simulate(plan, problem, steps=BASE_STEPS)))
    cosine = rows[0][1]
    yield f"{'schedule':<37}{'steps':>7}{'saved':>8}{'excess risk':>13}{'to cosine':>11}"
    yield f"{'cosine, constant batch':<37}{cosine.steps_base:>7}{'':>8}{cosine.risk_base:>13.4e}"
    for name, result in rows:
        saved = 100.0 * (1.0 - result.steps_plan / result.steps_base)
        yield (
            f"{name:<37}{result.steps_plan:>7}{saved:>7.1f}%{result.risk_plan:>13.4e}"
            f"{result.risk_ratio:>10.3f}x"
        )

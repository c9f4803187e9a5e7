"""The authors' published runs, and the check that a plan has exactly their steps and tokens.

Steps and end tokens are those of the authors' pinned runs of OLMo models on C4 (sequences of 1024
tokens, warmup over 10 % of the tokens, half-cosine to a tenth).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from seesaw.plan import SeesawPlan
from seesaw.planner import make_plan
from seesaw.summary import base_steps

SEQ_LEN = 1024


@dataclass(frozen=True)
class PublishedRun:
    """A run of the paper: its settings, and its steps, tokens and validation losses where given.

    `past_cbs` marks the runs past the critical batch size. `cosine_loss` and `loss` are the final
    validation losses of the cosine run and of this one.
    """

    model: str
    batch: int
    lr: float
    tokens: int
    cut: float
    beta: float
    cosine_steps: int
    steps: int
    end_tokens: int | None
    cosine_loss: float
    loss: float
    past_cbs: bool = False

    def plan(self) -> SeesawPlan:
        """Plan this run as the authors did, their rounding included."""
        return make_plan(
            lr=self.lr,
            batch=self.batch,
            seq_len=SEQ_LEN,
            tokens=self.tokens,
            cut=self.cut,
            beta=self.beta,
            as_published=True,
        )


def _seesaw_runs() -> tuple[PublishedRun, ...]:
    tokens = {"150M": 3_300_000_000, "300M": 6_600_000_000, "600M": 13_200_000_000}
    rows = (
        ("150M", 128, 0.003, 25178, 3.0282, 15524, 3.0208, 3_300_887_552, False),
        ("150M", 256, 0.003, 12589, 3.0354, 7756, 3.0347, 3_300_596_736, False),
        ("150M", 512, 0.003, 6295, 3.0696, 3877, 3.0688, 3_302_964_224, False),
        ("300M", 128, 0.001, 50355, 2.8531, 31046, 2.8453, 6_600_698_880, False),
        ("300M", 256, 0.01, 25178, 2.8592, 15511, 2.8561, 6_600_976_384, False),
        ("300M", 512, 0.01, 12589, 2.8696, 7752, 2.8701, 6_602_585_088, False),
        ("600M", 256, 0.001, 50355, 2.6905, 31021, 2.6884, 13_201_693_696, False),
        ("600M", 512, 0.01, 25178, 2.6988, 15502, 2.6944, 13_201_325_056, False),
        ("600M", 1024, 0.01, 12589, 2.7129, 7751, 2.7132, 13_207_758_848, False),
        ("150M", 1024, 0.003, 3148, 3.1182, 1939, 3.1319, 3_307_838_464, True),
        ("150M", 2048, 0.003, 1574, 3.2385, 970, 3.3284, 3_310_052_352, True),
        ("150M", 4096, 0.003, 787, 3.5322, 486, 3.7675, 3_326_773_248, True),
        ("150M", 8192, 0.001, 394, 4.2741, 244, 4.7078, 3_358_950_400, True),
    )
    return tuple(
        PublishedRun(m, batch, lr, tokens[m], 1.1, 1.1, base, steps, end, cosine, loss, past)
        for m, batch, lr, base, cosine, steps, loss, end, past in rows
    )


def _ramp_runs() -> tuple[PublishedRun, ...]:
    """Make the equivalence line of 150M: a cut where cosine has halved, ever more of it batch.

    The factors are the authors' seven decimals: with the exact roots, 512 sequences would stay
    512 where they trained with 511, and the steps would differ by one or two.
    """
    factors = (1.4142135, 2.0, 2.8284271, 4.0)
    rows = (
        (256, 12589, 3.0294, ((10245, 3.0287), (9049, 3.0296), (8398, 3.0308), (8017, 3.0368))),
        (512, 6295, 3.0534, ((5123, 3.0611), (4525, 3.0576), (4199, 3.0639), (4009, 3.0852))),
    )
    return tuple(
        PublishedRun(
            "150M", batch, 0.003, 3_300_000_000, 2.0, beta, base, steps, None, cosine, loss
        )
        for batch, base, cosine, ramps in rows
        for beta, (steps, loss) in zip(factors, ramps, strict=True)
    )


SEESAW_RUNS = _seesaw_runs()
RAMP_RUNS = _ramp_runs()


@dataclass(frozen=True)
class RowResult:
    """One published run beside the plan made here; `verdict` is `yes` where all figures agree."""

    kind: str
    model: str
    batch: int
    cut: float
    beta: float
    cosine_steps: int
    cosine_steps_published: int
    steps: int
    steps_published: int
    tokens: int
    tokens_published: int | None
    saving: float
    verdict: str

    def to_dict(self) -> dict[str, Any]:
        """Give the fields by name."""
        return asdict(self)


def reproduce() -> list[RowResult]:
    """Plan all 21 published runs and compare steps, end tokens and cosine steps, exactly.

    The eight runs of the equivalence line are published with their steps only.
    """
    return [_compare("seesaw", run) for run in SEESAW_RUNS] + [
        _compare("ramp", run) for run in RAMP_RUNS
    ]


def _compare(kind: str, run: PublishedRun) -> RowResult:
    plan = run.plan()
    cosine = base_steps(plan)
    same = (
        cosine == run.cosine_steps
        and plan.steps == run.steps
        and run.end_tokens in (None, plan.tokens)
    )
    return RowResult(
        kind=kind,
        model=run.model,
        batch=run.batch,
        cut=run.cut,
        beta=run.beta,
        cosine_steps=cosine,
        cosine_steps_published=run.cosine_steps,
        steps=plan.steps,
        steps_published=run.steps,
        tokens=plan.tokens,
        tokens_published=run.end_tokens,
        saving=1.0 - plan.steps / cosine,
        verdict="yes" if same else "no",
    )

"""Plans as records: a row per phase, each with the provenance that makes the file complete."""

from __future__ import annotations

import math
from collections.abc import Iterable
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from papercuts.errors import DataError, UsageError
from seesaw.plan import Phase, SeesawPlan
from seesaw.planner import OPTIMIZERS
from seesaw.summary import schedule_of

if TYPE_CHECKING:
    from papercuts.streams import Record

PHASE_COLUMNS = (
    "phase",
    "start_token",
    "start_step",
    "lr",
    "batch",
    "grad_accum",
    "steps",
    "tokens",
    "base_lr",
)
PLAN_COLUMNS = (
    "base",
    "cut",
    "alpha",
    "beta",
    "optimizer",
    "seq_len",
    "total_tokens",
    "warmup_tokens",
    "start_ratio",
    "final_ratio",
    "micro_batch",
    "gpus",
)


def to_rows(plan: SeesawPlan) -> list[dict[str, Any]]:
    """Give one record per phase, with the plan's own values and the version under `seesaw`."""
    whole = {name: getattr(plan, name) for name in PLAN_COLUMNS}
    provenance = {"version": version("papercuts-seesaw"), **whole}
    return [
        {**{name: getattr(phase, name) for name in PHASE_COLUMNS}, "seesaw": dict(provenance)}
        for phase in plan.phases
    ]


def from_records(records: Iterable[Record], path: str | None = None) -> SeesawPlan:
    """Read a plan back from its rows, JSON or CSV; keys that are not a plan's are ignored.

    Raises DataError, with the line, for a missing or impossible value, for rows that do not follow
    one another (phase, start_step, start_token, tokens) and for rows of different plans; without
    the line, but with the file's name `path`, where there are no rows at all.
    """
    rows: list[Record] = []
    phases: list[Phase] = []
    plan: dict[str, Any] = {}
    for record in records:
        values = _provenance(record)
        if not rows:
            plan = values
        for name, value in values.items():
            if value != plan[name]:
                raise record.error(
                    f"seesaw.{name} is {value!r}: this row is of another plan",
                    f"{plan[name]!r}, as in line {rows[0].line}",
                )
        phases.append(_phase(record, phases, plan))
        rows.append(record)
    if not rows:
        raise DataError(
            "there is no plan here", path=path, expected="one row per phase, of `seesaw plan`"
        )
    made = SeesawPlan(phases=tuple(phases), **plan)
    _check_whole(made, rows)
    return made


def _provenance(record: Record) -> dict[str, Any]:
    nested = record.data.get("seesaw")
    if not isinstance(nested, dict):
        raise record.error("there is no 'seesaw' in this row", "a row of `seesaw plan`")
    get = _Reader(record, nested, "seesaw.")
    values: dict[str, Any] = {
        "base": get.text("base"),
        "cut": get.real("cut"),
        "alpha": get.real("alpha"),
        "beta": get.real("beta"),
        "optimizer": get.text("optimizer"),
        "seq_len": get.whole("seq_len", 1),
        "total_tokens": get.whole("total_tokens", 1),
        "warmup_tokens": get.whole("warmup_tokens", 0),
        "start_ratio": get.real("start_ratio", zero=True),
        "final_ratio": get.real("final_ratio", zero=True),
        "micro_batch": get.whole("micro_batch", 0),
        "gpus": get.whole("gpus", 1),
    }
    if values["cut"] <= 1.0:
        raise record.error(f"seesaw.cut is {values['cut']:g}", "above 1")
    if values["optimizer"] not in OPTIMIZERS:
        raise record.error(f"seesaw.optimizer is {values['optimizer']!r}", "adam or sgd")
    if values["warmup_tokens"] >= values["total_tokens"]:
        raise record.error("seesaw.warmup_tokens is not below seesaw.total_tokens")
    return values


def _phase(record: Record, before: list[Phase], plan: dict[str, Any]) -> Phase:
    get = _Reader(record, record.data, "")
    phase = Phase(
        phase=get.whole("phase", 0),
        start_token=get.whole("start_token", 0),
        start_step=get.whole("start_step", 0),
        lr=get.real("lr"),
        batch=get.whole("batch", 1),
        grad_accum=get.whole("grad_accum", 1),
        steps=get.whole("steps", 1),
        tokens=get.whole("tokens", 1),
        base_lr=get.real("base_lr"),
    )
    last = before[-1] if before else None
    expected = {
        "phase": len(before),
        "start_step": last.start_step + last.steps if last else 0,
        "start_token": last.start_token + last.tokens if last else 0,
        "tokens": phase.steps * phase.batch * plan["seq_len"],
    }
    meaning = {
        "phase": "phases in order from 0",
        "start_step": "the sum of the steps above",
        "start_token": "the sum of the tokens above",
        "tokens": "steps * batch * seq_len",
    }
    for name, value in expected.items():
        found = getattr(phase, name)
        if found != value:
            raise record.error(f"{name} is {found}", f"{value}: {meaning[name]}")
    return phase


def _check_whole(plan: SeesawPlan, rows: list[Record]) -> None:
    """Check what only the whole plan shows: where warmup and the run end, and the base's name."""
    last = plan.phases[-1]
    if not plan.tokens - last.batch * plan.seq_len < plan.total_tokens <= plan.tokens:
        raise rows[-1].error(
            f"the plan ends after {plan.tokens} tokens",
            f"its last step to reach seesaw.total_tokens, {plan.total_tokens}",
        )
    if plan.warmup_tokens > plan.phases[0].tokens:
        raise rows[0].error(
            f"phase 0 ends after {plan.phases[0].tokens} tokens",
            f"no cut within the {plan.warmup_tokens} tokens of warmup",
        )
    try:
        schedule_of(plan)
    except UsageError as error:
        raise rows[0].error(f"seesaw.base: {error}") from error


class _Reader:
    """Takes typed values out of a record, whose CSV form holds text only."""

    def __init__(self, record: Record, data: dict[str, Any], prefix: str) -> None:
        self.record = record
        self.data = data
        self.prefix = prefix

    def _value(self, name: str) -> Any:
        value = self.data.get(name)
        if value is None or value == "":
            raise self.record.error(f"{self.prefix}{name} is missing", "a row of `seesaw plan`")
        return value

    def text(self, name: str) -> str:
        return str(self._value(name))

    def whole(self, name: str, low: int) -> int:
        value = self._value(name)
        number = _whole(value)
        if number is None or number < low:
            raise self.record.error(
                f"{self.prefix}{name} is {value!r}", f"a whole number of at least {low}"
            )
        return number

    def real(self, name: str, *, zero: bool = False) -> float:
        value = self._value(name)
        number = _real(value)
        if not (math.isfinite(number) and (number > 0.0 or (zero and number == 0.0))):
            raise self.record.error(
                f"{self.prefix}{name} is {value!r}",
                "a number of at least 0" if zero else "a number above 0",
            )
        return number


def _real(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        return float(value)
    except ValueError:
        return math.nan


def _whole(value: Any) -> int | None:
    # int() first: a float cannot tell token counts above 2**53 apart.
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            pass
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    number = _real(value)
    return int(number) if math.isfinite(number) and number.is_integer() else None

"""Fits the model's costs to measured times: relative least squares over c, r and one latency."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bitsched.costs import Costs
from bitsched.masks import make_shape
from bitsched.planning import ASSIGNMENTS, NAMED, Assignment, Schedule, make_plan
from bitsched.shape import Shape
from bitsched.simulation import simulate
from papercuts.errors import DataError, UsageError
from papercuts.streams import Record, attach, read_records

LatencyKind = Literal["join", "handoff", "none"]

_RATIOS = (0.0, 0.1, 0.4)  # r over c where the search begins
_LATENCIES = {
    "join": (0.0, 1.0, 3.0, 6.0, 9.0, 12.0),
    "handoff": (0.0, 0.1, 0.4, 1.2),
    "none": (0.0,),
}
_REFINEMENTS = 24


@dataclass(frozen=True, eq=False)
class Timing:
    """A measured time of a shape under a schedule, and the record it came from."""

    shape: Shape
    schedule: Schedule
    processors: int | None
    assign: Assignment | None
    time: float
    record: Record


@dataclass(frozen=True, eq=False)
class Fit:
    """The fitted costs, in the unit of the times, and what they predict for each timing."""

    costs: Costs
    timings: Sequence[Timing]
    predicted: NDArray[np.float64]
    parameters: int
    latency: float

    @property
    def errors(self) -> NDArray[np.float64]:
        """The relative error of each prediction: [timings]."""
        times = np.array([timing.time for timing in self.timings], dtype=np.float64)
        return np.asarray(self.predicted / times - 1.0, dtype=np.float64)

    @property
    def worst(self) -> float:
        """The largest relative error."""
        return float(np.abs(self.errors).max())

    def sentence(self) -> str:
        """Say in one line what was found."""
        costs = self.costs
        return (
            f"c = {costs.compute:.4g}, r = {costs.reduce:.4g}, latency = {self.latency:.4g} (unit "
            f"of the times), largest relative error {self.worst:.1%}"
        )

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield each timing as it was read, with its prediction under the key `bitsched`."""
        for timing, predicted, error in zip(
            self.timings, self.predicted.tolist(), self.errors.tolist(), strict=True
        ):
            yield attach(
                timing.record.data,
                "bitsched",
                {
                    "predicted": predicted,
                    "relative_error": error,
                    "c": self.costs.compute,
                    "r": self.costs.reduce,
                    "latency": self.latency,
                },
            )


def read_timings(path: str) -> list[Timing]:
    """Read measured times, CSV or JSON Lines.

    Columns: `schedule` (asc, desc, shift, sym, spt, list or atomic) and `time` (any unit) must
    be there; `mask` (default full), `n` (tiles, N or QxKV) or `seqlen` and `block`, `stride`,
    `heads`, `kv_heads`, `sms` and `assign` are as the options of `plan`. Raises `DataError` with
    the line.
    """
    timings = [_timing(record) for record in read_records(path)]
    if not timings:
        raise DataError("no timings", path=path, expected="columns schedule, time, mask, n, ...")
    return timings


def fit(timings: Sequence[Timing], latency: LatencyKind = "join") -> Fit:
    """Find the c, r and latency for which the simulator comes closest to the measured times.

    Minimises the sum of squared relative errors. `join` fits what the first tile of a chain that
    has to take its turn waits at least, `handoff` what passes between additions of two SMs.
    For given ratios to c, c itself has a closed form; the ratios are searched on a grid, then by
    halving steps around the best. Chains are dealt by the fitted costs where that is dynamic.
    Raises `UsageError` for fewer timings than parameters.
    """
    parameters = 2 if latency == "none" else 3
    if len(timings) < parameters:
        raise UsageError(
            f"{len(timings)} timings do not fix {parameters} parameters (c, r"
            + (", latency)" if parameters == 3 else ")")
        )
    times = np.array([timing.time for timing in timings])

    def solve(ratio: float, late: float) -> tuple[float, float, NDArray[np.float64]]:
        costs = _costs(1.0, ratio, late, latency)
        spans = np.array([_makespan(timing, costs) for timing in timings])
        shares = spans / times
        c = float(shares.sum() / (shares**2).sum())
        return float(((c * shares - 1.0) ** 2).sum()), c, c * spans

    place = min(
        ((ratio, late) for ratio in _RATIOS for late in _LATENCIES[latency]),
        key=lambda at: solve(*at)[0],
    )
    best = solve(*place)
    steps = [0.1, 0.0 if latency == "none" else 2.0 if latency == "join" else 0.2]
    for _ in range(_REFINEMENTS):
        moves = [(s * steps[0], 0.0) for s in (-1, 1)] + [(0.0, s * steps[1]) for s in (-1, 1)]
        for move in moves:
            tried = (max(0.0, place[0] + move[0]), max(0.0, place[1] + move[1]))
            if tried == place:
                continue
            found = solve(*tried)
            if found[0] < best[0] * (1 - 1e-9):
                best, place = found, tried
                break
        else:
            steps = [step / 2 for step in steps]
            if steps[0] < 0.005:
                break
    _, c, predicted = best
    costs = _costs(c, c * place[0], c * place[1], latency)
    return Fit(costs, timings, predicted, parameters, c * place[1])


def _makespan(timing: Timing, costs: Costs) -> float:
    plan = make_plan(timing.shape, timing.schedule, timing.processors, costs, assign=timing.assign)
    return simulate(plan, costs).makespan


def _costs(c: float, r: float, latency: float, kind: LatencyKind) -> Costs:
    if kind == "handoff":
        return Costs(c, r, latency_local=latency, latency_remote=latency)
    return Costs(c, r, join_latency=latency)


def _timing(record: Record) -> Timing:
    data = {key: value for key, value in record.data.items() if value not in (None, "")}
    schedule, assign = str(data.get("schedule")), data.get("assign")
    if schedule not in (*NAMED, "atomic"):
        raise record.error(f"schedule is {schedule!r}", f"{', '.join(NAMED)} or atomic")
    if assign is not None and assign not in ASSIGNMENTS:
        raise record.error(f"assign is {assign!r}", ", ".join(ASSIGNMENTS))
    try:
        time = float(data.get("time", "nan"))
    except (TypeError, ValueError):
        time = math.nan
    if not 0 < time < math.inf:
        raise record.error(f"time is {data.get('time')!r}", "a number above 0")
    try:
        shape = make_shape(
            str(data.get("mask", "full")),
            seqlen=_text(data, "seqlen"),
            block=_text(data, "block"),
            n=_text(data, "n"),
            stride=_whole(record, data, "stride") or 1,
            heads=_whole(record, data, "heads") or 1,
            kv_heads=_whole(record, data, "kv_heads"),
        )
    except UsageError as error:
        raise record.error(str(error)) from None
    sms = _whole(record, data, "sms")
    return Timing(shape, schedule, sms, assign, time, record)


def _text(data: dict[str, Any], key: str) -> str | None:
    return str(data[key]) if key in data else None


def _whole(record: Record, data: dict[str, Any], key: str) -> int | None:
    if key not in data:
        return None
    text = str(data[key])
    if not text.isdecimal() or not 1 <= int(text) < 2**31:
        raise record.error(f"{key} is {data[key]!r}", "a whole number from 1")
    return int(text)

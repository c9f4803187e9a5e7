"""Run a plan's backward pass again and again with random delays, and compare the bits."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, cast

import torch
from torch import Tensor

from bitsched.backward import (
    Gradients,
    Precision,
    autograd,
    backward,
    forward,
    largest_error,
    one_thread_a_product,
    random_delays,
    worst,
)
from bitsched.checking import check, faults
from bitsched.masks import make_shape
from bitsched.plan import Plan
from bitsched.planfile import read_plan
from bitsched.planning import NAMED, Schedule, make_plan
from bitsched.taskgraph import group_of
from papercuts.errors import NegativeResult, UsageError
from papercuts.log import progress

DEFAULT_SEQLEN = 512

# Of the largest gradient, or of 1 where that is less: the rounding of a bf16 input to a product
# that is summed is 2^-9, and a sum of a few hundred of either sign stays below four of those.
TOLERANCE = {"fp32": 1e-5, "bf16": 2.0**-7}


@dataclass(frozen=True)
class Bits:
    """What some runs of one plan gave.

    `hashes` counts the distinct results over the `runs`; `hash` is the first run's (SHA-256 of
    dQ, dK and dV, its first 16 digits). `deviation` is the largest absolute difference of one
    element between two runs, `max_error` that to torch's autograd in fp64, `tolerance` what is
    allowed of it. `verdict` answers whether all runs gave the
    same bits, and those of right gradients.
    """

    schedule: str
    mask: str
    ordered: bool
    heads: int
    kv_heads: int
    n_kv: int
    n_q: int
    processors: int
    seqlen: int
    width: int
    dtype: str
    threads: int
    runs: int
    delay_us: float
    seed: int
    hashes: int
    hash: str
    deviation: float
    max_error: float
    tolerance: float
    wall_s: float

    @property
    def verdict(self) -> str:
        """Whether all runs gave the same bits, and those of right gradients."""
        return "yes" if self.hashes == 1 and not self.wrong else "no"

    @property
    def wrong(self) -> bool:
        """Whether the gradients are further from autograd's than rounding takes them (or NaN)."""
        return not self.max_error <= self.tolerance

    @property
    def fault(self) -> str | None:
        """What is wrong with the result of a plan that promises its bits, or None."""
        found = []
        if self.ordered and self.hashes > 1:
            found.append(f"{self.hashes} results in {self.runs} runs of a fixed order")
        if self.wrong:
            off = f"off by {self.max_error:.2g}" if math.isfinite(self.max_error) else "not finite"
            found.append(f"wrong gradients: {off}, more than {self.tolerance:.2g} is not rounding")
        return f"{self.schedule}: {', and '.join(found)}" if found else None

    def to_dict(self) -> dict[str, Any]:
        """Give the record."""
        return {"schedule": self.schedule, "verdict": self.verdict, **asdict(self)}


def compare_bits(
    plan: Plan,
    *,
    seqlen: int | None = None,
    width: int = 64,
    dtype: Precision = "fp32",
    threads: int = 8,
    runs: int = 50,
    delay_us: float = 200.0,
    seed: int = 0,
    on_run: Callable[[], None] = lambda: None,
) -> Bits:
    """Compute the gradients of one attention layer `runs` times on `threads` threads.

    Inputs are the same in each run; delays before each addition are drawn anew, exponential with
    mean `delay_us`. Raises `NegativeResult` for a plan that is not valid or deadlocks, before
    anything runs, and `UsageError` for a `seqlen` as `bitsched.tokens.tokens_of` does.
    """
    require_valid(plan)
    # The forward pass and the comparison too: a sum split over threads depends on their number.
    with one_thread_a_product():
        saved = forward(plan, seqlen=seqlen, width=width, precision=dtype, seed=seed)
        exact = autograd(saved)
        hashes: dict[str, int] = {}
        spread = _Spread()
        errors: list[float] = []
        began = time.perf_counter()
        for run in range(runs):
            delays = random_delays(plan, delay_us * 1e-6, seed, run)
            made = backward(plan, saved, threads=threads, delays_s=delays)
            hashes.setdefault(hash_of(made), run)
            spread.add(made)
            errors.append(largest_error(made, exact))
            on_run()
        wall_s = time.perf_counter() - began
    largest = worst(float(one.abs().max()) for one in exact.tensors())
    tokens = saved.tokens
    return Bits(
        schedule=str(plan.about.get("schedule", "unnamed")),
        mask=str(plan.about.get("mask", "unnamed")),
        ordered=plan.ordered,
        heads=tokens.heads,
        kv_heads=tokens.heads // group_of(plan),
        n_kv=tokens.n_kv,
        n_q=tokens.n_q,
        processors=plan.processors,
        seqlen=tokens.length_q,
        width=width,
        dtype=dtype,
        threads=threads,
        runs=runs,
        delay_us=delay_us,
        seed=seed,
        hashes=len(hashes),
        hash=next(iter(hashes))[:16],
        deviation=spread.largest(),
        max_error=worst(errors),
        tolerance=TOLERANCE[dtype] * max(1.0, largest),
        wall_s=round(wall_s, 3),
    )


def compare_all(plans: Sequence[Plan], **options: Any) -> list[Bits]:
    """Compare the bits of each plan in turn (see `compare_bits`), with a progress bar."""
    for plan in plans:
        require_valid(plan)  # all of them, before any time is spent
    with progress("runs", len(plans) * int(options.get("runs", 50))) as bar:
        return [compare_bits(plan, on_run=lambda: bar.advance(1), **options) for plan in plans]


def plans_to_run(
    path: str | None,
    schedules: str | None,
    mask: str,
    seqlen: int | None,
    block: str,
    heads: int,
    kv_heads: int | None,
    processors: int | None,
    seed: int,
) -> list[Plan]:
    """Read one plan, or make one for each name in `schedules` (by commas; None: all that apply).

    All that apply end with `atomic`, which has no order. Raises `UsageError` for a name that is
    none, or does not apply.
    """
    if path is not None:
        if schedules is not None:
            raise UsageError("--schedule makes plans, PLAN is one: name one of the two")
        return [read_plan(path)]
    if mask.startswith("file:"):  # the file counts the tiles, and `seqlen` is dealt to them
        shape = make_shape(mask, heads=heads, kv_heads=kv_heads)
    else:
        length = str(DEFAULT_SEQLEN if seqlen is None else seqlen)
        shape = make_shape(mask, seqlen=length, block=block, heads=heads, kv_heads=kv_heads)
    if schedules is not None:
        names = [name.strip() for name in schedules.split(",")]
        return [make_plan(shape, cast("Schedule", n), processors, seed=seed) for n in names]
    plans = []
    applying: tuple[Schedule, ...] = (*NAMED, "atomic")
    for name in applying:
        with suppress(UsageError):  # a schedule for another mask
            plans.append(make_plan(shape, name, processors, seed=seed))
    return plans


def require_valid(plan: Plan) -> None:
    """Raise `NegativeResult` for a plan that `check` refuses; an open order is allowed."""
    findings = check(plan)
    # A tile whose rank is -1 beside ranked ones says that somebody forgot it.
    part = bool((plan.rank >= 0).any())
    wrong = [f for f in faults(plan, findings) if f.name != "lemma" and (f.name != "order" or part)]
    if wrong:
        raise NegativeResult("; ".join(finding.message for finding in wrong))


def hash_of(gradients: Gradients) -> str:
    """Hash the bits of dQ, dK and dV, in this order."""
    digest = hashlib.sha256()
    for tensor in gradients.tensors():
        digest.update(tensor.contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


class _Spread:
    """The smallest and largest value of each element over the runs."""

    def __init__(self) -> None:
        self.low: tuple[Tensor, ...] = ()
        self.high: tuple[Tensor, ...] = ()

    def add(self, gradients: Gradients) -> None:
        new = gradients.tensors()
        pairs = zip(self.low or new, new, strict=True)
        self.low = tuple(torch.minimum(one, other) for one, other in pairs)
        pairs = zip(self.high or new, new, strict=True)
        self.high = tuple(torch.maximum(one, other) for one, other in pairs)

    def largest(self) -> float:
        pairs = zip(self.low, self.high, strict=True)
        return worst(float((high.double() - low.double()).abs().max()) for low, high in pairs)

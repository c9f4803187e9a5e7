"""Make a Seesaw plan: Algorithm 1 with whole batches, phase by phase."""

from __future__ import annotations

import math
from dataclasses import dataclass

from papercuts.errors import UsageError
from seesaw.cuts import thresholds
from seesaw.plan import Phase, SeesawPlan
from seesaw.schedule import Schedule, make_schedule, step_gamma
from seesaw.shapes import Shape

DEFAULT_CUT = 1.1
OPTIMIZERS = ("adam", "sgd")


@dataclass(frozen=True)
class Factors:
    """What one cut does: lr / `alpha`, batch * `beta`.

    `alpha * beta**exponent = cut`, with exponent 1/2 for adam (Corollary 1) and 1 for sgd
    (Theorem 1).
    """

    cut: float
    alpha: float
    beta: float
    exponent: float


def batch_exponent(optimizer: str) -> float:
    """Give the exponent of beta in the invariant: 1/2 for adam, 1 for sgd.

    Raises UsageError for another optimizer.
    """
    if optimizer not in OPTIMIZERS:
        raise UsageError(f"optimizer must be adam or sgd, got {optimizer!r}")
    return 0.5 if optimizer == "adam" else 1.0


def resolve_factors(
    cut: float | None, alpha: float | None, beta: float | None, optimizer: str
) -> Factors:
    """Complete cut, alpha and beta from those that are given.

    With none of alpha and beta the batch takes the whole cut, and the learning rate falls by its
    square root (adam) or not at all (sgd). One of them gives the other. Both without a cut give
    the cut; both with a cut must agree with it within 0.1 %, for they may have been rounded on the
    command line, and alpha is then refined so that the invariant holds exactly.

    Raises UsageError where the three disagree, cut is not above 1, beta is below 1 or alpha is not
    above 0.
    """
    p = batch_exponent(optimizer)
    for name, value, low in (("cut", cut, 1.0), ("alpha", alpha, 0.0)):
        if value is not None and not (math.isfinite(value) and value > low):
            raise UsageError(f"{name} must be above {low:g}, got {value:g}")
    if beta is not None and not (math.isfinite(beta) and beta >= 1.0):
        raise UsageError(f"beta must be at least 1, got {beta:g}")
    if alpha is not None and beta is not None:
        product = alpha * beta**p
        if cut is None:
            cut = product
            if not cut > 1.0:
                raise UsageError(f"alpha and beta make a cut of {cut:g} (expected above 1)")
        elif abs(product / cut - 1.0) > 1e-3:
            rule = "alpha * sqrt(beta)" if optimizer == "adam" else "alpha * beta"
            raise UsageError(f"{rule} is {product:g}, but cut is {cut:g} (expected the same)")
    cut = DEFAULT_CUT if cut is None else cut
    if beta is None:
        beta = cut if alpha is None else (cut / alpha) ** (1.0 / p)
        if beta < 1.0:
            raise UsageError(f"alpha ({alpha:g}) must not be above cut ({cut:g})")
    return Factors(cut, cut / beta**p, beta, p)


@dataclass(frozen=True)
class BatchRule:
    """How the real-valued batch of Algorithm 1 becomes a whole one.

    Floored where any batch will do, as the authors do, and with `floor`; else rounded to the
    nearest multiple of `unit`; never above `cap`. `as_published` adds the authors' exception: a
    floor that leaves 1 over 32 goes up instead.
    """

    unit: int
    cap: int | None
    as_published: bool = False
    floor: bool = False

    def __call__(self, batch: float) -> int:
        """Give the whole batch for a real-valued one."""
        if self.unit > 1 and not self.floor:
            whole = math.floor(batch / self.unit + 0.5) * self.unit
        else:
            # The tolerance keeps 512 at 512 where repeated multiplication gave 511.9999999999.
            whole = math.floor(batch / self.unit * (1.0 + 1e-9)) * self.unit
            if self.as_published and self.unit == 1 and whole % 32 == 1:
                whole = math.ceil(batch)
        return whole if self.cap is None else min(whole, self.cap)


def make_plan(
    *,
    lr: float,
    batch: int,
    seq_len: int,
    tokens: float,
    warmup: float | None = None,
    base: str | Shape = "cosine",
    final: float | None = None,
    start: float = 0.1,
    cut: float | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    optimizer: str = "adam",
    cap_batch: int | None = None,
    multiple_of: int = 1,
    micro_batch: int | None = None,
    gpus: int = 1,
    compensate: bool = False,
    as_published: bool = False,
) -> SeesawPlan:
    """Turn a base schedule into a Seesaw plan (Algorithm 1).

    `lr` is the peak learning rate, `batch` the base schedule's batch in sequences of `seq_len`
    tokens over all devices, `tokens` the length of the run. `base`, `warmup`, `start` and `final`
    are those of `make_schedule`; `cut`, `alpha` and `beta` those of `resolve_factors`, with a
    default cut of 1.1, or of 1/gamma for step decay, whose only cuts those are.

    `cap_batch` bounds the batch: from there on the learning rate takes the whole of every cut.
    Batches are the nearest multiples of `multiple_of` and of `micro_batch * gpus`. `compensate`
    lets the learning rate take up what rounding left of the batch, so that the invariant holds for
    the rounded batches too. It may then rise where a coarse batch jumps; batches are rounded down,
    so that the effective learning rate still never exceeds its start on a stable ramp.
    `as_published` repeats the authors' own rounding and their last cut.

    A measured curve (`file:CURVE` on the command line) is no `base` here: it goes through
    `read_curve` and `plan_from_curve`.

    Raises UsageError for values that cannot mean a plan.
    """
    schedule = make_schedule(base, tokens=tokens, warmup=warmup, start=start, final=final)
    if isinstance(base, str) and cut is None and (alpha is None or beta is None):
        gamma = step_gamma(base)
        cut = None if gamma is None else 1.0 / gamma
    return plan_schedule(
        schedule,
        lr=lr,
        batch=batch,
        seq_len=seq_len,
        factors=resolve_factors(cut, alpha, beta, optimizer),
        optimizer=optimizer,
        cap_batch=cap_batch,
        multiple_of=multiple_of,
        micro_batch=micro_batch,
        gpus=gpus,
        compensate=compensate,
        as_published=as_published,
    )


def plan_schedule(
    schedule: Schedule,
    *,
    lr: float,
    batch: int,
    seq_len: int,
    factors: Factors,
    optimizer: str = "adam",
    cap_batch: int | None = None,
    multiple_of: int = 1,
    micro_batch: int | None = None,
    gpus: int = 1,
    compensate: bool = False,
    as_published: bool = False,
) -> SeesawPlan:
    """Plan a schedule that is already made; see `make_plan` for the arguments.

    Raises UsageError for values that cannot mean a plan.
    """
    if not (math.isfinite(lr) and lr > 0.0):
        raise UsageError(f"lr must be a finite number above 0, got {lr:g}")
    counts = {"batch": batch, "seq_len": seq_len, "multiple_of": multiple_of, "gpus": gpus}
    if micro_batch is not None:
        counts["micro_batch"] = micro_batch
    for name, value in counts.items():
        if value < 1:
            raise UsageError(f"{name} must be at least 1, got {value}")
    unit = _batch_unit(batch, multiple_of, micro_batch, gpus)
    if cap_batch is not None and cap_batch < batch:
        raise UsageError(f"cap_batch ({cap_batch}) must not be below batch ({batch})")
    cap = None if cap_batch is None else cap_batch - cap_batch % unit
    rule = BatchRule(unit, cap, as_published, floor=compensate)
    if schedule.total_tokens < batch * seq_len:
        raise UsageError(
            f"tokens ({schedule.total_tokens}) must be at least one step ({batch * seq_len})"
        )
    phases = _walk(
        schedule, lr, batch, seq_len, factors, rule, (micro_batch or 0) * gpus, compensate
    )
    return SeesawPlan(
        phases=tuple(phases),
        seq_len=seq_len,
        total_tokens=schedule.total_tokens,
        warmup_tokens=schedule.warmup_tokens,
        start_ratio=schedule.start_ratio,
        final_ratio=schedule.final_ratio,
        base=schedule.base,
        cut=factors.cut,
        alpha=factors.alpha,
        beta=factors.beta,
        optimizer=optimizer,
        micro_batch=micro_batch or 0,
        gpus=gpus,
    )


def _batch_unit(batch: int, multiple_of: int, micro_batch: int | None, gpus: int) -> int:
    """Give what every batch is a multiple of, or raise where the first one is not."""
    device_unit = gpus * (micro_batch or 1)
    unit = math.lcm(multiple_of, device_unit)
    if batch % unit:
        parts = f"multiple_of {multiple_of}" if multiple_of > 1 else ""
        if device_unit > 1:
            parts += f"{' and ' if parts else ''}micro_batch {micro_batch or 1} x {gpus} GPUs"
        raise UsageError(f"batch ({batch}) must be a multiple of {unit} ({parts})")
    return unit


def _walk(
    schedule: Schedule,
    lr: float,
    batch: int,
    seq_len: int,
    factors: Factors,
    rule: BatchRule,
    accumulate: int,
    compensate: bool,
) -> list[Phase]:
    """Walk from cut to cut; a phase starts at the first step that finds its threshold passed.

    Several thresholds inside one step open one phase, where the authors apply one at each step: a
    plan that fell behind would break the promise that its phases hold the base schedule's tokens.
    """
    cuts = thresholds(schedule, factors.cut, batch * seq_len)
    total = schedule.total_tokens
    phases: list[Phase] = []
    token = start_token = step = start_step = opened_by = done = 0
    real, whole = float(batch), batch
    while token < total:
        target = cuts[done] if done < len(cuts) else total
        steps = -(-max(1, target - token) // (whole * seq_len))
        step += steps
        token += steps * whole * seq_len
        grown, done = _take_cuts(cuts, done, token, real, total, seq_len, factors.beta, rule)
        if done == opened_by and token < total:
            continue  # there was no room for the next cut
        phases.append(
            Phase(
                phase=len(phases),
                start_token=start_token,
                start_step=start_step,
                lr=lr * _lr_ratio(factors, opened_by, real, whole, batch, rule.cap, compensate),
                batch=whole,
                grad_accum=whole // accumulate if accumulate else 1,
                steps=step - start_step,
                tokens=token - start_token,
                base_lr=lr * factors.cut**-opened_by,
            )
        )
        start_token, start_step, opened_by, real, whole = token, step, done, grown, rule(grown)
    return phases


def _take_cuts(
    cuts: list[int],
    done: int,
    token: int,
    real: float,
    total: int,
    seq_len: int,
    beta: float,
    rule: BatchRule,
) -> tuple[float, int]:
    """Give the real-valued batch and the number of cuts after those that `token` has passed.

    A cut that leaves no room for one step of its batch is not taken, nor is any after it, which is
    what ends a schedule that falls to 0. (The authors take it, and overshoot the more.)
    """
    while token < total and done < len(cuts) and cuts[done] <= token:
        grown = real * beta if rule.cap is None else min(real * beta, float(rule.cap))
        if not rule.as_published and total - token < rule(grown) * seq_len:
            del cuts[done:]
            break
        real, done = grown, done + 1
    return real, done


def _lr_ratio(
    factors: Factors,
    cuts: int,
    real: float,
    whole: int,
    batch: int,
    cap: int | None,
    compensate: bool,
) -> float:
    """Give lr / peak lr after so many cuts, from lr = peak * cut**-k * (batch_k / batch)**p.

    That is alpha**-k while the batch grows by beta each time; at a cap, and with `compensate`, the
    learning rate takes what the batch could not.
    """
    if compensate:
        real = float(whole)
    elif cap is None or real < cap:
        return factors.alpha**-cuts
    return float(factors.cut**-cuts * (real / batch) ** factors.exponent)

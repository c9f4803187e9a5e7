"""The gradient noise scale, from squared gradient norms at two or more batch sizes.

The expected squared norm of a gradient averaged over B samples is |G|^2 + S/B, a straight line in
1/B. Its intercept is the true gradient's squared norm |G|^2 and its slope the trace S of the noise;
S/|G|^2 estimates the critical batch size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from papercuts.errors import DataError, UsageError
from seesaw.curve import at_path
from seesaw.shapes import Floats
from seesaw.summary import Verdict

if TYPE_CHECKING:
    from papercuts.streams import Record

DRAWS = 4000  # for the interval
# Means this much smaller than the largest weigh no more: past it the fit would lose its digits.
_WEIGHT_FLOOR = 1e-4


@dataclass(frozen=True, eq=False)
class NormLog:
    """Squared gradient norms (n,), the batch in sequences of each, and its step where logged."""

    batch: Floats
    norm_sq: Floats
    step: Floats | None = None


@dataclass(frozen=True)
class NoiseEstimate:
    """The regime of training, as far as the log shows it.

    `noise_trace` is S and `grad_sq` |G|^2; `noise_scale` is S/|G|^2 in sequences, with an
    interval where there is more than one record for each batch, and `noise_scale_tokens` the same
    in tokens. `mean_share` is |G|^2 / (|G|^2 + S/X) at the batch X = `at_batch`: Assumption 3 holds
    while it is small. The verdict is `undecided`, and the scale None, where an estimate of S or
    |G|^2 is not above 0; it is `undecided` too where the interval has no upper end. An upper end of
    None is infinite.
    """

    verdict: Verdict
    noise_scale: float | None
    noise_scale_low: float | None
    noise_scale_high: float | None
    noise_scale_tokens: float | None
    noise_trace: float
    grad_sq: float
    at_batch: float
    mean_share: float | None
    batches: tuple[float, ...]
    records: int
    first_step: float | None
    last_step: float | None
    message: str

    def to_dict(self) -> dict[str, Any]:
        """Give the fields by name."""
        return asdict(self)


def read_norms(
    records: Iterable[Record], *, batch_field: str = "batch", norm_field: str | None = None
) -> NormLog:
    """Take batch, norm and step out of records.

    The squared norm is `grad_norm_sq`, or the square of `grad_norm`, or of `norm_field` (squared
    already where its name ends in `_sq`); both names may be dotted paths. Records without a norm
    are skipped; `step` is kept where every record has it.

    Raises DataError, with the line, for a batch or a (squared) norm that is not a finite number
    above 0, and where no record has a norm.
    """
    names = ("grad_norm_sq", "grad_norm") if norm_field is None else (norm_field,)
    rows: list[tuple[str, float, float, float]] = []
    for record in records:
        name = next((n for n in names if at_path(record.data, n) not in (None, "")), None)
        if name is None:
            continue
        squared = name.endswith("_sq")
        step = record.data.get("step")
        rows.append(
            (
                name,
                _positive(record, batch_field),
                _positive(record, name) if squared else _square(record, name),
                math.nan if step in (None, "") else _number(step),
            )
        )
    if not rows:
        raise DataError(
            "no record has a gradient norm", expected=f"{' or '.join(names)}, and batch"
        )
    # A training log has the norm of each step's batch too; measurements made for this go first.
    best = min((name for name, *_ in rows), key=names.index)
    batch, norm_sq, steps = np.array([row[1:] for row in rows if row[0] == best]).T
    return NormLog(batch, norm_sq, steps if np.all(np.isfinite(steps)) else None)


def _number(value: Any) -> float:
    try:
        return math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return math.nan


def _positive(record: Record, name: str) -> float:
    value = at_path(record.data, name)
    if value is None or value == "":
        raise record.error(f"there is no {name!r}", "the batch size of the gradient")
    number = _number(value)
    if not (math.isfinite(number) and number > 0.0):
        raise record.error(f"{name} is {value!r}", "a finite number above 0")
    return number


def _square(record: Record, name: str) -> float:
    norm = _positive(record, name)
    square = norm * norm
    if not 0.0 < square < math.inf:
        raise record.error(f"{name} is {norm:g}", "a number whose square is finite and above 0")
    return square


def estimate_noise(
    log: NormLog,
    *,
    seq_len: int | None = None,
    at_batch: float | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> NoiseEstimate:
    """Fit |G|^2 + S/B to the mean squared norm at each batch, by weighted least squares.

    Two batches give the two-point formula exactly. Where records carry steps, and steps hold more
    than one batch, only those steps count, for the gradient changes along the run, and the
    interval takes the records of one step as dependent; else all records are independent.
    `at_batch` is where the mean share is taken, the largest batch where None. `seed` is that of
    the interval's draws.

    Raises UsageError for a confidence outside (0, 1) and for a `seq_len` or an `at_batch` that is
    not a finite number above 0; DataError where there are not two batch sizes or the estimates are
    beyond floating point.
    """
    if not 0.0 < confidence < 1.0:
        raise UsageError(f"confidence must lie between 0 and 1, got {confidence:g}")
    for name, value in (("seq_len", seq_len), ("at_batch", at_batch)):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise UsageError(f"{name} must be a finite number above 0, got {value:g}")
    log, clusters = _pair(log)
    batches = np.unique(log.batch)
    if len(batches) < 2:
        raise DataError(
            f"all gradient norms are at batch {batches[0]:g}", expected="two batch sizes or more"
        )
    where = np.searchsorted(batches, log.batch)
    counts = np.bincount(where)
    unit = _unit(log.norm_sq)
    norm_sq = log.norm_sq / unit
    means = np.bincount(where, norm_sq) / counts
    # A mean of n squared norms spreads about in proportion to itself over sqrt(n).
    weight = counts / np.maximum(means, _WEIGHT_FLOOR * means.max()) ** 2
    grad_sq, trace = (float(v[0]) for v in _fit(batches, means[None], weight))
    if not (math.isfinite(grad_sq * unit) and math.isfinite(trace * unit)):
        raise DataError(
            "these norms are too large to estimate from", expected="squares below 1e300"
        )
    covariance = _covariance(norm_sq, where, clusters, means)
    interval = None
    if covariance is not None:
        rng = np.random.default_rng(seed)
        interval = _interval(batches, means, weight, covariance, confidence, rng)
    known = grad_sq > 0.0 and trace > 0.0
    bounded = interval is None or math.isfinite(interval[1])
    low, high = interval if interval is not None and known else (None, None)
    scale = trace / grad_sq if known else None
    at = float(batches[-1]) if at_batch is None else at_batch
    return NoiseEstimate(
        verdict="yes" if known and bounded else "undecided",
        noise_scale=scale,
        noise_scale_low=_finite(low),
        noise_scale_high=_finite(high),
        noise_scale_tokens=None if scale is None or seq_len is None else scale * seq_len,
        noise_trace=trace * unit,
        grad_sq=grad_sq * unit,
        at_batch=at,
        mean_share=grad_sq / (grad_sq + trace / at) if known else None,
        batches=tuple(batches.tolist()),
        records=len(log.batch),
        first_step=None if log.step is None else float(log.step.min()),
        last_step=None if log.step is None else float(log.step.max()),
        message=_message(grad_sq, trace, interval),
    )


def _unit(norm_sq: Floats) -> float:
    """Give a power of two near the largest: division by it is exact, and squares stay finite."""
    return math.ldexp(1.0, math.frexp(float(norm_sq.max()))[1] - 1)


def _finite(value: float | None) -> float | None:
    return None if value is None or math.isinf(value) else value


def estimate_windows(log: NormLog, windows: int, **options: Any) -> list[NoiseEstimate]:
    """Estimate the noise scale in equal stretches of steps, for it grows as training goes on.

    `options` are those of `estimate_noise`. A stretch without two batch sizes is left out.

    Raises UsageError for fewer than 1 window, DataError where records carry no steps or no
    stretch has two batch sizes.
    """
    if windows < 1:
        raise UsageError(f"windows must be at least 1, got {windows}")
    if windows == 1:
        return [estimate_noise(log, **options)]
    if log.step is None:
        raise DataError("windows need a step in every record", expected="a key 'step'")
    edges = np.linspace(log.step.min(), log.step.max(), windows + 1)
    which = np.clip(np.searchsorted(edges, log.step, side="right") - 1, 0, windows - 1)
    estimates = []
    for window in range(windows):
        inside = which == window
        if len(np.unique(log.batch[inside])) > 1:
            part = NormLog(log.batch[inside], log.norm_sq[inside], log.step[inside])
            estimates.append(estimate_noise(part, **options))
    if not estimates:
        raise DataError("no window holds two batch sizes", expected="fewer windows")
    return estimates


def _pair(log: NormLog) -> tuple[NormLog, npt.NDArray[np.intp]]:
    """Keep the steps that hold more than one batch, if any; number what varies independently."""
    alone = np.arange(len(log.batch))
    if log.step is None:
        return log, alone
    _, where = np.unique(log.step, return_inverse=True)
    low = np.full(where.max() + 1, np.inf)
    high = np.full(where.max() + 1, -np.inf)
    np.minimum.at(low, where, log.batch)
    np.maximum.at(high, where, log.batch)
    keep = (high > low)[where]
    if not np.any(keep):
        return log, alone
    clusters = np.unique(where[keep], return_inverse=True)[1]
    return NormLog(log.batch[keep], log.norm_sq[keep], log.step[keep]), clusters


def _fit(batches: Floats, means: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Fit each row of means (r, b) with intercept |G|^2 and slope S over 1/B; give both (r,)."""
    smallest = float(batches.min())
    x = smallest / batches
    weight = weight / weight.sum()
    dx = x - weight @ x
    slope = means @ (weight * dx) / float(weight @ dx**2)
    return means @ weight - slope * float(weight @ x), slope * smallest


def _covariance(
    norm_sq: Floats, where: npt.NDArray[np.intp], clusters: npt.NDArray[np.intp], means: Floats
) -> Floats | None:
    """Give the covariance (b, b) of the means per batch, None where a batch has one cluster only.

    Records of one cluster (a step) may depend on each other; clusters do not.
    """
    size = len(means)
    cells = clusters * size + where
    total = (int(clusters.max()) + 1) * size
    sums = np.bincount(cells, norm_sq, minlength=total).reshape(-1, size)
    counts = np.bincount(cells, minlength=total).reshape(-1, size)
    filled = np.sum(counts > 0, axis=0)
    if np.any(filled < 2):
        return None
    off = (sums - means * counts) / counts.sum(axis=0) * np.sqrt(filled / (filled - 1.0))
    return np.asarray(off.T @ off)


def _interval(
    batches: Floats,
    means: Floats,
    weight: Floats,
    covariance: Floats,
    confidence: float,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Give an interval of S/|G|^2: means are drawn from their normal distribution and refitted."""
    drawn = rng.multivariate_normal(means, covariance, size=DRAWS, method="eigh")
    grad_sq, trace = _fit(batches, drawn, weight)
    # A gradient estimated at 0 or below means a scale beyond any batch, a negative noise none.
    positive = grad_sq > 0.0
    scale = np.full(DRAWS, np.inf)
    scale[positive] = np.maximum(trace[positive], 0.0) / grad_sq[positive]
    tail = 50.0 * (1.0 - confidence)
    low, high = np.percentile(scale, [tail, 100.0 - tail], method="nearest")
    return float(low), float(high)


def _message(grad_sq: float, trace: float, interval: tuple[float, float] | None) -> str:
    if trace <= 0.0:
        return "the norms do not fall with the batch: no noise to be seen, log more steps"
    if grad_sq <= 0.0:
        return "the noise hides the gradient at these batches: log more steps or larger batches"
    if interval is None:
        return "one record for a batch: there is no interval"
    if math.isinf(interval[1]):
        return "the noise scale has no upper end: log more steps or larger batches"
    return f"the noise scale lies between {interval[0]:.4g} and {interval[1]:.4g} sequences"

"""The paper's claim on one page: the right order makes a deterministic backward pass as fast."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from importlib.util import find_spec

from bitsched.costs import Costs
from bitsched.gantt import plan_timeline
from bitsched.lowerbounds import bounds
from bitsched.planning import Schedule, make_plan
from bitsched.shape import Mask, Shape, causal, full
from bitsched.simulation import simulate
from bitsched.textchart import chart_lines

_SIZES = [(n, m) for n in (2, 4, 8, 12, 16) for m in (2, 4, 6)]
_COSTS = [Costs(5, 1), Costs(2, 1), Costs(3, 2), Costs(1, 1), Costs(7, 3)]
_MEASURED: dict[Schedule, float] = {"atomic": 2.391, "asc": 3.804, "desc": 2.962, "spt": 2.900}
_WIDTH = 80


def demo_lines() -> Iterator[str]:
    """Yield the demo's text line by line."""
    yield "1. The paper's closed forms against the event simulator"
    yield ""
    equal, total = _closed_forms()
    yield f"   {equal} of {total} makespans equal to the last digit: 15 sizes, 5 costs, 5 schedules"
    yield ""
    yield "2. What the order costs: 16 tiles a side, 8 heads, 16 SMs, compute 5, reduce 1"
    yield ""
    yield "   mask     schedule                  makespan   bound   gap     idle"
    gaps = {}
    for mask, schedule, words in (
        ("full", "asc", "ascending (baseline)"),
        ("full", "shift", "cyclic shift"),
        ("causal", "asc", "ascending (baseline)"),
        ("causal", "desc", "descending"),
        ("causal", "sym", "symmetric shift"),
    ):
        run = simulate(make_plan(_shape(mask, 16, 8), schedule), Costs())  # type: ignore[arg-type]
        gaps[mask, schedule] = run.gap
        yield (
            f"   {mask:8s} {words:25s} {run.makespan:8g} {run.bounds.best:7g}   "
            f"{run.gap:.3f} {run.idle_share:7.1%}"
        )
    yield ""
    yield "3. The same, small: 4 tiles, 2 heads, causal (`bitsched gantt` draws any plan)"
    for schedule in ("asc", "sym"):
        plan = make_plan(_shape("causal", 4, 2), schedule)  # type: ignore[arg-type]
        yield ""
        for line in chart_lines(plan_timeline(plan, simulate(plan, Costs())), _WIDTH - 3):
            yield f"   {line}".rstrip()
    yield ""
    yield "4. A real shape: flash-attention pull request 1893 (8,192 tokens, 16 heads, width 128,"
    yield "   causal, H100-class), the model without a fit: 132 SMs, r = c/10"
    yield ""
    yield "   schedule                  measured   over no order   model"
    ratios = _pull_request()
    names = {
        "atomic": "no order (atomics)",
        "asc": "naive deterministic",
        "desc": "reversed Q order",
        "spt": "shortest first",
    }
    for schedule, measured in _MEASURED.items():
        yield (
            f"   {names[schedule]:25s} {measured:5.3f} ms   {measured / _MEASURED['atomic']:13.2f} "
            f"{ratios[schedule]:7.2f}"
        )
    yield ""
    seen = yield from _bits()
    yield from _summary(equal, total, gaps, ratios["asc"], seen)


def _shape(mask: str, n: int, heads: int) -> Shape:
    active = full(n, n) if mask == "full" else causal(n, n)
    kind: Mask = "full" if mask == "full" else "causal"
    return Shape(heads, active, mask=kind)


def closed_form(schedule: str, n: int, m: int, costs: Costs) -> float:
    """Give the makespan of n tiles on n SMs and m heads, n and m even (sheet items 5 to 8).

    `desc` holds for r <= c.
    """
    step, r = costs.compute + costs.reduce, costs.reduce
    if schedule == "shift":
        return m * n * step
    if schedule == "asc":
        return m * n * step + (n - 1) * r
    least = m * (n + 1) * step / 2
    return least if schedule == "sym" else least + (n - 1) * r


def _closed_forms() -> tuple[int, int]:
    cases = (
        ("full", "asc"), ("full", "shift"), ("causal", "asc"), ("causal", "desc"),
        ("causal", "sym"),
    )  # fmt: skip
    equal = total = 0
    for n, m in _SIZES:
        for mask, schedule in cases:
            plan = make_plan(_shape(mask, n, m), schedule)  # type: ignore[arg-type]
            for costs in _COSTS:
                total += 1
                equal += simulate(plan, costs).makespan == closed_form(schedule, n, m, costs)
    return equal, total


def _pull_request() -> dict[str, float]:
    shape, costs = _shape("causal", 64, 16), Costs(1.0, 0.1)
    spans = {
        schedule: simulate(make_plan(shape, schedule, 132, costs), costs).makespan
        for schedule in _MEASURED
    }
    return {schedule: span / spans["atomic"] for schedule, span in spans.items()}


def _bits() -> Generator[str, None, dict[str, int] | None]:
    """Yield the lines of the run with real bits; gives what it showed (None without torch)."""
    if find_spec("torch") is None:
        yield "5. Real bits: needs the extra `torch` (`bitsched bits`)"
        yield ""
        return None
    from bitsched.bits import compare_all, plans_to_run

    yield "5. Real bits: causal, 256 tokens, 8 threads with random delays, 10 runs each"
    yield ""
    plans = plans_to_run(None, "sym,atomic", "causal", 256, "32", 2, None, None, 0)
    hashes = {}
    for one in compare_all(plans, width=32, threads=8, runs=10, delay_us=200.0):
        hashes[one.schedule] = one.hashes
        yield f"   {one.schedule:8s} {one.hashes:2d} different results in 10 runs"
    yield ""
    return hashes


def _summary(
    equal: int,
    total: int,
    gaps: dict[tuple[str, str], float],
    naive: float,
    hashes: dict[str, int] | None,
) -> Iterator[str]:
    bound = bounds(_shape("causal", 16, 8), Costs(), 16).best
    yield "What was shown"
    yield ""
    rows = [
        ("closed forms of the paper, simulated", f"{equal} of {total} equal"),
        ("full mask: baseline over the bound", f"{gaps['full', 'asc']:.3f}"),
        ("full mask: cyclic shift over the bound", f"{gaps['full', 'shift']:.3f}"),
        ("causal: baseline over the bound", f"{gaps['causal', 'asc']:.3f}"),
        (f"causal: symmetric shift over the bound ({bound:g})", f"{gaps['causal', 'sym']:.3f}"),
        ("real shape: naive order over no order", f"{naive:.2f} (measured 1.59)"),
    ]
    if hashes is not None:
        shown = ", ".join(f"{name} {count}" for name, count in hashes.items())
        rows.append(("different results in 10 runs", shown))
    for words, value in rows:
        yield f"   {words:50s} {value}"

"""All schedules over a grid of shapes, side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from bitsched.costs import Costs
from bitsched.lowerbounds import bounds
from bitsched.masks import make_shape, read_blocks
from bitsched.planning import NAMED, Schedule, make_plan
from bitsched.shape import Shape
from bitsched.simulation import DeadlockError, simulate
from papercuts.errors import UsageError

ORDERS: tuple[Schedule, ...] = ("atomic", *NAMED)


def read_range(option: str, text: str) -> list[int]:
    """Read 8, 4,6,8, 4..128 (doubling) or 4..16:4 (in steps). Raises `UsageError`."""
    found = re.fullmatch(r"(\d{1,9})\.\.(\d{1,9})(?::(\d{1,9}))?", text.strip())
    if found:
        low, high, step = int(found[1]), int(found[2]), int(found[3] or 0)
        values: list[int] = []
        while 0 < low <= high and len(values) < 10_000 and (found[3] is None or step):
            values.append(low)
            low = low + step if step else 2 * low
    else:
        parts = text.split(",")
        values = [int(part) for part in parts if re.fullmatch(r" *\d{1,9} *", part)]
        values = values if len(values) == len(parts) and all(values) else []
    if not values:
        raise UsageError(
            f"{option} {text!r} is not N, N,N,..., N..M (doubling) or N..M:STEP, from 1 on"
        )
    return values


def read_sizes(
    mask: str, n: str | None, heads: str, block: int | None, *, fixed_tokens: bool = False
) -> tuple[list[int], list[int]]:
    """Read the KV tiles and the heads of a grid from the words of the command line.

    A block mask (file:PATH) has its own number of tiles: `UsageError` for another, for tokens in
    a tile, and for a batch that is filled. Raises as `read_range` and `read_blocks`.
    """
    counts = read_range("--heads", heads)
    if not mask.startswith("file:"):
        return read_range("--n", "4..32" if n is None else n), counts
    idle = {"--n": n is not None, "--block": block is not None, "--fixed-tokens": fixed_tokens}
    given = [option for option, is_given in idle.items() if is_given]
    if given:
        raise UsageError(f"{mask} says how many tiles there are: it goes without {given[0]}")
    return [read_blocks(mask.removeprefix("file:")).shape[0]], counts


def compare(
    mask: str,
    tiles: Sequence[int],
    heads: Sequence[int],
    costs: Costs,
    *,
    sms: int | None = None,
    block: int | None = None,
    fixed_tokens: bool = False,
    schedules: Sequence[Schedule] = ORDERS,
) -> Iterator[dict[str, Any]]:
    """Yield a record for each shape and each schedule that takes it.

    A shape has n KV tiles and n Q tiles (of `block` tokens, 128 by default: for masks that count
    tokens) and is run on `sms` processors (default: n). A block mask (file:PATH) has as many as
    its file says, and n must be its KV tiles. With `fixed_tokens` the batch fills the largest n: a
    shape of n tiles has max(n) // n sequences of so many heads. `makespan` is in the unit of the
    costs; `gap` is over the largest lower bound of the shape; `throughput` is the share of all
    SMs' time that is work; `speedup` is the makespan of `asc` over this one, `overhead` this one
    over that of `atomic` (no order), minus 1; `fastest` marks the best of those with an order.
    """
    for n in tiles:
        for count in heads:
            batch = max(tiles) // n if fixed_tokens else 1
            shape = _shape(mask, n, block or 128, count * batch)
            processors = sms or n
            least = bounds(shape, costs, processors)
            rows = []
            for schedule in schedules:
                try:
                    plan = make_plan(shape, schedule, processors, costs)
                    run = simulate(plan, costs)
                except (UsageError, DeadlockError):
                    continue  # a schedule for another mask
                rows.append((schedule, plan, run))
            spans = {schedule: run.makespan for schedule, _, run in rows}
            ordered = [run.makespan for _, plan, run in rows if plan.ordered]
            for schedule, plan, run in rows:
                best = least.best if plan.ordered else least.unordered
                yield {
                    "mask": mask,
                    "n": n,
                    "heads": count,
                    "batch": batch,
                    "processors": processors,
                    "schedule": schedule,
                    "makespan": run.makespan,
                    "bound": best,
                    "gap": run.makespan / best,
                    "fastest": plan.ordered and run.makespan == min(ordered),
                    "throughput": least.work / run.makespan,
                    "speedup": _ratio(spans.get("asc"), run.makespan),
                    "overhead": _less_one(_ratio(run.makespan, spans.get("atomic"))),
                }


def _shape(mask: str, n: int, block: int, heads: int) -> Shape:
    if mask.startswith("file:"):
        return make_shape(mask, heads=heads)
    return make_shape(mask, seqlen=str(n * block), block=str(block), heads=heads)


def _ratio(over: float | None, under: float | None) -> float | None:
    return None if over is None or not under else over / under


def _less_one(ratio: float | None) -> float | None:
    return None if ratio is None else ratio - 1.0

"""Making a plan by the name of its schedule, and the best of all that apply."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import version
from typing import Literal

from bitsched import assignment
from bitsched.chains import Chains
from bitsched.checking import meeting
from bitsched.costs import Costs
from bitsched.listing import PRIORITIES, list_schedule
from bitsched.lowerbounds import bounds
from bitsched.plan import MOST_PROCESSORS, Plan, counted
from bitsched.shape import Shape
from bitsched.shifts import shift, symmetric
from bitsched.simulation import simulate
from bitsched.walks import (
    ascending,
    descending,
    in_queue_order,
    reversed_sums,
    shortest_first,
    unordered,
)
from papercuts.errors import UsageError

Schedule = Literal["auto", "asc", "desc", "shift", "sym", "spt", "list", "atomic", "exact"]
Assignment = Literal["waves", "dynamic", "longest"]
NAMED: tuple[Schedule, ...] = ("asc", "desc", "spt", "shift", "sym", "list")
ASSIGNMENTS: tuple[Assignment, ...] = ("waves", "dynamic", "longest")

_WALKS: dict[str, Callable[[Shape], Chains]] = {
    "asc": ascending,
    "desc": descending,
    "spt": shortest_first,
    "atomic": ascending,
}


def make_plan(
    shape: Shape,
    schedule: Schedule = "auto",
    processors: int | None = None,
    costs: Costs | None = None,
    *,
    assign: Assignment | None = None,
    reverse_sums: bool = False,
    time_limit_s: float = 60.0,
    seed: int = 0,
) -> Plan:
    """Plan a shape on so many processors (default: as many as KV tiles).

    `schedule`: `asc`, `desc`, `spt` (walks, for any mask), `shift` (full), `sym` (causal), `list`
    (any), `atomic` (no order), `exact` (a solver; the extra `exact`), or `auto`: the fastest under
    `costs` of all named ones that apply, `exact` aside. `assign` says who takes which chain of a
    walk: in `waves`, each free processor the next (`dynamic`) or the `longest` of those left.
    Default: waves where a wave holds whole heads, else dynamic; `auto` tries all.
    `reverse_sums` adds every sum in the opposite order. `time_limit_s` and `seed` are the
    solver's. Raises `UsageError` for a schedule that the shape does not take.
    """
    costs = costs or Costs()
    processors = shape.n_kv if processors is None else processors
    if processors < 1:
        raise UsageError(f"{processors} processors: there is at least one")
    if processors > MOST_PROCESSORS:
        raise UsageError(f"{processors} processors: there are at most {MOST_PROCESSORS}")
    if assign is not None and schedule not in (*_WALKS, "auto"):
        raise UsageError(f"--assign deals the chains of a walk: {schedule} deals its own")
    if reverse_sums and schedule == "atomic":
        raise UsageError("atomic has no order of its sums to reverse")
    if schedule == "auto":
        plan = _best(shape, processors, costs, assign)
    elif schedule == "exact":
        plan = _exact(shape, processors, costs, time_limit_s, seed)
    else:
        plan = _named(shape, schedule, processors, costs, assign)
    if reverse_sums:
        plan = _reversed(plan)
    if plan.ordered and not meeting(plan).size:
        plan.about["conflict_free"] = True
    return plan


def candidates(
    shape: Shape, processors: int, costs: Costs, assign: Assignment | None = None
) -> Iterator[Plan]:
    """Give every plan that `auto` compares, in a fixed order."""
    for schedule in NAMED:
        ways = ASSIGNMENTS if assign is None else (assign,)
        for way in ways if schedule in _WALKS else (None,):
            try:
                yield _named(shape, schedule, processors, costs, way)
            except UsageError:
                break


def _best(shape: Shape, processors: int, costs: Costs, assign: Assignment | None) -> Plan:
    """Give the fastest candidate; of equals the first."""
    best: Plan | None = None
    compared: dict[str, float] = {}
    for plan in candidates(shape, processors, costs, assign):
        makespan = simulate(plan, costs).makespan
        if best is None or makespan < min(compared.values()):
            best = plan
        name = str(plan.about["schedule"])
        compared[name] = min(makespan, compared.get(name, makespan))
    assert best is not None  # noqa: S101 (the walks take any shape)
    return replace(best, about=best.about | {"auto": compared, "costs": costs.named()})


def _named(
    shape: Shape, schedule: str, processors: int, costs: Costs, assign: Assignment | None
) -> Plan:
    about = shape_about(shape) | {"processors": processors, "schedule": schedule}
    try:
        if schedule == "shift":
            plan = shift(shape, processors)
        elif schedule == "sym":
            plan = symmetric(shape, processors)
            if shape.n_kv % 2:
                about["padded"] = True
        elif schedule == "list":
            plan = _listed(shape, processors, costs, about)
        elif schedule in _WALKS:
            plan = _walked(shape, schedule, processors, costs, assign, about)
        else:
            raise UsageError(f"no schedule {schedule!r}: take one of {', '.join(NAMED)}")
    except ValueError as error:
        raise UsageError(str(error)) from None
    return replace(plan, about=about)


def _walked(
    shape: Shape,
    schedule: str,
    processors: int,
    costs: Costs,
    assign: Assignment | None,
    about: dict[str, object],
) -> Plan:
    chains = _WALKS[schedule](shape)
    kv_heads = shape.heads // shape.group
    if assign is None:
        assign = "dynamic" if processors % (chains.chains // kv_heads) else "waves"
    if assign == "longest":
        chains = in_queue_order(chains.take(assignment.longest_first(chains)))
    if schedule == "atomic":
        chains = unordered(chains)
    about["assign"] = assign
    if assign == "waves":
        owner = assignment.in_waves(chains, processors, snake=schedule == "desc")
    else:
        about["costs"] = costs.named()
        owner = assignment.dynamic(chains, processors, costs, costs.tile(schedule))
    return chains.on_processors(owner, processors, {})


def _listed(shape: Shape, processors: int, costs: Costs, about: dict[str, object]) -> Plan:
    """Give the fastest of the list schedules: by queue and by priority of the tiles."""
    best: Plan | None = None
    least = float("inf")
    given = ascending(shape)
    about["costs"] = costs.named()
    for queue in ("longest", "dynamic"):
        chains = given.take(assignment.longest_first(given)) if queue == "longest" else given
        for priority in PRIORITIES:
            plan = list_schedule(chains, processors, costs, costs.tile("list"), priority)
            makespan = simulate(plan, costs).makespan
            if makespan < least:
                best, least = plan, makespan
                about |= {"assign": queue, "priority": priority}
    assert best is not None  # noqa: S101
    return best


def _exact(shape: Shape, processors: int, costs: Costs, time_limit_s: float, seed: int) -> Plan:
    from bitsched.exact import find_optimum

    found = find_optimum(
        shape,
        processors,
        compute=costs.compute,
        reduce=costs.reduce,
        hint=_best(shape, processors, Costs(costs.compute, costs.reduce), None),
        time_limit_s=time_limit_s,
        seed=seed,
    )
    plain = Costs(costs.compute, costs.reduce)
    about = shape_about(shape) | {
        "processors": processors,
        "schedule": "exact",
        "costs": costs.named(),
        "proved": found.proved,
        "makespan": simulate(found.plan, plain).makespan,
        "bound": max(found.bound, bounds(found.plan, plain).best),
    }
    return replace(found.plan, about=about)


def _reversed(plan: Plan) -> Plan:
    chains = Chains(plan.head, plan.kv, plan.q, plan.rank, plan.starts)
    return replace(
        plan, rank=reversed_sums(chains).rank, about=plan.about | {"reversed_sums": True}
    )


def shape_about(shape: Shape) -> dict[str, object]:
    """Describe a shape as plans carry it."""
    return {
        "version": version("papercuts-bitsched"),
        "mask": shape.mask,
        "heads": shape.heads,
        "kv_heads": shape.heads // shape.group,
        "n_kv": shape.n_kv,
        "n_q": shape.n_q,
    } | shape.about


def notes(plan: Plan) -> Iterator[str]:
    """Say to a person what was chosen and what was done to make it fit."""
    about = plan.about
    if "auto" in about:
        others = ", ".join(f"{name} {time:g}" for name, time in _times(about["auto"]))
        yield f"auto took {about['schedule']}; makespans, each at its best --assign: {others}"
    if "proved" in about:
        makespan, bound = f"{about['makespan']:g}", f"{about['bound']:g}"
        proved = f"{makespan} is the least makespan"
        yield proved if about["proved"] else f"not proved: {makespan}, and at least {bound}"
    if about.get("padded"):
        odd = counted(_integer(about["n_kv"]), "tile")
        yield f"{odd} a side, an odd number: planned as one more, which is left out"
    if about.get("assign") in ("dynamic", "longest") and about["schedule"] in _WALKS:
        which = "next" if about["assign"] == "dynamic" else "longest"
        yield f"each SM that is free takes the {which} chain, at the costs given"
    elif about.get("assign") == "waves" and plan.processors < _integer(about["n_kv"]):
        yield f"{about['n_kv']} KV tiles on {counted(plan.processors, 'SM')}: in waves"
    idle = int((plan.starts[1:] == plan.starts[:-1]).sum())
    if idle:
        yield f"{idle} of {plan.processors} SMs have nothing to do"


def _times(compared: object) -> list[tuple[str, float]]:
    return list(compared.items()) if isinstance(compared, dict) else []


def _integer(value: object) -> int:
    return value if isinstance(value, int) else 0

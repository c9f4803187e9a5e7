"""Checking a plan: whether it is whole, can run, has ordered sums, and no two SMs meet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Literal

import numpy as np

from bitsched.costs import Costs
from bitsched.masks import shape_of
from bitsched.plan import Plan, counted
from bitsched.shape import Shape
from bitsched.simulation import DeadlockError, simulate
from bitsched.taskgraph import Longs, chains, predecessors, sums, tile_name

LISTED = 100  # tiles or edges that a finding lists
_NAMED = 3  # of them in its message


@dataclass(frozen=True)
class Finding:
    """One thing that was checked.

    `name`: tiles, chains, order, deadlock or lemma. `count` says how many faults there are;
    `tiles` lists the first 100 as [head, KV tile, Q tile], and for the lemma `edges` as [head,
    Q tile, KV tile that adds first, KV tile that adds next].
    """

    name: str
    verdict: Literal["yes", "no", "undecided"]
    message: str
    count: int = 0
    tiles: list[list[int]] = field(default_factory=list)
    edges: list[list[int]] = field(default_factory=list)

    def to_dict(self, *, lists: bool = True) -> dict[str, object]:
        """Give the record of the finding, without its lists where a cell has no room."""
        record = asdict(self)
        if not lists:
            del record["tiles"], record["edges"]
        return record


def check(plan: Plan, shape: Shape | None = None) -> list[Finding]:
    """Check a plan against its shape (default: the one that it carries) and against itself.

    Every tile is there once (`tiles`); the tasks of each (KV head, KV tile) follow one another on
    one processor (`chains`); the ranks of each dQ tile are 0, 1, 2, ... (`order`); nothing waits
    for ever (`deadlock`); and no share is added at a step at which, or before which, its
    predecessor is (`lemma`: then the order costs no time, paper, lemma 1).
    """
    shape = shape or shape_of(plan.about)
    return [_tiles(plan, shape), _chains(plan), _order(plan), _deadlock(plan), _lemma(plan)]


def faults(plan: Plan, findings: list[Finding], *, strict: bool = False) -> list[Finding]:
    """Give the findings that condemn a plan.

    A broken lemma costs time only, so it counts where the plan says that it is `conflict_free`,
    or with `strict`; so do tiles that nobody can check, as the plan carries no shape.
    """
    lemma = strict or bool(plan.about.get("conflict_free"))
    return [
        f
        for f in findings
        if (f.verdict == "no" and (f.name != "lemma" or lemma))
        or (strict and f.name == "tiles" and f.verdict == "undecided")
    ]


def meeting(plan: Plan) -> Longs:
    """Give the tasks that break the lemma: their step is not after their predecessor's."""
    step = np.arange(plan.tasks) - np.repeat(plan.starts[:-1], np.diff(plan.starts))
    before = predecessors(plan)
    return np.flatnonzero((before >= 0) & (step[before] >= step))


def _tiles(plan: Plan, shape: Shape | None) -> Finding:
    if shape is None:
        n_q, n_kv, heads = (int(a.max(initial=0)) + 1 for a in (plan.q, plan.kv, plan.head))
    else:
        n_q, n_kv, heads = shape.n_q, shape.n_kv, shape.heads
    outside = (plan.q >= n_q) | (plan.kv >= n_kv) | (plan.head >= heads)
    key = (plan.head.astype(np.int64) * n_kv + plan.kv) * n_q + plan.q
    found = np.sort(key[~outside])
    twice = np.unique(found[1:][found[1:] == found[:-1]])
    if shape is None:
        wrong = [("there twice", _tuples(twice, n_kv, n_q))]
    else:
        kv, q = np.nonzero(shape.active)
        expected = ((np.arange(heads)[:, None] * n_kv + kv) * n_q + q).reshape(-1)
        if np.array_equal(found, expected):
            said = "the one tile is" if plan.tasks == 1 else f"all {plan.tasks} tiles are"
            return Finding("tiles", "yes", f"{said} there once")
        extra = [_tile(plan, task) for task in np.flatnonzero(outside).tolist()]
        wrong = [
            ("missing", _tuples(np.setdiff1d(expected, found), n_kv, n_q)),
            ("there twice", _tuples(twice, n_kv, n_q)),
            ("not in the mask", extra + _tuples(np.setdiff1d(found, expected), n_kv, n_q)),
        ]
    tiles = [tile for _, group in wrong for tile in group]
    if tiles:
        said = "; ".join(
            f"{counted(len(group), 'tile')} {how}: {_names(group)}" for how, group in wrong if group
        )
        return Finding("tiles", "no", said, len(tiles), tiles[:LISTED])
    said = "no tile is there twice; which ones belong there is not known"
    return Finding("tiles", "undecided", said)


def _chains(plan: Plan) -> Finding:
    chain, processor = chains(plan), plan.processor()
    begins = np.ones(plan.tasks, dtype=bool)
    begins[1:] = (chain[1:] != chain[:-1]) | (processor[1:] != processor[:-1])
    runs = np.flatnonzero(begins)
    _, first = np.unique(chain[runs], return_index=True)
    again = np.delete(runs, first)  # where a chain goes on after a break
    if again.size:
        tiles = [_tile(plan, task) for task in again.tolist()]
        count = int(np.unique(chain[again]).size)
        said = f"{counted(count, 'chain')} split; broken before {_names(tiles)}"
        return Finding("chains", "no", said, count, tiles[:LISTED])
    return Finding("chains", "yes", f"{counted(runs.size, 'chain')}, each on one processor")


def _order(plan: Plan) -> Finding:
    open_ = np.flatnonzero(plan.rank < 0)
    if open_.size:
        tiles = [_tile(plan, task) for task in open_[:LISTED]]
        shares = f"{counted(open_.size, 'share')} {'is' if open_.size == 1 else 'are'}"
        said = f"{shares} added in no fixed order (atomics): {_names(tiles)}"
        return Finding("order", "no", said, int(open_.size), tiles)
    target = sums(plan)
    order = np.lexsort((plan.rank, target))
    size = np.bincount(target)
    same = np.zeros(plan.tasks + 1, dtype=bool)
    same[1:-1] = (np.diff(target[order]) == 0) & (np.diff(plan.rank[order]) == 0)
    twice = same[1:] | same[:-1]
    wrong = np.sort(order[twice | (plan.rank[order] >= size[target[order]])])
    if wrong.size:
        tiles = [_tile(plan, task) for task in wrong[:LISTED]]
        which = int(np.unique(target[wrong]).size)
        said = f"ranks of {counted(which, 'dQ tile')} are not 0, 1, 2, ...: {_names(tiles)}"
        return Finding("order", "no", said, int(wrong.size), tiles)
    return Finding(
        "order", "yes", f"{counted(int((size > 0).sum()), 'dQ tile')}, each added in one order"
    )


def _deadlock(plan: Plan) -> Finding:
    try:
        simulate(plan, Costs(1.0, 1.0))
    except DeadlockError as error:
        tasks = error.cycle or error.waiting
        tiles = [_tile(plan, task) for task in tasks[:LISTED]]
        return Finding("deadlock", "no", str(error), len(tasks), tiles)
    return Finding("deadlock", "yes", "nothing waits for ever")


def _lemma(plan: Plan) -> Finding:
    if not plan.ordered:
        return Finding("lemma", "undecided", "there is no order that two SMs could meet in")
    tasks = meeting(plan)
    if not tasks.size:
        return Finding("lemma", "yes", "no two SMs add to one dQ tile at the same step")
    before = predecessors(plan)[tasks]
    edges = np.stack([plan.head[tasks], plan.q[tasks], plan.kv[before], plan.kv[tasks]], axis=1)
    tiles = [_tile(plan, task) for task in tasks[:LISTED]]
    first = tile_name(plan, int(tasks[0]))
    shares = f"{counted(tasks.size, 'share')} {'is' if tasks.size == 1 else 'are'}"
    said = (
        f"{shares} due no later than the one before: {first} waits for KV {plan.kv[before[0]]}"
        + (", ..." if tasks.size > 1 else "")
    )
    return Finding("lemma", "no", said, int(tasks.size), tiles, edges[:LISTED].tolist())


def _tile(plan: Plan, task: int) -> list[int]:
    return [int(plan.head[task]), int(plan.kv[task]), int(plan.q[task])]


def _tuples(keys: Longs, n_kv: int, n_q: int) -> list[list[int]]:
    return [[int(k) // n_q // n_kv, int(k) // n_q % n_kv, int(k) % n_q] for k in keys]


def _names(tiles: Iterable[list[int]]) -> str:
    tiles = list(tiles)
    names = [f"head {h} KV {kv} Q {q}" for h, kv, q in tiles[:_NAMED]]
    return ", ".join(names) + (", ..." if len(tiles) > _NAMED else "")


__all__ = ["Finding", "check", "faults", "meeting"]

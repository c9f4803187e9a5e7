"""FCIEXOGENOUS: the part of the PAG that belongs to one tier, the earlier tiers being given.

After Andrews, Spirtes and Cooper (2020). Earlier variables are exogenous to the tier: an edge
between the two is a -> b before any test, and pairs of earlier variables are never tested.

Order of the tests of a pair i < j, which decides their number and the sets that are kept: sizes
ascending; at each size first the neighbours of j, then those of i if i is of the tier too; subsets
of neighbours in lexicographic order of the variables (tier by tier, as the tiers name them).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from papercuts.log import get_logger
from tierprune.bits import bits, mask_of
from tierprune.dsep import DSepSearch
from tierprune.independence.base import Independence
from tierprune.orientation import Conflict, Orientation, Sepsets
from tierprune.separating import Choice, Found, Stretch, Task, search, search_in_parallel
from tierprune.tiergraph import TierGraph

_MANY_SETS = 10_000_000
_FEW_SETS = 16  # of a pair: asking costs less than finding out that it is in vain
_MEASURED_S = 0.3  # of tests before their speed is believed: the first ones pay for the start
_WORTH_S = 1.0  # expected seconds of a level above which other processes are called in

_logger = get_logger(__name__)


class Step(NamedTuple):
    """Where the learning of a tier stands: `level` is a size of sets, or None for Possible-D-SEP.

    `edges` are left, `tests` were asked for in this tier up to now.
    """

    level: int | None
    edges: int
    tests: int


@dataclass(frozen=True)
class Settings:
    """How far a search goes, and in how many processes.

    `max_cond` bounds the size of separating sets (None: no bound).
    """

    max_cond: int | None = None
    jobs: int = 1


@dataclass
class LearntTier:
    """The graph of a tier, the sets that separate its pairs, and what they cost.

    `tests` were asked for, `computed` of these not answered by an earlier one. `capped` says that
    larger sets were left out by `max_cond`.
    """

    graph: TierGraph
    sepsets: Sepsets = field(default_factory=dict)
    conflicts: list[Conflict] = field(default_factory=list)
    tests: int = 0
    computed: int = 0
    capped: bool = False


def learn_tier(
    test: Independence,
    earlier: int,
    size: int,
    settings: Settings | None = None,
    told: Callable[[Step], None] | None = None,
) -> LearntTier:
    """Learn the edges of the variables earlier..size-1 among themselves and from 0..earlier-1.

    `told` hears how the search goes on.
    """
    learnt = LearntTier(TierGraph(earlier, size))
    searcher = _Searcher(test, learnt, settings or Settings(), told)
    searcher.skeleton()
    graph = learnt.graph
    Orientation(graph, learnt.sepsets).colliders()
    searcher.possible_d_sep()
    graph.reset()
    orientation = Orientation(graph, learnt.sepsets)
    orientation.colliders()
    orientation.complete()
    learnt.conflicts = list(orientation.conflicts)
    return learnt


class _Searcher:
    """Tests pairs level by level; adjacencies are frozen at the start of each (`stable`)."""

    def __init__(
        self,
        test: Independence,
        learnt: LearntTier,
        settings: Settings,
        told: Callable[[Step], None] | None,
    ) -> None:
        self._test, self._learnt, self._settings, self._told = test, learnt, settings, told
        self._spent_s, self._seen = 0.0, 0
        self._levels: list[list[int]] = []  # adjacencies at the start of each level

    def skeleton(self) -> None:
        graph, most = self._learnt.graph, self._settings.max_cond
        level = 0
        while True:
            tasks = [task for i, j in graph.pairs() if (task := self._level(i, j, level))]
            if not tasks:
                return
            if most is not None and level > most:
                self._learnt.capped = True
                return
            self._levels.append(list(graph.adjacent))
            self._run(tasks, level)
            level += 1

    def _level(self, i: int, j: int, level: int) -> Task | None:
        graph = self._learnt.graph
        stretches = []
        known: tuple[int, ...] = ()
        for v, other in ((j, i), (i, j)):
            around = graph.adjacent[v] & ~(1 << other)
            if v < graph.earlier or around.bit_count() < level:
                continue
            stretches.append(Stretch(v, around, level, known=known))
            known = (around,)
        return Task(i, j, stretches) if stretches else None

    def possible_d_sep(self) -> None:
        """Test what sets of neighbours did not separate.

        Pairs with few subsets of Possible-D-SEP are tested on each, as the algorithm is written;
        the others on those that may be D-SEP (see `tierprune.dsep`).
        """
        graph = self._learnt.graph
        reach = {v: possible_d_sep(graph, v) for v in graph.tier}
        known: DSepSearch | None = None
        tasks: list[Task] = []
        choices: list[Choice] = []
        for i, j in graph.pairs():
            ends = [(v, reach[v] & ~(1 << i | 1 << j)) for v in (j, i) if v >= graph.earlier]
            if sum(_beyond(wide, graph.adjacent[v]) for v, wide in ends) > _FEW_SETS:
                known = known or DSepSearch(graph, self._learnt.sepsets)
                found = known.of(i, j)
                if found and self._settings.max_cond is None:
                    fewest = min(found, key=lambda each: each.total)
                    choices.append(Choice(i, j, fewest, [graph.adjacent[v] for v in (i, j)]))
                    continue
                ends = [(each.v, each.everything) for each in found]
            if task := self._wide(i, j, ends):
                tasks.append(task)
        every: list[Task | Choice] = [*tasks, *choices]
        sets = sum(task.total for task in every)
        if sets > _MANY_SETS:
            # The number may be larger than any float.
            _logger.warning(
                "Possible-D-SEP has up to 10^%d sets to test: --max-cond bounds their size",
                math.ceil(math.log10(sets)),
            )
        if tasks:
            self._run(tasks, None)
        if choices:
            self._run(choices, None)

    def _wide(self, i: int, j: int, ends: list[tuple[int, int]]) -> Task | None:
        """Give the task to test, for each of the ends (v, wide), the subsets of `wide`."""
        stretches: list[Stretch] = []
        known: tuple[int, ...] = ()
        for v, wide in ends:
            for stretch in self._wider(v, wide, self._learnt.graph.adjacent[v]):
                stretch.known = (*known, *self._tested(stretch.size, i, j))
                stretches.append(stretch)
            known = (wide,)
        return Task(i, j, stretches) if stretches else None

    def _wider(self, v: int, wide: int, near: int) -> list[Stretch]:
        """Give the stretches of subsets of `wide` that are not inside `near`."""
        count, most = wide.bit_count(), self._settings.max_cond
        if not wide & ~near:
            return []
        if most is not None and count > most:
            self._learnt.capped = True
            count = most
        return [Stretch(v, wide, size, near) for size in range(1, count + 1)]

    def _tested(self, size: int, i: int, j: int) -> list[int]:
        """Give the sets whose subsets of `size` were tested for the skeleton, for this pair."""
        if size >= len(self._levels):
            return []
        ends = (v for v in (j, i) if v >= self._learnt.graph.earlier)
        return [self._levels[size][v] & ~(1 << i | 1 << j) for v in ends]

    def _run(self, tasks: Sequence[Task | Choice], level: int | None) -> None:
        learnt, begun = self._learnt, time.perf_counter()
        asked = learnt.tests
        edges = sum(1 for _ in learnt.graph.pairs())  # they are removed once the level is done

        def told(more: int) -> None:
            nonlocal asked
            asked += more
            if self._told is not None:
                self._told(Step(level, edges, asked))

        if self._settings.jobs > 1 and self._worthwhile(tasks):
            found = search_in_parallel(self._test, tasks, self._settings.jobs, told)
        else:
            found = search(self._test, tasks, told)
            self._spent_s += time.perf_counter() - begun
            self._seen += sum(each.computed for each in found)
        for task, each in zip(tasks, found, strict=True):
            self._take(task, each)

    def _worthwhile(self, tasks: Sequence[Task | Choice]) -> bool:
        """Guess from the tests so far whether a level takes longer than starting processes does."""
        rows = sum(min(task.total, 10**9) for task in tasks)
        if self._spent_s < _MEASURED_S or not self._seen:
            return False
        return rows * self._spent_s / self._seen > _WORTH_S

    def _take(self, task: Task | Choice, found: Found) -> None:
        learnt = self._learnt
        learnt.tests += found.asked
        learnt.computed += found.computed
        if found.given is not None:
            learnt.graph.remove(task.i, task.j)
            learnt.sepsets[task.i, task.j] = mask_of(found.given)


def _beyond(wide: int, near: int) -> int:
    """Count the subsets of `wide` that are not inside `near`."""
    return (1 << wide.bit_count()) - (1 << (wide & near).bit_count())


def possible_d_sep(graph: TierGraph, x: int) -> int:
    """Give Possible-D-SEP(x): what paths reach on which each inner triple is a collider or closed.

    A triple is closed where its ends count as adjacent (see `TierGraph.joined`).
    """
    reached, done = graph.adjacent[x], [0] * graph.size
    states = [(x, u) for u in bits(graph.adjacent[x])]
    while states:
        before, u = states.pop()
        onwards = graph.joined(before)
        if graph.arrow_at[u] >> before & 1:
            onwards |= graph.arrow_at[u]
        onwards &= graph.adjacent[u] & ~(1 << before) & ~(1 << x) & ~done[u]
        done[u] |= onwards
        reached |= onwards
        states += [(u, v) for v in bits(onwards)]
    return reached & ~(1 << x)

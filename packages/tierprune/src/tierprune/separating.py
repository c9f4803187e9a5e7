"""The search for sets that separate pairs: many pairs and many sets at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import islice, pairwise
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tierprune.bits import bits
from tierprune.dsep import DSep
from tierprune.independence.base import Independence, Ints
from tierprune.subsets import subsets

_ROWS_TOGETHER = 1 << 16
_PARTS_PER_JOB = 8

Bools = NDArray[np.bool_]


@dataclass
class Stretch:
    """Sets to test for a pair: all subsets of `mask` with `size` members, in order.

    `v` is the end of the pair that `mask` surrounds. A subset of `passed` is left out; a subset
    of one of `known` was tested before, and was found dependent: it counts, but is not computed.
    All three are sets (see `tierprune.bits`); `members` are those of `mask`, ascending.
    """

    v: int
    mask: int
    size: int
    passed: int = -1
    known: tuple[int, ...] = ()
    members: Ints = field(init=False)

    def __post_init__(self) -> None:
        # The empty set has no need of a list: there are many pairs at the first level.
        self.members = members_of(self.mask if self.size else 0)

    @property
    def total(self) -> int:
        """How many subsets there are."""
        return comb(self.mask.bit_count(), self.size)


@dataclass
class Task:
    """A pair i, j, and stretches of sets to test until one separates it."""

    i: int
    j: int
    stretches: list[Stretch]

    @property
    def total(self) -> int:
        """How many sets there are."""
        return sum(stretch.total for stretch in self.stretches)


@dataclass
class Choice:
    """A pair i, j, and what may be D-SEP of it; subsets of one of `tested` are left out."""

    i: int
    j: int
    dsep: DSep
    tested: Sequence[int]

    @property
    def total(self) -> int:
        """How many sets there are."""
        return self.dsep.total


class Found(NamedTuple):
    """What a search gave: the separating set (or none), tests asked for, and tests computed.

    Asked for are the tests up to the first independence, in order, as one test after another would
    do them; of these, the ones not already known from an earlier test were computed.
    """

    given: tuple[int, ...] | None
    asked: int
    computed: int


@dataclass
class _State:
    task: Task
    stretch: int = 0
    start: int = 0
    count: int = 1
    asked: int = 0
    computed: int = 0
    given: tuple[int, ...] | None = None


@dataclass
class _Block:
    """The next rows of a task: sets, and which of them are asked for and computed."""

    state: _State
    sets: Ints
    asked: Bools
    fresh: Bools
    answers: Bools = field(init=False)


def search(
    test: Independence,
    tasks: Sequence[Task | Choice],
    told: Callable[[int], None] | None = None,
) -> list[Found]:
    """Search for a separating set of each task's pair.

    The first one in the order of the task is found, whatever is computed together. `told` hears
    now and then how many more tests were asked for.
    """
    plain = [task for task in tasks if isinstance(task, Task)]
    if len(plain) < len(tasks):
        return [_search_choice(test, task, told) for task in tasks if isinstance(task, Choice)]
    return _search_stretches(test, plain, told)


def _search_stretches(
    test: Independence, tasks: Sequence[Task], told: Callable[[int], None] | None
) -> list[Found]:
    around: dict[int, int] = {}
    size = 0
    for task in tasks:
        for stretch in task.stretches:
            inside = stretch.mask | 1 << task.i | 1 << task.j
            around[stretch.v] = around.get(stretch.v, 0) | inside
            size = max(size, stretch.size)
    test.expect(around, size)
    states = [_State(task, count=test.ahead.first) for task in tasks]
    active = [state for state in states if state.task.stretches]
    while active:
        before = sum(state.asked for state in active)
        for part in _portions(active):
            _round(test, part)
        if told is not None:
            told(sum(state.asked for state in active) - before)
        active = [
            state
            for state in active
            if state.given is None and state.stretch < len(state.task.stretches)
        ]
    return [Found(state.given, state.asked, state.computed) for state in states]


def search_in_parallel(
    test: Independence,
    tasks: Sequence[Task | Choice],
    jobs: int,
    told: Callable[[int], None] | None = None,
) -> list[Found]:
    """Do what `search` does in `jobs` processes, with the same result."""
    from papercuts.parallel import ordered_map

    parts = max(1, min(len(tasks), jobs * _PARTS_PER_JOB))
    bounds = [len(tasks) * k // parts for k in range(parts + 1)]
    pieces = [list(tasks[a:b]) for a, b in pairwise(bounds)]
    found: list[Found] = []
    for some in ordered_map(partial(search, test), pieces, jobs=jobs):
        found += some
        if told is not None:
            told(sum(each.asked for each in some))
    return found


def _search_choice(test: Independence, choice: Choice, told: Callable[[int], None] | None) -> Found:
    dsep = choice.dsep
    sets = (mask for mask in dsep.sets() if all(mask & ~inside for inside in choice.tested))
    test.expect({dsep.v: dsep.everything | 1 << dsep.other}, dsep.everything.bit_count())
    asked, count = 0, test.ahead.first
    while block := list(islice(sets, count)):
        answers = _decide(test, dsep, block)
        count = min(count * test.ahead.factor, test.ahead.most)
        first = answers.index(True) if True in answers else None
        asked += len(block) if first is None else first + 1
        if told is not None:
            told(len(block))
        if first is not None:
            given, more = _smaller(test, dsep, block[first])
            return Found(tuple(bits(given)), asked + more, asked + more)
    return Found(None, asked, asked)


def _smaller(test: Independence, dsep: DSep, given: int) -> tuple[int, int]:
    """Leave out of a separating set, one by one, what is not needed; count the tests."""
    tests = 0
    for u in bits(given):
        tests += 1
        if _decide(test, dsep, [given & ~(1 << u)])[0]:
            given &= ~(1 << u)
    return given, tests


def _decide(test: Independence, dsep: DSep, block: Sequence[int]) -> list[bool]:
    answers = [False] * len(block)
    sizes: dict[int, list[int]] = {}
    for place, mask in enumerate(block):
        sizes.setdefault(mask.bit_count(), []).append(place)
    for size, places in sizes.items():
        given = np.array([list(bits(block[place])) for place in places], dtype=np.int64)
        ends = np.ones(len(places), dtype=np.int64)
        found = test.decide(dsep.other * ends, dsep.v * ends, given.reshape(-1, size))
        for place, independent in zip(places, found.tolist(), strict=True):
            answers[place] = independent
    return answers


def _portions(active: list[_State]) -> Iterator[list[_State]]:
    """Divide the tasks, so that the arrays of one round stay small."""
    part: list[_State] = []
    rows = 0
    for state in active:
        part.append(state)
        rows += state.count
        if rows >= _ROWS_TOGETHER:
            yield part
            part, rows = [], 0
    if part:
        yield part


def _round(test: Independence, states: list[_State]) -> None:
    """Test the next block of each task."""
    blocks = [_next_block(state) for state in states]
    sizes: dict[int, list[_Block]] = {}
    for block in blocks:
        sizes.setdefault(block.sets.shape[1], []).append(block)
    for group in sizes.values():
        fresh = [block.fresh for block in group]
        counts = [int(rows.sum()) for rows in fresh]
        ends = np.array([_ends(block.state) for block in group], dtype=np.int64)
        other, v = np.repeat(ends, counts, axis=0).T
        given = np.concatenate([block.sets[block.fresh] for block in group])
        some: Bools = np.empty(0, dtype=bool)
        if len(given):
            some = test.decide(other, v, given)
        start = 0
        for block, rows, count in zip(group, fresh, counts, strict=True):
            block.answers = np.zeros(len(rows), dtype=bool)
            block.answers[rows] = some[start : start + count]
            start += count
    most, factor = test.ahead.most, test.ahead.factor
    for block in blocks:
        _settle(block)
        block.state.count = min(block.state.count * factor, most)


def _ends(state: _State) -> tuple[int, int]:
    task, v = state.task, state.task.stretches[state.stretch].v
    return (task.i, v) if v == task.j else (task.j, v)


def _next_block(state: _State) -> _Block:
    stretch = state.task.stretches[state.stretch]
    chosen = _subsets(len(stretch.members), stretch.size, state.start, state.count)
    sets = stretch.members[chosen]
    asked: Bools = np.ones(len(sets), dtype=bool)
    if stretch.passed >= 0:
        asked &= ~_inside(stretch.members, stretch.passed)[chosen].all(axis=1)
    fresh = asked.copy()
    for mask in stretch.known:
        fresh &= ~_inside(stretch.members, mask)[chosen].all(axis=1)
    return _Block(state, sets, asked, fresh)


_subsets = lru_cache(maxsize=512)(subsets)


def _inside(members: Ints, mask: int) -> Bools:
    return np.array([mask >> u & 1 for u in members.tolist()], dtype=bool)


def _settle(block: _Block) -> None:
    """Take the first independence of a block, or go on after it."""
    state = block.state
    if block.answers.any():
        first = int(np.argmax(block.answers))
        state.given = tuple(block.sets[first].tolist())
        state.asked += int(block.asked[: first + 1].sum())
        state.computed += int(block.fresh[: first + 1].sum())
        return
    state.asked += int(block.asked.sum())
    state.computed += int(block.fresh.sum())
    state.start += len(block.sets)
    if state.start >= state.task.stretches[state.stretch].total:
        state.stretch += 1
        state.start = 0


def members_of(mask: int) -> Ints:
    """Give the members of a set as an array, ascending."""
    return np.fromiter(bits(mask), dtype=np.int64, count=mask.bit_count())

"""Where the variables of a tiered graph stand in a picture: tiers as columns, few crossings.

The method is that of Sugiyama, Tagawa & Toda 1981: edges that skip a column get a bend in it, the
order inside each column comes from barycentres, and places follow the order.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass

_SWEEPS = 12
_BENDS_PER_NODE = 4  # with more, edges are drawn straight past the columns between

Key = str | tuple[int, int]  # a variable, or the bend of edge i in column c


@dataclass
class Layout:
    """The order of each column and the height of each place in it.

    `columns` lists the variables and bends of each column from below, `y` gives their centres, in
    the unit of the sizes given. `bends[i]` lists the bends of edge i from column to column.
    """

    columns: list[list[Key]]
    y: dict[Key, float]
    bends: dict[int, list[Key]]

    @property
    def height(self) -> tuple[float, float]:
        """The lowest and the highest centre."""
        return min(self.y.values(), default=0.0), max(self.y.values(), default=0.0)


def layered(
    groups: Sequence[Sequence[str]],
    edges: Sequence[tuple[str, str]],
    sizes: dict[Key, float],
    *,
    bend: float,
) -> Layout:
    """Place the variables of `groups`, one column each, so that `edges` cross little.

    `sizes` gives the height that each variable takes, gaps included, `bend` that of an edge that
    passes by. Names in `edges` must be in `groups`; their direction does not matter.
    """
    return _Placing(groups, edges, sizes, bend).place()


class _Placing:
    def __init__(
        self,
        groups: Sequence[Sequence[str]],
        edges: Sequence[tuple[str, str]],
        sizes: dict[Key, float],
        bend: float,
    ) -> None:
        self.size = dict(sizes)
        self.columns: list[list[Key]] = [list(group) for group in groups]
        column = {name: c for c, group in enumerate(groups) for name in group}
        self.before: dict[Key, list[Key]] = {name: [] for name in column}
        self.after: dict[Key, list[Key]] = {name: [] for name in column}
        self.beside: dict[Key, list[Key]] = {name: [] for name in column}
        self.bends: dict[int, list[Key]] = {}
        spans = [abs(column[a] - column[b]) for a, b in edges]
        bent = sum(max(0, span - 1) for span in spans) <= _BENDS_PER_NODE * max(10, len(column))
        for i, (a, b) in enumerate(edges):
            if column[a] == column[b]:
                self.beside[a].append(b)
                self.beside[b].append(a)
            elif bent or spans[i] == 1:
                early, late = (a, b) if column[a] < column[b] else (b, a)
                between: list[Key] = [(i, c) for c in range(column[early] + 1, column[late])]
                self.bends[i] = between
                for key in between:
                    self.columns[key[1]].append(key)  # type: ignore[index]
                    self.size[key] = bend
                    self.before[key], self.after[key], self.beside[key] = [], [], []
                chain: list[Key] = [early, *between, late]
                for one, two in itertools.pairwise(chain):
                    self.after[one].append(two)
                    self.before[two].append(one)
        self.y: dict[Key, float] = {}
        for keys in self.columns:
            self._stack(keys)

    def place(self) -> Layout:
        """Order by barycentres, keep the best order seen, improve it by swaps, then set heights."""
        best, least = [list(keys) for keys in self.columns], self._cost()
        for sweep in range(_SWEEPS):
            forward = sweep % 2 == 0
            for keys in self.columns if forward else reversed(self.columns):
                at = {key: self._centre(key, forward) for key in keys}
                keys.sort(key=at.__getitem__)
                self._stack(keys)
            cost = self._cost()
            if cost < least:
                best, least = [list(keys) for keys in self.columns], cost
        self.columns = best
        for keys in self.columns:
            self._stack(keys)
        for _ in range(4):
            swapped = [self._swap(keys) for keys in self.columns]
            if not any(swapped):
                break
        for _ in range(_SWEEPS):
            for keys in self.columns:
                self._settle(keys)
        return Layout(self.columns, self.y, self.bends)

    def _stack(self, keys: list[Key]) -> None:
        """Put the keys on one another without gaps, the middle at 0."""
        at = -sum(self.size[key] for key in keys) / 2
        for key in keys:
            self.y[key] = at + self.size[key] / 2
            at += self.size[key]

    def _centre(self, key: Key, forward: bool) -> float:
        near = self.before[key] if forward else self.after[key]
        near = near or (self.after[key] if forward else self.before[key])
        weighed = [(self.y[other], 1.0) for other in near]
        weighed += [(self.y[other], 0.5) for other in self.beside[key]]
        if not weighed:
            return self.y[key]
        return sum(y * w for y, w in weighed) / sum(w for _, w in weighed)

    def _cost(self) -> float:
        """Count crossings between columns, and what edges inside a column pass over."""
        total = 0.0
        for keys in self.columns:
            place = {key: i for i, key in enumerate(keys)}
            seen: list[float] = []
            for key in keys:
                ends = sorted(self.y[other] for other in self.after[key])
                total += sum(len(seen) - bisect_right(seen, end) for end in ends)
                for end in ends:
                    insort(seen, end)
                over = (abs(place[key] - place[other]) - 1 for other in self.beside[key])
                total += sum(over) / 2
        return total

    def _swap(self, keys: list[Key]) -> bool:
        """Exchange neighbours in a column where that takes crossings away."""
        changed = False
        for i in range(len(keys) - 1):
            low, high = keys[i], keys[i + 1]
            gain = self._beside_gain(low, high)
            for near in (self.before, self.after):
                below = sorted(self.y[key] for key in near[low])
                above = sorted(self.y[key] for key in near[high])
                gain += sum(bisect_left(above, y) for y in below)
                gain -= sum(bisect_left(below, y) for y in above)
            if gain > 0:
                keys[i], keys[i + 1] = high, low
                at = self.y[low] - self.size[low] / 2
                self.y[high] = at + self.size[high] / 2
                self.y[low] = at + self.size[high] + self.size[low] / 2
                changed = True
        return changed

    def _beside_gain(self, low: Key, high: Key) -> float:
        """Give by how much edges inside the column get shorter when these neighbours change."""
        gain = 0.0
        for key, up in ((low, 1), (high, -1)):
            for other in self.beside[key]:
                if other not in (low, high):
                    gain += up if self.y[other] > self.y[key] else -up
        return gain

    def _settle(self, keys: list[Key]) -> None:
        """Move each key towards its neighbours, in order and without overlaps.

        Least squares under the gaps is an isotonic regression: pool adjacent violators.
        """
        blocks: list[tuple[float, int]] = []
        offsets, at = [], 0.0
        for i, key in enumerate(keys):
            at += (self.size[keys[i - 1]] + self.size[key]) / 2 if i else 0.0
            offsets.append(at)
            near = self.before[key] + self.after[key]
            want = sum(self.y[other] for other in near) / len(near) if near else self.y[key]
            block = (want - at, 1)
            while blocks and blocks[-1][0] > block[0]:
                mean, count = blocks.pop()
                whole = count + block[1]
                block = ((mean * count + block[0] * block[1]) / whole, whole)
            blocks.append(block)
        base = [mean for mean, count in blocks for _ in range(count)]
        for key, start, offset in zip(keys, base, offsets, strict=True):
            self.y[key] = start + offset

"""Contingency tables: counted from the data once for many variables, then summed down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log, prod

import numpy as np
from numpy.typing import NDArray

from tierprune.bits import bits, lowest, mask_of

Counts = NDArray[np.int32]
Ints = NDArray[np.int64]

_WHOLE_CELLS = 1 << 20  # of the table of a whole neighbourhood
_PART_CELLS = 1 << 15  # of a table that only some subsets are summed from
_REMEMBERED_CELLS = 1 << 24  # 64 MiB
_REMEMBERED_SETS = 1 << 20
_LOGS = 1 << 20  # counts up to here have their x ln x in a table
_PAIRS_TOGETHER = 64
_PRODUCT = 1 << 18  # up to this size BLAS works in one thread: more would wait for each other


class Tables:
    """Joint counts of sets of coded columns.

    `codes` [columns, rows] uint8 are the values, `cards` how many each column has. A search asks
    for the tables of many subsets of one neighbourhood: where the table of the whole neighbourhood
    is small enough, that alone is counted from the rows, and each other is summed from it, one
    variable at a time, by way of tables that subsets share.
    """

    def __init__(self, codes: NDArray[np.uint8], cards: Sequence[int]) -> None:
        self.codes, self.cards = codes, list(cards)
        self.rows = codes.shape[1]
        self._around: dict[int, tuple[int, dict[int, int]]] = {}
        self._known: dict[int, Counts] = {}
        self._cells = 0
        self._sizes: dict[int, int] = {}
        self._spare: dict[tuple[int, int], NDArray[np.float32]] = {}
        self._entropies: dict[int, tuple[float, int]] = {0: (_x_log_x(self.rows), 1)}
        self._x_log_x = np.array([_x_log_x(count) for count in range(min(self.rows, _LOGS) + 1)])

    def __getstate__(self) -> dict[str, object]:
        empty: dict[str, object] = {"_known": {}, "_around": {}, "_cells": 0, "_spare": {}}
        return {**self.__dict__, **empty, "_entropies": {0: self._entropies[0]}}

    def expect(self, around: Mapping[int, int], size: int) -> None:
        """Say which tables will be asked for: of each v, subsets of `around[v]`.

        They hold v and `size` others. Where the table of all of `around[v]` is too large to be
        counted, it is divided into blocks, and tables are counted for as many blocks as fit.
        """
        self._around = {}
        if size == 1:
            self._count_pairs(around)
            return
        for v, mask in around.items():
            whole, blocks = mask | 1 << v, {}
            if self.size(whole) > _WHOLE_CELLS:
                members = list(bits(mask & ~(1 << v)))
                mean = sum(log(self.cards[u]) for u in members) / len(members)
                width = int(log(_PART_CELLS / self.cards[v]) / mean) // max(size, 1)
                for start in range(0, len(members), max(width, 1)):
                    block = members[start : start + max(width, 1)]
                    blocks.update(dict.fromkeys(block, sum(1 << u for u in block)))
            self._around[v] = whole, blocks

    def of(self, mask: int, v: int) -> Counts:
        """Give the flat table of the variables `mask`, axes in their order, the last fastest.

        `v` is the member whose neighbourhood `expect` has named, if any.
        """
        known = self._known
        found = known.get(mask)
        if found is not None:
            return found
        if self._cells > _REMEMBERED_CELLS:
            known.clear()
            self._spare.clear()
            self._cells = 0
        missing = self._universe(mask, v) & ~mask
        added = []
        while missing and mask not in known:  # up, to a table that is known or can be counted
            u = missing.bit_length() - 1
            missing ^= 1 << u
            mask |= 1 << u
            added.append(u)
        found = known.get(mask)
        if found is None:
            found = self._remember(mask, self._counted(mask))
        for u in reversed(added):  # down: summing the first axes first runs along the memory
            after = self.size(mask >> u + 1 << u + 1)
            mask ^= 1 << u
            layers = found.reshape(-1, self.cards[u], after)
            summed = layers[:, 0]  # quicker than a sum over so short an axis
            for value in range(1, self.cards[u]):
                summed = summed + layers[:, value]
            found = self._remember(mask, summed.reshape(-1))
        return found

    def entropies(
        self, left: Ints, right: Ints, given: Ints
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Give `entropy` of (S, i, j), (S, i), (S, j) and S for each test: two arrays [4, tests].

        `left` and `right` [tests] are i and j, `given` [tests, size] is S; j has the neighbourhood.
        """
        if len(self.cards) < 63:
            masks = np.left_shift(1, given).sum(axis=1)
            i, j = np.left_shift(1, left), np.left_shift(1, right)
        else:
            masks = np.array([mask_of(row) for row in given.tolist()], dtype=object)
            i = np.array([1 << u for u in left.tolist()], dtype=object)
            j = np.array([1 << u for u in right.tolist()], dtype=object)
        four = np.concatenate([masks | i | j, masks | i, masks | j, masks])
        unique, first, place = np.unique(four, return_index=True, return_inverse=True)
        around = right[first % len(left)].tolist()
        found = [self.entropy(mask, v) for mask, v in zip(unique.tolist(), around, strict=True)]
        sums = np.array([total for total, _ in found])[place].reshape(4, -1)
        return sums, np.array([count for _, count in found])[place].reshape(4, -1)

    def entropy(self, mask: int, v: int) -> tuple[float, int]:
        """Give the sum of O ln O over the cells of the table of `mask`, and the cells with data."""
        found = self._entropies.get(mask)
        if found is None:
            if len(self._entropies) > _REMEMBERED_SETS:
                self._entropies = {0: self._entropies[0]}
            table = self.of(mask, v)
            if self.rows <= _LOGS:
                total = float(np.add.reduce(self._x_log_x.take(table)))
            else:
                filled = table[table > 0].astype(np.float64)
                total = float((filled * np.log(filled)).sum())
            found = self._entropies[mask] = total, int(np.count_nonzero(table))
        return found

    def spare_values(self, mask: int, u: int, v: int) -> NDArray[np.float32]:
        """Give, for each stratum of `mask`, how many values of u occur in it, less 1.

        0 where a stratum has no data.
        """
        found = self._spare.get((mask, u))
        if found is None:
            after = self.size(mask >> u + 1 << u + 1)
            table = self.of(mask | 1 << u, v).reshape(-1, self.cards[u], after) > 0
            occur = table[:, 0].astype(np.float32)
            for value in range(1, self.cards[u]):
                occur += table[:, value]
            found = self._spare[mask, u] = np.maximum(occur - 1, 0).reshape(-1)
            self._cells += 2 * len(found)
        return found

    def forget(self) -> None:
        """Drop what was counted."""
        self._known.clear()
        self._spare.clear()
        self._cells = 0
        self._entropies = {0: self._entropies[0]}

    def _count_pairs(self, around: Mapping[int, int]) -> None:
        """Count the table of each v and each other of `around[v]`, all in one matrix product.

        A row's value is a 1 among the columns that its variable has in a matrix of 0 and 1; their
        products count how often two values meet.
        """
        union = 0
        for v, mask in around.items():
            union |= mask | 1 << v
        columns = list(bits(union))
        if len(columns) * len(around) < _PAIRS_TOGETHER:
            return
        start = dict(zip(columns, np.cumsum([0, *(self.cards[u] for u in columns)]), strict=False))
        wide = sum(self.cards[u] for u in columns)
        most = max(self.cards[v] for v in around)
        together = max(_PRODUCT // (most * wide), 64)
        met = {v: np.zeros((self.cards[v], wide), dtype=np.int64) for v in around}
        for first in range(0, self.rows, together):
            codes = self.codes[:, first : first + together]
            ones = np.zeros((wide, codes.shape[1]), dtype=np.float32)
            for u in columns:
                ones[start[u] + codes[u], np.arange(codes.shape[1])] = 1.0
            for v, counts in met.items():
                own = ones[start[v] : start[v] + self.cards[v]]
                counts += (own @ ones.T).astype(np.int64)
        for v, mask in around.items():
            part = met[v]
            for u in bits(mask & ~(1 << v)):
                table = part[:, start[u] : start[u] + self.cards[u]]
                flat = (table if v < u else table.T).astype(np.int32).reshape(-1)
                if 1 << u | 1 << v not in self._known:
                    self._remember(1 << u | 1 << v, flat)

    def _universe(self, mask: int, v: int) -> int:
        if mask & mask - 1 == 0:
            return mask
        whole, blocks = self._around.get(v, (mask, {}))
        if mask & ~whole:
            return mask
        if not blocks:
            return whole
        union = mask
        for u in bits(mask & ~(1 << v)):
            union |= blocks[u]
        if self.size(union) > 2 * _PART_CELLS:
            union = mask
        left = whole & ~union
        # The last variables change most from one subset to the next.
        while left:
            last = left.bit_length() - 1
            left ^= 1 << last
            if self.size(union | 1 << last) > _PART_CELLS:
                break
            union |= 1 << last
        return union

    def size(self, mask: int) -> int:
        """Give the number of cells of the table of `mask`."""
        found = self._sizes.get(mask)
        if found is None:
            if len(self._sizes) > _REMEMBERED_SETS:
                self._sizes.clear()
            found = self._sizes[mask] = prod([self.cards[u] for u in bits(mask)])
        return found

    def _remember(self, mask: int, table: Counts) -> Counts:
        self._known[mask] = table
        self._cells += len(table)
        return table

    def _counted(self, mask: int) -> Counts:
        first = lowest(mask)
        place = self.codes[first].astype(np.int32)
        for u in bits(mask ^ 1 << first):
            place *= self.cards[u]
            place += self.codes[u]
        return np.bincount(place, minlength=self.size(mask)).astype(np.int32)

    def sparse(self, mask: int, last: tuple[int, int]) -> Counts:
        """Give the table [strata that occur, values of `last`], for a mask with many cells."""
        strata = np.zeros(self.rows, dtype=np.int64)
        high = 1
        for u in bits(mask & ~(1 << last[0]) & ~(1 << last[1])):
            if high > 2**62 // self.cards[u]:
                strata = np.unique(strata, return_inverse=True)[1]
                high = int(strata.max()) + 1
            strata = strata * self.cards[u] + self.codes[u]
            high *= self.cards[u]
        strata = np.unique(strata, return_inverse=True)[1]
        wide = self.cards[last[0]] * self.cards[last[1]]
        place = strata * wide + self.codes[last[0]] * np.int64(self.cards[last[1]])
        place += self.codes[last[1]]
        count = (int(strata.max()) + 1) * wide
        return np.bincount(place, minlength=count).astype(np.int32)


def _x_log_x(count: int) -> float:
    return count * log(count) if count else 0.0

"""Families by name: `3sat`, `3col`, `hitag2`, `cnfgen:FAMILY ARGS` for those of cnfgen.

`gen:FAMILY:SIZES` stands for an endless stream of formulas of a family.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import cast

from papercuts.errors import UsageError
from papercuts.parallel import seed_for
from satguide.cnf import CNF
from satguide.families import cnfgen

Generator = Callable[[int, int], CNF]

_HOMES = {
    "3sat": "satguide.families.threesat",
    "3col": "satguide.families.colouring",
    "hitag2": "satguide.families.hitag2",
}
# The smallest and the largest size, and what it counts.
_SIZES: dict[str, tuple[int, int, str]] = {
    "3sat": (5, 100_000_000, "variables"),
    "3col": (2, 30_000_000, "vertices"),
    "hitag2": (0, 48, "known bits"),
}
# Set apart, so that no formula of `satguide gen` was seen in training, whatever the two seeds.
_TRAINING, _VALIDATION = 7001, 7002


def generator(family: str) -> Generator:
    """Give the function (size, seed) to CNF of a family. Raises `UsageError` for an unknown one."""
    if family.startswith(cnfgen.PREFIX):
        return partial(cnfgen.generate, family)
    if family not in _HOMES:
        known = ", ".join([*_HOMES, "cnfgen:FAMILY"])
        raise UsageError(f"no family is called {family!r} (there is {known})")
    return cast("Generator", import_module(_HOMES[family]).generate)


def check_sizes(family: str, sizes: tuple[int, ...]) -> None:
    """Raise `UsageError` for an unknown family, and for a size that it does not have."""
    generator(family)
    if family.startswith(cnfgen.PREFIX):
        if not cnfgen.sized(family):
            raise UsageError(f"{family}: has no place {{size}}, so there are no sizes to choose")
        return
    low, high, what = _SIZES[family]
    for size in sizes:
        if not low <= size <= high:
            raise UsageError(f"{family}: there is no size {size} (expected {low} to {high} {what})")


@dataclass(frozen=True)
class Stream:
    """Formulas of one family, as many as anyone asks for; sizes take turns."""

    family: str
    sizes: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> Stream:
        """Read `gen:FAMILY:SIZE[,SIZE...]`. Raises `UsageError` for anything else."""
        kind, _, rest = text.partition(":")
        family, _, listed = rest.rpartition(":")
        if kind != "gen" or not family or not re.fullmatch(r"\d{1,9}(,\d{1,9})*", listed):
            raise UsageError(f"{text}: expected gen:FAMILY:SIZE[,SIZE...], as in gen:3sat:100")
        sizes = tuple(int(size) for size in listed.split(","))
        check_sizes(family, sizes)
        return cls(family, sizes)

    def training(self, seed: int, first: int, count: int) -> list[CNF]:
        """Give the training formulas `first` to `first + count - 1`."""
        return self._draw(seed_for(seed, _TRAINING), first, count)

    def validation(self, seed: int, count: int) -> list[CNF]:
        """Give `count` formulas that are never trained on."""
        return self._draw(seed_for(seed, _VALIDATION), 0, count)

    def _draw(self, seed: int, first: int, count: int) -> list[CNF]:
        make = generator(self.family)
        return [
            make(self.sizes[i % len(self.sizes)], seed_for(seed, i))
            for i in range(first, first + count)
        ]

"""Tiers: which variables come before which (waves, time steps, background before exposure)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from papercuts.errors import DataError, UsageError
from tierprune.quoting import QUOTED, unquote

MOST_VARIABLES = 100_000
_NAME = rf'{QUOTED}|[^",<]+'


@dataclass(frozen=True)
class Tiers:
    """The variables of each tier, the earliest first. Tiers are counted from 1.

    Raises `ValueError` for a variable in two places.
    """

    groups: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        seen: dict[str, int] = {}
        for tier, group in enumerate(self.groups, 1):
            for name in group:
                if name in seen:
                    both = (
                        f"tier {tier}" if seen[name] == tier else f"tiers {seen[name]} and {tier}"
                    )
                    raise ValueError(f"{name} stands twice in {both}")
                seen[name] = tier

    def __len__(self) -> int:
        return len(self.groups)

    @cached_property
    def of(self) -> dict[str, int]:
        """The tier of each variable."""
        return {name: tier for tier, group in enumerate(self.groups, 1) for name in group}

    @property
    def names(self) -> tuple[str, ...]:
        """All variables, tier by tier."""
        return tuple(name for group in self.groups for name in group)

    def check(self, names: Iterable[str], where: str) -> None:
        """Raise `ValueError` for the first of `names` that has no tier; `where` says of what."""
        for name in names:
            if name not in self.of:
                raise ValueError(f"{name} of {where} has no tier")


def read_tiers(spec: str) -> Tiers:
    """Read tiers from text, from a YAML or JSON file (- is stdin), or from a size.

    Text is `a,b<c<d`, the earliest first (also `a,b`, one tier, where there is no such file). The
    size `4x6` means 4 tiers of 6 variables, V1_1 to V4_6, as `tierprune simulate` names them.
    A file holds a list of tiers (each a list of names), the same under the key `tiers`, an object
    from each tier's title to its list of names in order, or an object from each name to its
    number. Raises `UsageError` for a bad inline form and for a size of more than
    100,000 variables, `InputError` for a file that cannot be read, `DataError` for one that says
    something else.
    """
    if "<" in spec or ("," in spec and not Path(spec).exists()):
        return parse_tiers(spec)
    size = re.fullmatch(r"(\d{1,9})x(\d{1,9})", spec)
    if size and not Path(spec).exists():
        if int(size[1]) * int(size[2]) == 0:
            raise UsageError(f"--tiers {spec}: TxN means T tiers of N variables, at least 1 each")
        if int(size[1]) * int(size[2]) > MOST_VARIABLES:
            raise UsageError(f"--tiers {spec}: at most {MOST_VARIABLES:,} variables are expected")
        steps, each = range(1, int(size[1]) + 1), range(1, int(size[2]) + 1)
        return Tiers(tuple(tuple(f"V{tier}_{i}" for i in each) for tier in steps))
    from papercuts.files import open_input

    with open_input(spec) as file:
        text = file.read().decode("utf-8-sig", "replace")
    try:
        return from_value(_load(text))
    except ValueError as error:
        raise DataError(f"{spec}: {error}") from None


def parse_tiers(spec: str) -> Tiers:
    """Read `a,b<c<"d, e"`: tiers divided by `<`, names by commas, odd names in double quotes."""
    if not re.fullmatch(rf"\s*(?:{_NAME})(?:[,<](?:{_NAME}))*\s*", spec):
        raise UsageError(f"--tiers {spec!r}: names divided by ',' and tiers by '<' are expected")
    groups, ends = [[]], re.findall(rf"({_NAME})([,<]?)", spec)  # type: ignore[var-annotated]
    for name, end in ends:
        groups[-1].append(unquote(name.strip()))
        if end == "<":
            groups.append([])
    try:
        return Tiers(tuple(tuple(group) for group in groups))
    except ValueError as error:
        raise UsageError(f"--tiers: {error}") from None


def from_value(value: Any) -> Tiers:
    """Make tiers of what `read_tiers` allows in a file; `ValueError` for anything else."""
    if isinstance(value, Mapping) and set(value) == {"tiers"}:
        value = value["tiers"]
    if isinstance(value, Mapping) and value:
        numbers = {name: _number(tier) for name, tier in value.items()}
        if None not in numbers.values():
            steps = sorted(set(numbers.values()))  # type: ignore[type-var]
            return _make([[n for n, tier in numbers.items() if tier == step] for step in steps])
        value = list(value.values())
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise ValueError("a list of tiers, each a list of names, is expected")
    return _make(value)


def _make(groups: Iterable[Any]) -> Tiers:
    made = []
    for tier, group in enumerate(groups, 1):
        if isinstance(group, str):
            group = [group]  # YAML's short form of a tier of one
        if not isinstance(group, Sequence) or not all(isinstance(name, str) for name in group):
            raise ValueError(f"tier {tier} is not a list of names")
        made.append(tuple(group))
    return Tiers(tuple(made))


def _number(tier: Any) -> int | None:
    if isinstance(tier, int) and not isinstance(tier, bool):
        return tier
    return int(tier) if isinstance(tier, str) and re.fullmatch(r"-?[0-9]{1,9}", tier) else None


def _load(text: str) -> Any:
    import yaml

    class Loader(yaml.BaseLoader):
        """Reads all scalars as text: a variable may be called 2020, no or null."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # noqa: ARG002
            return _once(
                [(key.value, self.construct_object(v, deep=True)) for key, v in node.value]
            )

    try:
        if text.lstrip()[:1] in ("{", "[") and text.rstrip()[-1:] in ("}", "]"):
            try:
                return json.loads(text, object_pairs_hook=_once)
            except json.JSONDecodeError:
                pass  # YAML may begin so too
        return yaml.load(text, Loader)  # noqa: S506 (a loader that makes text, lists and dicts only)
    except yaml.YAMLError as error:
        raise ValueError(f"neither JSON nor YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise ValueError("lists in lists without end") from None


def _once(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    for key, value in pairs:
        if not isinstance(key, str):
            raise ValueError("a name that is a list")  # noqa: TRY004 (it is bad data)
        if key in made:
            raise ValueError(f"{key} stands twice")
        made[key] = value
    return made

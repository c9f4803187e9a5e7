"""Sets of variables as the bits of a Python integer: variable i is bit i.

Unions, intersections and tests of inclusion of thousands of variables are then single operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence


def bits(mask: int) -> Iterator[int]:
    """Yield the members of `mask`, the smallest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def mask_of(members: Iterable[int]) -> int:
    """Give the set of these members."""
    mask = 0
    for member in members:
        mask |= 1 << member
    return mask


def lowest(mask: int) -> int:
    """Give the smallest member of a set that is not empty."""
    return (mask & -mask).bit_length() - 1


def union_of(step: Callable[[int], int], mask: int) -> int:
    """Give the union of the sets that `step` gives for each member."""
    found = 0
    for member in bits(mask):
        found |= step(member)
    return found


def closure(step: Callable[[int], int], start: int, within: int = -1) -> int:
    """Give `start` and what it reaches by steps from variable to variables inside `within`."""
    reached = new = start
    while new:
        new = union_of(step, new) & within & ~reached
        reached |= new
    return reached


def turned(sets: Sequence[int]) -> list[int]:
    """Turn a relation round: parents into children, say."""
    found = [0] * len(sets)
    for i, mask in enumerate(sets):
        for j in bits(mask):
            found[j] |= 1 << i
    return found

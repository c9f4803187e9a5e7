"""Integers to text, many at once: what solvers read is millions of small numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BLOCK = 1 << 20  # numbers at a time, so that the tables stay small beside the text
_POWERS = 10 ** np.arange(1, 19, dtype=np.int64)


def lines(numbers: NDArray[np.int64], ends: NDArray[np.int64]) -> bytes:
    """Write `numbers` [k] in decimal, separated by blanks, as lines.

    `ends` are the ascending offsets at which the lines end, the last of them k: line i holds the
    numbers from `ends[i - 1]` (0 for the first) to before `ends[i]`, at least one.
    """
    newline = np.zeros(numbers.size, dtype=bool)
    newline[ends - 1] = True
    return b"".join(
        _text(numbers[first : first + _BLOCK], newline[first : first + _BLOCK])
        for first in range(0, numbers.size, _BLOCK)
    )


def _text(numbers: NDArray[np.int64], newline: NDArray[np.bool_]) -> bytes:
    negative = numbers < 0
    rest = np.abs(numbers)
    digits = 1 + np.searchsorted(_POWERS, rest, side="right")
    stops = np.cumsum(digits + negative + 1)  # just past the separator of each number
    text = np.empty(int(stops[-1]), dtype=np.uint8)
    text[stops - 1] = np.where(newline, ord("\n"), ord(" "))
    place = stops - 2
    text[(place - digits)[negative]] = ord("-")
    while rest.size:
        tens = rest // 10
        text[place] = (rest - 10 * tens + ord("0")).astype(np.uint8)
        more = tens > 0
        rest, place = tens[more], place[more] - 1
    return text.tobytes()

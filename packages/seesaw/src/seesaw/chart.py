"""A line chart in plain text, for a terminal of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Series:
    """One curve: x ascending, y of the same length, and the single character that draws it."""

    label: str
    marker: str
    x: ArrayLike
    y: ArrayLike


def text_chart(
    series: Sequence[Series],
    *,
    title: str,
    x_label: str,
    x_unit: float = 1.0,
    width: int = 72,
    height: int = 10,
) -> list[str]:
    """Draw step curves into `height` rows of at most `width` characters, axes from zero.

    Each column shows a curve's value at the column's middle; where two curves fall into one cell
    the later one is drawn. `x_unit` divides the numbers on the x axis.
    """
    curves = [(np.asarray(s.x, dtype=float), np.asarray(s.y, dtype=float)) for s in series]
    x_max = max(x[-1] for x, _ in curves)
    y_max = max(float(y.max()) for _, y in curves)
    y_names = [f"{y_max:.3g}", f"{y_max / 2:.3g}", "0"]
    margin = max(len(name) for name in y_names) + 1
    columns = width - margin - 1
    middles = (np.arange(columns) + 0.5) * x_max / columns
    grid = np.full((height, columns), " ")
    for (x, y), one in zip(curves, series, strict=True):
        _draw(grid, middles, x, y / y_max, one.marker)
    labels = {0: y_names[0], (height - 1) // 2: y_names[1], height - 1: y_names[2]}
    rows = [f"{labels.get(i, ''):>{margin}}|{''.join(row).rstrip()}" for i, row in enumerate(grid)]
    legend = "   ".join(f"{s.marker} {s.label}" for s in series)
    x_end = f"{x_max / x_unit:.4g} {x_label}"
    axis = " " * margin + "+" + "-" * columns
    ends = " " * (margin + 1) + "0" + f"{x_end:>{columns - 1}}"
    return [f"{title}   {legend}", *rows, axis, ends]


def _draw(
    grid: NDArray[np.str_],
    middles: NDArray[np.float64],
    x: NDArray[np.float64],
    share: NDArray[np.float64],
    marker: str,
) -> None:
    """Put one curve, y scaled to [0, 1], into the grid, with its jumps as vertical strokes."""
    height = grid.shape[0]
    at = np.clip(np.searchsorted(x, middles, side="right") - 1, 0, len(x) - 1)
    rows = np.rint((1.0 - share[at]) * (height - 1)).astype(int)
    inside = middles <= x[-1]
    previous = rows[0]
    for column in np.flatnonzero(inside):
        row = rows[column]
        if abs(row - previous) > 1:
            low, high = sorted((previous, row))
            grid[low + 1 : high, column] = marker
        grid[row, column] = marker
        previous = row

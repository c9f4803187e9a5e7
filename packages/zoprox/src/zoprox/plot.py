"""Pictures: draws in pairs of parameters, and distance to the truth against rounds."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papercuts.app import need
from papercuts.errors import UsageError
from papercuts.streams import check_output, open_output
from zoprox.distances import thinned
from zoprox.draws import Draws

SUFFIXES = (".png", ".svg")
_MOST_PARAMETERS = 8  # a side of the pair plot
_MOST_DRAWS = 2000  # in an SVG each draw is an element
_COLOURS = ("#b8322a", "#1f6fa8", "#4a4a4a", "#2f8a2f", "#7d4aa3", "#d9730b")


def check_plot(path: str | None, *, force: bool = False) -> None:
    """Raise now what drawing into `path` would raise at the end; None is no picture.

    `UsageError` for another suffix than .png and .svg, `OutputError` for a file that cannot be
    written, `MissingError` without matplotlib.
    """
    if path is None:
        return
    if Path(path).suffix not in SUFFIXES:
        raise UsageError(f"{path}: a plot is a {' or '.join(SUFFIXES)} file")
    check_output(path, force=force)
    need("matplotlib.figure", tool="zoprox", extra="plot")


def plot_draws(draws: Draws, path: str, *, force: bool = False) -> None:
    """Draw each parameter's histogram and each pair of parameters as points.

    Of more than eight parameters the first eight, of more than two thousand draws evenly spaced
    ones. Raises as `check_plot` does.
    """
    check_plot(path, force=force)
    shown = min(draws.dim, _MOST_PARAMETERS)
    points = thinned(draws.pooled(), _MOST_DRAWS)
    figure = _figure(1.0 + 2.0 * shown, 0.8 + 2.0 * shown)
    panels = figure.subplots(shown, shown, squeeze=False, sharex="col")
    for row in range(shown):
        for column in range(shown):
            axes = panels[row, column]
            if column > row:
                axes.set_axis_off()
            elif column == row:
                axes.hist(draws.pooled()[:, row], bins=40, color=_COLOURS[1])
                axes.set_yticks([])
            else:
                axes.plot(points[:, column], points[:, row], ".", ms=2, color=_COLOURS[1])
                if column:
                    axes.sharey(panels[row, 0])
                    axes.tick_params(labelleft=False)
            axes.tick_params(labelsize=7)
        panels[row, 0].set_ylabel(draws.names[row], fontsize=9)
        panels[-1, row].set_xlabel(draws.names[row], fontsize=9)
    left_out = f", the first {shown} of {draws.dim} parameters" if shown < draws.dim else ""
    rounds, particles = draws.points.shape[:2]
    what = f"{rounds} rounds of {particles} particles" if particles > 1 else f"{rounds} draws"
    figure.suptitle(f"{what}{left_out}", fontsize=10)
    _save(figure, path, force=force)


def plot_curves(
    curves: Mapping[str, tuple[Sequence[float], NDArray[np.float64]]],
    path: str,
    *,
    across: str = "rounds",
    up: str = "KL to exact draws (nats)",
    title: str = "",
    level: tuple[float, str] | None = None,
    log: bool = False,
    force: bool = False,
) -> None:
    """Draw curves: for each name the places [places] and the heights [seeds, places].

    A line is the median over seeds, its band goes from the least to the greatest; `level` is a
    height and what it is. Raises as `check_plot` does.
    """
    check_plot(path, force=force)
    figure = _figure(7.0, 4.2)
    axes = figure.subplots()
    for colour, (name, (places, heights)) in zip(_cycled(len(curves)), curves.items(), strict=True):
        axes.fill_between(
            places, heights.min(axis=0), heights.max(axis=0), color=colour, alpha=0.18, linewidth=0
        )
        axes.plot(places, np.median(heights, axis=0), color=colour, label=name)
    if level is not None:
        axes.axhline(level[0], color="#9a9a9a", linestyle="--", linewidth=1, label=level[1])
    if log:
        axes.set_xscale("log")
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=9)
    if title:
        axes.set_title(title, fontsize=11)
    _save(figure, path, force=force)


def _cycled(count: int) -> list[str]:
    return [_COLOURS[i % len(_COLOURS)] for i in range(count)]


def _figure(width: float, height: float) -> Any:
    module = need("matplotlib.figure", tool="zoprox", extra="plot")
    return module.Figure(figsize=(width, height), layout="constrained")


def _save(figure: Any, path: str, *, force: bool) -> None:
    suffix = Path(path).suffix
    image = io.BytesIO()
    # No date and no random names in the file: the same draws give the same bytes.
    with need("matplotlib", tool="zoprox", extra="plot").rc_context({"svg.hashsalt": "zoprox"}):
        date = {"Date": None} if suffix == ".svg" else None
        figure.savefig(image, format=suffix[1:], metadata=date, dpi=120)
    with open_output(path, force=force) as out:
        out.write(image.getvalue())

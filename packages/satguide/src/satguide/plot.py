"""Pictures of evaluations and explanations (need the extra `plot`)."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papercuts.app import need
from papercuts.errors import UsageError
from papercuts.streams import check_output, open_output
from satguide.evaluation import GUIDED
from satguide.evaluation_table import Table
from satguide.explanation import Explanation

SUFFIXES = (".png", ".svg")


def check_plot(path: str | None, *, force: bool = False) -> None:
    """Raise now what drawing into `path` would raise later.

    `UsageError` for another suffix, `OutputError` where the file cannot be written, `MissingError`
    without matplotlib.
    """
    if path is None:
        return
    if Path(path).suffix not in SUFFIXES:
        raise UsageError(f"{path}: a plot is a {' or '.join(SUFFIXES)} file")
    check_output(path, force=force)
    need("matplotlib.figure", tool="satguide", extra="plot")


def plot_evaluation(table: Table, path: str, *, force: bool = False) -> None:
    """Draw guided decisions against the better baseline's, and what each arm solves in what time.

    Raises as `check_plot` does.
    """
    check_plot(path, force=force)
    figure = new_figure(9.0, 4.2)
    left, right = figure.subplots(1, 2)
    better = table.better()
    if better is not None and not np.isnan(table.counts(GUIDED, "decisions")).any():
        own = table.counts(GUIDED, "decisions") + 1
        other = table.counts(better, "decisions") + 1
        answers = [table.column(arm, "satisfiable") for arm in (GUIDED, better)]
        ended = np.isnan(answers).any(axis=0)
        satisfiable = answers[0] == 1
        groups = (
            ("satisfiable", satisfiable & ~ended, "tab:blue"),
            ("unsatisfiable", ~satisfiable & ~ended, "C1"),
            ("a limit came first", ended, "tab:grey"),
        )
        for name, which, colour in groups:
            if which.any():
                left.scatter(other[which], own[which], s=14, alpha=0.6, color=colour, label=name)
        ends = [min(own.min(), other.min()), max(own.max(), other.max())]
        left.plot(ends, ends, "--", color="tab:grey", linewidth=1)
        left.set(xscale="log", yscale="log")
        _plain_log(left.xaxis)
        _plain_log(left.yaxis)
        left.set_title(f"ratio {table.comparison(better).ratio or np.nan:.3f}")
        left.legend(loc="upper left")
    left.set_xlabel(f"decisions + 1, {better or 'baseline'}")
    left.set_ylabel("decisions + 1, guided")
    for arm in table.contest.arms:
        solved = ~np.isnan(table.column(arm, "satisfiable"))
        times = np.sort(table.column(arm, "wall_s")[solved])
        right.plot(times, np.arange(1, times.size + 1), drawstyle="steps-post", label=arm)
    right.set(xscale="log", xlabel="wall time (s), network included", ylabel="formulas solved")
    right.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)
    for axes in (left, right):
        axes.grid(alpha=0.3)
    save_figure(figure, path, force=force)


def plot_explanation(explanation: Explanation, path: str, *, force: bool = False) -> None:
    """Draw weight against degree, with members of the core or the backbone in colour.

    Raises as `check_plot` does.
    """
    check_plot(path, force=force)
    figure = new_figure(7.0, 4.8)
    axes = figure.subplots()
    used = explanation.degree > 0
    degree, weight = explanation.degree[used], explanation.guidance.weights[used]
    # Degrees are whole numbers: a little sideways keeps variables and groups apart, and the same
    # formula gives the same picture.
    jitter = np.random.default_rng(0).uniform(0, 1, degree.size)
    groups = _groups(explanation, used)
    for place, (name, which, colour, marker) in enumerate(groups):
        if which.any():
            shift = 0.8 * ((place + 0.1 + 0.8 * jitter) / len(groups) - 0.5)
            label = f"{name} ({int(which.sum())})"
            axes.scatter(
                (degree + shift)[which], weight[which],
                s=18, alpha=0.7, color=colour, marker=marker, linewidths=0, label=label,
            )  # fmt: skip
    found = explanation.summary()
    spearman = found["degree_spearman"]
    said = {True: "satisfiable", False: "unsatisfiable", None: "not solved in time"}
    name = Path(explanation.cnf.name or "formula").name
    if spearman is not None:
        axes.set_title(f"{name}, {said[explanation.satisfiable]}: Spearman {spearman:.2f}")
    else:
        axes.set_title(f"{name}, {said[explanation.satisfiable]}")
    axes.set_yscale("log")
    _plain_log(axes.yaxis)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("degree (occurrences of the variable)")
    axes.set_ylabel("weight w")
    axes.grid(alpha=0.3)
    if used.any():
        axes.legend()
    save_figure(figure, path, force=force)


def _groups(
    explanation: Explanation, used: NDArray[np.bool_]
) -> list[tuple[str, NDArray[np.bool_], str, str]]:
    if explanation.core is not None:
        member = explanation.core[used]
        return [("not in the core", ~member, "tab:grey", "o"), ("core", member, "tab:red", "o")]
    if explanation.backbone is not None:
        fixed = explanation.backbone[used]
        if not explanation.told:  # the network has no polarities that could agree
            return [
                ("not in the backbone", fixed == 0, "tab:grey", "o"),
                ("backbone", fixed != 0, "tab:red", "o"),
            ]
        agrees = (fixed > 0) == explanation.guidance.polarity[used]
        return [
            ("not in the backbone", fixed == 0, "tab:grey", "o"),
            ("backbone, polarity agrees", (fixed != 0) & agrees, "tab:blue", "o"),
            ("backbone, polarity disagrees", (fixed != 0) & ~agrees, "tab:orange", "D"),
        ]
    return [("variable", np.ones(int(used.sum()), dtype=bool), "tab:blue", "o")]


def new_figure(width: float, height: float) -> Any:
    """Make an empty figure of so many inches. Raises `MissingError` without matplotlib."""
    module = need("matplotlib.figure", tool="satguide", extra="plot")
    return module.Figure(figsize=(width, height), layout="constrained")


def _plain_log(axis: Any) -> None:
    """Label a logarithmic axis in plain numbers, also where it spans less than a decade."""
    ticker = need("matplotlib.ticker", tool="satguide", extra="plot")
    low, high = axis.get_view_interval()
    wide = high > 5 * low > 0
    axis.set_major_locator(
        ticker.LogLocator(subs=(1, 2, 5)) if wide else ticker.MaxNLocator(6, steps=[1, 2, 5, 10])
    )
    axis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    axis.set_minor_formatter(ticker.NullFormatter())


def save_figure(figure: Any, path: str, *, force: bool) -> None:
    """Write a figure into a .png or .svg file. Raises `OutputError` as `open_output` does."""
    image, suffix = io.BytesIO(), Path(path).suffix
    # No date and no random names in the file: the same result gives the same bytes.
    with need("matplotlib", tool="satguide", extra="plot").rc_context({"svg.hashsalt": "satguide"}):
        date = {"Date": None} if suffix == ".svg" else None
        figure.savefig(image, format=suffix[1:], dpi=150, metadata=date)
    with open_output(path, force=force) as out:
        out.write(image.getvalue())

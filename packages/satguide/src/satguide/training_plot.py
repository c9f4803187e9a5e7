"""The picture of a training run (needs the extra `plot`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from satguide.plot import check_plot, new_figure, save_figure

_BASELINES = (
    ("plain", "baseline_plain", "tab:grey", ":"),
    ("unit weights", "baseline_unit", "tab:brown", "--"),
)


def plot_training(log: str, path: str, *, what: str = "cost", force: bool = False) -> None:
    """Draw what a log tells: validation and both baselines by iteration, sampled costs thin.

    `what` is what was counted (decisions, conflicts, time). Raises as `satguide.plot.check_plot`.
    """
    check_plot(path, force=force)
    records = [json.loads(line) for line in Path(log).read_text().splitlines()]
    figure = new_figure(7.0, 4.4)
    axes = figure.subplots()
    iteration = _column(records, "iteration")
    axes.plot(
        iteration, _column(records, "cost"),
        color="tab:blue", linewidth=0.8, alpha=0.5, label="sampled in training",
    )  # fmt: skip
    validated = [record for record in records if "validation" in record]
    if validated:
        at, cost = _column(validated, "iteration"), _column(validated, "validation")
        axes.plot(at, cost, "o-", color="tab:blue", markersize=4, label="validation")
        for name, key, colour, style in _BASELINES:
            level = _column(validated[-1:], key)[0]
            if np.isfinite(level):
                axes.axhline(level, color=colour, linestyle=style, label=f"baseline {name}")
        axes.set_title(_title(validated, cost, records[-1]["wall_s"]))
    axes.set_xlabel("iteration")
    axes.set_ylabel("time (s), mean" if what == "time" else f"{what}, mean")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(alpha=0.3)
    axes.legend()
    save_figure(figure, path, force=force)


def _title(validated: list[dict[str, Any]], cost: NDArray[np.float64], wall_s: float) -> str:
    """Tell the best validation, what it is of the better baseline, and what it took."""
    if not np.isfinite(cost).any():
        return "no validation formula was solved"
    best = validated[int(np.nanargmin(cost))]
    ratio = "" if best["ratio"] is None else f" ({best['ratio']:.3f} of the better baseline)"
    took = f"{wall_s:.0f} s" if wall_s < 600 else f"{wall_s / 60:.0f} min"
    return f"best {best['validation']:.4g}{ratio}, iteration {best['iteration']}; {took} in all"


def _column(records: list[dict[str, Any]], key: str) -> NDArray[np.float64]:
    """Give one number a record; nothing known, and nothing finite, is NaN."""
    values = [record.get(key) for record in records]
    found = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    found[~np.isfinite(found)] = np.nan
    return found

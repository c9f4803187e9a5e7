"""The model's throughput over the sequence length, one panel for each number of heads."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bitsched.costs import Costs
from papercuts.app import need
from papercuts.errors import UsageError
from papercuts.streams import check_output, open_output

SUFFIXES = (".png", ".svg")
_MOST_PANELS = 4
_NAMES = {
    "atomic": "no order (atomics)",
    "asc": "ascending (baseline)",
    "desc": "descending",
    "shift": "cyclic shift",
    "sym": "symmetric shift",
    "spt": "shortest first",
    "list": "list scheduling",
}
_COLOURS = {
    "atomic": "#9a9a9a",
    "asc": "#4a4a4a",
    "desc": "#d9730b",
    "shift": "#1f6fa8",
    "sym": "#7d4aa3",
    "spt": "#2f8a2f",
    "list": "#b8322a",
}


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
    need("matplotlib.figure", tool="bitsched", extra="plot")


def plot_comparison(
    records: Sequence[dict[str, Any]], costs: Costs, path: str, *, force: bool = False
) -> None:
    """Draw the records of `compare` as bars: throughput in the model against tiles a side.

    The shape of the paper's throughput figure; heights are shares of the most that all SMs could
    do, from the model, not measured. Past four numbers of heads four are drawn, spread evenly.
    Raises as `check_plot` does.
    """
    check_plot(path, force=force)
    figure_module = need("matplotlib.figure", tool="bitsched", extra="plot")
    heads = sorted({record["heads"] for record in records})
    if len(heads) > _MOST_PANELS:
        spread = (len(heads) - 1) / (_MOST_PANELS - 1)
        heads = [heads[round(k * spread)] for k in range(_MOST_PANELS)]
    figure = figure_module.Figure(figsize=(9.0, 2.0 + 2.1 * len(heads)), layout="constrained")
    panels = figure.subplots(len(heads), sharex=True, sharey=True, squeeze=False)[:, 0]
    names = [name for name in _NAMES if any(r["schedule"] == name for r in records)]
    tiles = sorted({record["n"] for record in records})
    width = 0.84 / len(names)
    for axes, count in zip(panels, heads, strict=True):
        for k, name in enumerate(names):
            chosen = {r["n"]: r for r in records if r["heads"] == count and r["schedule"] == name}
            at = [tiles.index(n) + (k - (len(names) - 1) / 2) * width for n in chosen]
            heights = [r["throughput"] for r in chosen.values()]
            axes.bar(at, heights, width, color=_COLOURS[name], label=_NAMES[name])
        axes.set_title(f"{count} heads", fontsize=10, loc="left")
        axes.set_ylim(0, 1.05)
        axes.grid(axis="y", alpha=0.3)
        axes.set_axisbelow(True)
    panels[-1].set_xticks(range(len(tiles)), [str(n) for n in tiles])
    panels[-1].set_xlabel("sequence length (tiles)")
    figure.supylabel("throughput (1: every SM always works)", fontsize=10)
    first = records[0]
    sms = {record["processors"] for record in records}
    where = f"{sms.pop()} SMs" if len(sms) == 1 else "one SM for each KV tile"
    batch = ", equal tokens in all" if any(record["batch"] > 1 for record in records) else ""
    figure.suptitle(
        f"Model, not a measurement: {first['mask']} mask, compute {costs.compute:g}, "
        f"reduce {costs.reduce:g}, {where}{batch}",
        fontsize=11,
    )
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=min(4, len(names)), frameon=False
    )
    image = io.BytesIO()
    # No date and no random names in the file: the same records give the same bytes.
    with need("matplotlib", tool="bitsched", extra="plot").rc_context({"svg.hashsalt": "bitsched"}):
        date = {"Date": None} if Path(path).suffix == ".svg" else None
        figure.savefig(image, format=Path(path).suffix[1:], metadata=date, dpi=120)
    with open_output(path, force=force) as out:
        out.write(image.getvalue())

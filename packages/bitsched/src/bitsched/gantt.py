"""The chart of a plan or a task graph: SVG for a page, text for a terminal."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import numpy as np

from bitsched.plan import Plan, counted
from bitsched.simulation import Simulation
from bitsched.svgchart import svg_text
from bitsched.textchart import chart_lines
from bitsched.timeline import Longs, Timeline, number
from papercuts.streams import open_output

Kind = Literal["svg", "text"]


def plan_timeline(plan: Plan, simulation: Simulation, *, unit: str = "") -> Timeline:
    """Make the timeline of a simulated plan, its heads told apart by colour.

    `unit` names the unit of the costs for the axis; without one time is in the unit of c and r.
    """
    mask, schedule = plan.about.get("mask"), plan.about.get("schedule")
    what = ", ".join(str(word) for word in (mask, schedule) if word is not None) or "plan"
    return graph_timeline(
        simulation,
        what=f"{what}: {counted(plan.processors, 'SM')}, {counted(plan.tasks, 'tile')}",
        group=plan.head.astype(np.int64),
        name=lambda task: f"{plan.kv[task]},{plan.q[task]}",
        unit=unit or "in the unit of c and r",
    )


def graph_timeline(
    simulation: Simulation,
    *,
    what: str,
    group: Longs,
    name: Callable[[int], str],
    unit: str = "",
    bound: float | None = None,
    group_word: str = "head",
    group_name: Callable[[int], str] = str,
    name_says: str = "KV tile,Q tile",
    processor_word: str = "SM",
) -> Timeline:
    """Make the timeline of a simulated graph: `group` [tasks] gives colours, `name` the labels.

    `bound` replaces the simulation's own lower bound.
    """
    least = simulation.bounds.best if bound is None else bound
    gap = simulation.makespan / least if least else 1.0
    graph = simulation.graph
    turn = np.where(graph.before >= 0, simulation.end[graph.before], 0.0)
    if graph.latency is not None:
        turn = turn + graph.latency
    title = (
        f"{what}, makespan {number(simulation.makespan)}, bound {number(least)} "
        f"({gap:.3f}x), unused {simulation.idle_share:.1%}"
    )
    return Timeline(
        processors=graph.processors,
        processor=graph.processor(),
        start=simulation.start,
        computed=simulation.compute_end,
        reducing=np.maximum(simulation.compute_end, turn),
        end=simulation.end,
        group=group,
        path=simulation.critical_path,
        title=title,
        name=name,
        group_word=group_word,
        group_name=group_name,
        name_says=name_says,
        unit=unit,
        processor_word=processor_word,
    )


def kind_of(path: str, kind: Kind | None = None) -> Kind:
    """Give what a chart in `path` is: as asked for, else SVG for .svg (also compressed)."""
    if kind is not None:
        return kind
    return "svg" if ".svg" in [suffix.lower() for suffix in Path(path).suffixes[-2:]] else "text"


def draw(
    timeline: Timeline,
    path: str,
    *,
    kind: Kind | None = None,
    width: int | None = None,
    force: bool = False,
) -> None:
    """Write the chart into a file, or to stdout (`-`).

    `width` is in pixels for an SVG (default 1200), else in characters (default: the terminal's,
    or COLUMNS). Raises `OutputError` where the file cannot be written.
    """
    with open_output(path, force=force) as out:
        if kind_of(path, kind) == "svg":
            out.write(svg_text(timeline, width or 1200).encode())
        else:
            out.write("\n".join([*text_lines(timeline, width), ""]).encode())


def text_lines(timeline: Timeline, width: int | None = None) -> Iterator[str]:
    """Yield the text chart, by default as wide as the terminal (COLUMNS is honoured)."""
    return chart_lines(timeline, width or shutil.get_terminal_size((100, 24)).columns)

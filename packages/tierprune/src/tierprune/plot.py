"""Pictures of tiered graphs: tiers as columns, and what a query needs of them (extra `plot`)."""

from __future__ import annotations

import io
import math
import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from papercuts.app import need
from papercuts.errors import UsageError
from papercuts.streams import check_output, open_output
from tierprune.graphfile import Edge, edges_of
from tierprune.layout import Key, layered
from tierprune.pag import PAG, Mark
from tierprune.pruning import Pruned
from tierprune.query import Band, Query, band_of
from tierprune.tiers import Tiers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SUFFIXES = (".png", ".svg")

# All lengths are inches: one unit of the axes is one inch of paper.
_LINE, _PAD, _GAP, _BEND = 0.15, 0.14, 0.16, 0.13
_HEAD, _RADIUS = 0.11, 0.045
_FONT = 9.0
_WIDEST = 20  # characters of a name in one line
_DARK, _FAINT, _BOTH = "#222222", "#c9c9c9", "#8c2d8c"
_FILL = {"treatment": "#f6b26b", "outcome": "#8db9e8", "given": "#b5d99c"}
_MOST_PIXELS = 3e7
_FONTS = (
    "DejaVu Sans",
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "WenQuanYi Zen Hei", "Droid Sans Fallback"),
    *("PingFang SC", "Hiragino Sans", "Arial Unicode MS", "Malgun Gothic", "Noto Emoji"),
)


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
    need("matplotlib.figure", tool="tierprune", extra="plot")


def plot_pruned(
    pruned: Pruned, tiers: Tiers, query: Query, path: str, *, force: bool = False
) -> None:
    """Draw the whole graph, kept edges dark and dropped ones faint, into a .png or .svg file.

    Raises as `check_plot` does.
    """
    rule = f"Proposition {pruned.band.rule}"
    title = f"{query}\n{pruned.kept} edges kept, {pruned.dropped} dropped by {rule}"
    _Drawing(
        pruned.whole.names,
        tiers,
        query,
        pruned.band,
        list(edges_of(pruned.graph)),
        list(edges_of(pruned.dropped_edges())),
        set(pruned.never_needed),
    ).save(path, title, force=force)


def plot_pag(pag: PAG, tiers: Tiers, query: Query, path: str, *, force: bool = False) -> None:
    """Draw a learned PAG with its circles into a .png or .svg file.

    Raises as `check_plot` does.
    """
    names = pag.names
    edges = [Edge(names[i], names[j], at_i, at_j) for i, j, at_i, at_j in pag.edges()]
    band = band_of(query, tiers)
    title = f"{query}\n{len(edges)} edges learned"
    _Drawing(names, tiers, query, band, edges, [], set()).save(path, title, force=force)


@dataclass
class _Drawing:
    """What is drawn; edges go from side to side of the boxes that hold the names."""

    names: Sequence[str]
    tiers: Tiers
    query: Query
    band: Band
    kept: list[Edge]
    dropped: list[Edge]
    never: set[str]
    left: list[float] = field(default_factory=list)  # of each column
    right: list[float] = field(default_factory=list)
    ports: dict[tuple[str, str, int], float] = field(default_factory=dict)

    def save(self, path: str, title: str, *, force: bool) -> None:
        check_plot(path, force=force)
        suffix = Path(path).suffix
        image = io.BytesIO()
        # No date and no random names in the file: the same graph gives the same bytes.
        settings = {
            "svg.hashsalt": "tierprune",
            "svg.fonttype": "none",  # text stays text: searchable, and in any script
            "font.family": _fonts("".join(self.names)),
        }
        matplotlib = need("matplotlib", tool="tierprune", extra="plot")
        with matplotlib.rc_context(settings), warnings.catch_warnings():
            # A script that the font lacks is drawn as boxes; the names in the data are right.
            warnings.filterwarnings("ignore", message="Glyph .* missing")
            figure = self.figure(title)
            wide, high = figure.get_size_inches()
            dpi = min(150.0, math.sqrt(_MOST_PIXELS / (wide * high)))
            date = {"Date": None} if suffix == ".svg" else None
            figure.savefig(image, format=suffix[1:], metadata=date, dpi=dpi)
        with open_output(path, force=force) as out:
            out.write(image.getvalue())

    def figure(self, title: str) -> Any:
        """Draw all into a matplotlib figure."""
        from matplotlib.figure import Figure

        known = set(self.names)
        groups = [[name for name in group if name in known] for group in self.tiers.groups]
        self.column = {name: c for c, group in enumerate(groups) for name in group}
        self.labels = {name: _wrapped(name) for name in self.names}
        lines = {name: label.count("\n") + 1 for name, label in self.labels.items()}
        self.box = {name: _LINE * count + _PAD for name, count in lines.items()}
        sizes: dict[Key, float] = {name: high + _GAP for name, high in self.box.items()}
        pairs = [edge[:2] for edge in self.kept]
        self.layout = layered(groups, pairs, sizes, bend=_BEND)
        self._columns(groups)
        low, high = self.layout.height
        low, high = low - 0.45, high + 0.75
        left, right = self.left[0] - 0.7, max(self.right[-1] + 0.7, self.left[0] + 6.0)
        handles = self._legend()
        rows = -(-len(handles) // max(1, int((right - left) / 1.75)))
        size = (right - left, high - low + 0.6 + 0.26 * rows)
        figure = Figure(figsize=size)
        bottom = (0.1 + 0.26 * rows) / size[1]
        axes = figure.add_axes((0, bottom, 1, (high - low) / size[1]))
        axes.set(xlim=(left, right), ylim=(low, high))
        axes.axis("off")
        self._titles(axes, groups, low, high)
        self._ports()
        self._edges(axes, self.dropped, _FAINT, _FAINT, 0.8, 1)
        self._edges(axes, self.kept, _DARK, _BOTH, 1.2, 3)
        self._boxes(axes)
        heading = "\n".join(_short(line, int(size[0] * 12)) for line in title.split("\n"))
        figure.text(
            0.5, 1 - 0.12 / size[1], heading, ha="center", va="top", fontsize=10, parse_math=False
        )
        columns = -(-len(handles) // rows)
        figure.legend(
            handles=handles, loc="lower center", ncols=columns, frameon=False, fontsize=8,
            handlelength=2.2, columnspacing=1.4,
        )  # fmt: skip
        return figure

    def _columns(self, groups: list[list[str]]) -> None:
        """Set the left and right end of each column; the room between grows with its edges."""
        width = [max([_width(self.labels[n]) for n in group], default=0.3) for group in groups]
        between = [0] * len(groups)
        inside = [0] * len(groups)
        for edge in self.kept:
            a, b = sorted((self.column[edge.a], self.column[edge.b]))
            if a == b:
                inside[a] += 1
            for c in range(a, b):
                between[c] += 1
        at = 0.0
        for c, wide in enumerate(width):
            self.left.append(at)
            self.right.append(at + wide + 0.24)
            beside = inside[c] + (inside[c + 1] if c + 1 < len(groups) else 0)
            at = self.right[-1] + min(2.6, 0.9 + 0.035 * between[c] + 0.06 * beside)

    def _ports(self) -> None:
        """Spread the ends of edges over the side of a box, in the order of where they come from."""
        sides: dict[tuple[str, int], list[tuple[float, tuple[str, str, int]]]] = {}
        for edge in self.kept + self.dropped:
            for one, two in ((edge.a, edge.b), (edge.b, edge.a)):
                side = self._side(edge, one, two)
                slot = (one, two, _kind(edge))
                from_y = self.layout.y[two]
                sides.setdefault((one, side), []).append((from_y, slot))
        for (name, _), ends in sides.items():
            ends.sort()
            room = self.box[name] * 0.7
            step = min(0.09, room / max(1, len(ends) - 1))
            start = self.layout.y[name] - step * (len(ends) - 1) / 2
            for i, (_, slot) in enumerate(ends):
                self.ports[slot] = start + i * step

    def _side(self, edge: Edge, one: str, two: str) -> int:
        """Say at which side of `one` the edge ends: -1 left, 1 right."""
        if self.column[one] != self.column[two]:
            return 1 if self.column[one] < self.column[two] else -1
        return -1 if _kind(edge) else 1

    def _edges(
        self, axes: Axes, edges: list[Edge], plain: str, both: str, width: float, order: int
    ) -> None:
        from matplotlib.collections import PathCollection
        from matplotlib.path import Path as Curve

        index = {edge[:4]: i for i, edge in enumerate(self.kept)}
        curves: dict[int, list[Any]] = {0: [], 1: []}
        heads: dict[int, list[Any]] = {0: [], 1: []}
        circles: list[tuple[float, float]] = []
        for edge in edges:
            kind = _kind(edge)
            bends = self.layout.bends.get(index.get(edge[:4], -1), [])
            points, codes = self._route(edge, bends)
            curves[kind].append(Curve(points, codes))
            for name, other, mark in ((edge.a, edge.b, edge.at_a), (edge.b, edge.a, edge.at_b)):
                side = self._side(edge, name, other)
                tip = (self._end_x(name, side), self.ports[name, other, kind])
                if mark == Mark.ARROW:
                    heads[kind].append(_triangle(tip, side))
                elif mark == Mark.CIRCLE:
                    circles.append((tip[0] + side * _RADIUS, tip[1]))
        for kind, colour in ((0, plain), (1, both)):
            style = "dashed" if kind else "solid"
            lines = PathCollection(
                curves[kind], facecolors="none", edgecolors=colour, linewidths=width,
                linestyles=style, zorder=order,
            )  # fmt: skip
            axes.add_collection(lines, autolim=False)
            tips = PathCollection(
                [Curve(points) for points in heads[kind]], facecolors=colour, edgecolors="none",
                zorder=order + 1,
            )  # fmt: skip
            axes.add_collection(tips, autolim=False)
        rings = [Curve.circle(centre, _RADIUS) for centre in circles]
        axes.add_collection(
            PathCollection(
                rings, facecolors="white", edgecolors=plain, linewidths=width, zorder=order + 1
            ),
            autolim=False,
        )

    def _end_x(self, name: str, side: int) -> float:
        return (self.left if side < 0 else self.right)[self.column[name]]

    def _route(self, edge: Edge, bends: list[Key]) -> tuple[list[tuple[float, float]], list[int]]:
        """Give the points of a path from a to b that leaves and arrives level, and their codes."""
        a, b = edge.a, edge.b
        kind = _kind(edge)
        if self.column[a] == self.column[b]:
            side = self._side(edge, a, b)
            x, start, end = self._end_x(a, side), self.ports[a, b, kind], self.ports[b, a, kind]
            out = x + side * min(0.85, 0.22 + 0.13 * abs(start - end))
            return [(x, start), (out, start), (out, end), (x, end)], [1, 4, 4, 4]
        if self.column[a] > self.column[b]:
            a, b = b, a
        x, y = self._end_x(a, 1), self.ports[a, b, kind]
        points, codes = [(x, y)], [1]
        stops = [(self.left[k[1]], self.right[k[1]], self.layout.y[k]) for k in bends]  # type: ignore[index]
        target = (self._end_x(b, -1), self._end_x(b, -1), self.ports[b, a, kind])
        for enter, leave, to in [*stops, target]:
            middle = (x + enter) / 2
            points += [(middle, y), (middle, to), (enter, to)]
            codes += [4, 4, 4]
            if leave > enter:
                points.append((leave, to))
                codes.append(2)
            x, y = leave, to
        return points, codes

    def _boxes(self, axes: Axes) -> None:
        from matplotlib.patches import FancyBboxPatch

        roles = _roles(self.query)
        for name in self.names:
            c, y, height = self.column[name], self.layout.y[name], self.box[name]
            role = roles.get(name)
            faint = name in self.never
            box = FancyBboxPatch(
                (self.left[c] + 0.04, y - height / 2 + 0.03),
                self.right[c] - self.left[c] - 0.08, height - 0.06,
                boxstyle="round,pad=0.04,rounding_size=0.07",
                facecolor=_FILL[role] if role else "white",
                edgecolor="#b5b5b5" if faint else _DARK,
                linewidth=1.6 if role else 0.9, zorder=6,
            )  # fmt: skip
            axes.add_patch(box)
            middle = (self.left[c] + self.right[c]) / 2
            axes.text(
                middle, y, self.labels[name], ha="center", va="center_baseline", fontsize=_FONT,
                color="#8f8f8f" if faint else "black", zorder=7, parse_math=False, linespacing=1.0,
            )  # fmt: skip

    def _titles(self, axes: Axes, groups: list[list[str]], low: float, high: float) -> None:
        from matplotlib.patches import Rectangle

        for c in range(len(groups)):
            inside = c + 1 in self.band
            if inside:
                start, wide = self.left[c] - 0.12, self.right[c] - self.left[c] + 0.24
                axes.add_patch(
                    Rectangle(
                        (start, low + 0.05), wide, high - low - 0.1, color="#f3f1ea", zorder=0
                    )
                )
            axes.text(
                (self.left[c] + self.right[c]) / 2, high - 0.22, f"tier {c + 1}", ha="center",
                va="center", fontsize=_FONT, weight="bold" if inside else "normal",
                color="black" if inside else "#8f8f8f",
            )  # fmt: skip

    def _legend(self) -> list[Any]:
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        roles = set(_roles(self.query).values())
        handles: list[Any] = [
            Patch(facecolor=colour, edgecolor=_DARK, label=role)
            for role, colour in _FILL.items()
            if role in roles
        ]
        word = "kept" if self.dropped else "edge"
        handles.append(Line2D([], [], color=_DARK, label=word, linewidth=1.2))
        if any(map(_kind, self.kept)):
            label = "latent common cause"
            handles.append(Line2D([], [], color=_BOTH, label=label, linestyle="dashed"))
        if any(Mark.CIRCLE in edge[2:4] for edge in self.kept):
            ring = Line2D([], [], color=_DARK, label="undecided end", marker="o", markersize=6)
            ring.set_markerfacecolor("white")
            handles.append(ring)
        if self.dropped:
            handles.append(Line2D([], [], color=_FAINT, label="dropped", linewidth=0.8))
        if self.never:
            handles.append(Patch(facecolor="white", edgecolor="#b5b5b5", label="never needed"))
        handles.append(Patch(facecolor="#f3f1ea", label="needed tiers"))
        return handles


def _fonts(text: str) -> list[str]:
    """Name the font that matplotlib brings, and for other scripts those that are here."""
    if all(ord(letter) < 0x2E80 for letter in text):
        return [_FONTS[0]]
    from matplotlib.font_manager import get_font_names

    here = set(get_font_names())
    return [font for font in _FONTS if font in here] or [_FONTS[0]]


def _kind(edge: Edge) -> int:
    """Give 1 for a bidirected edge, 0 for any other."""
    return int(edge.at_a == Mark.ARROW == edge.at_b)


def _roles(query: Query) -> dict[str, str]:
    sides = {"treatment": query.treatment, "outcome": query.outcome, "given": query.given}
    return {name: side for side, names in sides.items() for name in names}


def _triangle(tip: tuple[float, float], side: int) -> list[tuple[float, float]]:
    back = tip[0] + side * _HEAD
    return [tip, (back, tip[1] + _HEAD * 0.42), (back, tip[1] - _HEAD * 0.42), tip]


def _wrapped(name: str) -> str:
    """Break a long name into at most two lines."""
    shown = "".join(c if c.isprintable() else " " for c in name)
    first, *more = textwrap.wrap(shown, _WIDEST) or [shown]
    return f"{first}\n{_short(' '.join(more), _WIDEST)}" if more else first


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _width(label: str) -> float:
    """Give the width of a label in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=_FONT)
    lines = label.split("\n")
    points = (text_to_path.get_text_width_height_descent(t, font, ismath=False)[0] for t in lines)
    return float(max(points)) / 72

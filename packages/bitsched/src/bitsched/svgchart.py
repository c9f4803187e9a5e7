"""A timeline as an SVG picture, written plainly: every mark is a rectangle, a line or a text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from xml.sax.saxutils import escape

from bitsched.timeline import (
    COMPUTE,
    IDLE,
    WAIT,
    Timeline,
    number,
    ordinal,
    raster,
    spread_rows,
    ticks,
)

# Light for compute, dark of the same hue for reduce; told apart also by those who see few colours.
_LIGHT = ("#a6cee3", "#fdd49e", "#b8e0b0", "#d9c3e6", "#f4b6b0",
          "#d8c7a8", "#f7c6e0", "#cfd4da", "#e3e08f", "#a9e2e0")  # fmt: skip
_DARK = ("#1f6fa8", "#d9730b", "#2f8a2f", "#7d4aa3", "#b8322a",
         "#7a5a24", "#c2408a", "#5c6670", "#8c8710", "#128c8a")  # fmt: skip
_PATH = "#000000"
_MOST_ROWS, _MOST_BARS = 264, 6_000
_LEFT, _RIGHT, _TOP = 64.0, 18.0, 46.0
_CELL = 1.5  # pixels of one cell of a condensed picture
_FONT = 'font-family="DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"'


def svg_text(timeline: Timeline, width: int = 1200) -> str:
    """Draw a timeline into an SVG document `width` pixels wide; the same one gives the same text.

    Compute is light and reduce dark in the colour of the task's group; the wait for the turn in
    a sum is hatched; idle time is blank; the critical path is outlined. Past 264 processors every
    k-th has a row, past 6,000 tasks (or where bars would be hairs) a row is cut into cells that
    show what takes most of their time, and the critical path is a line; the picture says so.
    """
    return "\n".join(_Chart(timeline, width).lines()) + "\n"


class _Chart:
    def __init__(self, timeline: Timeline, width: int) -> None:
        self.t = timeline
        self.width = float(width)
        self.plot = self.width - _LEFT - _RIGHT
        self.every = math.ceil(timeline.processors / _MOST_ROWS)
        self.rows = math.ceil(timeline.processors / self.every)
        self.row = max(3.0, min(30.0, math.floor(2 * 760 / self.rows) / 2))
        self.gap = 4.0 if self.row >= 20 else 2.0 if self.row >= 10 else 0.5
        tasks = timeline.end.size
        per_row = tasks / max(1, timeline.processors)
        self.condensed = self.every > 1 or tasks > _MOST_BARS or per_row > self.plot / 3
        self.scale = self.plot / (timeline.makespan or 1.0)
        self.bottom = _TOP + self.rows * self.row
        self.named = False  # whether a bar has room for its name
        self.legend_height = 0.0

    def lines(self) -> Iterator[str]:
        marks = list(self._cells() if self.condensed else self._bars())
        legend = list(self._legend(self.bottom + 52))
        height = self.bottom + 52 + self.legend_height
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_n(self.width)}" '
            f'height="{_n(height)}" viewBox="0 0 {_n(self.width)} {_n(height)}" {_FONT}>'
        )
        yield f"<title>{escape(self.t.title)}</title>"
        yield (
            '<defs><pattern id="wait" width="5" height="5" patternUnits="userSpaceOnUse" '
            'patternTransform="rotate(45)"><rect width="5" height="5" fill="#f2f2f2"/>'
            '<rect width="1.6" height="5" fill="#8f8f8f"/></pattern></defs>'
        )
        yield f'<rect width="{_n(self.width)}" height="{_n(height)}" fill="#ffffff"/>'
        yield from self._heading()
        yield from self._axes()
        yield from marks
        yield from self._path_line() if self.condensed else self._path_outline()
        yield from legend
        yield "</svg>"

    def _heading(self) -> Iterator[str]:
        size = min(15.0, (self.width - 20) / (0.6 * max(1, len(self.t.title))))
        yield _text(_LEFT, 18, self.t.title, size=size, weight="bold")
        if self.condensed:
            yield _text(_LEFT, 35, self._condensed_how(), size=11, fill="#555555")

    def _condensed_how(self) -> str:
        step = number(self.t.makespan / self._columns())
        text = f"Condensed: a mark shows what takes most of its time of {step}"
        if self.every > 1:
            text += f"; every {ordinal(self.every)} of {self.t.processors} processors has a row"
        return text

    def _columns(self) -> int:
        return max(1, int(self.plot / _CELL))

    def _axes(self) -> Iterator[str]:
        unit = f" ({self.t.unit})" if self.t.unit else ""
        for at in ticks(self.t.makespan, int(self.plot / 90)):
            x = _LEFT + at * self.scale
            yield _line(x, _TOP, x, self.bottom + 5, "#d0d0d0")
            yield _text(x, self.bottom + 18, number(at), size=11, anchor="middle")
        yield _line(_LEFT, self.bottom, _LEFT + self.plot, self.bottom, "#333333")
        yield _line(_LEFT, _TOP, _LEFT, self.bottom, "#333333")
        yield _text(
            _LEFT + self.plot / 2, self.bottom + 35, f"time{unit}", size=12, anchor="middle"
        )
        each = max(1, math.ceil(13.0 / self.row))
        each = next(k for k in (1, 2, 4, 5, 8, 10, 16, 20, 32, 50) if k >= each)
        for row in range(0, self.rows, each):
            y = _TOP + row * self.row + min(self.row, 13.0) / 2 + 4
            y = _TOP + (row + 0.5) * self.row + 4 if self.row >= 13 else y
            yield _text(_LEFT - 7, y, str(row * self.every), size=11, anchor="end")
        middle = (_TOP + self.bottom) / 2
        yield (
            f'<text x="16" y="{_n(middle)}" font-size="12" text-anchor="middle" '
            f'transform="rotate(-90 16 {_n(middle)})">{escape(self.t.processor_word)}</text>'
        )

    def _bars(self) -> Iterator[str]:
        t = self.t
        height = self.row - self.gap
        size = min(11.0, height * 0.62)
        for task in range(t.end.size):
            y = self._y(int(t.processor[task]))
            light, dark = _colours(int(t.group[task]))
            begin, computed = float(t.start[task]), float(t.computed[task])
            reducing, end = float(t.reducing[task]), float(t.end[task])
            name = t.name(task)
            yield f"<g><title>{escape(self._tooltip(task))}</title>"
            if computed > begin:
                yield self._rect(begin, computed, y, height, light)
            if reducing > computed:
                yield self._rect(computed, reducing, y, height, "url(#wait)")
            if end > reducing:
                yield self._rect(reducing, end, y, height, dark)
            if size >= 6.5 and 0.62 * size * len(name) + 2 <= (computed - begin) * self.scale:
                self.named = True
                x = _LEFT + (begin + computed) / 2 * self.scale
                yield _text(x, y + height / 2 + size * 0.36, name, size=size, anchor="middle")
            yield "</g>"

    def _tooltip(self, task: int) -> str:
        t = self.t
        group = f"{t.group_word} {t.group_name(int(t.group[task]))}, " if t.group[task] >= 0 else ""
        return (
            f"{group}{t.name_says} {t.name(task)}, {t.processor_word} {t.processor[task]}: "
            f"compute {number(t.start[task])} to {number(t.computed[task])}, "
            f"reduce {number(t.reducing[task])} to {number(t.end[task])}"
        )

    def _cells(self) -> Iterator[str]:
        """Draw the raster; neighbours alike are one rectangle, and equal fills one path."""
        cells = raster(self.t, self._columns(), spread_rows(self.t, self.rows))
        height = self.row - self.gap
        fills: dict[str, list[str]] = {}
        for row in range(cells.rows.size):
            states, groups = cells.state[row].tolist(), cells.group[row].tolist()
            begin = 0
            y = _TOP + row * self.row + self.gap / 2
            for column in range(1, len(states) + 1):
                if column < len(states) and (states[column], groups[column]) == (
                    states[begin],
                    groups[begin],
                ):
                    continue
                state = states[begin]
                if state != IDLE:
                    light, dark = _colours(groups[begin])
                    fill = "#9a9a9a" if state == WAIT else light if state == COMPUTE else dark
                    x, w = _LEFT + begin * cells.step * self.scale, (column - begin) * cells.step
                    fills.setdefault(fill, []).append(
                        f"M{_n(x)} {_n(y)}h{_n(w * self.scale)}v{_n(height)}h{_n(-w * self.scale)}z"
                    )
                begin = column
        for fill, marks in fills.items():
            yield f'<path fill="{fill}" d="{"".join(marks)}"/>'

    def _path_outline(self) -> Iterator[str]:
        """Outline each stretch of the path on one processor, and join the stretches."""
        height = self.row - self.gap
        before: tuple[float, float] | None = None
        runs: list[tuple[int, float, float]] = []
        for task, begin, end in self.t.path_parts():
            processor = int(self.t.processor[task])
            if runs and runs[-1][0] == processor and runs[-1][2] == begin:
                runs[-1] = (processor, runs[-1][1], end)
            else:
                runs.append((processor, begin, end))
        for processor, begin, end in runs:
            y = self._y(processor)
            x, w = _LEFT + begin * self.scale, (end - begin) * self.scale
            middle = y + height / 2
            if before is not None and before[1] != middle:
                yield _line(*before, x, middle, _PATH, 1.6)
            yield (
                f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(w)}" height="{_n(height)}" '
                f'fill="none" stroke="{_PATH}" stroke-width="2"/>'
            )
            before = (x + w, middle)

    def _path_line(self) -> Iterator[str]:
        """Draw the path's stretches, and between them hairs that hide nothing."""
        stretches: list[str] = []
        hairs: list[str] = []
        before: tuple[float, float] | None = None
        for task, begin, end in self.t.path_parts():
            y = _TOP + (int(self.t.processor[task]) / self.every + 0.5) * self.row
            x = _LEFT + begin * self.scale
            right = _LEFT + end * self.scale
            if before is not None and before[1] != y:
                hairs.append(f"M{_n(before[0])} {_n(before[1])}L{_n(x)} {_n(y)}")
            stretches.append(f"M{_n(x)} {_n(y)}H{_n(max(right, x + 1.5))}")
            before = (right, y)
        drawn = f'd="{"".join(stretches)}" fill="none"'
        if hairs:
            joined = "".join(hairs)
            yield f'<path d="{joined}" fill="none" stroke="{_PATH}" stroke-width="0.3"/>'
        yield f'<path {drawn} stroke="#ffffff" stroke-width="4"/>'
        yield f'<path {drawn} stroke="{_PATH}" stroke-width="2"/>'

    def _legend(self, top: float) -> Iterator[str]:
        t = self.t
        waiting = "#9a9a9a" if self.condensed else "url(#wait)"
        groups = sorted({int(g) for g in t.group.tolist()} - {-1}) if t.group.size else []
        shown = groups[: len(_LIGHT)]
        light, dark = _colours(shown[0] if shown else -1)
        entries = [
            (_swatch(light), "compute"),
            (_swatch(dark), "reduce"),
            (_swatch(waiting), "wait for the turn in the sum"),
            (_swatch("#ffffff", stroke="#999999"), "idle"),
            (
                _swatch("none", stroke=_PATH, line=self.condensed, thick=1.8),
                "critical path",
            ),
        ]
        entries += [
            (_pair(*_colours(g)), f"{t.group_word} {_short(t.group_name(g))}") for g in shown
        ]
        if len(groups) > len(shown):
            entries.append(("", f"(colours repeat every {len(_LIGHT)} {t.group_word}s)"))
        if self.named:
            entries.append(("", f"in a bar: {t.name_says}"))
        x, y = _LEFT, top
        for mark, word in entries:
            needed = (24 if mark else 0) + 6.6 * len(word) + 18
            if x > _LEFT and x + needed > self.width:
                x, y = _LEFT, y + 20
            if mark:
                yield f'<g transform="translate({_n(x)} {_n(y)})">{mark}</g>'
            yield _text(x + (24 if mark else 0), y + 10, word, size=11)
            x += needed
        self.legend_height = y - top + 26

    def _y(self, processor: int) -> float:
        return _TOP + processor * self.row + self.gap / 2

    def _rect(self, begin: float, end: float, y: float, height: float, fill: str) -> str:
        x, w = _LEFT + begin * self.scale, (end - begin) * self.scale
        edge = ' stroke="#ffffff" stroke-width="0.6"' if w > 4 else ""
        return (
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(w)}" height="{_n(height)}" '
            f'fill="{fill}"{edge}/>'
        )


def _colours(group: int) -> tuple[str, str]:
    return ("#d9d9d9", "#666666") if group < 0 else (_LIGHT[group % 10], _DARK[group % 10])


def _swatch(fill: str, stroke: str = "", line: bool = False, thick: float = 1.0) -> str:
    if line:
        return f'<line x1="0" y1="6" x2="18" y2="6" stroke="{stroke}" stroke-width="1.6"/>'
    edge = f' stroke="{stroke}" stroke-width="{thick}"' if stroke else ""
    return f'<rect width="18" height="12" fill="{fill}"{edge}/>'


def _pair(light: str, dark: str) -> str:
    return (
        f'<rect width="11" height="12" fill="{light}"/>'
        f'<rect x="11" width="7" height="12" fill="{dark}"/>'
    )


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _line(x1: float, y1: float, x2: float, y2: float, stroke: str, width: float = 1.0) -> str:
    return (
        f'<line x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}" '
        f'stroke="{stroke}" stroke-width="{_n(width)}"/>'
    )


def _text(
    x: float,
    y: float,
    words: str,
    *,
    size: float,
    anchor: str = "start",
    weight: str = "normal",
    fill: str = "#1a1a1a",
) -> str:
    return (
        f'<text x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}" text-anchor="{anchor}" '
        f'font-weight="{weight}" fill="{fill}">{escape(words)}</text>'
    )


def _short(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:21]}..."

"""Logging and progress, on stderr.

The loggers of all tools hang below `papercuts`, and only `configure` (called by `papercuts.app`)
gives that one a handler: a program that imports a tool as a library keeps its own logging.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

_ROOT = "papercuts"
_DRAW_EVERY_S = 0.1
_LINE_EVERY_S = 10.0


def get_logger(name: str) -> logging.Logger:
    """Give the logger of a module: `logger = get_logger(__name__)`."""
    if name == _ROOT or name.startswith(f"{_ROOT}."):
        return logging.getLogger(name)
    return logging.getLogger(f"{_ROOT}.{name}")


def configure(tool: str, *, verbose: int = 0, quiet: bool = False) -> None:
    """Send the log of `tool` to stderr: errors alone when quiet, debugging too when verbose."""
    root = logging.getLogger(_ROOT)
    level = logging.ERROR if quiet else logging.DEBUG if verbose else logging.INFO
    # The options stand before and after the subcommand, so this is called twice: the stronger wins.
    already = [handler for handler in root.handlers if isinstance(handler, _Stderr)]
    if already and not (verbose or quiet):
        return
    for handler in already:
        root.removeHandler(handler)
    root.addHandler(_Stderr(tool))
    root.setLevel(level)
    root.propagate = False


def reset() -> None:
    """Forget what `configure` did, for a process that runs several command lines."""
    root = logging.getLogger(_ROOT)
    root.handlers[:] = [handler for handler in root.handlers if not isinstance(handler, _Stderr)]
    root.setLevel(logging.NOTSET)
    root.propagate = True


def console() -> Console:
    """Give a rich console on stderr, for tables that are for people only."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


class _Stderr(logging.Handler):
    """Writes `TOOL: message` lines to whatever stderr is at that moment."""

    def __init__(self, tool: str) -> None:
        super().__init__()
        self._tool = tool

    def emit(self, record: logging.LogRecord) -> None:
        label = (
            ""
            if record.levelno in (logging.INFO, logging.DEBUG)
            else record.levelname.lower() + ": "
        )
        try:
            sys.stderr.write(f"{self._tool}: {label}{record.getMessage()}\n")
            sys.stderr.flush()
        except OSError:
            return  # stderr is closed or full: the work goes on


class Bar:
    """Counts work done. `advance` is cheap enough to be called for every record."""

    def __init__(self, label: str, total: int | None) -> None:
        self.label = label
        self.total = total
        self.done = 0
        self._start = self._last = time.monotonic()
        self._every = _LINE_EVERY_S

    def advance(self, amount: int = 1) -> None:
        """Count `amount` more units as done."""
        self.done += amount
        now = time.monotonic()
        if now - self._last >= self._every:
            self._last = now
            self._show(now - self._start)

    def _show(self, elapsed_s: float) -> None:
        of = f" of {self.total}" if self.total is not None else ""
        rate = self.done / elapsed_s if elapsed_s > 0 else 0.0
        get_logger(__name__).info("%s: %d%s done, %.3g/s", self.label, self.done, of, rate)


class _DrawnBar(Bar):
    def __init__(self, label: str, total: int | None, progress: Progress) -> None:
        super().__init__(label, total)
        self._every = _DRAW_EVERY_S
        self._progress = progress
        self._task: TaskID = progress.add_task(label, total=total)

    def _show(self, elapsed_s: float) -> None:  # noqa: ARG002
        self._progress.update(self._task, completed=self.done)


@contextmanager
def progress(label: str, total: int | None = None) -> Iterator[Bar]:
    """Show how far a loop is: a bar when stderr is a terminal, else a log line every ten seconds.

    With --quiet nothing is shown.
    """
    drawn = sys.stderr.isatty() and get_logger(_ROOT).isEnabledFor(logging.INFO)
    if not drawn:
        yield Bar(label, total)
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console(),
        transient=True,
    ) as bars:
        bar = _DrawnBar(label, total, bars)
        yield bar
        bars.update(bar._task, completed=bar.done)

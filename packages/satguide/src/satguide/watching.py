"""A training run as a person sees it: a live table on a terminal, else a line now and then."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from papercuts.log import console, get_logger

if TYPE_CHECKING:
    from rich.table import Table

    from satguide.training import Watcher

_ROWS = 12
logger = get_logger(__name__)


@contextmanager
def watching() -> Iterator[Watcher]:
    """Give a function that shows log records on stderr; with --quiet it shows nothing."""
    shown = logger.isEnabledFor(20)
    if not (shown and sys.stderr.isatty()):
        yield _say
        return
    from rich.live import Live

    rows: deque[dict[str, Any]] = deque(maxlen=_ROWS)
    with Live(_table(rows, None), console=console(), auto_refresh=False) as live:

        def show(record: dict[str, Any]) -> None:
            if "validation" in record:
                rows.append(record)
            live.update(_table(rows, record), refresh=True)

        yield show


def _say(record: dict[str, Any]) -> None:
    if "validation" in record:
        logger.info("%s", _line(record))


def _line(record: dict[str, Any]) -> str:
    ratio = "" if record["ratio"] is None else f", {record['ratio']:.3f} of the better baseline"
    return (
        f"iteration {record['iteration']}, {record['wall_s']:.0f} s: sampled "
        f"{record['cost']:.1f}, validation {record['validation']:.1f}{ratio}"
    )


def _table(rows: deque[dict[str, Any]], newest: dict[str, Any] | None) -> Table:
    from rich.table import Table

    title = "" if newest is None else f"iteration {newest['iteration']}, {newest['wall_s']:.0f} s"
    table = Table(title=title or "measuring the baselines")
    for name in ("iteration", "time", "sampled", "validation", "ratio"):
        table.add_column(name, justify="right")
    for record in rows:
        ratio = "-" if record["ratio"] is None else f"{record['ratio']:.3f}"
        cells = (f"{record['wall_s']:.0f} s", f"{record['cost']:.1f}")
        table.add_row(str(record["iteration"]), *cells, f"{record['validation']:.1f}", ratio)
    return table

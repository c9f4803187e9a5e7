"""What the bench scripts share: the kind of machine, results.json, and sections of RESULTS.md."""

from __future__ import annotations

import json
import platform
import time
from pathlib import Path
from typing import Any

from papercuts.hardware import describe

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"


def machine() -> str:
    """Name the kind of machine."""
    cpu, *gpus = describe()
    names = ", ".join(gpu["name"] for gpu in gpus) or "no GPU"
    return f"{cpu['cores']} cores, {platform.machine()} ({cpu['simd']}), {names}"


def today() -> str:
    """Give the date, as results carry it."""
    return time.strftime("%Y-%m-%d")


def read_results() -> dict[str, Any]:
    """Read what earlier runs left."""
    found: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return found


def write_results(results: dict[str, Any]) -> None:
    """Write results.json."""
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def write_section(name: str, lines: list[str]) -> None:
    """Put lines of Markdown into RESULTS.md, in place of the section's earlier ones."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    path = HERE / "RESULTS.md"
    text = path.read_text() if path.exists() else "# What was measured\n"
    section = "\n".join([begin, *lines, end])
    if begin in text:
        text = text[: text.index(begin)] + section + text[text.index(end) + len(end) :]
    else:
        text = f"{text.rstrip()}\n\n{section}\n"
    path.write_text(text)

"""What bench scripts share: the kind of machine, results.json, and the sections of RESULTS.md.

    report = Report(__file__)
    results = report.read_results()
    ...
    report.write_results(results)
    report.write_section("speed", ["## Speed", "", f"{today()}; {machine()}", ...])

Both files lie beside the script. A script that runs one part again keeps what the others left.
"""

from __future__ import annotations

import json
import platform
import time
from pathlib import Path
from typing import Any

from papercuts.hardware import describe


def machine() -> str:
    """Name the kind of machine, as results carry it: never a host."""
    cpu, *gpus = describe()
    names = ", ".join(gpu["name"] for gpu in gpus) or "no GPU"
    return f"{cpu['cores']} cores, {platform.machine()} ({cpu['simd']}), {names}"


def today() -> str:
    """Give the date, as results carry it."""
    return time.strftime("%Y-%m-%d")


class Report:
    """The results of the bench scripts in one folder, that of the file `script`."""

    def __init__(self, script: str) -> None:
        self.folder = Path(script).resolve().parent
        self.results = self.folder / "results.json"
        self.page = self.folder / "RESULTS.md"

    def read_results(self) -> dict[str, Any]:
        """Read what earlier runs left."""
        text = self.results.read_text(encoding="utf-8") if self.results.exists() else "{}"
        found: dict[str, Any] = json.loads(text)
        return found

    def write_results(self, results: dict[str, Any]) -> None:
        """Write results.json."""
        text = json.dumps(results, indent=1, ensure_ascii=False)
        self.results.write_text(text + "\n", encoding="utf-8")

    def write_section(self, name: str, lines: list[str]) -> None:
        """Put lines of Markdown into RESULTS.md, in place of the section's earlier ones."""
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        text = self.page.read_text(encoding="utf-8") if self.page.exists() else _TITLE
        section = "\n".join([begin, *lines, end])
        if begin in text:
            text = text[: text.index(begin)] + section + text[text.index(end) + len(end) :]
        else:
            text = f"{text.rstrip()}\n\n{section}\n"
        self.page.write_text(text, encoding="utf-8")


_TITLE = "# What was measured\n"

"""Generated blocks in Markdown: what stands between `<!-- NAME -->` and `<!-- /NAME -->`."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path

from workspace import ROOT


def rewrite(text: str, kind: str, content: Callable[[str, str], str]) -> str:
    """Give `text` with the content of each block of a kind made anew.

    A block opens with `<!-- kind -->` or `<!-- kind: subject -->` and ends at `<!-- /kind -->`;
    `content(subject, old)` says what stands between. Raises ValueError where a block never ends.
    """
    opening = re.compile(rf"^<!-- {kind}(?:: (?P<subject>[^>]*?))? -->$", re.MULTILINE)
    closing = f"<!-- /{kind} -->"
    parts: list[str] = []
    done = 0
    while match := opening.search(text, done):
        end = text.find(closing, match.end())
        following = opening.search(text, match.end())
        if end < 0 or (following and following.start() < end):
            raise ValueError(f"{match[0]} has no {closing}")
        old = text[match.end() : end].strip("\n")
        parts += [text[done : match.end()], "\n", content(match["subject"] or "", old), "\n"]
        done = end
    return "".join([*parts, text[done:]])


def subjects(text: str, kind: str) -> list[str]:
    """List the subjects of the blocks of a kind, in order."""
    return re.findall(rf"^<!-- {kind}: ([^>]*?) -->$", text, re.MULTILINE)


def settle(path: Path, fresh: str, *, check: bool) -> str:
    """Write a file that should read `fresh`, or under `check` give the difference ("" if none)."""
    old = path.read_text(encoding="utf-8")
    if old == fresh:
        return ""
    if not check:
        path.write_text(fresh, encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
        return ""
    lines = unified_diff(old.splitlines(), fresh.splitlines(), "as written", "as it is", n=1)
    return f"{path.relative_to(ROOT)} is stale:\n" + "\n".join(lines)

"""Makes the README's table of tools anew (`just catalogue`), or says that it is stale (`--check`).

Everything in the table is read from the packages, the size of the base install from what is
installed here: the files of the tool and of all that it requires, without extras. That size is a
figure for Linux on x86-64, so it is measured only there, and one that is within a tenth (or one
rounding step) of what is written stays as written.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterable, Iterator
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from blocks import rewrite, settle
from workspace import ROOT, Package, packages, tools

README = ROOT / "README.md"
STEP_MB = 5
HEAD = """\
| command | what it does | paper | base install | status |
|---|---|---|---|---|
"""


def closure(distribution: str, extras: Iterable[str] = ()) -> set[str]:
    """List the distributions that an install of `distribution` brings, itself included."""
    found: set[str] = set()
    waiting: list[tuple[str, frozenset[str]]] = [(distribution, frozenset(extras))]
    seen = set(waiting)
    while waiting:
        name, wanted_extras = waiting.pop()
        found.add(canonicalize_name(name))
        for text in metadata.requires(name) or []:
            requirement = Requirement(text)
            wanted = requirement.marker is None or any(
                requirement.marker.evaluate({"extra": extra}) for extra in (wanted_extras or {""})
            )
            following = (requirement.name, frozenset(requirement.extras))
            if wanted and following not in seen:
                seen.add(following)
                waiting.append(following)
    return found


def size_mb(package: Package) -> float:
    """Measure the base install, in MB (10^6 bytes), without compiled caches."""
    own = {p.distribution: p for p in packages()}
    total = 0
    for name in closure(package.distribution):
        if name in own:  # installed as a link to its folder
            total += sum(f.stat().st_size for f in own[name].source.rglob("*") if _counts(str(f)))
        else:
            files = metadata.files(name) or []
            total += sum(f.size or 0 for f in files if _counts(str(f)))
    return total / 1e6


def _counts(path: str) -> bool:
    return "__pycache__" not in path


def shown_size(package: Package, written: str | None) -> str:
    """Give the size to show: the written one where it still holds or cannot be measured."""
    number = float(match[1]) if (match := re.fullmatch(r"(\d+) MB", written or "")) else None
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return written or "?"
    measured = size_mb(package)
    if number is not None and abs(measured - number) <= max(STEP_MB, 0.1 * measured):
        return f"{number:.0f} MB"
    return f"{max(1, round(measured / STEP_MB)) * STEP_MB} MB"


def table(tools: list[Package], old: str = "") -> str:
    """Give the table; `old` is the one that stands now, for its sizes."""
    return HEAD + "\n".join(_rows(tools, sizes(old)))


def _rows(tools: list[Package], sizes: dict[str, str]) -> Iterator[str]:
    for tool in tools:
        paper = tool.paper
        cells = [
            f"[`{tool.command}`](packages/{tool.folder.name}/README.md)",
            str(tool.project["description"]),
            f"[{paper['title']}]({paper['url']}) ({paper['venue']})",
            shown_size(tool, sizes.get(tool.command)),
            _status(tool),
        ]
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def sizes(old: str) -> dict[str, str]:
    """Read the sizes that a table shows, by command."""
    return dict(re.findall(r"^\| \[`(\S+)`\].* \| (\S+ MB) \| \S+ \|$", old, re.MULTILINE))


def _status(tool: Package) -> str:
    """Give the last word of the classifier `Development Status :: 4 - Beta`, in lower case."""
    for classifier in tool.project.get("classifiers", []):
        if classifier.startswith("Development Status ::"):
            return str(classifier.rpartition(" ")[2]).lower()
    raise ValueError(f"{tool.folder}/pyproject.toml: no classifier 'Development Status'")


def fresh_readme() -> str:
    """Give the root README with the table as it should be.

    Raises ValueError when the README has no place for it.
    """
    text = README.read_text(encoding="utf-8")
    if "<!-- catalogue -->" not in text:
        raise ValueError("README.md has no lines <!-- catalogue --> and <!-- /catalogue -->")
    return rewrite(text, "catalogue", lambda _subject, old: table(tools(), old))


def main(arguments: list[str]) -> int:
    """Rewrite, or with `--check` compare; give the exit code."""
    stale = settle(README, fresh_readme(), check="--check" in arguments)
    if stale:
        print(f"{stale}\nrun `just catalogue`")
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

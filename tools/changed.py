"""Names whose slow tests a change calls for: `python tools/changed.py [REF]`, one name a line.

A name is a tool, `papercuts` (shared), or `workspace` for all that is in neither. REF is what the
working tree is compared with; without one it is where this branch left `origin/main`, or else the
commit before this one. With an empty REF, or with nothing to compare with, every name is printed.
"""

from __future__ import annotations

import subprocess
import sys

from workspace import ROOT, SHARED, tools

WORKSPACE = "workspace"


def git(*arguments: str) -> str | None:
    """Give what git prints, or None where it fails."""
    ended = subprocess.run(
        ["git", *arguments], cwd=ROOT, check=False, capture_output=True, text=True
    )
    return ended.stdout.strip() if ended.returncode == 0 else None


def default_reference() -> str | None:
    """Find the commit to compare with; None where there is none."""
    head = git("rev-parse", "HEAD")
    base = git("merge-base", "HEAD", "origin/main")
    if base and base != head:
        return base
    return git("rev-parse", "--verify", "--quiet", "HEAD~1")


def changed_paths(reference: str) -> list[str]:
    """List the paths that differ from a commit, with files that git does not know yet.

    Raises ValueError where there is no such commit.
    """
    tracked = git("diff", "--name-only", "--no-renames", reference, "--")
    if tracked is None:
        raise ValueError(f"git knows no commit {reference}")
    untracked = git("ls-files", "--others", "--exclude-standard") or ""
    return [*tracked.splitlines(), *untracked.splitlines()]


def owners(paths: list[str], tool_names: list[str]) -> list[str]:
    """Name whose slow tests changes in `paths` call for, in a fixed order.

    A Markdown file outside the packages is nobody's: the fast tests read it.
    """
    found = set()
    for path in paths:
        top, _, rest = path.partition("/")
        if top == "packages":
            found.add(rest.partition("/")[0])
        elif top == "shared":
            found.add(SHARED)
        elif not path.endswith(".md"):
            found.add(WORKSPACE)
    return [name for name in (SHARED, *tool_names, WORKSPACE) if name in found]


def main(arguments: list[str]) -> int:
    """Print the names; give the exit code."""
    names = [tool.command for tool in tools()]
    reference = arguments[0] if arguments else default_reference()
    if reference:
        try:
            changed = owners(changed_paths(reference), names)
        except ValueError as error:
            print(f"changed: error: {error}", file=sys.stderr)
            return 2
    else:
        changed = [SHARED, *names, WORKSPACE]
    print("\n".join(changed))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Makes the `--help` blocks of the READMEs anew (`just docs`), or says which are stale (`--check`).

A README asks for a help page with the two lines `<!-- help: seesaw plan -->` and
`<!-- /help -->`; this fills in what `seesaw plan --help` prints at 80 columns without colour.
"""

from __future__ import annotations

import sys

from blocks import rewrite, settle
from commands import commands
from workspace import Package, packages


def fresh_readme(package: Package) -> str:
    """Give the package's README with its help blocks as they should be.

    Raises ValueError when a block asks for a command that the package does not have.
    """
    pages = {command.name: command.page for command in commands(package)}

    def block(name: str, _old: str) -> str:
        if name not in pages:
            raise ValueError(f"{package.readme}: there is no command '{name}'")
        page = "\n".join(line.rstrip() for line in pages[name].splitlines())
        return f"```console\n$ {name} --help\n{page}\n```"

    return rewrite(package.readme.read_text(encoding="utf-8"), "help", block)


def main(arguments: list[str]) -> int:
    """Rewrite, or with `--check` compare; give the exit code."""
    check = "--check" in arguments
    stale = [settle(p.readme, fresh_readme(p), check=check) for p in packages()]
    print("\n".join(filter(None, stale)), end="")
    if any(stale):
        print("\nrun `just docs`")
    return int(any(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Begins a tool: `just new NAME` writes packages/NAME and enters it in the workspace.

The new package is a small tool that works (it numbers records) and passes lint, types and the
manners tests as it is; what its author must write is marked REPLACE. It is `tools/template` with
the name put in.
"""

from __future__ import annotations

import keyword
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from docs import fresh_readme
from workspace import ROOT, SHARED, Package, own_files, shared

TEMPLATE = Path(__file__).parent / "template"
TEMPLATE_NAME = "toolname"
TEMPLATE_VERSION = "0.0.0"
USAGE = 2
CANT_CREATE = 73


def fault_of(name: str) -> str:
    """Say why `name` cannot be a tool's; "" when it can."""
    if not re.fullmatch(r"[a-z][a-z0-9]+", name):
        return "a tool's name is of lower-case letters and digits, and begins with a letter"
    if keyword.iskeyword(name) or keyword.issoftkeyword(name):
        return "that is a word of Python's own"
    if name in sys.stdlib_module_names:
        return "that is a module of the standard library"
    if name in {SHARED, TEMPLATE_NAME, "workspace", "test", "tests"}:
        return "that name is taken here"
    if name in metadata.packages_distributions():
        return f"that is a module of the installed {metadata.packages_distributions()[name][0]}"
    return ""


def write_package(name: str, folder: Path) -> None:
    """Copy the template to `folder` under the tool's name and version."""
    version = str(shared().project["version"])
    for path in own_files(TEMPLATE):
        place = folder / str(path.relative_to(TEMPLATE)).replace(TEMPLATE_NAME, name)
        place.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8").replace(TEMPLATE_NAME, name)
        if path.name == "pyproject.toml":
            text = text.replace(TEMPLATE_VERSION, version)
        place.write_text(text, encoding="utf-8")
    (folder / "LICENSE").write_bytes((ROOT / "LICENSE").read_bytes())
    # The name's length and its place in the alphabet settle line breaks and the order of imports.
    for command in (["check", "--quiet", "--fix", "--select", "I"], ["format", "--quiet"]):
        subprocess.run([sys.executable, "-m", "ruff", *command, folder], check=True, cwd=ROOT)
    package = Package(folder)
    package.readme.write_text(fresh_readme(package), encoding="utf-8")


def enter(pyproject: str, name: str) -> str:
    """Give the root `pyproject.toml` with the tool among the sources and the dev dependencies."""
    distribution = f"papercuts-{name}"
    source = f"{distribution} = {{ workspace = true }}"
    entered = _insert(pyproject, "[tool.uv.sources]\n", source, end="\n\n")
    return _insert(entered, "dev = [\n", f'    "{distribution}",', end="\n]\n")


def _insert(text: str, head: str, line: str, *, end: str) -> str:
    """Insert `line` in its alphabetical place between `head` and `end`."""
    start = text.index(head) + len(head)
    stop = text.index(end, start)
    lines = [*text[start:stop].split("\n"), line]
    lines.sort(key=lambda entry: re.split(r"[\"\[<>=~; ]+", entry.strip(' "'))[0])
    return text[:start] + "\n".join(lines) + text[stop:]


def main(arguments: list[str]) -> int:
    """Write the package named on the command line; give the exit code."""
    if len(arguments) != 1:
        print("usage: just new NAME", file=sys.stderr)
        return USAGE
    (name,) = arguments
    if fault := fault_of(name):
        print(f"new_tool: error: {name}: {fault}", file=sys.stderr)
        return USAGE
    folder = ROOT / "packages" / name
    if folder.exists():
        print(f"new_tool: error: packages/{name} exists already", file=sys.stderr)
        return CANT_CREATE
    write_package(name, folder)
    root_file = ROOT / "pyproject.toml"
    root_file.write_text(enter(root_file.read_text(encoding="utf-8"), name), encoding="utf-8")
    print(f"""\
packages/{name} is there. Next:
    just setup            install it, and enter it in uv.lock
    just test {name}
    {name} demo
    grep -rn REPLACE packages/{name}
    just docs; just catalogue""")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

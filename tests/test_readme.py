"""What the READMEs tell a reader to type works: every fence marked `bash` is run.

The fences of one README run in order, in one shell, in a copy of the README's folder. A fence with
the line `<!-- slow -->` before it runs in the slow suite only. `sh` marks commands that are not
run (they install from the network), `console` shows output.
"""

from __future__ import annotations

import re

import pytest

from workspace import ROOT, copy_files, packages

FENCE = re.compile(
    r"^(?P<slow><!-- slow -->\n+)?```bash\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
LIMIT_S = 60


def fences(text, *, slow):
    """List the code of the fences that the fast suite, or also the slow one, runs."""
    return [m["code"] for m in FENCE.finditer(text) if slow or not m["slow"]]


def has_slow(text):
    return any(match["slow"] for match in FENCE.finditer(text))


def run_fences(readme, run, *, slow):
    copy_files(readme.parent, run.folder)
    codes = fences(readme.read_text(encoding="utf-8"), slow=slow)
    limit = LIMIT_S * (len(codes) if slow else 1)
    result = run.bash("\n".join(codes), timeout=limit)
    assert result.code == 0, result.err + result.text[-2000:]


def test_commands_of_a_package_readme(package, run):
    run_fences(package.readme, run, slow=False)


def test_commands_of_the_readme(run):
    run_fences(ROOT / "README.md", run, slow=False)


@pytest.mark.slow
def test_slow_commands_of_a_package_readme(package, run):
    if has_slow(package.readme.read_text(encoding="utf-8")):
        run_fences(package.readme, run, slow=True)


@pytest.mark.slow
def test_slow_commands_of_the_readme(run):
    if has_slow((ROOT / "README.md").read_text(encoding="utf-8")):
        run_fences(ROOT / "README.md", run, slow=True)


def test_every_readme_has_something_to_run(tool):
    text = tool.readme.read_text(encoding="utf-8")
    assert f"{tool.command} demo" in "".join(fences(text, slow=True))


def test_fences_are_marked():
    """A fence without a word is neither run nor known to be output."""
    unmarked = {}
    for path in [ROOT / "README.md", *(package.readme for package in packages())]:
        opening = re.findall(r"^```(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)[::2]
        if "" in opening:
            unmarked[str(path.relative_to(ROOT))] = opening.count("")
    assert unmarked == {}


def test_which_fences_are_run():
    text = (
        "```bash\na\n```\ntext\n\n<!-- slow -->\n```bash\nb\n```\n```sh\nc\n```\n"
        "```console\n$ d\n```\n```bash\ne\nf\n```\n"
    )
    assert fences(text, slow=False) == ["a\n", "e\nf\n"]
    assert fences(text, slow=True) == ["a\n", "b\n", "e\nf\n"]

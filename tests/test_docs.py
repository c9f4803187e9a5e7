"""The manual is never behind the code: help texts, help blocks, the README of every tool."""

from __future__ import annotations

import re

import pytest

import blocks
import catalogue
import docs
from commands import commands
from workspace import ROOT, shared

SECTIONS = ["Install", "The demo", "Formats", "How it works", "What was measured", "Limits", "Cite"]
# A new tool says this where its author has something to write.
UNWRITTEN = re.compile(r"\bREPLACE\b")


def test_help_blocks_are_fresh(package):
    fresh = docs.fresh_readme(package)
    assert package.readme.read_text(encoding="utf-8") == fresh, "run `just docs`"


def test_every_command_and_option_has_help(package):
    silent = [
        f"{command.name} {parameter.name}"
        for command in commands(package)
        for parameter in command.parameters
        if not parameter.help.strip()
    ]
    silent += [command.name for command in commands(package) if not command.help.strip()]
    assert silent == []


def test_every_command_and_option_is_in_the_readme(package):
    text = package.readme.read_text(encoding="utf-8")
    unsaid = []
    for command in commands(package):
        if not re.search(rf"\b{command.name}\b", text):
            unsaid.append(command.name)
        for parameter in command.parameters:
            longest = max(parameter.flags, key=len)
            said = re.search(rf"(?<![\w-]){re.escape(longest)}(?![\w-])", text)
            if parameter.is_option and not parameter.hidden and not said:
                unsaid.append(f"{command.name} {longest}")
    assert unsaid == []


def test_help_block_is_what_the_command_prints(package, run):
    page = next(command.page for command in commands(package))
    assert run(package.command, "--help").text.rstrip() == page.rstrip()


def test_readme_has_its_sections(tool):
    text = tool.readme.read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert text.startswith(f"# {tool.command}\n")
    assert [section for section in SECTIONS if section not in headings] == []


def test_figures_have_their_date_and_command(tool):
    text = tool.readme.read_text(encoding="utf-8")
    section = text.partition("## What was measured")[2].partition("\n## ")[0]
    # What is not written yet, another test holds against it.
    written = not UNWRITTEN.search(section)
    assert not written or re.search(r"\b20\d\d-\d\d-\d\d\b", section)
    assert not written or re.search(rf"`(just bench )?{tool.command}\b", section)


def test_install_lines_cannot_meet_a_stranger(tool):
    text = tool.readme.read_text(encoding="utf-8")
    name = tool.command
    assert re.search(rf"papercuts-{name} @ git\+\S+#subdirectory=packages/{name}\b", text)
    assert f"uv tool install ./packages/{name}" in text
    # A bare distribution name on the index may be anybody's.
    assert not re.search(
        rf"install [\"']?papercuts(-{name})?(\[\w+\])?[\"']?\s*$", text, re.MULTILINE
    )


def test_nothing_of_the_template_is_left_unwritten(tool):
    texts = [tool.readme, tool.folder / "pyproject.toml", *tool.source.rglob("*.*")]
    left = [
        str(path.relative_to(ROOT))
        for path in texts
        if path.suffix in {".md", ".toml", ".py"} and UNWRITTEN.search(path.read_text("utf-8"))
    ]
    assert left == []


def test_catalogue_is_fresh():
    written = (ROOT / "README.md").read_text(encoding="utf-8")
    assert written == catalogue.fresh_readme(), "run `just catalogue`"


# The generators themselves


def test_a_block_is_rewritten_and_the_rest_kept():
    text = "a\n<!-- help: x y -->\nold\n<!-- /help -->\nb\n<!-- help: z -->\n<!-- /help -->\n"
    fresh = blocks.rewrite(text, "help", lambda subject, old: f"{subject}|{old}")
    first = "<!-- help: x y -->\nx y|old\n<!-- /help -->\n"
    second = "<!-- help: z -->\nz|\n<!-- /help -->\n"
    assert fresh == f"a\n{first}b\n{second}"
    assert blocks.rewrite(fresh, "help", lambda _subject, old: old) == fresh


def test_a_block_without_end_is_an_error():
    text = "<!-- help: a -->\n<!-- help: b -->\n<!-- /help -->\n"
    with pytest.raises(ValueError, match="help: a"):
        blocks.rewrite(text, "help", lambda _subject, _old: "")


def test_a_block_for_a_command_that_is_gone_is_an_error(tool, tmp_path, monkeypatch):
    readme = tmp_path / "README.md"
    readme.write_text(f"<!-- help: {tool.command} gone -->\n<!-- /help -->\n")
    monkeypatch.setattr(type(tool), "readme", readme)
    with pytest.raises(ValueError, match=f"no command '{tool.command} gone'"):
        docs.fresh_readme(tool)


@pytest.mark.parametrize(
    ("written", "measured", "shown"),
    [
        (None, 96.2, "95 MB"),
        ("95 MB", 99.9, "95 MB"),
        ("95 MB", 110.0, "110 MB"),
        ("2800 MB", 2950.0, "2800 MB"),
        (None, 0.4, "5 MB"),
    ],
)
def test_a_written_size_holds_while_it_is_near(monkeypatch, written, measured, shown):
    monkeypatch.setattr(catalogue.platform, "system", lambda: "Linux")
    monkeypatch.setattr(catalogue.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(catalogue, "size_mb", lambda _package: measured)
    assert catalogue.shown_size(None, written) == shown


def test_a_written_size_is_kept_where_it_cannot_be_measured(monkeypatch):
    monkeypatch.setattr(catalogue.platform, "system", lambda: "Darwin")
    assert catalogue.shown_size(None, "95 MB") == "95 MB"


def test_the_table_reads_its_own_sizes_back(tool):
    table = catalogue.table([tool])
    assert catalogue.sizes(table).keys() == {tool.command}
    assert catalogue.table([tool], table) == table


def test_closure_is_the_base_install(tool):
    found = catalogue.closure(tool.distribution)
    assert {tool.distribution, "papercuts", "typer", "rich", "orjson"} <= found
    needed = " ".join([*tool.project["dependencies"], *shared().project["dependencies"]])
    assert [name for name in ("ray", "torch") if name in found and name not in needed] == []

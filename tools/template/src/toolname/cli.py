"""The commands of `toolname`: parse, call, print."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from papercuts.app import App, Force, Format, Output


def _schema() -> dict[str, Any]:
    from toolname.number import SCHEMA

    return SCHEMA


app = App("toolname", help="REPLACE: what it does, in one line.", schema=_schema)

Input = Annotated[
    str | None,
    typer.Argument(metavar="INPUT", help="Records as JSON Lines or CSV; - is stdin."),
]


@app.command()
def number(
    source: Input = None,
    start: Annotated[int, typer.Option("--start", help="The first record's number.")] = 0,
    output: Output = "-",
    format_name: Format = None,
    force: Force = False,
) -> None:
    """Give every record that passes through its number."""
    from papercuts.streams import default_input, read_records, write_records
    from toolname.number import numbered

    records = (record.data for record in read_records(default_input(source, "INPUT")))
    write_records(numbered(records, start=start), output, format=format_name, force=force)


@app.command()
def demo(format_name: Format = None) -> None:
    """Show on three records what this tool does."""
    from papercuts.streams import write_records
    from toolname.number import numbered

    records = [{"word": word} for word in ("one", "two", "three")]
    write_records(numbered(records, start=1), format=format_name)


@app.command()
def bench(
    source: Input = None,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Times to measure.")] = 5,
    format_name: Format = None,
) -> None:
    """Measure the numbering of your records on this machine."""
    from papercuts.streams import default_input, read_records, write_records
    from toolname.number import time_numbering

    records = (record.data for record in read_records(default_input(source, "INPUT")))
    write_records(time_numbering(records, repeats=repeats), format=format_name)

"""The command `papercuts`: what machine this is, and which tools are installed."""

from __future__ import annotations

from typing import Any

from papercuts.app import App, Force, Format, Output


def _schema() -> dict[str, Any]:
    """Describe the records of both commands."""
    text: dict[str, Any] = {"type": "string"}
    optional_text = {"type": ["string", "null"]}
    optional_number = {"type": ["integer", "null"], "minimum": 0}
    hardware = {
        "device": {**text, "description": "torch's name of the device: cpu, cuda:0, mps"},
        "name": {**text, "description": "the model"},
        "cores": {**optional_number, "description": "CPU cores that a process may use"},
        "memory_mib": {**optional_number, "description": "memory that a process may use"},
        "simd": {"enum": ["avx512", "avx2", "avx", "sse", "sve", "neon", "none", None]},
        "features": {"type": "array", "items": text, "description": "notable CPU extensions"},
        "capability": {**optional_text, "description": "CUDA compute capability, such as 9.0"},
        "fast_bf16": {"type": "boolean", "description": "whether --dtype auto means bf16 here"},
    }
    tools = {
        "name": text,
        "version": text,
        "summary": text,
        "command": {**optional_text, "description": "path of the command; null when missing"},
        "location": {**text, "description": "the environment that holds the tool"},
        "source": {"enum": ["environment", "uv tool"]},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "a record of `papercuts hardware` or of `papercuts tools`",
        "oneOf": [_object("hardware", hardware), _object("tools", tools)],
    }


def _object(title: str, properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "title": title,
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


app = App(
    "papercuts",
    distribution="papercuts",
    cite=False,
    help="What machine this is, and which papercuts tools are installed on it.",
    schema=_schema,
)


@app.command()
def hardware(format: Format = None, output: Output = "-", force: Force = False) -> None:  # noqa: A002
    """Show the CPU, memory and GPUs of this machine.

    One record for each device. Cores and memory are what CPU affinity and control groups leave to
    a process. Torch is not needed.
    """
    from papercuts.hardware import describe
    from papercuts.streams import output_format, write_records

    devices = describe()
    table = output_format(output, format) == "table"
    write_records(_turned(devices) if table else devices, output, format=format, force=force)


def _turned(devices: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Make a row of each property and a column of each device, which a terminal has room for."""
    properties = [key for key in devices[0] if key != "device"]
    return [
        {"device": key, **{device["device"]: _words(device[key]) for device in devices}}
        for key in properties
    ]


def _words(value: Any) -> Any:
    return " ".join(value) if isinstance(value, list) else value


@app.command()
def tools(format: Format = None, output: Output = "-", force: Force = False) -> None:  # noqa: A002
    """List the papercuts tools that are installed.

    Those in the environment of this command, and those of `uv tool install`. Nothing of them is
    run.
    """
    from dataclasses import asdict

    from papercuts.installed import installed_tools
    from papercuts.log import get_logger
    from papercuts.streams import write_records

    found = [asdict(tool) for tool in installed_tools()]
    if not found:
        get_logger(__name__).info("no tool is installed here, nor by uv tool install")
    write_records(found, output, format=format, force=force)

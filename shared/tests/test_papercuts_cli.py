"""The command `papercuts`, as a shell sees it, and the reading of uv's tool environments."""

import csv
import io
import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from papercuts import hardware, installed
from papercuts.cli import _schema

COMMAND = [sys.executable, "-c", "from papercuts.cli import app; app()"]
CLEAN = {key: value for key, value in os.environ.items() if not key.startswith(("UV_", "XDG_"))}


def papercuts(*arguments, **env):
    return subprocess.run(
        [*COMMAND, *arguments],
        env={**CLEAN, "COLUMNS": "80", **env},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def make_tool(tmp_path):
    """Make an environment as `uv tool install` leaves it, in a folder of tools."""
    folder = tmp_path / "tools"

    def make(name, version="1.2", summary="Does it.", group="papercuts.tools", python="3.12"):
        environment = folder / f"papercuts-{name}"
        info = (
            environment / f"lib/python{python}/site-packages/papercuts_{name}-{version}.dist-info"
        )
        info.mkdir(parents=True)
        (environment / "pyvenv.cfg").write_text("home = /nowhere\n")
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.4\nName: papercuts-{name}\nVersion: {version}\n"
            + (f"Summary: {summary}\n" if summary else "")
        )
        (info / "entry_points.txt").write_text(
            f"[console_scripts]\n{name} = {name}.cli:app\n\n[{group}]\n{name} = {name}.cli:app\n"
        )
        # Importing it would be noticed.
        (info.parent / name).mkdir()
        (info.parent / name / "__init__.py").write_text("raise SystemExit('was imported')\n")
        (environment / "bin").mkdir()
        (environment / "bin" / name).write_text("#!/bin/sh\nexit 9\n")
        (environment / "bin" / name).chmod(0o755)
        return environment

    make.folder = folder
    return make


@pytest.fixture
def uv_tools(make_tool, monkeypatch):
    """List what is found in the made-up folder of tools, without a uv on the PATH."""
    monkeypatch.setattr("shutil.which", lambda _name: None)
    monkeypatch.setenv("UV_TOOL_DIR", str(make_tool.folder))
    return lambda: [tool for tool in installed.installed_tools() if tool.source == "uv tool"]


def test_tools_of_uv_are_read_from_their_metadata(make_tool, uv_tools):
    second = make_tool("tierprune", version="0.3.1", summary="Prunes.", python="3.13")
    first = make_tool("seesaw", summary="")
    make_tool("stranger", group="other.tools")
    (make_tool.folder / ".lock").touch()
    (make_tool.folder / "not-an-environment").mkdir()
    assert uv_tools() == [
        installed.Tool("seesaw", "1.2", "", str(first / "bin/seesaw"), str(first), "uv tool"),
        installed.Tool(
            "tierprune", "0.3.1", "Prunes.", str(second / "bin/tierprune"), str(second), "uv tool"
        ),
    ]


def test_the_link_that_uv_made_is_preferred(make_tool, uv_tools, tmp_path):
    environment = make_tool("seesaw")
    link = tmp_path / "bin" / "seesaw"
    link.parent.mkdir()
    (environment / "uv-receipt.toml").write_text(
        f'[tool]\nentrypoints = [\n  {{ name = "seesaw", install-path = "{link}" }},\n]\n'
    )
    assert uv_tools()[0].command == str(environment / "bin/seesaw")  # the link is gone
    link.symlink_to(environment / "bin/seesaw")
    assert uv_tools()[0].command == str(link)


@pytest.mark.parametrize("receipt", ["not toml [", "[tool]\n", "[tool]\nentrypoints = 3\n"])
def test_a_receipt_of_another_kind_is_passed_over(make_tool, uv_tools, receipt):
    environment = make_tool("seesaw")
    (environment / "uv-receipt.toml").write_text(receipt)
    assert uv_tools()[0].command == str(environment / "bin/seesaw")


def test_a_command_that_is_gone_is_none(make_tool, uv_tools):
    (make_tool("seesaw") / "bin/seesaw").unlink()
    assert uv_tools()[0].command is None


def test_a_broken_environment_hides_no_other(make_tool, uv_tools, monkeypatch):
    warned = []
    monkeypatch.setattr(installed.logger, "warning", lambda text, *args: warned.append(text % args))
    broken = make_tool("broken")
    info = next(broken.glob("lib/*/site-packages/*.dist-info"))
    (info / "METADATA").unlink()
    make_tool("seesaw")
    assert [tool.name for tool in uv_tools()] == ["seesaw"]
    assert warned == [f"broken in {broken} has no metadata"]


def test_the_first_of_two_installed_copies_counts(make_tool, tmp_path, monkeypatch):
    front, back = make_tool("seesaw", version="2.0"), tmp_path / "back"
    (front / "lib/python3.12/site-packages").rename(tmp_path / "front")
    make_tool.folder.rename(tmp_path / "spent")
    behind = make_tool("seesaw", version="1.0")
    (behind / "lib/python3.12/site-packages").rename(back)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "front"), str(back), *sys.path])
    monkeypatch.setattr(installed, "_uv_environments", list)
    versions = [tool.version for tool in installed.installed_tools() if tool.name == "seesaw"]
    assert versions == ["2.0"]


def test_where_uv_keeps_its_tools(monkeypatch, tmp_path):
    for name in ("UV_TOOL_DIR", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert installed.uv_tool_folder() == tmp_path / "home/.local/share/uv/tools"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert installed.uv_tool_folder() == tmp_path / "data/uv/tools"
    monkeypatch.setenv("UV_TOOL_DIR", str(tmp_path / "chosen"))
    assert installed.uv_tool_folder() == tmp_path / "chosen"
    uv = tmp_path / "uv"
    uv.write_text(f'#!/bin/sh\n[ "$1 $2" = "tool dir" ] && echo "{tmp_path}/said by uv"\n')
    uv.chmod(0o755)
    assert installed.uv_tool_folder() == tmp_path / "said by uv"
    uv.write_text("#!/bin/sh\nexit 2\n")
    assert installed.uv_tool_folder() == tmp_path / "chosen"
    monkeypatch.setattr(installed, "_UV_TIMEOUT_S", 0.2)
    uv.write_text("#!/bin/sh\nexec sleep 20\n".replace("sleep", "/bin/sleep"))
    assert installed.uv_tool_folder() == tmp_path / "chosen"


def test_tools_lists_this_environment_and_uvs(make_tool):
    made = make_tool("elsewhere")
    result = papercuts("tools", PATH="/nonexistent", UV_TOOL_DIR=str(make_tool.folder))
    assert (result.returncode, result.stderr) == (0, "")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    here = [row for row in rows if row["source"] == "environment"]
    assert all(row["location"] == sys.prefix for row in here)
    if (Path(sysconfig.get_path("scripts")) / "seesaw").exists():
        (seesaw,) = [row for row in here if row["name"] == "seesaw"]
        assert seesaw["command"] == str(Path(sysconfig.get_path("scripts")) / "seesaw")
    assert rows[-1] == {
        "name": "elsewhere",
        "version": "1.2",
        "summary": "Does it.",
        "command": str(made / "bin/elsewhere"),
        "location": str(made),
        "source": "uv tool",
    }


def test_hardware_prints_json_lines_that_match_the_machine():
    result = papercuts("hardware")
    assert (result.returncode, result.stderr) == (0, "")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert rows[0]["device"] == "cpu"
    assert rows[0]["cores"] == hardware.cores()
    assert rows[0]["memory_mib"] == hardware.memory_limit() >> 20
    assert rows[0]["features"] == hardware.simd_features()


def test_hardware_as_a_table_and_as_csv(tmp_path):
    table = papercuts("hardware", "--format", "table").stdout.splitlines()
    assert table[0].split() == ["device", "cpu"]
    assert f"cores {hardware.cores()}" in [" ".join(line.split()) for line in table]
    assert all(len(line) <= 80 for line in table)
    path = tmp_path / "hardware.csv"
    assert papercuts("hardware", "-o", str(path)).returncode == 0
    (cpu,) = [
        row for row in csv.DictReader(io.StringIO(path.read_text())) if row["device"] == "cpu"
    ]
    assert cpu["simd"] == hardware.simd_level()
    assert papercuts("hardware", "-o", str(path)).returncode == 73
    assert papercuts("hardware", "-o", str(path), "--force").returncode == 0


@pytest.mark.parametrize("command", ["hardware", "tools", "schema"])
def test_nothing_heavy_is_imported(command):
    code = (
        "import sys; from papercuts.cli import app; code = app.run(sys.argv[1:]);"
        "print(code, sorted({'torch', 'numpy', 'triton', 'rich'} & set(sys.modules)),"
        " file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, command], capture_output=True, text=True, check=True
    )
    assert done.stderr == "0 []\n"


def test_records_keep_to_the_schema():
    printed = json.loads(papercuts("schema").stdout)
    assert printed == _schema()
    kinds = {kind["title"]: kind for kind in printed["oneOf"]}
    for record in hardware.describe():
        assert list(record) == kinds["hardware"]["required"]
    for tool in installed.installed_tools():
        assert list(vars(tool)) == kinds["tools"]["required"]
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(printed)
    validator = jsonschema.Draft202012Validator(printed)
    gpu = hardware._gpu_record(hardware.Gpu("cuda:0", "Some GPU", 8 << 30, "9.0"))
    for record in [*hardware.describe(), gpu, *map(vars, installed.installed_tools())]:
        validator.validate(record)
    assert not validator.is_valid({**gpu, "cores": "two"})
    assert not validator.is_valid({**gpu, "simd": "mmx"})

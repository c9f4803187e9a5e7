"""Every tool behaves as DESIGN.md says. A new tool is held to it without a new line here.

What a test cannot guess, which command reads records and what a bad one looks like, a tool says in
its `tests/manners.toml`.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import signal
import subprocess
import tomllib
from pathlib import Path

import pytest
from running import Call, Runner, manners

from commands import commands
from workspace import ROOT

LIMIT_S = 0.3
needs_full_device = pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="needs the device /dev/full"
)


def heavy_modules():
    """Name the libraries that ruff bans from the top of a command's file."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    return set(config["flake8-tidy-imports"]["banned-module-level-imports"])


def call(argv, **places):
    """Fill `{input}` and `{output}` in."""
    filled = []
    for word in argv:
        for name, value in places.items():
            word = word.replace(f"{{{name}}}", value)
        filled.append(word)
    return filled


def assert_one_error_line(result, command, code):
    assert result.code == code, result.err
    assert result.err.startswith(f"{command}: error: "), result.err
    assert result.err.count("\n") == 1, result.err
    assert result.err.endswith("\n")


def assert_json_lines(data):
    lines = data.split(b"\n")
    assert lines.pop() == b"", "the last line is torn"
    for line in lines:
        assert isinstance(json.loads(line), dict)


def test_tool_says_how_it_is_called(tool):
    missing = {"filter", "output", "stream"} - set(manners(tool))
    assert not missing, f"packages/{tool.command}/tests/manners.toml lacks {sorted(missing)}"


# Start-up


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_start_is_quick(package, run, option):
    run(package.command, option)  # Python compiles what it imports, once
    assert min(run(package.command, option).cpu_s for _ in range(3)) < LIMIT_S


def test_nothing_heavy_is_imported(package, run):
    code = """
import importlib, json
module, attribute = target.split(":")
app = getattr(importlib.import_module(module), attribute)
app.run(["--help"])
json.dump(sorted({name.partition(".")[0] for name in sys.modules}), sys.stderr)
"""
    loaded = set(json.loads(run.python(package, code).err))
    assert package.module in loaded
    assert not loaded & heavy_modules()


# Words that every tool knows


def test_version(package, run):
    result = run(package.command, "--version")
    assert (result.code, result.err) == (0, "")
    assert result.text == f"{package.command} {package.project['version']}\n"


def test_cite_prints_the_bibtex_of_the_paper(tool, run):
    result = run(tool.command, "--cite")
    assert (result.code, result.err) == (0, "")
    assert result.text.strip() == tool.paper["bibtex"].strip()
    assert result.text.startswith("@")


def test_common_options_stand_before_and_after_every_subcommand(package, run):
    words = ["-v", "--verbose", "-q", "--quiet", "--debug"]
    lines = [["--version", *words]]
    for command in commands(package)[1:]:
        names = command.name.split()[1:]
        lines += [[*words, *names, "--version"], [*names, *words, "--version"]]
        lines += [[*names, "--cite"]] if package.paper else []
    results = run.many(package, *(Call(line) for line in lines))
    wrong = [
        (line, result.code, result.err)
        for line, result in zip(lines, results, strict=True)
        if result.code or result.err or not result.out
    ]
    assert wrong == []


def test_schema_is_json_schema(tool, run):
    result = run(tool.command, "schema")
    assert (result.code, result.err) == (0, "")
    schema = json.loads(result.out)
    assert "$schema" in schema
    assert {"type", "properties", "oneOf", "anyOf", "$ref", "$defs"} & set(schema)


def test_wrong_words_are_wrong_usage(package, run):
    words = ["no-such-command", "--no-such-option"]
    for word, result in zip(words, run.many(package, *(Call([w]) for w in words)), strict=True):
        assert_one_error_line(result, package.command, 2)
        assert result.out == b""
        assert word in result.err


def test_no_words_show_the_help_on_stderr(package, run):
    (result,) = run.many(package, Call([]))
    assert result.code == 2
    assert result.out == b""
    assert "Usage:" in result.err


# Commands that read records

NOISE = [b"\x00\xff\xfe\x80", b"[1, 2", b'{"a": 1}\n{"a"', b"\n\n"]


@pytest.fixture(scope="module")
def ran(reading, tool_env, tmp_path_factory):
    """The command on good, bad and odd inputs; what each call is, its key says."""
    run = Runner(tmp_path_factory.mktemp(str(reading)), tool_env)

    def call_on(name, content, *more):
        run.file(name, content)
        return Call([*call(reading.argv, input=name), *more])

    good, suffix = reading.good.encode(), reading.suffix
    name = f"good{suffix}"
    unnamed = [word for word in reading.argv if word != "{input}"]
    plain = call_on(name, good)
    calls = {
        "plain": plain,
        "quiet": Call([*plain.argv, "-q"]),
        "quiet first": Call(["-q", *plain.argv]),
        "verbose": Call(["-v", "--debug", *plain.argv]),
        "dash": Call(call(reading.argv, input="-"), good),
        "unnamed": Call(unnamed, good),
        "gz": call_on(f"packed{suffix}.gz", gzip.compress(good)),
        "windows": call_on(f"windows{suffix}", b"\xef\xbb\xbf" + good.replace(b"\n", b"\r\n")),
        "missing": Call(call(reading.argv, input=f"missing{suffix}")),
        "bad": call_on(f"bad{suffix}", reading.bad, "-q"),
        "debug": call_on(f"bad{suffix}", reading.bad, "--debug"),
        "csv": Call([*plain.argv, "--format", "csv"]),
    }
    calls |= {f"noise {i}": call_on(f"{i}{suffix}", noise, "-q") for i, noise in enumerate(NOISE)}
    return dict(zip(calls, run.many(reading.package, *calls.values()), strict=True))


def test_good_records_give_data_on_stdout_only(reading, ran):
    assert ran["plain"].code == 0, ran["plain"].err
    assert ran["plain"].out
    if reading.output == "json":
        assert_json_lines(ran["plain"].out)


def test_quiet_says_nothing_and_no_common_option_changes_data(ran):
    assert ran["quiet"].err == ran["quiet first"].err == ""
    for words in ("quiet", "quiet first", "verbose"):
        assert (ran[words].code, ran[words].out) == (0, ran["plain"].out)


def test_records_keep_what_they_brought(reading, ran):
    if not reading.carries:
        return
    before = [json.loads(line) for line in reading.good.splitlines()]
    after = [json.loads(line) for line in ran["plain"].out.splitlines()]
    assert len(after) == len(before)
    for old, new in zip(before, after, strict=True):
        own = new.pop(reading.package.command)
        assert isinstance(own, dict)
        assert own
        assert new == old


def test_stdin_reads_as_a_file(reading, ran):
    assert ran["dash"].out == ran["plain"].out
    if reading.stdin:
        assert ran["unnamed"].out == ran["plain"].out


def test_compressed_and_windows_files_read_as_plain_ones(ran):
    assert ran["gz"].out == ran["plain"].out
    assert ran["windows"].out == ran["plain"].out


def test_missing_input_file(reading, ran):
    assert_one_error_line(ran["missing"], reading.package.command, 66)
    assert f"missing{reading.suffix}" in ran["missing"].err


def test_bad_record_is_named_by_file_and_line(reading, ran):
    assert_one_error_line(ran["bad"], reading.package.command, 65)
    assert f" bad{reading.suffix}:{reading.bad_line}: " in ran["bad"].err


def test_debug_shows_the_traceback_of_a_bad_record(ran):
    assert ran["debug"].code == 65
    assert "Traceback (most recent call last)" in ran["debug"].err


def test_noise_gives_one_line_and_no_traceback(reading, ran):
    for number in range(len(NOISE)):
        result = ran[f"noise {number}"]
        if result.code or result.err:
            assert_one_error_line(result, reading.package.command, 65)


def test_csv_format_is_csv(reading, ran):
    if reading.output == "json":
        assert ran["csv"].code == 0, ran["csv"].err
        table = list(csv.reader(io.StringIO(ran["csv"].text)))
        assert len(table) == 1 + len(ran["plain"].out.splitlines())
        assert {len(row) for row in table} == {len(table[0])}


def test_no_input_on_a_terminal_is_wrong_usage(reading, run):
    unnamed = [word for word in reading.argv if word != "{input}"]
    main, terminal = os.openpty()
    try:
        result = run(reading.package.command, *unnamed, stdin=terminal, timeout=20)
    finally:
        os.close(main)
        os.close(terminal)
    assert_one_error_line(result, reading.package.command, 2)


# Output


def writing(tool, run, output):
    """Give the words that write `output` from the first filter's good input."""
    first = manners(tool)["filter"][0]
    name = run.file("input" + first.get("suffix", ".jsonl"), first["good"])
    return call(manners(tool)["output"]["argv"], input=name, output=output)


def test_existing_output_is_kept_without_force(tool, run):
    for name in ("kept", "replaced"):
        run.file(name, "precious")
    fresh, refused, forced = run.many(
        tool,
        Call(writing(tool, run, "fresh")),
        Call(["-q", *writing(tool, run, "kept")]),
        Call([*writing(tool, run, "replaced"), "--force"]),
    )
    assert (fresh.code, fresh.out, forced.code) == (0, b"", 0), fresh.err + forced.err
    assert_one_error_line(refused, tool.command, 73)
    assert (run.folder / "kept").read_text() == "precious"
    assert (run.folder / "fresh").read_text() not in ("", "precious")
    assert (run.folder / "replaced").read_bytes() == (run.folder / "fresh").read_bytes()


def test_output_that_cannot_be_made(tool, run):
    places = ["no/such/folder/result", ".", *(["/dev/full"] if Path("/dev/full").exists() else [])]
    calls = [Call(["-q", *writing(tool, run, place)]) for place in places]
    for result in run.many(tool, *calls):
        assert_one_error_line(result, tool.command, 73)


def test_full_disk_leaves_no_half_file(tool, run):
    argv = writing(tool, run, "result")
    before = set(run.folder.iterdir())
    result = run.bash('ulimit -f 0; exec "$@"', tool.command, *argv, "-q")
    assert_one_error_line(result, tool.command, 73)
    assert set(run.folder.iterdir()) == before


@needs_full_device
def test_full_device_behind_stdout(tool, run):
    assert_one_error_line(run.bash(f"{tool.command} schema > /dev/full"), tool.command, 73)


def test_closed_pipe_ends_quietly(tool, run):
    stream = manners(tool)["stream"]
    feed = '< <(yes "$line")' if "stdin" in stream else "< /dev/null"
    script = f'line=$1; shift; "$@" {feed} | head -n 1'
    result = run.bash(script, stream.get("stdin", ""), tool.command, "-q", *stream["argv"])
    assert (result.code, result.err) == (0, "")
    assert result.out.count(b"\n") == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_ends_with_its_code_and_whole_records(tool, run, number, code):
    stream = manners(tool)["stream"]
    feed = ["yes", stream["stdin"]] if "stdin" in stream else ["true"]
    with subprocess.Popen(feed, stdout=subprocess.PIPE) as feeder:
        command = run.start([tool.command, "-q", *stream["argv"]], stdin=feeder.stdout)
        feeder.stdout.close()
        try:
            first = os.read(command.stdout.fileno(), 1)  # it is in the middle of its work
            command.send_signal(number)
            rest, err = command.communicate(timeout=20)
        finally:
            command.kill()
            command.wait()
    assert command.returncode == code, err
    assert first
    assert err.count(b"\n") == 1
    assert b"Traceback" not in err
    if stream.get("output", "json") == "json":
        assert_json_lines(first + rest)


# The demo


@pytest.mark.slow
def test_demo_shows_something_within_a_minute(tool, run):
    result = run(tool.command, "demo", timeout=60)
    assert result.code == 0, result.err
    assert result.out
    assert result.cpu_s < 120

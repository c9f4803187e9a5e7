"""The endings of a command, each in a process of its own as a shell would see it."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from papercuts import errors
from papercuts.app import App, need, read_paper

SCRIPT = textwrap.dedent(
    '''
    import sys, time
    import typer
    from papercuts import errors, log
    from papercuts.app import App, need

    app = App("probe", distribution="papercuts", cite=False, help="Test.", schema=lambda: {"a": 1})
    logger = log.get_logger("probe.module")

    @app.command()
    def count(n: int) -> None:
        """Count to N."""
        logger.debug("debug line")
        logger.info("info line")
        logger.warning("warning line")
        for i in range(n):
            print(i)

    @app.command()
    def end(how: str) -> None:
        """End badly."""
        print("result")
        if how == "data":
            raise errors.DataError("no such key", path="in.jsonl", line=7, expected="lr")
        if how == "internal":
            raise ValueError("two\\nlines")
        if how == "exit":
            raise typer.Exit(20)
        if how == "open":
            open("/nonexistent/file")
        if how == "need":
            need("nonexistent_module", tool="probe", extra="train")
        raise getattr(errors, how)("because")

    @app.command()
    def wait() -> None:
        """Wait for a signal."""
        try:
            print("ready", flush=True)
            time.sleep(30)
        finally:
            print("kept what was done")

    app()
    '''
)


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    path = tmp_path_factory.mktemp("probe") / "probe.py"
    path.write_text(SCRIPT)
    return [sys.executable, str(path)]


def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize(
    ("how", "code", "line"),
    [
        ("data", 65, "probe: error: in.jsonl:7: no such key (expected lr)"),
        ("exit", 20, ""),
        ("NegativeResult", 1, "probe: error: because"),
        ("UsageError", 2, "probe: error: because"),
        ("InputError", 66, "probe: error: because"),
        ("MissingError", 69, "probe: error: because"),
        ("OutputError", 73, "probe: error: because"),
        ("TryLaterError", 75, "probe: error: because"),
        ("open", 66, "probe: error: /nonexistent/file: No such file or directory"),
        (
            "need",
            69,
            "probe: error: this needs nonexistent_module, which is not installed; add the extra "
            "'train': uv tool install './packages/probe[train]' in a checkout",
        ),
        (
            "internal",
            70,
            "probe: internal error: ValueError: two lines (a fault of probe: please report the "
            "command line and what --debug adds)",
        ),
    ],
)
def test_every_ending_has_its_code_and_one_line(
    probe: list[str], how: str, code: int, line: str
) -> None:
    done = run([*probe, "end", how])
    assert (done.returncode, done.stdout, done.stderr.strip()) == (code, "result\n", line)


def test_debug_adds_the_traceback_and_keeps_the_line(probe: list[str]) -> None:
    for command in (["--debug", "end", "data"], ["end", "data", "--debug"]):
        done = run([*probe, *command])
        assert done.returncode == 65
        assert "Traceback (most recent call last)" in done.stderr
        assert done.stderr.endswith("probe: error: in.jsonl:7: no such key (expected lr)\n")


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (["count", "1"], ["probe: info line", "probe: warning: warning line"]),
        (["-q", "count", "1"], []),
        (["count", "1", "--quiet"], []),
        (
            ["count", "-v", "1"],
            ["probe: debug line", "probe: info line", "probe: warning: warning line"],
        ),
        (
            ["-v", "count", "1"],
            ["probe: debug line", "probe: info line", "probe: warning: warning line"],
        ),
    ],
)
def test_verbosity_before_and_after_the_subcommand(
    probe: list[str], arguments: list[str], lines: list[str]
) -> None:
    done = run([*probe, *arguments])
    assert (done.stdout, done.stderr.splitlines()) == ("0\n", lines)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["count", "x"], "probe: error: Invalid value for 'n'"),
        (["count"], "probe: error: Missing argument 'n'. (try 'probe count --help')"),
        (["count", "1", "--nope"], "probe: error: No such option: --nope"),
        (["nope"], "probe: error: No such command 'nope'. (try 'probe --help')"),
        ([], "Usage: probe [OPTIONS] COMMAND"),
    ],
)
def test_wrong_usage_is_told_on_stderr(probe: list[str], arguments: list[str], says: str) -> None:
    done = run([*probe, *arguments])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(says)


def test_version_and_schema(probe: list[str]) -> None:
    assert run([*probe, "--version"]).stdout == "probe 0.1.0\n"
    assert run([*probe, "count", "--version"]).stdout == "probe 0.1.0\n"
    assert run([*probe, "schema"]).stdout == '{\n  "a": 1\n}\n'


def test_a_closed_pipe_ends_quietly(probe: list[str]) -> None:
    shell = f"set -o pipefail; {' '.join(probe)} -q count 300000 | head -n 2"
    done = run(["bash", "-c", shell])
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n1\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_on_stdout(probe: list[str]) -> None:
    for n in ("1", "100000"):  # told at the flush at the end, and in the middle
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [*probe, "-q", "count", n], stdout=full, stderr=subprocess.PIPE, check=False
            )
        assert done.returncode == 73
        assert done.stderr == b"probe: error: cannot write: No space left on device\n"


def test_a_closed_stdout_is_an_error(probe: list[str]) -> None:
    done = run(["bash", "-c", f"{' '.join(probe)} -q count 3 >&-"])
    assert (done.returncode, done.stderr) == (
        73,
        "probe: error: cannot write: Bad file descriptor\n",
    )


def test_stderr_closed_does_not_change_the_ending(probe: list[str]) -> None:
    done = run(["bash", "-c", f"{' '.join(probe)} end data 2>&-"])
    assert (done.returncode, done.stdout) == (65, "result\n")


@pytest.mark.parametrize(
    ("number", "code", "line"),
    [
        (signal.SIGINT, 130, "probe: interrupted\n"),
        (signal.SIGTERM, 143, "probe: terminated\n"),
    ],
)
def test_signals(probe: list[str], number: signal.Signals, code: int, line: str) -> None:
    # A test run in the background inherits an ignored SIGINT; a shell's foreground job does not.
    process = subprocess.Popen(
        [*probe, "wait"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    start = time.monotonic()
    os.kill(process.pid, number)
    out, err = process.communicate(timeout=10)
    assert time.monotonic() - start < 5
    assert (process.returncode, out, err) == (code, "kept what was done\n", line)


@pytest.mark.parametrize(
    ("given", "code", "says"), [(None, 0, ""), (7, 7, ""), ("no more", 1, "probe: no more\n")]
)
def test_sys_exit_inside_a_command(
    given: object, code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    app = App("probe", distribution="papercuts", cite=False, help="A probe.")

    @app.command()
    def leave() -> None:
        """Leave."""
        sys.exit(given)  # type: ignore[arg-type]

    assert (app.run(["leave"]), capsys.readouterr().err) == (code, says)


def test_run_gives_the_code_and_restores_the_handler() -> None:
    app = App("probe", distribution="papercuts", cite=False, help="A probe.")

    @app.command()
    def fine() -> None:
        """Do nothing."""

    @app.command()
    def bad() -> None:
        """Refuse."""
        raise errors.InputError("no")

    before = signal.getsignal(signal.SIGTERM)
    assert app.run(["fine"]) == 0
    assert app.run(["bad"]) == 66
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_schema_can_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    app = App("probe", distribution="papercuts", help="A probe.", schema="os:cpu_count")
    assert app.run(["schema"]) == 0
    assert capsys.readouterr().out == f"{os.cpu_count()}\n"


def test_need_passes_on_other_import_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "halfway.py").write_text("import nonexistent_inner\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="nonexistent_inner"):
        need("halfway", tool="probe", extra="train")
    assert need("json", tool="probe", extra="train").dumps({}) == "{}"


def test_paper_is_read_from_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "inkpot"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "paper.toml").write_text('title = "A × B"\nbibtex = "@misc{a}"\n', encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert read_paper("inkpot") == {"title": "A × B", "bibtex": "@misc{a}"}

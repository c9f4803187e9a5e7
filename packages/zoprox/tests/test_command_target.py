"""Commands as targets: right answers whatever the pieces, and every way in which one goes wrong."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from papercuts.errors import DataError, MissingError, TryLaterError, UsageError
from zoprox.command_target import CommandTarget, piece_size
from zoprox.lineprotocol import point_lines, read_values

# awk reads to the end before its buffer is printed, as filters do; -W and fflush are not portable.
AWK = "awk '{ s = 0; for (i = 1; i <= NF; i++) s += $i * $i; printf \"%.17g\\n\", s / 2 }'"


def sh(script):
    """The command line that runs a shell script."""
    return shlex.join(["sh", "-c", script])


def points_of(count, dim=3, seed=0):
    return np.random.default_rng(seed).normal(size=(count, dim))


def ask(command, points=None, **options):
    with CommandTarget(command, **options) as target:
        return target(points_of(5) if points is None else points)


def running(marker):
    """List the processes whose command line has a marker in it."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if marker.encode() in words and state != "Z" and int(entry.name) != os.getpid():
                found.append(entry.name)
    return found


@pytest.fixture
def stream(tmp_path):
    """A program that answers line by line, as a simulator that is slow to start does."""
    path = tmp_path / "stream.py"
    path.write_text(
        "import sys\n"
        "for line in sys.stdin:\n"
        "    x = [float(word) for word in line.split()]\n"
        "    print(sum(v * v for v in x) / 2, flush=True)\n"
    )
    return f"{sys.executable} -S {path}"


@pytest.mark.parametrize(("jobs", "chunk"), [(1, None), (2, None), (3, 17), (2, 1000)])
def test_awk_gives_the_values_of_the_same_arithmetic(jobs, chunk):
    points = points_of(250)
    x, y, z = points.T
    expected = (x * x + y * y + z * z) / 2
    values = ask(AWK, points, jobs=jobs, chunk=chunk)
    np.testing.assert_array_equal(values, expected)


def test_a_process_that_stays_answers_many_calls(stream):
    with CommandTarget(stream, mode="stream", jobs=2, chunk=8) as target:
        for seed in range(3):
            points = points_of(40, seed=seed)
            expected = [(x * x + y * y + z * z) / 2 for x, y, z in points.tolist()]
            np.testing.assert_array_equal(target(points), expected)
        started = len(target._idle)
    assert started == 2


def test_every_line_arrives_once_and_whole(tmp_path):
    log = tmp_path / "seen"
    points = points_of(301)
    ask(sh(f"tee -a {log} | sed s/.*/1/"), points, jobs=2)
    lines = log.read_text().splitlines()
    assert sorted(lines) == sorted(" ".join(map(str, row)) for row in points.tolist())


def test_coordinates_keep_every_digit():
    points = np.array([[0.1, -1e-300, 1e22], [5e-324, 1.7976931348623157e308, -0.0]])
    text = point_lines(points)
    back = np.array([[float(word) for word in line.split()] for line in text.splitlines()])
    np.testing.assert_array_equal(back, points)
    assert np.signbit(back[1, 2])
    assert point_lines(np.array([[np.nan, np.inf]])) == b"nan inf\n"


def test_full_pipes_do_not_lock(tmp_path):
    # 4 MB each way, with noise on stderr; pipes hold 64 kB. `cat` answers while it reads.
    points = points_of(100_000, dim=1)
    command = sh("yes noise | head -c 300000 >&2; exec cat")
    np.testing.assert_array_equal(ask(command, points, jobs=2, chunk=50_000), points[:, 0])
    stays = ask(command, points[:30_000], mode="stream", jobs=1, chunk=30_000)
    np.testing.assert_array_equal(stays, points[:30_000, 0])


def test_pieces_depend_on_the_points_alone():
    assert [piece_size(n) for n in (1, 1600, 3200, 80_000, 10**6)] == [100, 100, 200, 5000, 5000]
    assert piece_size(10**6, chunk=3) == 3


def test_no_points_start_nothing():
    assert ask("no-such-program", np.empty((0, 3))).shape == (0,)


def test_numbers_as_programs_print_them():
    lines = [b" 1.5\r", b"-inf", b"NaN", b"+3e2", b"Infinity"]
    values = read_values(lines, np.zeros((5, 1)), words=False, who="it")
    np.testing.assert_array_equal(values, [1.5, -np.inf, np.nan, 300, np.inf])
    words = read_values([b"true", b"No", b"1", b"0"], np.zeros((4, 1)), words=True, who="it")
    np.testing.assert_array_equal(words, [1, 0, 1, 0])


# What goes wrong


LIES = [
    ("sed 1d", "printed 4 lines for 5 points"),
    ("true", "printed 0 lines for 5 points"),
    ("cat; echo 1", "line 6 is '1'"),
    ("sed s/.*/ab,c/", "answered 'ab,c' for the point (0.12573, -0.132105, 0.640423)"),
    ("sed s/.*/1_0/", "answered '1_0'"),
    ("sed s/.*/1,5/", "answered '1,5'"),
    ("sed s/.*//", "answered an empty line"),
    ("cat", "answered '0.1257302210933933 -0.1321048632913019 0.6404226504432821'"),
    ("sed s/.*/true/", "answered 'true'"),
    ("cat >/dev/null; exit 3", "exited with status 3 after 0 of 5 answers"),
    ("echo the disk is full >&2; exit 3", "status 3 after 0 of 5 answers: the disk is full"),
    ("sed s/.*/1/; exit 4", "exited with status 4 after 5 of 5 answers"),
    ("kill -SEGV $$", "was killed (SIGSEGV) after 0 of 5"),
    ("kill -9 $$", "was killed (SIGKILL, most likely out of memory)"),
    ("head -c 100 /dev/zero", "printed 1 line for 5 points"),
    ("cat >/dev/null; yes | head -5 | tr y '\\377'", "answered '\\\\xff'"),
    ("yes", "printed more than a number for each of 5 points: line 6 is 'y'"),
    ("cat /dev/zero", "line 1 is '\\x00\\x00"),
]
STREAM_LIES = [
    ("true", "exited with status 0 after 0 of 5 answers (a command that answers once"),
    ("read a; echo 1; exit 3", "exited with status 3 after 1 of 5 answers"),
    ("read a; echo 1; echo no licence >&2; exit 3", "after 1 of 5 answers: no licence"),
    ("while read a; do echo x; done", "answered 'x' for the point (0.12573,"),
    ("kill -SEGV $$", "was killed (SIGSEGV) after 0 of 5"),
    ("yes", "printed more than a number for each of 5 points: line 6 is 'y'"),
    ("cat /dev/zero", "line 1 is '\\x00\\x00"),
    ("exec >&-; sleep 984.5", "closed its output after 0 of 5 answers"),
]


@pytest.mark.parametrize(
    ("mode", "script", "message"),
    [("batch", *lie) for lie in LIES] + [("stream", *lie) for lie in STREAM_LIES],
)
def test_a_command_that_lies_or_dies_is_told(mode, script, message):
    with pytest.raises(DataError) as caught:
        ask(sh(script), mode=mode, timeout_s=20)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("script", ["read b; read c; read d; read e; seq 6", "echo 0; echo 1"])
def test_a_process_that_stays_and_says_more_than_was_asked(script):
    def asked(target):
        for _ in range(5):
            target(points_of(5))
            time.sleep(0.05)

    looped = sh(f"while read a; do {script}; done")
    with (
        CommandTarget(looped, mode="stream", jobs=1) as target,
        pytest.raises(DataError, match="printed more"),
    ):
        asked(target)


def test_a_process_that_answers_once_is_no_stream():
    script = "for i in 1 2 3 4 5; do read a; echo 1; done"
    with CommandTarget(sh(script), mode="stream", jobs=1) as target:
        np.testing.assert_array_equal(target(points_of(5)), np.ones(5))
        time.sleep(0.05)
        with pytest.raises(DataError, match="exited with status 0 after 0 of 5 answers"):
            target(points_of(5))


@pytest.mark.parametrize("mode", ["batch", "stream"])
def test_a_command_that_hangs_ends_in_time(mode):
    began = time.monotonic()
    with pytest.raises(TryLaterError, match=r"2 of 5 answers after 0\.3 s"):
        ask(sh("echo 1; echo 1; sleep 987.5"), mode=mode, timeout_s=0.3)
    assert time.monotonic() - began < 5
    assert running("987.5") == []


@pytest.mark.needs("setsid")
def test_a_command_that_leaves_its_group_ends_too():
    with pytest.raises(TryLaterError, match="0 of 5 answers"):
        ask("setsid sleep 982.5", timeout_s=0.3)
    assert running("982.5") == []


def test_a_slow_command_within_its_time_is_waited_for():
    command = sh("while read a; do sleep 0.02; echo 1; done")
    np.testing.assert_array_equal(ask(command, timeout_s=10), np.ones(5))


def test_a_command_that_does_not_read_may_answer():
    command = sh("exec 0<&-; seq 50000")
    values = ask(command, points_of(50_000), chunk=50_000)
    np.testing.assert_array_equal(values, np.arange(1, 50_001))


def test_what_a_command_leaves_behind_holds_nothing_up():
    began = time.monotonic()
    command = sh("sleep 986.5 & cat >/dev/null; seq 5")
    np.testing.assert_array_equal(ask(command), np.arange(1, 6))
    with pytest.raises(DataError, match="printed 0 lines for 5 points"):
        ask(sh("sleep 986.5 & cat >/dev/null"))
    assert time.monotonic() - began < 10
    assert running("986.5") == []


def test_output_closed_before_the_end():
    command = sh("cat >/dev/null; seq 5; exec >&-; sleep 0.1; exit 7")
    with pytest.raises(DataError, match="exited with status 7 after 5 of 5 answers"):
        ask(command)
    with pytest.raises(DataError, match="printed 1 line for 5 points"):
        ask(sh("cat >/dev/null; echo 1; exec >&- 2>&-; sleep 985.5"))
    assert running("985.5") == []


@pytest.mark.parametrize(
    "command", ["no-such-program -x", "./no/such", "/etc/passwd", "/usr", "''"]
)
def test_a_command_that_cannot_start(command):
    with pytest.raises(MissingError, match="cannot be started"):
        ask(command)


@pytest.mark.parametrize("command", ["", "  ", "sh -c 'unclosed"])
def test_a_command_that_is_none(command):
    with pytest.raises(UsageError):
        CommandTarget(command)


def test_an_endless_stderr_takes_no_memory():
    command = sh("head -c 3000000 /dev/zero | tr x\\\\0 ab >&2; echo last >&2; exit 1")
    with pytest.raises(DataError, match=r"exited with status 1 .*: b*last$|: \.*"):
        ask(command)


# Ends of the run


RUN = """
import sys, numpy as np
from zoprox.command_target import CommandTarget
print("ready", flush=True)
with CommandTarget(sys.argv[1], mode=sys.argv[2], jobs=2, chunk=2) as target:
    target(np.zeros((8, 1)))
"""


@pytest.mark.parametrize("mode", ["batch", "stream"])
@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGKILL]
)
def test_nothing_stays_behind(mode, number):
    seconds = f"98{int(number)}.{1 if mode == 'batch' else 2}"
    command = sh(f"sleep {seconds} & sleep {seconds}")
    with subprocess.Popen(
        [sys.executable, "-c", RUN, command, mode],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        process.stdout.readline()
        limit = time.monotonic() + 20
        while len(running(f"sleep\0{seconds}")) < 4 and time.monotonic() < limit:
            time.sleep(0.02)
        assert len(running(f"sleep\0{seconds}")) == 4
        process.send_signal(number)
        process.wait(timeout=20)
    limit = time.monotonic() + 5
    while running(seconds) and time.monotonic() < limit:
        time.sleep(0.02)
    assert running(seconds) == []


def test_descriptors_are_given_back(stream):
    def open_files():
        return sorted(os.listdir("/proc/self/fd"))  # noqa: PTH208

    before = open_files()
    with CommandTarget(AWK, jobs=2) as target:
        for _ in range(3):
            target(points_of(100))
    with CommandTarget(stream, mode="stream", jobs=2) as target:
        target(points_of(100))
    with pytest.raises(DataError):
        ask("false")
    assert len(open_files()) == len(before)

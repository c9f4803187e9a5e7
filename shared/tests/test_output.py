"""Files out: whole or not at all, compressed by suffix, resumable; CSV and tables."""

# ruff: noqa: PT012 (the block is what is tested: it writes, then fails)

import bz2
import gzip
import json
import lzma
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import zstandard

from papercuts import streams
from papercuts.errors import DataError, InputError, OutputError, UsageError
from papercuts.streams import (
    ResumableOutput,
    check_output,
    open_input,
    open_output,
    output_format,
    read_records,
    write_records,
)

SUFFIXES = ["", ".gz", ".xz", ".zst"]
PACK = {
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}
TEXT = b"".join(b'{"id":%d}\n' % i for i in range(4_000))


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_written_is_read_back(tmp_path, suffix):
    path = tmp_path / f"x.jsonl{suffix}"
    with open_output(path) as out:
        out.write(TEXT[:100])
        out.write(TEXT[100:])
    with open_input(path) as file:
        assert file.read() == TEXT
    packed = path.read_bytes()
    other = {"": bytes, ".gz": gzip.decompress, ".xz": lzma.decompress}
    unpack = other.get(suffix, lambda b: zstandard.ZstdDecompressor().decompressobj().decompress(b))
    assert unpack(packed) == TEXT
    with open_output(path, force=True) as out:  # the same bytes: no time stamp, no name
        out.write(TEXT)
    assert path.read_bytes() == packed


@pytest.mark.parametrize("suffix", SUFFIXES[1:])
def test_members_are_read_to_the_last_and_may_be_padded(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    pack = PACK[suffix]
    skippable = b"\x50\x2a\x4d\x18\x03\0\0\0abc" if suffix == ".zst" else b""
    path.write_bytes(pack(TEXT) + skippable + pack(b"") + b"\0" * 5000 + pack(b"end") + b"\0" * 8)
    with open_input(path) as file:
        assert file.read() == TEXT + b"end"


@pytest.mark.parametrize("suffix", SUFFIXES[1:])
@pytest.mark.parametrize("cut", [0, 1, 10, 500, -1, -5])
def test_a_file_cut_short_is_bad_data(tmp_path, suffix, cut):
    path = tmp_path / f"x{suffix}"
    path.write_bytes(PACK[suffix](TEXT)[:cut])
    with pytest.raises(DataError, match=re.escape(f"{path}: the file ends too soon")):
        list(read_records(path, "json"))


@pytest.mark.parametrize("suffix", SUFFIXES[1:])
def test_a_corrupt_file_is_bad_data(tmp_path, suffix):
    sound = PACK[suffix](TEXT)
    broken = bytearray(sound)
    broken[len(broken) // 2] ^= 0x55
    for content in (bytes(broken), sound + b"junk", bz2.compress(TEXT), b"plain text\n" * 10):
        path = tmp_path / f"x{suffix}"
        path.write_bytes(content)
        with pytest.raises(DataError, match=re.escape(str(path))):
            list(read_records(path, "json"))


def test_an_output_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "x.jsonl"
    for error in (KeyboardInterrupt, SystemExit, ValueError, OutputError):
        with pytest.raises(error), open_output(path) as out:
            out.write(TEXT)
            assert not path.exists()
            raise error
        assert names(tmp_path) == []
    with open_output(path) as out:
        out.write(b"1")
    assert path.read_bytes() == b"1"
    with pytest.raises(ValueError, match="late"), open_output(path, force=True) as out:
        out.write(b"2")
        raise ValueError("late")
    assert path.read_bytes() == b"1"
    assert names(tmp_path) == ["x.jsonl"]


@pytest.mark.parametrize("opened", [open_output, check_output, ResumableOutput])
def test_outputs_that_cannot_be(tmp_path, opened):
    path = tmp_path / "x"
    path.write_bytes(b"old")

    def enter(path, **options):
        context = opened(path, **options)
        if context is not None:
            with context:
                pytest.fail("opened")

    with pytest.raises(OutputError, match=r"exists already \(--force"):
        enter(path)
    with pytest.raises(OutputError, match="no folder"):
        enter(tmp_path / "absent" / "x")
    with pytest.raises(OutputError, match=r"is a folder|not a directory"):
        enter(path / "under")
    if opened is not ResumableOutput:
        with pytest.raises(OutputError, match="is a folder"):
            enter(tmp_path, force=True)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["x"]


def test_an_output_that_appears_meanwhile_is_left_alone(tmp_path):
    path = tmp_path / "x"
    with pytest.raises(OutputError, match="appeared meanwhile"), open_output(path) as out:
        out.write(b"mine")
        path.write_bytes(b"theirs")
    assert path.read_bytes() == b"theirs"
    assert names(tmp_path) == ["x"]


def test_modes_and_links(tmp_path):
    old = os.umask(0o027)
    try:
        with open_output(tmp_path / "new") as out:
            out.write(b"1")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    (tmp_path / "new").chmod(0o604)
    (tmp_path / "link").symlink_to("new")
    with open_output(tmp_path / "link", force=True) as out:
        out.write(b"2")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "new").read_bytes() == b"2"
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o604
    (tmp_path / "dangling").symlink_to("target")
    with open_output(tmp_path / "dangling") as out:
        out.write(b"3")
    assert (tmp_path / "target").read_bytes() == b"3"


def test_devices_and_fifos_are_written_directly(tmp_path):
    with open_output("/dev/null") as out:
        out.write(b"x")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    fifo = tmp_path / "fifo.gz"
    os.mkfifo(fifo)
    got = []
    reader = threading.Thread(target=lambda: got.append(fifo.read_bytes()))
    reader.start()
    with pytest.raises(KeyboardInterrupt), open_output(fifo) as out:
        out.write(b"done so far")
        raise KeyboardInterrupt
    reader.join(20)
    assert gzip.decompress(got[0]) == b"done so far"
    assert stat.S_ISFIFO(fifo.stat().st_mode)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_full_disk_is_an_output_error_and_leaves_nothing(tmp_path, suffix):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    try:
        with (
            pytest.raises(OutputError, match=r"x.jsonl.*: file too large"),
            open_output(tmp_path / f"x.jsonl{suffix}") as out,
        ):
            for _ in range(100):
                out.write(os.urandom(10_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert names(tmp_path) == []


def run(code: str, **options) -> subprocess.CompletedProcess:
    head = "import sys\nfrom papercuts.streams import *\nfrom papercuts.errors import *\n"
    return subprocess.run([sys.executable, "-X", "dev", "-c", head + code], timeout=60, **options)


def test_stdout_full_closed_or_without_reader():
    code = (
        "try: write_records([{'a': 'x' * 99}] * 100_000)\n"
        "except OutputError as error: print(error, file=sys.stderr); sys.exit(73)\n"
        "except BrokenPipeError: print('pipe', file=sys.stderr); sys.exit(9)\n"
    )
    with Path("/dev/full").open("wb") as full:
        done = run(code, stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (73, b"stdout: no space left on device\n")
    reading, writing = os.pipe()
    os.close(reading)
    done = run(code, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert (done.returncode, done.stderr) == (9, b"pipe\n")
    done = run("import os\nos.close(1)\nsys.stdout = None\n" + code, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (73, b"stdout: closed\n")


def test_stdout_keeps_what_was_done_when_interrupted():
    code = (
        "import os, signal\n"
        "def rows():\n"
        "    for i in range(1000): yield {'i': i}\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    while True: yield {'late': 1}\n"
        "try: write_records(rows())\n"
        "except KeyboardInterrupt: sys.exit(130)\n"
    )
    done = run(code, stdout=subprocess.PIPE)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 130
    assert [row["i"] for row in rows[:1000]] == list(range(1000))


def test_output_format(monkeypatch):
    assert output_format("x.csv") == output_format("x.csv.zst") == "csv"
    assert output_format("x.csv", "json") == "json"
    assert output_format("x") == output_format("x.txt") == output_format("-") == "json"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert output_format("-") == "table"
    assert output_format("x.jsonl") == "json"


def test_csv_output(tmp_path):
    path = tmp_path / "x.csv"
    rows = [
        {"id": 1, "x": {"f": 0.1, "n": None}, "ok": True, "l": [1, "a"], "s": 'a,"b"\n'},
        {"id": 2**70, "x": {"f": float("nan")}, "ok": False, "l": [], "s": "é\udcff", "y": None},
    ]
    write_records(rows, path)
    assert path.read_text() == (
        "id,x.f,x.n,ok,l,s\n"
        '1,0.1,,true,"[1,""a""]","a,""b""\n"\n'
        f"{2**70},,,false,[],é\ufffd\ufffd\ufffd\n"
    )
    with pytest.raises(DataError, match="record 2 has 'b', which the first record has not"):
        write_records([{"a": 1}, {"a": 1, "b": 2}], path, force=True)
    with pytest.raises(DataError, match=r"two values for the column 'a\.b'"):
        write_records([{"a.b": 1, "a": {"b": 2}}], path, force=True)
    assert path.read_text().startswith("id")


def test_outputs_are_checked_before_the_work(tmp_path):
    def work():
        pytest.fail("began")
        yield {}

    (tmp_path / "x").touch()
    with pytest.raises(OutputError):
        write_records(work(), tmp_path / "x")


def test_a_table_is_for_people(monkeypatch, capsysbinary):
    monkeypatch.setenv("COLUMNS", "60")
    rows = [
        {"name": "a\x1b[31m\n", "x": {"loss": 0.123456789, "n": 7}, "ok": True},
        {"name": "[bold]b :smile:", "x": {"loss": 12.5, "n": 1234}, "ok": None},
    ]
    write_records(rows, "-", format="table")
    lines = capsysbinary.readouterr().out.decode().splitlines()
    assert lines[0].split() == ["name", "x.loss", "x.n", "ok"]
    assert lines[2].split() == [r"a\u001b[31m\n", "0.123457", "7", "true"]
    assert lines[3].split() == ["[bold]b", ":smile:", "12.5", "1234"]
    for number in ("0.123457", "12.5"):
        line = next(line for line in lines if number in line)
        assert line.index(number) + len(number) == lines[0].index("x.loss") + len("x.loss")
    write_records([], "-", format="table")
    assert capsysbinary.readouterr().out == b""


@pytest.mark.parametrize("columns", [10, 25, 40, 80, 200])
def test_a_table_never_cuts_a_number_or_a_name(monkeypatch, capsysbinary, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    rows = [{"start_token": 10**12 + i, "lr": 0.00123456, "batch_size": 2048} for i in range(3)]
    write_records(rows, "-", format="table")
    text = capsysbinary.readouterr().out.decode()
    words = text.split()
    for value in ("0.00123456", "2048"):
        assert words.count(value) == 3
    assert [w for w in words if w.startswith("10000")] == [str(10**12 + i) for i in range(3)]
    assert words.count("start_token") == (3 if columns <= 25 else 1)


def test_a_table_honours_columns_and_no_color(monkeypatch, capsysbinary):
    monkeypatch.setattr(streams.output_format.__globals__["sys"].stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for columns in (40, 100):
        monkeypatch.setenv("COLUMNS", str(columns))
        write_records([{"text": "word " * 100}])
        text = re.sub(r"\x1b\[[0-9;]*m", "", capsysbinary.readouterr().out.decode())
        assert columns - 6 <= max(map(len, text.splitlines())) <= columns
        assert text.split().count("word") == 100


def test_resume_goes_on_where_it_stopped(tmp_path):
    path = tmp_path / "x.jsonl"

    def work(stop: int | None = None, **options) -> int:
        with ResumableOutput(path, **options) as out:
            for i in range(out.done, 5):
                if i == stop:
                    raise KeyboardInterrupt
                out.write({"i": i})
        return out.done

    with pytest.raises(KeyboardInterrupt):
        work(stop=2)
    part = tmp_path / "x.jsonl.part"
    assert part.read_bytes() == b'{"i":0}\n{"i":1}\n'
    assert names(tmp_path) == ["x.jsonl.part"]
    with pytest.raises(OutputError, match=r"--resume goes on with it"):
        work()
    with part.open("ab") as file:
        file.write(b'{"i":2')  # torn
    with pytest.raises(KeyboardInterrupt):
        work(stop=4, resume=True)
    assert part.read_bytes() == b"".join(b'{"i":%d}\n' % i for i in range(4))
    assert work(resume=True) == 4
    assert [record.data["i"] for record in read_records(path)] == list(range(5))
    assert names(tmp_path) == ["x.jsonl"]
    with pytest.raises(OutputError, match="exists already"):
        work(resume=True)
    with pytest.raises(KeyboardInterrupt):
        work(stop=1, force=True)
    assert len(path.read_bytes().splitlines()) == 5
    assert work(force=True) == 0
    assert names(tmp_path) == ["x.jsonl"]


@pytest.mark.parametrize("suffix", SUFFIXES[1:])
def test_resumable_output_is_compressed_when_complete(tmp_path, suffix):
    path = tmp_path / f"x.jsonl{suffix}"
    with pytest.raises(KeyboardInterrupt), ResumableOutput(path) as out:
        out.write({"i": 0})
        raise KeyboardInterrupt
    with ResumableOutput(path, resume=True) as out:
        assert out.done == 1
        out.write({"i": 1})
    assert [record.data["i"] for record in read_records(path)] == [0, 1]
    assert names(tmp_path) == [path.name]


def test_resumable_output_survives_a_kill(tmp_path):
    path = tmp_path / "x.jsonl"
    code = (
        "import os, signal\n"
        f"with ResumableOutput({str(path)!r}) as out:\n"
        "    for i in range(200): out.write({'i': i})\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert run(code).returncode == -signal.SIGKILL
    with ResumableOutput(path, resume=True) as out:
        assert out.done == 200


def test_resume_needs_a_file_and_no_rival(tmp_path, capsysbinary):
    for path in ("-", "/dev/null"):
        with pytest.raises(UsageError, match="--resume needs --output"):
            ResumableOutput(path, resume=True)
    with pytest.raises(UsageError, match="only JSON Lines"):
        ResumableOutput(tmp_path / "x.csv")
    with ResumableOutput("-") as out:
        assert out.done == 0
        out.write({"a": 1})
    assert capsysbinary.readouterr().out == b'{"a":1}\n'
    path = tmp_path / "x"
    with (
        ResumableOutput(path),
        pytest.raises(OutputError, match="another run is writing it"),
        ResumableOutput(path, resume=True),
    ):
        pass


def test_a_bomb_is_decoded_piece_by_piece(tmp_path):
    """128 MiB of zeros in 4 kB: what is decoded ahead of the reader stays small."""
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("this system does not tell a process's own peak memory")
    path = tmp_path / "x.zst"
    codec = zstandard.ZstdCompressor().compressobj()
    with path.open("wb") as file:
        for _ in range(128):
            file.write(codec.compress(bytes(1 << 20)))
        file.write(codec.flush())
    code = (
        f"with open_input({str(path)!r}) as file:\n"
        "    n = 0\n"
        "    while block := file.read(1 << 16): n += len(block)\n"
        # Not getrusage, whose peak is that of the process which started this one, if higher.
        f"peak = next(line for line in open({str(status)!r}) if line.startswith('VmHWM'))\n"
        "print(n, int(peak.split()[1]) // 1024)\n"
    )
    count, peak = map(int, run(code, stdout=subprocess.PIPE).stdout.split())
    assert count == 128 << 20
    assert peak < 120


def test_a_missing_compressed_input(tmp_path):
    with pytest.raises(InputError, match="no such file"), open_input(tmp_path / "x.gz"):
        pass

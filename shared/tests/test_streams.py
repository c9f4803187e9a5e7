"""Records in: JSON Lines and CSV, and where an error says it is."""

import io
import itertools
import json
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papercuts.errors import DataError, InputError, UsageError
from papercuts.streams import (
    Record,
    attach,
    default_input,
    dumps,
    loads,
    open_input,
    read_records,
    write_records,
)


@pytest.fixture
def made(tmp_path):
    """Write bytes to a file and return its path."""

    def make(content: bytes, name: str = "in.jsonl") -> str:
        path = tmp_path / name
        path.write_bytes(content)
        return str(path)

    return make


def with_stdin(monkeypatch, content: bytes, tty: bool = False):
    stdin = SimpleNamespace(buffer=io.BytesIO(content), closed=False, isatty=lambda: tty)
    monkeypatch.setattr(sys, "stdin", stdin)


def test_lines_are_numbered_past_blank_ones_bom_and_crlf(made):
    path = made(b'\xef\xbb\xbf{"b": 1, "a": 2}\r\n\r\n  \n{"a": "\xc3\xa9"}')
    records = list(read_records(path))
    assert records == [Record({"b": 1, "a": 2}, path, 1), Record({"a": "é"}, path, 4)]
    assert list(records[0].data) == ["b", "a"]
    assert str(records[1].error("no id", "a number")) == f"{path}:4: no id (expected a number)"


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", b" \r\n"])
@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x"])
def test_an_empty_file_has_no_records(made, content, name):
    assert list(read_records(made(content, name))) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"[1]", "the line is a list (expected one JSON object a line)"),
        (b"3", "the line is a number (expected one JSON object a line)"),
        (b"null", "the line is null (expected one JSON object a line)"),
        (b'{"a": NaN}', "NaN is not JSON (expected a number or null)"),
        (b'{"a": -Infinity}', "-Infinity is not JSON (expected a number or null)"),
        (b'{"a": "NaN", b}', "not JSON: "),
        (b'{"a": "\xff"}', "invalid UTF-8 at byte 8 (expected UTF-8 text)"),
        (b'{"a": 1', "not JSON: "),
        (b'{"a": 1} {"a": 2}', "not JSON: "),
        (b"{", "a JSON value over several lines (expected one JSON object a line)"),
        (b"\x1f\x8b\x08", "compressed data (expected text, or a name ending in"),
        (b"[" * 100_000, "not JSON: "),
    ],
)
def test_a_bad_line_is_named(made, line, message):
    path = made(b'{"a": 1}\n' + line + b"\n")
    records = read_records(path)
    assert next(records).data == {"a": 1}
    with pytest.raises(DataError) as caught:
        next(records)
    assert str(caught.value).startswith(f"{path}:2: {message}")
    assert caught.value.line == 2


def test_the_format_comes_from_the_suffix_or_the_first_character(made, monkeypatch):
    assert next(read_records(made(b"a\n{1}\n", "x.csv"))).data == {"a": "{1}"}
    assert next(read_records(made(b'\n {"a": 1}\n', "x.txt"))) == ({"a": 1}, made(b"", "x.txt"), 2)


def test_stdin_is_sniffed_and_named(monkeypatch):
    with_stdin(monkeypatch, b'\n{"a": 1}\n7\n')
    records = read_records("-")
    assert next(records) == Record({"a": 1}, "-", 2)
    with pytest.raises(DataError, match=r"^stdin:3: the line is a number"):
        next(records)
    with_stdin(monkeypatch, b"\n\na,b\n1,2\n")
    assert list(read_records("-")) == [Record({"a": "1", "b": "2"}, "-", 4)]
    with_stdin(monkeypatch, b"{a\n1\n")
    assert next(read_records("-", "csv")).data == {"{a": "1"}


def test_default_input(monkeypatch):
    assert default_input("x", "plan") == "x"
    with_stdin(monkeypatch, b"")
    assert default_input(None, "plan") == "-"
    with_stdin(monkeypatch, b"", tty=True)
    with pytest.raises(UsageError, match="no plan given"):
        default_input(None, "plan")
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UsageError):
        default_input(None, "plan")
    with pytest.raises(InputError, match="stdin: closed"), open_input("-"):
        pass


def test_inputs_that_cannot_be_read(tmp_path):
    for path in (tmp_path / "absent", tmp_path, "a\0b"):
        with pytest.raises(InputError), open_input(path):
            pass
    with pytest.raises(InputError, match=r"/proc/self/mem: "):
        list(read_records("/proc/self/mem"))


def test_csv_quotes_line_breaks_and_line_numbers(made):
    path = made(b'\xef\xbb\xbfa, b\r\n"x\r\ny, ""z""",2\r\n\r\n3,\r\n', "x.csv")
    assert list(read_records(path)) == [
        Record({"a": 'x\r\ny, "z"', "b": "2"}, path, 2),
        Record({"a": "3", "b": ""}, path, 5),
    ]


def test_csv_dots_are_nested(made):
    path = made(b"id,s.cut,s.x.y\n1,2,3\n", "x.csv")
    assert next(read_records(path)).data == {"id": "1", "s": {"cut": "2", "x": {"y": "3"}}}


def test_csv_fields_may_be_large(made):
    big = b"x" * 3_000_000
    assert next(read_records(made(b"a\n" + big + b"\n", "x.csv"))).data == {"a": big.decode()}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,2\n1,2,3\n", "3: 3 fields (expected 2: a, b)"),
        (b'a,b\n"1\n\n",2\n1\n', "5: 1 field (expected 2: a, b)"),
        (b"a,b,a\n", "1: columns 1 and 3 are both named 'a'"),
        (b"\na,,b\n", "2: column 2 has no name"),
        (b"a.b,a\n", "1: column 'a.b' is a part of column 'a'"),
        (b"a;b\n1;2\n", "1: the columns are separated by a semicolon (expected commas)"),
        (b'a,b\n1,2\n"3,4\n5,6\n', "3: a quoted field that starts here is never closed"),
        (b'a,b\n"1"x,2\n', "2: text after the closing quote of a field"),
        (b"a,b\r1,2\r", "1: a carriage return inside a line"),
        (b"a,b\n1,\xff\n", "2: invalid UTF-8 at byte 3 (expected UTF-8 text)"),
    ],
)
def test_bad_csv_is_named(made, content, message):
    path = made(content, "x.csv")
    with pytest.raises(DataError) as caught:
        list(read_records(path))
    assert str(caught.value).startswith(f"{path}:{message}")


def test_attach_keeps_every_key_in_order():
    data = {"z": 1, "tool": {"first": 1, "twice": 1}, "a": 2}
    assert list(attach(data, "other", 3).items())[-1] == ("other", 3)
    merged = attach(data, "tool", {"twice": 2, "second": 2})
    assert merged == {"z": 1, "tool": {"first": 1, "twice": 2, "second": 2}, "a": 2}
    assert list(merged) == ["z", "tool", "a"]
    assert data["tool"] == {"first": 1, "twice": 1}


numbers = st.integers() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False)
values = st.recursive(
    st.none() | st.booleans() | numbers.filter(lambda x: math.isfinite(x)) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(st.text(), values))
def test_json_round_trips_as_the_standard_library_reads_it(data):
    line = dumps(data)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    for back in (loads(line), json.loads(line)):
        assert repr(back) == repr(data)  # tells 1 from 1.0 from True, 0.0 from -0.0, and the order
    spaced = json.dumps(data, indent=1).replace("\n", " ").encode()
    assert repr(loads(spaced)) == repr(data)


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 2**64 - 1, 2**64, -(2**63) - 1, 10**300])
def test_whole_numbers_stay_exact(number):
    for text in (
        f"[{number}]",
        f'{{"a":{number}}}',
        f"[1, {number}]",
        f"[\t{number}]",
    ):
        assert str(number) in repr(loads(text.encode()))
    assert dumps([number]) == f"[{number}]\n".encode()


def test_what_is_not_a_number_is_null():
    assert dumps({"a": math.nan, "b": [math.inf]}) == b'{"a":null,"b":[null]}\n'
    assert dumps({"a": math.nan, "b": 2**70}) == f'{{"a":null,"b":{2**70}}}\n'.encode()
    assert dumps({"a": np.float32(0.1), "b": np.arange(2), "c": np.float64("nan")}) == (
        b'{"a":0.1,"b":[0,1],"c":null}\n'
    )
    assert dumps({"a": np.int64(3), "b": 2**70}) == f'{{"a":3,"b":{2**70}}}\n'.encode()
    assert dumps({"name": "a\udcff"}) == '{"name":"a\ufffd\ufffd\ufffd"}\n'.encode()
    assert dumps({1: "int key"}) == b'{"1":"int key"}\n'
    with pytest.raises(TypeError, match="not JSON serializable: object"):
        dumps({"a": object()})


def test_nesting_too_deep_to_write_is_bad_data():
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(DataError, match="nested too deeply"):
        dumps({"a": deep})
    del deep


def test_a_live_pipe_is_served_at_once():
    """A record goes through while the source is still open."""
    code = (
        "from papercuts.streams import *\n"
        "write_records((attach(r.data, 't', 1) for r in read_records('-')), '-')\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        for index in range(3):
            process.stdin.write(b'{"id":%d}\n' % index)
            assert process.stdout.readline() == b'{"id":%d,"t":1}\n' % index
        process.stdin.close()
        assert process.wait(20) == 0


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no peak memory to be read")
def test_a_million_records_fast_in_constant_memory(tmp_path):
    """At least 150,000 records a second of CPU time, read and written, however many there are."""
    code = (
        "import sys, time\n"
        "from papercuts.streams import *\n"
        "start = time.process_time()\n"
        "write_records((attach(r.data, 't', {'n': r.line}) for r in read_records('-')), '-')\n"
        # Not getrusage, whose peak is that of the process which started this one, if higher.
        "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
        "print(time.process_time() - start, peak.split()[1], file=sys.stderr)\n"
    )

    def through(count: int) -> tuple[float, int]:
        source = tmp_path / "in.jsonl"
        result = tmp_path / "out.jsonl"
        with source.open("wb") as file:
            for i in range(count):
                file.write(b'{"id":%d,"text":"a few words of text","loss":0.%d}\n' % (i, i + 1))
        with source.open("rb") as stdin, result.open("wb") as stdout:
            done = subprocess.run(
                [sys.executable, "-c", code], stdin=stdin, stdout=stdout, stderr=subprocess.PIPE
            )
        seconds, peak = done.stderr.split()
        with result.open("rb") as file:
            assert sum(1 for _ in file) == count
        return float(seconds), int(peak)

    _, small = through(50_000)
    seconds, large = through(1_000_000)
    assert large - small < 4096  # KiB
    assert 1_000_000 / seconds > 150_000


def test_reading_is_lazy(monkeypatch):
    class Endless(io.RawIOBase):
        def readable(self):
            return True

        def readinto(self, buffer):
            line = b'{"a":1}\n'
            buffer[: len(line)] = line
            return len(line)

    stdin = SimpleNamespace(buffer=io.BufferedReader(Endless()), closed=False)
    monkeypatch.setattr(sys, "stdin", stdin)
    lines = [record.line for record in itertools.islice(read_records("-"), 5)]
    assert lines == [1, 2, 3, 4, 5]


def test_a_csv_file_reads_back_what_write_records_wrote(tmp_path):
    path = tmp_path / "x.csv"
    rows = [{"id": str(i), "s": {"a": f'q"{i}\n', "b": ""}} for i in range(3)]
    write_records(rows, path)
    assert [record.data for record in read_records(path)] == rows

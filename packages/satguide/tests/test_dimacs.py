"""DIMACS as people have it: what is read, what is refused and where, and what is written."""

import gzip
import io
import lzma
import os
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from pysat import formula as pysat

from papercuts import log
from papercuts.errors import DataError, InputError
from satguide import dimacs
from satguide.cnf import CNF
from satguide.families.spec import generator

SIMPLE = "p cnf 3 2\n1 -2 0\n2 3 0\n"
SIMPLE_CLAUSES = [[1, -2], [2, 3]]


def parse(text: str | bytes, **options: bool) -> CNF:
    data = text.encode() if isinstance(text, str) else text
    return dimacs.read(io.BytesIO(data), "f.cnf", **options)


def written(cnf: CNF, header: tuple[str | bytes, ...] = ()) -> bytes:
    out = io.BytesIO()
    dimacs.write(out, cnf, header=header)
    return out.getvalue()


class Trickle(io.BytesIO):
    """A file that gives a few bytes at a time, as a pipe may."""

    def __init__(self, data: bytes, most: int) -> None:
        super().__init__(data)
        self.most = most

    def read(self, size: int | None = -1) -> bytes:
        return super().read(self.most if size is None or size < 0 else min(size, self.most))


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    log.reset()
    return caplog


@st.composite
def formulas(draw: st.DrawFn) -> CNF:
    variables = draw(st.sampled_from([0, 1, 3, 12, 2**30 - 1]))
    literal = st.integers(1, max(variables, 1)).flatmap(lambda v: st.sampled_from([v, -v]))
    clause = st.lists(literal, max_size=4 if variables else 0)
    cnf = CNF.from_clauses(variables, draw(st.lists(clause, max_size=8)))
    words = draw(st.lists(st.sampled_from(["", "a word", "  p cnf 1 1", "%", "1 0"]), max_size=3))
    return CNF(cnf.variables, cnf.literals, cnf.starts, "f.cnf", tuple(words))


few, many = settings(max_examples=25), settings(max_examples=300)


@few
@given(formulas(), st.integers(1, 40))
def test_reading_what_was_written_is_the_identity(cnf: CNF, most: int) -> None:
    data = written(cnf, header=("c weight 1 2", b"c heuristic 2 1 5 1 0\n"))
    again = dimacs.read(Trickle(data, most), "f.cnf", strict=True)
    assert (again.variables, list(again), again.comments) == (
        cnf.variables,
        list(cnf),
        cnf.comments,
    )
    assert again.literals.dtype == np.int32
    assert again.starts.dtype == np.int64


@pytest.mark.slow
def test_reading_what_was_written_is_the_identity_in_many_examples() -> None:
    check = test_reading_what_was_written_is_the_identity.hypothesis.inner_test
    many(given(formulas(), st.integers(1, 40))(check))()


BLANKS = st.text(alphabet=" \t\r\n\f\v", min_size=1, max_size=3)
BETWEEN = st.one_of(
    BLANKS,
    BLANKS,
    st.sampled_from(["\nc a comment\n", "\nc\n", " c behind 1 0 it\n", "\n  c p cnf 3 4\r\n"]),
)


@few
@given(formulas(), st.data(), st.integers(1, 40))
def test_however_the_tokens_are_laid_out(cnf: CNF, data: st.DataObject, most: int) -> None:
    tokens = [str(x) for clause in cnf for x in [*clause, 0]]
    body = "".join(data.draw(BETWEEN) + token for token in tokens)
    text = f"c first\n p\tcnf {cnf.variables}  {len(cnf)} \r\n{body}"
    text += data.draw(st.sampled_from(["", "\n", "\nc end", "\n%\n0\n\n", "\n %\r\n0"]))
    again = dimacs.read(Trickle(text.encode(), most), "f.cnf", strict=True)
    assert list(again) == list(cnf)
    assert again.comments == ("first",)


@pytest.mark.slow
def test_however_the_tokens_are_laid_out_in_many_examples() -> None:
    check = test_however_the_tokens_are_laid_out.hypothesis.inner_test
    many(given(formulas(), st.data(), st.integers(1, 40))(check))()


@pytest.mark.parametrize(
    "text",
    [
        SIMPLE,
        SIMPLE[:-1],
        SIMPLE + "%\n0\n\n",
        SIMPLE + "%\n0\nanything\n9 9 0\n",
        "c x\n\nc y\n" + SIMPLE,
        "p cnf 3 2\n1 -2 0 2 3 0\n",
        "p cnf 3 2\n1\n-2\n0\n2\n3 0",
        "p cnf 3 2\nc 1 0\n1 -2 0\nc 2 0\n2 c not 1\n3 0\nc\n",
        SIMPLE.replace("\n", "\r\n"),
        "  p  cnf\t3\t2\t\n\t1\t-2 0\n   2 3 0\n",
        "\ufeff" + SIMPLE,
        "p cnf 3 2\nc weight 0.5 -0.5 1\nc heuristic 2 1 500 1 0\n1 -2 0\n2 3 0\n",
        "p cnf 003 2\n01 -002 -0\n2 3 00\n",
        "cno blank\n" + SIMPLE,
    ],
)
def test_dialects_read_the_same(text: str, warnings: pytest.LogCaptureFixture) -> None:
    cnf = parse(text, strict=True)
    assert (cnf.variables, list(cnf)) == (3, SIMPLE_CLAUSES)
    assert warnings.messages == []


@pytest.mark.parametrize(
    ("text", "variables", "clauses"),
    [
        ("p cnf 0 0\n", 0, []),
        ("p cnf 5 0", 5, []),
        ("p cnf 0 1\n0\n", 0, [[]]),
        ("p cnf 2 3\n1 0\n0\n-2 0\n", 2, [[1], [], [-2]]),
        ("p cnf 2 2\n1 1 -1 0 2 2 2 0", 2, [[1, 1, -1], [2, 2, 2]]),
        ("p cnf 9 1\n9 0\n", 9, [[9]]),
    ],
)
def test_odd_formulas_are_kept_as_they_are(text: str, variables: int, clauses: list) -> None:
    cnf = parse(text, strict=True)
    assert (cnf.variables, list(cnf)) == (variables, clauses)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", None, "no `p cnf VARIABLES CLAUSES` line"),
        ("\n\nc only a comment\n", None, "no `p cnf VARIABLES CLAUSES` line"),
        ("c x\n1 2 0\n", 2, "'1' before the header (expected p cnf VARIABLES CLAUSES)"),
        ("%\n" + SIMPLE, 1, "'%' before the header"),
        ("p cnf 3\n", 1, "header 'p cnf 3'"),
        ("c\np wcnf 3 2 9\n", 2, "header 'p wcnf 3 2 9'"),
        ("p cnf 3 2 1\n", 1, "header"),
        ("p cnf -3 2\n", 1, "header"),
        ("p cnf 3.0 2\n", 1, "header"),
        (f"p cnf {2**30} 2\n", 1, f"{2**30} variables (expected {2**30 - 1} at most)"),
        (f"p cnf {'9' * 5000} 2\n", 1, "header"),
        (SIMPLE + "p cnf 3 2\n", 4, "a second header (expected one formula)"),
        ("p cnf 3 2\n1 -2 0\n2 4 0\n", 3, "literal '4' is out of range (expected variables 1 to 3"),
        ("p cnf 3 2\n\n1 0\n\n\nc c\n2 -4 0\n", 7, "literal '-4' is out of range"),
        ("p cnf 3 1\n2147483649 0\n", 2, "literal '2147483649' is out of range"),
        ("p cnf 3 1\n1\n-9223372036854775808 0\n", 3, "literal '-9223372036854775808'"),
        ("p cnf 3 1\n1\n-99999999999999999999999 0\n", 3, "literal '-99999999999999999999999'"),
        ("p cnf 0 1\n1 0\n", 2, "(expected none, as the header says 0 variables)"),
        ("p cnf 3 2\n1 -2 0\n2 x 0\n", 3, "token 'x' (expected an integer)"),
        ("p cnf 3 2\nc 1\n1 2.0 0\n", 3, "token '2.0'"),
        ("p cnf 3 2\n1 -2 0\n2 1e0 0\n", 3, "token '1e0'"),
        ("p cnf 3 2\n1-2 0\n", 2, "token '1-2'"),
        ("p cnf 3 2\n1 - 2 0\n", 2, "token '-'"),
        ("p cnf 3 2\n1 --2 0\n", 2, "token '--2'"),
        ("p cnf 3 2\n1 2 -", 2, "token '-'"),
        ("p cnf 3 2\n1 +2 0\n", 2, "token '+2'"),
        ("p cnf 3 2\n1 2c 0\n", 2, "token '2c'"),
        ("p cnf 3 2\n1 2 0 %\n", 2, "token '%'"),
        ("p cnf 3 2\n1 2 0 p cnf 3 2\n", 2, "token 'p'"),
        (b"p cnf 3 2\n1 \x00 0\n", 2, "token '\\x00'"),
        (b"p cnf 3 2\n1 0\xff\xfe\n", 2, "token '0\\xff\\xfe'"),
        (b"\x1f\x8b\x08\x00" + bytes(range(256)), 1, "'\\x1f\\x8b\\x08\\x00\\x00"),
        (SIMPLE.encode("utf-16"), 1, "before the header"),
        (b"p cnf 1 1\n" + b"x" * 99, 2, f"token '{'x' * 30}...'"),
    ],
)
def test_what_is_wrong_and_where(text: str | bytes, line: int | None, words: str) -> None:
    data = text.encode() if isinstance(text, str) else text
    for most in (3, 1 << 20):
        with pytest.raises(DataError) as caught:
            dimacs.read(Trickle(data, most), "f.cnf")
        assert str(caught.value).startswith("f.cnf: " if line is None else f"f.cnf:{line}: ")
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "clauses", "warning"),
    [
        ("c\np cnf 3 5\n1 0\n2 0\n", [[1], [2]], "f.cnf:2: the header says 5 clauses, there are 2"),
        ("p cnf 3 0\n1 0\n", [[1]], "f.cnf:1: the header says 0 clauses, there are 1"),
        ("p cnf 3 2\n1 0\n2 3\nc\n\n", [[1], [2, 3]], "f.cnf:3: the last clause is not closed"),
        ("p cnf 3 2\n1 0\n2\n3\n%\n0\n", [[1], [2, 3]], "f.cnf:4: the last clause is not closed"),
    ],
)
def test_small_faults_are_warnings_and_errors_when_strict(
    text: str, clauses: list, warning: str, warnings: pytest.LogCaptureFixture
) -> None:
    assert list(parse(text)) == clauses
    assert warnings.messages == [warning]
    with pytest.raises(DataError) as caught:
        parse(text, strict=True)
    assert str(caught.value).startswith(warning)


def test_comments_of_the_header_are_kept_and_guidance_is_not() -> None:
    text = "c  from a\r\nc\nc weight 1 2 3\nc heuristic 1 1 1 1 0\nc weighty\n"
    cnf = parse(text + "p cnf 1 1\nc later\n1 0\nc end\n")
    assert cnf.comments == (" from a", "", "weighty")
    assert written(cnf) == b"c  from a\nc\nc weighty\np cnf 1 1\n1 0\n"


def test_several_formulas_in_a_stream_come_one_by_one() -> None:
    text = "c a\np cnf 1 1\n1 0\nc b\n\nc c\np cnf 2 1\n-2 0\n%\n0\nc d\np cnf 0 0\n"
    for most in (1, 5, 1 << 20):
        found = list(dimacs.read_all(Trickle(text.encode(), most), "f", strict=True))
        assert [cnf.name for cnf in found] == ["f#1", "f#2", "f#3"]
        assert [list(cnf) for cnf in found] == [[[1]], [[-2]], []]
        assert [cnf.comments for cnf in found] == [("a",), ("b", "c"), ("d",)]
    lazy = dimacs.read_all(Trickle(text.encode() + b"p cnf x\n", 8), "f")
    assert [next(lazy).variables, next(lazy).variables] == [1, 2]
    with pytest.raises(DataError, match=r"f:13: header 'p cnf x'"):
        list(lazy)


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_compressed_files_are_read_by_suffix(suffix: str, tmp_path: Path) -> None:
    packed = {
        "": bytes,
        ".gz": gzip.compress,
        ".xz": lzma.compress,
        ".zst": zstandard.ZstdCompressor().compress,
    }[suffix](SIMPLE.encode())
    path = tmp_path / f"f.cnf{suffix}"
    path.write_bytes(packed)
    cnf = dimacs.load(path)
    assert (list(cnf), cnf.name) == (SIMPLE_CLAUSES, str(path))
    assert [list(cnf) for cnf in dimacs.load_many(tmp_path)] == [SIMPLE_CLAUSES]


def test_a_folder_is_read_in_the_order_of_names_as_it_is_asked_for(tmp_path: Path) -> None:
    for name, text in {
        "b.dimacs": "p cnf 2 0\n",
        "a.cnf": "p cnf 1 0\np cnf 7 0\n",
        "notes.txt": "p cnf 9 0\n",
        "c.CNF": "broken",
    }.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "d.cnf").mkdir()
    found = dimacs.load_many(tmp_path)
    first = [next(found) for _ in range(3)]
    assert [cnf.variables for cnf in first] == [1, 7, 2]
    names = [Path(cnf.name).name for cnf in first]
    assert names == ["a.cnf#1", "a.cnf#2", "b.dimacs"]
    with pytest.raises(DataError, match=r"c\.CNF:1: 'broken' before the header"):
        next(found)
    with pytest.raises(InputError, match=r"d\.cnf: no \.cnf or \.dimacs files in this folder"):
        next(dimacs.load_many(tmp_path / "d.cnf"))
    with pytest.raises(InputError, match="no such file"):
        next(dimacs.load_many(tmp_path / "none.cnf"))


def test_stdin_is_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(SIMPLE.encode())))
    assert [list(cnf) for cnf in dimacs.load_many("-")] == [SIMPLE_CLAUSES]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"p cnf 1 1\n2 0\n")))
    with pytest.raises(DataError, match=r"^stdin:2: literal '2'"):
        dimacs.load("-")


def test_what_is_written_is_one_clause_a_line() -> None:
    cnf = CNF.from_clauses(12, [[10, -2], [], [-10, 3, 3], []])
    assert written(cnf, ("c x", b"c y\n")) == (b"p cnf 12 4\nc x\nc y\n10 -2 0\n0\n-10 3 3 0\n0\n")
    assert written(CNF.from_clauses(0, [])) == b"p cnf 0 0\n"


def test_blocks_of_the_writer_join(monkeypatch: pytest.MonkeyPatch) -> None:
    cnf = CNF.from_clauses(9, [[1] * (i % 7) for i in range(60)])
    whole = written(cnf)
    for block in (1, 2, 5, 64):
        monkeypatch.setattr(dimacs, "_BLOCK", block)
        assert written(cnf) == whole


@pytest.mark.parametrize(("family", "size"), [("3sat", 300), ("3col", 60), ("hitag2", 44)])
def test_pysat_reads_what_is_written(family: str, size: int, tmp_path: Path) -> None:
    cnf = generator(family)(size, 3)
    path = tmp_path / "f.cnf"
    path.write_bytes(written(cnf, ("c weight 1.0",)))
    other = pysat.CNF(from_file=str(path))
    assert other.clauses == list(cnf)
    assert list(dimacs.load(path, strict=True)) == other.clauses


def _brought() -> list[Path]:
    folder = Path(os.environ.get("PAPERCUTS_DATA", "/nowhere"), "sat")
    return sorted(folder.rglob("*.cnf"))


def test_formulas_that_people_brought_read_as_in_pysat() -> None:
    paths = _brought()
    if not paths:
        pytest.skip("no folder sat with .cnf files under $PAPERCUTS_DATA")
    for path in paths:
        cnf, other = dimacs.load(path), pysat.CNF(from_file=str(path))
        assert list(cnf) == other.clauses, path
        assert cnf.variables >= other.nv, path


def test_a_hundred_thousand_lines_of_guidance_are_not_looked_at_one_by_one(monkeypatch):
    block = b"".join(b"c heuristic 2 %d 500 1 0\n" % v for v in range(1, 100_001))
    text = b"c kept\np cnf 100000 1\n" + block + b"c dropped\n1 0\nc of the next\n"
    line_by_line, honest = [], dimacs._last_comments

    def spy(text):
        line_by_line.append(len(text))
        return honest(text)

    monkeypatch.setattr(dimacs, "_last_comments", spy)
    cnf = dimacs.read(io.BytesIO(text), "x")
    assert (cnf.comments, list(cnf)) == (("kept",), [[1]])
    assert sum(line_by_line) < 100
    first, second = dimacs.read_all(io.BytesIO(text + b"p cnf 1 0\n"), "x")
    assert (first.comments, second.comments) == (("kept",), ("of the next",))


@pytest.mark.parametrize("end", [b"\x1a", b"\r\n\x1a", b"\n\x1a\x1a", b" \x1a"])
def test_the_end_of_a_text_file_of_dos(end):
    cnf = dimacs.read(io.BytesIO(b"p cnf 2 2\n1 0\n-2 0" + end), "x", strict=True)
    assert list(cnf) == [[1], [-2]]
    with pytest.raises(DataError):
        dimacs.read(io.BytesIO(b"p cnf 2 2\n1 0\n\x1a-2 0\n"), "x")

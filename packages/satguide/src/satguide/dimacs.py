"""DIMACS CNF files: read as people have them, written so that every solver reads them.

Read, beyond `p cnf VARIABLES CLAUSES` and clauses that end in 0: several clauses on a line, clauses
over several lines, any blanks (tabs, CRLF, leading spaces), a byte order mark. A token that begins
with `c` starts a comment that lasts to the end of its line, also behind a clause (as in CaDiCaL).
A line that begins with `%` ends the formula (SATLIB's files end in `%` and `0`); what follows is
skipped, up to the next `p cnf` line. `c weight` and `c heuristic` lines, guidance for another
solver, are dropped, and so are all comments behind the header. ^Z at the end of a file is none of
it. Clauses are kept as they stand:
empty ones, duplicate literals and tautologies too.

A number of clauses other than the header's and a last clause without its 0 (which then counts as
closed) are warnings, errors where `strict` is true. Everything else is an error: no header, a
header of another kind (`p wcnf`), a variable beyond the header's count, a token that is no integer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from papercuts.compression import SUFFIXES
from papercuts.errors import DataError, InputError
from papercuts.files import open_input, reason
from papercuts.log import get_logger
from satguide.cnf import CNF, Literals

LARGEST = 2**30 - 1  # variables; a literal's node in the graph is an int32

_HEADER = "p cnf VARIABLES CLAUSES"
_FIRST, _PIECE = 1 << 16, 1 << 23  # bytes read at once, at first (a pipe shall not wait) and later
_BLOCK = 1 << 18  # literals written at once
_PLAIN = b"0123456789- \t\n\v\f\r"  # all that a piece without comments and headers is made of
_MARK = re.compile(rb"^[ \t\v\f\r]*([p%])[^\n]*", re.MULTILINE)
_COMMENT = re.compile(rb"(?<!\S)c[^\n]*")
_REMARKS = re.compile(rb"(?:[ \t\v\f\r]*+(?:c[^\n]*+)?\n?+)*+")  # lines of these alone
_GUIDANCE = re.compile(rb"c[ \t]+(?:weight|heuristic)(?!\S)")
_COUNTS = re.compile(rb"p\s+cnf\s+(\d{1,18})\s+(\d{1,18})")
_GARBAGE = re.compile(rb"(?<!\S)(?!-?[0-9]+(?!\S))\S+")
_BOM = b"\xef\xbb\xbf"
_NAMES = (".cnf", ".dimacs")

logger = get_logger(__name__)


def read(file: BinaryIO, name: str, *, strict: bool = False) -> CNF:
    """Read the one formula of a file.

    `name` is what errors call the file, and the name of the CNF. Raises `DataError`, with the line,
    for what this module says is an error, and for a second header.
    """
    (cnf,) = _formulas(file, name, strict=strict, single=True)
    return cnf


def read_all(file: BinaryIO, name: str, *, strict: bool = False) -> Iterator[CNF]:
    """Read formulas that follow each other in one stream, each begun by its `p cnf` line.

    One formula at a time is held. Where there are several, the k-th is called `name#k`. Raises
    `DataError` as `read` does, when the formula is reached.
    """
    return _formulas(file, name, strict=strict, single=False)


def load(path: str | Path, *, strict: bool = False) -> CNF:
    """Read the formula of a file (`-`: stdin; .gz, .xz, .zst by suffix).

    Raises `DataError` as `read` does, and `InputError` where the file cannot be read.
    """
    with open_input(path) as file:
        return read(file, str(path), strict=strict)


def load_many(path: str | Path, *, strict: bool = False) -> Iterator[CNF]:
    """Read all formulas of a folder, of a file or of stdin (`-`), one by one as they are asked for.

    Of a folder: its .cnf and .dimacs files, also compressed, in the order of their names. Names are
    as `read_all` gives them. Raises `DataError` and `InputError` as `load` does.
    """
    paths = [str(path)]
    if str(path) != "-" and Path(path).is_dir():
        paths = [str(file) for file in formula_files(path)]
    for name in paths:
        with open_input(name) as file:
            yield from read_all(file, name, strict=strict)


def formula_files(folder: str | Path) -> list[Path]:
    """List the .cnf and .dimacs files of a folder, also compressed, by name.

    Raises `InputError` where there is no such folder, or none of these in it.
    """
    try:
        found = sorted(file for file in Path(folder).iterdir() if _is_cnf(file))
    except OSError as error:
        raise InputError(f"{folder}: {reason(error)}") from error
    if not found:
        raise InputError(f"{folder}: no .cnf or .dimacs files in this folder")
    return found


def write(out: BinaryIO, cnf: CNF, *, header: Iterable[str | bytes] = ()) -> None:
    """Write a formula: comments, `p cnf`, the lines of `header`, then one clause a line.

    A string or bytes object of `header` is one line or several. Memory does not grow with the
    formula, except with its longest clause.
    """
    for comment in cnf.comments:
        text = comment.replace("\n", "\nc ")
        out.write(f"c {text}".rstrip().encode() + b"\n")
    out.write(f"p cnf {cnf.variables} {len(cnf)}\n".encode())
    for given in header:
        line = given.encode() if isinstance(given, str) else given
        out.write(line if line.endswith(b"\n") else line + b"\n")
    first, clauses = 0, len(cnf)
    while first < clauses:
        reach = int(cnf.starts[first]) + _BLOCK
        last = int(np.searchsorted(cnf.starts, reach, side="right")) - 1
        last = min(max(last, first + 1), first + _BLOCK, clauses)
        out.write(_text(cnf.literals, cnf.starts[first : last + 1]))
        first = last


def _text(literals: Literals, starts: NDArray[np.int64]) -> bytes:
    begin, clauses = int(starts[0]), starts.size - 1
    tokens = np.zeros(int(starts[-1]) - begin + clauses, dtype=np.int32)
    filled = np.ones(tokens.size, dtype=bool)
    filled[starts[1:] - begin + np.arange(clauses)] = False
    tokens[filled] = literals[begin : int(starts[-1])]
    text = " ".join(map(str, tokens.tolist())) + " "
    if (starts[1:] == starts[:-1]).any():  # after an empty clause, a 0 has no blank of its own
        return re.sub(r"\b0 ", "0\n", text).encode()
    return text.replace(" 0 ", " 0\n").encode()


def is_named_as_formula(name: str) -> bool:
    """Tell whether a file's name ends in .cnf or .dimacs, or one of these and .gz, .xz, .zst."""
    name = name.lower()
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return name.endswith(_NAMES)


def _is_cnf(path: Path) -> bool:
    return is_named_as_formula(path.name) and not path.is_dir()


@dataclass(eq=False)
class _Formula:
    """A formula while it is read; `line` is that of its header."""

    path: str
    line: int
    variables: int
    clauses: int
    comments: tuple[str, ...]
    literals: list[Literals] = field(default_factory=list)
    ends: list[NDArray[np.int64]] = field(default_factory=list)
    read: int = 0  # literals so far
    last_end: int = 0  # of the last closed clause
    last_line: int = 0
    complete: bool = False  # a % was met

    def add(self, body: bytes, line: int) -> None:
        """Take the clauses of a text without comments that begins at a line."""
        garbage = _garbage(body)
        tokens = _integers(body if garbage is None else body[: garbage.start()])
        if tokens.size and not -self.variables <= tokens.min() <= tokens.max() <= self.variables:
            wrong = np.flatnonzero((tokens > self.variables) | (tokens < -self.variables))[0]
            text, where = _token(body, int(wrong), line)
            expected = f"variables 1 to {self.variables}, as the header says"
            if not self.variables:
                expected = "none, as the header says 0 variables"
            message = f"literal {_shown(text)} is out of range"
            raise DataError(message, path=self.path, line=where, expected=expected)
        if garbage is not None:
            where = line + body.count(b"\n", 0, garbage.start())
            message = f"token {_shown(garbage[0])}"
            raise DataError(message, path=self.path, line=where, expected="an integer")
        if tokens.size == 0:
            return
        zeros = np.flatnonzero(tokens == 0)
        ends = zeros - np.arange(zeros.size) + self.read
        self.literals.append(tokens[tokens != 0].astype(np.int32))
        self.ends.append(ends)
        self.read += tokens.size - zeros.size
        self.last_end = int(ends[-1]) if ends.size else self.last_end
        self.last_line = line + body.rstrip().count(b"\n")

    def finish(self, name: str, *, strict: bool) -> CNF:
        """Make the CNF; complain of what does not agree."""
        if self.read > self.last_end:
            self.ends.append(np.array([self.read]))
            error = DataError("the last clause is not closed", path=self.path, line=self.last_line)
            _complain(error, "a 0 at its end", strict=strict)
        starts = np.concatenate([np.zeros(1, dtype=np.int64), *self.ends])
        self.ends.clear()
        literals = np.concatenate([np.zeros(0, dtype=np.int32), *self.literals])
        self.literals.clear()
        if starts.size - 1 != self.clauses:
            said = f"the header says {self.clauses} clauses, there are {starts.size - 1}"
            error = DataError(said, path=self.path, line=self.line)
            _complain(error, None, strict=strict)
        return CNF(self.variables, literals, starts, name, self.comments)


def _formulas(file: BinaryIO, name: str, *, strict: bool, single: bool) -> Iterator[CNF]:
    formula: _Formula | None = None
    comments: list[bytes] = []  # of the lines since the last clause
    number, line = 0, 1
    for piece in _pieces(file):
        plain = not piece.translate(None, _PLAIN)
        start = 0
        for mark in [None] if plain else [*_MARK.finditer(piece), None]:
            text = piece[start : mark.start()] if mark else piece[start:] if start else piece
            nothing_else = not (text.strip() if plain else _REMARKS.sub(b"", text, count=1))
            # One by one they cost time, and a million `c heuristic` lines lead to no other header.
            found = [] if plain or (single and formula) else _last_comments(text)
            comments = comments + found if nothing_else else found
            if not nothing_else and not (formula and formula.complete):
                body = text if plain else _COMMENT.sub(b"", text)
                if formula is None:
                    _refuse(body, name, line)
                else:
                    formula.add(body, line)
            line += text.count(b"\n")
            if mark is None:
                continue
            start = mark.end()
            if mark[1] == b"p":
                if formula is not None:
                    if single:
                        raise DataError(
                            "a second header", path=name, line=line, expected="one formula"
                        )
                    number += 1
                    yield formula.finish(f"{name}#{number}", strict=strict)
                formula = _header(mark[0], comments, name, line)
                comments = []
            elif formula is None:
                _refuse(mark[0], name, line)
            else:
                formula.complete = True
    if formula is None:
        raise DataError(f"no `{_HEADER}` line in it", path=name)
    yield formula.finish(f"{name}#{number + 1}" if number else name, strict=strict)


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    """Cut a file into pieces of whole lines."""
    size, kept = _FIRST, list[bytes]()
    skipped = False
    while data := file.read(size):
        size = min(2 * size, _PIECE)
        if not skipped:
            data, skipped = data.removeprefix(_BOM), True
        cut = data.rfind(b"\n") + 1
        if cut:
            yield b"".join([*kept, data[:cut]])
            kept = [data[cut:]]
        else:
            kept.append(data)
    if rest := b"".join(kept).rstrip(b"\x1a"):  # ^Z, which ends a text file of DOS
        yield rest


def _header(text: bytes, comments: list[bytes], name: str, line: int) -> _Formula:
    counts = _COUNTS.fullmatch(text.strip())
    if counts is None:
        raise DataError(f"header {_shown(text.strip())}", path=name, line=line, expected=_HEADER)
    variables, clauses = int(counts[1]), int(counts[2])
    if variables > LARGEST:
        expected = f"{LARGEST} at most"
        raise DataError(f"{variables} variables", path=name, line=line, expected=expected)
    words = (comment[1:].removeprefix(b" ").decode(errors="replace") for comment in comments)
    return _Formula(name, line, variables, clauses, tuple(words))


def _last_comments(text: bytes) -> list[bytes]:
    """Give the comment lines at the end of a text, without those of guidance."""
    lines: list[bytes] = []
    end = len(text)
    while end >= 0:
        start = text.rfind(b"\n", 0, end) + 1
        line = text[start:end].strip()
        if line.startswith(b"c"):
            if not _GUIDANCE.match(line):
                lines.append(line)
        elif line:
            break
        end = start - 1
    return lines[::-1]


def _garbage(body: bytes) -> re.Match[bytes] | None:
    """Find the first token of a text that is no integer."""
    characters = np.frombuffer(body, dtype=np.uint8)
    minus = np.flatnonzero(characters == ord("-"))
    glued = (characters[minus[minus > 0] - 1] > ord(" ")).any()
    last = minus.size and minus[-1] == characters.size - 1
    if glued or last or (characters[minus + 1] < ord("0")).any() or body.translate(None, _PLAIN):
        return _GARBAGE.search(body)
    return None


def _integers(body: bytes) -> NDArray[np.int64]:
    """Turn a text into its integers (those beyond int64 become its ends, out of every range)."""
    if not body.strip():  # of blanks alone, numpy makes a 0
        return np.zeros(0, dtype=np.int64)
    return np.fromstring(body, dtype=np.int64, sep=" ")


def _token(body: bytes, index: int, line: int) -> tuple[bytes, int]:
    """Give the text of a token, by its index, and its line."""
    dark = np.frombuffer(b" " + body, dtype=np.uint8) > ord(" ")
    begin = int(np.flatnonzero(dark[1:] & ~dark[:-1])[index])
    text = body[begin : begin + 80].split(maxsplit=1)[0]
    return text, line + body.count(b"\n", 0, begin)


def _refuse(body: bytes, name: str, line: int) -> NoReturn:
    """Raise for a text before the header."""
    first = re.search(rb"\S+", body)
    assert first is not None  # noqa: S101
    raise DataError(
        f"{_shown(first[0])} before the header",
        path=name,
        line=line + body.count(b"\n", 0, first.start()),
        expected=_HEADER,
    )


def _complain(error: DataError, expected: str | None, *, strict: bool) -> None:
    if strict:
        raise DataError(error.message, path=error.path, line=error.line, expected=expected)
    logger.warning("%s", error)


def _shown(text: bytes) -> str:
    cut = text[:30].decode("ascii", "backslashreplace")
    cut = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in cut)
    return f"'{cut}{'...' if len(text) > 30 else ''}'"

"""The split of a text: what is trained on, what is held out, and where it is read from."""

import gzip
import hashlib
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papercuts.errors import DataError, InputError, UsageError
from seesaw.corpus import Corpus, read_sources, read_text, stdlib_root


def numbered(length: int) -> bytes:
    """Make a text whose every pair of neighbours tells where it is, up to 65,536 bytes."""
    return np.arange(length // 2 + 1, dtype=">u2").tobytes()[:length]


@settings(max_examples=40, deadline=None)
@given(
    length=st.integers(300, 9000),
    seq_len=st.integers(1, 37),
    held_out=st.floats(0.02, 0.5),
    block=st.integers(1, 80),
)
def test_targets_are_divided_without_overlap_or_loss(length, seq_len, held_out, block):
    text = np.random.default_rng(length).integers(256, size=length, dtype=np.uint8).tobytes()
    corpus = Corpus.from_bytes(text, seq_len, held_out=held_out, block=block)
    count = (length - 1) // seq_len
    rows = {text[i * seq_len : i * seq_len + seq_len + 1] for i in range(count)}
    got = [row.tobytes() for row in [*corpus.train, *corpus.validation]]
    assert len(got) == count
    assert set(got) == rows
    assert len(corpus.validation) >= 1
    assert corpus.train_tokens == len(corpus.train) * seq_len


def test_blocks_that_are_held_out_are_contiguous_and_evenly_spaced():
    text = numbered(20 * 8 * 4 * 10 + 1)
    corpus = Corpus.from_bytes(text, 10, held_out=0.05, block=8)
    places = [text.index(row.tobytes()) // 10 for row in corpus.validation]
    expected = [block * 8 + i for block in range(10, 80, 20) for i in range(8)]
    assert places == expected


def test_share_that_is_held_out():
    corpus = Corpus.from_bytes(bytes(640_001), 10, held_out=0.1)
    assert len(corpus.validation) / (len(corpus.validation) + len(corpus.train)) == pytest.approx(
        0.1, abs=0.002
    )


def test_digest_is_the_texts():
    text = numbered(1000)
    assert Corpus.from_bytes(text, 8).digest == hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize(
    ("length", "options", "error"),
    [
        (80, {}, DataError),
        (0, {}, DataError),
        (1000, {"held_out": 0.0}, UsageError),
        (1000, {"held_out": 0.6}, UsageError),
    ],
)
def test_texts_and_shares_that_make_no_corpus(length, options, error):
    with pytest.raises(error):
        Corpus.from_bytes(bytes(length), 10, **options)
    with pytest.raises(UsageError):
        Corpus.from_bytes(bytes(1000), 0)


def test_short_text_names_its_file():
    with pytest.raises(DataError, match=r"notes.txt: 50 bytes .* \(expected 81 bytes or more\)"):
        Corpus.from_bytes(bytes(50), 10, path="notes.txt")


def test_sources_come_in_the_order_of_their_paths(tmp_path: Path):
    for name in ("b.py", "a/z.py", "a/b/c.py", "tests/no.py", "tests.py", "a/notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name + "\n")
    assert read_sources(tmp_path, skip={"tests"}) == b"a/b/c.py\na/z.py\nb.py\ntests.py\n"
    with pytest.raises(InputError, match="no Python source files"):
        read_sources(tmp_path / "none")


@pytest.mark.slow
def test_standard_library_is_a_corpus():
    text = read_text("stdlib")
    assert len(text) > 5_000_000
    assert (stdlib_root() / "argparse.py").read_bytes() in text
    assert b"site-packages/torch" not in text


def test_files_and_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    plain, packed = tmp_path / "a.txt", tmp_path / "a.txt.gz"
    plain.write_bytes(b"caf\xc3\xa9\r\n")
    packed.write_bytes(gzip.compress(b"packed"))
    assert read_text(str(plain)) == b"caf\xc3\xa9\r\n"
    assert read_text(str(packed)) == b"packed"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"piped")))
    assert read_text("-") == b"piped"
    with pytest.raises(InputError):
        read_text(str(tmp_path / "none.txt"))

"""Text as bytes, cut into training sequences that are seen once and blocks that are held out."""

from __future__ import annotations

import hashlib
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from papercuts.errors import DataError, InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

STDLIB = "stdlib"
_NOT_THE_LIBRARY = frozenset(
    {"site-packages", "dist-packages", "__pycache__", "test", "tests", "idle_test"}
)


@dataclass(frozen=True)
class Corpus:
    """Byte sequences for training and for validation, with no target byte in common.

    `train` and `validation` are uint8 views of shape (sequences, seq_len + 1): the first `seq_len`
    bytes of a row are the input and the last `seq_len` the targets, so neighbouring rows share one
    byte. `digest` is the SHA-256 of the text, in hexadecimal.
    """

    train: NDArray[np.uint8]
    validation: NDArray[np.uint8]
    seq_len: int
    digest: str

    @property
    def train_tokens(self) -> int:
        """Targets in one pass over the training sequences."""
        return len(self.train) * self.seq_len

    @classmethod
    def from_bytes(
        cls,
        text: bytes,
        seq_len: int,
        *,
        held_out: float = 0.05,
        block: int = 64,
        path: str | None = None,
    ) -> Corpus:
        """Cut `text` into sequences of `seq_len` tokens (bytes) and hold some of them out.

        Of the contiguous blocks of `block` sequences, evenly spaced ones that make up the share
        `held_out` are the validation part; a short text uses shorter blocks, so that there are
        always two held-out blocks or more. Raises UsageError for a share outside (0, 0.5] or a
        `seq_len` below 1, DataError (naming `path`) for a text of fewer than 8 sequences.
        """
        if not 0.0 < held_out <= 0.5:
            raise UsageError(f"the held-out share is {held_out} (expected over 0, at most 0.5)")
        if seq_len < 1:
            raise UsageError(f"the sequence length is {seq_len} (expected 1 or more)")
        count = (len(text) - 1) // seq_len
        if count < 8:
            raise DataError(
                f"{len(text)} bytes of text make {max(count, 0)} sequences of {seq_len}",
                path=path,
                expected=f"{8 * seq_len + 1} bytes or more",
            )
        data = np.frombuffer(text, dtype=np.uint8)
        rows = np.lib.stride_tricks.sliding_window_view(data, seq_len + 1)[::seq_len][:count]
        period = min(round(1.0 / held_out), count // 2)
        block = max(1, min(block, count // (2 * period)))
        is_held_out = np.arange(count) // block % period == period // 2
        return cls(
            train=rows[~is_held_out],
            validation=rows[is_held_out],
            seq_len=seq_len,
            digest=hashlib.sha256(text).hexdigest(),
        )


def stdlib_root() -> Path:
    """Give the folder of this Python's standard library."""
    return Path(sysconfig.get_path("stdlib"))


def read_sources(root: Path, *, skip: Iterable[str] = ()) -> bytes:
    """Concatenate the `.py` files below `root`, in the order of their paths relative to it.

    Files that have a folder named in `skip` on their path are left out. Raises InputError where
    there is no such file.
    """
    skipped = frozenset(skip)
    relative = sorted(
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if skipped.isdisjoint(path.relative_to(root).parts[:-1]) and path.is_file()
    )
    if not relative:
        raise InputError(f"{root}: no Python source files")
    return b"".join((root / name).read_bytes() for name in relative)


def read_text(source: str) -> bytes:
    """Read a text: a file's path (gz, xz and zst by suffix), `-` for stdin, or `stdlib`.

    `stdlib` is the Python sources of the standard library of the running interpreter, without
    its tests: about 12 MB, the same on every machine with the same Python. Raises InputError.
    """
    if source == STDLIB:
        return read_sources(stdlib_root(), skip=_NOT_THE_LIBRARY)
    from papercuts.streams import open_input

    with open_input(source) as stream:
        return stream.read()


def take_sequences(rows: NDArray[np.uint8], indices: Sequence[int]) -> NDArray[np.uint8]:
    """Copy the rows `indices` of a part of a corpus: uint8, shape (indices, seq_len + 1)."""
    return rows[np.asarray(indices, dtype=np.int64)]

"""gzip, xz and zstd streams, chosen by suffix, read strictly and written reproducibly."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from papercuts.errors import DataError, OutputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SUFFIXES = (".gz", ".xz", ".zst")
_BUFFER = 1 << 18
_PIECE = 512  # compressed bytes decoded at once: bounds what one step can expand to (zip bombs)


@contextlib.contextmanager
def decoded(file: io.BufferedReader[Any], name: str) -> Iterator[BinaryIO]:
    """Read `file` decompressed, by the suffix of `name`; as it is where that says nothing.

    Concatenated members are read through to the last. Reading raises `DataError` when the data
    are corrupt or end too soon.
    """
    codec = _decoder(Path(name).suffix)
    if codec is None:
        yield file
    else:
        with io.BufferedReader(_Decoded(file, name, *codec), _BUFFER) as plain:
            yield plain


@contextlib.contextmanager
def encoded(out: BinaryIO, name: str) -> Iterator[BinaryIO]:
    """Compress what is written to `out`, by the suffix of `name`; same bytes in, same bytes out."""
    suffix = Path(name).suffix
    layer: Any
    if suffix == ".gz":
        import gzip

        layer = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=out, mtime=0)
    elif suffix == ".xz":
        import lzma

        layer = lzma.LZMAFile(out, "wb")  # noqa: SIM115 (closed below)
    elif suffix == ".zst":
        import zstandard

        codec = zstandard.ZstdCompressor(level=3, write_checksum=True)
        layer = codec.stream_writer(out, closefd=False)
    else:
        yield out
        return
    file = io.BufferedWriter(cast(io.RawIOBase, layer), _BUFFER)
    try:
        yield cast(BinaryIO, file)
    except BaseException:
        # Whole files are about to be removed; a FIFO gets a sound end of what was done.
        with contextlib.suppress(OSError, ValueError, OutputError):
            file.close()
        raise
    file.close()


def _decoder(suffix: str) -> tuple[Callable[[], Any], type[Exception]] | None:
    """Return what makes a decoder of one compressed member, and the error it raises."""
    if suffix == ".gz":
        import zlib

        return (lambda: zlib.decompressobj(31)), zlib.error
    if suffix == ".xz":
        import lzma

        return (lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ)), lzma.LZMAError
    if suffix == ".zst":
        import zstandard

        codec = zstandard.ZstdDecompressor(max_window_size=1 << 31)  # what `zstd --long=31` wrote
        return codec.decompressobj, zstandard.ZstdError
    return None


class _Decoded(io.RawIOBase):
    """The decoded bytes of a file of one or more compressed members.

    The libraries' own file objects take a truncated zstd frame, and anything after the first xz
    stream that is not xz, for the end of the file; here both are errors.
    """

    def __init__(
        self,
        file: io.BufferedReader[Any],
        path: str,
        new: Callable[[], Any],
        error: type[Exception],
    ) -> None:
        self._file = file
        self._path = path
        self._new = new
        self._error = error
        self._decoder: Any = new()
        self._rest = b""
        self._block = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._block:
            self._block = memoryview(self._next_block())
        count = min(len(buffer), len(self._block))
        buffer[:count] = self._block[:count]
        self._block = self._block[count:]
        return count

    def _next_block(self) -> bytes:
        """Return some decoded bytes, or none at the end of the last member."""
        while True:
            piece = self._rest or self._file.read1(_PIECE)
            self._rest = b""
            between = self._decoder is None
            if not piece:
                if between:
                    return b""
                raise self._broken("the file ends too soon")
            if between:
                piece = piece.lstrip(b"\0")  # members may be padded, as on tape
                if not piece:
                    continue
                self._decoder = self._new()
            try:
                block: bytes = self._decoder.decompress(piece)
            except self._error as error:
                raise self._broken(f"corrupt ({error})") from error
            if self._decoder.eof:
                self._rest = self._decoder.unused_data
                self._decoder = None
            if block:
                return block

    def _broken(self, message: str) -> DataError:
        kind = Path(self._path).suffix
        return DataError(message, path=self._path, expected=f"a sound {kind} file")

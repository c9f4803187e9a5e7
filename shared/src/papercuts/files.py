"""Opening what a command reads and writes: `-`, compressed files, whole-or-nothing output.

A regular file is written beside its place and takes its name only when it is complete; stdout,
devices and FIFOs are written directly. Compression by suffix is in `papercuts.compression`.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from papercuts.compression import decoded, encoded
from papercuts.errors import InputError, OutputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

BUFFER = 1 << 18  # bytes; fewer system calls than the default 8 KiB on a stream of records
_PULSE_S = 0.1
_PULSE_WRITES = 256
_STDOUT = ("-", "/dev/stdout")


def reason(error: OSError) -> str:
    """Return the operating system's words for an error, in lower case."""
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]


def default_input(path: str | None, what: str) -> str:
    """Return `path`, or `-` when none is named and something is piped in.

    `what` names the missing argument for a person, as in "plan file". Raises `UsageError` when
    nothing is named and stdin is a terminal or closed.
    """
    if path is not None:
        return path
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        raise UsageError(f"no {what} given: name a file, or pipe it in")
    return "-"


@contextlib.contextmanager
def open_input(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for reading bytes; `-` is stdin, which stays open afterwards.

    Raises `InputError` when the file is missing or unreadable, and `DataError`, while reading,
    when a compressed file is corrupt or ends too soon.
    """
    name = str(path)
    if name == "-":
        if sys.stdin is None or sys.stdin.closed:
            raise InputError("stdin: closed")
        yield sys.stdin.buffer
        return
    with contextlib.ExitStack() as stack:
        try:
            raw = stack.enter_context(_Source(name))
        except OSError as error:
            raise InputError(f"{name}: {reason(error)}") from error
        except ValueError as error:  # a NUL character in the name
            raise InputError(f"{name!r}: {error}") from error
        file = stack.enter_context(io.BufferedReader(raw, BUFFER))
        yield stack.enter_context(decoded(file, name))


class _Source(io.FileIO):
    """A raw file whose read errors (a failing disk, a stale handle) are `InputError`."""

    def readinto(self, buffer: Any) -> int | None:
        try:
            return super().readinto(buffer)
        except OSError as error:
            raise InputError(f"{self.name}: {reason(error)}") from error

    def readall(self) -> bytes:
        try:
            return super().readall()
        except OSError as error:
            raise InputError(f"{self.name}: {reason(error)}") from error


class _Output(io.BufferedWriter):
    """A buffered file whose failures are `OutputError`, except a closed pipe.

    A live one (stdout, a FIFO, work that can be resumed) is flushed after every write as long as
    writes come at under `_PULSE_WRITES` per `_PULSE_S`, and every `_PULSE_S` beyond that: a slow
    source is seen at once by whoever reads, and a fast one pays nothing for it.
    """

    def __init__(self, raw: io.RawIOBase, label: str, *, live: bool) -> None:
        super().__init__(raw, BUFFER)
        self._label = label
        self._live = live
        self._since = 0.0
        self._writes = 0

    def write(self, data: Any) -> int:
        try:
            count = super().write(data)
            if self._live:
                self._pulse()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(f"{self._label}: {reason(error)}") from error
        return count

    def flush(self) -> None:
        try:
            super().flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(f"{self._label}: {reason(error)}") from error

    def _pulse(self) -> None:
        now = time.monotonic()
        if now - self._since >= _PULSE_S:
            self._since, self._writes = now, 0
        self._writes += 1
        if self._writes <= _PULSE_WRITES:
            super().flush()


def check_output(path: str | Path, *, force: bool = False) -> None:
    """Raise `OutputError` now if `open_output` would: for a command that reads before it writes.

    The output must not exist (unless `force`, or it is a device or FIFO), must not be a folder,
    and must lie in a folder that exists.
    """
    name = str(path)
    if name in _STDOUT:
        return
    try:
        mode = Path(name).stat().st_mode
    except FileNotFoundError:
        folder = Path(os.path.realpath(name)).parent
        if not folder.is_dir():
            raise OutputError(f"{name}: there is no folder {folder}") from None
        return
    except (OSError, ValueError) as error:
        detail = reason(error) if isinstance(error, OSError) else str(error)
        raise OutputError(f"{name}: {detail}") from error
    if stat.S_ISDIR(mode):
        raise OutputError(f"{name}: is a folder")
    if stat.S_ISREG(mode) and not force:
        raise OutputError(f"{name}: exists already (--force overwrites it)")


def written_directly(path: str | Path) -> bool:
    """Tell whether `path` is stdout, a device, a FIFO or a socket."""
    try:
        return str(path) in _STDOUT or not stat.S_ISREG(Path(path).stat().st_mode)
    except OSError:
        return False


@contextlib.contextmanager
def open_output(path: str | Path, *, force: bool = False) -> Iterator[BinaryIO]:
    """Open a file for writing bytes, whole or not at all; `-` is stdout.

    The bytes go to a hidden file beside the place (a symbolic link is followed), which takes the
    name when the block ends, and is removed when the block raises. A new file gets the mode that
    the umask leaves, an overwritten one keeps its own. Stdout, devices and FIFOs are written
    directly; on an exception what was written so far is still flushed to them.

    Raises `OutputError` when the file exists and `force` is not given (also when it appeared in
    the meantime), its folder is missing, or writing fails (a full disk, a file-size limit).
    `BrokenPipeError` is left to `papercuts.app`, which ends the command quietly.
    """
    name = str(path)
    check_output(name, force=force)
    if name in _STDOUT:
        opened = _stdout()
    elif written_directly(name):
        opened = _direct(name)
    else:
        opened = _whole(name, force=force)
    with opened as out, encoded(out, name) as file:
        yield file


@contextlib.contextmanager
def _stdout() -> Iterator[BinaryIO]:
    if sys.stdout is None or sys.stdout.closed:
        raise OutputError("stdout: closed")
    sys.stdout.flush()
    try:
        descriptor = sys.stdout.fileno()
    except io.UnsupportedOperation:  # replaced by an object in memory, as test runners do
        try:
            yield sys.stdout.buffer
        finally:
            sys.stdout.buffer.flush()
        return
    with _flushed(io.FileIO(descriptor, "wb", closefd=False), "stdout") as out:
        yield out


@contextlib.contextmanager
def _direct(name: str) -> Iterator[BinaryIO]:
    try:
        raw = io.FileIO(name, "wb")
    except OSError as error:
        raise OutputError(f"{name}: {reason(error)}") from error
    with _flushed(raw, name) as out:
        yield out


@contextlib.contextmanager
def _flushed(raw: io.FileIO, label: str) -> Iterator[BinaryIO]:
    """Write to `raw` through a buffer that is flushed at the end, also after an exception."""
    out = _Output(raw, label, live=True)
    try:
        yield out
    except BaseException:
        with contextlib.suppress(OSError, OutputError):
            out.flush()
        raise
    else:
        out.flush()
    finally:
        raw.close()  # before the buffer is: what could not be written is not tried again


@contextlib.contextmanager
def _whole(name: str, *, force: bool) -> Iterator[BinaryIO]:
    place = Path(os.path.realpath(name))
    temporary = place.with_name(f".{place.name[:100]}.{os.urandom(6).hex()}.tmp")
    try:
        with create(temporary, name, live=False) as out:
            yield out
        publish(temporary, place, name, force=force)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


@contextlib.contextmanager
def create(path: Path, label: str, *, live: bool, keep: int | None = None) -> Iterator[BinaryIO]:
    """Write `path` through a buffer; with `keep`, after the first `keep` bytes it has already.

    `label` is the name that errors give. On an exception a live file is flushed; what is still in
    the buffer of another is dropped with it.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_EXCL if keep is None else 0)
    try:
        raw = io.FileIO(os.open(path, flags, 0o666), "wb")
        if keep is not None:
            raw.truncate(keep)
            raw.seek(keep)
    except OSError as error:
        raise OutputError(f"{label}: {reason(error)}") from error
    out = _Output(raw, label, live=live)
    try:
        yield out
        out.flush()
    except BaseException:
        if live:
            with contextlib.suppress(OSError, OutputError):
                out.flush()
        raise
    finally:
        raw.close()


def publish(finished: Path, place: Path, label: str, *, force: bool) -> None:
    """Give a finished file its name, and the mode of the file that it replaces.

    Without `force` a file that appeared at `place` in the meantime is left alone.
    """
    try:
        with contextlib.suppress(FileNotFoundError):
            finished.chmod(stat.S_IMODE(place.stat().st_mode))
        if not force:
            try:
                place.hardlink_to(finished)  # unlike a rename, never overwrites
            except FileExistsError:
                raise OutputError(f"{label}: appeared meanwhile (--force overwrites it)") from None
            except OSError:
                pass  # a file system without hard links: the check at the start has to do
            else:
                finished.unlink()
                return
        finished.replace(place)
    except OSError as error:
        raise OutputError(f"{label}: {reason(error)}") from error

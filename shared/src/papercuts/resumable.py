"""Output of long work that may be cut short and taken up again."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from papercuts.compression import SUFFIXES
from papercuts.errors import OutputError, UsageError
from papercuts.files import (
    BUFFER,
    check_output,
    create,
    open_output,
    publish,
    reason,
    written_directly,
)
from papercuts.jsontext import dumps
from papercuts.tables import output_format

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType


class ResumableOutput:
    """JSON Lines that grow in `PATH.part` and take the name `PATH` when the work is complete.

        with ResumableOutput(path, force=force, resume=resume) as out:
            for record in itertools.islice(source, out.done, None):
                out.write(result(record))

    `done` is the number of records that an earlier run left (0 without `resume`). A last line
    that was cut short is removed first. When the block raises, also for Ctrl-C, `PATH.part` stays
    with every record written so far. `PATH.part` is plain text; when `PATH` ends in `.gz`, `.xz`
    or `.zst` it is compressed on completion. A symbolic link is followed.

    With `path` `-`, or a device or FIFO, records are written directly and nothing can be resumed.

    Raises, when made, `UsageError` for `resume` where nothing can be resumed and for a
    `.csv`, and `OutputError`
    when `PATH` exists without `force`, or when `PATH.part` exists and neither `resume` nor
    `force` says what to do with it; on entry `OutputError` when another run holds `PATH.part`.
    """

    def __init__(self, path: str | Path, *, force: bool = False, resume: bool = False) -> None:
        self.done = 0
        self.path = str(path)
        self._force = force
        self._resume = resume
        self._direct = written_directly(path)
        if self._direct:
            if resume:
                raise UsageError("--resume needs --output FILE: there is no file to go on with")
            return
        if output_format(path) != "json":
            raise UsageError(f"{path}: only JSON Lines can be resumed; name it .jsonl")
        check_output(path, force=force)
        self._place = Path(os.path.realpath(path))
        self.part = self._place.with_name(self._place.name + ".part")
        if self.part.exists() and not (resume or force):
            raise OutputError(
                f"{self.part}: an earlier run was cut short"
                " (--resume goes on with it, --force starts again)"
            )

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            if self._direct:
                self._out: BinaryIO = stack.enter_context(open_output(self.path))
            else:
                keep = self._hold(stack)
                self._out = stack.enter_context(
                    create(self.part, str(self.part), live=True, keep=keep)
                )
            self._stack = stack.pop_all()
        return self

    def write(self, record: Mapping[str, Any]) -> None:
        """Add one record."""
        self._out.write(dumps(record))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._stack.__exit__(kind, error, traceback)  # what was done is flushed and kept
            return
        with self._stack:
            if not self._direct:
                self._out.flush()
                self._complete()

    def _hold(self, stack: contextlib.ExitStack) -> int:
        """Lock `PATH.part`, count what is in it, and return how many bytes of it to keep."""
        try:
            descriptor = os.open(self.part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise OutputError(f"{self.part}: {reason(error)}") from error
        stack.callback(os.close, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputError(f"{self.part}: another run is writing it") from None
        except OSError:
            pass  # a file system without locks
        return self._count() if self._resume else 0

    def _count(self) -> int:
        keep = position = 0
        with self.part.open("rb") as file:
            while block := file.read(BUFFER):
                self.done += block.count(b"\n")
                end = block.rfind(b"\n") + 1
                if end:
                    keep = position + end
                position += len(block)
        return keep

    def _complete(self) -> None:
        if self._place.suffix in SUFFIXES:
            with (
                open_output(self._place, force=self._force) as out,
                self.part.open("rb") as file,
            ):
                shutil.copyfileobj(file, out, BUFFER)
            self.part.unlink()
        else:
            publish(self.part, self._place, self.path, force=self._force)

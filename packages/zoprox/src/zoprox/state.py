"""A run's state: finished rounds in OUTPUT.part, from which `--resume` goes on.

The file is a line of JSON (what the run is), then one fixed-length record a round: its numbers, its
particles, and a checksum. A torn or damaged tail is cut off. It is data, read without unpickling.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np

from papercuts.errors import DataError, OutputError, UsageError
from papercuts.files import create, reason
from zoprox.sampler import Round

_FORMAT = 1
_NUMBERS = struct.Struct("<qdddddq")  # number, values_mean, min_ess, median_ess, outside, s, asked
_CHECK = struct.Struct("<I")
_LONGEST_HEADER = 1 << 20


def part_of(output: str | Path) -> Path:
    """Name the state file of an output file (a symbolic link is followed)."""
    place = Path(os.path.realpath(output))
    return place.with_name(place.name + ".part")


def read_about(output: str | Path) -> dict[str, Any] | None:
    """Give what the run behind `output` said of itself, or None where there is no state file.

    Raises `DataError` for a file that is not such a state.
    """
    path = part_of(output)
    try:
        with path.open("rb") as file:
            return _header(file, path)[0]
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OutputError(f"{path}: {reason(error)}") from error


class RunState:
    """The state file of one run, held while rounds are added.

        with RunState(output, about, shape=(N, dim), resume=resume, force=force) as state:
            for round in sample_rounds(..., state.points_or(start), first=state.done + 1):
                state.write(round)
            state.complete()

    `about` says what makes the run what it is; on resume it must equal the stored one in every key
    but those of `free` (the number of rounds, say). `done` is the number of rounds that are
    finished. The file stays when the block raises, also on Ctrl-C, and is removed by `complete`
    when the output is written.

    Raises `OutputError` when a state file exists and neither `resume` nor `force` says what to do
    with it or another run holds it, `UsageError` where it belongs to other settings, and
    `DataError` where it is no state file.
    """

    def __init__(
        self,
        output: str | Path,
        about: Mapping[str, Any],
        *,
        shape: tuple[int, int],
        resume: bool = False,
        force: bool = False,
        free: tuple[str, ...] = ("rounds",),
    ) -> None:
        self.path = part_of(output)
        self.done = 0
        self._about = json.loads(json.dumps({"format": _FORMAT, **about, "shape": list(shape)}))
        self._shape = shape
        self._record = _NUMBERS.size + 8 * shape[0] * shape[1] + _CHECK.size
        self._start = 0
        self._resume = resume
        self._free = free
        if self.path.exists() and not (resume or force):
            raise OutputError(
                f"{self.path}: an earlier run was cut short"
                " (--resume goes on with it, --force starts again)"
            )

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            keep = self._hold(stack)
            self._out: BinaryIO = stack.enter_context(
                create(self.path, str(self.path), live=True, keep=keep)
            )
            if not keep:
                line = json.dumps(self._about, sort_keys=True).encode() + b"\n"
                self._start = len(line)
                self._out.write(line)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, traceback)

    def write(self, round_: Round) -> None:
        """Add a finished round; it must be the one after the last."""
        if round_.number != self.done + 1:
            raise ValueError(f"round {round_.number} cannot follow round {self.done}")
        numbers = (round_.values_mean, round_.min_ess, round_.median_ess, round_.outside)
        data = _NUMBERS.pack(round_.number, *numbers, round_.seconds, round_.evaluations)
        data += np.ascontiguousarray(round_.points, dtype="<f8").tobytes()
        self._out.write(data + _CHECK.pack(zlib.crc32(data)))
        self.done += 1

    def rounds(self, first: int = 1, last: int | None = None) -> list[Round]:
        """Give the finished rounds from number `first` to `last` (of all, when left out)."""
        self._out.flush()
        found = []
        with self.path.open("rb") as file:
            for number in range(max(first, 1), min(self.done, last or self.done) + 1):
                file.seek(self._start + (number - 1) * self._record)
                round_ = self._parse(file.read(self._record))
                if round_ is None:
                    raise DataError(f"round {number} is damaged", path=self.path)
                found.append(round_)
        return found

    def complete(self) -> None:
        """Remove the file: the run's output is written."""
        self.path.unlink(missing_ok=True)

    def _parse(self, data: bytes) -> Round | None:
        if len(data) < self._record:
            return None
        body, check = data[: -_CHECK.size], data[-_CHECK.size :]
        if _CHECK.unpack(check)[0] != zlib.crc32(body):
            return None
        number, mean, least, median, outside, seconds, asked = _NUMBERS.unpack_from(body)
        points = np.frombuffer(body, "<f8", offset=_NUMBERS.size).reshape(self._shape)
        return Round(
            number, points.astype(np.float64), mean, least, median, outside, asked, seconds
        )

    def _hold(self, stack: contextlib.ExitStack) -> int:
        """Lock the file, count its rounds, and give how many bytes of it to keep."""
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise OutputError(f"{self.path}: {reason(error)}") from error
        stack.callback(os.close, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputError(f"{self.path}: another run is writing it") from None
        except OSError:
            pass  # a file system without locks
        return self._count() if self._resume and self.path.stat().st_size else 0

    def _count(self) -> int:
        with self.path.open("rb") as file:
            stored, self._start = _header(file, self.path)
            for key in sorted(set(stored) | set(self._about)):
                if key not in self._free and stored.get(key) != self._about.get(key):
                    raise UsageError(
                        f"{self.path}: that run had {key} {stored.get(key)!r}, not"
                        f" {self._about.get(key)!r} (--force starts again)"
                    )
            while (round_ := self._parse(file.read(self._record))) is not None:
                if round_.number != self.done + 1:
                    break
                self.done += 1
        return self._start + self.done * self._record


def _header(file: BinaryIO, path: Path) -> tuple[dict[str, Any], int]:
    line = file.readline(_LONGEST_HEADER)
    try:
        about = json.loads(line)
    except ValueError:
        about = None
    if not (line.endswith(b"\n") and isinstance(about, dict) and about.get("format") == _FORMAT):
        raise DataError("is not the state of a run (--force starts again)", path=path)
    return about, len(line)

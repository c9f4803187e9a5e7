"""One process behind pipes that never block: what it has to read, what it has printed."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import IO

from zoprox.lineprotocol import shown

_BLOCK = 1 << 18  # bytes moved at once
_TAIL = 4096  # bytes of stderr kept for a message
_LINE = 1024  # bytes that an answer may have
_WORDS = 200  # characters of stderr that a message repeats


@dataclass(frozen=True)
class Ended:
    """How a process ended, in words, and whether that was a failure."""

    how: str
    failed: bool


class Child:
    """A process with pipes on stdin, stdout and stderr, which it makes non-blocking.

    `wanted` is the number of lines that it should print for what it was given, `lines` how many
    it has printed in full.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.piece = slice(0, 0)
        self.wanted = 0
        self.lines = 0
        self.began = self.heard = time.monotonic()
        self.deadline: float | None = None
        self.output_ended = False
        self._output_ended_at = 0.0
        self._input = memoryview(b"")
        self._keep_open = False
        self._output = bytearray()
        self._errors = b""
        self._open: dict[str, int] = {}
        self._registered: dict[str, int] = {}
        self._selector: selectors.BaseSelector | None = None
        for name in ("stdin", "stdout", "stderr"):
            stream: IO[bytes] = getattr(process, name)
            os.set_blocking(stream.fileno(), False)
            self._open[name] = stream.fileno()
        with contextlib.suppress(AttributeError, OSError):  # Linux since 5.3
            self._open["end"] = os.pidfd_open(process.pid)
        self.tells_its_end = "end" in self._open

    # What it reads

    def give(self, data: bytes, piece: slice, wanted: int, *, keep_open: bool) -> None:
        """Have `data` written to it; without `keep_open` its input ends there."""
        self._input = memoryview(data)
        self._keep_open = keep_open
        self.piece = piece
        self.wanted = wanted
        self.lines = 0
        self.began = self.heard = time.monotonic()

    @property
    def all_sent(self) -> bool:
        """Whether everything given has been written (or will never be read)."""
        return not self._input

    def _send(self) -> None:
        try:
            sent = os.write(self._open["stdin"], self._input[:_BLOCK])
        except BlockingIOError:
            return
        except OSError:  # it does not read on, which is its affair: the answers count
            sent = len(self._input)
            self._keep_open = False
        self._input = self._input[sent:]
        if not self._input:
            self._leave("stdin")
            if not self._keep_open and self.process.stdin is not None:
                with contextlib.suppress(OSError):
                    self.process.stdin.close()
                self._open.pop("stdin")

    # What it prints

    @property
    def too_much(self) -> bool:
        """Whether it has printed more than `wanted` numbers can be."""
        return self.lines > self.wanted or len(self._output) > _LINE * (self.wanted + 64)

    def excerpt(self) -> str:
        """Quote the first line that is one too many, or the start of an endless one."""
        lines = bytes(self._output[: _LINE * (self.wanted + 64)]).split(b"\n")
        if len(lines) > self.wanted + 1:
            return f"line {self.wanted + 1} is {shown(lines[self.wanted])}"
        number, line = max(enumerate(lines, 1), key=lambda item: len(item[1]))
        return f"line {number} is {shown(line)}"

    def surplus(self) -> str:
        """Quote what it printed without having been asked; empty where there is nothing."""
        self.drain()
        return shown(bytes(self._output).split(b"\n")[0]) if self._output else ""

    def take_lines(self) -> list[bytes]:
        """Take the lines that it has printed; the last may lack its newline where output ended."""
        *lines, rest = bytes(self._output).split(b"\n")
        self._output.clear()
        if rest and self._keep_open and not self.output_ended:
            self._output += rest
        elif rest:
            lines.append(rest)
        return lines

    def drain(self) -> None:
        """Take what it has printed up to now, without waiting."""
        while not self.output_ended and self._receive() and not self.too_much:
            pass
        while "stderr" in self._open and self._listen():
            pass

    def _receive(self) -> bool:
        data = self._read("stdout")
        if data is None:
            return False
        if not data:
            self.output_ended = True
            self._output_ended_at = time.monotonic()
            return False
        self.heard = time.monotonic()
        self._output += data
        self.lines += data.count(b"\n")
        return True

    def _listen(self) -> bool:
        data = self._read("stderr")
        if data:
            self._errors = (self._errors + data)[-_TAIL:]
        return bool(data)

    def _read(self, name: str) -> bytes | None:
        """Read what is there: None where nothing is yet, nothing where the pipe has ended."""
        try:
            data = os.read(self._open[name], _BLOCK)
        except BlockingIOError:
            return None
        if not data:
            self._leave(name)
            self._open.pop(name)
        return data

    def last_words(self) -> str:
        """Give the last line that it printed on stderr, shortened; empty where there is none."""
        text = self._errors.decode(errors="backslashreplace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if not lines:
            return ""
        last = "".join(c if c.isprintable() else "?" for c in lines[-1])
        return last[:_WORDS] + ("..." if len(last) > _WORDS else "")

    # Its end

    def has_ended(self) -> bool:
        """Tell whether the process has ended."""
        return self.process.poll() is not None

    def silent_for(self, seconds: float) -> bool:
        """Tell whether so much time has passed since it printed something or closed its output."""
        return time.monotonic() - max(self.heard, self._output_ended_at) >= seconds

    def ended(self) -> Ended | None:
        """Say how the process ended, None where it has not."""
        code = self.process.poll()
        if code is None:
            return None
        if code >= 0:
            return Ended(f"exited with status {code}", failed=code != 0)
        with contextlib.suppress(ValueError):
            name = signal.Signals(-code).name
            why = ", most likely out of memory" if code == -signal.SIGKILL else ""
            return Ended(f"was killed ({name}{why})", failed=True)
        return Ended(f"was killed (signal {-code})", failed=True)

    # In the loop that serves it

    def register(self, selector: selectors.BaseSelector) -> None:
        """Have a selector watch its pipes and its end; the key's data is this child and a name."""
        self._selector = selector
        for name, descriptor in self._open.items():
            if name == "stdin" and self.all_sent:
                continue
            event = selectors.EVENT_WRITE if name == "stdin" else selectors.EVENT_READ
            selector.register(descriptor, event, (self, name))
            self._registered[name] = descriptor

    def unregister(self) -> None:
        """Have it watched no longer."""
        for name in list(self._registered):
            self._leave(name)
        self._selector = None

    def move(self, name: str) -> None:
        """Do what a descriptor is ready for."""
        if name not in self._registered:  # left by an earlier event of the same round
            return
        if name == "stdin":
            self._send()
        elif name == "stdout":
            self._receive()
        elif name == "stderr":
            self._listen()
        else:
            self._leave("end")

    def _leave(self, name: str) -> None:
        descriptor = self._registered.pop(name, None)
        if descriptor is not None and self._selector is not None:
            self._selector.unregister(descriptor)

    def close(self) -> None:
        """Let go of the descriptor that tells its end. The pipes are its group's to close."""
        self.unregister()
        descriptor = self._open.pop("end", None)
        if descriptor is not None:
            os.close(descriptor)

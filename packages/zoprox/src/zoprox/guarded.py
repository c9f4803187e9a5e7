"""Processes that end with this one, however it ends, with all that they have started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from types import TracebackType
from typing import Any, Self


class Group:
    """A process group of its own: Ctrl-C in the terminal does not reach it, leaving kills it.

    A guard, its first member, waits for the end of a pipe of which this process holds the other
    end, and kills the group. So nothing stays behind even where this process is killed.
    """

    def __init__(self) -> None:
        end, self._pipe = os.pipe()
        try:
            self._guard = subprocess.Popen(
                ["/bin/sh", "-c", "read nothing; kill -9 0"],
                stdin=end,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                process_group=0,
            )
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            os.close(end)
        self._started: set[subprocess.Popen[bytes]] = set()

    def start(self, command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start a process of the group. Raises `OSError` as `subprocess.Popen` does."""
        process = subprocess.Popen(command, process_group=self._guard.pid, **options)
        self._started.add(process)
        return process

    def forget(self, process: subprocess.Popen[bytes]) -> None:
        """Close what is open to a process that has ended, and hold it no longer."""
        self._started.discard(process)
        _close(process)

    def kill(self) -> None:
        """Kill all processes of the group."""
        if self._guard.returncode is None:  # later, the number may be another group's
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._guard.pid, signal.SIGKILL)
        for process in [self._guard, *self._started]:
            process.kill()  # should it have left the group, as `setsid` does
            process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        os.close(self._pipe)
        for process in self._started:
            _close(process)
        self._started.clear()


def _close(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):  # what was left to write to the dead
                stream.close()

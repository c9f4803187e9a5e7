"""A process beside this one that runs what must not run here.

The solvers of python-sat are C code that holds Python's lock: while one is at work, Ctrl-C and
SIGTERM wait, no limit of time is kept, and a crash takes everything along. So they run in a child,
one call at a time, which serves many calls and is killed and replaced when a call is given up.
"""

from __future__ import annotations

import atexit
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from papercuts.errors import PapercutsError
from satguide.backends import SolverDiedError, SolverError
from satguide.guarded import Group

_START_S = 60.0  # a new process must have imported python-sat by then

T = TypeVar("T")


class OverTimeError(Exception):
    """The time was up; the call was given up."""


def call(function: Callable[..., T], *given: Any, timeout_s: float | None = None) -> T:
    """Run a function of a module in the child, and give what it returns.

    The time begins when the child is ready. Raises `OverTimeError` when it is up, what the
    function raises (`PapercutsError` and `ValueError` as they are, others as `SolverError`), and
    `SolverDiedError` or `SolverError` where the process died.
    """
    answer = _child().ask((function, given), timeout_s)
    if isinstance(answer, BaseException):
        raise answer
    return answer  # type: ignore[no-any-return]


def number() -> int:
    """Give the number of the process that will take the next call: another after each death."""
    return _child().ready()


class _Child:
    def __init__(self) -> None:
        self._group: Group | None = None
        self._process: subprocess.Popen[bytes]
        self._pipe: Connection
        self._number = 0

    def ask(self, question: Any, timeout_s: float | None) -> Any:
        self.ready()
        try:
            self._pipe.send(question)
            if timeout_s is None or self._pipe.poll(timeout_s):
                return self._pipe.recv()
        except (EOFError, OSError) as error:
            code = self._process.wait()
            self.kill()
            if code == -signal.SIGKILL:
                raise SolverDiedError(
                    "the process of a solver was killed: most likely out of memory"
                ) from error
            how = signal.Signals(-code).name if code < 0 else f"status {code}"
            raise SolverError(f"the process of a solver crashed ({how})") from error
        except BaseException:  # Ctrl-C too: it would answer the next question with this one's
            self.kill()
            raise
        self.kill()
        raise OverTimeError

    def ready(self) -> int:
        if self._group is not None and self._process.poll() is None:
            return self._number
        self.kill()
        ours, theirs = socket.socketpair()
        self._group = Group()
        self._pipe = Connection(ours.detach())
        self._number += 1
        try:
            with theirs:
                self._process = self._group.start(
                    [sys.executable, "-P", "-m", "satguide.child", str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                )
            if self._pipe.poll(_START_S) and self._pipe.recv():
                return self._number
        except (EOFError, OSError):
            pass
        except BaseException:
            self.kill()
            raise
        self.kill()
        raise SolverError("the process of a solver did not start")

    def kill(self) -> None:
        """End the process now; the next question starts another."""
        group, self._group = self._group, None
        if group is not None:
            with group:
                self._pipe.close()


@cache
def _child() -> _Child:
    child = _Child()
    atexit.register(child.kill)
    return child


def _serve(pipe: Connection) -> None:
    from satguide.pysat_backend import python_sat

    python_sat()  # before the clock runs
    pipe.send("ready")
    while True:
        try:
            function, given = pipe.recv()
        except (EOFError, OSError):
            return
        answer: Any
        try:
            answer = function(*given)
        except MemoryError:
            answer = SolverDiedError("a solver ran out of memory")
        except (PapercutsError, ValueError) as error:
            answer = error
        except Exception as error:  # noqa: BLE001 (raised again in the parent)
            answer = SolverError(f"a solver failed: {type(error).__name__}: {error}")
        pipe.send(answer)


if __name__ == "__main__":
    _serve(Connection(int(sys.argv[1])))

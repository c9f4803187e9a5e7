"""The worker processes of this machine behind `papercuts.parallel`.

One pipe to each worker, one chunk at a time on it: a worker that dies is known at once, with the
items it had. Idle workers wait in a pool for the next call.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import traceback
import warnings
from dataclasses import dataclass
from multiprocessing import connection, resource_tracker
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from papercuts.errors import PapercutsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
)
_FAREWELL_S = 1.0
_HELD = (signal.SIGINT, signal.SIGTERM)
_FUNCTION = b"F"
_CHUNK = b"C"


class WorkerDiedError(PapercutsError):
    """A worker process ended in the middle of its work."""


class _RemoteError(Exception):
    """The traceback of the worker, as the cause of the exception that it sent."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


@dataclass(frozen=True)
class Failure:
    """What ended a chunk early: an exception, what to add to it, and the worker's traceback."""

    error: Exception
    note: str = ""
    traceback: str = ""

    def exception(self) -> Exception:
        """Return the exception to raise, with the worker's traceback as its cause."""
        if self.note:
            self.error.add_note(self.note)
        if self.traceback:
            self.error.__cause__ = _RemoteError(self.traceback)
        return self.error


@dataclass(frozen=True)
class Outcome:
    """The results of a chunk, up to its failure if it has one."""

    results: list[Any]
    failure: Failure | None = None


def run_chunk(fn: Callable[[Any], Any], first: int, items: list[Any]) -> Outcome:
    """Apply `fn` to the items of a chunk, whose first is the item number `first`."""
    results = []
    for index, item in enumerate(items, first):
        try:
            results.append(fn(item))
        except Exception as error:  # noqa: BLE001 (raised again in the parent)
            return Outcome(results, failure_of(error, f"raised by item {index}"))
    return Outcome(results)


def failure_of(error: Exception, note: str) -> Failure:
    """Return the failure that stands for an exception just caught, fit to be pickled.

    An exception that would not survive pickling is replaced by one that says the same.
    """
    text = traceback.format_exc()
    try:
        survives = type(pickle.loads(pickle.dumps(error))) is type(error)  # noqa: S301 (our own)
    except Exception:  # noqa: BLE001 (whatever its __init__ or __reduce__ does)
        survives = False
    if not survives:
        error = PapercutsError(f"{type(error).__name__}: {error}")
    return Failure(error, note, text)


class _Worker:
    """One process and the pipe to it."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,))
        self._task = (0, 0, 0)  # number of the chunk, its first item, its last item
        # Otherwise `start` starts it, which lets the signals through that `_spawning` holds. It
        # warns where somebody (Ray, as it ends) has killed it; no worker here has use for it.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            resource_tracker.ensure_running()
        with _spawning():
            self._process.start()
            _started.add(self)
        theirs.close()

    @property
    def handles(self) -> tuple[Connection, int]:
        """What becomes ready when the worker has answered, or has died."""
        return self._pipe, self._process.sentinel

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def send(self, payload: bytes) -> None:
        """Send a message. A worker that has died says so in `answer`, not here."""
        with contextlib.suppress(OSError):
            self._pipe.send_bytes(payload)

    def submit(self, number: int, first: int, items: list[Any]) -> None:
        """Send a chunk of items."""
        self._task = number, first, first + len(items) - 1
        self.send(_pickled(_CHUNK, (first, items), "the items"))

    def answer(self) -> tuple[int, Outcome]:
        """Return the chunk's number and its outcome, which may be the death of the worker."""
        number, first, last = self._task
        try:
            if self._pipe.poll():
                outcome: Outcome = pickle.loads(self._pipe.recv_bytes())  # noqa: S301 (our child)
                return number, outcome
        except (EOFError, OSError):
            pass
        self._process.join(_FAREWELL_S)  # its pipe closes a moment before it has a status
        self.kill()
        return number, Outcome([], Failure(self._obituary(first, last)))

    def _obituary(self, first: int, last: int) -> WorkerDiedError:
        code = self._process.exitcode or 0
        items = f"item {first}" if first == last else f"one of the items {first} to {last}"
        if code == -signal.SIGKILL:
            how = "was killed (SIGKILL): most likely out of memory, try fewer --jobs"
        elif code < 0:
            how = f"was ended by {signal.Signals(-code).name}: a crash in a library, or a kill"
        else:
            how = f"exited with status {code}: something called exit, or it could not start"
        return WorkerDiedError(f"the worker process at {items} {how}")

    def dismiss(self) -> None:
        """Let an idle worker end by itself."""
        self._pipe.close()

    def join(self, deadline: float) -> None:
        """Wait for a dismissed worker to end, and kill it at `deadline` (monotonic, seconds)."""
        self._process.join(max(0.0, deadline - time.monotonic()))
        self.kill()

    def kill(self) -> None:
        """End the worker, and the processes in its group, now."""
        _started.discard(self)
        self._pipe.close()
        pid = self._process.pid
        if self._process.exitcode is None and pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            self._process.kill()  # should it not lead its group yet
        self._process.join()


class Team:
    """The workers of one `ordered_map`: at most `size`, taken from the pool or started."""

    def __init__(self, fn: Callable[[Any], Any], size: int) -> None:
        self.size = size
        self._function = _pickled(_FUNCTION, fn, "the function")
        self._free: list[_Worker] = []
        self._busy: list[_Worker] = []

    def free(self) -> bool:
        """Tell whether a worker is free or may be started."""
        return bool(self._free) or len(self._busy) < self.size

    def submit(self, number: int, first: int, items: list[Any]) -> None:
        """Hand a chunk, whose first item is the item `first`, to a free worker."""
        worker = self._free.pop() if self._free else self._enlist()
        self._busy.append(worker)
        worker.submit(number, first, items)

    def _enlist(self) -> _Worker:
        while _idle:
            worker = _idle.pop()
            if worker.alive:
                break
            worker.kill()
        else:
            worker = _Worker()
        worker.send(self._function)
        return worker

    def wait(self, *, block: bool) -> list[tuple[int, Outcome]]:
        """Return the chunks that are done; with `block`, wait for at least one."""
        if not self._busy:
            return []
        owners = {handle: worker for worker in self._busy for handle in worker.handles}
        ready = connection.wait(list(owners), None if block else 0)
        answers = []
        for worker in dict.fromkeys(owners[handle] for handle in ready):  # type: ignore[index]
            answers.append(worker.answer())
            self._busy.remove(worker)
            if worker in _started:
                self._free.append(worker)
        return answers

    def release(self) -> None:
        """Kill the workers that are still busy, and give the others back to the pool."""
        _idle.extend(self._free)
        self._free.clear()
        while self._busy:
            self._busy.pop().kill()


_started: set[_Worker] = set()
_idle: list[_Worker] = []


def close() -> None:
    """End the idle workers. Called at exit too; the next map starts new ones."""
    leaving = [_idle.pop() for _ in range(len(_idle))]
    for worker in leaving:
        worker.dismiss()
    deadline = time.monotonic() + _FAREWELL_S
    for worker in leaving:
        worker.join(deadline)


@atexit.register  # after multiprocessing's own handler, so it runs before that one joins them
def _close_all() -> None:
    close()
    for worker in list(_started):
        worker.kill()


def _forget() -> None:
    _idle.clear()
    _started.clear()


os.register_at_fork(after_in_child=_forget)  # they are the children of the parent only


@contextlib.contextmanager
def _spawning() -> Iterator[None]:
    """Give a process about to start one thread, no Ctrl-C before it can handle it, and no stdin.

    Ctrl-C goes to every process of the terminal's group, and a worker has just joined it.
    A `__main__` that was read from stdin has no file that the worker could import.
    """
    threads = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    readable = file is None or main.__spec__ is not None or Path(file).is_file()
    if not readable:
        sys.modules["__main__"] = ModuleType("__main__")
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        for name, value in threads.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _pickled(kind: bytes, value: Any, what: str) -> bytes:
    try:
        return kind + pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        error.add_note(f"{what} must be picklable to be sent to a worker process")
        raise


def _serve(pipe: Connection) -> None:
    """Be a worker: take chunks from the pipe until it is closed."""
    os.setpgid(0, 0)  # to be killed with all that `fn` starts; and Ctrl-C is for the parent
    for held in _HELD:
        signal.signal(held, signal.SIG_IGN)  # forgets one that came while it was held back
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD)
    for held in _HELD:
        signal.signal(held, signal.SIG_DFL)
    threading.Thread(target=_follow_parent, daemon=True).start()
    fn: Callable[[Any], Any] | Failure | None = None
    try:
        while True:
            message = pipe.recv_bytes()
            if message[:1] == _FUNCTION:
                fn = _loaded(message, "the function")
            else:
                pipe.send_bytes(_answer(fn, _loaded(message, "the items")))
    except (EOFError, OSError):
        _close_all()  # of a map inside `fn`; a child process does not run atexit


def _follow_parent() -> None:
    """End with the parent, however it ends."""
    parent = multiprocessing.parent_process()
    assert parent is not None  # noqa: S101 (a worker has one)
    parent.join()
    os.killpg(os.getpid(), signal.SIGKILL)


def _loaded(message: bytes, what: str) -> Any:
    try:
        return pickle.loads(memoryview(message)[1:])  # noqa: S301 (from our parent)
    except Exception as error:  # noqa: BLE001 (sent back)
        note = f"{what} must be importable in a fresh process: define it in a module"
        return failure_of(error, note)


def _answer(fn: Any, chunk: Any) -> bytes:
    if isinstance(fn, Failure) or isinstance(chunk, Failure):
        return pickle.dumps(Outcome([], fn if isinstance(fn, Failure) else chunk))
    outcome = run_chunk(fn, *chunk)
    try:
        return pickle.dumps(outcome, pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # noqa: BLE001 (sent back)
        note = "the results must be picklable to be sent back by a worker process"
        return pickle.dumps(Outcome([], failure_of(error, note)))

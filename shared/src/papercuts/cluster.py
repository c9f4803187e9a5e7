"""The Ray side of `papercuts.parallel`: the same chunks, computed by a cluster."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from typing import TYPE_CHECKING, Any

from papercuts.errors import MissingError, UsageError
from papercuts.workers import Failure, Outcome, WorkerDiedError, run_chunk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_REACH_S = 10.0


class RayTeam:
    """The tasks of one `ordered_map` on a Ray cluster, at most `jobs` at a time.

    `address` is `"local"` (a cluster of this machine alone, of `jobs` or all cores, that ends
    with the process), `"auto"`, or `HOST:PORT`; a connection that exists already is used as it
    is. The machines of the cluster need the tool installed. Each task has one core, and with it
    one OpenMP thread; a task whose worker dies is not tried again. Raises `MissingError` when Ray
    is not installed and when no cluster answers at the address, `UsageError` when it is none.
    """

    def __init__(self, fn: Callable[[Any], Any], address: str, jobs: int | None) -> None:
        ray = self._ray = _ray()
        if not ray.is_initialized():
            _connect(ray, address, jobs)
        self.size = jobs or max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._task = ray.remote(num_cpus=1, max_retries=0)(run_chunk)
        self._fn = ray.put(fn)  # sent to each machine once
        self._pending: dict[Any, tuple[int, int, int]] = {}

    def free(self) -> bool:
        """Tell whether another task may be started."""
        return len(self._pending) < self.size

    def submit(self, number: int, first: int, items: list[Any]) -> None:
        """Start a task for a chunk, whose first item is the item `first`."""
        task = self._task.remote(self._fn, first, items)
        self._pending[task] = number, first, first + len(items) - 1

    def wait(self, *, block: bool) -> list[tuple[int, Outcome]]:
        """Return the chunks that are done; with `block`, wait for at least one."""
        if not self._pending:
            return []
        tasks = list(self._pending)
        ready, _ = self._ray.wait(tasks, num_returns=1, timeout=None if block else 0)
        return [self._answer(task, *self._pending.pop(task)) for task in ready]

    def _answer(self, task: Any, number: int, first: int, last: int) -> tuple[int, Outcome]:
        try:
            return number, self._ray.get(task)
        except self._ray.exceptions.RayTaskError as error:
            # `run_chunk` catches what `fn` raises, so this is the passage there or back.
            note = f"items {first} to {last}: the function, items and results must be picklable"
            return number, Outcome([], Failure(error, note))
        except self._ray.exceptions.RayError as error:
            items = f"item {first}" if first == last else f"one of the items {first} to {last}"
            text = str(error).strip().partition("\n")[0]
            died = WorkerDiedError(
                f"the Ray worker at {items} was lost: out of memory, a crash in a library, or"
                f" something called exit ({text})"
            )
            return number, Outcome([], Failure(died))

    def release(self) -> None:
        """Cancel what is still being computed."""
        for task in self._pending:
            self._ray.cancel(task, force=True)
        self._pending.clear()


def _ray() -> Any:
    # Read when Ray is imported: no telemetry, and no second environment built by `uv run`.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    try:
        import ray
    except ImportError as error:
        raise MissingError(
            "--ray needs Ray, which is not installed here: add it with the tool's extra,"
            ' uv tool install "papercuts-TOOL[ray] @ git+URL#subdirectory=packages/TOOL"'
        ) from error
    return ray


def _connect(ray: Any, address: str, jobs: int | None) -> None:
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == "local":
        from papercuts.hardware import cores

        options |= {"num_cpus": jobs or cores(), "include_dashboard": False}
    elif address != "auto":
        _reach(address)
    with _own_sigterm():
        try:
            ray.init(address=address, **options)
        except (ConnectionError, ValueError, RuntimeError) as error:
            text = str(error).strip().partition("\n")[0]
            raise MissingError(f"--ray {address}: no cluster there ({text})") from error


def _reach(address: str) -> None:
    """Raise `MissingError` soon when nothing answers there; Ray itself would try for minutes."""
    host, _, port = address.rpartition("//")[2].rpartition(":")
    try:
        socket.create_connection((host, int(port)), _REACH_S).close()
    except ValueError:
        raise UsageError(f"--ray {address}: give local, auto or HOST:PORT") from None
    except OSError as error:
        raise MissingError(f"--ray {address}: no cluster there ({error.strerror})") from error


@contextlib.contextmanager
def _own_sigterm() -> Iterator[None]:
    """Keep the process's own handler of SIGTERM, which `ray.init` replaces."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)

"""One ordered map over processes on this machine, or over a Ray cluster when the user names one.

    for score in ordered_map(score_record, records, jobs=jobs, ray=ray):
        ...

Results come in the order of the items, whatever the number of workers. Items are taken from the
iterable only as workers become free and at most a fixed number of items are between the two ends,
so an endless stream needs constant memory.

Workers are spawned, never forked (forking after torch has run hangs), with one BLAS, OpenMP and
torch thread each; they are kept for the next call, and leave when the process does. `fn`, the
items and the results must be picklable, `fn` a function that a fresh process can import. As with
every spawned process, a script that calls this needs `if __name__ == "__main__":`; a console
script has it.

Randomness: derive a seed for each item with `seed_for`, so that no result depends on which worker
made it.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from papercuts.errors import UsageError
from papercuts.workers import Outcome, Team, WorkerDiedError, close

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["WorkerDiedError", "close", "ordered_map", "seed_for"]

T = TypeVar("T")
R = TypeVar("R")

# Finished chunks that wait behind a slow one, per worker: enough to keep the others at work.
_WINDOW_PER_WORKER = 16


def seed_for(seed: int, index: int) -> int:
    """Return the seed of the item `index` under the user's `seed`: 0 <= result < 2**63.

    It depends on nothing else, so results are the same under any `--jobs` and `--ray`. Seeds of
    different items, or of one item under different seeds, are unrelated.
    """
    digest = hashlib.blake2b(f"{seed}:{index}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def ordered_map(
    fn: Callable[[T], R],
    items: Iterable[T],
    *,
    jobs: int | None = None,
    ray: str | None = None,
    chunk: int = 1,
) -> Iterator[R]:
    """Yield `fn(item)` for each item, in order, computed by `jobs` worker processes.

    `jobs=None` means every core that this process may use (with `ray`, that the cluster has);
    `jobs=1` without `ray` works in this process. `ray` is the address of a cluster, or `"local"`
    for one on this machine. Raise `chunk`, the number of items sent at once, when an item takes
    well under a millisecond. In this process too `fn` runs with one torch thread, so that sums
    come out the same; numpy's BLAS is single-threaded in workers only.

    What `fn` raises is raised here, after the results of the items before it, with its own type
    and a note that names the item; so is what `items` raises. A worker that dies gives a
    `WorkerDiedError`. When the iterator is closed early, or on Ctrl-C, workers that are busy are
    killed with the processes they started. Raises at once `UsageError` for `jobs` under 1, and
    `MissingError` when `ray` is asked for and not installed.
    """
    if jobs is not None and jobs < 1:
        raise UsageError(f"--jobs {jobs}: there must be at least one")
    if chunk < 1:
        raise ValueError(f"chunk must be at least 1, not {chunk}")
    if ray is not None:
        from papercuts.cluster import RayTeam

        return _mapped(RayTeam(fn, ray, jobs), items, chunk)
    if jobs is None:
        from papercuts.hardware import cores

        jobs = cores()
    if jobs == 1:
        return _in_process(fn, items)
    return _mapped(Team(fn, jobs), items, chunk)


class _Team(Protocol):
    """What computes chunks: local processes or a cluster."""

    size: int

    def submit(self, number: int, first: int, items: list[Any]) -> None:
        """Hand a chunk, whose first item is the item `first`, to a free worker."""

    def free(self) -> bool:
        """Tell whether a worker is free."""

    def wait(self, *, block: bool) -> list[tuple[int, Outcome]]:
        """Return the chunks that are done; with `block`, wait for at least one."""

    def release(self) -> None:
        """Give up what is still being computed."""


def _in_process(fn: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    for index, item in enumerate(items):
        with _one_torch_thread():
            try:
                result = fn(item)
            except Exception as error:
                error.add_note(f"raised by item {index}")
                raise
        yield result


@contextlib.contextmanager
def _one_torch_thread() -> Iterator[None]:
    torch = sys.modules.get("torch")
    threads = 1 if torch is None else torch.get_num_threads()
    if torch is None or threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _mapped(team: _Team, items: Iterable[Any], size: int) -> Iterator[Any]:
    """Feed chunks to a team and yield the results in order."""
    source = _Source(items, size)
    waiting: deque[int] = deque()  # numbers of the chunks that are not yielded yet, in order
    outcomes: dict[int, Outcome] = {}
    numbers = 0
    failed = False
    window = _WINDOW_PER_WORKER * team.size
    try:
        while True:
            while team.free() and len(waiting) < window and not failed:
                first, chunk = source.take()
                if not chunk:
                    break
                numbers += 1
                waiting.append(numbers)
                team.submit(numbers, first, chunk)
            if not waiting:
                break
            for number, outcome in team.wait(block=waiting[0] not in outcomes):
                outcomes[number] = outcome
                failed = failed or outcome.failure is not None
            if waiting[0] in outcomes:
                outcome = outcomes.pop(waiting.popleft())
                yield from outcome.results
                if outcome.failure is not None:
                    raise outcome.failure.exception()
    finally:
        team.release()
    if source.error is not None:
        raise source.error


class _Source:
    """The items in chunks. What the iterable raises is kept until the items before it are done."""

    def __init__(self, items: Iterable[Any], size: int) -> None:
        self._items = iter(items)
        self._size = size
        self._taken = 0
        self._ended = False
        self.error: Exception | None = None

    def take(self) -> tuple[int, list[Any]]:
        """Return the index of the next chunk's first item, and the chunk, empty at the end."""
        chunk: list[Any] = []
        first = self._taken
        while not self._ended and len(chunk) < self._size:
            try:
                chunk.append(next(self._items))
            except StopIteration:
                self._ended = True
            except Exception as error:  # noqa: BLE001 (raised again by the caller)
                self._ended = True
                self.error = error
        self._taken += len(chunk)
        return first, chunk

"""Run a plan's tasks on threads: what must wait waits, what is free goes in any order.

Each processor of the plan takes its tasks one after another. A thread carries a processor on until
its next task has to wait for the one before it in its sum; the processor is then put aside and the
thread takes another. So any number of threads runs a plan of any number of processors.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from bitsched.plan import Plan, counted
from bitsched.taskgraph import predecessors, sums
from papercuts.errors import NegativeResult

T = TypeVar("T")


def execute(
    plan: Plan,
    compute: Callable[[int], T],
    add: Callable[[int, T], None],
    *,
    threads: int,
    delays_s: Sequence[float] | None = None,
) -> list[int]:
    """Call `compute(task)` and then `add(task, result)` once for each task, and give their order.

    Of the tasks that add to one dQ tile of an ordered plan, `add` is called in the order of their
    ranks. Where the order is open they add as they come, one at a time. A thread sleeps
    `delays_s[task]` seconds between the two calls. The order is that in which the additions ended.
    An error in a call, and Ctrl-C, end all threads before they go on. Raises `NegativeResult`
    when the tasks left wait for one another.
    """
    return _Execution(plan, compute, add, delays_s).run(threads)


class _Execution(Generic[T]):
    """One run: which processors can go on, which wait for which task."""

    def __init__(
        self,
        plan: Plan,
        compute: Callable[[int], T],
        add: Callable[[int, T], None],
        delays_s: Sequence[float] | None,
    ) -> None:
        self.compute, self.add, self.delays_s = compute, add, delays_s
        self.next = plan.starts[:-1].tolist()
        self.last = plan.starts[1:].tolist()
        self.before = predecessors(plan).tolist()
        self.ordered = plan.ordered
        target = sums(plan).tolist()
        # Only the open order needs them: a fixed one lets one task of a sum add at a time.
        locks = {sum_: threading.Lock() for sum_ in set(target)} if not plan.ordered else {}
        self.locks = [locks.get(sum_) for sum_ in target]
        self.changed = threading.Condition()
        self.ready = deque(p for p in range(plan.processors) if self.next[p] < self.last[p])
        self.waiting: dict[int, int] = {}  # task: the processor that waits for it
        self.computed: dict[int, T] = {}  # results of the processors put aside
        self.done = bytearray(plan.tasks)
        self.order: list[int] = []
        self.running = 0
        self.error: BaseException | None = None

    def run(self, threads: int) -> list[int]:
        # Until Python 3.12, Ctrl-C during a thread's join can mark it as ended while it still runs:
        # so each says itself that it has, and is joined after.
        left = [threading.Event() for _ in range(threads)]
        crew = [threading.Thread(target=self._work, args=(e,), daemon=True) for e in left]
        try:
            with self.changed:  # none takes a processor before all are there
                for thread in crew:
                    thread.start()
            for event in left:
                # Python hands a signal to the main thread only between two waits.
                while not event.wait(timeout=0.2):
                    pass
        except BaseException as error:
            self._end(error)
            for thread, event in zip(crew, left, strict=True):
                if thread.ident is not None:
                    event.wait()
                    thread.join()
            raise
        for thread in crew:
            thread.join()
        if self.error is not None:
            raise self.error
        if len(self.order) < len(self.done):
            left_over = counted(len(self.done) - len(self.order), "task")
            raise NegativeResult(f"deadlock: {left_over} left, and none of them can run")
        return self.order

    def _work(self, left: threading.Event) -> None:
        try:
            while (processor := self._take()) is not None:
                self._carry_on(processor)
                with self.changed:
                    self.running -= 1
                    self.changed.notify_all()
        except BaseException as error:  # noqa: BLE001 (raised again, in the thread that waits)
            self._end(error)
        finally:
            left.set()

    def _take(self) -> int | None:
        """Wait for a processor that can go on; None when there will be none."""
        with self.changed:
            while not self.ready and self.running and self.error is None:
                self.changed.wait()
            if not self.ready or self.error is not None:
                return None
            self.running += 1
            return self.ready.popleft()

    def _carry_on(self, processor: int) -> None:
        """Run a processor's tasks until one must wait, or to the end."""
        while self.next[processor] < self.last[processor] and self.error is None:
            task = self.next[processor]
            if task in self.computed:
                result = self.computed.pop(task)
            else:
                result = self.compute(task)
                if self.delays_s is not None:
                    time.sleep(self.delays_s[task])
            before = self.before[task]
            with self.changed:
                if before >= 0 and not self.done[before]:
                    self.computed[task] = result
                    self.waiting[before] = processor
                    return
            self._add(task, result)
            self.next[processor] += 1

    def _add(self, task: int, result: T) -> None:
        lock = self.locks[task]
        if lock is None:
            self.add(task, result)
        else:
            with lock:
                self.add(task, result)
        with self.changed:
            self.done[task] = 1
            self.order.append(task)
            waiting = self.waiting.pop(task, None)
            if waiting is not None:
                self.ready.append(waiting)
                self.changed.notify()

    def _end(self, error: BaseException) -> None:
        with self.changed:
            self.error = self.error or error
            self.changed.notify_all()

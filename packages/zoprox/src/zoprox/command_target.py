"""A target that is a command: it reads points on its stdin and prints a number for each.

The points of a call are cut into pieces, each for one process. In mode `batch` the process is a
new one, which reads to the end of its input before it has to answer: any filter will do. In mode
`stream` it stays for the next piece and must print (and flush) every answer without waiting for
more. How points are cut does not depend on how many processes run at once, so neither do answers.

One loop serves the pipes of all processes as they become ready, so none can fill up while this
process waits at another.
"""

from __future__ import annotations

import selectors
import shlex
import subprocess
import time
from collections import deque
from types import TracebackType
from typing import Literal, Self

import numpy as np

from papercuts.errors import DataError, MissingError, TryLaterError, UsageError
from papercuts.files import reason
from papercuts.log import get_logger
from zoprox.childprocess import Child, Ended
from zoprox.guarded import Group
from zoprox.lineprotocol import point_lines, read_values
from zoprox.potential import Points, Values

Mode = Literal["batch", "stream"]
MODES: tuple[Mode, ...] = ("batch", "stream")

MOST_POINTS = 5000  # in a piece: more fills no process better, and memory more
FEWEST_POINTS = 100  # else starting a process takes longer than its answers
PIECES = 16  # of a call, between these two
SILENCE_S = 30.0  # after which a person is told what may be wrong
_GRACE_S = 1.0  # between the end of a process's output and its own
_TICK_S = 0.02  # where the system cannot tell when a process ends


def piece_size(points: int, chunk: int | None = None) -> int:
    """Give how many of so many points a process gets at once; `chunk` where the user says so."""
    if chunk is not None:
        return chunk
    return max(FEWEST_POINTS, min(MOST_POINTS, -(-points // PIECES)))


class CommandTarget:
    """A command line, run without a shell, that is asked for values. Use it in a `with` block.

    At most `jobs` processes run at once (default: the cores that this process may use). `words`:
    true and false are answers too. Raises `UsageError` for a command that is empty or whose
    quotes do not close. When the block ends, however it does, all processes are killed, with
    those that they started.
    """

    def __init__(
        self,
        command: str,
        *,
        mode: Mode = "batch",
        jobs: int | None = None,
        timeout_s: float | None = None,
        chunk: int | None = None,
        words: bool = False,
    ) -> None:
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"--exec {command!r}: {error}") from error
        if not self._words:
            raise UsageError("--exec needs a command, as in --exec './simulator --loglik'")
        if jobs is None:
            from papercuts.hardware import cores

            jobs = cores()
        self.who = f"--exec {self._words[0]}:"
        self._jobs = jobs
        self._mode = mode
        self._timeout_s = timeout_s
        self._chunk = chunk
        self._truth = words
        self._group: Group | None = None
        self._idle: list[Child] = []
        self._told = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        group, self._group = self._group, None
        for child in self._idle:
            child.close()
        self._idle.clear()
        if group is not None:
            with group:
                pass

    def __call__(self, points: Points) -> Values:
        """Give what the command printed for every row of `points` [n, dim]: [n], unchecked.

        Raises `MissingError` for a command that cannot be started, `DataError` for one that dies
        or prints something else than a number for each point, `TryLaterError` for a process that
        takes longer than `timeout_s` for its piece.
        """
        size = piece_size(len(points), self._chunk)
        waiting = deque(range(0, len(points), size))
        values = np.empty(len(points))
        with selectors.DefaultSelector() as selector:
            busy: list[Child] = []
            try:
                while waiting or busy:
                    while waiting and len(busy) < self._jobs:
                        child = self._child()
                        busy.append(child)
                        first = waiting.popleft()
                        self._give(child, selector, points, slice(first, first + size))
                    self._serve(selector, busy)
                    for child in [child for child in busy if self._is_done(child)]:
                        values[child.piece] = self._answers(child, points)
                        busy.remove(child)
                        self._release(child)
            finally:
                for child in busy:  # only after an error: the end of the block kills them
                    child.close()
        return values

    def _child(self) -> Child:
        if self._idle:
            return self._idle.pop()
        if self._group is None:
            self._group = Group()
        try:
            process = self._group.start(
                self._words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
            )
        except (OSError, ValueError) as error:
            why = reason(error) if isinstance(error, OSError) else str(error)
            raise MissingError(
                f"--exec {self._words[0]}: cannot be started: {why} (it must be a program on the "
                "PATH, or a path as ./simulator; it runs without a shell)"
            ) from error
        return Child(process)

    def _give(
        self,
        child: Child,
        selector: selectors.BaseSelector,
        points: Points,
        piece: slice,
    ) -> None:
        if child.wanted:
            self._refuse_surplus(child)
        given = points[piece]
        child.give(point_lines(given), piece, len(given), keep_open=self._mode == "stream")
        child.register(selector)
        child.deadline = None if self._timeout_s is None else child.began + self._timeout_s

    def _serve(self, selector: selectors.BaseSelector, busy: list[Child]) -> None:
        """Wait until something is ready and move what is; say when time is up."""
        now = time.monotonic()
        limits = [child.deadline - now for child in busy if child.deadline is not None]
        limits.append(SILENCE_S)
        if any(c.output_ended or c.lines >= c.wanted or c.has_ended() for c in busy):
            # A process lives on behind its output, or has left something that holds it open.
            limits.append(_GRACE_S / 4 if all(child.tells_its_end for child in busy) else _TICK_S)
        elif not all(child.tells_its_end for child in busy):
            limits.append(10 * _TICK_S)
        ready = selector.select(max(0.0, min(limits)))
        for key, _ in ready:
            child, what = key.data
            child.move(what)
            if child.too_much:
                raise DataError(
                    f"{self.who} printed more than a number for each of {child.wanted} points: "
                    f"{child.excerpt()}",
                    expected="one number a line, for each line that it reads",
                )
        now = time.monotonic()
        for child in busy:
            if child.deadline is not None and now >= child.deadline:
                raise TryLaterError(
                    f"{self.who} {child.lines} of {child.wanted} answers after "
                    f"{self._timeout_s:g} s (--timeout allows more{self._buffering()})"
                )
        if not ready and not self._told and now - max(c.heard for c in busy) >= SILENCE_S:
            self._told = True
            get_logger(__name__).warning(
                f"{self.who} no answer for {SILENCE_S:g} s: --timeout S would give up"
                f"{self._buffering()}"
            )

    def _buffering(self) -> str:
        if self._mode == "batch":
            return ""
        return "; a program that keeps its output in a buffer needs --exec-mode batch"

    def _is_done(self, child: Child) -> bool:
        """Tell whether nothing more is to come from a process for its piece."""
        answered = child.lines >= child.wanted
        if self._mode == "stream" and answered and child.all_sent:
            return True
        ended = child.ended()
        if ended is None:
            # It closed its output and lives on: a short answer waits no longer for its status.
            return child.output_ended and not answered and child.silent_for(_GRACE_S)
        if ended.failed or child.output_ended or answered:
            return True
        # What it left running holds its output open, and may still print.
        return child.silent_for(_GRACE_S)

    def _answers(self, child: Child, points: Points) -> Values:
        """Read what a process printed for its piece, or say why it cannot be read."""
        given = points[child.piece]
        child.drain()
        ended = child.ended()
        died = ended is not None and ended.failed
        left = self._mode == "stream" and child.lines < child.wanted
        if died or left:
            raise self._obituary(child, ended)
        lines = child.take_lines()
        if len(lines) != child.wanted:
            raise DataError(
                f"{self.who} printed {_lines(len(lines))} for {child.wanted} points"
                + self._last_words(child, "; on stderr: "),
                expected="one number a line, for each line that it reads",
            )
        return read_values(lines, given, words=self._truth, who=self.who.removesuffix(":"))

    def _obituary(self, child: Child, ended: Ended | None) -> DataError:
        how = "closed its output" if ended is None else ended.how
        hint = ""
        if ended is not None and not ended.failed and self._mode == "stream":
            hint = " (a command that answers once and ends needs --exec-mode batch)"
        return DataError(
            f"{self.who} {how} after {child.lines} of {child.wanted} answers"
            + self._last_words(child, ": ")
            + hint
        )

    def _last_words(self, child: Child, before: str) -> str:
        last = child.last_words()
        return f"{before}{last}" if last else ""

    def _refuse_surplus(self, child: Child) -> None:
        """Raise where a process that stays has printed something that nobody asked for."""
        surplus = child.surplus()
        if surplus:
            raise DataError(
                f"{self.who} printed more lines than it read: {surplus}",
                expected="one number a line, for each line that it reads",
            )

    def _release(self, child: Child) -> None:
        child.unregister()
        if self._mode == "stream":  # also one that has ended: it is told when it is needed again
            self._idle.append(child)
            return
        child.close()
        if self._group is not None and child.process.returncode is not None:
            self._group.forget(child.process)


def _lines(count: int) -> str:
    return f"{count} line{'s' * (count != 1)}"

"""What the tests of `papercuts.parallel` map: functions that a worker process can import."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

from papercuts.errors import DataError
from papercuts.parallel import ordered_map, seed_for


def slow_when_small(item: int) -> int:
    """Finish out of order: the first items take longest."""
    time.sleep(max(0.0, 0.05 - 0.01 * item))
    return item * item


def draw(index: int) -> float:
    return random.Random(seed_for(7, index)).random()


def fail_at_three(item: int) -> int:
    if item == 3:
        raise DataError("bad", path="in.jsonl", line=4, expected="good")
    return item


class AwkwardError(Exception):
    """An exception that pickle cannot rebuild."""

    def __init__(self, left: int, right: int) -> None:
        super().__init__(f"{left} and {right}")


def fail_awkwardly(item: int) -> int:
    raise AwkwardError(item, item)


def die_at_three(item: int) -> int:
    if item == 3:
        os._exit(17)
    return item


def killed_at_three(item: int) -> int:
    if item == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def threads(_: int) -> str:
    return os.environ["OMP_NUM_THREADS"]


def pid(_: int) -> int:
    time.sleep(0.02)
    return os.getpid()


def unpicklable(_: int) -> object:
    return lambda: None


def nested(item: int) -> list[int]:
    return list(ordered_map(abs, [-item, item], jobs=2))


def start_and_sleep(folder: str) -> None:
    """Leave the ids of this worker and of a program it started in a file, and never end."""
    program = subprocess.Popen(["sleep", "600"])
    mark = Path(folder) / f"{os.getpid()}.tmp"
    mark.write_text(f"{os.getpid()} {program.pid}")
    mark.rename(mark.with_suffix(".pids"))
    time.sleep(600)


def main(folder: str) -> None:
    """Be a command that is at work in two processes."""
    list(ordered_map(start_and_sleep, [folder] * 4, jobs=2))

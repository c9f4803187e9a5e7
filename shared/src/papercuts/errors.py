"""The few ways in which a command can end short of its job, each with its exit code.

A tool raises one of these with a message for a person; `papercuts.app` prints the message on one
line of stderr and exits with the code. Anything else that escapes a command is our own fault and
ends with `INTERNAL`.
"""

from __future__ import annotations

from pathlib import Path

OK = 0
NEGATIVE = 1
USAGE = 2
DATA = 65
NO_INPUT = 66
UNAVAILABLE = 69
INTERNAL = 70
CANT_CREATE = 73
TRY_LATER = 75
INTERRUPTED = 130
TERMINATED = 143


class PapercutsError(Exception):
    """An ending that the user can do something about.

    `exit_code` is the process's exit code; the text is one line, without the tool's name.
    """

    exit_code = INTERNAL


class NegativeResult(PapercutsError):  # noqa: N818 (an answer, not an error)
    """The answer is no, or short of what was asked (exit 1). Print the result before raising."""

    exit_code = NEGATIVE


class UsageError(PapercutsError):
    """The command line cannot mean anything (exit 2)."""

    exit_code = USAGE


class DataError(PapercutsError):
    """A record or file is not what it should be (exit 65).

    The message reads `FILE:LINE: what is wrong (expected ...)`; parts that are not known are left
    out.
    """

    exit_code = DATA

    def __init__(
        self,
        message: str,
        *,
        path: str | Path | None = None,
        line: int | None = None,
        expected: str | None = None,
    ) -> None:
        where = "" if path is None else f"{'stdin' if str(path) == '-' else path}:"
        if line is not None:
            where += f"{line}:" if where else f"line {line}:"
        super().__init__(
            (f"{where} " if where else "")
            + message
            + (f" (expected {expected})" if expected else "")
        )
        self.message = message
        self.path = path
        self.line = line
        self.expected = expected


class InputError(PapercutsError):
    """An input file is missing or cannot be read (exit 66)."""

    exit_code = NO_INPUT


class MissingError(PapercutsError):
    """Something needed is not installed or not reachable (exit 69); say how to get it."""

    exit_code = UNAVAILABLE


class OutputError(PapercutsError):
    """The output exists already or cannot be written (exit 73)."""

    exit_code = CANT_CREATE


class TryLaterError(PapercutsError):
    """The same command may succeed later, as when an endpoint timed out (exit 75)."""

    exit_code = TRY_LATER

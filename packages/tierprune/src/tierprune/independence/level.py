"""The level of a test, as an option gives it."""

from __future__ import annotations

from papercuts.errors import UsageError
from papercuts.log import get_logger

MISSED = "most pairs that are independent will count as dependent (0.01 is usual)"
_HIGH = 0.5


def check_level(option: str, value: float, beware: str) -> None:
    """Raise `UsageError` unless 0 < `value` < 1; above 0.5, say in the log to `beware`."""
    if not 0 < value < 1:
        raise UsageError(f"{option} {value:g}: a number above 0 and below 1 is expected")
    if value > _HIGH:
        get_logger(__name__).warning("%s %g is high: %s", option, value, beware)

"""REPLACE: the paper's idea in one line."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolname.number import numbered, time_numbering

__all__ = ["numbered", "time_numbering"]

# Each public name and the module that it comes from, imported when somebody asks for it.
_HOME = {"numbered": "toolname.number", "time_numbering": "toolname.number"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'toolname' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)

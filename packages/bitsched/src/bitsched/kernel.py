"""Inner loops that run as plain Python on small inputs and compiled by numba on large ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

# Importing numba and loading what it compiled costs about as much as this many tasks in Python.
COMPILED_FROM = 60_000
# Compiling, where nothing is cached, costs more: many small runs in one process pay for it too.
COMPILED_AFTER = 10 * COMPILED_FROM


class Kernel:
    """One function, two ways to run it: `kernel(size, *arguments)`.

    Below `COMPILED_FROM` the function runs as it stands, on lists instead of arrays (Python
    reads them five times as fast); from there on, and once `COMPILED_AFTER` tasks have run in all,
    numba compiles it, and keeps the result in its cache. Both give the same values: the function
    uses nothing but loops and arithmetic, and returns a tuple of lists (arrays when compiled).
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.run = 0
        self.__doc__ = function.__doc__

    @cached_property
    def _compiled(self) -> Callable[..., Any]:
        import numba

        try:
            made: Callable[..., Any] = numba.njit(cache=True, nogil=True)(self.function)
        except RuntimeError:  # neither the package's folder nor the user's cache can be written
            made = numba.njit(nogil=True)(self.function)
        return made

    def __call__(self, size: int, *arguments: Any) -> Any:
        """Run on `size` tasks of a microsecond or two each; a compiled run overwrites arrays."""
        self.run += size
        if size >= COMPILED_FROM or self.run >= COMPILED_AFTER:
            return self._compiled(*arguments)
        listed = [a.tolist() if isinstance(a, np.ndarray) else a for a in arguments]
        return self.function(*listed)

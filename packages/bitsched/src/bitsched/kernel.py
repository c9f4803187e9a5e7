"""Inner loops that run as plain Python on small inputs and compiled by numba on large ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from types import FunctionType
from typing import Any

import numpy as np

# Importing numba and loading what it compiled costs about as much as this many tasks in Python.
COMPILED_FROM = 60_000
# Compiling, where nothing is cached, costs more: many small runs in one process pay for it too.
COMPILED_AFTER = 10 * COMPILED_FROM


def sift_down(heap: Any, size: Any, clock: Any, moved: Any) -> None:
    """Let `moved` sink from the root of `heap`, whose other places below `size` are in order.

    The heap holds processors, the one that is free first (`clock`; of equals the lower number) at
    its root. For kernels: loops and arithmetic only.
    """
    k = 0
    while True:
        child = 2 * k + 1
        if child >= size:
            break
        a = heap[child]
        if child + 1 < size:
            b = heap[child + 1]
            if clock[b] < clock[a] or (clock[b] == clock[a] and b < a):
                child += 1
                a = b
        if clock[a] < clock[moved] or (clock[a] == clock[moved] and a < moved):
            heap[k] = a
            k = child
        else:
            break
    heap[k] = moved


class Kernel:
    """One function, two ways to run it: `kernel(size, *arguments)`.

    Below `COMPILED_FROM` the function runs as it stands, on lists instead of arrays (Python
    reads them five times as fast); from there on, and once `COMPILED_AFTER` tasks have run in all,
    numba compiles it, and keeps the result in its cache. Both give the same values: the function
    uses nothing but loops and arithmetic, and returns a tuple of lists (arrays when compiled). It
    may call the functions `helpers`, which do the same.
    """

    def __init__(
        self, function: Callable[..., Any], *, helpers: tuple[Callable[..., Any], ...] = ()
    ) -> None:
        self.function = function
        self.helpers = helpers
        self.run = 0
        self.__doc__ = function.__doc__

    @cached_property
    def _compiled(self) -> Callable[..., Any]:
        import numba

        function = self.function
        if self.helpers and isinstance(function, FunctionType):
            # The same code, with its helpers compiled: the function itself stays plain Python.
            compiled = {helper.__name__: numba.njit(nogil=True)(helper) for helper in self.helpers}
            names = function.__globals__ | compiled
            function = FunctionType(function.__code__, names, function.__name__)
            function.__module__ = self.function.__module__
        try:
            made: Callable[..., Any] = numba.njit(cache=True, nogil=True)(function)
        except RuntimeError:  # neither the package's folder nor the user's cache can be written
            made = numba.njit(nogil=True)(function)
        return made

    def __call__(self, size: int, *arguments: Any) -> Any:
        """Run on `size` tasks of a microsecond or two each; a compiled run overwrites arrays."""
        self.run += size
        if size >= COMPILED_FROM or self.run >= COMPILED_AFTER:
            return self._compiled(*arguments)
        listed = [a.tolist() if isinstance(a, np.ndarray) else a for a in arguments]
        return self.function(*listed)

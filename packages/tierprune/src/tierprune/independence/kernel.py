"""The kernel test of conditional independence, by causal-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papercuts.app import need
from tierprune.independence.base import Ahead, Floats, Independence, Ints
from tierprune.independence.scaling import centred


class KCI(Independence):
    """Kernel-based conditional independence (Zhang et al. 2011) with causal-learn's defaults.

    Makes no assumption on the kind of dependence; a test costs time with the cube of the rows.
    `data` is [rows, columns].
    """

    name = "kci"
    ahead = Ahead(1, 1, 1)

    def __init__(
        self,
        data: NDArray[np.float64],
        *,
        alpha: float = 0.01,
        names: Sequence[str] | None = None,
        source: str | None = None,
    ) -> None:
        super().__init__(names or [str(i) for i in range(data.shape[1])], alpha)
        # causal-learn brings columns to variance 1 itself, but sums their squares as they are.
        scaled = centred(data, self.names, source) * np.sqrt(len(data))
        self._test: Any = need("causallearn.utils.cit", tool="tierprune", extra="kci").CIT(
            np.ascontiguousarray(scaled), "kci"
        )

    def forget(self) -> None:
        """See `Independence.forget`."""
        kept = ("data_hash", "method_name", "parameters_hash")
        cache = self._test.pvalue_cache
        self._test.pvalue_cache = {key: cache[key] for key in kept if key in cache}

    def p_values(self, left: Ints, right: Ints, given: Ints) -> Floats:
        """See `Independence.p_values`. Repeated questions are answered from memory."""
        rows = zip(left.tolist(), right.tolist(), given.tolist(), strict=True)
        return np.array([float(self._test(i, j, members)) for i, j, members in rows])

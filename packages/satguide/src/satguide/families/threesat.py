"""Random 3SAT at the threshold: about half of the formulas are satisfiable."""

from __future__ import annotations

import numpy as np

from satguide.cnf import CNF

SMALLEST = 5  # 80 different clauses, 41 wanted; with 4 variables it would be 40 of 32


def threshold_clauses(variables: int) -> int:
    """Give the number of clauses at which half of the formulas are satisfiable (paper, data)."""
    return int(4.258 * variables + 58.26 * variables ** (-2 / 3))


def generate(variables: int, seed: int) -> CNF:
    """Draw distinct clauses of three different variables, all equally likely.

    Raises `ValueError` below `SMALLEST` variables: there are not enough different clauses.
    """
    if variables < SMALLEST:
        raise ValueError(f"random 3SAT needs at least {SMALLEST} variables, not {variables}")
    random = np.random.default_rng(seed)
    wanted = threshold_clauses(variables)
    chosen: dict[bytes, None] = {}  # in order of arrival
    while len(chosen) < wanted:
        keys = random.random((wanted, variables)) if variables < 32 else None
        if keys is not None:
            triples = np.argpartition(keys, 3, axis=1)[:, :3]
        else:
            triples = random.integers(0, variables, (wanted, 3))
            triples.sort(axis=1)
            triples = triples[(triples[:, 0] != triples[:, 1]) & (triples[:, 1] != triples[:, 2])]
        triples = np.sort(triples, axis=1) + 1
        signs = random.integers(0, 2, triples.shape) * 2 - 1
        for row in (triples * signs).astype(np.int32):
            chosen.setdefault(row.tobytes())
            if len(chosen) == wanted:
                break
    literals = np.frombuffer(b"".join(chosen), dtype=np.int32)
    return CNF(variables, literals, np.arange(0, 3 * wanted + 1, 3), f"3sat-{variables}-{seed}")

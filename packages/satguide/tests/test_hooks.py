"""Why both of clasp's modifiers are set: `factor` alone leaves the first decisions as they were."""

import numpy as np
import pytest

from satguide import clasp
from satguide.backends import Guidance
from satguide.cnf import CNF

CORE, REST = 40, 200
FACTOR, INIT = b"7 2 ", b"7 3 "


def clauses(random, variables, count, first):
    for _ in range(count):
        chosen = first + random.choice(variables, 3, replace=False)
        yield (chosen * random.choice([-1, 1], 3)).tolist()


@pytest.fixture(scope="module")
def hard_core():
    """A small unsatisfiable part, and five times as many variables with nothing to do with it."""
    random = np.random.default_rng(0)
    core = clauses(random, CORE, 6 * CORE + 20, 1)
    rest = clauses(random, REST, 5 * REST // 2, CORE + 1)
    return clasp.prepare(CNF.from_clauses(CORE + REST, [*core, *rest]))


def decisions(prepared, monkeypatch, *without):
    """Count the decisions under weights that hide the core, with some modifiers left out."""
    weights = np.where(np.arange(CORE + REST) < CORE, 0.05, 10.0).astype(np.float32)
    complete = clasp.heuristic_text

    def thinned(guidance, polarity):
        lines = complete(guidance, polarity).splitlines(keepends=True)
        return b"".join(line for line in lines if not line.startswith(without))

    with monkeypatch.context() as patch:
        if without:
            patch.setattr(clasp, "heuristic_text", thinned)
        guidance = Guidance(weights, np.ones(CORE + REST, dtype=bool))
        return clasp.solve(prepared, guidance, polarity="none").decisions


def test_a_factor_alone_does_nothing_where_the_first_decisions_matter(hard_core, monkeypatch):
    plain = clasp.solve(hard_core, None).decisions
    assert decisions(hard_core, monkeypatch, INIT) < 2 * plain
    assert decisions(hard_core, monkeypatch) > 10 * plain
    assert decisions(hard_core, monkeypatch, FACTOR) > 10 * plain

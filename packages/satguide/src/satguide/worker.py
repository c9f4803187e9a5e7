"""The process behind `satguide.apart`: one question on stdin, one answer on stdout, no pickles.

A question is a line of JSON with the sizes of the arrays behind it: literals int32, starts int64
and, where the solve is guided, weights float32 and polarity bool. An answer is a line of JSON and,
where there is one, the model, one byte a variable.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from satguide.backends import Guidance, Outcome, backend
from satguide.cnf import CNF


def main() -> None:
    """Answer one question. The first argument is the folder for temporary files."""
    tempfile.tempdir = sys.argv[1]
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a solver prints must not get between
    try:
        outcome = answer(sys.stdin.buffer)
    except Exception as error:  # noqa: BLE001 (told to the parent, which raises it)
        told: dict[str, Any] = {"error": type(error).__name__, "message": str(error)}
        answers.write(json.dumps(told).encode() + b"\n")
    else:
        told = {
            "satisfiable": outcome.satisfiable,
            "decisions": outcome.decisions,
            "conflicts": outcome.conflicts,
            "wall_s": outcome.wall_s,
            "model": outcome.model is not None,
        }
        answers.write(json.dumps(told).encode() + b"\n")
        if outcome.model is not None:
            answers.write(outcome.model.tobytes())
    answers.flush()
    os._exit(0)  # a solver with a large formula needs seconds to take itself apart


def answer(questions: BinaryIO) -> Outcome:
    """Read a question and solve it."""
    asked = json.loads(questions.readline())
    cnf = CNF(
        asked["variables"],
        _array(questions, asked["literals"], np.int32),
        _array(questions, asked["clauses"] + 1, np.int64),
    )
    guidance = None
    if asked["guided"]:
        weights = _array(questions, cnf.variables, np.float32)
        guidance = Guidance(weights, _array(questions, cnf.variables, np.bool_))
    solver = backend(asked["backend"], here=True)
    return solver.solve(
        solver.prepare(cnf),
        guidance,
        polarity=asked["polarity"],
        seed=asked["seed"],
        timeout_s=asked["timeout_s"] if solver.interruptible else None,  # the parent keeps to it
        conflicts=asked["conflicts"],
    )


def _array(file: BinaryIO, size: int, kind: Any) -> NDArray[Any]:
    return np.frombuffer(file.read(size * np.dtype(kind).itemsize), dtype=kind)


if __name__ == "__main__":
    main()

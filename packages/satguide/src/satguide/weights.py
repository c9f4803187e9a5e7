"""Guidance written down: a record for each variable, or a CNF that carries it to a solver.

Two solvers read guidance from comment lines right behind `p cnf`: the paper's patched Glucose one
line `c weight` with a number for each variable, and clasp (`clingo --mode=clasp --heuristic=Domain
--parse-ext`) lines `c heuristic MODIFIER VARIABLE BIAS PRIORITY CONDITION`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from papercuts.streams import open_output, output_format, write_records
from satguide import dimacs
from satguide.backends import Guidance, Polarity
from satguide.clasp import FACTOR, INIT, SIGN, bias
from satguide.cnf import CNF

if TYPE_CHECKING:
    from satguide.checkpoint import Checkpoint

Form = Literal["json", "csv", "cnf-weight", "clasp"]

SMALLEST = 1e-4  # what four decimals can hold: 0.0000 would lose the sign, which is the polarity
_BLOCK = 1 << 15  # variables written at once


def look(
    model: str, path: str, *, strict: bool = False, device: str = "auto"
) -> tuple[Checkpoint, CNF, Guidance]:
    """Read a formula (`-`: stdin) and a checkpoint, and ask its network about the formula.

    Warns where the formula lies outside the training range. Raises what `dimacs.load`,
    `models.load` and `pick_device` raise.
    """
    cnf = dimacs.load(path, strict=strict)  # what is wrong with it need not wait for torch
    from papercuts.hardware import pick_device
    from satguide.guidance import guide, warn_outside
    from satguide.models import load

    checkpoint, where = load(model), pick_device(device)
    warn_outside(checkpoint, cnf, path)
    return checkpoint, cnf, guide(checkpoint, cnf, device=where)


def weight_line(guidance: Guidance, polarity: Polarity = "persistent") -> bytes:
    """Give the line that the paper's Glucose reads: `c weight`, then a number for each variable.

    The number is the weight with four decimals, 0.0001 at least, negative where p = 0 (the paper's
    code); with `polarity` none it is positive, since the line has to say something. It ends in a
    line feed.
    """
    weights = np.maximum(guidance.weights.astype(np.float64), SMALLEST)
    signed = np.where(guidance.polarity | (polarity == "none"), weights, -weights)
    parts = [b"c weight"]
    for first in range(0, signed.size, _BLOCK):
        block = signed[first : first + _BLOCK].tolist()
        parts.append((" %.4f" * len(block) % tuple(block)).encode())
    return b"".join([*parts, b"\n"])


def heuristic_lines(guidance: Guidance, polarity: Polarity = "persistent") -> Iterator[bytes]:
    """Give the lines that clasp reads, in blocks of whole lines.

    For each variable the modifiers 2 (factor) and 3 (init) with `clasp.bias` of its weight, and,
    unless `polarity` is none, 1 (sign) with 1 or -1; priority 1, condition 0 (always).
    """
    factors = bias(guidance.weights)
    signs = np.where(guidance.polarity, 1, -1)
    line = f"c heuristic {FACTOR} %d %d 1 0\nc heuristic {INIT} %d %d 1 0\n"
    if polarity != "none":
        line += f"c heuristic {SIGN} %d %d 1 0\n"
    for first in range(0, factors.size, _BLOCK):
        factor, sign = factors[first : first + _BLOCK], signs[first : first + _BLOCK]
        variable = np.arange(first + 1, first + 1 + factor.size)
        columns = [variable, factor, variable, factor]
        if polarity != "none":
            columns += [variable, sign]
        block = np.stack(columns, axis=1).reshape(-1).tolist()
        yield (line * factor.size % tuple(block)).encode()


def records(guidance: Guidance, polarity: Polarity = "persistent") -> Iterator[dict[str, Any]]:
    """Give a record for each variable: `variable`, `weight` (to six decimals), `polarity`.

    The polarity is None (null) where `polarity` is none.
    """
    told = polarity != "none"
    for first in range(0, guidance.weights.size, _BLOCK):
        weights = guidance.weights[first : first + _BLOCK].astype(np.float64).round(6).tolist()
        values = guidance.polarity[first : first + _BLOCK].tolist()
        for variable, (weight, value) in enumerate(zip(weights, values, strict=True), first + 1):
            yield {"variable": variable, "weight": weight, "polarity": value if told else None}


def write(
    output: str,
    cnf: CNF,
    guidance: Guidance,
    *,
    form: Form | None = None,
    polarity: Polarity = "persistent",
    model: str = "",
    force: bool = False,
) -> None:
    """Write the guidance of a formula to a file or `-`, in one of the four forms.

    Without `form` it is csv for a name that ends so, else json. A CNF says in a comment which
    `model` made its weights. Raises `OutputError` as `open_output` does.
    """
    if form is None:
        form = "csv" if output_format(output) == "csv" else "json"
    if form in ("json", "csv"):
        write_records(records(guidance, polarity), output, format=form, force=force)
        return
    lines: Iterable[bytes] = heuristic_lines(guidance, polarity)
    if form == "cnf-weight":
        lines = [weight_line(guidance, polarity)]
    made = f"guidance by satguide {version('papercuts-satguide')}"
    comments = (*cnf.comments, f"{made}, model {model}" if model else made)
    marked = CNF(cnf.variables, cnf.literals, cnf.starts, cnf.name, comments)
    with open_output(output, force=force) as out:
        dimacs.write(out, marked, header=lines)

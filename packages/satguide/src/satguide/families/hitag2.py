"""Key recovery for the stream cipher Hitag2: guess some state bits, solve for the rest.

The cipher: a 48-bit linear feedback shift register and a filter of five 4-input functions under
one 5-input function. The formula asks for an initial state that agrees with `OUTPUTS` bits of key
stream and with the guessed bits; the fewer bits are given, the harder it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from satguide.cnf import CNF, Literals, offsets

STATE = 48
OUTPUTS = 56
TAPS = (0, 2, 3, 6, 7, 8, 16, 22, 23, 26, 30, 41, 42, 43, 46, 47)
_FA, _FB, _FC = 0x2C79, 0x6671, 0x7907287B  # truth tables, input bit 0 least significant
FILTERS = (
    (_FA, (2, 3, 5, 6)),
    (_FB, (8, 12, 14, 15)),
    (_FB, (17, 21, 23, 26)),
    (_FB, (28, 29, 31, 33)),
    (_FA, (34, 43, 44, 46)),
)
_XOR_WIDTH = 4  # longer sums are cut with auxiliary variables


@dataclass(frozen=True)
class Instance:
    """A formula with what a reader of its solution needs.

    `state` [48] bool is the planted initial state, `known` the 0-based state bits that are given,
    and `planted` says whether they are given as planted (then the formula is satisfiable) or
    drawn at random (then, with 22 bits or more, it is unsatisfiable but for a chance of 2^-22).
    """

    cnf: CNF
    state: NDArray[np.bool_]
    known: tuple[int, ...]
    planted: bool


def key_stream(state: Sequence[int] | NDArray[np.bool_], length: int = OUTPUTS) -> list[int]:
    """Run the cipher from an initial state of 48 bits and give the first `length` output bits."""
    register = [int(bit) for bit in state]
    stream = []
    for step in range(length):
        inner = [table >> _index(register[step + p] for p in taps) & 1 for table, taps in FILTERS]
        stream.append(_FC >> _index(inner) & 1)
        register.append(sum(register[step + tap] for tap in TAPS) % 2)
    return stream


def decode(model: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Read the initial state [48] out of a model [variables]: the first 48 variables are it."""
    return np.asarray(model[:STATE], dtype=bool)


def generate(known: int, seed: int, *, planted: bool = False) -> CNF:
    """Make the formula of a random state with `known` of its 48 bits given."""
    return instance(known, seed, planted=planted).cnf


def instance(known: int, seed: int, *, planted: bool = False) -> Instance:
    """Make a formula, and keep the state that it was made from.

    Variables: 1 to 48 the initial state; then, step by step, the five filter values, the output,
    the partial sums of the feedback and the bit that is shifted in.
    """
    if not 0 <= known <= STATE:
        raise ValueError(f"known must be from 0 to {STATE}, not {known}")
    random = np.random.default_rng(seed)
    state = random.random(STATE) < 0.5
    positions = np.sort(random.choice(STATE, known, replace=False))
    values = state[positions] if planted else random.random(known) < 0.5
    shared = _shared()
    stream = np.where(np.array(key_stream(state)) == 1, shared.outputs, -shared.outputs)
    guesses = np.where(values, positions + 1, -positions - 1)
    literals = np.concatenate([shared.literals, stream, guesses]).astype(np.int32)
    units = shared.starts[-1] + np.arange(1, OUTPUTS + known + 1)
    kind = "sat-" if planted else ""
    name = f"hitag2-{kind}{known}-{seed}"
    cnf = CNF(shared.variables, literals, np.concatenate([shared.starts, units]), name)
    return Instance(cnf, state, tuple(positions.tolist()), planted)


@dataclass(frozen=True, eq=False)
class _Shared:
    """What all instances have in common: clauses as in `CNF`, and the variables of the output."""

    literals: Literals
    starts: NDArray[np.int64]
    outputs: NDArray[np.int64]
    variables: int


@cache
def _shared() -> _Shared:
    clauses, outputs, variables = _structure()
    flat = [literal for clause in clauses for literal in clause]
    starts = offsets(np.array([len(clause) for clause in clauses]))
    return _Shared(np.array(flat, dtype=np.int32), starts, np.array(outputs), variables)


def _structure() -> tuple[list[tuple[int, ...]], list[int], int]:
    """Give the clauses that all instances share, the output variables, the number of variables."""
    clauses: list[tuple[int, ...]] = []
    register = list(range(1, STATE + 1))
    outputs: list[int] = []
    last = STATE

    def new() -> int:
        nonlocal last
        last += 1
        return last

    needed = OUTPUTS + max(max(taps) for _, taps in FILTERS)
    for step in range(OUTPUTS):
        inner = [new() for _ in FILTERS]
        for (table, taps), value in zip(FILTERS, inner, strict=True):
            clauses += _function(table, [register[step + p] for p in taps], value)
        outputs.append(new())
        clauses += _function(_FC, inner, outputs[-1])
        if len(register) < needed:
            fed_back = new()
            clauses += _zero_sum([*(register[step + tap] for tap in TAPS), fed_back], new)
            register.append(fed_back)
    return clauses, outputs, last


def _function(table: int, inputs: Sequence[int], output: int) -> list[tuple[int, ...]]:
    """Clauses of output = f(inputs), from a small cover of f and one of its negation by cubes."""
    clauses = []
    for value, literal in ((1, output), (0, -output)):
        for bits, free in _cover(table, len(inputs), value):
            cube = (-x if bits >> i & 1 else x for i, x in enumerate(inputs) if not free >> i & 1)
            clauses.append((*cube, literal))
    return clauses


@cache
def _cover(table: int, inputs: int, value: int) -> list[tuple[int, int]]:
    """Cover the inputs where f is `value` by prime cubes (bits, free positions), greedily.

    Quine-McCluskey: cubes that differ in one fixed bit merge; what never merges is prime.
    """
    points = {m for m in range(1 << inputs) if table >> m & 1 == value}
    cubes, primes = {(m, 0) for m in points}, set[tuple[int, int]]()
    while cubes:
        merged, used = set(), set()
        for bits, free in cubes:
            for i in range(inputs):
                if not (free | bits) >> i & 1 and (bits | 1 << i, free) in cubes:
                    merged.add((bits, free | 1 << i))
                    used |= {(bits, free), (bits | 1 << i, free)}
        primes |= cubes - used
        cubes = merged
    covers = {c: {m for m in points if m & ~c[1] == c[0]} for c in sorted(primes)}
    chosen, left = [], set(points)
    while left:
        best = max(covers, key=lambda c: (len(covers[c] & left), c[1].bit_count()))
        chosen.append(best)
        left -= covers[best]
    return chosen


def _zero_sum(variables: Sequence[int], new: Callable[[], int]) -> list[tuple[int, ...]]:
    """Clauses that say that the sum modulo 2 is 0, in sums of at most `_XOR_WIDTH` variables."""
    clauses: list[tuple[int, ...]] = []
    terms = list(variables)
    while len(terms) > _XOR_WIDTH:
        partial = new()
        clauses += _short_zero_sum([*terms[: _XOR_WIDTH - 1], partial])
        terms = [*terms[_XOR_WIDTH - 1 :], partial]
    return clauses + _short_zero_sum(terms)


def _short_zero_sum(terms: Sequence[int]) -> list[tuple[int, ...]]:
    odd = (signs for signs in product((0, 1), repeat=len(terms)) if sum(signs) % 2)
    return [tuple(-t if s else t for t, s in zip(terms, signs, strict=True)) for signs in odd]


def _index(bits: Iterable[int]) -> int:
    return sum(bit << i for i, bit in enumerate(bits))

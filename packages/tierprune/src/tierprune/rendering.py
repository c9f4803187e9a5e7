"""Estimands written down: as text, LaTeX, JSON, and for y0.

A formula of moderate size is written in full. A larger one is written with definitions, `Q1(A, B)
= ...`, one for each part that occurs more than once: in full it could be exponentially long.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from papercuts.errors import UsageError
from tierprune.bits import bits
from tierprune.expression import (
    Estimand,
    Expression,
    Probability,
    Product,
    Quotient,
    Sum,
    in_order,
    uses,
)

IN_FULL = 400  # expressions up to which no definition is made
_DEPTH = 60  # levels of brackets up to which no definition is made
_Y0_IN_FULL = 100_000
_Scope = dict[int, int]  # of each variable that means something here, the number of its primes


def to_text(estimand: Estimand) -> str:
    """Write the formula as text, one definition a line, the formula itself last.

    A variable that is summed over while the same name means something outside has a prime.
    """
    return _Text(estimand).all_lines()


def to_latex(estimand: Estimand) -> str:
    """Write the formula for LaTeX's mathematics, one definition a line, the formula last."""
    return _Latex(estimand).all_lines()


def to_json(estimand: Estimand) -> dict[str, Any]:
    """Write the formula as one object.

    `{"p": [names], "given": [names]}`, `{"product": [...]}`, `{"quotient": [above, below]}`,
    `{"sum": [names], "of": ...}`, where a sum binds its names inside; `{"ref": "Q1"}` stands for
    what the key `definitions` of the outermost object says of Q1, names included.
    """
    chosen = _definitions(estimand)
    order = list(in_order(estimand.root))
    made: dict[int, dict[str, Any]] = {}
    written: dict[str, Any] = {}
    for node in order:  # parts come before the whole
        value = _object(node, made, estimand)
        if node.number in chosen:
            written[chosen[node.number]] = value
            value = {"ref": chosen[node.number]}
        made[node.number] = value
    whole = made[estimand.root.number]
    return {**whole, "definitions": written} if written else whole


def _object(node: Expression, made: dict[int, Any], estimand: Estimand) -> dict[str, Any]:
    match node:
        case Probability():
            return {"p": estimand.named(node.variables), "given": estimand.named(node.given)}
        case Product():
            return {"product": [made[part.number] for part in node.parts]}
        case Quotient():
            return {"quotient": [made[part.number] for part in node.parts]}
        case Sum():
            return {"sum": estimand.named(node.bound), "of": made[node.body.number]}
    raise TypeError(type(node).__name__)


def to_y0(estimand: Estimand) -> tuple[str, dict[str, str]]:
    """Write the formula so that `y0.parser.parse_y0` reads it; also give the names it took.

    That parser knows the names A to Z without P and Q, alone or with a digit. Others are replaced;
    the second value says by what. Raises `UsageError` where the formula, which y0 needs in full,
    would have more than 100,000 expressions, and where there are more variables than names.
    """
    if estimand.written_size > _Y0_IN_FULL:
        raise UsageError(
            f"the formula has {estimand.written_size:.3g} expressions when written in full, as y0 "
            f"needs it, more than {_Y0_IN_FULL} (--format text or json shares its parts)"
        )
    names = _y0_names(estimand.variables)
    made: dict[int, str] = {}
    for node in in_order(estimand.root):
        match node:
            case Probability():
                left, right = (
                    ", ".join(names[name] for name in estimand.named(mask))
                    for mask in (node.variables, node.given)
                )
                made[node.number] = f"P({left} | {right})" if right else f"P({left})"
            case Product():
                made[node.number] = "(" + " * ".join(made[p.number] for p in node.parts) + ")"
            case Quotient():
                above, below = (made[part.number] for part in node.parts)
                made[node.number] = f"({above} / {below})"
            case Sum():
                over = ", ".join(names[name] for name in estimand.named(node.bound))
                made[node.number] = f"Sum[{over}]({made[node.body.number]})"
    return made[estimand.root.number], {old: new for old, new in names.items() if old != new}


def _y0_names(wanted: Iterable[str]) -> dict[str, str]:
    wanted = list(wanted)
    letters = [chr(code) for code in range(ord("A"), ord("Z") + 1) if chr(code) not in "PQ"]
    known = [f"V{digit}" for digit in range(10)]
    known += [letter + tail for tail in ("", *map(str, range(10))) for letter in letters]
    known += [f"{letter}_{digit}" for digit in range(10) for letter in letters]
    taken = set(wanted) & set(known)
    free = iter(dict.fromkeys(name for name in known if name not in taken))
    names: dict[str, str] = {}
    for name in wanted:
        new = name if name in taken else next(free, None)
        if new is None:
            raise UsageError("y0's parser has no names for so many variables (try --format json)")
        names[name] = new
    return names


def _definitions(estimand: Estimand) -> dict[int, str]:
    """Choose the parts that get a name; by their number, in the order in which they are needed."""
    order = list(in_order(estimand.root))
    shared = uses(order) if estimand.written_size > IN_FULL else {}
    height: dict[int, int] = {}
    chosen: dict[int, str] = {}
    for node in order:
        tall = 1 + max((height[part.number] for part in node.parts), default=0)
        again = shared.get(node.number, 0) > 1 and not isinstance(node, Probability)
        if node is not estimand.root and (again or tall > _DEPTH):
            chosen[node.number] = f"Q{len(chosen) + 1}"
            tall = 1
        height[node.number] = tall
    taken = set(estimand.names)
    mark = "Q"
    while any(f"{mark}{i + 1}" in taken for i in range(len(chosen))):
        mark += "Q"
    return {number: mark + name[1:] for number, name in chosen.items()}


class _Text:
    """Writes one estimand as text; `_Latex` says what LaTeX does in another way."""

    equals = " = "
    times = " "
    given = " | "

    def __init__(self, estimand: Estimand) -> None:
        self.estimand = estimand
        self.chosen = _definitions(estimand)

    def all_lines(self) -> str:
        lines = []
        for node in in_order(self.estimand.root):
            scope = dict.fromkeys(bits(node.free), 0)
            if node.number in self.chosen:
                lines.append(self.call(node, scope) + self.equals + self.body(node, scope))
            elif node is self.estimand.root:
                lines.append(self.body(node, scope))
        return "\n".join(lines)

    def write(self, node: Expression, scope: _Scope) -> str:
        return self.call(node, scope) if node.number in self.chosen else self.body(node, scope)

    def body(self, node: Expression, scope: _Scope) -> str:
        match node:
            case Probability():
                left, right = (self.listed(m, scope) for m in (node.variables, node.given))
                return self.probability(left, right)
            case Product():
                if not node.factors:
                    return "1"
                last = len(node.factors) - 1
                return self.times.join(
                    self.bracketed(part, scope, open_end=at == last)
                    for at, part in enumerate(node.factors)
                )
            case Quotient():
                return self.divided(node, scope)
            case Sum():
                inner = dict(scope)
                for i in bits(node.bound):
                    inner[i] = scope.get(i, -1) + 1
                return self.summed(
                    self.listed(node.bound, inner), self.bracketed(node.body, inner, open_end=True)
                )
        raise TypeError(type(node).__name__)

    def bracketed(self, node: Expression, scope: _Scope, *, open_end: bool) -> str:
        """Write a factor; a sum needs brackets unless it comes last."""
        text = self.write(node, scope)
        bare = node.number in self.chosen or isinstance(node, Probability | Product)
        return text if bare or (isinstance(node, Sum) and open_end) else self.brackets(text)

    def listed(self, mask: int, scope: _Scope) -> str:
        return ", ".join(
            self.name(self.estimand.names[i]) + "'" * scope.get(i, 0) for i in bits(mask)
        )

    def call(self, node: Expression, scope: _Scope) -> str:
        return f"{self.chosen[node.number]}({self.listed(node.free, scope)})"

    def name(self, name: str) -> str:
        plain = re.fullmatch(r"\w(?:[\w.\-]*\w)?", name)
        return name if plain else '"' + name.replace('"', '""') + '"'

    def brackets(self, text: str) -> str:
        return f"[{text}]"

    def probability(self, left: str, right: str) -> str:
        return f"P({left}{self.given}{right})" if right else f"P({left})"

    def summed(self, over: str, text: str) -> str:
        return f"sum_{{{over}}} {text}"

    def divided(self, node: Quotient, scope: _Scope) -> str:
        parts = []
        for part in node.parts:
            text = self.write(part, scope)
            bare = part.number in self.chosen or isinstance(part, Probability)
            parts.append(text if bare else self.brackets(text))
        return " / ".join(parts)


class _Latex(_Text):
    times = r" \, "
    given = r" \mid "

    def bracketed(self, node: Expression, scope: _Scope, *, open_end: bool) -> str:
        if isinstance(node, Quotient):  # a fraction needs no brackets
            return self.write(node, scope)
        return super().bracketed(node, scope, open_end=open_end)

    def call(self, node: Expression, scope: _Scope) -> str:
        mark, number = re.fullmatch(r"(Q+)(\d+)", self.chosen[node.number]).groups()  # type: ignore[union-attr]
        return f"{mark}_{{{number}}}({self.listed(node.free, scope)})"

    def name(self, name: str) -> str:
        return latex_name(name)

    def brackets(self, text: str) -> str:
        return rf"\left[{text}\right]"

    def summed(self, over: str, text: str) -> str:
        return rf"\sum_{{{over}}} {text}"

    def divided(self, node: Quotient, scope: _Scope) -> str:
        above, below = (self.write(part, scope) for part in node.parts)
        return rf"\frac{{{above}}}{{{below}}}"


def latex_name(name: str) -> str:
    """Write a variable's name for LaTeX's mathematics: `X1` as X with an index, words upright."""
    if re.fullmatch(r"[A-Za-z]", name):
        return name
    letter = re.fullmatch(r"([A-Za-z])_?(\d+)", name)
    if letter:
        return f"{letter[1]}_{{{letter[2]}}}"
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    escaped = "".join(
        special.get(sign, "\\" + sign if sign in "#$%&_{}" else sign) for sign in name
    )
    return rf"\text{{{escaped}}}"

"""The families of cnfgen (Lauria et al.): pigeonholes, Tseitin, colouring, cliques and others.

cnfgen is under the GPL, so it is an optional extra and imported only when a family of it is asked
for. A family is named in the words of cnfgen's own command line, `cnfgen FAMILY ARGS [-T ...]`.
"""

from __future__ import annotations

import ast
import contextlib
import operator
import random
import re
import shlex
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, cast

from papercuts.app import need
from papercuts.errors import UsageError
from satguide.cnf import CNF

PREFIX = "cnfgen:"
_PLACE = re.compile(r"\{([^{}]*)\}")
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


def sized(family: str) -> bool:
    """Tell whether a family has a size: a name alone, or arguments with `{size}` in them."""
    text = family.removeprefix(PREFIX)
    return len(text.split()) == 1 or any("size" in place for place in _PLACE.findall(text))


def arguments(family: str, size: int, seed: int) -> list[str]:
    """Write out the command line of a family: `cnfgen:php {size+1} {size}` at 7 is `php 8 7`.

    A place in braces is an expression in `size` and `seed` with + - * / // and parentheses; what
    is no whole number is rounded. A name without arguments takes the size as its only one. Raises
    `UsageError` for anything else in braces, and for an unclosed quote.
    """
    text = family.removeprefix(PREFIX)
    if len(text.split()) == 1:
        text = f"{text} {{size}}"
    values = {"size": size, "seed": seed}
    try:
        return shlex.split(_PLACE.sub(lambda place: str(_value(place[1], values)), text))
    except (ValueError, SyntaxError, ZeroDivisionError, KeyError, TypeError) as error:
        raise UsageError(
            f"{family}: expected cnfgen's own words, with places such as {{size}}, {{2*size}} or "
            f"{{seed}} ({_first_line(error)})"
        ) from None


def generate(family: str, size: int, seed: int) -> CNF:
    """Make a formula of a family of cnfgen; the same seed gives the same formula.

    Raises `UsageError` where cnfgen does not take the arguments, and `MissingError` without it.
    """
    words = arguments(family, size, seed)
    tools = need("cnfgen.clitools", tool="satguide", extra="cnfgen")
    if not words or words[0] not in _names():
        what = repr(words[0]) if words else "nothing"
        raise UsageError(f"cnfgen has no family {what} (it has {', '.join(_names())})")
    before = random.getstate()
    random.seed(seed)  # what cnfgen draws from; its own --seed leaves 0 out
    try:
        with contextlib.redirect_stdout(sys.stderr):  # for `-h`, which prints and exits
            formula = tools.cnfgen(["cnfgen", *words], mode="formula")
    except tools.CLIError as error:
        raise UsageError(f"cnfgen {shlex.join(words)}: {_first_line(error)}") from None
    except SystemExit:
        raise UsageError(f"cnfgen {shlex.join(words)}: makes no formula") from None
    finally:
        random.setstate(before)
    variables = formula.number_of_variables()
    return CNF.from_clauses(variables, formula, name=f"cnfgen-{label(family)}-{size}-{seed}")


def label(family: str) -> str:
    """Give the name of a family without its arguments, for file names."""
    return re.sub(r"\W+", "", (family.removeprefix(PREFIX).split() or [""])[0])


@cache
def _names() -> tuple[str, ...]:
    tools = need("cnfgen.clitools", tool="satguide", extra="cnfgen")
    return tuple(sorted(helper.name for helper in tools.get_formula_helpers()))


def _value(text: str, values: dict[str, int]) -> int:
    return round(_evaluated(ast.parse(text.strip(), mode="eval").body, values))


def _evaluated(node: ast.expr, values: dict[str, int]) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name):
            return values[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            number = _OPERATORS[type(op)](_evaluated(left, values), _evaluated(right, values))
            return cast("float", number)  # whole numbers stay whole: a seed has 63 bits
    raise ValueError(f"{ast.unparse(node)!r} is no such expression")


def _first_line(error: BaseException) -> str:
    lines = [line.removeprefix("ERROR:").strip() for line in str(error).splitlines()]
    return next((line for line in lines if line), type(error).__name__)

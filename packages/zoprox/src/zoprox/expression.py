"""A target written as an expression over the coordinates, as in `(x1**2 + x2**2)/2`.

Only the pieces listed here are understood, and they are evaluated by this module, never by
Python: no attribute, no call but these, nothing that reaches outside.

A value has the shape [n, 1], one number for each point, or [n, dim], one for each coordinate of
it; a constant stands for itself. So the two combine as numpy broadcasts them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from papercuts.errors import DataError, UsageError
from zoprox.potential import Points

Array = NDArray[Any]
Piece = Callable[[Points], Array]

ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "abs": np.abs, "sqrt": np.sqrt, "square": np.square, "sign": np.sign,
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "log2": np.log2,
    "log10": np.log10, "sin": np.sin, "cos": np.cos, "tan": np.tan, "arcsin": np.arcsin,
    "arccos": np.arccos, "arctan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "floor": np.floor, "ceil": np.ceil, "erf": special.erf, "erfc": special.erfc,
    "gammaln": special.gammaln, "logit": special.logit, "expit": special.expit,
    "isfinite": np.isfinite,
}  # fmt: skip
OF_TWO: dict[str, Callable[..., Any]] = {
    "arctan2": np.arctan2, "hypot": np.hypot, "logaddexp": np.logaddexp,
    "maximum": np.maximum, "minimum": np.minimum,
}  # fmt: skip
OF_THREE: dict[str, Callable[..., Any]] = {"where": np.where, "clip": np.clip}
# Over the coordinates of a point.
REDUCING: dict[str, Callable[..., Any]] = {
    "sum": np.sum, "prod": np.prod, "mean": np.mean, "max": np.max, "min": np.min,
    "any": np.any, "all": np.all, "norm": np.linalg.norm, "logsumexp": special.logsumexp,
}  # fmt: skip
FUNCTIONS = sorted({*ELEMENTWISE, *OF_TWO, *OF_THREE, *REDUCING})
CONSTANTS = {"pi": np.pi, "e": np.e, "inf": np.inf}

_BINARY: dict[type[ast.operator], Callable[..., Any]] = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.true_divide,
    ast.Pow: np.power, ast.Mod: np.mod, ast.FloorDiv: np.floor_divide,
    ast.BitAnd: np.logical_and, ast.BitOr: np.logical_or,
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], Callable[..., Any]] = {
    ast.Lt: np.less, ast.LtE: np.less_equal, ast.Gt: np.greater, ast.GtE: np.greater_equal,
    ast.Eq: np.equal, ast.NotEq: np.not_equal,
}  # fmt: skip
_COORDINATE = re.compile(r"x([1-9][0-9]*)")
_ROWS = 8192  # evaluated at once: what is between two steps stays in the cache


class Expression:
    """An expression over points of `dim` coordinates, asked for values like any target.

    `x` is the whole point, `x1` to `xDIM` and `x[0]` to `x[DIM-1]` are its coordinates. Raises
    `UsageError`, which names the piece, for anything that is not understood.
    """

    def __init__(self, text: str, dim: int) -> None:
        self.text = text
        self.dim = dim
        self._value = _Reader(text, dim).read()

    def __call__(self, points: Points) -> Array:
        """Give its value at every row of `points` [n, dim]: [n], as numbers or as true and false.

        Raises `DataError` where it is not one number a point.
        """
        pieces = [
            self._rows(points[first : first + _ROWS]) for first in range(0, len(points), _ROWS)
        ]
        return np.concatenate(pieces) if pieces else np.empty(0)

    def _rows(self, points: Points) -> Array:
        with np.errstate(all="ignore"):
            try:
                value = np.asarray(self._value(points))
            except ValueError as error:  # shapes that do not go together
                raise DataError(f"expression {self.text!r}: {error}") from None
        if value.ndim == 2 and value.shape[1] not in (1, 0):
            raise DataError(
                f"expression {self.text!r}: {value.shape[1]} values for a point",
                expected="one, as sum(...) over the coordinates gives",
            )
        value = np.broadcast_to(value.reshape(-1, 1) if value.ndim < 2 else value, (len(points), 1))
        return value[:, 0]


def looks_like_one(text: str, dim: int) -> bool:
    """Tell an expression from a command: it reads as one, and knows its names or compares."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    if any(isinstance(node, ast.Compare | ast.Call | ast.BoolOp) for node in ast.walk(tree)):
        return True
    try:
        Expression(text, dim)
    except UsageError:
        return False
    return True


class _Reader:
    """Turns the syntax tree into functions of the points."""

    def __init__(self, text: str, dim: int) -> None:
        self._text = text
        self._dim = dim

    def read(self) -> Piece:
        if not self._text.strip():
            raise UsageError("--expr is empty")
        try:
            tree = ast.parse(self._text.strip(), mode="eval")
            return self._piece(tree.body)
        except SyntaxError as error:
            raise UsageError(
                f"expression {self._text!r}: {error.msg} at column {error.offset or 1}"
            ) from None
        except (RecursionError, MemoryError):
            raise UsageError("the expression is nested too deeply") from None
        except ValueError as error:  # a NUL character, a number of too many digits
            raise UsageError(f"expression {self._text[:80]!r}: {error}") from None

    def _fault(self, node: ast.AST, why: str) -> UsageError:
        piece = ast.get_source_segment(self._text.strip(), node) or ""
        piece = piece if len(piece) <= 60 else piece[:60] + "..."
        return UsageError(f"expression: {piece!r}: {why}")

    def _piece(self, node: ast.expr) -> Piece:
        match node:
            case ast.Constant(value=value):
                return self._constant(node, value)
            case ast.Name(id=name):
                return self._name(node, name)
            case ast.Subscript(value=ast.Name(id="x"), slice=index):
                return self._coordinate(node, index)
            case ast.UnaryOp(op=op, operand=operand):
                return self._unary(node, op, operand)
            case ast.BinOp(left=left, op=op, right=right):
                function = _BINARY.get(type(op))
                if function is None:
                    why = "a power is written **" if isinstance(op, ast.BitXor) else "not known"
                    raise self._fault(node, why)
                return _applied(function, self._piece(left), self._piece(right))
            case ast.Compare():
                return self._comparison(node)
            case ast.BoolOp(op=op, values=values):
                both = np.logical_and if isinstance(op, ast.And) else np.logical_or
                result, *others = (self._piece(value) for value in values)
                for other in others:
                    result = _applied(both, result, other)
                return result
            case ast.IfExp(test=test, body=body, orelse=other):
                pieces = [self._piece(part) for part in (test, body, other)]
                return _applied(np.where, *pieces)
            case ast.Call():
                return self._call(node)
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                return self._row(node, parts)
            case ast.Attribute(attr=attr):
                raise self._fault(
                    node, f"write {attr} alone" if attr in FUNCTIONS else "no dotted names here"
                )
        raise self._fault(node, "not a piece of an expression that is known here")

    def _constant(self, node: ast.expr, value: object) -> Piece:
        if isinstance(value, bool) or not isinstance(value, int | float):
            if not isinstance(value, bool):
                raise self._fault(node, "not a number")
            truth = np.array([[value]])
            return lambda _: truth
        try:
            number = np.array([[float(value)]])
        except OverflowError:
            raise self._fault(node, "too large a number") from None
        return lambda _: number

    def _name(self, node: ast.expr, name: str) -> Piece:
        if name == "x":
            return lambda points: points
        found = _COORDINATE.fullmatch(name)
        if found is not None:
            if len(found[1]) > 9 or int(found[1]) > self._dim:
                raise self._fault(node, f"there are x1 to x{self._dim} (--dim {self._dim})")
            column = int(found[1]) - 1
            return lambda points: points[:, column : column + 1]
        if name in CONSTANTS:
            return self._constant(node, CONSTANTS[name])
        if name in FUNCTIONS:
            raise self._fault(node, f"is a function: {name}(...)")
        raise self._fault(
            node, f"no such name (there are x, x1 to x{self._dim}, {', '.join(CONSTANTS)})"
        )

    def _coordinate(self, node: ast.expr, index: ast.expr) -> Piece:
        try:
            column = ast.literal_eval(index)
        except (ValueError, SyntaxError):
            column = None
        if type(column) is not int:
            raise self._fault(node, "a coordinate is named by a whole number, as in x[0]")
        if not -self._dim <= column < self._dim:
            raise self._fault(node, f"there are x[0] to x[{self._dim - 1}] (--dim {self._dim})")
        column %= self._dim
        return lambda points: points[:, column : column + 1]

    def _unary(self, node: ast.expr, op: ast.unaryop, operand: ast.expr) -> Piece:
        inner = self._piece(operand)
        match op:
            case ast.USub():
                return _applied(np.negative, inner)
            case ast.UAdd():
                return inner
            case ast.Not() | ast.Invert():
                return _applied(np.logical_not, inner)
        raise self._fault(node, "not known")

    def _comparison(self, node: ast.Compare) -> Piece:
        sides = [self._piece(side) for side in (node.left, *node.comparators)]
        result: Piece | None = None
        for op, left, right in zip(node.ops, sides, sides[1:], strict=False):
            compare = _COMPARISONS.get(type(op))
            if compare is None:
                raise self._fault(node, "only <, <=, >, >=, == and != compare")
            link = _applied(compare, left, right)
            result = link if result is None else _applied(np.logical_and, result, link)
        assert result is not None  # noqa: S101 (a comparison has an operator)
        return result

    def _call(self, node: ast.Call) -> Piece:
        match node.func:
            case ast.Name(id=name):
                pass
            case ast.Attribute(attr=attr) if attr in FUNCTIONS:
                raise self._fault(node.func, f"write {attr}(...) alone")
            case _:
                raise self._fault(node.func, "cannot be called here")
        if name not in FUNCTIONS:
            raise self._fault(node.func, f"no such function (there are {', '.join(FUNCTIONS)})")
        if node.keywords:
            raise self._fault(node, "no named arguments here")
        given = [self._piece(part) for part in node.args]
        if name in REDUCING:
            if len(given) == 1:
                return _reduced(REDUCING[name], given[0])
            if name in ("max", "min") and len(given) > 1:
                pair = np.maximum if name == "max" else np.minimum
                result = given[0]
                for other in given[1:]:
                    result = _applied(pair, result, other)
                return result
        for table, count in ((ELEMENTWISE, 1), (OF_TWO, 2), (OF_THREE, 3)):
            if name in table and len(given) == count:
                return _applied(table[name], *given)
        raise self._fault(node, f"{len(given)} arguments are not what {name} takes")

    def _row(self, node: ast.expr, parts: list[ast.expr]) -> Piece:
        """Read numbers in brackets, one for each coordinate."""
        pieces = [self._piece(part) for part in parts]
        if len(pieces) != self._dim:
            raise self._fault(node, f"{len(pieces)} numbers for {self._dim} coordinates")

        def row(points: Points) -> Array:
            return np.concatenate(
                [np.broadcast_to(piece(points), (len(points), 1)) for piece in pieces], axis=1
            )

        return row


def _applied(function: Callable[..., Any], *pieces: Piece) -> Piece:
    return lambda points: np.asarray(function(*(piece(points) for piece in pieces)))


def _reduced(function: Callable[..., Any], piece: Piece) -> Piece:
    return lambda points: np.asarray(function(piece(points), axis=1, keepdims=True))

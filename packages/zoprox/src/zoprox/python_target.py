"""A target that is a function in the user's own Python file, named as `FILE.py:NAME`.

The file is the user's choice and is run as it is. The function takes all points at once, [n, dim],
and gives [n] values; one that takes a single point [dim] and gives one value is accepted too. What
it prints goes to stderr, since stdout is for draws.
"""

from __future__ import annotations

import contextlib
import io
import signal
import sys
import threading
import tokenize
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import FrameType, ModuleType, TracebackType
from typing import Any, Literal, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from papercuts.errors import DataError, InputError, PapercutsError, TryLaterError, UsageError
from papercuts.files import reason
from papercuts.log import get_logger
from zoprox.potential import Points

Function = Callable[..., Any]
Way = Literal["rows", "point"]

# Points are handed over in pieces whose size depends on their number alone, so that no rounding
# inside the function depends on --jobs; small enough to stay in the cache.
MOST_POINTS = 4096
_PIECES = 32
# What numpy says where a function of one point is given many.
_OF_ONE_POINT = ("truth value of an array", "only length-1 arrays", "only 0-dimensional arrays")


@dataclass(frozen=True)
class Recipe:
    """What a process needs to call the function: the file, its name, and how to call it."""

    path: str
    name: str
    way: Way = "rows"
    timeout_s: float | None = None
    device: str | None = None
    dtype: str = "auto"


class PythonTarget:
    """The function `spec` (`FILE.py:NAME`), asked for values. Use it in a `with` block.

    `jobs` processes work on the points of one call; with 1 this process does. `timeout_s` is for
    one piece of a call. With `device` (and `dtype`) the function takes and gives torch tensors.
    Raises as `load_function` does.
    """

    def __init__(
        self,
        spec: str,
        *,
        jobs: int = 1,
        timeout_s: float | None = None,
        device: str | None = None,
        dtype: str = "auto",
    ) -> None:
        path, name = split_spec(spec)
        self._recipe = Recipe(path, name, "rows", timeout_s, device, dtype)
        self._jobs = jobs
        self._known = False
        load_function(path, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._jobs > 1:
            from papercuts.parallel import close

            close()

    def __call__(self, points: Points) -> NDArray[Any]:
        """Give what the function gives for every row of `points` [n, dim]: [n], unchecked.

        Raises `DataError`, with the line of the user's file, for whatever the function raises, and
        for values that are not one a point; `TryLaterError` where it takes longer than
        `timeout_s`.
        """
        if not len(points):
            return np.empty(0)
        if not self._known:
            self._recipe = _tried(self._recipe, points)
            self._known = True
        size = min(MOST_POINTS, -(-len(points) // _PIECES))
        pieces = [points[first : first + size] for first in range(0, len(points), size)]
        return np.concatenate(list(self._answers(pieces)))

    def _answers(self, pieces: list[Points]) -> Iterator[NDArray[Any]]:
        evaluate = partial(evaluated, self._recipe)
        if self._jobs == 1 or len(pieces) == 1:
            yield from map(evaluate, pieces)
            return
        from papercuts.parallel import WorkerDiedError, ordered_map

        try:
            yield from ordered_map(evaluate, pieces, jobs=self._jobs)
        except WorkerDiedError as error:
            raise DataError(
                f"{self._recipe.path}:{self._recipe.name}: died with its process: {error}"
            ) from error


def split_spec(spec: str) -> tuple[str, str]:
    """Split `FILE.py:NAME`. Raises `UsageError` for anything else."""
    path, colon, name = spec.rpartition(":")
    if not colon or not path or not name.isidentifier():
        raise UsageError(f"--target {spec!r}: name a file and a function in it, as FILE.py:NAME")
    return path, name


def load_function(path: str, name: str) -> Function:
    """Run the user's file and give its function `name`, as it is.

    Raises `InputError` for a file that cannot be read, `UsageError` where it has no such function,
    `DataError`, with the line, for whatever it raises.
    """
    module = _module(path)
    function = getattr(module, name, None)
    if function is None:
        own = [
            key
            for key, value in vars(module).items()
            if not key.startswith("_") and getattr(value, "__module__", None) == module.__name__
        ]
        there = f" (it has {', '.join(own[:8])})" if own else ""
        raise UsageError(f"--target {path}:{name}: the file has no function {name!r}{there}")
    if not callable(function):
        raise UsageError(f"--target {path}:{name}: {name} is no function")
    return function  # type: ignore[no-any-return]


@cache
def _module(path: str) -> ModuleType:
    try:
        source = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {reason(error)}") from error
    except ValueError as error:  # a NUL character in the name
        raise InputError(f"{path!r}: {error}") from error
    module = ModuleType(f"zoprox_target_{Path(path).stem}")
    module.__file__ = path
    sys.modules[module.__name__] = module
    folder = str(Path(path).resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # for what lies beside it
    with as_users(path):
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        text = source.decode(encoding)  # compiled here, so that no __pycache__ is left beside it
        exec(compile(text, path, "exec", dont_inherit=True), vars(module))  # noqa: S102
    return module


def evaluated(recipe: Recipe, points: Points) -> NDArray[Any]:
    """Call the function of a recipe on `points` [n, dim] and give its values [n]."""
    call = _call(recipe)
    if recipe.way == "point":
        answers = [_one(call(point)) for point in points]
        wrong = next((i for i, answer in enumerate(answers) if answer is None), None)
        if wrong is not None:
            raise DataError(
                f"{recipe.path}:{recipe.name}: not one number for the point "
                f"{points[wrong].tolist()}",
                expected="a number",
            )
        return np.array(answers)
    values = _column(answer := call(points), len(points))
    if values is None:
        raise DataError(
            f"{recipe.path}:{recipe.name}: {_described(answer)} for {len(points)} points",
            expected=f"{len(points)} values, one for each row",
        )
    return values


def _call(recipe: Recipe) -> Callable[[Points], Any]:
    """Give the function as one that takes numpy points, with its faults told as the user's."""
    function = load_function(recipe.path, recipe.name)
    convert = _tensors(recipe.device, recipe.dtype) if recipe.device is not None else None

    def call(points: Points) -> Any:
        with as_users(recipe.path), _alarm(recipe), np.errstate(all="ignore"):
            answer = function(points if convert is None else convert(points))
            if hasattr(answer, "detach"):  # a tensor, wherever it lies
                answer = answer.detach().cpu().numpy()
            return answer

    return call


@cache
def _tensors(device: str, dtype: str) -> Callable[[Points], Any]:
    import torch

    place, kind = tensor_place(device, dtype)
    # A copy: torch has no tensors that may not be written to, as the sampler's points may not.
    return lambda points: torch.tensor(points, dtype=kind, device=place)


def tensor_place(device: str, dtype: str) -> tuple[Any, Any]:
    """Give the torch device and type of these names; `auto` is fp64 where the device has it."""
    import torch

    from papercuts.hardware import pick_device

    place = pick_device(device)
    single = dtype == "fp32" or (dtype == "auto" and place.type == "mps")
    return place, torch.float32 if single else torch.float64


def _tried(recipe: Recipe, points: Points) -> Recipe:
    """Find out by a call whether the function takes rows or one point, and say so.

    Tried on one row more than there are coordinates: a function of one point, which takes the
    first row for a coordinate, then cannot give as many values as there are rows.
    """
    rows = np.resize(points, (points.shape[1] + 1, points.shape[1]))
    call = _call(recipe)
    answer, failure = None, None
    try:
        answer = call(rows)
        if _column(answer, len(rows)) is not None:
            return recipe
    except DataError as error:
        failure = error
    try:
        single = _one(call(rows[0]))
    except DataError as error:
        if failure is not None and any(text in str(failure) for text in _OF_ONE_POINT):
            raise
        single = None
        failure = failure or error
    if single is not None:
        get_logger(__name__).info(
            f"{recipe.name} takes one point: it is called for each (faster: all rows at once)"
        )
        return Recipe(**(vars(recipe) | {"way": "point"}))
    if failure is not None and answer is None:
        raise failure
    raise DataError(
        f"{recipe.path}:{recipe.name}: {_described(answer)} for points of shape {list(rows.shape)}",
        expected=f"{len(rows)} values, one for each row",
    )


def _column(answer: Any, count: int) -> NDArray[Any] | None:
    """Give an answer as `count` numbers, None where it is something else."""
    values = _numbers(answer)
    if values is None or values.shape not in ((count,), (count, 1)):
        return None
    return values.reshape(count)


def _one(answer: Any) -> Any:
    values = _numbers(answer)
    return None if values is None or values.size != 1 else values.reshape(())[()]


def _numbers(answer: Any) -> NDArray[Any] | None:
    try:
        values = np.asarray(answer)
    except (ValueError, TypeError):
        return None
    return values if values.dtype.kind in "biuf" else None


def _described(answer: Any) -> str:
    if isinstance(answer, np.ndarray):
        return f"an array of {answer.dtype}, shape {list(answer.shape)},"
    return f"{type(answer).__name__} {str(answer)[:40]!r}"


class _OverTimeError(BaseException):
    """The alarm rang inside the user's function; no `except Exception` there holds it up."""


@contextlib.contextmanager
def _alarm(recipe: Recipe) -> Iterator[None]:
    """Give up the function when its time is over (in a main thread, where signals arrive)."""
    if recipe.timeout_s is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, recipe.timeout_s)
    try:
        yield
    except _OverTimeError:
        raise TryLaterError(
            f"{recipe.path}:{recipe.name}: no answer within {recipe.timeout_s:g} s "
            "(--timeout allows more)"
        ) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _ring(_number: int, _frame: FrameType | None) -> NoReturn:
    raise _OverTimeError


@contextlib.contextmanager
def as_users(path: str) -> Iterator[None]:
    """Send to stderr what the user's code prints, and tell what it raises with file and line.

    Raises `DataError` for all of it; what papercuts itself raises passes.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except PapercutsError:
        raise
    except SystemExit as error:
        raise DataError(f"the target called exit({error.code!r})", path=path) from error
    except RecursionError as error:
        raise DataError("RecursionError: it calls itself without end", path=path) from error
    except Exception as error:
        line, message = _told(error, path)
        raise DataError(message, path=path, line=line) from error


def _told(error: Exception, path: str) -> tuple[int | None, str]:
    """Give the last line of the user's file on the way to an error, and the error on one line."""
    if isinstance(error, SyntaxError) and error.filename == path:
        return error.lineno, f"{type(error).__name__}: {error.msg}"
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == path
    ]  # fmt: skip
    text = " ".join(str(error).split())
    message = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if "must be Tensor" in message:
        message += " (a function of torch needs --device cpu or another)"
    return (lines[-1] if lines else None), message

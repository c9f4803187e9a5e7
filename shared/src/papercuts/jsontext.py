"""One JSON value to and from one line of text, fast, without losing whole numbers.

orjson does the work. Two cases go the slower way through the standard library: whole numbers that
do not fit 64 bits, which orjson would round to a float, and values that orjson does not write.

Numbers: a whole number of up to 308 digits comes back exactly; a float comes back as the same
double (its spelling may change: `1E5` is written `100000.0`); NaN and infinity are written as
null and are not JSON on the way in.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from typing import Any

import orjson

from papercuts.errors import DataError

_OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE
# A whole number that needs more than 64 bits has 19 digits or more, and stands behind one of these.
_OUTLINE = bytes.maketrans(b"123456789" + b",[- \t", b"000000000" + b":::::")
_LONG_INTEGER = b":" + b"0" * 19
_NOT_A_NUMBER = re.compile(r"-?(NaN|Infinity|nan|inf)\b")


def loads(line: bytes) -> Any:
    """Read one JSON object or list. Raises `orjson.JSONDecodeError`, a `ValueError`."""
    value = orjson.loads(line)
    if _LONG_INTEGER in line.translate(_OUTLINE):  # ten times faster than a regular expression
        return json.loads(line)
    return value


def why_not_json(line: bytes, error: Exception) -> tuple[str, str]:
    """Say what is wrong with a line that is not JSON, and what was expected there."""
    expected = "one JSON object a line"
    if line[:2] == b"\x1f\x8b" or line[:4] == b"\x28\xb5\x2f\xfd" or line[:6] == b"\xfd7zXZ\0":
        return "compressed data", "text, or a name ending in .gz, .xz or .zst"
    try:
        text = line.decode()
    except UnicodeDecodeError as bad:
        return f"invalid UTF-8 at byte {bad.start + 1}", "UTF-8 text"
    if line.strip() in (b"{", b"["):
        return "a JSON value over several lines", expected
    if not isinstance(error, orjson.JSONDecodeError):
        return f"not JSON: {error}", expected
    start = error.pos - (text[error.pos - 1 : error.pos] == "-")
    number = _NOT_A_NUMBER.match(text, start)
    if number is not None:
        return f"{number[0]} is not JSON", "a number or null"
    return f"not JSON: {error.msg}, at column {error.colno}", expected


def dumps(value: Any) -> bytes:
    """Write one JSON value as one line of UTF-8 with its newline.

    NaN and infinity become null; numpy scalars and arrays, torch tensors, dataclasses, dates,
    enums and paths are written as what they hold; surrogates that are no text (undecodable
    bytes of a file name) become U+FFFD. Raises `TypeError` for anything else.
    """
    try:
        return orjson.dumps(value, _held, _OPTIONS)
    except TypeError:
        pass
    try:
        text = json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        raise DataError("a value is nested too deeply to be written") from None
    return text.encode() + b"\n"


def clean(text: str) -> str:
    """Replace surrogates, which UTF-8 cannot hold, by U+FFFD."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _held(value: Any) -> Any:
    """Turn an object that orjson does not know into what it holds."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, float):  # a subclass
        return float(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _plain(value: Any) -> Any:
    """Rewrite a value with what the standard library writes without loss or NaN."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, Mapping):
        return {clean(k) if isinstance(k, str) else k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist") or isinstance(value, os.PathLike):
        return _plain(_held(value))
    return orjson.loads(orjson.dumps(value, _held, _OPTIONS))

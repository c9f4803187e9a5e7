"""Shapes from what a person says: lengths and block sizes, or tiles, and a mask."""

from __future__ import annotations

import io
import re
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bitsched.plan import counted
from bitsched.shape import Mask, Shape
from papercuts.errors import DataError, UsageError
from papercuts.streams import open_input

Active = NDArray[np.bool_]

MOST_TILES = 2**28  # of one head: 256 MiB of mask
MOST_TASKS = 2**27  # of all heads: some 8 GiB while they are planned
MOST_NUMBER = 2**20  # of heads, of tiles in a row
_NPY = b"\x93NUMPY"


def make_shape(
    mask: str = "full",
    *,
    seqlen: str | None = None,
    block: str | None = None,
    n: str | None = None,
    stride: int = 1,
    heads: int = 1,
    kv_heads: int | None = None,
) -> Shape:
    """Make a shape from the words of the command line.

    `mask`: full, causal, window:LEFT,RIGHT (how far a query sees, in tokens, or in Q tiles with
    `n`; -1 is no limit) or file:PATH (blocks). `seqlen` is Q or QxKV tokens, `block` BQ or BQxBKV
    tokens (default 128x128); `n`, instead of them, is Q or QxKV tiles, and then a KV tile is
    `stride` Q tiles wide (`n` alone gives the KV tiles). Causal masks and windows are aligned at
    the last query and key. `kv_heads` (default: heads) is how many KV heads the heads share.
    Raises `UsageError` for words that cannot be meant, `InputError` and `DataError` for a file.
    """
    kind, _, rest = mask.partition(":")
    sizes = _sizes(seqlen, block, n, stride)
    group = _group(heads, kv_heads)
    if kind == "file":
        active = read_blocks(rest)
        if sizes is not None and (sizes[0], sizes[1]) != active.shape[::-1]:
            raise DataError(
                f"{counted(active.shape[1], 'row')} of {counted(active.shape[0], 'tile')}",
                path=rest,
                expected=f"{sizes[0]} Q tiles (rows) by {sizes[1]} KV tiles",
            )
        return _checked(heads, active, group, "blocks", {"blocks": pack_blocks(active)})
    if kind not in ("full", "causal", "window") or (rest != "" and kind != "window"):
        raise UsageError(f"no mask {mask!r}: full, causal, window:LEFT,RIGHT or file:PATH")
    if sizes is None:
        raise UsageError("say how large it is: --seqlen (and --block), or --n")
    n_q, n_kv, block_q, block_kv, length_q, length_kv = sizes
    about: dict[str, object] = {"tile_q": block_q, "tile_kv": block_kv}
    about |= {"length_q": length_q, "length_kv": length_kv}
    if kind == "window":
        about["window"] = list(_window(rest))
    if n_q * n_kv > MOST_TILES or max(n_q, n_kv) >= MOST_NUMBER:
        raise UsageError(f"{n_q} x {n_kv} tiles a head are more than can be planned")
    return _checked(heads, _active(kind, about), group, kind, about)


def shape_of(about: dict[str, object]) -> Shape | None:
    """Make the shape of a plan again from what it carries; None where that is not enough."""
    try:
        heads, kv_heads = _whole(about["heads"]), _whole(about["kv_heads"])
        mask = about["mask"]
        if mask == "blocks":
            active = unpack_blocks(about["blocks"], _whole(about["n_q"]))
        elif mask in ("full", "causal", "window"):
            known = {"tile_q": 1, "tile_kv": 1, "length_q": about["n_q"]} | about
            known.setdefault("length_kv", about["n_kv"])
            active = _active(str(mask), known)
        else:
            return None
        if heads * int(active.sum()) > MOST_TASKS or heads % kv_heads:
            return None
        if active.shape != (about["n_kv"], about["n_q"]):
            return None
        return Shape(heads, active, heads // kv_heads, mask, about)
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return None


def _whole(value: object) -> int:
    if type(value) is not int or not 0 <= value < 2**40:
        raise TypeError("not a number of something")
    return value


def _active(kind: str, about: dict[str, Any]) -> Active:
    """Say which tiles some query of the one sees some key of the other: [n_kv, n_q]."""
    block_q, block_kv = _whole(about["tile_q"]), _whole(about["tile_kv"])
    length_q, length_kv = _whole(about["length_q"]), _whole(about["length_kv"])
    n_q, n_kv = -(-length_q // block_q), -(-length_kv // block_kv)
    if not 0 < n_q * n_kv <= MOST_TILES:
        raise ValueError("no tiles, or too many")
    left, right = {"full": (-1, -1), "causal": (-1, 0)}.get(kind) or about["window"]
    first_q = np.arange(n_q) * block_q
    last_q = np.minimum(first_q + block_q, length_q) - 1
    first_kv = np.arange(n_kv)[:, None] * block_kv
    last_kv = np.minimum(first_kv + block_kv, length_kv) - 1
    shift = length_kv - length_q  # the last query is at the last key
    active = np.ones((n_kv, n_q), dtype=bool)
    if right >= 0:
        active &= first_kv <= last_q + shift + right
    if left >= 0:
        active &= last_kv >= first_q + shift - left
    return active


def _checked(heads: int, active: Active, group: int, mask: str, about: dict[str, object]) -> Shape:
    tiles = int(active.sum())
    if not tiles:
        raise UsageError("the mask leaves no tile")
    if tiles * heads > MOST_TASKS:
        raise UsageError(f"{tiles * heads} tiles in all: at most {MOST_TASKS} are planned")
    return Shape(heads, active, group, cast(Mask, mask), about)


def _group(heads: int, kv_heads: int | None) -> int:
    if not 1 <= heads < MOST_NUMBER:
        raise UsageError(f"{heads} heads: 1 to {MOST_NUMBER - 1} are planned")
    if kv_heads is None:
        return 1
    if kv_heads < 1 or heads % kv_heads:
        raise UsageError(f"{heads} heads cannot share {kv_heads} KV heads evenly")
    return heads // kv_heads


def _sizes(
    seqlen: str | None, block: str | None, n: str | None, stride: int
) -> tuple[int, int, int, int, int, int] | None:
    """Give n_q, n_kv, the sizes of their tiles, and the lengths, in tokens (Q tiles with `n`)."""
    if stride < 1:
        raise UsageError(f"--stride {stride}: a KV tile is at least one Q tile wide")
    if n is not None:
        if seqlen is not None or block is not None:
            raise UsageError("--n counts tiles: it goes without --seqlen and --block")
        n_q, n_kv = _pair("--n", n)
        if "x" not in n:
            n_q *= stride
        return n_q, n_kv, 1, stride, n_q, n_kv * stride
    if stride != 1:
        raise UsageError("--stride goes with --n; with --seqlen the blocks say it")
    if seqlen is None:
        if block is not None:
            raise UsageError("--block goes with --seqlen")
        return None
    length_q, length_kv = _pair("--seqlen", seqlen)
    block_q, block_kv = _pair("--block", block or "128x128")
    return (
        -(-length_q // block_q), -(-length_kv // block_kv), block_q, block_kv, length_q, length_kv,
    )  # fmt: skip


def _pair(option: str, text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,12})(?:x(\d{1,12}))?", text.strip())
    first = int(found[1]) if found else 0
    second = int(found[2]) if found and found[2] is not None else first
    if first < 1 or second < 1:
        raise UsageError(f"{option} {text!r} is not N or QxKV, whole numbers from 1")
    return first, second


def _window(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(-1|\d{1,12}),(-1|\d{1,12})", text.strip())
    if found is None:
        raise UsageError(f"window:{text} is not window:LEFT,RIGHT, whole numbers from -1")
    return int(found[1]), int(found[2])


def read_blocks(path: str) -> Active:
    """Read a block mask: rows are Q tiles, columns KV tiles; gives [n_kv, n_q].

    A text of 0 and 1 (blanks and commas between them are allowed, # starts a comment), or an NPY
    file of a table of 0 and 1; pickles in it are never loaded. Raises `InputError` when it cannot
    be read, `DataError` for anything else in it.
    """
    if not path:
        raise UsageError("--mask file: names no file")
    with open_input(path) as file:
        data = file.read()
    table = _npy(data, path) if data.startswith(_NPY) else _text(data, path)
    if not table.any():
        raise DataError("no tile is 1", path=path, expected="at least one")
    if table.size > MOST_TILES:
        raise DataError(f"{table.size} tiles", path=path, expected=f"at most {MOST_TILES}")
    return np.ascontiguousarray(table.T)


def _text(data: bytes, path: str) -> Active:
    rows: list[list[bool]] = []
    for number, line in enumerate(data.splitlines(), 1):
        digits = re.sub(rb"[\s,]", b"", line.split(b"#")[0].removeprefix(b"\xef\xbb\xbf"))
        if not digits:
            continue
        if digits.strip(b"01"):
            raise DataError("a character that is not 0 or 1", path=path, line=number)
        if rows and len(digits) != len(rows[0]):
            raise DataError(
                counted(len(digits), "tile"), path=path, line=number, expected=f"{len(rows[0])}"
            )
        rows.append([digit == 0x31 for digit in digits])
    if not rows:
        raise DataError("the block mask is empty", path=path, expected="rows of 0 and 1")
    return np.array(rows, dtype=bool)


def _npy(data: bytes, path: str) -> Active:
    try:
        table = np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        text = str(error).split(". ")[0].split("\n")[0]
        raise DataError(f"not a readable NPY file: {text}", path=path) from None
    if table.ndim != 2 or table.dtype.kind not in "biu" or not np.isin(table, (0, 1)).all():
        raise DataError(
            f"an array of {table.dtype} of shape {list(table.shape)}",
            path=path,
            expected="a table of 0 and 1, Q tiles by KV tiles",
        )
    return np.asarray(table, dtype=bool)


def pack_blocks(active: Active) -> list[str]:
    """Write [n_kv, n_q] as one hexadecimal text for each KV tile."""
    return [row.tobytes().hex() for row in np.packbits(active, axis=1)]


def unpack_blocks(rows: object, n_q: int) -> Active:
    """Read what `pack_blocks` wrote. Raises `ValueError` or `TypeError` for anything else."""
    if not isinstance(rows, list) or not rows:
        raise TypeError("not a list of rows")
    packed = [np.frombuffer(bytes.fromhex(row), dtype=np.uint8) for row in rows]
    return np.unpackbits(np.stack(packed), axis=1, count=n_q).astype(bool)

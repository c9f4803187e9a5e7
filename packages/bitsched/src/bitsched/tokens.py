"""How many tokens a plan's tiles hold, and which query sees which key."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitsched.plan import Plan, counted
from papercuts.errors import DataError, UsageError

TILE = 64  # queries in a tile, for a plan in tiles alone


@dataclass(frozen=True)
class Tokens:
    """The heads and tiles of a plan, and their lengths in tokens.

    Q tile j holds the queries `block_q * j` to `block_q * (j + 1) - 1`, as far as there are
    `length_q`; KV tiles likewise. `scale` is the tokens in a unit of the plan's own lengths.
    """

    heads: int
    n_kv: int
    n_q: int
    block_q: int
    block_kv: int
    length_q: int
    length_kv: int
    scale: int

    def queries(self, tile: int) -> slice:
        """Give the queries of a Q tile."""
        return slice(tile * self.block_q, min((tile + 1) * self.block_q, self.length_q))

    def keys(self, tile: int) -> slice:
        """Give the keys of a KV tile."""
        return slice(tile * self.block_kv, min((tile + 1) * self.block_kv, self.length_kv))


def tokens_of(plan: Plan, seqlen: int | None = None) -> Tokens:
    """Lay a plan's tiles over `seqlen` queries.

    By default as many as the plan was made for, or 64 a tile where it was made in tiles. Another
    number is dealt to the Q tiles evenly, and the keys so that the tiles keep their proportion.
    Raises `UsageError` for a number that does not go into them, `DataError` for a plan whose own
    lengths do not.
    """
    used = [int(column.max(initial=-1)) + 1 for column in (plan.head, plan.kv, plan.q)]
    heads, n_kv, n_q = (
        max(count, _said(plan, name, count))
        for name, count in zip(("heads", "n_kv", "n_q"), used, strict=True)
    )
    if 0 in used:
        raise UsageError("the plan has no tiles")
    block_q = _said(plan, "tile_q", 1)
    block_kv = _said(plan, "tile_kv", max(1, block_q * n_q // n_kv))
    length_q = _said(plan, "length_q", n_q * block_q)
    length_kv = _said(plan, "length_kv", n_kv * block_kv)
    for name, length, tiles, block in (
        ("queries", length_q, n_q, block_q),
        ("keys", length_kv, n_kv, block_kv),
    ):
        if block > 1 and not (tiles - 1) * block < length <= tiles * block:
            raise DataError(
                f"the plan says {length} {name} in {counted(tiles, 'tile')} of {block}",
                expected=f"{(tiles - 1) * block + 1} to {tiles * block}",
            )
    if seqlen is None:
        seqlen = length_q if block_q > 1 else n_q * TILE
    if seqlen == length_q:
        return Tokens(heads, n_kv, n_q, block_q, block_kv, length_q, length_kv, 1)
    if seqlen < 1 or seqlen % (n_q * block_q):
        has = counted(n_q, "Q tile")
        raise UsageError(
            f"--seqlen {seqlen}: the plan has {has}, so take a multiple of {n_q * block_q}"
            + (f", or {length_q}" if length_q != n_q * block_q else "")
        )
    scale = seqlen // (n_q * block_q)
    return Tokens(
        heads, n_kv, n_q, block_q * scale, block_kv * scale, seqlen, n_kv * block_kv * scale, scale
    )


def seen(plan: Plan, tokens: Tokens) -> NDArray[np.bool_]:
    """Say which query sees which key: [length_q, length_kv].

    Within the tiles of the plan, and under a causal mask or a window by token, aligned at the
    last query and key as in `bitsched.masks`; in a block mask a tile is seen whole.
    """
    tiles = np.zeros((tokens.n_q, tokens.n_kv), dtype=bool)
    tiles[plan.q, plan.kv] = True
    query = np.arange(tokens.length_q)[:, None]
    key = np.arange(tokens.length_kv)
    found: NDArray[np.bool_] = tiles[query // tokens.block_q, key // tokens.block_kv]
    mask, window = plan.about.get("mask"), plan.about.get("window")
    left, right = -1, 0 if mask == "causal" else -1
    if mask == "window" and isinstance(window, list):
        left, right = (int(side) for side in window)
    last = query + tokens.length_kv - tokens.length_q  # the key at the query's own place
    if right >= 0:
        found &= key < last + (right * tokens.scale) + 1
    if left >= 0:
        found &= key >= last - left * tokens.scale
    return found


def _said(plan: Plan, name: str, otherwise: int) -> int:
    value = plan.about.get(name)
    return value if type(value) is int and value > 0 else otherwise

"""How many tokens a tile holds, and which query sees which key."""

from dataclasses import replace

import numpy as np
import pytest

from bitsched.masks import make_shape
from bitsched.planning import make_plan
from bitsched.tokens import seen, tokens_of
from papercuts.errors import DataError, UsageError


def test_tokens_of_a_plan_in_tiles_or_in_tokens():
    tiles = make_plan(make_shape("causal", n="4", stride=2), "asc")
    assert tokens_of(tiles).length_q == 8 * 64
    assert (tokens_of(tiles, 80).block_q, tokens_of(tiles, 80).block_kv) == (10, 20)
    tokens = make_plan(make_shape("causal", seqlen="100", block="32"), "asc")
    assert (tokens_of(tokens).length_q, tokens_of(tokens, 256).block_q) == (100, 64)
    with pytest.raises(UsageError, match=r"--seqlen 90: .* 4 Q tiles, .* multiple of 128, or 100"):
        tokens_of(tokens, 90)


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"tile_q": 16, "length_q": 100}, "100 queries in 2 tiles of 16 .expected 17 to 32"),
        ({"tile_q": 16, "length_q": 16}, "16 queries in 2 tiles of 16"),
        ({"tile_kv": 8, "length_kv": 17}, "17 keys in 2 tiles of 8 .expected 9 to 16"),
    ],
)
def test_a_plan_whose_lengths_do_not_fit_its_tiles_is_bad_data(about, message):
    plan = make_plan(make_shape("full", n="2"), "asc")
    sizes = {"heads": 1, "kv_heads": 1, "n_kv": 2, "n_q": 2, "tile_q": 16, "tile_kv": 8}
    sizes |= {"length_q": 32, "length_kv": 16}
    assert tokens_of(replace(plan, about=sizes)).length_kv == 16
    with pytest.raises(DataError, match=message):
        tokens_of(replace(plan, about=sizes | about))


@pytest.mark.parametrize("mask", ["causal", "window:3,0", "window:2,1"])
def test_scaled_tiles_hide_no_token_that_the_mask_shows(mask):
    """Every row sees as many keys as the mask says, so no tile of it is missing in the plan."""
    plan = make_plan(make_shape(mask, n="6"), "asc")
    found = seen(plan, tokens_of(plan, 24))
    query, key = np.arange(24)[:, None], np.arange(24)
    left, right = {"causal": (24, 0), "window:3,0": (12, 0), "window:2,1": (8, 4)}[mask]
    assert np.array_equal(found, (key <= query + right) & (key >= query - left))

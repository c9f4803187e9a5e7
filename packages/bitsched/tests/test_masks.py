"""Which tiles a mask leaves: against every query and key of it, and what is refused."""

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitsched.masks import make_shape, pack_blocks, read_blocks, shape_of, unpack_blocks
from bitsched.planning import shape_about
from bitsched.shape import causal
from papercuts.errors import DataError, InputError, UsageError


def by_tokens(left: int, right: int, length: tuple[int, int], block: tuple[int, int]) -> np.ndarray:
    """Look at every query and key: [n_kv, n_q]."""
    active = np.zeros((-(-length[1] // block[1]), -(-length[0] // block[0])), dtype=bool)
    for query in range(length[0]):
        at = query + length[1] - length[0]
        for key in range(length[1]):
            if (left < 0 or key >= at - left) and (right < 0 or key <= at + right):
                active[key // block[1], query // block[0]] = True
    return active


@settings(max_examples=40, deadline=None)
@given(
    st.tuples(st.integers(1, 16), st.integers(1, 16)),
    st.tuples(st.integers(1, 6), st.integers(1, 6)),
    st.sampled_from(["full", "causal", "window"]),
    st.integers(-1, 8), st.integers(-1, 8),
)  # fmt: skip
def test_tiles_are_those_in_which_a_query_sees_a_key(length, block, kind, left, right) -> None:
    sees = {"full": (-1, -1), "causal": (-1, 0)}.get(kind, (left, right))
    mask = f"window:{left},{right}" if kind == "window" else kind
    words = {"seqlen": f"{length[0]}x{length[1]}", "block": f"{block[0]}x{block[1]}"}
    expected = by_tokens(*sees, length, block)
    if not expected.any():
        with pytest.raises(UsageError, match="leaves no tile"):
            make_shape(mask, **words)
        return
    shape = make_shape(mask, heads=4, kv_heads=2, **words)
    assert np.array_equal(shape.active, expected)
    again = shape_of(shape_about(shape))
    assert again is not None
    assert np.array_equal(again.active, expected)
    assert (again.heads, again.group) == (4, 2)


def test_shapes_of_the_sheet() -> None:
    shape = make_shape("causal", seqlen="8192", block="128x128", heads=16)
    assert (shape.n_q, shape.n_kv, shape.tasks) == (64, 64, 16 * 64 * 65 // 2)
    wide = make_shape("causal", seqlen="8192", block="64x128")
    assert (wide.n_q, wide.n_kv) == (128, 64)
    assert np.array_equal(wide.active, causal(64, 128, 2))
    assert np.array_equal(make_shape("causal", n="64", stride=2).active, wide.active)
    assert make_shape("full", seqlen="8192x4096").active.shape == (32, 64)
    assert make_shape("full", n="6x4").active.shape == (4, 6)


def saved(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


TABLE = np.array([[1, 0, 0], [1, 1, 0]])  # two Q tiles by three KV tiles


@pytest.mark.parametrize(
    "data",
    [
        b"100\n110\n", b"\xef\xbb\xbf1 0 0 # a comment\r\n\r\n1,1,0\r\n",
        saved(TABLE), saved(TABLE.astype(bool)), saved(np.asfortranarray(TABLE.astype(np.uint8))),
    ],
)  # fmt: skip
def test_a_block_mask_has_q_tiles_as_rows(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "mask"
    path.write_bytes(data)
    assert np.array_equal(read_blocks(str(path)), TABLE.T.astype(bool))
    shape = make_shape(f"file:{path}", heads=2)
    again = shape_of(shape_about(shape))
    assert again is not None
    assert np.array_equal(again.active, shape.active)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the block mask is empty"),
        (b"100\n1x0\n", ":2: a character that is not 0 or 1"),
        (b"100\n\n11\n", ":3: 2 tiles .expected 3"),
        (b"000\n000\n", "no tile is 1"),
        (b"\xff\xfe1", ":1: a character that is not 0 or 1"),
        (saved(np.array([{"a": 1}])), "not a readable NPY file"),
        (saved(TABLE)[:-4], "not a readable NPY file"),
        (saved(np.array([1, 0])), r"an array of int64 of shape \[2\]"),
        (saved(TABLE * 0.5), "an array of float64"),
        (saved(TABLE * 2), "an array of int64"),
        (b"\x93NUMPY\x01\x00\x05\x00abcde", "not a readable NPY file"),
    ],
)
def test_a_file_that_is_no_block_mask_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "mask"
    path.write_bytes(data)
    with pytest.raises(DataError, match=message):
        make_shape(f"file:{path}")


def test_a_block_mask_of_another_size_or_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mask"
    path.write_bytes(b"100\n110\n")
    with pytest.raises(DataError, match=r"2 rows of 3 tiles .expected 3 Q tiles"):
        make_shape(f"file:{path}", n="3x2")
    with pytest.raises(InputError, match="no such file"):
        make_shape(f"file:{tmp_path / 'none'}")


@given(st.integers(1, 30), st.integers(1, 5), st.integers(0, 1000))
def test_packed_blocks_come_back(n_q: int, n_kv: int, seed: int) -> None:
    active = np.random.default_rng(seed).random((n_kv, n_q)) < 0.5
    assert np.array_equal(unpack_blocks(pack_blocks(active), n_q), active)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({}, "say how large it is"),
        ({"mask": "round", "n": "4"}, "no mask 'round'"),
        ({"mask": "full:1", "n": "4"}, "no mask 'full:1'"),
        ({"mask": "window:1", "n": "4"}, "window:LEFT,RIGHT"),
        ({"mask": "window:-2,0", "n": "4"}, "window:LEFT,RIGHT"),
        ({"mask": "file:"}, "names no file"),
        ({"n": "0"}, "--n '0'"),
        ({"n": "4x"}, "--n '4x'"),
        ({"n": "1e3"}, "--n '1e3'"),
        ({"n": "4", "seqlen": "4"}, "without --seqlen"),
        ({"block": "4"}, "goes with --seqlen"),
        ({"seqlen": "4", "stride": 2}, "goes with --n"),
        ({"n": "4", "stride": 0}, "--stride 0"),
        ({"seqlen": "4", "block": "0"}, "--block '0'"),
        ({"n": "4", "heads": 0}, "0 heads"),
        ({"n": "4", "heads": 4, "kv_heads": 3}, "cannot share 3 KV heads"),
        ({"n": "999999"}, "more than can be planned"),
        ({"n": "999", "heads": 99999}, "at most"),
    ],
)
def test_words_that_mean_no_shape_are_refused(words: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_shape(**words)


@pytest.mark.parametrize(
    "about",
    [
        {}, {"mask": "causal"}, {"mask": "causal", "heads": 1, "kv_heads": 1, "n_kv": 2, "n_q": -1},
        {"mask": "causal", "heads": 1, "kv_heads": 0, "n_kv": 2, "n_q": 2},
        {"mask": "causal", "heads": "1", "kv_heads": 1, "n_kv": 2, "n_q": 2},
        {"mask": "causal", "heads": 1, "kv_heads": 1, "n_kv": 2**39, "n_q": 2**39},
        {"mask": "causal", "heads": 1, "kv_heads": 1, "n_kv": 2, "n_q": 2, "tile_q": 0},
        {"mask": "window", "heads": 1, "kv_heads": 1, "n_kv": 2, "n_q": 2, "window": [1]},
        {"mask": "window", "heads": 1, "kv_heads": 1, "n_kv": 2, "n_q": 2, "window": "ab"},
        {"mask": "blocks", "heads": 1, "kv_heads": 1, "n_kv": 2, "n_q": 2, "blocks": ["zz"]},
        {"mask": "blocks", "heads": 1, "kv_heads": 1, "n_kv": 2, "n_q": 2, "blocks": ["c0", "c"]},
        {"mask": "blocks", "heads": 1, "kv_heads": 1, "n_kv": 2, "n_q": 2, "blocks": "c0"},
        {"mask": ["causal"], "heads": 1, "kv_heads": 1, "n_kv": 2, "n_q": 2},
        {"mask": "causal", "heads": 2**39, "kv_heads": 1, "n_kv": 9, "n_q": 9},
    ],
)  # fmt: skip
def test_a_plan_that_does_not_say_its_shape_has_none(about: dict) -> None:
    assert shape_of(about) is None

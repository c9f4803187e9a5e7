"""The labelling list against its closed form, and against all graphs."""

import itertools
import random

import pytest
from smallgraphs import random_query

from tierprune.needed import ACROSS, WITHIN, needed_pairs
from tierprune.query import Query, band_of
from tierprune.tiers import Tiers


def drawn(rng: random.Random) -> tuple[Tiers, Query]:
    sizes = [rng.randint(1, 6) for _ in range(rng.randint(2, 6))]
    sizes[0] += 3
    groups = [[f"v{tier}_{i}" for i in range(n)] for tier, n in enumerate(sizes)]
    tiers = Tiers(tuple(tuple(group) for group in groups))
    return tiers, random_query(rng, tiers.names, rng.randint(0, 2))


def test_count_is_the_closed_form_and_pairs_are_those_into_the_band() -> None:
    """Sum over the tiers i of the band of n_i (n_1 + ... + n_(i-1)) + n_i (n_i - 1) / 2."""
    rng = random.Random(0)
    for _ in range(200):
        tiers, query = drawn(rng)
        band = band_of(query, tiers)
        need = needed_pairs(tiers, query)
        n = [len(group) for group in tiers.groups]
        closed = sum(
            n[i - 1] * sum(n[: i - 1]) + n[i - 1] * (n[i - 1] - 1) // 2
            for i in range(band.first, band.last + 1)
        )
        pairs = list(need)
        assert len(pairs) == need.pairs == closed
        assert need.all_pairs == len(tiers.names) * (len(tiers.names) - 1) // 2
        expected = {
            frozenset(pair)
            for pair in itertools.combinations(tiers.names, 2)
            if band.first <= max(tiers.of[name] for name in pair) <= band.last
        }
        assert {frozenset((pair.a, pair.b)) for pair in pairs} == expected
        for pair in pairs:
            assert tiers.of[pair.a] == pair.tier_a <= pair.tier_b == tiers.of[pair.b]
            assert pair.possible == (WITHIN if pair.tier_a == pair.tier_b else ACROSS)


def test_never_needed_are_in_no_pair() -> None:
    rng = random.Random(1)
    for _ in range(200):
        tiers, query = drawn(rng)
        need = needed_pairs(tiers, query)
        used = {name for pair in need for name in (pair.a, pair.b)} | set(query.names)
        assert set(need.never_needed) == set(tiers.names) - used


def test_record() -> None:
    need = needed_pairs(Tiers((("age",), ("drug", "diet"))), Query(("drug",), ("diet",)))
    assert [pair.to_dict() for pair in need] == [
        {"a": "age", "b": "drug", "tier_a": 1, "tier_b": 2, "possible": "-> none"},
        {"a": "age", "b": "diet", "tier_a": 1, "tier_b": 2, "possible": "-> none"},
        {"a": "drug", "b": "diet", "tier_a": 2, "tier_b": 2, "possible": "-> <- <-> none"},
    ]


def test_unknown_name() -> None:
    with pytest.raises(ValueError, match="q is not in the tiers"):
        needed_pairs(Tiers((("a",), ("b",))), Query(("a",), ("q",)))

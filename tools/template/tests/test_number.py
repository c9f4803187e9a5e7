from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolname import numbered, time_numbering

records = st.lists(st.dictionaries(st.text(max_size=5), st.integers(), max_size=3), max_size=8)


def test_numbers_in_order_from_start() -> None:
    assert list(numbered([{"id": "a"}, {"id": "b"}], start=3)) == [
        {"id": "a", "toolname": {"n": 3}},
        {"id": "b", "toolname": {"n": 4}},
    ]


@given(records)
def test_every_other_key_is_carried(rows: list[dict[str, int]]) -> None:
    carried = [
        {key: value for key, value in row.items() if key != "toolname"} for row in numbered(rows)
    ]
    assert carried == [
        {key: value for key, value in row.items() if key != "toolname"} for row in rows
    ]


def test_timing_counts_the_records_of_each_repeat() -> None:
    rows = list(time_numbering([{"id": 1}, {"id": 2}], repeats=3))
    assert [(row["repeat"], row["records"]) for row in rows] == [(0, 2), (1, 2), (2, 2)]
    assert all(row["wall_s"] >= 0 for row in rows)

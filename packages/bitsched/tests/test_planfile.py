"""Plan files: what is written comes back, and a line that is no processor's is named."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planreference import random_plan, square

from bitsched.plan import Plan
from bitsched.planfile import plan_lines, read_plan, write_plan
from bitsched.planning import make_plan
from bitsched.shape import Shape
from papercuts.errors import DataError, InputError, OutputError
from papercuts.streams import loads

COLUMNS = ("head", "kv", "q", "rank", "starts")


def same(a: Plan, b: Plan) -> bool:
    return a.about == b.about and all(
        np.array_equal(getattr(a, c), getattr(b, c)) and getattr(a, c).dtype == getattr(b, c).dtype
        for c in COLUMNS
    )


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 40), st.integers(1, 9), st.sampled_from(["", ".gz"]))
def test_a_plan_comes_back(tmp_path_factory, seed, tasks, processors, suffix) -> None:
    path = tmp_path_factory.mktemp("plan") / f"p.jsonl{suffix}"
    plan = random_plan(seed, tasks, processors, runs=True)
    write_plan(plan, path)
    assert same(read_plan(path), plan)
    text = gzip.decompress(path.read_bytes()) if suffix else path.read_bytes()
    assert text.startswith(b'{"processor":0,"tasks":[')
    with pytest.raises(OutputError, match="exists already"):
        write_plan(plan, path)


def test_a_line_is_a_processor_and_says_where_it_came_from() -> None:
    plan = make_plan(square("full", 2, 1), "shift", 2)
    first, second = (loads(line) for line in plan_lines(plan))
    assert first["tasks"] == [[0, 0, 0, 0], [0, 0, 1, 1]]
    assert second["tasks"] == [[0, 1, 1, 0], [0, 1, 0, 1]]
    assert first["bitsched"] == second["bitsched"] == plan.about


def test_lines_come_in_any_order_and_blocks_are_written_once(tmp_path: Path) -> None:
    shape = Shape(1, np.tri(3, 3, dtype=bool), mask="blocks", about={"blocks": ["80", "c0", "e0"]})
    plan = make_plan(shape, "asc", 3)
    lines = list(plan_lines(plan))
    assert ["blocks" in loads(line)["bitsched"] for line in lines] == [True, False, False]
    path = tmp_path / "p.jsonl"
    path.write_bytes(b"\n".join(reversed(lines)))
    assert same(read_plan(path), plan)


GOOD = b'{"processor": 0, "tasks": [[0, 0, 0, 0]]}\n'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", ":2: a JSON value over several lines"),
        (b"[]", ":2: the line is a list"),
        (b"processor,tasks", r":2: this line is not JSON .expected a line of `bitsched plan`"),
        (b"{'processor': 1}", ":2: not JSON: .*, at column 2"),
        (b"{}", ":2: no key 'processor'"),
        (b'{"processor": true, "tasks": []}', ":2: processor is true"),
        (b'{"processor": -1, "tasks": []}', ":2: processor is -1"),
        (b'{"processor": 1.0, "tasks": []}', ":2: processor is 1.0"),
        (b'{"processor": 0, "tasks": []}', ":2: processor 0 was on line 1 already"),
        (b'{"processor": 2, "tasks": []}', ":2: processor 1 is missing"),
        (b'{"processor": 1}', ":2: no list 'tasks'"),
        (b'{"processor": 1, "tasks": [7]}', r":2: task 0 is 7 .expected \[head, kv, q, rank\]"),
        (b'{"processor": 1, "tasks": [[0, 0, 1, 0], [1, 2, 3]]}', r":2: task 1 is \[1,2,3\]"),
        (b'{"processor": 1, "tasks": [[0, 0, 0.5, 0]]}', ":2: task 0: q is 0.5"),
        (b'{"processor": 1, "tasks": [[0, "0", 0, 0]]}', ':2: task 0: kv is "0"'),
        (b'{"processor": 1, "tasks": [[null, 0, 0, 0]]}', ":2: task 0: head is null"),
        (b'{"processor": 1, "tasks": [[0, 0, 0, true]]}', ":2: task 0: rank is true"),
        (b'{"processor": 1, "tasks": [[0, 0, 0, true], [0, 0, 0, 1]]}', "task 0: rank is true"),
        (b'{"processor": 1, "tasks": [[0, 0, 0, -2]]}', ":2: task 0: rank is -2"),
        (b'{"processor": 1, "tasks": [[0, -1, 0, 0]]}', ":2: task 0: kv is -1"),
        (b'{"processor": 1, "tasks": [[0, 9999999, 0, 0]]}', ":2: task 0: kv is 9999999"),
        (b'{"processor": 1, "tasks": [[0, 1e400, 0, 0]]}', ":2:"),
        (b'{"processor": 1, "tasks": [[0, 99999999999999999999, 0, 0]]}', ":2: task 0: kv is 9999"),
        (b'{"processor": 1, "tasks": [[[0], 0, 0, 0]]}', r":2: task 0: head is \[0\]"),
    ],
)
def test_a_line_that_is_no_processor_is_named(tmp_path: Path, line: bytes, message: str) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(GOOD + line)
    with pytest.raises(DataError, match=message):
        read_plan(path)


def test_provenance_that_is_no_object_an_empty_file_and_none(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(GOOD[:-2] + b', "bitsched": 3}')
    with pytest.raises(DataError, match=":1: 'bitsched' is 3"):
        read_plan(path)
    path.write_bytes(b"\n")
    with pytest.raises(DataError, match="the plan is empty"):
        read_plan(path)
    with pytest.raises(InputError, match="no such file"):
        read_plan(tmp_path / "none")

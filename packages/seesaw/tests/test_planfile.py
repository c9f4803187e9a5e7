import csv
import json
from pathlib import Path
from typing import Any

import pytest

from papercuts.errors import DataError
from papercuts.streams import Record, read_records, write_records
from seesaw.plan import SeesawPlan
from seesaw.planfile import from_records, to_rows
from seesaw.planner import make_plan


def plan(**options: Any) -> SeesawPlan:
    return make_plan(
        **{"lr": 3e-3, "batch": 256, "seq_len": 1024, "tokens": 3.3e9, "cut": 2.0, **options}
    )


PLANS = [
    {},
    {"base": "step:0.3@0.4,0.8", "cut": None},
    {"optimizer": "sgd", "micro_batch": 16, "gpus": 4},
    {"base": "quarter-cosine", "final": 0.0, "cut": 1.1},
    {"base": "curve:0=1;0.5=0.4;0.5=0.2;1=0.1"},
    {"tokens": 2**60 + 1, "batch": 2**20, "seq_len": 2**20, "warmup": 0},
]


@pytest.mark.parametrize("options", PLANS)
@pytest.mark.parametrize("name", ["plan.csv", "plan.jsonl", "plan.csv.gz"])
def test_a_plan_comes_back_equal(tmp_path: Path, options: dict[str, Any], name: str) -> None:
    made = plan(**options)
    path = str(tmp_path / name)
    write_records(to_rows(made), path)
    assert from_records(read_records(path)) == made


def test_each_row_is_a_phase_with_the_whole_provenance() -> None:
    rows = to_rows(plan())
    assert [row["batch"] for row in rows] == [256, 512, 1024, 2048]
    assert list(rows[1]) == [
        "phase", "start_token", "start_step", "lr", "batch", "grad_accum", "steps", "tokens",
        "base_lr", "seesaw",
    ]  # fmt: skip
    assert rows[1]["seesaw"] == rows[3]["seesaw"]
    assert rows[0]["seesaw"]["total_tokens"] == 3_300_000_000
    assert rows[0]["seesaw"]["base"] == "cosine"
    assert rows[0]["seesaw"]["version"]


def records(rows: list[dict[str, Any]]) -> list[Record]:
    return [Record(row, "plan.jsonl", line) for line, row in enumerate(rows, 1)]


def test_keys_of_other_tools_are_ignored() -> None:
    rows = [{"id": 7, **row, "note": "x"} for row in to_rows(plan())]
    assert from_records(iter(records(rows))) == plan()


@pytest.mark.parametrize(
    ("row", "key", "value", "why"),
    [
        (1, "batch", -512, "plan.jsonl:2: batch is -512 .expected a whole number of at least 1"),
        (1, "batch", 512.5, "2: batch is 512.5"),
        (1, "batch", "many", "2: batch is 'many'"),
        (1, "batch", True, "2: batch is True"),
        (1, "batch", None, "2: batch is missing"),
        (2, "lr", 0, "3: lr is 0 .expected a number above 0"),
        (2, "lr", float("nan"), "3: lr is nan"),
        (2, "lr", [1], "3: lr is"),
        (2, "steps", 0, "3: steps is 0"),
        (2, "start_step", 17, "3: start_step is 17 .expected .*: the sum of the steps above"),
        (2, "start_token", 17, "3: start_token is 17 .expected .*: the sum of the tokens above"),
        (2, "phase", 7, "3: phase is 7 .expected 2"),
        (2, "tokens", 5, r"3: tokens is 5 .expected .*: steps \* batch \* seq_len"),
        (3, "base_lr", -1, "4: base_lr is -1"),
        (0, "seesaw", None, "1: there is no 'seesaw'"),
    ],
)
def test_a_bad_phase_is_named_with_its_line(row: int, key: str, value: Any, why: str) -> None:
    rows = to_rows(plan())
    rows[row][key] = value
    with pytest.raises(DataError, match=why):
        from_records(records(rows))


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("cut", 1.0, "1: seesaw.cut is 1"),
        ("cut", "x", "1: seesaw.cut is 'x'"),
        ("alpha", -1, "1: seesaw.alpha is -1"),
        ("optimizer", "lion", "1: seesaw.optimizer is 'lion'"),
        ("seq_len", 0, "1: seesaw.seq_len is 0"),
        ("seq_len", None, "1: seesaw.seq_len is missing"),
        ("warmup_tokens", 3_300_000_000, "1: seesaw.warmup_tokens is not below"),
        ("warmup_tokens", 3_000_000_000, "1: phase 0 ends after"),
        ("total_tokens", 3_200_000_000, "4: the plan ends after"),
        ("base", "sawtooth", "1: seesaw.base: unknown base schedule"),
    ],
)
def test_bad_provenance_is_named_with_its_line(key: str, value: Any, why: str) -> None:
    rows = to_rows(plan())
    for row in rows:
        row["seesaw"][key] = value
    with pytest.raises(DataError, match=why):
        from_records(records(rows))


def test_rows_of_two_plans_do_not_mix() -> None:
    rows = to_rows(plan())
    rows[2]["seesaw"]["gpus"] = 8
    with pytest.raises(DataError, match=r"3: seesaw.gpus is 8: .*expected 1, as in line 1"):
        from_records(records(rows))


def test_an_empty_file_is_no_plan() -> None:
    with pytest.raises(DataError, match="no plan"):
        from_records([])
    with pytest.raises(DataError, match=r"plan.csv: there is no plan here"):
        from_records([], "plan.csv")


def test_json_and_csv_hold_the_same_columns(tmp_path: Path) -> None:
    write_records(to_rows(plan()), str(tmp_path / "a.csv"))
    write_records(to_rows(plan()), str(tmp_path / "a.jsonl"))
    with (tmp_path / "a.csv").open() as file:
        header = next(csv.reader(file))
    first = json.loads((tmp_path / "a.jsonl").read_text().splitlines()[0])
    flat = [k for k in first if k != "seesaw"] + [f"seesaw.{k}" for k in first["seesaw"]]
    assert header == flat

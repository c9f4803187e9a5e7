import gzip
import io
import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from papercuts.errors import DataError, InputError, UsageError
from seesaw.curve import LrCurve, read_curve
from seesaw.measured import schedule_from_curve


def read(tmp_path: Path, text: str | bytes, name: str = "lr.csv", **fields: str) -> LrCurve:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_curve(str(path), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "0,0.1\n10,0.3\n20,0.2\n",
        "0,0.1\n10,0.3\n20,0.2",
        "step,lr\n0,0.1\n10,0.3\n20,0.2\n",
        "step,lr\r\n0,0.1\r\n10,0.3\r\n20,0.2\r\n",
        "\ufeffstep,lr\n0,0.1\n10,0.3\n20,0.2\n",
        "loss,lr,step\n9,1e-1,0\n8,3e-1,10\n7,2e-1,20\n",
        "global_step,learning_rate\n0,0.1\n10,0.3\n20,0.2\n",
        '"step","lr"\n"0","0.1"\n"10","0.3"\n"20","0.2"\n',
        "\n\nstep,lr\n\n0,0.1\n10,0.3\n\n20,0.2\n\n",
        "0,0.1\n5,\n10,0.3\n15,\n20,0.2\n",
    ],
)
def test_csv_in_all_its_forms(tmp_path: Path, text: str) -> None:
    curve = read(tmp_path, text)
    assert curve.at.tolist() == [0.0, 10.0, 20.0]
    assert curve.lr.tolist() == [0.1, 0.3, 0.2]
    assert curve.unit == "steps"
    rows = text.removeprefix("\ufeff").splitlines()
    cells = [rows[line - 1].replace('"', "").split(",") for line in curve.lines]
    assert [{float(c) for c in row} >= {a, v} for row, a, v in zip(
        cells, curve.at, curve.lr, strict=True)] == [True] * 3  # fmt: skip


def test_rows_without_a_learning_rate_are_counted(tmp_path: Path) -> None:
    assert read(tmp_path, "0,0.1\n5,\n10,0.3\n").skipped == 1
    assert read(tmp_path, '{"step":0,"lr":1}\n{"step":1,"eval_loss":2}\n').skipped == 1


def test_tokens_where_there_are_no_steps(tmp_path: Path) -> None:
    curve = read(tmp_path, "tokens,lr\n1024,0.1\n2048,0.3\n")
    assert curve.unit == "tokens"
    assert curve.at.tolist() == [1024.0, 2048.0]
    both = read(tmp_path, "tokens,step,lr\n1024,1,0.1\n2048,2,0.3\n")
    assert (both.unit, both.at.tolist()) == ("steps", [1.0, 2.0])


def test_json_logs(tmp_path: Path) -> None:
    rows = [
        {"event": "start"},
        {"step": 1, "loss": 3.0, "learning_rate": 1e-4},
        {"step": 1, "eval_loss": 2.9},
        {"step": 2, "loss": 2.9, "learning_rate": 2e-4},
    ]
    text = "\n".join(json.dumps(row) for row in rows) + "\n"
    curve = read(tmp_path, text, "run.jsonl")
    assert (curve.at.tolist(), curve.lr.tolist()) == ([1.0, 2.0], [1e-4, 2e-4])
    assert (curve.lines.tolist(), curve.skipped) == ([2, 4], 2)
    nested = '{"at":{"n":3},"optim":{"lr":0.5}}\n{"at":{"n":4},"optim":{"lr":0.25}}\n'
    curve = read(tmp_path, nested, lr_field="optim.lr", token_field="at.n")  # noqa: S106
    assert (curve.at.tolist(), curve.lr.tolist(), curve.unit) == ([3, 4], [0.5, 0.25], "tokens")


def test_the_csv_export_of_wandb(tmp_path: Path) -> None:
    name = "a, b - train/learning_rate"
    rows = ["0,0.5,0.5,0.5", "5,,,", "10,0.25,0.25,0.25"]
    for step in ("Step", "_step", "train/global_step"):
        header = f'"{step}","{name}","{name}__MIN","{name}__MAX"'
        quoted = ['"' + row.replace(",", '","') + '"' for row in rows]
        curve = read(tmp_path, "\n".join([header, *quoted]))
        assert (curve.at.tolist(), curve.lr.tolist()) == ([0, 10], [0.5, 0.25])
        assert (curve.unit, curve.lines.tolist(), curve.skipped) == ("steps", [2, 4], 1)


@pytest.mark.parametrize(
    ("header", "lr"),
    [
        ("Step,LR,base_lr", 1),
        ("STEP,train/lr,loss", 1),
        ("step,optim_learning_rate,lrs", 1),
        ("step,color,group0 lr", 2),
        ("step,base_lr,learning_rate", 2),
        ("step,LR,lr", 2),
        ("_step,train/global_step,lr", 2),
    ],
)
def test_names_of_the_learning_rate(tmp_path: Path, header: str, lr: int) -> None:
    curve = read(tmp_path, header + "\n3,5,7\n")
    assert curve.lr[0] == (3, 5, 7)[lr]
    assert curve.at[0] == (5 if "global" in header else 3)


def test_the_same_names_in_json(tmp_path: Path) -> None:
    text = '{"train/global_step":1,"_step":9,"train/learning_rate":0.5,"train/lr":null}\n'
    curve = read(tmp_path, text)
    assert (curve.at.tolist(), curve.lr.tolist()) == ([1], [0.5])


HISTORY = [
    {"epoch": 0.1, "learning_rate": 0.5, "loss": 9.0, "step": 10},
    {"eval_loss": float("nan"), "step": 10},
    {"note": "{", "learning_rate": 0.25, "step": 20},
]


@pytest.mark.parametrize(("indent", "lines"), [(2, [5, 15]), (None, [1, 1])])
def test_the_trainer_state_of_hugging_face(
    tmp_path: Path, indent: int | None, lines: list[int]
) -> None:
    state = {"best": None, "epoch": 1.0, "log_history": HISTORY, "max_steps": 20}
    curve = read(tmp_path, json.dumps(state, indent=indent), "trainer_state.json")
    assert (curve.at.tolist(), curve.lr.tolist()) == ([10, 20], [0.5, 0.25])
    assert (curve.lines.tolist(), curve.skipped) == (lines, 1)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_a_loss_that_is_no_number_does_not_matter(tmp_path: Path, value: str) -> None:
    text = f'{{"step":1,"loss":{value},"lr":0.5}}\n{{"step":2,"loss":3,"lr":{value}}}\n'
    curve = read(tmp_path, text)
    assert curve.lr[0] == 0.5
    with pytest.raises(DataError, match=r"lr.csv:2: lr is (nan|-?inf)"):
        schedule_from_curve(curve, batch=1)


def test_line_ends_of_the_classic_mac(tmp_path: Path) -> None:
    curve = read(tmp_path, "step,lr\r0,0.5\r10,0.25\r")
    assert (curve.at.tolist(), curve.lines.tolist()) == ([0, 10], [2, 3])


def test_named_columns_of_a_csv(tmp_path: Path) -> None:
    text = "i,train/lr,lr\n1,0.5,9\n2,0.25,9\n"
    curve = read(tmp_path, text, lr_field="train/lr", step_field="i")
    assert (curve.at.tolist(), curve.lr.tolist()) == ([1, 2], [0.5, 0.25])
    assert curve.unit == "steps"
    tokens = {"token_field": "i"}
    assert read(tmp_path, text, **tokens).unit == "tokens"
    assert read(tmp_path, "1,0.5\n2,0.25\n", **tokens).unit == "tokens"
    with pytest.raises(UsageError, match="exclude each other"):
        read(tmp_path, text, step_field="i", **tokens)


def test_compressed_files_and_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = gzip.compress(b"1,0.5\n2,0.25\n")
    assert read(tmp_path, packed, "lr.csv.gz").lr.tolist() == [0.5, 0.25]
    stdin = SimpleNamespace(buffer=io.BytesIO(b"1,0.5\n2,0.25\n"), closed=False)
    monkeypatch.setattr(sys, "stdin", stdin)
    assert read_curve("-").lr.tolist() == [0.5, 0.25]
    with pytest.raises(InputError):
        read_curve(str(tmp_path / "missing.csv"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0,0.1\n10,high\n", "lr.csv:2: lr is 'high' .expected a number"),
        ("0,0.1\n\nten,0.2\n", "lr.csv:3: step is 'ten'"),
        ("0,0.1\n10\n", "lr.csv:2: 1 cells in this row .expected step,lr"),
        ("0,0.1\n10,0.2,0.3\n", "lr.csv:2: 3 cells in this row .expected step,lr"),
        ("0,0.1,1\n10,0.2,1\n", "lr.csv:1: 3 cells in this row .expected step,lr"),
        ("a,step,lr\n1,2,3\n1,2\n", "lr.csv:3: 2 cells in this row .expected at least 3"),
        ("\nstep,loss\n1,2\n", "lr.csv:2: no column lr or learning_rate in the header 'step,loss'"),
        ("time,lr\n1,2\n", "lr.csv:1: no column step or global_step or "),
        ("", "lr.csv: no learning rate in this file"),
        ("\n\n", "no learning rate in this file"),
        ("step,lr\n", "no learning rate in this file"),
        ('{"step":1}\n', "no learning rate in this file"),
        ('{"step":1,"lr":0.1}\n{"step":2,"lr":"x"}\n', "lr.csv:2: lr is 'x'"),
        ('{"step":1,"lr":0.1}\n{"lr":0.2}\n', "lr.csv:2: there is no 'step'"),
        ('{"step":1,"lr":0.1}\n\n[1]\n', "lr.csv:3: not a JSON object"),
        ('{"step":1,"lr":0.1}\n{"step":true,"lr":1}\n', "lr.csv:2: step is True"),
        (b"0,0.1\n1,0.2\n\xff,3\n", "lr.csv:3: not UTF-8"),
        ("time,lr\n1,2\n", r"'time,lr' .name it with --step-field or --token-field"),
        ("step,loss\n1,2\n", "'step,loss' .name it with --lr-field"),
        ("step,a/lr,b/lr\n1,2,3\n", "lr.csv:1: .* may be 'a/lr' or 'b/lr' .name it with --lr"),
        ('{"a/lr":1,"b/lr":2}\n', "lr.csv:1: .* may be 'a/lr' or 'b/lr' .name it with --lr-field"),
        ('{"lr":1}\n', "lr.csv:1: there is no 'step' .name it with --step-field or --token-field"),
        ('{"step":1}\n', "none of its 1 rows has lr or learning_rate .name it with --lr-field"),
        ('{"step":1,"lr":2,"loss":NaN\n', "lr.csv:1: NaN is not JSON"),
        ('{\n"log_history": 3}\n', "lr.csv:1: a JSON value over several lines"),
        ('{"log_history": [1]}\n', "no learning rate in this file"),
        ("0,0.1\n1,0.2\r2,0.3\n", "lr.csv:2: a carriage return inside a line"),
        ("a\rstep,lr\n1,0.2\n", "lr.csv:1: a carriage return inside a line"),
        ("step;lr\n1;2\n", "lr.csv:1: the columns are separated by a semicolon .expected commas"),
        ("step\tlr\n1\t2\n", "lr.csv:1: the columns are separated by a tab .expected commas"),
        ("\n0;0,1\n1;0,2\n", "lr.csv:2: the columns are separated by a semicolon"),
    ],
)
def test_a_bad_row_is_named_with_its_line(tmp_path: Path, text: str | bytes, why: str) -> None:
    with pytest.raises(DataError, match=why):
        read(tmp_path, text)


@pytest.mark.parametrize("text", ['{"step":1,"lr":2}\n', "step,lr\n1,2\n"])
def test_a_field_that_is_not_there_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match=r"nosuch.* .name it with --lr-field"):
        read(tmp_path, text, lr_field="nosuch")
    with pytest.raises(DataError, match=r"nosuch.* .name it with --step-field or --token-field"):
        read(tmp_path, text, step_field="nosuch")


def test_the_row_is_found_in_a_long_file(tmp_path: Path) -> None:
    rows = [f"{i},{1 / (i + 1)}" for i in range(20_000)]
    rows[12_344] = "12344,1e-3x"
    with pytest.raises(DataError, match=r"lr.csv:12345: lr is '1e-3x'"):
        read(tmp_path, "\n".join(rows))


def test_200_000_rows_are_read_in_a_fraction_of_a_second(tmp_path: Path) -> None:
    text = "\n".join(f"{i},{1e-3 / (i + 1):.8g}" for i in range(200_000))
    path = tmp_path / "long.csv"
    path.write_text(text)
    begin = time.process_time()
    curve = read_curve(str(path))
    assert time.process_time() - begin < 0.5
    assert np.array_equal(curve.at, np.arange(200_000))
    assert curve.lines[-1] == 200_000

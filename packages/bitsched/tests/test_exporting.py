"""Exported tables: they hold the plan, compile, and load with the libraries of the field."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load

from bitsched.cli import app
from bitsched.exporting import MEANINGS, export_plan, tables
from bitsched.masks import make_shape
from bitsched.plan import Plan
from bitsched.planning import make_plan

PLAN = make_plan(make_shape("causal", n="6", heads=4, kv_heads=2), "desc", 4)


def sums_of(plan: Plan) -> dict[tuple[int, int], int]:
    counts: dict[tuple[int, int], int] = {}
    for head, q in zip(plan.head.tolist(), plan.q.tolist(), strict=True):
        counts[head, q] = counts.get((head, q), 0) + 1
    return counts


def test_tables_are_the_plan() -> None:
    made = tables(PLAN)
    assert set(made) == set(MEANINGS)
    assert all(table.dtype == np.int32 for table in made.values())
    for name in ("starts", "head", "kv", "q", "rank"):
        assert np.array_equal(made[name], getattr(PLAN, name))
    assert {at: int(made["shares"][at]) for at in sums_of(PLAN)} == sums_of(PLAN)


def test_chain_bits_open_and_close_each_chain() -> None:
    """A chain is a KV tile of a KV head: two query heads share one, and stay in it."""
    chain, processor = tables(PLAN)["chain"], PLAN.processor()
    opened: list[tuple[int, int]] = []
    current = None
    for task in range(PLAN.tasks):
        owner = (int(PLAN.head[task]) // 2, int(PLAN.kv[task]))
        if chain[task] & 1:
            assert current is None
            opened.append(owner)
            current = (owner, int(processor[task]))
        assert current == (owner, int(processor[task]))
        if chain[task] & 2:
            current = None
    assert current is None
    assert sorted(opened) == [(head, kv) for head in range(2) for kv in range(6)]


@pytest.mark.needs("cc")
@pytest.mark.parametrize("standard", ["c99", "c11"])
def test_header_compiles_and_says_the_same(standard: str, tmp_path: Path) -> None:
    (tmp_path / "plan.h").write_bytes(export_plan(PLAN, "c-header"))
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "plan.h"\n'
        "int main(void) {\n"
        "  for (int p = 0; p < BITSCHED_PROCESSORS; ++p)\n"
        "    for (int t = bitsched_starts[p]; t < bitsched_starts[p + 1]; ++t)\n"
        '      printf("%d %d %d %d %d %d %d\\n", p, bitsched_head[t], bitsched_kv[t],\n'
        "             bitsched_q[t], bitsched_rank[t], bitsched_chain[t],\n"
        "             bitsched_shares[bitsched_head[t] * BITSCHED_N_Q + bitsched_q[t]]);\n"
        "  return 0;\n}\n"
    )
    program = str(tmp_path / "main")
    flags = [f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    subprocess.run(["cc", *flags, str(tmp_path / "main.c"), "-o", program], check=True)
    said = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    chain, counts = tables(PLAN)["chain"], sums_of(PLAN)
    rows = zip(PLAN.processor(), PLAN.head, PLAN.kv, PLAN.q, PLAN.rank, chain, strict=True)
    expected = [" ".join(map(str, (*row, counts[int(row[1]), int(row[3])]))) for row in rows]
    assert said.splitlines() == expected


def test_comment_cannot_be_closed_by_the_plan() -> None:
    odd = Plan(PLAN.head, PLAN.kv, PLAN.q, PLAN.rank, PLAN.starts, {"note": "*/ #error"})
    assert b"*/ #error" not in export_plan(odd, "c-header")


def test_safetensors_loads_with_the_library() -> None:
    data = export_plan(PLAN, "torch")
    loaded = load(data)
    assert {name: t.dtype for name, t in loaded.items()} == dict.fromkeys(MEANINGS, np.int32)
    for name, table in tables(PLAN).items():
        assert np.array_equal(loaded[name], table)
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    assert json.loads(header["__metadata__"]["meaning"]) == MEANINGS
    assert header["__metadata__"]["format"] == "1"


def test_command_writes_one_document_and_the_loading_line(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    plan = str(tmp_path / "plan.jsonl")
    assert app.run(["plan", "--n", "4", "--heads", "2", "-o", plan]) == 0
    capsysbinary.readouterr()
    assert app.run(["export", plan, "--as", "json"]) == 0
    out = capsysbinary.readouterr()
    document = json.loads(out.out)
    assert document["processors"] == 4
    assert document["tasks"] == len(document["head"]) == 32
    assert document["shares"] == [[4] * 4] * 2
    assert document["meaning"] == MEANINGS
    assert b"json.load" in out.err
    (tmp_path / "bad.jsonl").write_text('{"processor": 0, "tasks": [[0, 0]]}\n')
    assert app.run(["export", str(tmp_path / "bad.jsonl")]) == 65
    assert b"bad.jsonl:1:" in capsysbinary.readouterr().err

"""`plan`, `sim` and `check` as a user types them: pipes, figures of the sheet, and endings."""

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from bitsched.cli import app


@pytest.fixture
def bitsched(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run one command line; give its exit code, stdout and stderr."""

    def run(*arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
        if stdin is not None:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = app.run(list(arguments))
        out, err = capsysbinary.readouterr()
        return code, out.decode(), err.decode()

    return run


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def planned(bitsched: Any, words: str) -> str:
    code, out, _ = bitsched("plan", "-q", *words.split())
    assert code == 0
    return out


def test_the_pipelines_of_the_sheet(bitsched: Any) -> None:
    plan = planned(bitsched, "--mask causal --seqlen 2048 --heads 4")
    code, out, _ = bitsched("sim", "-", "--c", "5", "--r", "1", stdin=plan)
    (row,) = rows(out)
    assert code == 0
    # 4 heads of 16 x 17 / 2 tiles of 6 on 16 SMs.
    assert (row["makespan"], row["gap"], row["tasks"]) == (204.0, 1.0, 4 * 136)
    assert (row["schedule"], row["idle_share"], row["verdict"]) == ("sym", 0.0, "yes")
    found = {}
    for schedule in ("asc", "desc", "sym"):
        plan = planned(bitsched, f"--schedule {schedule} --n 16 --heads 8 --mask causal")
        _, out, _ = bitsched("sim", "-", "--c", "5", "--r", "1", "--quiet", stdin=plan)
        found[schedule] = rows(out)[0]["makespan"]
    assert found == {"asc": 8 * 16 * 6 + 15, "desc": 4 * 17 * 6 + 15, "sym": 4 * 17 * 6}


def test_auto_says_what_it_took_and_what_the_others_take(bitsched: Any) -> None:
    code, out, err = bitsched("plan", "--n", "8", "--mask", "causal", "--heads", "4")
    assert code == 0
    assert len(out.splitlines()) == 8
    found = re.search(
        r"each at its best --assign: asc (\d+), desc (\d+), spt (\d+), sym 108, ",
        err,
    )
    assert found is not None
    assert min(map(int, found.groups())) > 108


def test_notes_for_odd_tiles_waves_and_free_sms(bitsched: Any) -> None:
    words = "--mask causal --schedule"
    _, _, err = bitsched("plan", *f"{words} sym --n 5 --heads 2 --sms 6".split())
    assert "5 tiles a side, an odd number: planned as one more, which is left out" in err
    _, _, err = bitsched("plan", *f"{words} asc --n 8 --sms 4 --assign waves".split())
    assert "8 KV tiles on 4 SMs: in waves" in err
    _, _, err = bitsched("plan", *f"{words} asc --n 8 --sms 10".split())
    assert "each SM that is free takes the next chain, at the costs given" in err
    assert "2 of 10 SMs have nothing to do" in err


def test_the_tables_of_sms_tasks_and_the_critical_path(bitsched: Any) -> None:
    plan = planned(bitsched, "--schedule asc --n 3")
    table = {
        show: rows(bitsched("sim", "--show", show, "--c", "2", "--r", "1", stdin=plan)[1])
        for show in ("processors", "tasks", "path")
    }
    # SM i waits i times r at its first tile and never again: 9 + i.
    assert [row["end"] for row in table["processors"]] == [9.0, 10.0, 11.0]
    assert [row["stalled"] for row in table["processors"]] == [0.0, 1.0, 2.0]
    assert [row["idle"] for row in table["processors"]] == [2.0, 2.0, 2.0]
    assert [row["start"] for row in table["tasks"]] == [0, 0, 0, 3, 4, 5, 6, 7, 8]
    assert table["tasks"][2] == {
        "processor": 2, "head": 0, "kv": 2, "q": 0, "rank": 2,
        "start": 0.0, "compute_end": 2.0, "reduce_start": 4.0, "end": 5.0,
    }  # fmt: skip
    assert [(row["kv"], row["q"]) for row in table["path"]] == [
        (0, 0), (1, 0), (2, 0), (2, 1), (2, 2),
    ]  # fmt: skip


def test_costs_latency_and_barrier_reach_the_model(bitsched: Any) -> None:
    plan = planned(bitsched, "--schedule asc --n 4 --heads 2 --mask causal")

    def makespan(*words: str) -> float:
        return rows(bitsched("sim", "--c", "5", "--r", "1", *words, stdin=plan)[1])[0]["makespan"]

    assert makespan() == 2 * 4 * 6 + 3
    assert makespan("--head-barrier") == 2 * (4 * 6 + 3)
    assert makespan("--latency", "2") == makespan("--latency", "2,2")
    assert makespan("--latency", "0,9") > makespan("--latency", "9,0", "--partitions", "4")
    plan = planned(bitsched, "--schedule asc --n 8 --heads 4 --mask causal")
    assert makespan() == 4 * 8 * 6 + 7
    again = makespan("--assign", "dynamic")
    plan = planned(bitsched, "--schedule asc --n 8 --heads 4 --mask causal --assign dynamic")
    assert makespan() == again


def test_a_chart_has_the_costs_of_the_simulation(bitsched: Any) -> None:
    plan, spans = planned(bitsched, "--schedule sym --n 8 --heads 2 --mask causal"), []
    for words in (
        ("--register-penalty", "0.5"),
        ("--latency", "0,9"),
        ("--latency", "0,9", "--partitions", "4"),
        ("--latency", "0,9", "--partitions", "1"),
    ):
        span = rows(bitsched("sim", *words, stdin=plan)[1])[0]["makespan"]
        assert f"makespan {span:g}," in bitsched("gantt", *words, stdin=plan)[1]
        spans.append(span)
    # 9 tiles of 0.5 more; a head is on half of the SMs, so only quarters are remote.
    assert spans == [54 + 4.5, 54, 58, 54]


CYCLE = (
    '{"processor": 0, "tasks": [[0, 0, 0, 1], [0, 0, 1, 0]]}\n'
    '{"processor": 1, "tasks": [[0, 1, 1, 1], [0, 1, 0, 0]]}\n'
)


def test_a_deadlock_ends_with_1_and_names_who_waits(bitsched: Any) -> None:
    code, out, err = bitsched("sim", stdin=CYCLE)
    (row,) = rows(out)
    assert code == 1
    assert (row["verdict"], row["makespan"]) == ("no", None)
    assert row["waiting"] == [[0, 0, 0], [0, 1, 1]]
    assert err.startswith("bitsched: deadlock: head 0 KV 0 Q 0, head 0 KV 1 Q 1 wait") or (
        "deadlock: head 0 KV 0 Q 0, head 0 KV 1 Q 1 wait for one another in a ring" in err
    )
    code, out, _ = bitsched("check", stdin=CYCLE)
    assert code == 1
    assert {row["name"]: row["verdict"] for row in rows(out)}["deadlock"] == "no"


def ring(size: int) -> str:
    """SM i first adds to Q tile i, as the second, and then to Q tile i + 1, as the first."""
    lines = []
    for i in range(size):
        following = (i + 1) % size
        lines.append({"processor": i, "tasks": [[0, i, i, 1], [0, i, following, 0]]})
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.mark.parametrize("size", [5, 12, 15])
@pytest.mark.parametrize("command", ["sim", "gantt", "check"])
def test_a_ring_names_all_its_tiles_up_to_twelve(bitsched: Any, size: int, command: str) -> None:
    code, _, err = bitsched(command, stdin=ring(size))
    assert code == 1
    named = re.findall(r"head 0 KV (\d+) Q \1\b", err)
    assert len(set(named)) == len(named) == min(size, 12)
    assert ("... and 3 more wait for one another in a ring" in err) == (size == 15)


def test_one_is_not_plural(bitsched: Any) -> None:
    plan = planned(bitsched, "--n 1 --schedule asc")
    assert bitsched("gantt", stdin=plan)[1].startswith("full, asc: 1 SM, 1 tile, makespan 6")
    assert rows(bitsched("check", stdin=plan)[1])[0]["message"] == "the one tile is there once"
    task = '{"id":"a","duration":1}\n'
    out = bitsched("graph", "--processors", "1", "--gantt", "-", stdin=task)[1]
    assert out.startswith("1 task, 1 processor, makespan 1")
    stuck = '{"processor":0,"tasks":[[0,0,0,1],[0,1,0,0]]}\n'
    assert "KV 0 Q 0 waits for a later task of its own" in bitsched("sim", stdin=stuck)[2]
    code, _, err = bitsched(
        "plan", "--n", "2", "--sms", "1", *["--schedule", "asc", "--assign", "waves"]
    )
    assert code == 0
    assert "on 1 SM: in waves" in err


def test_check_ends_with_1_where_it_must(bitsched: Any, tmp_path: Path) -> None:
    plan = planned(bitsched, "--schedule asc --n 4 --mask causal")
    assert bitsched("check", stdin=plan)[0] == 0
    code, _, err = bitsched("check", "--strict", stdin=plan)
    assert code == 1
    assert "due no later than the one before: head 0 KV 1 Q 1 waits for KV 0" in err
    broken = plan.replace("[0,3,3,3]", "[0,3,3,2]")
    code, out, err = bitsched("check", "--format", "csv", stdin=broken)
    assert code == 1
    assert out.splitlines()[0] == "name,verdict,message,count"
    assert "ranks of 1 dQ tile are not 0, 1, 2, ...: head 0 KV 2 Q 3, head 0 KV 3 Q 3" in err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("plan", 2, "say how large it is"),
        ("plan --n 4 --mask causal --schedule shift", 2, "the cyclic shift is for the full mask"),
        ("plan --n 4 --c -1", 2, "compute is -1.0"),
        ("plan --n 4 --c nan", 2, "compute is nan"),
        ("plan --n 4 --c 0 --r 0", 2, "both 0"),
        ("plan --n 4 --latency 1,2,3", 2, "--latency '1,2,3'"),
        ("plan --n 4 --latency one", 2, "--latency 'one'"),
        ("plan --n 4 --sms 0", 2, "--sms"),
        ("plan --mask file:/none/mask", 66, "no such file"),
        ("sim /none/plan.jsonl", 66, "no such file"),
        ("plan --n 4 -o /none/p.jsonl", 73, "there is no folder /none"),
    ],
)
def test_wrong_words_end_with_one_line(bitsched: Any, words: str, code: int, message: str) -> None:
    found, out, err = bitsched(*words.split())
    assert (found, out) == (code, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_malformed_line_is_named(bitsched: Any, tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(planned(bitsched, "--n 2") + "{}\n")
    for command in ("sim", "check"):
        code, _, err = bitsched(command, str(path))
        assert code == 65
        assert f"{path}:3: no key 'processor'" in err


def test_the_order_of_reversed_sums_is_a_trap(bitsched: Any) -> None:
    plan = planned(bitsched, "--schedule desc --reverse-sums --n 8 --heads 4 --mask causal")
    (row,) = rows(bitsched("sim", stdin=plan)[1])
    assert row["makespan"] == 4 * (8 * 6 + 7)


def test_block_masks_go_through_a_pipe(bitsched: Any, tmp_path: Path) -> None:
    path = tmp_path / "mask"
    path.write_text("1100\n0110\n0011\n")
    plan = planned(bitsched, f"--mask file:{path} --heads 4 --sms 3")
    code, out, _ = bitsched("check", stdin=plan)
    assert code == 0
    assert rows(out)[0]["message"] == "all 24 tiles are there once"


def test_a_plan_that_is_not_proved_is_written_and_says_its_bound(bitsched: Any) -> None:
    pytest.importorskip("ortools")
    words = "--n 9 --heads 3 --mask causal --schedule exact --time-limit 0.1"
    code, out, err = bitsched("plan", *words.split())
    assert code == 1
    assert len(out.splitlines()) == 9
    # The work of 3 x 9 x 10 / 2 tiles of 6 on 9 SMs.
    bound = rows(out)[0]["bitsched"]["bound"]
    assert bound >= 3 * 45 * 6 / 9
    assert "not proved: " in err
    assert f"at least {bound:g}" in err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"heads": "2"}, "describes no shape"),
        ({"n_kv": 9}, "describes no shape"),
        ({"kv_heads": 3}, "describes no shape"),
    ],
)
def test_a_damaged_provenance_is_bad_data(
    bitsched: Any, change: dict[str, Any], message: str
) -> None:
    lines = rows(planned(bitsched, "--mask causal --n 4 --heads 2 --schedule asc"))
    for line in lines:
        line["bitsched"] |= change
    code, out, err = bitsched("check", stdin="".join(json.dumps(line) + "\n" for line in lines))
    assert (code, out) == (65, "")
    assert message in err


def test_lines_of_two_plans_are_not_one(bitsched: Any) -> None:
    lines = rows(planned(bitsched, "--mask causal --n 4 --heads 2 --schedule asc"))
    lines[2]["bitsched"]["schedule"] = "desc"
    code, _, err = bitsched("sim", stdin="".join(json.dumps(line) + "\n" for line in lines))
    assert code == 65
    assert "stdin:3: " in err


def test_a_plan_that_waits_for_ever_is_not_exported(bitsched: Any) -> None:
    stuck = '{"processor":0,"tasks":[[0,0,0,1],[0,1,0,0]]}\n'
    code, out, err = bitsched("export", stdin=stuck)
    assert (code, out) == (1, "")
    assert "a kernel would wait for ever" in err
    free = planned(bitsched, "--n 4 --schedule atomic")
    code, out, err = bitsched("export", stdin=free)
    assert code == 0
    assert "no order of the sums is fixed" in err


def test_a_task_cannot_wait_for_its_own_sum(bitsched: Any) -> None:
    own = '{"id":"a","duration":1,"reduce":1,"into":"C","after":["C"]}\n'
    code, _, err = bitsched("graph", "-", "--processors", "2", stdin=own)
    assert code == 65
    assert "waits for the sum 'C' that it adds to" in err


@pytest.mark.parametrize(
    "words", ["--schedule list --assign waves", "--schedule atomic --reverse-sums", "--sms 9999999"]
)
def test_words_that_would_do_nothing_are_wrong_usage(bitsched: Any, words: str) -> None:
    code, out, _ = bitsched("plan", "--n", "4", *words.split())
    assert (code, out) == (2, "")


@pytest.mark.parametrize(
    ("command", "module", "extra"),
    [("bits", "torch", "torch"), ("prove", "ortools.sat.python.cp_model", "exact")],
)
def test_without_an_extra(
    bitsched: Any, monkeypatch: pytest.MonkeyPatch, command: str, module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    code, out, err = bitsched(command)
    assert (code, out) == (69, "")
    assert f"add the extra '{extra}'" in err

"""Graphs of tasks: schedules against brute force and networkx, files, errors named by task."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitsched.cli import app
from bitsched.graphcommand import GraphRun, run_graph
from bitsched.listscheduling import schedule_tasks
from bitsched.simulation import simulate
from bitsched.speed import random_tasks
from bitsched.tasklist import read_tasks
from papercuts.errors import DataError, UsageError

SPLIT_K = {
    "processors": 2,
    "tasks": [
        {"id": "load", "duration": 2},
        {"id": "k0", "duration": 4, "reduce": 1, "into": "C", "after": ["load"]},
        {"id": "k1", "duration": 3, "reduce": 1, "into": "C", "after": ["load"]},
        {"id": "k2", "duration": 5, "reduce": 1, "into": "C"},
        {"id": "store", "duration": 1, "after": ["C"]},
    ],
}


def run(folder: Path, document: Any, **options: Any) -> GraphRun:
    path = folder / "tasks.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return run_graph(read_tasks(str(path)), **options)


def longest_path(made: GraphRun) -> float:
    """Give the makespan as networkx sees it: nodes are the ends of computes and of reductions."""
    graph, drawn = made.simulation.graph, nx.DiGraph()
    for t in range(graph.tasks):
        drawn.add_edge(("begin", t), ("computed", t), weight=graph.compute[t])
        drawn.add_edge(("computed", t), ("end", t), weight=graph.reduce[t])
        if graph.before[t] >= 0:
            drawn.add_edge(("end", int(graph.before[t])), ("add", t), weight=0)
            drawn.add_edge(("computed", t), ("add", t), weight=0)
            drawn.add_edge(("add", t), ("end", t), weight=graph.reduce[t])
    for p in range(graph.processors):
        for t in range(int(graph.starts[p]) + 1, int(graph.starts[p + 1])):
            drawn.add_edge(("end", t - 1), ("begin", t), weight=0)
    for u, v in graph.edges.tolist():
        drawn.add_edge(("end", u), ("begin", v), weight=0)
    return float(nx.dag_longest_path_length(drawn))


@st.composite
def task_files(draw: st.DrawFn) -> dict[str, Any]:
    count, processors = draw(st.integers(1, 14)), draw(st.integers(1, 4))
    tasks: list[dict[str, Any]] = []
    for t in range(count):
        task: dict[str, Any] = {"id": f"t{t}", "duration": draw(st.integers(0, 5))}
        if draw(st.booleans()):
            task |= {"into": draw(st.sampled_from("xyz")), "reduce": draw(st.integers(0, 3))}
        if t and draw(st.booleans()):
            task["after"] = sorted({f"t{draw(st.integers(0, t - 1))}" for _ in range(2)})
        if draw(st.integers(0, 3)) == 0:
            task["processor"] = draw(st.integers(0, processors - 1))
        tasks.append(task)
    return {"processors": processors, "tasks": tasks}


@given(task_files(), st.sampled_from(["list", "fifo"]))
@settings(max_examples=30)
def test_schedules_are_whole_and_above_the_bounds(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, Any], schedule: str
) -> None:
    made = run(tmp_path_factory.mktemp("g"), document, schedule=schedule)
    rows = {row["id"]: row for row in made.task_records()}
    assert made.simulation.makespan == longest_path(made) >= made.bound
    sums: dict[str, list[tuple[int, float, float]]] = {}
    on: dict[int, list[tuple[float, float]]] = {}
    for task in document["tasks"]:
        got = rows[task["id"]]["bitsched"]
        assert got["processor"] == task.get("processor", got["processor"])
        for before in task.get("after", []):
            assert rows[before]["bitsched"]["end"] <= got["start"]
        assert got["compute_end"] == got["start"] + task["duration"]
        on.setdefault(got["processor"], []).append((got["start"], got["end"]))
        if "into" in task:
            begin = got["end"] - task["reduce"]
            sums.setdefault(task["into"], []).append((got["rank"], begin, got["end"]))
        else:
            assert got["rank"] is None
    for spans in on.values():
        spans.sort()
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
    for shares in sums.values():
        shares.sort()
        assert [share[0] for share in shares] == list(range(len(shares)))
        assert all(a[2] <= b[1] for a, b in itertools.pairwise(shares))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=7), st.integers(1, 3))
@settings(max_examples=20)
def test_list_scheduling_keeps_grahams_bound(
    tmp_path_factory: pytest.TempPathFactory, durations: list[int], processors: int
) -> None:
    """Longest first on independent tasks: at most 4/3 - 1/(3m) of the optimum (Graham 1969)."""
    tasks = [{"id": k, "duration": d} for k, d in enumerate(durations)]
    made = run(tmp_path_factory.mktemp("g"), {"processors": processors, "tasks": tasks})
    best = min(
        max(sum(d for d, q in zip(durations, dealt, strict=True) if q == p)
            for p in range(processors))
        for dealt in itertools.product(range(processors), repeat=len(durations))
    )  # fmt: skip
    assert best <= made.simulation.makespan <= (4 / 3 - 1 / (3 * processors)) * best + 1e-9


def test_split_k_worked_by_hand(tmp_path: Path) -> None:
    summary = run(tmp_path, SPLIT_K).summary()
    assert summary["makespan"] == 11
    assert (summary["work_bound"], summary["path_bound"]) == (9, 8)
    assert summary["reduction_bound"] == 6
    assert summary["critical_path"] == ["k2", "k1", "store"]
    assert run(tmp_path, SPLIT_K, processors=3).summary()["makespan"] == 9


def test_given_order_is_kept(tmp_path: Path) -> None:
    """Two processors, the sum in the order of the file: b waits for a (2 + 5), then adds 1."""
    tasks = [
        {"id": "a", "duration": 6, "reduce": 1, "into": "s", "processor": 0},
        {"id": "b", "duration": 2, "reduce": 1, "into": "s", "processor": 1},
    ]
    assert run(tmp_path, {"tasks": tasks}, schedule="given").simulation.makespan == 8
    assert run(tmp_path, {"tasks": tasks}).simulation.makespan == 7
    del tasks[1]["processor"]
    with pytest.raises(DataError, match="task 'b': it has no processor"):
        run(tmp_path, {"tasks": tasks}, schedule="given")


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([{"duration": 1}], "task number 1: it has no id"),
        ([{"id": "a"}, {"id": "a"}], "task 'a': numbers 1 and 2 both have this id"),
        ([{"id": "a", "duration": -1}], "task 'a': duration is -1"),
        ([{"id": "a", "duration": True}], "task 'a': duration is true"),
        ([{"id": "a", "reduce": 1}], "task 'a': it has a reduce but no accumulator"),
        ([{"id": "a", "into": []}], "task 'a': into is \\[\\]"),
        ([{"id": "a", "after": ["b"]}], "task 'a': after names \"b\", which is not there"),
        ([{"id": "a", "processor": -1}], "task 'a': processor is -1"),
        ([{"id": "a", "processor": 9}], "task 'a': processor is 9 \\(expected one of 0 to 1"),
        ([{"id": "a", "after": "a"}], "task 'a': a cycle of 1: 'a' -> 'a'"),
        (
            [{"id": "x"}, {"id": "a", "after": ["b", "x"]}, {"id": "b", "after": "a"}],
            "a cycle of 2: 'a' -> 'b' -> 'a'|a cycle of 2: 'b' -> 'a' -> 'b'",
        ),
        ([{"id": "s"}, {"id": "b", "into": "s"}, {"id": "c", "after": "s"}], "task 'c': after"),
        ([7], "entry 0 of the tasks is 7"),
        ([], "no tasks"),
    ],
)
def test_errors_name_the_task(tmp_path: Path, tasks: list[Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        run(tmp_path, {"processors": 2, "tasks": tasks})


def test_files_that_are_no_tasks(tmp_path: Path) -> None:
    for text, message in (
        ('{"tasks": 3}', "no list of tasks"),
        ('{"id": "a"}\n{"id": \n', ":2: "),
        ("3\n", "no list of tasks"),
        ("digraph {\n", ":1: this is not JSON: it begins with 'digraph {' .expected {\"tasks\""),
        ('{"id": "a"}\nb,c\n', ":2: this is not JSON: it begins with 'b,c' .expected a task"),
        ('{"id": "a", }\n', ":1: not JSON: .*, at column"),
        ('{"id": "a"}\n\n{"id": "b", "reduce": -1}\n', ":3: task 'b': reduce is -1"),
        ('{"id": "a"}\n{"id": "b", "processor": "x"}\n', ":2: task 'b': processor is \"x\""),
        ('{"id": "a"}\n{"id": "b", "after": "c"}\n', ":2: task 'b': after names \"c\""),
        ('{"id": "a"}\n{"id": "a"}\n', ":2: task 'a': numbers 1 and 2 both"),
        ('{"id": "a"}\n{"duration": 1}\n', ":2: task number 2: it has no id"),
        ('{"processors": 0, "tasks": [{"id": "a"}]}', "processors is 0"),
        ('{"id": "a"}\n[1]\n', ":2: the line is"),
        ("", "no tasks"),
    ):
        with pytest.raises(DataError, match=message):
            run(tmp_path, text)
    with pytest.raises(UsageError, match="how many processors"):
        run(tmp_path, '{"id": "a"}\n')


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("durations", "duration"), ("Duration", "duration"), ("duraton", "duration"),
        ("duration_ms", "duration"), ("redcue", "reduce"), ("reduce_s", "reduce"),
        ("Into", "into"), ("afters", "after"), ("procesor", "processor"),
    ],
)  # fmt: skip
def test_a_misspelt_key_is_refused_with_its_line(tmp_path: Path, key: str, meant: str) -> None:
    bad = json.dumps({"id": "b", key: 0})
    where = f":2: task 'b': unknown key \"{key}\" .expected '{meant}'"
    with pytest.raises(DataError, match=where):
        run(tmp_path, f'{{"id": "a"}}\n{bad}\n', processors=1)
    with pytest.raises(DataError, match=where):
        run(tmp_path, f'{{"processors": 1, "tasks": [{{"id": "a"}},\n{bad}\n]}}')
    # Twice in a document: which of the two is not known from the text, but the task is named.
    with pytest.raises(DataError, match=r"tasks\.json: task 'b': unknown key"):
        run(tmp_path, f'{{"processors": 1, "tasks": [{bad},\n{bad.replace(chr(98), "c", 1)}]}}')


def test_keys_of_others_are_kept(tmp_path: Path) -> None:
    """Those that do not read like ours, and those beside the key that they resemble."""
    task = {"id": "a", "duration": 2, "duration_ms": 2000, "note": "n", "info": 1, "idx": 3}
    task |= {"name": "x", "weight": 1, "compute": 5, "bitsched": {"rank": 1}, "before": "b"}
    (record,) = run(tmp_path, {"processors": 1, "tasks": [task]}).task_records()
    assert record.pop("bitsched")["end"] == 2
    assert record == {key: value for key, value in task.items() if key != "bitsched"}


def test_a_misspelt_key_of_the_document_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r":1: unknown key \"processor\" .expected 'processors'"):
        run(tmp_path, '{"processor": 2, "tasks": [\n{"id": "a"}]}')
    document = {"processors": 2, "made_by": "x", "tasks": [{"id": "a"}]}
    assert run(tmp_path, document).summary()["processors"] == 2


def test_a_cycle_names_its_tasks_up_to_twelve(tmp_path: Path) -> None:
    for size in (12, 15):
        tasks = [{"id": f"t{k}", "after": f"t{(k + 1) % size}"} for k in range(size)]
        with pytest.raises(DataError) as caught:
            run(tmp_path, {"processors": 2, "tasks": tasks})
        named = set(re.findall(r"'(t\d+)'", str(caught.value)))
        assert len(named) == 12
        assert ("... and 3 more" in str(caught.value)) == (size == 15)


def test_the_most_work_on_one_processor_bounds_a_graph(tmp_path: Path) -> None:
    """Four tasks of 5 on three processors: one has two, where the work alone says 22 / 3."""
    tasks = [{"id": k, "duration": 5} for k in range(4)] + [{"id": "x", "duration": 2}]
    summary = run(tmp_path, {"processors": 3, "tasks": tasks}).summary()
    assert (summary["load_bound"], summary["bound"], summary["makespan"]) == (10, 10, 10)


def test_json_lines_and_documents_are_the_same(tmp_path: Path) -> None:
    lines = "\n".join(json.dumps(task) for task in SPLIT_K["tasks"])  # type: ignore[attr-defined]
    assert run(tmp_path, lines, processors=2).summary() == run(tmp_path, SPLIT_K).summary()
    assert run(tmp_path, SPLIT_K["tasks"], processors=2).simulation.makespan == 11


def test_command_keeps_the_keys_and_draws(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    path, chart = tmp_path / "t.json", tmp_path / "g.svg"
    path.write_text(json.dumps(SPLIT_K).replace('"duration": 2', '"duration": 2, "note": "n"'))
    argv = ["graph", str(path), "--tasks", "--gantt", str(chart), "--format", "json"]
    assert app.run(argv) == 0
    rows = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert [row["id"] for row in rows] == ["load", "k0", "k1", "k2", "store"]
    assert rows[0]["note"] == "n"
    assert [row["bitsched"]["critical"] for row in rows] == [False, False, True, True, True]
    assert "sum C" in chart.read_text()
    assert app.run(["graph", str(path), "--gantt", "-"]) == 0
    drawn = capsysbinary.readouterr().out.decode()
    assert "5 tasks, 2 processors, makespan 11, bound 9 (1.222x)" in drawn


@pytest.mark.slow
def test_compiled_loops_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = random_tasks(600, seed=3)
    monkeypatch.setattr("bitsched.kernel.COMPILED_FROM", 10**9)
    monkeypatch.setattr("bitsched.kernel.COMPILED_AFTER", 10**9)
    plain = schedule_tasks(tasks, "list", 16)
    monkeypatch.setattr("bitsched.kernel.COMPILED_FROM", 0)
    compiled = schedule_tasks(tasks, "list", 16)
    assert np.array_equal(plain.task, compiled.task)
    assert np.array_equal(plain.place, compiled.place)
    assert np.array_equal(plain.graph.before, compiled.graph.before)


@pytest.mark.slow
def test_a_million_tasks() -> None:
    """Waiting in sums and at edges costs less than a sixth over the work bound here."""
    tasks = random_tasks(1_000_000)
    scheduled = schedule_tasks(tasks, "list", 128)
    run_ = simulate(scheduled.graph)
    assert run_.bounds.work <= run_.makespan < 7 / 6 * run_.bounds.work

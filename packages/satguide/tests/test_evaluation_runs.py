"""`satguide eval --runs`: a record a formula, gone on with after it was cut short."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from satguide import dimacs, evaluation
from satguide.cli import app
from satguide.families import hitag2, threesat


def test_the_command_writes_records_and_runs(checkpoint_file, tmp_path, capfd):
    stream = tmp_path / "all.cnf"
    argv = ["gen", "3sat", "--size", "20", "--count", "4", "--seed", "3", "-o", str(stream)]
    assert app.run(argv) == 0
    rows = tmp_path / "rows.jsonl"
    argv = ["eval", str(checkpoint_file), str(stream), "--jobs", "1", "--versus", "minisat22"]
    argv += ["--runs", str(rows)]
    assert app.run(argv) == 0
    records = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [record["arm"] for record in records] == ["guided", "plain", "unit", "minisat22"]
    assert records[0]["ratio"] == max(record["ratio"] for record in records[1:3])
    made = records[0]["satguide"]
    assert (made["model"], made["backend"], made["seed"]) == (str(checkpoint_file), "clasp", 0)
    table = [json.loads(line) for line in rows.read_text().splitlines()]
    assert [row["formula"] for row in table] == [f"{stream}#{k}" for k in range(1, 5)]
    mean = np.mean([row["runs"]["guided"]["decisions"] for row in table])
    assert records[0]["decisions_mean"] == pytest.approx(mean)
    assert {json.dumps(row["satguide"]) for row in table} == {json.dumps(made)}
    assert app.run(argv) == 73  # before anything is solved
    assert capfd.readouterr().out == ""


def test_a_cut_short_evaluation_goes_on(checkpoint_file, tmp_path, capfd, monkeypatch):
    stream, rows = tmp_path / "all.cnf", tmp_path / "rows.jsonl"
    assert app.run(["gen", "3sat", "--size", "20", "--count", "4", "-o", str(stream)]) == 0
    good = stream.read_text()
    stream.write_text(good + "p cnf 1 1\n2 0\n")
    argv = ["eval", str(checkpoint_file), str(stream), "--jobs", "1", "--runs", str(rows)]
    capfd.readouterr()
    assert app.run(argv) == 65
    said = capfd.readouterr()
    assert {json.loads(line)["formulas"] for line in said.out.splitlines()} == {4}
    assert "the table is of 4 formulas" in said.err
    assert not rows.exists()
    part = tmp_path / "rows.jsonl.part"
    whole = part.read_text().splitlines(keepends=True)
    part.write_text("".join(whole[:2]) + whole[2][:30])  # a torn line
    stream.write_text(good)
    assert app.run([*argv, "--resume", "--seed", "1"]) == 65
    assert f"{part}:1: it was made with other settings" in capfd.readouterr().err
    solved, honest = [], evaluation._solved

    def spy(task, contest):
        solved.append(task.index)
        return honest(task, contest)

    monkeypatch.setattr(evaluation, "_solved", spy)
    assert app.run([*argv, "--resume"]) == 0
    assert {json.loads(line)["formulas"] for line in capfd.readouterr().out.splitlines()} == {4}
    assert solved == [2, 3]
    first, again = (
        [json.loads(line)["runs"]["guided"]["decisions"] for line in lines]
        for lines in (whole, rows.read_text().splitlines())
    )
    assert first == again
    assert app.run([*argv[:-2], "--resume"]) == 2
    assert app.run([*argv[:-1], "-"]) == 2


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_solver_of_python_sat_and_leaves_the_table(
    number, code, checkpoint_file, tmp_path
):
    """Its C code holds Python's lock: in this process, no signal would be heard."""
    stream, rows = tmp_path / "f.cnf", tmp_path / "r.jsonl"
    with stream.open("wb") as out:
        for cnf in (threesat.generate(20, 1), hitag2.generate(6, 1)):
            dimacs.write(out, cnf)
    words = ["--backend", "glucose4", "--jobs", "1", "--runs", str(rows)]
    process = subprocess.Popen(
        [sys.executable, "-m", "satguide", "eval", str(checkpoint_file), str(stream), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    part = tmp_path / "r.jsonl.part"
    deadline = time.monotonic() + 30
    while not (part.exists() and part.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(number)
    out, err = process.communicate(timeout=5)
    assert process.returncode == code
    assert [json.loads(line)["formulas"] for line in out.splitlines()] == [1, 1, 1]
    assert "the table is of 1 formulas" in err
    assert len(part.read_text().splitlines()) == 1

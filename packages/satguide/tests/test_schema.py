"""Every record that a command writes matches exactly one alternative of `satguide schema`."""

import json

import pytest

from satguide.cli import app
from satguide.schema import schema

validator = pytest.importorskip("jsonschema").Draft202012Validator


def matches(record):
    """The titles of the alternatives that a record follows."""
    return [rules["title"] for rules in schema()["oneOf"] if validator(rules).is_valid(record)]


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_the_records_of_every_command(checkpoint_file, tmp_path, capfd, small_bench):
    model, path, log = str(checkpoint_file), str(tmp_path / "f.cnf"), tmp_path / "m.jsonl"
    assert app.run(["gen", "3sat", "--size", "12", "--count", "2", "-o", path]) == 0
    one = str(tmp_path / "one.cnf")
    assert app.run(["gen", "3sat", "--size", "9", "-o", one]) == 0
    tiny = "--width 4 --layers 1 --formulas 2 --samples 2 --steps 1 --minibatch 2 --validation 2"
    ends = f"--iterations 2 --validate-every 2 --jobs 1 -o {tmp_path / 'm.safetensors'}"
    commands = {
        "satguide train: one iteration": ["train", "gen:3sat:12", *tiny.split(), *ends.split()],
        "satguide weights: one variable": ["weights", model, one],
        "satguide eval: one arm": ["eval", model, path, "--jobs", "1", "--versus", "minisat22"],
        "satguide eval --runs: one formula": [
            "eval",
            model,
            path,
            "--jobs",
            "1",
            "--runs",
            str(tmp_path / "r.jsonl"),
        ],
        "satguide explain: one formula": ["explain", model, path],
        "satguide explain --variables: one variable": ["explain", model, path, "--variables"],
        "satguide bench: one job": ["bench", "--repeats", "1", "--jobs", "1"],
    }
    seen = set()
    for title, argv in commands.items():
        capfd.readouterr()
        assert app.run(argv) == 0
        text = log.read_text() if argv[0] == "train" else capfd.readouterr().out
        if "--runs" in argv:
            text = (tmp_path / "r.jsonl").read_text()
        records = [json.loads(line) for line in text.splitlines()]
        assert records, title
        for record in records:
            assert matches(record) == [title], record
        seen.add(title)
    assert seen == {rules["title"] for rules in schema()["oneOf"]}
    assert app.run(["schema"]) == 0
    assert json.loads(capfd.readouterr().out) == schema()


def test_a_record_that_is_none_matches_nothing():
    record = {"variable": 1, "weight": 0.5, "polarity": None}
    assert matches(record) == ["satguide weights: one variable"]
    for change in ({"variable": 0}, {"weight": 0}, {"polarity": 1}, {"variable": True}, {"x": 1}):
        assert matches({**record, **change}) == []
    del record["weight"]
    assert matches(record) == []

"""Every record that a command writes fits its definition in `zoprox schema`."""

from __future__ import annotations

import json

import pytest

from zoprox.schema import schema
from zoprox.settings import Settings

SMALL = ["--dim", 2, "-n", 10, "--mc", 20, "--rounds", 3, "--sub", 2, "--step", 1, "--keep", 2]
COMMANDS = {
    "sample": ["sample", "--expr", "(x1*x1 + x2*x2)/2", *SMALL],
    "uniform": ["uniform", "--inside", "bench:l-shape", *SMALL],
    "diag": ["diag", "draws.csv", "--ref", "draws.csv"],
    "budget": ["budget", *SMALL],
    "schema": ["schema"],
}


def faults(name, record):
    found = schema()["$defs"][name]
    validator = pytest.importorskip("jsonschema").Draft202012Validator(found)
    unknown = sorted(record.keys() - found["properties"].keys())
    return [error.message for error in validator.iter_errors(record)] + unknown


@pytest.mark.parametrize("name", COMMANDS)
def test_records_fit_their_definition(files, zoprox, name):
    assert zoprox(*COMMANDS["sample"], "-o", "draws.csv")[0] == 0
    code, out, err = zoprox(*COMMANDS[name])
    assert code == 0, err
    if name == "schema":
        assert json.loads(out) == schema()
        return
    rows = [json.loads(line) for line in out.splitlines()]
    assert rows
    for row in rows:
        assert faults(name, row) == []


def test_a_budget_with_a_target_fits_too(files, zoprox):
    _, out, _ = zoprox("budget", "--expr", "x1*x1", *SMALL)
    assert faults("budget", json.loads(out)) == []


def test_bench_records_fit(monkeypatch):
    from zoprox import speed

    assert faults("bench", speed.measure(Settings(4, 2, 0.1, 2, 8, 1), repeats=2)) == []


def test_demo_records_fit():
    from zoprox.demo import _record

    for measure in ("kl", "gaussian_share", "near_torus_share", "far_torus_share"):
        assert faults("demo", _record(measure, 10, method=0.3, exact=0.01)) == []


def test_the_schema_is_a_schema_with_an_alternative_for_each_command():
    pytest.importorskip("jsonschema").Draft202012Validator.check_schema(schema())
    names = [entry["$ref"].rpartition("/")[2] for entry in schema()["anyOf"]]
    assert names == list(schema()["$defs"])
    assert {*COMMANDS, "demo", "bench"} == {*names, "schema"}

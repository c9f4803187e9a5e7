"""Tools meet in pipes: pipelines as a person types them, under `set -o pipefail`."""

from __future__ import annotations

import json

import pytest


def test_hardware_is_records(run):
    result = run.bash(
        "papercuts hardware --format json | "
        "python -c 'import json, sys; print(*(json.loads(line)[\"cores\"] for line in sys.stdin))'"
    )
    assert (result.code, result.err) == (0, "")
    assert int(result.text) >= 1


def test_tools_are_records(run):
    result = run.bash("papercuts tools --format json")
    assert result.code == 0, result.err
    assert "seesaw" in {json.loads(line)["name"] for line in result.text.splitlines()}


PLAN = "seesaw -q plan --lr 3e-3 --batch 256 --seq 1024 --tokens 3.3e9"


def test_a_plan_is_simulated(run):
    result = run.bash(
        f"{PLAN} --format csv | seesaw -q simulate - | "
        "python -c 'import json, sys; print(json.load(sys.stdin)[\"risk_ratio\"])'"
    )
    assert (result.code, result.err) == (0, "")
    assert 0.9 < float(result.text) < 1.1


@pytest.mark.needs("jq")
def test_a_plan_is_simulated_and_read_by_jq(run):
    result = run.bash(f"{PLAN} --format csv | seesaw -q simulate - | jq .risk_ratio")
    assert (result.code, result.err) == (0, "")
    assert 0.9 < float(result.text) < 1.1


@pytest.mark.needs("jq")
def test_a_log_becomes_a_configuration(run):
    steps = range(0, 1001, 10)
    log = [{"step": step, "lr": 3e-3 * max(0.1, 1 - step / 1000)} for step in steps]
    run.file("run.jsonl", "".join(json.dumps(row) + "\n" for row in log))
    result = run.bash(
        "jq -r '[.step,.lr]|@csv' run.jsonl | seesaw -q convert --batch 512 --cut 2 | "
        "seesaw -q export --to olmo-core > ramp.yaml"
    )
    assert (result.code, result.err) == (0, "")
    text = (run.folder / "ramp.yaml").read_text()
    assert "1024" in text  # twice the batch, in sequences, after the first halving


def test_both_formats_of_a_plan_mean_the_same(run):
    result = run.bash(
        f"{PLAN} > plan.jsonl; {PLAN} --format csv > plan.csv; "
        "seesaw -q simulate plan.jsonl > a; seesaw -q simulate plan.csv > b; cmp a b"
    )
    assert (result.code, result.err) == (0, "")


def test_a_failing_first_command_fails_the_pipeline(run):
    result = run.bash("seesaw -q plan --lr -1 --batch 1 --seq 1 --tokens 1 | seesaw -q check -")
    assert result.code != 0
    assert "Traceback" not in result.err

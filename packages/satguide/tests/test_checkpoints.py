"""The checkpoints that ship: small, documented, and in the package with their logs."""

import json
import re
from importlib.resources import files

import pytest

from satguide.models import BUNDLED, load

FOLDER = files("satguide") / "checkpoints"


@pytest.mark.parametrize("name", BUNDLED)
def test_a_checkpoint_is_small_and_says_where_it_is_from(name):
    assert len((FOLDER / f"{name}.safetensors").read_bytes()) < 300_000
    made = load(name).made
    assert made["source"].startswith(f"gen:{name}:")
    assert made["best_validation"] < min(made["baselines"].values())
    assert set(made["versions"]) == {"satguide", "clingo", "torch"}


@pytest.mark.parametrize("name", BUNDLED)
def test_the_log_tells_the_validation_that_the_checkpoint_has(name):
    made = load(name).made
    records = [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text().splitlines()]
    best = records[made["best_iteration"] - 1]
    assert best["iteration"] == made["best_iteration"]
    assert best["validation"] == made["best_validation"]
    assert len(records) == made["iterations"]


@pytest.mark.parametrize("name", BUNDLED)
def test_the_command_that_made_it_is_written_down(name):
    text = (FOLDER / "README.md").read_text()
    commands = [line for line in text.splitlines() if f"-o {name}.safetensors" in line]
    assert len(commands) == 1
    made = load(name).made
    assert f"train {made['source']} " in commands[0]
    given = dict(re.findall(r"--([a-z-]+) ([^\s-]\S*)", commands[0]))
    for option, value in made["settings"].items():
        if option.replace("_", "-") in given:
            assert float(given[option.replace("_", "-")]) == value, option
    assert int(given["iterations"]) == made["iterations"]

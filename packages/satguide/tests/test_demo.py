"""`satguide demo` and `satguide bench` at a size that takes no time."""

import re

import numpy as np
import pytest

from papercuts.parallel import seed_for
from satguide import clasp, demo, speed
from satguide.backends import Guidance
from satguide.cli import app
from satguide.families.spec import generator
from satguide.guidance import guide

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.slow
def test_the_demo_shows_the_means_of_the_runs(checkpoint, monkeypatch, capfd):
    rows = (("3sat", 30, 4, "variables"), ("3col", 20, 3, "vertices"))
    monkeypatch.setattr(demo, "ROWS", rows)
    monkeypatch.setattr(demo, "load", lambda _: checkpoint)
    assert app.run(["demo", "--jobs", "1"]) == 0
    lines = capfd.readouterr().out.splitlines()
    for family, size, count, unit in rows:
        (line,) = (text for text in lines if text.startswith(f"{family}, {size} {unit} "))
        counts = []
        for index in range(count):
            cnf = generator(family)(size, seed_for(7004, index))
            arms = (None, Guidance.unit(cnf.variables), guide(checkpoint, cnf))
            prepared = clasp.prepare(cnf)
            counts.append([clasp.solve(prepared, arm).decisions for arm in arms])
        means = np.mean(counts, axis=0)
        numbers = line.removeprefix(f"{family}, {size} {unit} ").split()
        assert int(numbers[0]) == count
        assert [float(n) for n in numbers[1:4]] == pytest.approx(means.tolist(), abs=0.051)
        change = 100 * (means[2] / min(means[:2]) - 1)
        assert float(numbers[4]) == pytest.approx(change, abs=0.051)
    assert "7 formulas, each solved three times: 0 contradictions" in lines[-2]
    assert re.fullmatch(r"The network looks at a formula for \d+\.\d ms\.", lines[-1])


@pytest.mark.slow
def test_the_bench_measures_every_job(small_bench):
    records = list(speed.run(3, 1))
    assert [record["job"] for record in records] == [
        "solve_3sat_100", "train_3sat_100",
        "guide_3sat_200", "guide_3col_250", "guide_hitag2_24",
        "read_dimacs",
    ]  # fmt: skip
    for record in records:
        assert record["repeats"] == 3
        assert 0 < record["wall_s_min"] <= record["wall_s"] <= record["wall_s_max"]
        assert record["per_s"] == pytest.approx(record["size"] / record["wall_s"])

"""The state of a run: what is finished is kept, and gone on with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from papercuts.errors import DataError, OutputError, UsageError
from zoprox.sampler import Round, sample_rounds
from zoprox.settings import Settings
from zoprox.state import RunState, part_of, read_about

ABOUT = {"step": 0.25, "rounds": 5, "target": "f.py:f"}


def rounds(first: int = 1, start: Any = None, count: int = 5) -> list[Round]:
    settings = Settings(4, 2, 0.25, 2, 10, count)
    points = np.zeros((4, 2)) if start is None else start
    return list(sample_rounds(lambda p: (p * p).sum(axis=1), settings, points, first=first))


def state(path: Path, **options: Any) -> RunState:
    return RunState(path, options.pop("about", ABOUT), shape=(4, 2), **options)


def cut_short(path: Path, count: int) -> list[Round]:
    done = rounds()[:count]
    with state(path) as held:
        for one in done:
            held.write(one)
    return done


def test_a_run_goes_on_where_it_was_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "draws.npy"
    cut_short(path, 3)
    whole = rounds()
    assert read_about(path) == {**ABOUT, "format": 1, "shape": [4, 2]}
    with state(path, resume=True, about={**ABOUT, "rounds": 9}) as held:
        assert held.done == 3
        (last,) = held.rounds(first=3)
        for one in rounds(first=4, start=last.points):
            held.write(one)
        found = held.rounds(first=2)
        held.complete()
    for one, expected in zip(found, whole[1:], strict=True):
        assert one.points.tobytes() == expected.points.tobytes()
        assert (one.number, one.evaluations) == (expected.number, expected.evaluations)
        assert (one.min_ess, one.median_ess) == (expected.min_ess, expected.median_ess)
        assert (one.values_mean, one.outside) == (expected.values_mean, expected.outside)
    assert not part_of(path).exists()
    assert read_about(path) is None


@pytest.mark.parametrize("cut", [1, 50, 100])
def test_a_torn_record_is_dropped(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "draws.npy"
    cut_short(path, 3)
    part = part_of(path)
    part.write_bytes(part.read_bytes()[:-cut])
    with state(path, resume=True) as held:
        assert held.done == 2
        held.write(rounds()[2])
        assert len(held.rounds()) == 3


def test_a_damaged_record_is_dropped_with_those_after_it(tmp_path: Path) -> None:
    path = tmp_path / "draws.npy"
    cut_short(path, 3)
    data = bytearray(part_of(path).read_bytes())
    record = (len(data) - data.index(b"\n") - 1) // 3
    data[-record - 20] ^= 1
    part_of(path).write_bytes(data)
    with state(path, resume=True) as held:
        assert held.done == 1


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    path = tmp_path / "draws.npy"
    cut_short(path, 3)
    with pytest.raises(OutputError, match="--resume goes on with it, --force starts again"):
        state(path)
    with state(path, force=True) as held:
        assert held.done == 0
        assert held.rounds() == []


def test_another_runs_state_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "draws.npy"
    cut_short(path, 1)
    with (
        pytest.raises(UsageError, match=r"that run had step 0\.25, not 0\.5"),
        state(path, resume=True, about={**ABOUT, "step": 0.5}),
    ):
        pass
    with (
        pytest.raises(OutputError, match="another run is writing it"),
        state(path, resume=True),
        state(path, resume=True),
    ):
        pass


@pytest.mark.parametrize("content", [b"x,y\n1,2\n", b"{}", b"[1]\n", b'{"format": 2}\n', b"\xff\n"])
def test_a_file_that_is_no_state_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "draws.npy"
    part_of(path).write_bytes(content)
    with pytest.raises(DataError, match="is not the state of a run"):
        read_about(path)
    with pytest.raises(DataError, match="is not the state of a run"), state(path, resume=True):
        pass
    assert part_of(path).read_bytes() == content


def test_resume_with_nothing_to_resume_begins(tmp_path: Path) -> None:
    with state(tmp_path / "draws.npy", resume=True) as held:
        assert held.done == 0
        held.write(rounds()[0])
        with pytest.raises(ValueError, match="cannot follow"):
            held.write(rounds()[2])


def test_the_header_is_one_line_of_json(tmp_path: Path) -> None:
    cut_short(tmp_path / "draws.csv", 1)
    line = part_of(tmp_path / "draws.csv").read_bytes().split(b"\n")[0]
    assert json.loads(line)["target"] == "f.py:f"

"""Searches that are cut short keep their finished tiers, and go on with them."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from papercuts.app import Terminated
from tierprune import discovery, formats
from tierprune.cli import app
from tierprune.exogenous import LearntTier

TIERS = "a,b<x,m<y,z"
Interrupt = Callable[[type[BaseException], int], None]


@pytest.fixture
def data(tmp_path: Path) -> str:
    rng = np.random.default_rng(1)
    a, b, *noise = rng.normal(size=(6, 500))
    x = a + b + noise[0]
    m = x + noise[1]
    y = m + b + noise[2]
    z = y + x + noise[3]
    path = tmp_path / "d.csv"
    rows = np.column_stack([a, b, x, m, y, z]).tolist()
    path.write_text("a,b,x,m,y,z\n" + "".join(f"{','.join(map(repr, r))}\n" for r in rows))
    return str(path)


@pytest.fixture
def interrupt(monkeypatch: pytest.MonkeyPatch) -> Interrupt:
    """Give a function that makes learning raise once a number of tiers is learnt."""
    learn = discovery.learn_tier

    def after(error: type[BaseException], tiers: int) -> None:
        calls = 0

        def learn_tier(*args: object) -> LearntTier:
            nonlocal calls
            calls += 1
            if calls > tiers:
                raise error
            return learn(*args)  # type: ignore[arg-type]

        monkeypatch.setattr(discovery, "learn_tier", learn_tier)

    return after


def run(capsys: pytest.CaptureFixture[str], *argv: str, code: int = 0) -> str:
    found = app.run(["discover", *argv])
    err = capsys.readouterr().err
    assert found == code, err
    return err


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt, 130), (Terminated, 143), (MemoryError, 70)]
)
@pytest.mark.parametrize("suffix", ["edges", "graphml"])
def test_what_is_resumed_is_what_it_would_have_been(
    capsys: pytest.CaptureFixture[str], data: str, tmp_path: Path, interrupt: Interrupt,
    error: type[BaseException], code: int, suffix: str,
) -> None:  # fmt: skip
    whole, cut = tmp_path / f"whole.{suffix}", tmp_path / f"cut.{suffix}"
    part = tmp_path / f"cut.{suffix}.part"
    asked = [data, "--tiers", TIERS, "--full", "-o"]
    run(capsys, *asked, str(whole))
    assert not list(tmp_path.glob("*.part"))
    interrupt(error, 2)
    err = run(capsys, *asked, str(cut), code=code)
    assert f"2 finished tiers kept in {part} (--resume goes on with it)" in err
    assert part.exists()
    assert not cut.exists()
    interrupt(error, 1)  # the first two are not learnt again
    assert "going on after 2 finished tiers" in run(capsys, *asked, str(cut), "--resume")
    assert cut.read_bytes() == whole.read_bytes()
    assert not part.exists()


def test_the_record_goes_on_too(
    capsys: pytest.CaptureFixture[str], data: str, tmp_path: Path, interrupt: Interrupt
) -> None:
    asked = [data, "--tiers", TIERS, "--full", "-o"]
    whole, cut = tmp_path / "whole.json", tmp_path / "cut.json"
    run(capsys, *asked, str(whole))
    interrupt(KeyboardInterrupt, 1)
    run(capsys, *asked, str(cut), code=130)
    interrupt(KeyboardInterrupt, 2)
    run(capsys, *asked, str(cut), "--resume")
    first, second = (json.loads(path.read_text()) for path in (whole, cut))
    for record in (first, second):
        for timed in (record, *record["tiers"]):
            del timed["wall_s"]
    assert first == second


def test_a_tier_may_serve_another_query(
    capsys: pytest.CaptureFixture[str], data: str, tmp_path: Path, interrupt: Interrupt
) -> None:
    out = str(tmp_path / "g.edges")
    interrupt(KeyboardInterrupt, 2)
    run(capsys, data, "--tiers", TIERS, "--full", "-o", out, code=130)
    interrupt(KeyboardInterrupt, 1)
    asked = [data, "--tiers", TIERS, "--do", "x", "--outcome", "y"]
    run(capsys, *asked, "-o", out, "--resume")
    plain = str(tmp_path / "plain.edges")
    interrupt(KeyboardInterrupt, 2)
    run(capsys, *asked, "-o", plain)
    assert Path(out).read_bytes() == Path(plain).read_bytes()


def test_what_cannot_be_gone_on_with_is_refused(
    capsys: pytest.CaptureFixture[str], data: str, tmp_path: Path, interrupt: Interrupt
) -> None:
    out, part = str(tmp_path / "g.edges"), tmp_path / "g.edges.part"
    asked = [data, "--tiers", TIERS, "--full"]
    assert "--resume needs --output FILE" in run(capsys, *asked, "--resume", code=2)
    compared = [data, "--tiers", TIERS, "--do", "x", "--outcome", "y", "--compare"]
    assert "--compare" in run(capsys, *compared, "--resume", "-o", out, code=2)
    interrupt(KeyboardInterrupt, 1)
    run(capsys, *asked, "-o", out, code=130)
    err = run(capsys, *asked, "-o", out, code=73)
    assert f"{part}: an earlier run was cut short (--resume goes on with it, --force" in err
    for more, word in ((["--alpha", "0.05"], "--alpha"), (["--max-cond", "1"], "--max-cond"),
                       (["--missing", "drop"], "--missing")):  # fmt: skip
        err = run(capsys, *asked, *more, "-o", out, "--resume", code=65)
        assert f"{part}: an unfinished run with other {word} (expected the same data" in err
    other = [data, "--tiers", "b,a<x,m<y,z", "--full"]
    assert "with other --tiers" in run(capsys, *other, "-o", out, "--resume", code=65)
    kept = part.read_text()
    Path(data).write_text(Path(data).read_text() + "1,2,3,4,5,6\n")
    assert "with other data" in run(capsys, *asked, "-o", out, "--resume", code=65)
    for torn in (kept[:-20], "", "[]", '{"format": 1}', kept.replace('"format": 1', '"format": 9')):
        part.write_text(torn)
        err = run(capsys, *asked, "-o", out, "--resume", code=65)
        assert f"{part}: not the whole record of an unfinished run" in err
    interrupt(KeyboardInterrupt, 3)
    run(capsys, *asked, "-o", out, "--force")
    assert not part.exists()


def test_nothing_is_left_before_the_first_tier_is_done(
    capsys: pytest.CaptureFixture[str], data: str, tmp_path: Path, interrupt: Interrupt
) -> None:
    out = str(tmp_path / "g.edges")
    asked = [data, "--tiers", TIERS, "--full", "-o", out]
    interrupt(KeyboardInterrupt, 0)
    err = run(capsys, *asked, code=130)
    assert "nothing was kept: no tier was finished yet" in err
    assert not list(tmp_path.glob("g*"))
    interrupt(KeyboardInterrupt, 3)
    err = run(capsys, *asked, "--resume")
    assert f"there is no {out}.part to go on with: starting anew" in err
    assert formats.read(out).learned


def test_an_interrupt_says_that_nothing_is_kept_without_a_file(
    capsys: pytest.CaptureFixture[str], data: str, interrupt: Interrupt
) -> None:
    asked = [data, "--tiers", TIERS, "--full"]
    interrupt(KeyboardInterrupt, 2)
    err = run(capsys, *asked, code=130)
    assert "nothing was kept (with --output FILE finished tiers are)" in err
    interrupt(MemoryError, 0)
    assert "kept" not in run(capsys, *asked, code=70)


def test_a_signal_is_heard(
    capsys: pytest.CaptureFixture[str], data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A true SIGTERM between the second tier and the third."""
    learn, calls = discovery.learn_tier, []

    def learn_tier(*args: object) -> LearntTier:
        calls.append(args)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGTERM)
        return learn(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(discovery, "learn_tier", learn_tier)
    out = str(tmp_path / "g.edges")
    assert "2 finished" in run(capsys, data, "--tiers", TIERS, "--full", "-o", out, code=143)

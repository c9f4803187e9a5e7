"""`seesaw train` as a user runs it: its log, interruptions of every kind, and its refusals."""

import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from papercuts.errors import UsageError
from papercuts.streams import write_records
from seesaw import train_command
from seesaw.cli import app
from seesaw.planfile import to_rows
from seesaw.planner import make_plan
from seesaw.schema import schema

SMALL = ["--width", "16", "--layers", "1", "--heads", "2", "--micro-batch", "3"]
SETTINGS = ["--device", "cpu", "--dtype", "fp32", *SMALL]
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "seesaw"]
SEQ_LEN = 8
TOKENS = 8000


class Desk:
    """A folder with a plan, a text for it, and the command to run there."""

    def __init__(self, folder: Path, tokens: int) -> None:
        self.folder = folder
        self.log = folder / "log.jsonl"
        self.part, self.checkpoint = folder / "log.jsonl.part", folder / "log.jsonl.ckpt"
        self.plan(tokens, lr=1e-2)
        rng = random.Random(0)
        letters = bytes(rng.choices(range(97, 123), k=tokens + tokens // 4 + 2000))
        (folder / "text.txt").write_bytes(letters)

    def plan(self, tokens: int, *, lr: float) -> None:
        """Write the plan, over one that is there."""
        made = make_plan(lr=lr, batch=4, seq_len=SEQ_LEN, tokens=tokens, multiple_of=2)
        write_records(to_rows(made), str(self.folder / "plan.jsonl"), force=True)

    def start(self, *options: str, launcher: list[str] | None = None) -> subprocess.Popen[bytes]:
        """Start `seesaw train` on the desk's plan and text."""
        arguments = ["train", "--plan", "plan.jsonl", "--text", "text.txt", *SETTINGS, *options]
        return subprocess.Popen(
            [sys.executable, *(launcher or ["-m", "seesaw"]), *arguments],
            cwd=self.folder,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, *options: str, launcher: list[str] | None = None) -> tuple[int, str]:
        """Run it to its end; give the exit code and what it said on stderr."""
        process = self.start(*options, launcher=launcher)
        _, said = process.communicate(timeout=300)
        return process.returncode, said.decode()

    def stop(self, number: signal.Signals, *options: str) -> int:
        """Start it, and send it a signal once 50 more records are written; give its exit code."""
        goal = 50 + (len(lines(self.part)) if "--resume" in options else 0)
        process = self.start("-o", "log.jsonl", *options)
        while process.poll() is None and len(lines(self.part)) < goal:
            time.sleep(0.01)
        process.send_signal(number)
        process.communicate(timeout=60)
        return process.returncode

    def left(self) -> list[str]:
        """Name what lies beside the plan and the text."""
        return sorted(p.name for p in self.folder.iterdir() if p.suffix != ".txt")


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True) if path.exists() else []


def matches(record: dict[str, Any]) -> list[str]:
    """Name the alternatives of the schema that have the record's keys and constants."""
    return [
        one["title"]
        for one in schema()["oneOf"]
        if set(one["required"]) <= record.keys() <= one["properties"].keys()
        and record.get("event") == one["properties"].get("event", {}).get("const")
    ]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A desk at which the whole work was done without interruption."""
    desk = Desk(tmp_path_factory.mktemp("whole"), TOKENS)
    code, said = desk.run("-o", "log.jsonl", "--noise-points", "2")
    assert code == 0, said
    assert "Seesaw minus base" in said
    return desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path, TOKENS)


@pytest.mark.slow
def test_log_has_the_schemas_records_the_ends_and_the_comparison(whole: Desk):
    records = [json.loads(line) for line in lines(whole.log)]
    titles = [title for record in records for title in matches(record)]
    assert len(titles) == len(records)
    made = make_plan(lr=1e-2, batch=4, seq_len=SEQ_LEN, tokens=TOKENS, multiple_of=2)
    base_steps = TOKENS // (4 * SEQ_LEN)
    assert titles.count("seesaw train: one step") == base_steps + made.steps
    assert titles.count("seesaw train: gradient norms for seesaw noise") == 4
    ends = [record for record in records if record.get("event") == "end"]
    assert [(end["run"], end["steps"]) for end in ends] == [
        ("base", base_steps),
        ("seesaw", made.steps),
    ]
    losses = [end["validation_loss"] for end in ends]
    assert records[-1]["difference"] == pytest.approx(losses[1] - losses[0], abs=1e-12)
    assert whole.left() == ["log.jsonl", "plan.jsonl"]


@pytest.mark.slow
def test_killed_and_resumed_the_log_is_the_same_byte_for_byte(whole: Desk, desk: Desk):
    noise = ("--noise-points", "2")
    assert desk.stop(signal.SIGKILL, *noise) == -signal.SIGKILL
    assert desk.left() == ["log.jsonl.ckpt", "log.jsonl.part", "plan.jsonl"]
    with desk.part.open("ab") as part:
        part.write(b'{"run": "ba')  # torn, as a crash of the machine leaves it
    assert desk.run("-o", "log.jsonl", *noise)[0] == 73
    assert desk.stop(signal.SIGTERM, *noise, "--resume") == 143
    code, said = desk.run("-o", "log.jsonl", *noise, "--resume")
    assert code == 0, said
    assert lines(desk.log) == lines(whole.log)
    assert desk.left() == ["log.jsonl", "plan.jsonl"]


@pytest.mark.slow
def test_other_plan_is_refused_on_resume_and_force_starts_again(whole: Desk, desk: Desk):
    desk.plan(TOKENS, lr=2e-2)
    assert desk.stop(signal.SIGTERM) == 143
    before = [path.read_bytes() for path in (desk.part, desk.checkpoint)]
    desk.plan(TOKENS, lr=1e-2)
    code, said = desk.run("-o", "log.jsonl", "--resume")
    assert code == 2
    assert "log.jsonl.ckpt: the checkpoint belongs to another plan" in said
    assert [path.read_bytes() for path in (desk.part, desk.checkpoint)] == before
    code, said = desk.run("-o", "log.jsonl", "--noise-points", "2", "--force")
    assert code == 0, said
    assert lines(desk.log) == lines(whole.log)


@pytest.mark.slow
def test_two_processes_write_one_log_that_is_near_the_one_of_one(whole: Desk, desk: Desk):
    code, said = desk.run("-o", "log.jsonl", "--noise-points", "2", launcher=TORCHRUN)
    assert code == 0, said
    assert desk.left() == ["log.jsonl", "plan.jsonl"]
    alone, shared = ([json.loads(line) for line in lines(d.log)] for d in (whole, desk))
    exact = ("event", "run", "seed", "step", "steps", "tokens", "lr", "batch")
    assert [[r.get(key) for key in exact] for r in alone] == [
        [r.get(key) for key in exact] for r in shared
    ]
    for key in ("loss", "validation_loss", "difference"):
        expected = [record[key] for record in alone if key in record]
        assert [r[key] for r in shared if key in r] == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
def test_what_stops_one_process_stops_all_with_the_same_words(desk: Desk):
    made = make_plan(lr=1e-2, batch=4, seq_len=SEQ_LEN, tokens=TOKENS)
    write_records(to_rows(made), str(desk.folder / "odd.jsonl"))
    desk.log.touch()
    for options, message in (
        (["--plan", "odd.jsonl", "-o", "other.jsonl"], "make the plan with --multiple-of 2"),
        (["-o", "log.jsonl"], "log.jsonl: exists already"),
    ):
        code, said = desk.run(*options, launcher=TORCHRUN)
        assert code == 1  # torchrun's own
        assert message in said
        assert "internal error" not in said
    assert desk.left() == ["log.jsonl", "odd.jsonl", "plan.jsonl"]


@pytest.mark.slow
def test_output_through_a_link_a_fifo_or_nowhere(desk: Desk):
    (desk.folder / "there").mkdir()
    (desk.folder / "link.jsonl").symlink_to("there/log.jsonl")
    desk.plan(4000, lr=1e-2)
    os.mkfifo(desk.folder / "fifo")
    reader = subprocess.Popen(["cat", "fifo"], cwd=desk.folder, stdout=subprocess.PIPE)
    assert desk.run("-o", "fifo", "--run", "seesaw")[0] == 0
    got = reader.communicate(timeout=60)[0]
    assert desk.run("-o", "/dev/null", "--run", "seesaw")[0] == 0
    process = desk.start("-o", "link.jsonl", "--run", "seesaw")
    seen: set[str] = set()
    while process.poll() is None:
        seen.update(p.name for p in desk.folder.rglob("*.ckpt"))
        time.sleep(0.01)
    process.communicate()
    assert process.returncode == 0
    assert seen == {"log.jsonl.ckpt"}
    assert (desk.folder / "there" / "log.jsonl").read_bytes() == got
    assert desk.left() == ["fifo", "link.jsonl", "plan.jsonl", "there"]
    assert not Path("/dev/null.ckpt").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "text", "message"),
    [
        (["--dtype", "fp16"], 14_000, "--dtype fp16: training is in fp32 or bf16"),
        (["--noise-points", "1"], 1_500, "--noise-points needs 16 held-out sequences"),
        (["--resume"], 14_000, "--resume needs --output"),
    ],
)
def test_options_that_cannot_be_met_are_refused_before_the_first_step(
    desk: Desk, options: list[str], text: int, message: str, capsys: pytest.CaptureFixture[str]
):
    desk.plan(1200, lr=1e-2)
    path = desk.folder / "text.txt"
    path.write_bytes(path.read_bytes()[:text])
    files = ["--plan", str(desk.folder / "plan.jsonl"), "--text", str(path)]
    code = app.run(["train", *files, *SETTINGS, *options])
    out, said = capsys.readouterr()
    assert (code, out) == (2, "")
    assert message in said


@pytest.fixture
def refuse(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """Run a command line that needs no torch to be refused; give its exit code and stderr."""

    def run(plan: str, text: str) -> tuple[int, str]:
        code = app.run(["train", "--plan", plan, "--text", text, "-o", str(tmp_path / "log.jsonl")])
        assert not list(tmp_path.glob("log.*"))
        out, said = capsys.readouterr()
        assert out == ""
        return code, said

    return run


def test_text_that_is_missing_or_too_short(tmp_path: Path, refuse: Any, monkeypatch: Any):
    monkeypatch.setitem(sys.modules, "torch", None)  # importing it would be refused with 69
    desk = Desk(tmp_path, TOKENS)
    plan, text = str(tmp_path / "plan.jsonl"), tmp_path / "text.txt"
    assert refuse(plan, str(tmp_path / "none.txt"))[0] == 66
    text.write_bytes(text.read_bytes()[:7000])
    code, said = refuse(plan, str(text))
    assert code == 65
    assert "text.txt: 8" in said
    assert "(expected 10" in said
    assert "a longer text, or a plan of fewer tokens" in said
    text.write_bytes(b"short")
    assert refuse(plan, str(text))[0] == 65
    assert desk.left() == ["plan.jsonl"]


def test_plan_and_text_that_are_both_stdin(refuse: Any, monkeypatch: Any):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    code, said = refuse("-", "-")
    assert code == 2
    assert "--plan and --text cannot both be stdin" in said


def test_stdin_under_torchrun_is_refused(monkeypatch: Any):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="must be files under torchrun"):
        train_command.read_inputs("plan.csv", "-")

"""The commands as a user types them: figures of the sheet, endings, and the offending lines."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from seesaw.cli import app

PAPER = ["--lr", "3e-3", "--batch", "256", "--seq", "1024", "--tokens", "3.3e9"]
CURVE = "step,lr\n0,0.004\n100,0.003\n200,0.0015\n300,0.0005\n"


@pytest.fixture
def seesaw(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run one command line; give its exit code, stdout and stderr."""

    def run(*arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
        if stdin is not None:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = app.run(list(arguments))
        out, err = capsysbinary.readouterr()
        return code, out.decode(), err.decode()

    return run


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_plan_has_the_published_steps_and_says_what_it_saves(seesaw: Any) -> None:
    code, out, err = seesaw("plan", *PAPER, "--cbs", "1024")
    phases = rows(out)
    assert code == 0
    assert len(phases) == 25
    assert sum(phase["steps"] for phase in phases) == 7756
    assert sum(phase["tokens"] for phase in phases) == 3_300_596_736
    assert phases[0]["seesaw"]["cut"] == 1.1
    assert "12589 steps become 7756: 38.4 % fewer (limit for such cuts 38.45 %" in err
    assert "from 256 to 2521 sequences and passes the critical batch size of 1024 at token" in err
    assert "stable, as aggressive as can be" in err


@pytest.mark.parametrize(
    ("cut", "saving"), [("1.1", "33.78"), ("1.01", "36.04"), ("1.001", "36.31")]
)
def test_quarter_cosine_comes_near_the_continuous_limit(seesaw: Any, cut: str, saving: str) -> None:
    arguments = ["--lr", "1", "--batch", "512", "--seq", "1", "--tokens", "1e9", "--final", "0"]
    code, _, err = seesaw("plan", *arguments, "--base", "quarter-cosine", "--cut", cut)
    assert code == 0
    assert f"(limit for such cuts {saving} %, for ever smaller ones 36.338 %)" in err


def test_json_and_csv_plans_are_the_same_to_the_next_command(seesaw: Any) -> None:
    answers = []
    for form in ("json", "csv"):
        _, plan, _ = seesaw("-q", "plan", *PAPER, "--format", form)
        code, out, err = seesaw("simulate", "-", "--steps", "2000", "--dim", "20", stdin=plan)
        assert (code, err) == (0, "")
        answers.append(json.loads(out))
    assert answers[0] == answers[1]
    assert answers[0]["risk_ratio"] == pytest.approx(1.0, abs=0.2)
    assert answers[0]["steps_base"] == 2000
    assert sum(phase["steps"] for phase in answers[0]["phases"]) == answers[0]["steps_plan"]


def test_a_log_without_a_header_becomes_a_ramp(seesaw: Any) -> None:
    log = "".join(f"{step},{0.003 * (1 - step / 1000)}\n" for step in range(0, 1000, 10))
    code, plan, err = seesaw("convert", "--batch", "512", "--cut", "2", stdin=log)
    assert code == 0
    assert [row["batch"] for row in rows(plan)][:3] == [512, 1024, 2048]
    assert "1000 steps become" in err
    code, yaml, err = seesaw("export", "--to", "olmo-core", stdin=plan)
    assert code == 0
    assert err.startswith("seesaw: warning: in this plan a sequence counts as one token")
    assert "512" in yaml


def test_a_curve_file_is_a_base_schedule(seesaw: Any, tmp_path: Path) -> None:
    path = tmp_path / "lr.csv"
    path.write_text(CURVE)
    shape = ["--base", f"file:{path}", "--lr", "0.4", "--batch", "8", "--seq", "16"]
    code, out, _ = seesaw("plan", *shape, "--tokens", "51200", "--cut", "2")
    assert code == 0
    assert rows(out)[0]["lr"] == 0.4
    assert rows(out)[0]["seesaw"]["total_tokens"] == 51200
    code, _, err = seesaw("plan", *shape, "--tokens", "51200", "--warmup", "0.1")
    assert (code, err) == (
        2,
        "seesaw: error: --warmup does not go with --base file:, which has its own\n",
    )


@pytest.mark.parametrize(
    ("change", "code", "wrong"),
    [
        ([], 0, []),
        (["--alpha", "1.0", "--beta", "1.21"], 1, ["stability", "effective_lr"]),
        (["--micro-batch", "1"], 0, []),
    ],
)
def test_check_exits_1_for_an_unstable_ramp(
    seesaw: Any, change: list[str], code: int, wrong: list[str]
) -> None:
    _, plan, _ = seesaw("-q", "plan", *PAPER, *change)
    ended, out, err = seesaw("check", stdin=plan)
    assert ended == code
    assert [row["name"] for row in rows(out) if row["verdict"] == "no"] == wrong
    assert ("diverges" in err) == bool(wrong)


def test_strict_check_minds_the_critical_batch_size(seesaw: Any) -> None:
    _, plan, _ = seesaw("-q", "plan", *PAPER)
    assert seesaw("check", "--cbs", "1024", stdin=plan)[0] == 0
    code, out, err = seesaw("check", "--cbs", "1024", "--strict", stdin=plan)
    assert code == 1
    assert {row["name"]: row["verdict"] for row in rows(out)}["critical_batch"] == "no"
    assert err.startswith("seesaw: error: the batch passes 1024 at token ")


def test_noise_of_a_known_line(seesaw: Any) -> None:
    # |G|^2 = 2 and S = 96: 2 + 96/8 = 14, 2 + 96/64 = 3.5, noise scale 48.
    log = '{"batch": 8, "grad_norm_sq": 14}\n{"batch": 64, "grad_norm_sq": 3.5}\n'
    code, out, _ = seesaw("noise", "--seq", "10", "--at-batch", "48", stdin=log)
    estimate = json.loads(out)
    assert code == 0
    assert estimate["noise_scale"] == pytest.approx(48)
    assert estimate["noise_scale_tokens"] == pytest.approx(480)
    assert estimate["mean_share"] == pytest.approx(0.5)


@pytest.mark.parametrize("option", [["--at-batch", "0"], ["--at-batch", "nan"], ["--seq", "0"]])
def test_noise_options_out_of_range(seesaw: Any, option: list[str]) -> None:
    log = '{"batch": 8, "grad_norm_sq": 14}\n{"batch": 64, "grad_norm_sq": 3.5}\n'
    code, out, err = seesaw("noise", *option, stdin=log)
    assert (code, out, "must be a finite number above 0" in err) == (2, "", True)


def test_eigenvalues_from_a_file(seesaw: Any, tmp_path: Path) -> None:
    path = tmp_path / "eigenvalues"
    path.write_text("1\n0.5\n\n0.25\n")
    _, plan, _ = seesaw("-q", "plan", *PAPER)
    arguments = ["simulate", "--steps", "100", "--spectrum"]
    _, from_file, _ = seesaw(*arguments, f"file:{path}", stdin=plan)
    _, spelled, _ = seesaw(*arguments, "1,0.5,0.25", stdin=plan)
    assert from_file == spelled
    assert json.loads(from_file)["dim"] == 3
    for spectrum in (f"file:{path}", "1,0.5,0.25"):
        code, _, err = seesaw(*arguments, spectrum, "--dim", "3", stdin=plan)
        assert (code, "dim (3) does not go with a" in err) == (2, True)
    path.write_text("1\n-1\n")
    code, _, err = seesaw(*arguments, f"file:{path}", stdin=plan)
    assert (code, err.partition(" (")[0]) == (65, f"seesaw: error: {path}:2: eigenvalue '-1'")


def test_reproduce_has_all_21_rows(seesaw: Any) -> None:
    code, out, err = seesaw("reproduce")
    assert code == 0
    assert [row["verdict"] for row in rows(out)] == ["yes"] * 21
    assert err == "seesaw: all 21 published runs come out exactly\n"


@pytest.mark.slow
def test_demo_shows_the_claim(seesaw: Any) -> None:
    code, out, _ = seesaw("demo")
    assert code == 0
    assert "12589 steps become 7756: 38.4 % fewer" in out
    assert "21 of 21" in out
    assert max(map(len, out.splitlines())) <= 110


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--cut", "1"], "cut must be above 1, got 1"),
        (["--cut", "0.9"], "cut must be above 1, got 0.9"),
        (["--warmup", "3.3e9"], "warmup (3300000000 tokens) must be shorter than the run"),
        (["--base", "sine"], "unknown base schedule 'sine'"),
        (["--micro-batch", "100"], "batch (256) must be a multiple of 100"),
        (["--cap-batch", "100"], "cap_batch (100) must not be below batch (256)"),
        (["--alpha", "1.3", "--beta", "2", "--cut", "2"], "alpha * sqrt(beta) is 1.83848"),
        (["--optimizer", "lion"], "optimizer must be adam or sgd, got 'lion'"),
        (["--cbs", "nan"], "cbs must be a finite number above 0, got nan"),
        (["--plot", "plan.pdf"], "plan.pdf: a plot is a .png or .svg file"),
    ],
)
def test_a_plan_that_cannot_be(seesaw: Any, arguments: list[str], says: str) -> None:
    code, out, err = seesaw("plan", *PAPER, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"seesaw: error: {says}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (CURVE.replace("200,0.0015", "200,0.0035"), "4: lr rises to 0.0035 after 0.003"),
        (CURVE.replace("200,", "50,"), "4: steps go from 100 to 50"),
        (CURVE.replace("0.0015", "nan"), "4: lr is nan"),
        (CURVE.replace("0.0015", "-1"), "4: lr is -1"),
        (CURVE.replace("0.0015", "fast"), "4: lr is 'fast'"),
        ("step,rate\n0,1\n", "1: no column lr or learning_rate in the header"),
        ("", " no learning rate in this file"),
    ],
)
def test_a_curve_that_is_no_schedule(seesaw: Any, tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "lr.csv"
    path.write_text(text)
    code, out, err = seesaw("convert", str(path), "--batch", "8")
    assert (code, out) == (65, "")
    assert err.startswith(f"seesaw: error: {path}:{says}")
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", [["check"], ["simulate"], ["export", "--to", "torch"]])
def test_every_reader_of_plans_names_what_is_wrong(
    seesaw: Any, tmp_path: Path, command: list[str]
) -> None:
    _, plan, _ = seesaw("-q", "plan", *PAPER)
    lines = plan.splitlines(keepends=True)
    path = tmp_path / "plan.jsonl"
    assert seesaw(*command, str(path))[0] == 66
    for text, says in (
        ("", f"{path}: there is no plan here"),
        ("".join(lines[:3] + lines[4:]), f"{path}:4: phase is 4 (expected 3"),
        ("".join(lines[:9]), f"{path}:9: the plan ends after"),
        (plan.replace('"batch":281', '"batch":-1'), f"{path}:2: batch is -1"),
    ):
        path.write_text(text)
        code, out, err = seesaw(*command, str(path))
        assert (code, out) == (65, "")
        assert err.startswith(f"seesaw: error: {says}")
        assert err.count("\n") == 1


def test_an_output_is_not_overwritten(seesaw: Any, tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    assert seesaw("plan", *PAPER, "-o", str(path))[0] == 0
    before = path.read_text()
    assert before.startswith("phase,start_token,start_step,lr,batch,grad_accum,steps,tokens")
    assert seesaw("plan", *PAPER, "-o", str(path), "--cut", "2")[0] == 73
    assert path.read_text() == before
    assert seesaw("plan", *PAPER, "-o", str(path), "--cut", "2", "--force")[0] == 0
    assert path.read_text() != before


def test_no_picture_is_drawn_for_a_plan_that_cannot_be_written(seesaw: Any, tmp_path: Path) -> None:
    path, picture = tmp_path / "plan.csv", tmp_path / "plan.svg"
    path.write_text("mine")
    assert seesaw("plan", *PAPER, "--plot", str(picture), "-o", str(path))[0] == 73
    assert (path.read_text(), picture.exists()) == ("mine", False)


def test_a_token_column_is_read_as_tokens(seesaw: Any, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("seen,lr\n0,0.004\n51200,0.003\n102400,0.0005\n")
    shape = [str(path), "--batch", "8", "--seq", "16", "--cut", "2"]
    code, out, _ = seesaw("convert", *shape, "--token-field", "seen")
    assert code == 0
    assert rows(out)[0]["seesaw"]["total_tokens"] == 153_600
    code, out, _ = seesaw("convert", *shape, "--step-field", "seen")
    assert rows(out)[0]["seesaw"]["total_tokens"] == 153_600 * 8 * 16
    code, out, err = seesaw("convert", *shape, "--step-field", "seen", "--token-field", "seen")
    assert (code, out) == (2, "")
    assert "exclude each other" in err


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_plot_is_a_picture_and_the_same_each_time(seesaw: Any, tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib")
    pictures = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}.{suffix}"
        assert seesaw("plan", *PAPER, "--plot", str(path), "-q")[0] == 0
        pictures.append(path.read_bytes())
    assert pictures[0].startswith(b"\x89PNG" if suffix == "png" else b"<?xml")
    assert pictures[0] == pictures[1]

"""The commands `sample`, `uniform` and `budget`, from the command line to the files."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

SMALL = ["--dim", 2, "-n", 20, "--mc", 40, "--rounds", 4, "--sub", 3, "--step", 1, "--keep", 2]
MORE = [*SMALL, "-q"]


def points_in(text):
    return np.array([json.loads(line)["x"] for line in text.splitlines()])


def about_in(text):
    return json.loads(text.splitlines()[0])["zoprox"]


def assert_error(ended, code, *texts):
    assert ended[0] == code, ended
    assert ended[1] == ""
    last = ended[2].splitlines()[-1]
    assert last.startswith("zoprox: error: ")
    for text in texts:
        assert text in last


def test_awk_python_and_a_formula_draw_the_same_bytes(files, zoprox):
    ways = [
        ["--target", "model.py:f"],
        ["--expr", "(x1*x1 + x2*x2)/2"],
        ["--exec", "awk -f f.awk", "--chunk", 500],
        ["--exec", "awk -f f.awk", "--jobs", 1, "--chunk", 71],
    ]
    texts = []
    for way in ways:
        code, out, _ = zoprox("sample", *way, *MORE)
        assert code == 0
        texts.append([line.partition(',"zoprox"')[0] for line in out.splitlines()])
    assert all(text == texts[0] for text in texts)
    assert len(texts[0]) == 2 * 20


def test_the_counter_is_the_number_of_lines_that_the_command_read(files, zoprox):
    command = "sh -c 'tee -a seen | awk -f f.awk'"
    _, out, _ = zoprox("sample", "--exec", command, *MORE, "--chunk", 300)
    about = about_in(out)
    assert about["round_evaluations"] == 4 * 3 * 20 * 40
    assert about["correction_evaluations"] == 2 * (20 * 40 + 20)
    assert len((files / "seen").read_text().splitlines()) == about["evaluations"]
    (files / "seen").unlink()
    auto = [word if word != 1 else "auto" for word in MORE]
    _, out, _ = zoprox("sample", "--exec", command, *auto, "--no-correct", "--chunk", 999)
    about = about_in(out)
    assert about["evaluations"] == about["pilot_evaluations"] + about["round_evaluations"]
    assert len((files / "seen").read_text().splitlines()) == about["evaluations"]


@pytest.mark.slow
def test_a_gaussian_comes_out_as_one(zoprox):
    words = ["--dim", 2, "-n", 100, "--mc", 200, "--rounds", 16, "--step", 0.5, "-q"]
    code, out, _ = zoprox("sample", "--expr", "(x1-3)**2/2 + 2*x2**2", *words)
    assert code == 0
    points = points_in(out)
    assert points.shape == (1000, 2)
    # Particles of one round count as independent, rounds hardly do: 100 of them, 3 errors.
    assert points.mean(0) == pytest.approx([3, 0], abs=0.3)
    assert points.std(0) == pytest.approx([1, 0.5], rel=0.22)
    about = about_in(out)
    mass = math.log(2 * math.pi * 0.5)
    assert about["log_normaliser"] == pytest.approx(
        mass, abs=4 * about["log_normaliser_standard_error"] + 1e-3
    )


def test_log_density_is_the_negative(files, zoprox):
    plain = zoprox("sample", "--expr", "sum(x**2)/2", *MORE)
    turned = zoprox("sample", "--expr", "-sum(x**2)/2", "--log-density", *MORE)
    np.testing.assert_array_equal(points_in(plain[1]), points_in(turned[1]))


def test_bounds_hold_and_the_mass_is_that_of_the_box(files, zoprox):
    (files / "box.csv").write_text("low,high\n0,\n-1,2\n")
    words = ["--dim", 2, "-n", 60, "--mc", 150, "--rounds", 12, "--step", 1, "-q"]
    code, out, _ = zoprox("sample", "--expr", "x1", "--bounds", "box.csv", *words)
    assert code == 0
    points = points_in(out)
    assert (points[:, 0] > 0).all()
    assert (np.abs(points[:, 1] - 0.5) < 1.5).all()
    about = about_in(out)  # exp(-x1) on [0, inf) x [-1, 2]
    assert about["bounds"] == [[0, None], [-1, 2]]
    assert math.exp(about["log_normaliser"]) == pytest.approx(3, rel=0.15)


@pytest.mark.parametrize(
    "named",
    [
        ["--inside", "sum(x**2) < 1"],
        pytest.param(["--inside", "model.py:inside"], marks=pytest.mark.slow),
        pytest.param(["--inside", "awk '{ print ($1*$1 + $2*$2 < 1) }'"], marks=pytest.mark.slow),
        ["--expr", "x1**2 + x2**2 < 1", "--bounds", "-1,1"],
    ],
)
def test_uniform_on_a_disc_and_its_area(files, zoprox, named):
    words = ["--dim", 2, "-n", 50, "--mc", 100, "--rounds", 6, "--sub", 4, "--step", 0.5]
    code, out, err = zoprox("uniform", *named, *words, "--keep", 4)
    assert code == 0, err
    points = points_in(out)
    assert ((points**2).sum(1) < 1).all()
    about = about_in(out)
    assert about["volume"] == pytest.approx(math.pi, abs=4 * about["volume_standard_error"] + 0.01)
    assert "volume 3." in err
    if "--bounds" in named:
        assert about["volume_fraction"] == about["volume"] / 4


# Files


@pytest.mark.parametrize("suffix", ["csv", "npy", "jsonl", "jsonl.gz"])
def test_the_suffix_names_the_format(files, zoprox, suffix):
    from zoprox.draws import read_draws

    words = ["sample", "--target", "model.py:f", *MORE]
    _, out, _ = zoprox(*words)
    code, nothing, _ = zoprox(*words, "-o", f"draws.{suffix}")
    assert (code, nothing) == (0, "")
    np.testing.assert_array_equal(read_draws(f"draws.{suffix}").pooled(), points_in(out))
    assert sorted(p.name for p in files.glob("draws*")) == [f"draws.{suffix}"]
    assert_error(zoprox(*words, "-o", f"draws.{suffix}"), 73, "--force")


def test_a_run_goes_on_where_it_was_cut_short(files, zoprox):
    words = ["sample", "--target", "model.py:f", *SMALL]
    assert zoprox(*words, "-o", "whole.jsonl")[0] == 0
    text = (files / "model.py").read_text()
    # 4 rounds of 3 batches of 800 points: it stops in the third.
    broken = text.replace("def f(x):", "calls = []\ndef f(x):\n    calls.append(len(x))\n"
                          "    if sum(calls) > 5000: raise OSError('no licence')")  # fmt: skip
    (files / "broken.py").write_text(broken)
    cut = ["sample", "--target", "broken.py:f", *SMALL, "-o", "cut.jsonl"]
    ended = zoprox(*cut)
    assert_error(ended, 65, "broken.py:6: OSError: no licence")
    assert "2 finished rounds are in" in ended[2]
    assert (files / "cut.jsonl.part").exists()
    assert_error(zoprox(*cut), 73, "--resume goes on")
    assert_error(zoprox(*cut, "--resume", "--seed", 1), 2, "seed")
    (files / "broken.py").write_text(text)
    from zoprox import python_target

    python_target._module.cache_clear()
    code, _, err = zoprox(*cut, "--resume")
    assert code == 0, err
    assert "going on from round 2" in err
    whole, resumed = (files / "whole.jsonl").read_text(), (files / "cut.jsonl").read_text()
    assert resumed.replace("broken.py", "model.py") == whole
    assert not (files / "cut.jsonl.part").exists()


def test_a_run_that_fails_at_once_leaves_nothing(files, zoprox):
    before = sorted(files.iterdir())
    ended = zoprox("sample", "--exec", "false", *SMALL, "-o", "draws.csv")
    assert_error(ended, 65, "exited with status 1")
    assert sorted(files.iterdir()) == before


def test_starts(files, zoprox):
    # With one round of a tiny step the particles stay where they started.
    words = ["sample", "--expr", "0*x1", "--dim", 2, "--rounds", 1, "--sub", 1, "--mc", 2,
             "--step", 1e-12, "--keep", 1, "--no-correct", "-q"]  # fmt: skip
    given = np.arange(8.0).reshape(4, 2)
    np.save("start.npy", given)
    _, out, _ = zoprox(*words, "-n", 4, "--start", "start.npy")
    np.testing.assert_allclose(points_in(out), given, atol=1e-4)
    _, out, _ = zoprox(*words, "-n", 3, "--start", "start.npy")
    assert {tuple(p) for p in points_in(out).round().tolist()} < {tuple(p) for p in given.tolist()}
    _, out, _ = zoprox(*words, "-n", 2000, "--start", "normal:5")
    assert points_in(out).std() == pytest.approx(5, rel=0.06)
    _, out, _ = zoprox(*words, "-n", 4, "--start", "start.npy", "--bounds", "-1,9")
    np.testing.assert_allclose(points_in(out), given, atol=1e-3)
    assert_error(zoprox(*words, "-n", 4, "--start", "start.npy", "--bounds", "0,9"), 65, "inside")
    assert_error(zoprox(*words, "--start", "normal:x"), 2, "positive number")
    assert_error(zoprox(*words, "--start", "none.csv"), 66, "none.csv")
    np.save("start.npy", given.reshape(-1, 1))
    assert_error(zoprox(*words, "--start", "start.npy"), 65, "expected 2")


# What goes wrong


@pytest.mark.parametrize(
    ("words", "code", "texts"),
    [
        ([], 2, ["no target given"]),
        (["--expr", "x1", "--exec", "cat"], 2, ["more than one"]),
        (["--expr", "x9"], 2, ["'x9'", "x1 to x2"]),
        (["--expr", "x"], 65, ["2 values for a point"]),
        (["--expr", "x1 > 0"], 65, ["zoprox uniform"]),
        (["--expr", "log(0*x1 - 1)"], 65, ["NaN for all"]),
        (["--expr", "-1/(0*x1)"], 65, ["-inf for f at the point"]),
        (["--target", "none.py:f"], 66, ["none.py: no such file"]),
        (["--target", "model.py:g"], 2, ["no function 'g' (it has f, inside)"]),
        (["--exec", "./none"], 69, ["cannot be started"]),
        (["--exec", "sed 1d"], 65, ["printed 99 lines for 100 points"]),
        (["--exec", "sh -c 'echo nan >&2; exit 4'"], 65, ["exited with status 4", "nan"]),
        (["--exec", "sed s/.*/nan/"], 65, ["NaN for all"]),
        (["--exec", "sleep 983.5", "--timeout", "0.2"], 75, ["0 of 100 answers after 0.2 s"]),
        (["--expr", "x1", "--step", "0"], 2, ["positive"]),
        (["--expr", "x1", "--step", "big"], 2, ["--step big"]),
        (["--expr", "x1", "--beta-min", "3"], 2, ["beta_min"]),
        (["--expr", "x1", "--exec-mode", "stream"], 2, ["--exec"]),
        (["--expr", "x1", "--device", "cpu"], 2, ["--target"]),
        (["--expr", "x1", "--dtype", "fp32"], 2, ["--device"]),
        (["--expr", "x1", "--timeout", "3"], 2, ["--exec"]),
        (["--expr", "x1", "--resume"], 2, ["--output"]),
        (["--expr", "x1", "--bounds", "2,1"], 2, ["not below"]),
        (["--expr", "x1", "-o", "no/such/draws.csv"], 73, ["no folder"]),
        (["--expr", "x1", "--method", "rejection"], 65, ["f >= 0"]),
    ],
)
def test_one_line_and_the_right_code(files, zoprox, words, code, texts):
    assert_error(zoprox("sample", *SMALL, "-q", *words), code, *texts)


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--inside", "x1 < 0", "--expr", "x1 > 0"], 2, "--inside names the test already"),
        (["--inside", "x1 + x2"], 65, "1 or 0"),
        (["--inside", "./none"], 69, "cannot be started"),
        (["--inside", "sed s/.*/maybe/"], 65, "'maybe'"),
        ([], 2, "no target"),
    ],
)
def test_a_test_that_is_none(files, zoprox, words, code, text):
    assert_error(zoprox("uniform", *SMALL, "-q", *words), code, text)


def test_collapsed_weights_end_with_1_after_the_draws(zoprox):
    words = ["--dim", 2, "-n", 5, "--mc", 200, "--rounds", 12, "--sub", 2, "--step", 100]
    ended = zoprox("sample", "--expr", "1e4*sum(x**2)", *words, "--keep", 2)
    assert ended[0] == 1
    assert len(points_in(ended[1])) == 10
    assert "under 2% of the --mc 200 draws" in ended[2].splitlines()[-1]


def test_nothing_allowed_ends_with_1(zoprox):
    ended = zoprox("uniform", "--expr", "x1 > 1e6", *SMALL, "--rounds", 10, "--no-correct")
    assert ended[0] == 1
    np.testing.assert_array_equal(np.isfinite(points_in(ended[1])), True)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_the_rounds_and_leaves_no_process(files, number):
    words = ["--dim", 1, "-n", 4, "--mc", 8, "--rounds", 100_000, "--sub", 1, "--step", 1]
    command = [sys.executable, "-m", "zoprox", "sample", "--exec", f"sh -c 'cat; : 98{number}77'",
               *map(str, words), "-o", "draws.csv", "--no-correct"]  # fmt: skip
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        part = files / "draws.csv.part"
        limit = time.monotonic() + 20
        while not (part.exists() and part.stat().st_size > 3000) and time.monotonic() < limit:
            time.sleep(0.02)
        process.send_signal(number)
        err = process.communicate(timeout=20)[1]
    assert process.returncode == 128 + number
    assert "--resume goes on from them" in err
    assert "Traceback" not in err
    assert part.exists()
    assert not (files / "draws.csv").exists()
    for entry in os.listdir("/proc"):  # noqa: PTH208
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:  # noqa: PTH123
                    assert f"98{number}77".encode() not in file.read()
            except OSError:
                continue


@pytest.mark.slow
def test_a_torch_function_on_a_device(files, zoprox):
    (files / "model.py").write_text(
        "import torch\n"
        "def f(x):\n    return (x**2).sum(1) / 2\n"
        "def inside(x):\n    return (x**2).sum(1) < 1\n"
    )
    words = ["--dim", 2, "-n", 60, "--mc", 150, "--rounds", 10, "--step", 0.5, "-q"]
    words += ["--device", "cpu"]
    code, out, err = zoprox("sample", "--target", "model.py:f", *words)
    assert code == 0, err
    assert points_in(out).std() == pytest.approx(1, rel=0.2)
    code, out, err = zoprox("uniform", "--target", "model.py:inside", *words, "--bounds", "-1,1")
    assert code == 0, err
    about = about_in(out)
    assert about["volume"] == pytest.approx(math.pi, abs=4 * about["volume_standard_error"] + 0.01)
    code, out, _ = zoprox("sample", "--target", "model.py:f", *words, "--bounds", "0,")
    assert code == 66
    (files / "box.csv").write_text("0,\n,0\n")
    code, out, err = zoprox("sample", "--target", "model.py:f", *words, "--bounds", "box.csv")
    assert code == 0, err
    about = about_in(out)
    # A quarter of the Gaussian's mass.
    assert about["log_normaliser"] == pytest.approx(
        math.log(2 * math.pi / 4), abs=4 * about["log_normaliser_standard_error"] + 0.01
    )


@pytest.mark.slow
def test_more_processes_draw_the_same_bytes(files):
    # As a person runs it: what other tests left in this process has no part in it.
    words = [sys.executable, "-m", "zoprox", "sample", "--target", "model.py:f", *map(str, MORE)]
    texts = set()
    for jobs in "123":
        ended = subprocess.run([*words, "--jobs", jobs], capture_output=True, text=True, timeout=60)
        assert ended.returncode == 0, ended.stderr
        texts.add(ended.stdout)
    assert len(texts) == 1


def test_benchmarks_are_targets(zoprox):
    words = ["--target", "bench:two-tori", *["3" if w == 2 else w for w in SMALL[:2]], *MORE[2:]]
    assert zoprox("sample", *words)[0] == 0
    code, out, _ = zoprox("uniform", *words)
    assert code == 0
    assert points_in(out).shape == (40, 3)
    assert_error(zoprox("sample", *words, "--dim", 2), 2, "two-tori")
    assert_error(zoprox("sample", *words, "--target", "bench:none"), 2, "gaussian-lasso")
    words[1] = "bench:funnel"
    assert_error(zoprox("uniform", *words), 2, "is no set")


@pytest.mark.slow
def test_draws_go_through_a_pipe_to_diag(zoprox, files):
    words = ["sample", "--expr", "sum(x**2)/2", *MORE, "--keep", 4]
    for suffix in ("csv", "jsonl", "npy"):
        assert zoprox(*words, "-o", f"a.{suffix}")[0] == 0
        code, out, err = zoprox("diag", f"a.{suffix}", "--ref", "a.csv")
        assert code == 0, err
        records = [json.loads(line) for line in out.splitlines()]
        assert len(records) == 3
        assert records[0]["mean_error"] == pytest.approx(0, abs=1e-12)

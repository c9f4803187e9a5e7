"""Guidance written down: its lines, the command, and that clasp does act on it."""

import csv
import gzip
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from satguide import clasp, dimacs, weights
from satguide.backends import Guidance
from satguide.checkpoint import Checkpoint, write
from satguide.cli import app
from satguide.cnf import CNF
from satguide.families.spec import generator
from satguide.guidance import guide

GIVEN = Guidance(
    np.array([1.0, 0.00001, 2.34567, 40.0], dtype=np.float32), np.array([True, False, False, True])
)


@pytest.fixture
def run(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run `satguide weights` once; give its exit code, stdout and stderr."""

    def call(*arguments: str, stdin: bytes | None = None) -> tuple[int, str, str]:
        if stdin is not None:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = app.run(["weights", *arguments])
        out, err = capsysbinary.readouterr()
        return code, out.decode(), err.decode()

    return call


@pytest.fixture(scope="module")
def formula() -> CNF:
    return generator("3sat")(60, 4)


@pytest.fixture(scope="module")
def formula_file(formula: CNF, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("formula") / "f.cnf"
    with path.open("wb") as out:
        dimacs.write(out, formula)
    return path


def test_the_line_for_glucose_keeps_the_sign_of_the_smallest_weight() -> None:
    assert weights.weight_line(GIVEN) == b"c weight 1.0000 -0.0001 -2.3457 40.0000\n"
    assert weights.weight_line(Guidance.unit(0)) == b"c weight\n"


def test_the_lines_for_clasp_are_factor_init_and_sign() -> None:
    text = b"".join(weights.heuristic_lines(GIVEN)).decode()
    assert text.splitlines()[:6] == [
        "c heuristic 2 1 1000 1 0",
        "c heuristic 3 1 1000 1 0",
        "c heuristic 1 1 1 1 0",
        "c heuristic 2 2 1 1 0",
        "c heuristic 3 2 1 1 0",
        "c heuristic 1 2 -1 1 0",
    ]
    assert text.splitlines()[-3:-1] == ["c heuristic 2 4 32767 1 0", "c heuristic 3 4 32767 1 0"]
    without = b"".join(weights.heuristic_lines(GIVEN, "none")).decode()
    assert without == re.sub(r"c heuristic 1 .*\n", "", text)
    # In process clasp is told the same, in the same order, with `7` for `c heuristic`.
    assert clasp.heuristic_text(GIVEN).decode() == text.replace("c heuristic", "7")
    assert clasp.heuristic_text(GIVEN, "none").decode() == without.replace("c heuristic", "7")


def test_blocks_join_as_if_there_were_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_of_it() -> list[Any]:
        lines = [b"".join(weights.heuristic_lines(GIVEN, p)) for p in ("persistent", "none")]
        return [*lines, weights.weight_line(GIVEN), list(weights.records(GIVEN))]

    whole = all_of_it()
    monkeypatch.setattr(weights, "_BLOCK", 3)
    assert all_of_it() == whole


def test_records_say_what_the_network_says(
    run: Any, checkpoint: Checkpoint, checkpoint_file: Path, formula: CNF, formula_file: Path
) -> None:
    code, out, err = run(str(checkpoint_file), str(formula_file))
    said = [json.loads(line) for line in out.splitlines()]
    expected = guide(checkpoint, formula)
    assert (code, err) == (0, "")
    assert [row["variable"] for row in said] == list(range(1, 61))
    np.testing.assert_allclose([row["weight"] for row in said], expected.weights, atol=5.1e-7)
    assert [row["polarity"] for row in said] == expected.polarity.tolist()
    assert set(said[0]) == {"variable", "weight", "polarity"}
    code, out, _ = run(str(checkpoint_file), str(formula_file), "--format", "csv")
    rows = list(csv.DictReader(out.splitlines()))
    assert [float(row["weight"]) for row in rows] == [row["weight"] for row in said]
    assert [row["polarity"] == "true" for row in rows] == [row["polarity"] for row in said]


@pytest.mark.parametrize("form", ["cnf-weight", "clasp"])
def test_a_guided_formula_is_the_formula(
    run: Any,
    checkpoint: Checkpoint,
    checkpoint_file: Path,
    formula: CNF,
    formula_file: Path,
    form: str,
) -> None:
    text = formula_file.read_bytes()
    code, out, _ = run(str(checkpoint_file), "-", "--format", form, stdin=text)
    lines = out.splitlines(keepends=True)
    assert code == 0
    assert lines[1] == f"p cnf 60 {len(formula)}\n"
    expected = guide(checkpoint, formula)
    if form == "clasp":
        assert "".join(lines[2:182]).encode() == b"".join(weights.heuristic_lines(expected))
        rest = lines[182:]
    else:
        assert lines[2].encode() == weights.weight_line(expected)
        rest = lines[3:]
    assert "p cnf" not in "".join(rest)
    again = dimacs.read(io.BytesIO(out.encode()), "out", strict=True)
    assert list(again) == list(formula)
    assert [line.split() for line in rest] == [[*map(str, row), "0"] for row in formula]
    # Guided once more, the old guidance is gone.
    _, twice, _ = run(str(checkpoint_file), "-", "--format", form, stdin=out.encode())
    assert [line for line in twice.splitlines() if "by satguide" not in line] == [
        line for line in out.splitlines() if "by satguide" not in line
    ]


def test_a_formula_unlike_those_of_training_is_told(
    run: Any, checkpoint: Checkpoint, formula_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "m.safetensors"
    known = {"range": {"clauses_per_variable": [6.0, 8.0], "literals_per_clause": [3.0, 3.0]}}
    write(str(path), Checkpoint(checkpoint.network, checkpoint.sigma, known))
    code, out, err = run(str(path), str(formula_file))
    assert (code, len(out.splitlines())) == (0, 60)
    assert "f.cnf is unlike the formulas of training: 4." in err
    assert "clauses per variable, in training 6 to 8" in err


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("p cnf 0 0\n", []),
        ("p cnf 0 1\n0\n", []),
        ("p cnf 2 0\n", [(1.0, True)] * 2),
    ],
)
def test_formulas_with_nothing_to_guide(
    run: Any, checkpoint_file: Path, text: str, rows: list[tuple[float, bool]]
) -> None:
    code, out, err = run(str(checkpoint_file), "-", stdin=text.encode())
    assert (code, err) == (0, "")
    said = [json.loads(line) for line in out.splitlines()]
    assert [(row["weight"], row["polarity"]) for row in said] == rows
    for form in ("cnf-weight", "clasp"):
        code, out, _ = run(str(checkpoint_file), "-", "--format", form, stdin=text.encode())
        assert code == 0
        assert out.endswith(text.partition("\n")[2])


def test_endings(run: Any, checkpoint_file: Path, formula_file: Path, tmp_path: Path) -> None:
    model, path = str(checkpoint_file), str(formula_file)
    miscounted = b"p cnf 2 3\n1 2 0\n"
    code, _, err = run(model, "-", stdin=miscounted)
    assert code == 0
    assert "stdin:1: the header says 3 clauses, there are 1" in err
    assert run(model, "-", "--strict", stdin=miscounted)[0] == 65
    code, out, err = run(model, "-", stdin=b"p cnf 2 1\n1 3 0\n")
    assert (code, out) == (65, "")
    assert err == (
        "satguide: error: stdin:2: literal '3' is out of range "
        "(expected variables 1 to 2, as the header says)\n"
    )
    assert run(model, str(tmp_path / "none.cnf"))[0] == 66
    assert run(str(tmp_path / "none"), path)[0] == 66
    assert run(path, path)[0] == 65  # a formula is no checkpoint
    assert run(model, path, "--format", "xml")[0] == 2
    assert run(model, path, "--device", "tpu")[0] == 2
    kept = tmp_path / "w.csv.gz"
    kept.write_text("mine")
    assert run(model, path, "-o", str(kept))[0] == 73
    assert kept.read_text() == "mine"
    assert run(model, path, "-o", str(tmp_path / "w.csv"))[0] == 0
    assert (tmp_path / "w.csv").read_text().startswith("variable,weight,polarity\n1,")


def test_without_polarity_there_is_none_to_write(run, checkpoint_file, formula_file):
    model, path = str(checkpoint_file), str(formula_file)
    _, plain, _ = run(model, path)
    _, silent, _ = run(model, path, "--polarity", "none")
    rows = [[json.loads(line) for line in text.splitlines()] for text in (plain, silent)]
    assert [row | {"polarity": None} for row in rows[0]] == rows[1]
    _, text, _ = run(model, path, "--format", "cnf-weight", "--polarity", "none")
    line = next(line for line in text.splitlines() if line.startswith("c weight"))
    weights = [float(word) for word in line.split()[2:]]
    assert weights == pytest.approx([row["weight"] for row in rows[0]], abs=5.1e-5)
    _, text, _ = run(model, path, "--format", "clasp", "--polarity", "none")
    kinds = {line.split()[2] for line in text.splitlines() if line.startswith("c heuristic")}
    assert kinds == {"2", "3"}


def choices(formula: CNF, guidance: Guidance, folder: Path) -> int:
    """Solve by clasp's command line, as a user would; give its decisions."""
    path = folder / "guided.cnf"
    weights.write(str(path), formula, guidance, form="clasp", force=True)
    command = [sys.executable, "-m", "clingo", "--mode=clasp", "--heuristic=Domain", "--parse-ext"]
    done = subprocess.run([*command, "--stats", str(path)], capture_output=True, text=True)
    assert "s UNSATISFIABLE" in done.stdout, done.stdout + done.stderr
    found = re.search(r"^c Choices\s+: (\d+)\s+\(Domain: (\d+)\)", done.stdout, re.MULTILINE)
    assert found is not None, done.stdout
    return int(found[1])


def test_clasp_reads_the_weights_and_acts_on_them(tmp_path: Path) -> None:
    formula = generator("3sat")(100, 8)
    degree = (formula.occurrences() / formula.occurrences().mean()).astype(np.float32)
    first_true = np.ones(100, dtype=bool)
    by_degree = choices(formula, Guidance(degree, first_true), tmp_path)
    inverted = choices(formula, Guidance(1 / degree, first_true), tmp_path)
    assert inverted > 3 * by_degree


def test_the_command_has_the_manners_of_a_filter(
    run: Any, checkpoint_file: Path, tmp_path: Path
) -> None:
    model, good = str(checkpoint_file), b"c hi\np cnf 3 2\n1 -2 3 0\n-1 2 0\n"
    path, out = tmp_path / "f.cnf", tmp_path / "out"
    path.write_bytes(good)
    code, plain, said = run(model, str(path))
    assert (code, plain.count("\n"), said) == (0, 3, "")
    packed, windows = tmp_path / "f.cnf.gz", tmp_path / "w.cnf"
    packed.write_bytes(gzip.compress(good))
    windows.write_bytes(b"\xef\xbb\xbf" + good.replace(b"\n", b"\r\n"))
    for words in ([str(packed)], [str(windows)], [str(path), "-q"], [str(path), "-v", "--debug"]):
        assert run(model, *words)[:2] == (0, plain)
    for words in (["-"], []):
        assert run(model, *words, stdin=good)[:2] == (0, plain)
    assert run(model, str(path), "-o", str(out))[:2] == (0, "")
    assert out.read_text() == plain
    code, _, said = run(model, str(path), "-o", str(out))
    assert (code, said.count("\n")) == (73, 1)
    assert run(model, str(path), "-o", str(out), "--force", "--format", "csv")[0] == 0
    assert len(list(csv.DictReader(io.StringIO(out.read_text())))) == 3
    path.write_bytes(good.replace(b"3 0", b"x 0"))
    code, printed, said = run(model, str(path))
    assert (code, printed, said.count("\n")) == (65, "", 1)
    assert f"{path}:3: " in said
    assert run(model, str(tmp_path / "missing.cnf"))[0] == 66

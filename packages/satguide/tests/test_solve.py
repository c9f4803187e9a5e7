"""`satguide solve` as a user runs it."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from papercuts.errors import UsageError
from satguide import clasp, dimacs, solving
from satguide.cli import app
from satguide.cnf import CNF
from satguide.families import threesat

CLINGO = f"{sys.executable} -m clingo --mode=clasp --stats"
DOMAIN = f"{CLINGO} --heuristic=Domain --parse-ext"


@pytest.fixture
def file(tmp_path):
    """Write a formula and give its path."""

    def write(cnf, name="f.cnf"):
        with (tmp_path / name).open("wb") as out:
            dimacs.write(out, cnf)
        return str(tmp_path / name)

    return write


@pytest.fixture
def program(tmp_path):
    """Write a solver in Python and give its name as a back end."""

    def write(body):
        path = tmp_path / "solver.py"
        path.write_text(f"import os, signal, sys, time\n{body}\n")
        return f"exec:{sys.executable} -S {path}"

    return write


SAT, UNSAT = threesat.generate(60, 0), threesat.generate(60, 2)


def model_of(text, variables):
    values = [line for line in text.splitlines() if line.startswith("v ")]
    literals = [int(word) for line in values for word in line.split()[1:]]
    assert literals.pop() == 0
    assert sorted(map(abs, literals)) == list(range(1, variables + 1))
    return np.array(sorted(literals, key=abs)) > 0


# Verdicts


def test_a_model_comes_out_in_value_lines(file, capfd):
    assert app.run(["solve", "--no-guide", file(SAT)]) == 10
    out, err = capfd.readouterr()
    assert out.startswith("s SATISFIABLE\nv ")
    assert SAT.unsatisfied(model_of(out, 60)).size == 0
    assert max(map(len, out.splitlines())) < 78
    assert re.fullmatch(r"satguide: clasp: \d+ decisions, \d+ conflicts, 0.\d{3} s\n", err)


def test_no_model_no_values(file, capfd, tmp_path):
    assert app.run(["solve", "--no-guide", file(UNSAT), "--check", "-o", f"{tmp_path}/o"]) == 20
    assert (tmp_path / "o").read_text() == "s UNSATISFIABLE\n"
    out, err = capfd.readouterr()
    assert out == ""
    assert "cadical195: " in err
    assert app.run(["solve", "--no-guide", file(UNSAT), "-o", f"{tmp_path}/o"]) == 73


def test_a_model_guides(file, checkpoint_file, capfd):
    path = file(SAT)
    counts = []
    for words in ([str(checkpoint_file)], ["--no-guide"]):
        assert app.run(["solve", *words, path]) == 10
        out, err = capfd.readouterr()
        assert SAT.unsatisfied(model_of(out, 60)).size == 0
        counts.append(int(re.search(r"(\d+) decisions", err)[1]))
        assert ("network: " in err) == (words != ["--no-guide"])
    assert counts[0] != counts[1] == int(clasp.solve(clasp.prepare(SAT), None).decisions)


@pytest.mark.slow
def test_the_command_line_solver_takes_the_guidance_that_weights_writes(
    file, checkpoint_file, capfd, tmp_path
):
    """Check 7 of the method."""
    path, marked = file(threesat.generate(100, 1)), str(tmp_path / "marked.cnf")
    model = str(checkpoint_file)
    assert app.run(["weights", model, path, "--format", "clasp", "-o", marked]) == 0
    with Path(marked).open("rb") as stdin:
        piped = subprocess.run(DOMAIN.split(), stdin=stdin, capture_output=True, check=False)
    choices = re.search(r"Choices +: (\d+) +\(Domain: (\d+)\)", piped.stdout.decode())
    capfd.readouterr()
    assert app.run(["solve", model, path, "--backend", f"exec:{DOMAIN}"]) in (10, 20)
    err = capfd.readouterr().err
    assert int(choices[1]) == int(re.search(r"(\d+) decisions", err)[1])
    assert int(choices[2]) > 0  # the weights were taken
    assert app.run(["solve", "--no-guide", path, "--backend", f"exec:{CLINGO}"]) in (10, 20)
    assert int(re.search(r"(\d+) decisions", capfd.readouterr().err)[1]) != int(choices[1])


@pytest.mark.slow
def test_a_formula_from_stdin():
    done = subprocess.run(
        [sys.executable, "-m", "satguide", "-q", "solve", "--no-guide"],
        input=b"p cnf 2 2\n-1 2 0 1 0\n",
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (10, b"")
    assert done.stdout == b"s SATISFIABLE\nv 1 2 0\n"


@pytest.mark.slow
def test_formulas_at_the_edge(file, capfd):
    for cnf, code, out in (
        (CNF.from_clauses(0, []), 10, "s SATISFIABLE\nv 0\n"),
        (CNF.from_clauses(1, [[1], [1, 1, -1]]), 10, "s SATISFIABLE\nv 1 0\n"),
        (CNF.from_clauses(2, [[]]), 20, "s UNSATISFIABLE\n"),
    ):
        assert app.run(["-q", "solve", "--no-guide", file(cnf)]) == code
        assert capfd.readouterr() == (out, "")


def test_value_lines_are_filled():
    for size in (0, 1, 25, 26, 27, 1000):
        model = np.arange(size) % 3 == 0
        lines = list(solving.value_lines(model))
        assert all(len(line) < 79 and line.endswith("\n") for line in lines)
        assert "".join(lines).replace("v ", "").split() == [
            *(str(v if value else -v) for v, value in enumerate(model.tolist(), 1)),
            "0",
        ]
        for line, after in pairwise(lines):
            assert len(line.rstrip()) + 1 + len(after.split()[1]) > 77


def test_no_torch_without_guidance(file):
    code = f"""
import sys
import satguide.worker, satguide.clasp
from satguide.cli import app
assert app.run(["-q", "solve", "--no-guide", {file(SAT)!r}]) == 10
assert "torch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


# Wrong words and wrong answers


def test_wrong_usage(file, checkpoint_file, capfd):
    path, model = file(SAT), str(checkpoint_file)
    for words, why in (
        ([path], "MODEL"),
        ([model, path, "--no-guide"], "takes the FILE alone"),
        ([model, path, "--backend", "kissat404"], "--no-guide"),
        ([model, path, "--backend", "kissat"], "no back end"),
        (["--no-guide", path, "--backend", "exec:"], "command"),
        (["--no-guide", path, "--backend", "exec:true", "--conflicts", "3"], "conflicts"),
        (["--no-guide", path, "--backend", "lingeling", "--conflicts", "3"], "conflicts"),
    ):
        assert app.run(["solve", *words]) == 2
        out, err = capfd.readouterr()
        assert out == ""
        assert why in err.splitlines()[-1]


@pytest.mark.slow
def test_a_solver_without_weights_says_so(file, checkpoint_file, capfd):
    assert app.run(["solve", str(checkpoint_file), file(SAT), "--backend", "maplesat"]) == 10
    assert "maplesat takes polarities only" in capfd.readouterr().err


def test_a_wrong_model_is_not_printed(file, program, capfd):
    liar = program("print('s SATISFIABLE\\nv 1 0')")
    assert app.run(["solve", "--no-guide", file(UNSAT), "--backend", liar]) == 70
    out, err = capfd.readouterr()
    assert out == "s UNKNOWN\n"
    assert "wrong model" in err
    silent = program("print('s SATISFIABLE')")
    assert app.run(["solve", "--no-guide", file(SAT), "--backend", silent]) == 70
    out, err = capfd.readouterr()
    assert out == "s UNKNOWN\n"
    assert "no model" in err


@pytest.mark.slow
def test_check_contradicts_a_wrong_unsatisfiable(file, program, capfd):
    liar = program("print('s UNSATISFIABLE')")
    assert app.run(["solve", "--no-guide", file(SAT), "--backend", liar]) == 20
    assert capfd.readouterr().out == "s UNSATISFIABLE\n"
    assert app.run(["solve", "--no-guide", file(SAT), "--backend", liar, "--check"]) == 70
    out, err = capfd.readouterr()
    assert out == "s UNKNOWN\n"
    assert "cadical195 has a model" in err


# Limits and sudden ends


@pytest.mark.slow
def test_a_check_keeps_to_the_time_limit_too(file, program, capfd, pigeons):
    sure = program("print('s UNSATISFIABLE')")
    start = time.monotonic()
    words = ["--backend", sure, "--check", "--timeout", "1"]
    assert app.run(["solve", "--no-guide", file(pigeons(11)), *words]) == 0
    assert time.monotonic() - start < 4
    out, err = capfd.readouterr()
    assert out == "s UNKNOWN\n"
    assert "did not finish in time" in err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["clasp", "glucose42", "kissat404"])
def test_limits(name, file, capfd, pigeons):
    path = file(pigeons(11))
    start = time.monotonic()
    assert app.run(["solve", "--no-guide", path, "--backend", name, "--timeout", "0.6"]) == 0
    assert 0.5 < time.monotonic() - start < 3
    assert capfd.readouterr().out == "s UNKNOWN\n"
    if name == "clasp":
        assert app.run(["solve", "--no-guide", path, "--conflicts", "50"]) == 0
        out, err = capfd.readouterr()
        assert out == "s UNKNOWN\n"
        assert 50 <= int(re.search(r"(\d+) conflicts", err)[1]) < 60


@pytest.mark.slow
def test_the_time_limit_holds_for_a_pipe_that_stalls(tmp_path, capfd):
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    start = time.monotonic()
    assert app.run(["solve", "--no-guide", "--timeout", "0.3", pipe]) == 0  # nobody opens it
    keeper = os.open(pipe, os.O_RDWR)
    os.write(keeper, b"p cnf 2 1\n1 ")
    assert app.run(["solve", "--no-guide", "--timeout", "0.3", pipe]) == 0
    os.close(keeper)
    assert 0.6 < time.monotonic() - start < 4
    out, err = capfd.readouterr()
    assert out == 2 * "s UNKNOWN\n"
    assert "before the solver began" in err
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL


def test_what_stands_for_a_model_is_known_by_its_suffix():
    for name in ("f.cnf", "F.CNF.gz", "f.dimacs", "f.dimacs.xz"):
        with pytest.raises(UsageError, match="MODEL"):
            solving.places(name, None, guided=True)
    model = "runs.cnf.d/m.safetensors"
    assert solving.places(model, "f.cnf", guided=True) == (model, "f.cnf")
    assert solving.places(model, "-", guided=True)[0] == model


def test_the_default_seed_is_clasps_own():
    prepared, asked = clasp.prepare(threesat.generate(20, 5)), []

    class Spy(clasp.clingo.Control):
        def __init__(self, options, **others):
            asked.append([option for option in options if "seed" in option])
            super().__init__(options, **others)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clasp.clingo, "Control", Spy)
        clasp.solve(prepared, None)
        clasp.solve(prepared, None, seed=solving.Settings().seed)
        clasp.solve(prepared, None, seed=4)
    assert asked == [["--seed=1"], ["--seed=1"], ["--seed=5"]]


def children(pid):
    """All living processes below a process."""
    below, found = {}, []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if fields[0] != "Z":
                below.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    layer = [pid]
    while layer:
        layer = [child for parent in layer for child in below.get(parent, [])]
        found += layer
    return found


def start(path, *words):
    """Start a solve that takes long, and wait until its solver runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "satguide", "solve", "--no-guide", path, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell that runs the tests in the background makes them, and their children, ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 20
    while len(children(process.pid)) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)  # for the worker to be at work
    return process, children(process.pid)


def alive(pids):
    for _ in range(40):
        left = [pid for pid in pids if _lives(pid)]
        if not left:
            break
        time.sleep(0.05)
    return left


def _lives(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize(
    ("number", "code", "word", "kind"),
    [
        (signal.SIGINT, 130, "interrupted", "clasp"),
        pytest.param(signal.SIGTERM, 143, "terminated", "exec", marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, 143, "terminated", "clasp", marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, 130, "interrupted", "exec", marks=pytest.mark.slow),
    ],
)
def test_signals_leave_unknown_and_no_process(number, code, word, kind, file, program, pigeons):
    words = [] if kind == "clasp" else ["--backend", program("time.sleep(60)")]
    process, below = start(file(pigeons(11)), *words)
    assert len(below) == 2  # the guard and the solver
    process.send_signal(number)
    out, err = process.communicate(timeout=10)
    assert (process.returncode, out, err) == (code, "s UNKNOWN\n", f"satguide: {word}\n")
    assert alive(below) == []


@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize("kind", ["clasp", "exec"])
def test_nothing_survives_when_the_command_is_killed(kind, file, program, pigeons):
    words = [] if kind == "clasp" else ["--backend", program("time.sleep(60)")]
    process, below = start(file(pigeons(11)), *words)
    process.kill()
    process.communicate(timeout=10)
    assert len(below) == 2
    assert alive(below) == []


@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, 0), (signal.SIGSEGV, 70)])
def test_a_worker_that_dies(number, code, file, pigeons):
    process, below = start(file(pigeons(11)))
    for pid in below:
        if "satguide.worker" in Path(f"/proc/{pid}/cmdline").read_text():
            os.kill(pid, number)
    out, err = process.communicate(timeout=10)
    assert (process.returncode, out) == (code, "s UNKNOWN\n")
    assert err.startswith("satguide: error: the process of clasp was ")
    assert err.count("\n") == 1

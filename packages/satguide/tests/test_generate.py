"""`satguide gen`: what it draws, under which names, and what it refuses."""

import hashlib
import io
import re
import signal
from pathlib import Path

import numpy as np
import pytest

from papercuts.errors import MissingError, NegativeResult, UsageError
from papercuts.parallel import seed_for
from satguide import dimacs
from satguide.cli import app
from satguide.families import cnfgen, colouring, generate, hitag2, threesat
from satguide.families.generate import Plan
from satguide.families.spec import Stream, check_sizes, generator
from satguide.versus import python_sat


def satisfiable(cnf):
    with python_sat().Solver(name="minisat22", bootstrap_with=list(cnf)) as solver:
        return solver.solve()


@pytest.fixture
def in_time():
    """Turn a loop that does not end into a failure."""

    def stop(*_):
        raise TimeoutError("it does not end")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def test_a_formula_depends_on_the_seed_and_its_number_only():
    made = list(generate.formulas(Plan("3sat", (20, 30), seed=4), 5))
    assert [size for size, _ in made] == [20, 30, 20, 30, 20]
    alone = threesat.generate(30, seed_for(4, 3))
    assert made[3][1].literals.tolist() == alone.literals.tolist()
    assert "index: 3" in made[3][1].comments
    longer = list(generate.formulas(Plan("3sat", (20, 30), seed=4), 9))
    assert [cnf.literals.tolist() for _, cnf in longer[:5]] == [
        cnf.literals.tolist() for _, cnf in made
    ]


@pytest.mark.parametrize(
    ("draw", "size", "digest"),
    [
        (threesat.generate, 32, "b81f390c4040153d"),
        (threesat.generate, 100, "276795f918ff8b0d"),
        (colouring.generate, 10, "45b606f61f55ea7a"),
        (colouring.generate, 150, "82c46e82534d6035"),
    ],
)
def test_what_is_drawn_for_trained_sizes_stays_the_same(draw, size, digest):
    # Networks that ship were trained on these draws.
    literals = draw(size, 7).literals.astype("<i4").tobytes()
    assert hashlib.sha256(literals).hexdigest()[:16] == digest


@pytest.mark.parametrize("size", [5, 6, 8, 31, 32])
def test_small_3sat_has_distinct_clauses_of_three_variables(size, in_time):
    for seed in range(5):
        clauses = [tuple(sorted(clause)) for clause in threesat.generate(size, seed)]
        assert len(set(clauses)) == len(clauses) == threesat.threshold_clauses(size)
        assert all(len({abs(literal) for literal in clause}) == 3 for clause in clauses)


def test_the_smallest_3sat_is_the_first_with_enough_clauses():
    def enough(n):
        return 8 * n * (n - 1) * (n - 2) // 6 >= threesat.threshold_clauses(n)

    assert [n for n in range(1, 10) if enough(n)] == list(range(threesat.SMALLEST, 10))
    with pytest.raises(ValueError, match="at least 5"):
        threesat.generate(4, 0)


@pytest.mark.parametrize("vertices", [2, 3, 4, 5, 6, 9])
def test_small_graphs_are_coloured_where_they_can_be(vertices, in_time):
    import networkx

    for seed in range(5):
        cnf = colouring.generate(vertices, seed)
        edges = {
            tuple(sorted((-a - 1) // 3 for a in c))
            for c in cnf
            if len(c) == 2 and (-c[0] - 1) // 3 != (-c[1] - 1) // 3
        }
        graph = networkx.Graph(edges)
        cliques = max((len(c) for c in networkx.find_cliques(graph)), default=1)
        if vertices <= 5:  # complete, so it needs a colour a vertex
            assert len(edges) == vertices * (vertices - 1) // 2
            assert satisfiable(cnf) == (vertices <= 3)
        elif cliques > 3:
            assert not satisfiable(cnf)


@pytest.mark.parametrize(
    ("family", "size"),
    [("3sat", 4), ("3sat", 0), ("3sat", -3), ("3col", 1), ("3col", 0), ("hitag2", 49)],
)
def test_a_size_that_there_is_not_is_wrong_usage(family, size, in_time, capfd):
    with pytest.raises(UsageError, match=f"no size {size} "):
        check_sizes(family, (size,))
    with pytest.raises(UsageError, match=r"no size|expected gen:"):
        Stream.parse(f"gen:{family}:{size}")
    assert app.run(["gen", family, "--size", str(size)]) == 2
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    "argv",
    [
        ["4sat", "--size", "9"],
        ["3sat"],
        ["3sat", "--size", "9,"],
        ["3sat", "--size", "9", "--planted"],
        ["3sat", "--size", "9", "--count", "3", "--balance"],
        ["3sat", "--size", "9,10", "--count", "6", "--balance"],
        ["hitag2", "--size", "40", "--count", "2", "--balance", "--planted"],
        ["3sat", "--size", "9", "--compress", "gz"],
        ["cnfgen:php"],
        ["cnfgen:php 3 2", "--size", "4"],
    ],
)
def test_what_makes_no_sense_is_wrong_usage(argv, capfd):
    assert app.run(["gen", *argv]) == 2
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.startswith("satguide: error: ")


def test_an_unknown_family_is_said_before_its_size_is_asked_for(capfd):
    assert app.run(["gen", "4sat"]) == 2
    assert "no family is called '4sat' (there is 3sat," in capfd.readouterr().err


def test_a_folder_gets_one_file_a_formula_and_is_not_written_twice(tmp_path, capfd):
    folder = tmp_path / "new" / "folder"
    argv = ["gen", "3sat", "--size", "9,10", "--count", "5", "-o", str(folder)]
    assert app.run(argv) == 0
    names = sorted(path.name for path in folder.iterdir())
    assert names == [
        "3sat-10-0000.cnf",
        "3sat-10-0001.cnf",
        "3sat-9-0000.cnf",
        "3sat-9-0001.cnf",
        "3sat-9-0002.cnf",
    ]
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert app.run([*argv, "--seed", "1"]) == 73
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert app.run([*argv, "--force"]) == 0
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert app.run([*argv, "--seed", "1", "--force"]) == 0
    assert {path: path.read_bytes() for path in folder.iterdir()} != before
    (tmp_path / "file").touch()
    assert app.run([*argv[:-1], str(tmp_path / "file")]) == 73


def test_stdout_and_a_file_and_a_compressed_folder_hold_the_same(tmp_path, capfdbinary):
    argv = ["gen", "3col", "--size", "6", "--count", "3", "--seed", "2"]
    assert app.run(argv) == 0
    text = capfdbinary.readouterr().out
    assert app.run([*argv, "-o", str(tmp_path / "all.cnf.gz")]) == 0
    assert app.run([*argv, "-o", str(tmp_path / "f"), "--compress", "xz"]) == 0
    streamed = list(dimacs.read_all(io.BytesIO(text), "-"))
    assert [cnf.comments[3] for cnf in streamed] == ["index: 0", "index: 1", "index: 2"]
    for place in (tmp_path / "all.cnf.gz", tmp_path / "f"):
        found = list(dimacs.load_many(place))
        assert [cnf.literals.tolist() for cnf in found] == [
            cnf.literals.tolist() for cnf in streamed
        ]


def test_balance_gives_half_of_each_in_every_size():
    plan = Plan("3sat", (20, 30), seed=1, balance=True)
    made = list(generate.balanced(plan, 12, jobs=1))
    verdicts = {size: [satisfiable(cnf) for s, cnf in made if s == size] for size in (20, 30)}
    assert {size: (sum(v), len(v)) for size, v in verdicts.items()} == {20: (3, 6), 30: (3, 6)}
    for _, cnf in made:  # each is the formula of its number
        index = int(re.fullmatch(r"index: (\d+)", cnf.comments[3])[1])
        assert cnf.literals.tolist() == generate.formula(index, plan).literals.tolist()
        assert cnf.comments[-1] == f"satisfiable: {'yes' if satisfiable(cnf) else 'no'}"


@pytest.mark.slow
def test_balance_is_the_same_for_any_number_of_workers():
    plan = Plan("3sat", (20,), balance=True)
    one, two = (list(generate.balanced(plan, 20, jobs=jobs)) for jobs in (1, 2))
    assert [cnf.comments for _, cnf in one] == [cnf.comments for _, cnf in two]


def test_balance_gives_up_where_one_kind_is_never_drawn(monkeypatch):
    monkeypatch.setattr(generate, "PATIENCE", 5)
    plan = Plan("cnfgen:php {size+1} {size}", (3,), balance=True)
    made = generate.balanced(plan, 4, jobs=1)
    with pytest.raises(NegativeResult, match="none of 5 formulas of size 3 in a row is satis"):
        list(made)


def test_a_planted_state_is_written_above_the_formula(capfd):
    assert app.run(["gen", "hitag2", "--size", "44", "--planted"]) == 0
    cnf = dimacs.read(io.BytesIO(capfd.readouterr().out.encode()), "-")
    state = int(re.search(r"0x([0-9a-f]{12})", "\n".join(cnf.comments))[1], 16)
    bits = [state >> i & 1 for i in range(48)]
    units = [[i + 1 if bit else -i - 1] for i, bit in enumerate(bits)]
    with python_sat().Solver(name="minisat22", bootstrap_with=[*cnf, *units]) as solver:
        assert solver.solve()
        assert hitag2.key_stream(bits) == hitag2.key_stream(
            hitag2.decode(np.array(solver.get_model()) > 0)
        )


def test_hitag2_is_balanced_by_planting():
    made = list(generate.balanced(Plan("hitag2", (44,), balance=True), 2, jobs=1))
    assert [satisfiable(cnf) for _, cnf in made] == [True, False]


@pytest.mark.parametrize(
    ("family", "words"),
    [
        ("cnfgen:php", ["php", "7"]),
        ("cnfgen:php {size+1} {size}", ["php", "8", "7"]),
        ("cnfgen:randkcnf 3 {size} {4.26*size}", ["randkcnf", "3", "7", "30"]),
        ("cnfgen:x { (size - 1) // 2 } {size / 2} {seed}", ["x", "3", "4", str(2**62 + 1)]),
        (
            "cnfgen:kcolor 3 gnp {size} .5 -T shuffle",
            ["kcolor", "3", "gnp", "7", ".5", "-T", "shuffle"],
        ),
    ],
)
def test_places_in_the_words_of_cnfgen(family, words):
    assert cnfgen.arguments(family, 7, 2**62 + 1) == words


@pytest.mark.parametrize(
    "words",
    ["php {x}", "php {size", "php {size.real}", "php {().__class__}", "php {1/0}", "p '{size}"],
)
def test_other_expressions_are_wrong_usage(words):
    with pytest.raises(UsageError):
        cnfgen.generate(f"cnfgen:{words}", 5, 1)


def test_cnfgen_families_are_what_they_are_called():
    pigeons = generator("cnfgen:php {size+1} {size}")(4, 1)
    assert (pigeons.variables, len(pigeons)) == (20, 5 + 4 * 10)  # holes x pairs of pigeons
    assert not satisfiable(pigeons)
    assert satisfiable(cnfgen.generate("cnfgen:php {size} {size}", 4, 1))
    assert not satisfiable(cnfgen.generate("cnfgen:tseitin", 10, 1))
    random = cnfgen.generate("cnfgen:randkcnf 3 {size} {4*size}", 12, 1)
    assert (random.variables, random.lengths().tolist()) == (12, [3] * 48)


def test_cnfgen_draws_by_the_seed_and_leaves_other_chance_alone():
    import random

    family = "cnfgen:randkcnf 3 {size} {4*size}"
    random.seed(3)
    expected = [random.random() for _ in range(2)]
    random.seed(3)
    found = [random.random()]
    texts = [cnfgen.generate(family, 12, seed).literals.tolist() for seed in (0, 0, 1)]
    found.append(random.random())
    assert found == expected
    assert texts[0] == texts[1] != texts[2]


def test_cnfgen_families_are_training_streams_too():
    stream = Stream.parse("gen:cnfgen:randkcnf 3 {size} {4*size}:10,12")
    assert [cnf.variables for cnf in stream.training(1, 0, 3)] == [10, 12, 10]
    with pytest.raises(UsageError, match="no place"):
        Stream.parse("gen:cnfgen:php 3 2:10")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("pph 3", "no family 'pph'"),
        ("php a b", "php a b"),
        ("php -h", "no formula"),
        ("-o x php", "'-o'"),
    ],
)
def test_what_cnfgen_refuses_is_said_on_one_line(words, said, capfd):
    assert app.run(["gen", f"cnfgen:{words}"]) == 2
    printed = capfd.readouterr()
    assert printed.out == ""
    assert said in printed.err.splitlines()[-1]
    assert not Path("x").exists()


def test_without_cnfgen_the_extra_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "cnfgen", None)
    monkeypatch.setitem(sys.modules, "cnfgen.clitools", None)
    with pytest.raises(MissingError, match="cnfgen"):
        cnfgen.generate("cnfgen:php", 3, 1)

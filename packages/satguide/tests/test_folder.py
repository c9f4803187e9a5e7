"""A folder of formulas to train on: what is kept for validation, and what is said of it."""

import logging

import pytest

from papercuts.errors import DataError, InputError, UsageError
from satguide import dimacs
from satguide.families import threesat
from satguide.folder import Folder
from satguide.trainer import Settings
from satguide.training import source


def fill(path, sizes):
    for size in sizes:
        with (path / f"{size}.cnf").open("wb") as out:
            dimacs.write(out, threesat.generate(size, size))


def variables(formulas):
    return [cnf.variables for cnf in formulas]


def test_a_folder_keeps_a_fifth_for_validation_and_passes_over_the_rest(tmp_path):
    fill(tmp_path, range(10, 20))
    folder = Folder(str(tmp_path))
    kept = {cnf.variables for cnf in folder.validation(seed=1, count=99)}
    passes = [{c.variables for c in folder.training(1, first, 8)} for first in (0, 8)]
    assert len(kept) == 2
    assert passes[0] == passes[1] == set(range(10, 20)) - kept
    orders = [[c.variables for c in folder.training(1, first, 8)] for first in (0, 8)]
    assert orders[0] != orders[1]
    assert [c.variables for c in folder.training(1, 6, 4)] == orders[0][6:] + orders[1][:2]


def test_a_folder_with_nothing_to_train_on_is_said_so(tmp_path):
    with pytest.raises(InputError, match=r"no \.cnf"):
        Folder(str(tmp_path))
    (tmp_path / "only.cnf").write_text("p cnf 1 1\n1 0\n")
    with pytest.raises(DataError, match="one formula, but training needs at least two"):
        Folder(str(tmp_path))


def test_no_more_is_kept_than_is_validated_on_and_it_is_of_all_sizes(tmp_path):
    fill(tmp_path, range(10, 50))
    folder = Folder(str(tmp_path), 5)
    kept = variables(folder.validation(1, 5))
    assert len(kept) == 5
    assert set(variables(folder.training(1, 0, 35))) == set(range(10, 50)) - set(kept)
    # In random order, so that the first few are not the smallest.
    more = variables(Folder(str(tmp_path)).validation(1, 99))
    assert len(more) == 8
    assert more != sorted(more)
    assert variables(Folder(str(tmp_path)).validation(1, 3)) == more[:3]


def test_a_folder_with_another_file_is_another_source(tmp_path):
    fill(tmp_path, (10, 11, 12))
    noted = [source(str(tmp_path), 5)[1] for _ in range(2)]
    fill(tmp_path, (13,))
    assert noted[0] == noted[1] != source(str(tmp_path), 5)[1]
    assert source("gen:3sat:20", 5)[1] == {}


@pytest.mark.slow
def test_a_run_does_not_go_on_with_another_folder(tmp_path):
    from satguide import training
    from satguide.costs import Meter
    from satguide.network import Shape

    class StoppedError(Exception):
        pass

    def stop(record):
        raise StoppedError

    places = tmp_path / "m.safetensors", tmp_path / "m.jsonl"
    settings = Settings(Shape(4, 1), formulas=2, samples=2, steps=1, minibatch=2, validation=1)
    run = training.Run(*map(str, places), iterations=2)
    formulas = tmp_path / "formulas"
    formulas.mkdir()
    fill(formulas, (10, 11, 12))
    with pytest.raises(StoppedError):
        training.train(str(formulas), settings, Meter(jobs=1), run, watch=stop)
    fill(formulas, (13,))
    again = training.Run(**{**vars(run), "resume": True})
    with pytest.raises(UsageError, match="other settings"):
        training.train(str(formulas), settings, Meter(jobs=1), again)


def test_what_the_reader_warns_of_is_said_once(tmp_path, caplog):
    for name in "ab":
        (tmp_path / f"{name}.cnf").write_text("p cnf 2 5\n1 2 0\n")  # four clauses are missing
    folder = Folder(str(tmp_path))
    with caplog.at_level(logging.WARNING):
        folder.training(0, 0, 7)
        folder.validation(0, 1)
        folder.validation(0, 1)
    assert len(caplog.records) == 2

import json
import math
import pickle
import time

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from papercuts.errors import DataError, InputError, OutputError
from satguide import checkpoint as checkpoints
from satguide import models
from satguide.checkpoint import Checkpoint
from satguide.costs import Meter
from satguide.families.spec import Stream
from satguide.network import GuidanceNetwork, Shape
from satguide.trainer import Settings, Trainer

pytestmark = pytest.mark.usefixtures("one_thread")

MADE = {"source": "gen:3sat:100", "meter": {"backend": "clasp"}, "range": {"variables": [50, 100]}}


def same(one, two):
    one, two = one.state_dict(), two.state_dict()
    return one.keys() == two.keys() and all(torch.equal(one[k], two[k]) for k in one)


def test_a_checkpoint_comes_back_as_it_was_written(checkpoint, tmp_path):
    path = tmp_path / "model.safetensors"
    checkpoints.write(str(path), Checkpoint(checkpoint.network, 0.25, MADE))
    for found in (checkpoints.read(path), models.load(str(path))):
        assert same(found.network, checkpoint.network)
        assert (found.network.shape, found.sigma, found.made) == (Shape(8, 2), 0.25, MADE)
        assert not found.network.training
        assert not any(p.requires_grad for p in found.network.parameters())


def test_the_file_says_what_it_is_to_any_reader_of_safetensors(checkpoint_file):
    with safe_open(checkpoint_file, framework="np") as file:
        metadata = file.metadata()
    assert metadata["format"] == "1"
    about = json.loads(metadata["satguide"])
    assert about == {"shape": {"width": 8, "layers": 2, "symmetric": False}, "sigma": 0.1}


def test_the_same_checkpoint_is_the_same_bytes(checkpoint, checkpoint_file, tmp_path):
    again = tmp_path / "again.safetensors"
    checkpoints.write(str(again), checkpoint)
    assert again.read_bytes() == checkpoint_file.read_bytes()


def test_an_existing_file_is_kept_without_force(checkpoint, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"mine")
    with pytest.raises(OutputError, match=r"model\.safetensors"):
        checkpoints.write(str(path), checkpoint)
    assert path.read_bytes() == b"mine"
    checkpoints.write(str(path), checkpoint, force=True)
    assert same(checkpoints.read(path).network, checkpoint.network)


@pytest.mark.slow
def test_the_state_of_an_unfinished_training_gives_its_best_network(tmp_path, checkpoint):
    shape = Shape(4, 1)
    run = Trainer(Stream("3sat", (10,)), Settings(shape=shape), Meter())
    with torch.no_grad():
        for k, network in enumerate((run.network, run.averaged, run.best)):
            for parameter in network.parameters():
                parameter.fill_(float(k))
    path = tmp_path / "model.safetensors.part"
    about = {"shape": shape.as_dict(), "sigma": 0.1, "trainer": {}}
    save_file(run.state()[0], path, {"format": "1", "satguide": json.dumps(about)})
    found = checkpoints.read(path)
    assert same(found.network, run.best)
    assert found.made == {"trainer": {}}


@pytest.mark.parametrize("name", ["missing.safetensors", "."])
def test_no_such_file(tmp_path, name):
    with pytest.raises(InputError, match="no such file"):
        checkpoints.read(tmp_path / name)


def test_a_name_that_is_neither_bundled_nor_a_file(tmp_path):
    with pytest.raises(InputError, match=r"4sat: no such checkpoint .*3sat, 3col, hitag2"):
        models.load("4sat")


def test_a_folder_does_not_stand_in_for_a_bundled_checkpoint(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "3sat").mkdir()
    assert models._path("3sat").endswith("checkpoints/3sat.safetensors")


@pytest.mark.parametrize("centre", [True, False, None])
def test_a_checkpoint_knows_whether_it_was_trained_centred(checkpoint, tmp_path, centre):
    path = tmp_path / "model.safetensors"
    made = {} if centre is None else {"settings": {"centre": centre}}
    checkpoints.write(str(path), Checkpoint(checkpoint.network, 0.1, made))
    assert checkpoints.read(path).centre is bool(centre)


def refused(path, words):
    with pytest.raises(DataError) as caught:
        checkpoints.read(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: not a")
    assert words in text
    assert "\n" not in text


def test_files_that_are_not_safetensors(tmp_path, checkpoint_file):
    path = tmp_path / "model.safetensors"
    whole = checkpoint_file.read_bytes()
    for data in (b"", b"p cnf 1 1\n1 0\n", whole[:7], whole[:100], whole[:-1], whole + b"x"):
        path.write_bytes(data)
        refused(path, "safetensors file")


def test_a_pickle_is_never_opened(tmp_path):
    trap = tmp_path / "opened"

    class Trap:
        def __reduce__(self):
            return open, (str(trap), "w")

    for name, write in (("p", pickle.dump), ("t", torch.save)):
        path = tmp_path / f"{name}.safetensors"
        with path.open("wb") as file:
            write({"network": Trap()}, file)
        refused(path, "safetensors file")
    assert not trap.exists()


def test_safetensors_of_something_else(tmp_path, checkpoint_file):
    path = tmp_path / "model.safetensors"
    tensors = load_file(checkpoint_file)
    good = {"shape": {"width": 8, "layers": 2, "symmetric": False}, "sigma": 0.1}
    cases = [
        (None, "format 1 expected"),
        ({"format": "pt"}, "format 1 expected"),
        ({"format": "1"}, "format 1 expected"),
        ({"format": "2", "satguide": json.dumps(good)}, "format 1 expected"),
        ({"format": "1", "satguide": "{"}, "not a checkpoint of satguide"),
        ({"format": "1", "satguide": "[1]"}, "no object"),
    ]
    changes = [
        ({"shape": None}, ""),
        ({"shape": {"width": 8}}, ""),
        ({"shape": {"width": 9, "layers": 2}}, ""),
        ({"shape": {"width": 8, "layers": 3}}, ""),
        ({"shape": {"width": 8, "layers": -1}}, "layers"),
        ({"shape": {"width": 8, "layers": 2, "heads": 4}}, "heads"),
        ({"shape": {"width": "8", "layers": 2}}, ""),
        ({"sigma": "wide"}, "wide"),
        ({"sigma": None}, ""),
        ({"sigma": 0}, "sigma is 0"),
        ({"sigma": float("nan")}, "sigma is nan"),
    ]
    for change, words in changes:
        about = {"format": "1", "satguide": json.dumps({**good, **change})}
        cases.append((about, words or "not a checkpoint of satguide"))
    for key in good:
        left = {k: v for k, v in good.items() if k != key}
        cases.append(({"format": "1", "satguide": json.dumps(left)}, key))
    for metadata, words in cases:
        save_file(tensors, path, metadata)
        refused(path, words)


def test_tensors_that_are_missing_or_too_many(tmp_path, checkpoint_file):
    path = tmp_path / "model.safetensors"
    with safe_open(checkpoint_file, framework="pt") as file:
        metadata = file.metadata()
    tensors = load_file(checkpoint_file)
    fewer = {k: v for k, v in tensors.items() if k != "read_out.0.bias"}
    for wrong in (fewer, {**tensors, "extra": torch.zeros(1)}, {}):
        save_file(wrong, path, metadata)
        refused(path, "not a checkpoint of satguide")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite(tmp_path, checkpoint_file, value):
    path = tmp_path / "model.safetensors"
    with safe_open(checkpoint_file, framework="pt") as file:
        metadata = file.metadata()
    tensors = load_file(checkpoint_file)
    tensors["rounds.1.clause.0.weight"][3, 2] = value
    save_file(tensors, path, metadata)
    refused(path, "not finite")


def test_a_checkpoint_of_any_precision_is_read_in_fp32(tmp_path, checkpoint_file):
    path = tmp_path / "model.safetensors"
    with safe_open(checkpoint_file, framework="pt") as file:
        metadata = file.metadata()
    save_file({k: v.half() for k, v in load_file(checkpoint_file).items()}, path, metadata)
    found = checkpoints.read(path).network
    assert all(p.dtype == torch.float32 for p in found.parameters())
    assert isinstance(found, GuidanceNetwork)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"shape": {"width": 10**6, "layers": 2}}, "should have the shape"),
        ({"shape": {"width": 10**9, "layers": 2}}, ""),
        ({"shape": {"width": 10**30, "layers": 2}}, ""),
        ({"shape": {"width": 8, "layers": 10**9}}, "too few"),
        ({"shape": {"width": 8, "layers": 3}}, "rounds.2"),
        ({"sigma": 10**400}, ""),
        ({"meter": ["none"]}, "its meter is no object"),
        ({"range": [1, 2]}, "its range is no object"),
        ({"settings": [1]}, "its settings are no object"),
        ({"settings": {"centre": "no"}}, "its setting of centre"),
        ({"range": {"clauses_per_variable": 4}}, "no pair"),
        ({"range": {"clauses_per_variable": [4, "5"]}}, "not of numbers"),
        ({"range": {"clauses_per_variable": [4, math.nan]}}, "not of numbers"),
        ({"range": {"clauses_per_variable": [4, 10**400]}}, ""),
    ],
    ids=str,
)
def test_metadata_that_would_do_harm_is_refused_at_once(tmp_path, checkpoint_file, change, words):
    path = tmp_path / "model.safetensors"
    about = {"shape": {"width": 8, "layers": 2, "symmetric": False}, "sigma": 0.1, **change}
    save_file(load_file(checkpoint_file), path, {"format": "1", "satguide": json.dumps(about)})
    start = time.perf_counter()
    refused(path, words)
    assert time.perf_counter() - start < 2


def test_a_hostile_shape_that_a_few_small_tensors_seem_to_have(tmp_path):
    path = tmp_path / "model.safetensors"
    about = {"shape": {"width": 10**6, "layers": 0}, "sigma": 0.1}
    tensors = {"encode.2.bias": torch.zeros(10**6)}
    save_file(tensors, path, {"format": "1", "satguide": json.dumps(about)})
    refused(path, "should have the shape")


def test_metadata_that_is_nested_without_end(tmp_path, checkpoint_file):
    path = tmp_path / "model.safetensors"
    metadata = {"format": "1", "satguide": "[" * 100_000 + "]" * 100_000}
    save_file(load_file(checkpoint_file), path, metadata)
    refused(path, "")

"""Files of draws: what is written comes back equal, and what is no draws is refused in one line."""

from __future__ import annotations

import gzip
import io
import json
import sys

import numpy as np
import pytest

from papercuts.errors import DataError, InputError, MissingError, OutputError, UsageError
from zoprox.draws import FORMATS, Draws, draws_format, read_draws, write_draws

SUFFIX = {"csv": ".csv", "npy": ".npy", "json": ".jsonl", "netcdf": ".nc"}


@pytest.fixture
def draws():
    points = np.random.default_rng(0).standard_normal((4, 6, 3)) * [1e-9, 1, 1e9]
    points[0, 0] = [5e-324, 0.1 + 0.2, -1.7976931348623157e308]
    about = {"seed": 3, "target": "f.py:f", "bounds": [[0, None]]}
    return Draws(points, ("a", "b[1]", "log c, d"), about, (7, 8, 9, 12))


def needs(format_name):
    if format_name == "netcdf":
        pytest.importorskip("h5py")


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("packed", ["", ".gz", ".xz"])
def test_draws_come_back_equal_to_the_last_bit(draws, tmp_path, format_name, packed):
    needs(format_name)
    path = tmp_path / f"draws{SUFFIX[format_name]}{packed}"
    write_draws(draws, path)
    found = read_draws(path)
    assert found.points.tobytes() == draws.points.tobytes()
    if format_name != "npy":
        assert (found.names, found.numbers) == (draws.names, draws.numbers)
    assert found.about == (draws.about if format_name in ("json", "netcdf") else {})


@pytest.mark.parametrize("format_name", FORMATS)
def test_equal_draws_give_equal_bytes(draws, tmp_path, format_name):
    needs(format_name)
    for name in ("a", "b"):
        write_draws(draws, tmp_path / name, format_name=format_name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("format_name", FORMATS)
def test_through_a_pipe(draws, capfdbinary, monkeypatch, format_name):
    needs(format_name)
    write_draws(draws, format_name=format_name)
    written = capfdbinary.readouterr().out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(written)))
    assert np.array_equal(read_draws("-").points, draws.points)


def test_numpy_and_a_spreadsheet_see_what_they_expect(draws, tmp_path):
    write_draws(draws, tmp_path / "d.npy")
    assert np.array_equal(np.load(tmp_path / "d.npy"), draws.points)
    write_draws(draws, tmp_path / "d.csv")
    lines = (tmp_path / "d.csv").read_text().splitlines()
    assert lines[0] == 'round,particle,a,b[1],"log c, d"'
    assert lines[1] == "7,0,5e-324,0.30000000000000004,-1.7976931348623157e+308"
    assert lines[-1].startswith("12,5,")
    write_draws(draws, tmp_path / "d.jsonl")
    record = json.loads((tmp_path / "d.jsonl").read_text().splitlines()[7])
    assert (record["round"], record["particle"]) == (8, 1)
    assert record["x"] == draws.points[1, 1].tolist()
    assert record["zoprox"]["seed"] == 3


def test_arviz_sees_a_chain_for_each_particle(draws, tmp_path):
    pytest.importorskip("h5py")
    xarray = pytest.importorskip("xarray")
    write_draws(draws, tmp_path / "d.nc")
    with xarray.open_datatree(tmp_path / "d.nc", engine="h5netcdf") as tree:
        posterior = tree["posterior"].to_dataset()
        assert dict(posterior.sizes) == {"chain": 6, "draw": 4}
        assert posterior["draw"].values.tolist() == [7, 8, 9, 12]
        assert np.array_equal(posterior["b[1]"].values, draws.points[:, :, 1].T)


def test_inference_data_of_another_sampler_is_read(tmp_path):
    pytest.importorskip("h5py")
    arviz = pytest.importorskip("arviz_base")
    theta, mu = np.random.default_rng(1).standard_normal((2, 4, 10, 2, 2))
    tree = arviz.from_dict({"posterior": {"theta": theta, "mu": mu[..., 0, 0]}})
    tree.to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    found = read_draws(tmp_path / "other.nc")
    assert found.names == ("theta[0,0]", "theta[0,1]", "theta[1,0]", "theta[1,1]", "mu")
    assert found.points.shape == (10, 4, 5)
    assert np.array_equal(found.points[:, :, 2], theta[:, :, 1, 0].T)


def test_netcdf_without_its_extra_says_how_to_get_it(draws, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingError, match="'netcdf'"):
        write_draws(draws, tmp_path / "d.nc")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "names", "shape"),
    [
        ("1.5,2\n3,4\n5,6\n", ("x1", "x2"), (3, 1, 2)),
        ("mu,tau\n1,2\n3,4\n", ("mu", "tau"), (2, 1, 2)),
        ("mu\r\n1\r\n\r\n3\r\n", ("mu",), (2, 1, 1)),
        ("chain,draw,mu\n0,0,1\n0,1,2\n1,1,4\n1,0,3\n", ("mu",), (2, 2, 1)),
        (".chain,.iteration,.draw,mu\n1,1,1,1\n1,2,2,2\n", ("mu",), (2, 1, 1)),
        ("# model = eight\nlp__,mu\n-7,1\n# elapsed\n-8,2\n", ("mu",), (2, 1, 1)),
        ('{"x": [1, 2]}\n{"x": [3, 4]}\n', ("x1", "x2"), (2, 1, 2)),
        ('\ufeff{"round": 4, "particle": 2, "x": [1]}\n', ("x1",), (1, 1, 1)),
    ],
)
def test_text_of_other_samplers_is_read(tmp_path, text, names, shape):
    path = tmp_path / "draws"
    path.write_text(text, newline="")
    found = read_draws(path)
    assert found.names == names
    assert found.points.shape == shape
    if "chain,draw" in text:
        assert found.points[:, :, 0].tolist() == [[1, 3], [2, 4]]


BAD = [
    ("", "no draws: the file is empty"),
    ("mu,tau\n", "no draws in the file"),
    ("mu\n1\nx\n", r":3: 'x' is no finite number"),
    ("mu\n1\ninf\n", r":3: 'inf' is no finite number"),
    ("mu,tau\n1,2\n3\n", r":3: 1 fields \(expected 2 as above\)"),
    ("mu,mu\n1,2\n", r":1: columns without a name of their own"),
    ("round,mu\n1,2\n", r":1: a column for the round but none for the particle"),
    ("draw,round,particle,mu\n1,1,1,2\n", r":1: both draw and round"),
    ("round,particle,mu\n1,0,2\n1,0,3\n", r":3: round 1, particle 0 again \(first on line 2\)"),
    ("round,particle,mu\n1,0,2\n1,1,2\n2,1,3\n", "round 2 has no particle 0"),
    ("round,particle,mu\n1,0.5,2\n", r":2: '0\.5' is no number of a round"),
    ("round,particle\n1,2\n", r":1: no parameter among the columns"),
    ('mu\n"1\n', r":2: unexpected end of data"),
    ('{"x": [1]}\n{"x": [1, 2]}\n', r":2: 2 coordinates \(expected 1, as in the first draw\)"),
    ('{"x": [1]}\n{"x": [null]}\n', r":2: null is no finite number"),
    ('{"x": [true]}\n', r":1: true is no finite number"),
    ('{"y": [1]}\n', r":1: no list of numbers under 'x'"),
    ('{"x": []}\n', r":1: a draw without coordinates"),
    ('{"x": [1]}\n{"x": [1]\n', r":2: "),
    ('{"x": [1]}\n{"round": 1, "particle": 1, "x": [1]}\n', r":2: some draws have a round"),
    ('{"round": 1, "x": [1]}\n', r":1: null is no number of a round"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_what_is_no_draws_is_refused_with_its_line(tmp_path, text, message):
    path = tmp_path / "draws.txt"
    path.write_text(text)
    with pytest.raises(DataError, match=message) as caught:
        read_draws(path)
    assert str(caught.value).startswith(str(path))


def npy(values):
    image = io.BytesIO()
    np.save(image, values)
    return image.getvalue()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (npy(np.zeros((2, 2)))[:-3], "not a readable .npy"),
        (npy(np.array([{}, []], dtype=object)), "not a readable .npy"),
        (b"\x93NUMPY\x01\x00\xff\xff{", "not a readable .npy"),
        (npy(np.array(["a"])), "an array of <U1"),
        (npy(np.zeros((2, 2, 2, 2))), r"an array of shape \[2, 2, 2, 2\]"),
        (npy(np.zeros((0, 2))), r"an array of shape \[0, 2\]"),
        (npy(np.array([1.0, np.nan])), "1 of 2 values are not finite"),
        (b"mu\n\xff\n", ":2: not text"),
        (gzip.compress(b"mu\n1\n", mtime=0), "not text"),
    ],
)
def test_bytes_that_are_no_draws_are_refused(tmp_path, data, message):
    (tmp_path / "d").write_bytes(data)
    with pytest.raises(DataError, match=message):
        read_draws(tmp_path / "d")


@pytest.mark.parametrize("data", [b"\x89HDF\r\n\x1a\nrest", b"CDF\x01rest"])
def test_broken_netcdf_is_refused(tmp_path, data):
    pytest.importorskip("h5py")
    (tmp_path / "d.nc").write_bytes(data)
    with pytest.raises(DataError, match="no InferenceData"):
        read_draws(tmp_path / "d.nc")


class Trap:
    """Springs when it is unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


def test_pickles_are_never_loaded(tmp_path):
    (tmp_path / "d.npy").write_bytes(npy(np.array([Trap()], dtype=object)))
    with pytest.raises(DataError, match="not a readable"):
        read_draws(tmp_path / "d.npy")


def test_a_flat_array_is_one_chain(tmp_path):
    np.save(tmp_path / "d.npy", np.arange(6, dtype=np.float32).reshape(3, 2))
    found = read_draws(tmp_path / "d.npy")
    assert found.points.tolist() == [[[0, 1]], [[2, 3]], [[4, 5]]]
    np.save(tmp_path / "e.npy", np.arange(3))
    assert read_draws(tmp_path / "e.npy").points.shape == (3, 1, 1)


def test_files_that_cannot_be_opened(draws, tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_draws(tmp_path / "none.csv")
    (tmp_path / "d.csv").write_text("mine")
    with pytest.raises(OutputError, match="exists already"):
        write_draws(draws, tmp_path / "d.csv")
    assert (tmp_path / "d.csv").read_text() == "mine"


def test_the_format_is_asked_for_or_told_by_the_suffix():
    assert [draws_format(f"d{suffix}") for suffix in SUFFIX.values()] == list(SUFFIX)
    assert draws_format("d.NPY.gz") == "npy"
    assert draws_format("d.out") == draws_format("-") == "csv"
    assert draws_format("d.npy", "json") == "json"
    with pytest.raises(UsageError, match="csv, npy, json, netcdf"):
        draws_format("d.npy", "parquet")


def test_shapes_that_do_not_fit_are_refused():
    for make in (
        lambda: Draws(np.zeros((2, 2))),
        lambda: Draws(np.zeros((2, 0, 2))),
        lambda: Draws(np.zeros((2, 2, 2)), ("a", "a")),
        lambda: Draws(np.zeros((2, 2, 2)), numbers=(1,)),
    ):
        with pytest.raises(ValueError, match=r"draws have shape|different names|numbers for"):
            make()

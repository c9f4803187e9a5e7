import gzip
import re
from pathlib import Path

import numpy as np
import pytest

from papercuts.errors import DataError
from tierprune import csvfile
from tierprune.dataset import read_table

GOOD = "a,b,c\n" + "1,x,0.5\n2,y,1.5\n" * 6


def write(folder: Path, text: str | bytes, name: str = "d.csv") -> str:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def test_columns_come_in_the_order_asked_for(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, GOOD), columns=["c", "a"])
    assert table.names == ("c", "a")
    assert table.rows == 12
    assert table.numbers().tolist() == [[0.5, 1.0], [1.5, 2.0]] * 6


def test_values_are_coded_in_order(tmp_path: Path) -> None:
    text = "n,w,f\n" + "10,b,true\n9,a,false\n10.5,c,true\n" * 5
    n, w, f = read_table(write(tmp_path, text)).coded()
    assert n.levels == ("9", "10", "10.5")
    assert n.codes[:3].tolist() == [1, 0, 2]
    assert w.levels == ("a", "b", "c")
    assert f.levels == ("false", "true")
    assert (n.level("9"), n.level(" 10.5 "), w.level("c")) == (0, 2, 2)
    with pytest.raises(ValueError, match=r"n has no value '7' \(it has 9, 10, 10.5\)"):
        n.level("7")
    with pytest.raises(ValueError, match=r"w has no value 'B' \(.*; did you mean b\?\)"):
        w.level("B")
    with pytest.raises(ValueError, match=r"n has no value '9.0' \(.*; did you mean 9\?\)"):
        n.level("9.0")


def test_categories_are_what_is_written(tmp_path: Path) -> None:
    text = "a,b,c\n" + "01,1,x\n1,1.0,x \n 1,01,y\n1 ,2, y\n" * 4
    a, b, c = read_table(write(tmp_path, text)).coded()
    assert a.levels == ("01", "1")
    assert a.codes[:4].tolist() == [0, 1, 1, 1]
    assert b.levels == ("01", "1", "1.0", "2")
    assert c.levels == ("x", "y")


@pytest.mark.parametrize("together", [1, 50, 10**6])
def test_a_table_is_the_same_in_pieces(
    tmp_path: Path, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csvfile, "_CELLS_TOGETHER", together)
    monkeypatch.setattr(csvfile, "_LEAST_ROWS", 3)
    text = "n,w,t,h\n" + "1,01,true,1\n2,x,false,\n3,1,true,2\n" * 4 + "2.5,NA,yes,1\n5,2,no,2\n"
    table = read_table(write(tmp_path, text), missing="drop", min_rows=1)
    assert table.dropped == 5
    assert table["n"].values.tolist() == [1, 3] * 4 + [5]
    assert table["w"].values.tolist() == ["01", "1"] * 4 + ["2"]
    assert table["t"].values.tolist() == ["true"] * 8 + ["no"]
    w, t = table.coded(["w", "t"])
    assert (w.levels, t.levels) == (("01", "1", "2"), ("no", "true"))


@pytest.mark.parametrize(
    "encode", [lambda b: b, lambda b: b"\xef\xbb\xbf" + b.replace(b"\n", b"\r\n")]
)
def test_marks_of_other_systems_are_taken(tmp_path: Path, encode: object) -> None:
    table = read_table(write(tmp_path, encode(GOOD.encode())))  # type: ignore[operator]
    assert table.names == ("a", "b", "c")
    assert table.coded(["b"])[0].levels == ("x", "y")


def test_a_compressed_file(tmp_path: Path) -> None:
    path = write(tmp_path, gzip.compress(GOOD.encode()), "d.csv.gz")
    assert read_table(path).rows == 12


def test_quoted_names_and_values(tmp_path: Path) -> None:
    text = '"a, b","c\nd"\n' + '"x, y",1\nz,2\n' * 6
    table = read_table(write(tmp_path, text))
    assert table.names == ("a, b", "c\nd")
    assert table.coded(["a, b"])[0].levels == ("x, y", "z")


ROWS = "1,2\n3,4\n" * 10


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": the file is empty"),
        ("a,b\n", ": there are no rows"),
        ("a;b\n1;2\n", ":1: the line of names has no comma, but semicolons (expected commas"),
        ("a\tb\n1\t2\n", ":1: the line of names has no comma, but tabs"),
        ("\na|b\n1|2\n", ":2: the line of names has no comma, but bars"),
        ("a,a\n" + ROWS, ":1: the name 'a' stands twice"),
        ("a,\n" + ROWS, ":1: a column has no name"),
        ("a,b\n" + ROWS + "5\n1,2\n", ":22: 1 field (expected 2"),
        ("a,b\n" + ROWS + "5,6,7\n1,2\n", ":22: 3 fields (expected 2"),
        ("a,b\n" + ROWS + "5,6,\n1,2\n", ":22: 3 fields (expected 2"),
        ("a,b\n1,2,3\n" + ROWS, ":2: 3 fields (expected 2"),
        ("a,b\n" + ROWS + "5,\n1,2\n", ":22: column 'b' misses a value (1 of 22 rows miss one)"),
        ("a,b\n" + ROWS + "NA,1\n1,\n", ":22: column 'a' misses a value (2 of 22"),
        ("a,b\n\n" + ROWS + '"\n",NaN\n', ":23: column 'b' misses a value"),
        ("a,b\n1,2\n3,4\n", ": 2 rows (expected at least 10)"),
        (b"a,b\n1,2\n\xff,3\n" + ROWS.encode(), ":3: invalid UTF-8"),
        (b"a\xff,b\n" + ROWS.encode(), ":1: invalid UTF-8"),
        ('a,b\n1,2\n1,"x\n' + ROWS, ":3: a quoted field that starts here is never closed"),
    ],
)  # fmt: skip
def test_what_is_refused_is_named(tmp_path: Path, text: str | bytes, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(DataError, match=re.escape(path + message)):
        read_table(path)


def rows(*columns: object) -> str:
    return "a,b\n" + "".join(f"{a},{b}\n" for a, b in zip(*columns, strict=True))  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (rows([1] * 12, [2, 3] * 6), ": column 'a' is constant (1)"),
        (rows(["1.0", "1"] * 6, [2, 3] * 6), ": column 'a' is constant (1)"),
        (rows(range(11, 0, -1), [0, 1] * 5 + [2]), ": column 'a' is an identifier: each row has a "
         "value of its own, from 1 to 11 (expected a variable; leave it out of the tiers; if it"),
        (rows(range(11), [0, 1] * 5 + [2]), ": column 'a' is an identifier"),
        (rows(["p", "q"] * 6, [0, 1] * 6), ":2: column 'a': 'p' is not a number"),
        (rows([f"p{i}" for i in range(12)], [0, 1] * 6), ":2: column 'a': 'p0' is not a number"),
        (rows([*(i / 7 for i in range(10)), "oops", 9], [0, 1] * 6), ":12: column 'a': 'oops' is"),
        (rows(["1_0", *range(5, 16)], [0, 1] * 6), ":2: column 'a': '1_0' is not a number"),
    ],
)  # fmt: skip
def test_what_is_no_number_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(DataError, match=re.escape(path + message)):
        read_table(path).numbers()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (rows(["x"] * 12, [2, 3] * 6), ": column 'a' is constant (x)"),
        (rows([" x", "x "] * 6, [2, 3] * 6), ": column 'a' is constant (x)"),
        (rows([f"p{i}" for i in range(12)], [0, 1] * 6), ": column 'a' is an identifier: each row "
         "has a value of its own (expected a variable; leave it out of the tiers)"),
        (rows(range(1, 13), [0, 1] * 6), ": column 'a' is an identifier"),
    ],
)  # fmt: skip
def test_what_is_no_category_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(DataError, match=re.escape(path + message)):
        read_table(path).coded()


def test_whole_numbers_without_repeats_are_numbers(tmp_path: Path) -> None:
    """Days of visits, years, times: only 1 to n and 0 to n - 1 are numbers of rows."""
    for values in (range(3, 15), range(2000, 2012), range(0, 36, 3), range(-1, 11)):
        table = read_table(write(tmp_path, rows(values, [0, 1] * 6)))
        assert table.numbers()[:, 0].tolist() == list(values)


def test_data_that_are_compressed_are_named(tmp_path: Path) -> None:
    path = write(tmp_path, gzip.compress(GOOD.encode()), "d.csv")
    with pytest.raises(DataError, match=re.escape(f"{path}: this looks like gzip (expected plain")):
        read_table(path)


def test_an_unknown_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no column 'z' \(expected one of a, b, c\)"):
        read_table(write(tmp_path, GOOD), columns=["a", "z"])


def test_columns_that_are_not_asked_for_may_be_anything(tmp_path: Path) -> None:
    text = "id,a,b\n" + "".join(f"p{i},{i % 3},{i % 4}\n" for i in range(12))
    assert read_table(write(tmp_path, text), columns=["a", "b"]).rows == 12


def test_measurements_that_are_all_different_are_no_identifier(tmp_path: Path) -> None:
    text = "a,b\n" + "".join(f"{i * i},{i / 7}\n" for i in range(12))
    assert read_table(write(tmp_path, text)).numbers().shape == (12, 2)


def test_rows_with_missing_values_are_dropped(tmp_path: Path) -> None:
    text = "a,b,c\n" + "1,2,\n" + "1,2,3\n2,3,4\n" * 6 + "1,x,3\n,1,1\n"
    path = write(tmp_path, text)
    table = read_table(path, missing="drop")
    assert (table.rows, table.dropped) == (13, 2)
    with pytest.raises(DataError, match=re.escape(f"{path}:15: column 'b': 'x' is not a number")):
        table.numbers()
    with pytest.raises(DataError, match="3 rows after 10 with missing values were dropped"):
        read_table(write(tmp_path, "a,b\n" + "1,\n" * 10 + "1,2\n" * 3), missing="drop")


def test_a_cell_that_is_no_number_is_named_where_lines_are_not_rows(tmp_path: Path) -> None:
    path = write(tmp_path, 'a,b\n\n1,"x\ny"\n' + "2,z\n" * 12 + "inf,z\n")
    table = read_table(path)
    with pytest.raises(
        DataError, match=re.escape(f"{path}:3: column 'b': 'x\\ny' is not a number")
    ):
        table.numbers(["b"])
    with pytest.raises(DataError, match=re.escape(f"{path}:17: column 'a': inf is not a finite")):
        table.numbers(["a"])


def test_too_many_categories_are_named(tmp_path: Path) -> None:
    text = "a,b\n" + "".join(f"{i * 7 % 997},{i % 2}\n" for i in range(400))
    with pytest.raises(DataError, match="column 'a' has 400 different values"):
        read_table(write(tmp_path, text)).coded()


def test_numbers_are_read_exactly_enough(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(50, 2))
    text = "a,b\n" + "".join(f"{x!r},{y!r}\n" for x, y in values.tolist())
    np.testing.assert_allclose(read_table(write(tmp_path, text)).numbers(), values, rtol=1e-14)

"""Tiers in each way they are written, and what is refused."""

from pathlib import Path

import pytest

from papercuts.errors import DataError, InputError, UsageError
from tierprune.tiers import Tiers, read_tiers

EXPECTED = Tiers((("age", "sex"), ("drug",), ("mi", "stroke")))


@pytest.mark.parametrize(
    "content",
    [
        '[["age", "sex"], "drug", ["mi", "stroke"]]',
        '{"tiers": [["age", "sex"], ["drug"], ["mi", "stroke"]]}',
        '{"age": 1, "mi": 9, "sex": 1, "drug": 5, "stroke": 9}',
        "background: [age, sex]\nexposure: [drug]\noutcome: [mi, stroke]\n",
        "tiers:\n  - [age, sex]\n  - drug\n  - [mi, stroke]\n",
        "age: 1\nmi: 3\nsex: 1\nstroke: 3\ndrug: 2\n",
        "[[age, sex], [drug], [mi, stroke]]",
        "age: 1\nmi: '9'\nsex: 1\nstroke: 9\ndrug: 5\n",
        "\ufeff- [age, sex]\r\n- [drug]\r\n- [mi, stroke]\r\n",
    ],
)
def test_files_in_every_form(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tiers"
    path.write_text(content)
    assert read_tiers(str(path)) == EXPECTED


@pytest.mark.parametrize("spec", ["age,sex<drug<mi,stroke", " age , sex < drug < mi , stroke "])
def test_inline(spec: str) -> None:
    assert read_tiers(spec) == EXPECTED


def test_inline_names_with_signs_stand_in_quotes() -> None:
    assert read_tiers('"a, b","c ""d"""<"e<f",größe') == Tiers(
        (("a, b", 'c "d"'), ("e<f", "größe"))
    )


def test_a_size_stands_for_names() -> None:
    assert read_tiers("2x3") == Tiers((("V1_1", "V1_2", "V1_3"), ("V2_1", "V2_2", "V2_3")))


def test_names_in_yaml_are_text(tmp_path: Path) -> None:
    path = tmp_path / "tiers.yaml"
    path.write_text("- [no, 2020]\n- [null, 1.50, on]\n")
    assert read_tiers(str(path)) == Tiers((("no", "2020"), ("null", "1.50", "on")))


def test_one_tier_is_inline_where_there_is_no_such_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_tiers("a,b") == Tiers((("a", "b"),))
    Path("a,b").write_text("[[c], [d]]")
    assert read_tiers("a,b") == Tiers((("c",), ("d",)))


def test_tier_numbers_start_at_one() -> None:
    assert EXPECTED.of == {"age": 1, "sex": 1, "drug": 2, "mi": 3, "stroke": 3}
    assert len(EXPECTED) == 3
    assert EXPECTED.names == ("age", "sex", "drug", "mi", "stroke")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("a<", "names divided by ','"),
        ("a,,b<c", "names divided by ','"),
        ("a<b,a", "a stands twice in tiers 1 and 2"),
        ("a,a<b", "a stands twice in tier 1"),
    ],
)
def test_wrong_inline_forms(spec: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_tiers(spec)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("3", "a list of tiers"),
        ("[]", "a list of tiers"),
        ("{}", "a list of tiers"),
        ("[[1, 2]]", "tier 1 is not a list of names"),
        ('{"a": 1, "a": 2}', "a stands twice"),
        ("a: 1\na: 2", "a stands twice"),
        ("[a]: 1", "a name that is a list"),
        ("[\n" * 20_000, "lists in lists without end"),
        ("[" * 20_000 + "]" * 20_000, "lists in lists without end"),
        ("[[a], {b: 1}]", "tier 2 is not a list of names"),
        ("[[a], [a]]", "a stands twice in tiers 1 and 2"),
        ("{a: [b", "neither JSON nor YAML"),
        ("", "a list of tiers"),
    ],
)
def test_wrong_files(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "tiers.yaml"
    path.write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        read_tiers(str(path))
    assert str(caught.value).startswith(f"{path}: ")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_tiers(str(tmp_path / "none.yaml"))


def test_no_more_than_100_000_variables_by_size() -> None:
    for spec in ("99999x99999", "99999999x99999", "2x50001"):
        with pytest.raises(UsageError, match="at most 100,000 variables"):
            read_tiers(spec)
    assert len(read_tiers("2x50000").names) == 100_000

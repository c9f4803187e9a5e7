"""`prune` and `need` as a user types them."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tierprune import formats
from tierprune.cli import app

GRAPH = """# a study
age -> drug
age -> stroke
drug -> stroke
sex -> age
drug <-> diet
stroke -> death
"""
TIERS = "sex<age<drug,diet<stroke<death"
ASKED = ["--tiers", TIERS, "--do", "drug", "--outcome", "stroke"]


@pytest.fixture
def tierprune(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Any:
    """Run one command line in a folder with g.edges; give its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    Path("g.edges").write_text(GRAPH)

    def run(*arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
        if stdin is not None:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = app.run(list(arguments))
        out, err = capsysbinary.readouterr()
        return code, out.decode(), err.decode()

    return run


def test_pruned_graph_and_what_is_said_of_it(tierprune: Any) -> None:
    code, out, err = tierprune("prune", "g.edges", *ASKED, "--explain")
    assert code == 0
    assert out == "sex\ndeath\nage -> drug\nage -> stroke\ndrug -> stroke\ndrug <-> diet\n"
    assert err.splitlines() == [
        "tierprune: P(stroke | do(drug)): edges into tiers 3 to 4 are needed by Proposition 3.2 "
        "(nothing is observed)",
        "tierprune: 4 edges kept, 2 dropped",
        "tierprune: never needed: sex, diet, death",
        "tierprune: T-component 1 (dropped, 0 edges): no edges",
        "tierprune: T-component 2 (dropped, 1 edge): sex -> age",
        "tierprune: T-component 3 (kept, 2 edges): age -> drug, drug <-> diet",
        "tierprune: T-component 4 (kept, 2 edges): age -> stroke, drug -> stroke",
        "tierprune: T-component 5 (dropped, 1 edge): stroke -> death",
    ]


def test_needed_only(tierprune: Any) -> None:
    code, out, _ = tierprune("prune", "g.edges", *ASKED, "--needed-only")
    assert (code, out) == (0, "age -> drug\nage -> stroke\ndrug -> stroke\n")


@pytest.mark.parametrize("format_", ["dot", "graphml", "dagitty", "edges"])
def test_written_in_the_format_read_or_asked_for(tierprune: Any, format_: str) -> None:
    code, out, _ = tierprune("prune", "g.edges", *ASKED, "--to", format_)
    assert code == 0
    assert formats.detect(out) == format_
    code, again, _ = tierprune("prune", *ASKED, stdin=out)
    assert (code, again) == (0, out)
    code, back, _ = tierprune("prune", "-", *ASKED, "--from", format_, "--to", "edges", stdin=out)
    assert sorted(back.splitlines()) == sorted(
        ["sex", "death", "age -> drug", "age -> stroke", "drug -> stroke", "drug <-> diet"]
    )


def test_attributes_of_what_stays_are_kept(tierprune: Any) -> None:
    kept = 'bb="0,0,1,1"\nA [exposure, pos="1,2"]\nB [outcome]\nC [pos="3,4"]\nA -> B [beta=1]\n'
    text = f"dag {{ {kept} B -> C }}"
    code, out, _ = tierprune("prune", "--tiers", "A<B<C", "--do", "A", "--outcome", "B", stdin=text)
    assert code == 0
    assert out == f"dag {{\n{kept}}}\n"


def test_bif_is_written_as_an_edge_list(tierprune: Any) -> None:
    text = "network x {}\nvariable A {}\nvariable B {}\nprobability ( B | A ) { }\n"
    asked = ["--tiers", "A<B", "--do", "A", "--outcome", "B"]
    assert tierprune("prune", *asked, stdin=text)[:2] == (0, "A -> B\n")


def test_latent_variables_are_said_to_be_projected(tierprune: Any) -> None:
    text = "dag { U [latent] U -> A U -> B A -> C -> B }"
    asked = ["--tiers", "A,B,C<D", "--do", "A", "--outcome", "B"]
    code, out, err = tierprune("prune", *asked, "--to", "edges", stdin=text)
    assert (code, out) == (0, "A -> C\nC -> B\nA <-> B\n")
    assert "stdin: latent variables are projected out, bidirected edges stand for them: U" in err


def test_forced_band_is_said_to_be_forced(tierprune: Any) -> None:
    code, out, err = tierprune("prune", "g.edges", *ASKED, "--given", "death", "--force-tight")
    assert code == 0
    assert "stroke -> death" not in out
    assert "Proposition 3.2 (forced, which can be wrong)" in err
    _, out, err = tierprune("prune", "g.edges", *ASKED, "--given", "death")
    assert "stroke -> death" in out
    assert "edges into tiers 1 to 5 are needed by Proposition 3.6" in err


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (["--do", "drog"], 2, "drog is not in the variables (did you mean drug?)"),
        (["--do", "drug", "--outcome", "drug"], 2, "drug is in treatment and in outcome"),
        (["--tiers", "sex<age<drug<stroke<death"], 65, "g.edges: diet has no tier"),
        (
            ["--tiers", "sex<age<drug<diet<stroke,death"],
            65,
            "g.edges:6: drug <-> diet joins tiers 3",
        ),
        (
            ["--tiers", "sex<stroke<age<drug,diet,death"],
            65,
            "g.edges:3: age -> stroke goes from tier 3",
        ),
        (["--tiers", "none.yaml"], 66, "none.yaml"),
        (["--plot", "x.pdf"], 2, "a plot is a .png or .svg file"),
        (["-o", "g.edges"], 73, "g.edges: exists already"),
        (["--plot", "no/such.png"], 73, "no/such.png"),
    ],
)
def test_endings(tierprune: Any, change: list[str], code: int, message: str) -> None:
    options = dict(zip(ASKED[::2], ASKED[1::2], strict=True))
    options |= dict(zip(change[::2], change[1::2], strict=True))
    words = [word for pair in options.items() for word in pair]
    ended, out, err = tierprune("prune", "g.edges", *words)
    assert (ended, out) == (code, "")
    assert err.startswith("tierprune: error: ")
    assert message in err
    assert err.count("\n") == 1


def test_cycle_and_undecided_graphs(tierprune: Any) -> None:
    code, _, err = tierprune("prune", *ASKED, stdin="age -> drug\ndrug -> age\n")
    assert (code, err) == (65, "tierprune: error: stdin:2: directed cycle: drug -> age -> drug\n")
    code, _, err = tierprune("prune", *ASKED, stdin="age -> drug\ndrug o-> stroke\n")
    assert code == 65
    assert "stdin:2: the edge between drug and stroke has a circle" in err


def test_graph_and_tiers_cannot_both_be_stdin(tierprune: Any) -> None:
    asked = ["--tiers", "-", "--do", "a", "--outcome", "b"]
    assert tierprune("prune", *asked, stdin="a -> b")[0] == 2


def test_plot_beside_the_graph(tierprune: Any) -> None:
    code, out, _ = tierprune("prune", "g.edges", *ASKED, "--plot", "g.svg")
    assert code == 0
    assert "age -> drug" in out
    assert "never needed" in Path("g.svg").read_text()


def test_need_lists_pairs_and_says_what_is_saved(tierprune: Any) -> None:
    """Tiers of 1, 1, 2, 1, 1: into tiers 3 and 4 go 2*2 + 1 + 1*4 = 9 pairs of 15."""
    code, out, err = tierprune("need", *ASKED)
    assert code == 0
    records = [json.loads(line) for line in out.splitlines()]
    assert len(records) == 9
    assert records[0] == {"a": "sex", "b": "drug", "tier_a": 1, "tier_b": 3, "possible": "-> none"}
    assert "9 pairs to judge of 15, 6 saved (40.0%)" in err
    assert "never needed: death" in err
    code, out, _ = tierprune("need", *ASKED, "--format", "csv")
    assert len(list(csv.DictReader(io.StringIO(out)))) == 9


def test_need_of_nothing(tierprune: Any) -> None:
    code, out, err = tierprune("need", "--tiers", "a<b", "--do", "b", "--outcome", "a")
    assert (code, out) == (0, "")
    assert "no component is needed by Proposition 3.2" in err
    assert "0 pairs to judge of 1, 1 saved (100.0%)" in err

"""Pictures: what is in them, that they repeat, and what is refused before any work."""

import random
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from smallgraphs import random_tiered

from papercuts.errors import OutputError, UsageError
from tierprune.admg import ADMG
from tierprune.pag import PAG, Mark
from tierprune.plot import check_plot, plot_pag, plot_pruned
from tierprune.pruning import prune
from tierprune.query import Query
from tierprune.tiers import Tiers

NAMES = ["age, years", "$x_1$ <b>", "größe 年齢", "a name that needs more than one line"]
TIERS = Tiers(((NAMES[0],), (NAMES[1], NAMES[2]), (NAMES[3],)))
QUERY = Query((NAMES[1],), (NAMES[3],))


def texts(path: Path) -> str:
    nodes = ET.parse(path).iter()  # noqa: S314 (a file that this test made)
    return " ".join("".join(node.itertext()) for node in nodes if "text" in node.tag)


def drawing() -> ADMG:
    arrows = [(NAMES[0], NAMES[1]), (NAMES[1], NAMES[3])]
    return ADMG.from_edges(NAMES, arrows, [(NAMES[1], NAMES[2])])


def test_svg_names_everything_and_repeats(tmp_path: Path) -> None:
    pruned = prune(drawing(), TIERS, QUERY)
    for name in ("one.svg", "two.svg"):
        plot_pruned(pruned, TIERS, QUERY, str(tmp_path / name))
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    said = texts(tmp_path / "one.svg")
    for word in (*NAMES[:3], "a name that needs", "more than one line", "tier 3", "3 edges kept"):
        assert word in said
    for role in ("treatment", "outcome", "latent common cause", "never needed"):
        assert role in said
    assert "given" not in said
    assert "dropped" not in said.replace("0 dropped", "")


@pytest.mark.slow
def test_pag_has_a_ring_for_each_circle(tmp_path: Path) -> None:
    edges = [
        (NAMES[0], NAMES[1], Mark.TAIL, Mark.ARROW),
        (NAMES[1], NAMES[2], Mark.CIRCLE, Mark.CIRCLE),
        (NAMES[1], NAMES[3], Mark.TAIL, Mark.CIRCLE),
    ]
    decided = [(a, b, Mark.TAIL, Mark.ARROW) for a, b, _, _ in edges]
    rings = []
    for name, drawn in (("pag.svg", edges), ("decided.svg", decided)):
        path = tmp_path / name
        plot_pag(PAG.from_edges(NAMES, drawn), TIERS, QUERY, str(path))
        rings.append(
            sum(curve.count("C") == 8 for curve in re.findall(r'd="([^"]*)"', path.read_text()))
        )
        assert ("undecided end" in texts(path)) == (name == "pag.svg")
        assert "3 edges learned" in texts(path)
    assert rings == [3 + 1, 0]  # one is in the legend


@pytest.mark.slow
def test_png_of_forty_variables(tmp_path: Path) -> None:
    graph, tiers = random_tiered(random.Random(0), [8] * 5, directed=0.08, bidirected=0.1)
    query = Query(("t2_0",), ("t4_1",), ("t1_0",))
    path = tmp_path / "forty.png"
    plot_pruned(prune(graph, tiers, query), tiers, query, str(path))
    head = path.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    width, height = int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
    assert 1000 < width < 3500
    assert 600 < height < 2500


def test_refused_before_any_work(tmp_path: Path) -> None:
    check_plot(None)
    with pytest.raises(UsageError, match=r"a plot is a \.png or \.svg file"):
        check_plot("graph.pdf")
    path = tmp_path / "there.png"
    path.write_text("precious")
    with pytest.raises(OutputError, match="--force"):
        check_plot(str(path))
    check_plot(str(path), force=True)

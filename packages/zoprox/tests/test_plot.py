"""Pictures of draws and of curves."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from papercuts.errors import OutputError, UsageError
from zoprox.draws import Draws
from zoprox.plot import check_plot, plot_curves, plot_draws

pytest.importorskip("matplotlib")
SVG = "{http://www.w3.org/2000/svg}"


def made(dim=3, names=()):
    return Draws(np.random.default_rng(0).standard_normal((4, 30, dim)), names)


def drawing(path):
    return ET.parse(path).getroot()  # noqa: S314 (written by the test)


def panels(root):
    return [g for g in root.iter(f"{SVG}g") if g.get("id", "").startswith("axes_")]


def lines(panel):
    return [g for g in panel.iter(f"{SVG}g") if g.get("id", "").startswith("line2d")]


def test_a_pair_plot_has_a_panel_for_each_pair_and_each_draw_in_it(tmp_path):
    plot_draws(made(), str(tmp_path / "p.svg"))
    found = panels(drawing(tmp_path / "p.svg"))
    assert len(found) == 9
    points = [max(len(list(line.iter(f"{SVG}use"))) for line in lines(p)) for p in found[3:4]]
    assert points == [120]


@pytest.mark.slow
def test_of_many_parameters_the_first_are_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr("zoprox.plot._MOST_PARAMETERS", 2)
    plot_draws(made(dim=10), str(tmp_path / "p.svg"))
    assert len(panels(drawing(tmp_path / "p.svg"))) == 4


def test_one_parameter_is_a_histogram(tmp_path):
    plot_draws(made(dim=1), str(tmp_path / "p.png"))
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_same_draws_give_the_same_bytes(tmp_path):
    for name in ("a.svg", "b.svg"):
        plot_draws(made(dim=2), str(tmp_path / name))
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_curves_go_through_their_medians(tmp_path):
    heights = np.array([[1.0, 3.0, 2.0], [1.0, 5.0, 2.0], [1.0, 4.0, 6.0]])
    curves = {"method": ((10, 20, 40), heights), "other": ((10, 20, 40), heights + 1)}
    path = tmp_path / "c.svg"
    plot_curves(curves, str(path), level=(0.5, "exact draws"))
    (panel,) = panels(drawing(path))
    drawn = []
    for group in panel:
        if not group.get("id", "").startswith("line2d"):
            continue
        for element in group.iter(f"{SVG}path"):
            words = element.get("d").replace("M", " ").replace("L", " ").split()
            drawn.append(np.array(words, float).reshape(-1, 2))
    method, other, level = (line for line in drawn if len(line) in (2, 3))
    # Heights 1, 4, 2 for one and 2, 5, 3 for the other; an SVG counts downwards.
    scale = (level[0, 1] - method[0, 1]) / 0.5
    assert (level[0, 1] - method[:, 1]) / scale + 0.5 == pytest.approx([1, 4, 2], abs=1e-3)
    assert (level[0, 1] - other[:, 1]) / scale + 0.5 == pytest.approx([2, 5, 3], abs=1e-3)


def test_a_plot_that_cannot_be_is_refused_before_the_work(tmp_path, zoprox, monkeypatch):
    check_plot(None)
    with pytest.raises(UsageError, match=r"\.png or \.svg"):
        check_plot("p.pdf")
    (tmp_path / "p.svg").write_text("mine")
    with pytest.raises(OutputError, match="exists already"):
        check_plot(str(tmp_path / "p.svg"))
    check_plot(str(tmp_path / "p.svg"), force=True)
    monkeypatch.chdir(tmp_path)
    small = ["--dim", 1, "-n", 4, "--mc", 4, "--rounds", 1, "--sub", 1, "--step", 1, "--keep", 1]
    command = ["sample", "--expr", "x1*x1", *small]
    assert zoprox(*command, "--plot", "p.pdf")[0] == 2
    code, _, err = zoprox(*command, "--plot", "q.svg", "-o", "draws.npy")
    assert code == 0, err
    assert len(panels(drawing(tmp_path / "q.svg"))) == 1

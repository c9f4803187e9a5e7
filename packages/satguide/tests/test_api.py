"""The Python API, as the package's docstring shows it."""

import re
import textwrap

import satguide
from satguide import dimacs
from satguide.families import threesat


def test_the_example_of_the_docstring_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "formula.cnf").open("wb") as out:
        dimacs.write(out, threesat.generate(20, 1))
    example = satguide.__doc__.split("In short:", 1)[1]
    names = {}
    exec(textwrap.dedent(example), names)  # noqa: S102
    outcome, cnf = names["outcome"], names["cnf"]
    assert outcome.satisfiable
    assert cnf.unsatisfied(outcome.model).size == 0


def test_every_public_name_is_there_and_says_what_it_is():
    for name in satguide.__all__:
        assert getattr(satguide, name).__doc__, name
    assert re.search(r"satguide\.guide\(", satguide.__doc__)

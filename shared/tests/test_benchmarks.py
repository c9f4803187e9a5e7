"""The files of a bench: what one script writes again, the others keep."""

import json
import re

from papercuts.benchmarks import Report, machine, today


def test_a_section_is_replaced_and_the_others_stay(tmp_path):
    report = Report(str(tmp_path / "speed.py"))
    report.write_section("speed", ["## Speed", "1 s"])
    report.write_section("size", ["## Size", "1 MB"])
    report.write_section("speed", ["## Speed", "2 s", "ä"])
    text = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert text == (
        "# What was measured\n\n"
        "<!-- speed: begin -->\n## Speed\n2 s\nä\n<!-- speed: end -->\n\n"
        "<!-- size: begin -->\n## Size\n1 MB\n<!-- size: end -->\n"
    )


def test_results_come_back(tmp_path):
    report = Report(str(tmp_path / "speed.py"))
    assert report.read_results() == {}
    report.write_results({"speed": [1, 2.5], "name": "Müller"})
    assert report.read_results() == {"speed": [1, 2.5], "name": "Müller"}
    assert json.loads((tmp_path / "results.json").read_bytes()) == report.read_results()


def test_a_machine_is_named_by_its_kind(monkeypatch):
    monkeypatch.setenv("HOSTNAME", "secret-host")
    assert re.fullmatch(r"\d+ cores, \S+ \(.*\), .+", machine())
    assert "secret-host" not in machine()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", today())

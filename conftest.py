"""What every test run here knows: whose test it is, what it cost, which programs it needs.

A test belongs to the tool in whose folder it stands, or to the tool that it is parametrized with
(`tests/test_manners.py`), else to the workspace. `--tool NAME` keeps the tests of one owner.

Budget: a tool may cost 30 core-seconds in the fast suite. Counted is the CPU time of its tests and
of the processes they start (once these have ended), in all xdist workers, and that of importing
its test files. Every worker imports every file, so of those the dearest worker counts. The import
of a library falls to the tool that is collected first of those that import it at the top of a test
file. Tests marked `slow` are not counted. One machine takes half as long again as another for the
same tests, so a tool over its budget is named, and the run fails when it is over by half.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent
SLACK = 1.5  # how much slower than the machine of the budget another may be
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]

SHARED = "papercuts"
WORKSPACE = "workspace"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--tool",
        action="append",
        default=[],
        metavar="NAME",
        help=f"only the tests of this tool, of {SHARED} (shared) or of the {WORKSPACE}; repeatable",
    )
    parser.addini("core_seconds", "CPU seconds that a tool's fast tests may cost", default="30")


def pytest_configure(config: pytest.Config) -> None:
    # A time limit for one example only says how busy the machine is; the budget below counts CPU.
    settings.register_profile("house", deadline=None)
    settings.load_profile("house")
    config.pluginmanager.register(Budget(config), "papercuts-budget")


def owner_of_path(path: Path) -> str:
    """Name the tool in whose folder a path lies, or `papercuts`, or `workspace`."""
    parts = path.relative_to(ROOT).parts if path.is_relative_to(ROOT) else ()
    if parts[:1] == ("packages",) and len(parts) > 1:
        return parts[1]
    return SHARED if parts[:1] == ("shared",) else WORKSPACE


def owner(item: pytest.Item) -> str:
    """Name the tool that a test belongs to."""
    callspec = getattr(item, "callspec", None)
    for value in callspec.params.values() if callspec else ():
        package = getattr(value, "package", value)
        if hasattr(package, "command"):
            return str(package.command)
    return owner_of_path(item.path)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the folders of other tools unread, and their libraries not imported."""
    wanted = config.getoption("--tool")
    owned_by = owner_of_path(collection_path)
    return True if wanted and owned_by not in {WORKSPACE, *wanted} else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = set(config.getoption("--tool"))
    if wanted:
        config.hook.pytest_deselected(items=[item for item in items if owner(item) not in wanted])
        items[:] = [item for item in items if owner(item) in wanted]


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        for program in mark.args:
            if shutil.which(program) is None:
                pytest.skip(f"needs the program {program}, which is not on the PATH")


class Budget:
    """Counts the CPU seconds of each owner's fast tests, names who is over, fails far over."""

    def __init__(self, config: pytest.Config) -> None:
        self.limit_s = float(config.getini("core_seconds"))
        self.running: Counter[str] = Counter()
        self.collecting: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        began = cpu_s()
        try:
            return (yield)
        finally:
            if isinstance(collector, pytest.File):
                self.collecting[owner_of_path(collector.path)] += cpu_s() - began

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        began = cpu_s()
        try:
            return (yield)
        finally:
            if item.get_closest_marker("slow") is None:
                self.running[owner(item)] += cpu_s() - began

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what an xdist worker counted."""
        running, collecting = getattr(node, "workeroutput", {}).get("core_seconds", ({}, {}))
        self.running.update(running)
        self.collecting |= Counter(collecting)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["core_seconds"] = (dict(self.running), dict(self.collecting))
        elif self.over(SLACK) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        total = self.total()
        listed = ", ".join(f"{name} {total[name]:.1f}" for name in sorted(self.running))
        if listed:
            terminalreporter.write_line(f"core-seconds of the fast tests: {listed}")
        fatal = self.over(SLACK)
        for name, seconds in self.over().items():
            terminalreporter.write_line(
                f"{'ERROR' if name in fatal else 'WARNING'}: the fast tests of {name} cost "
                f"{seconds:.1f} core-seconds, and a tool has {self.limit_s:g}: mark the heavy ones "
                "`slow`",
                red=name in fatal,
                yellow=name not in fatal,
            )

    def total(self) -> Counter[str]:
        """CPU seconds of each owner whose tests ran."""
        return Counter({name: self.running[name] + self.collecting[name] for name in self.running})

    def over(self, slack: float = 1.0) -> dict[str, float]:
        """List the tools above the limit times `slack`, with their CPU seconds."""
        free, limit = {SHARED, WORKSPACE}, slack * self.limit_s
        return {n: s for n, s in self.total().items() if n not in free and s > limit}


def cpu_s() -> float:
    """Give the CPU seconds of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system

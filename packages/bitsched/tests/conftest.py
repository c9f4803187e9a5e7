"""Lets the tests import the modules that lie beside them, and keeps the fast ones off numba."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _plain_loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run loops as plain Python in the fast suite: compiling them takes longer than its tests.

    Many small runs in one process would start numba. The slow tests compare the two.
    """
    if request.node.get_closest_marker("slow") is None:
        from bitsched import kernel

        monkeypatch.setattr(kernel, "COMPILED_FROM", 10**9)
        monkeypatch.setattr(kernel, "COMPILED_AFTER", 10**9)

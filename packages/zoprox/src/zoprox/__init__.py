"""Sampling of exp(-f) from values of f alone, with many particles that move together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zoprox.bounds import Bounded, Box, read_bounds
    from zoprox.command_target import CommandTarget
    from zoprox.correction import Corrected, corrected
    from zoprox.diagnosis import diagnose
    from zoprox.draws import Draws, read_draws, write_draws
    from zoprox.expression import Expression
    from zoprox.membership import Inside
    from zoprox.potential import Counted, Potential
    from zoprox.python_target import PythonTarget
    from zoprox.sampler import Round, sample_rounds
    from zoprox.settings import Settings
    from zoprox.targets import Checked, Target, open_target
    from zoprox.tuning import choose_step
    from zoprox.volume import Volume, estimate_volume

__all__ = [
    "Bounded",
    "Box",
    "Checked",
    "CommandTarget",
    "Corrected",
    "Counted",
    "Draws",
    "Expression",
    "Inside",
    "Potential",
    "PythonTarget",
    "Round",
    "Settings",
    "Target",
    "Volume",
    "choose_step",
    "corrected",
    "diagnose",
    "estimate_volume",
    "open_target",
    "read_bounds",
    "read_draws",
    "sample_rounds",
    "write_draws",
]

_HOMES = {
    "Bounded": "bounds",
    "Box": "bounds",
    "Checked": "targets",
    "CommandTarget": "command_target",
    "Corrected": "correction",
    "Counted": "potential",
    "Draws": "draws",
    "Expression": "expression",
    "Inside": "membership",
    "Potential": "potential",
    "PythonTarget": "python_target",
    "Round": "sampler",
    "Settings": "settings",
    "Target": "targets",
    "Volume": "volume",
    "choose_step": "tuning",
    "corrected": "correction",
    "diagnose": "diagnosis",
    "estimate_volume": "volume",
    "open_target": "targets",
    "read_bounds": "bounds",
    "read_draws": "draws",
    "sample_rounds": "sampler",
    "write_draws": "draws",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)

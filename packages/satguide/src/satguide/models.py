"""The checkpoints that ship with the tool, and those that a user names by path."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from papercuts.errors import InputError
from papercuts.files import open_input

if TYPE_CHECKING:
    from satguide.checkpoint import Checkpoint

BUNDLED = ("3sat", "3col", "hitag2")


def load(model: str) -> Checkpoint:
    """Load a bundled checkpoint by name, or a file by path (a file of that name goes first).

    Raises `InputError` where there is neither, and `DataError` for a file that is no checkpoint.
    """
    from satguide.checkpoint import read

    return read(_path(model))


def origin(model: str | None) -> dict[str, str] | None:
    """Say what a training begins with: the name of the checkpoint's file, and its SHA-256."""
    if model is None:
        return None
    return file_origin(_path(model))


def file_origin(path: str) -> dict[str, str]:
    """Say what file it was: its name, and its SHA-256. Raises `InputError` for one not there."""
    with open_input(path) as file:
        return {"name": Path(path).name, "sha256": hashlib.sha256(file.read()).hexdigest()}


def _path(model: str) -> str:
    if Path(model).is_file():  # a folder of that name is none
        return model
    if model in BUNDLED:
        return str(files("satguide") / "checkpoints" / f"{model}.safetensors")
    known = ", ".join(BUNDLED)
    raise InputError(f"{model}: no such checkpoint (a file, or one that ships: {known})")

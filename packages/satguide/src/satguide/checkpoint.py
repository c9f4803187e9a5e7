"""Checkpoints: a network in a safetensors file, with what is needed to use it and to check it.

The metadata key `satguide` holds JSON: the shape of the network, the policy's sigma, the solver
and the polarity mode it was trained for, and the provenance. Nothing is ever unpickled.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from papercuts.errors import DataError, InputError
from papercuts.files import open_output
from satguide.backends import Polarity
from satguide.network import GuidanceNetwork, Shape

FORMAT = "1"
BEST = "best."  # prefix of the best network inside the state of a training that still runs


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A network and how to read what it says. `made` is its provenance, any JSON."""

    network: GuidanceNetwork
    sigma: float
    made: dict[str, Any] = field(default_factory=dict)

    @property
    def polarity(self) -> Polarity:
        """Whether the network learnt which value to try first (persistent), or weights only."""
        return "none" if self.made.get("meter", {}).get("polarity") == "none" else "persistent"

    @property
    def centre(self) -> bool:
        """Whether the mean of a formula's mu is taken away (`satguide.grpo.centred`)."""
        return bool(self.made.get("settings", {}).get("centre", False))

    def about(self) -> dict[str, Any]:
        """Give the metadata as it is written."""
        return {"shape": self.network.shape.as_dict(), "sigma": self.sigma, **self.made}


def write(path: str, checkpoint: Checkpoint, *, force: bool = False) -> None:
    """Write a checkpoint, whole or not at all. Raises `OutputError` as `open_output` does."""
    tensors = {name: value.contiguous() for name, value in checkpoint.network.state_dict().items()}
    about = {"format": FORMAT, "satguide": json.dumps(checkpoint.about(), sort_keys=True)}
    with open_output(path, force=force) as out:
        out.write(_ordered(save(tensors, metadata=about)))


def read(path: str | Path) -> Checkpoint:
    """Read a checkpoint, or the best network of a training that still runs (`PATH.part`).

    Raises `InputError` where there is no such file, and `DataError` for a file that is not a
    checkpoint of this tool.
    """
    name = str(path)
    tensors, about = read_tensors(name)
    best = {k.removeprefix(BEST): v for k, v in tensors.items() if k.startswith(BEST)}
    try:
        shape = Shape(**about.pop("shape"))
        sigma = float(about.pop("sigma"))
        _check_provenance(about)
        _check_shapes(shape, best or tensors)
        network = GuidanceNetwork(shape)
        network.load_state_dict(best or tensors)
        _check_numbers(network, sigma)
    except (KeyError, TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise DataError(f"{name}: not a checkpoint of satguide ({_first_line(error)})") from error
    network.eval().requires_grad_(False)
    return Checkpoint(network, sigma, about)


def read_tensors(name: str) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Read the tensors of a safetensors file, and what its `satguide` metadata says."""
    if not Path(name).is_file():
        raise InputError(f"{name}: no such file")
    try:
        with safe_open(name, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise DataError(f"{name}: not a safetensors file ({_first_line(error)})") from error
    if metadata.get("format") != FORMAT or "satguide" not in metadata:
        raise DataError(f"{name}: not a checkpoint of satguide (format {FORMAT} expected)")
    try:
        about = json.loads(metadata["satguide"])
    except (ValueError, RecursionError) as error:
        raise DataError(f"{name}: not a checkpoint of satguide ({error})") from error
    if not isinstance(about, dict):
        raise DataError(f"{name}: not a checkpoint of satguide (its metadata is no object)")
    return tensors, about


def _check_shapes(shape: Shape, tensors: dict[str, torch.Tensor]) -> None:
    """Compare the tensors with the shape, before a network is built that may not fit in memory."""
    if shape.layers > len(tensors):
        raise ValueError(f"{len(tensors)} tensors are too few for {shape.layers} layers")
    with torch.device("meta"):  # which holds no numbers
        expected = {k: v.shape for k, v in GuidanceNetwork(shape).state_dict().items()}
    found = {k: v.shape for k, v in tensors.items()}
    for name in sorted(expected.keys() | found.keys()):
        one, two = expected.get(name), found.get(name)
        if one != two:
            told = [None if size is None else list(size) for size in (one, two)]
            raise ValueError(f"{name} should have the shape {told[0]}, and has {told[1]}")


def _check_provenance(about: dict[str, Any]) -> None:
    """Check what is read again of the provenance: meter, settings, the ranges of training."""
    meter, ranges, settings = (about.get(name, {}) for name in ("meter", "range", "settings"))
    if not isinstance(meter, dict):
        raise TypeError("its meter is no object")
    if not isinstance(ranges, dict):
        raise TypeError("its range is no object")
    if not isinstance(settings, dict):
        raise TypeError("its settings are no object")
    if not isinstance(settings.get("centre", False), bool):
        raise TypeError("its setting of centre is neither true nor false")
    for name, bounds in ranges.items():
        if not isinstance(bounds, list) or len(bounds) != 2:
            raise ValueError(f"its range of {name} is no pair")
        if not all(isinstance(b, int | float) and math.isfinite(b) for b in bounds):
            raise ValueError(f"its range of {name} is not of numbers")


def _check_numbers(network: GuidanceNetwork, sigma: float) -> None:
    if not 0 < sigma < math.inf:
        raise ValueError(f"sigma is {sigma}")
    if not all(bool(p.isfinite().all()) for p in network.parameters()):
        raise ValueError("some of its weights are not finite")


def _ordered(data: bytes) -> bytes:
    """Sort the metadata in a safetensors header, which `save` writes in a random order."""
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data[end:]


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]

"""GPU kernels by name: Triton on a CUDA GPU, plain PyTorch elsewhere, the same numbers.

    from papercuts import kernels

    kernels.register(
        "mytool.rows",
        reference="mytool.rows:rows",            # MODULE:FUNCTION, imported upon first use
        triton="mytool.rows_triton:rows",
    )
    out = kernels.call("mytool.rows", x)         # picks by the device of x

Every kernel has a reference; a Triton version has the same signature, the same gradients and, up to
rounding, the same values. PAPERCUTS_KERNELS=reference|triton (or the argument `backend`) forces
one; with TRITON_INTERPRET=1 the Triton version runs on the CPU too, slowly, for tests.

Kernels that ship here: `csr_mean` (see `papercuts.kernels.csr`) and `dq_accumulate` (see
`papercuts.kernels.dq`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, cast

from papercuts.errors import MissingError, UsageError

if TYPE_CHECKING:
    import torch

Backend = Literal["reference", "triton"]
Implementation = str | Callable[..., Any]

VARIABLE = "PAPERCUTS_KERNELS"

__all__ = ["VARIABLE", "Backend", "call", "choose", "get", "names", "register"]


@dataclass(frozen=True)
class _Kernel:
    reference: Implementation
    triton: Implementation | None


_kernels: dict[str, _Kernel] = {}


def register(name: str, *, reference: Implementation, triton: Implementation | None = None) -> None:
    """Add a kernel under `name`; a tool's own are called `TOOL.KERNEL`.

    An implementation is a function, or "MODULE:FUNCTION" which is imported upon first use.
    Registering the same again changes nothing; another kernel of the same name is a `ValueError`.
    """
    for implementation in (reference, triton):
        if isinstance(implementation, str) and not all(implementation.partition(":")):
            raise ValueError(f"kernel {name!r}: {implementation!r} is not MODULE:FUNCTION")
    kernel = _Kernel(reference, triton)
    if _kernels.setdefault(name, kernel) != kernel:
        raise ValueError(f"another kernel is called {name!r} already")


def names() -> list[str]:
    """List the names of the kernels registered so far, sorted."""
    return sorted(_kernels)


def choose(
    name: str, device: torch.device | str = "cpu", backend: Backend | None = None
) -> Backend:
    """Say which implementation of `name` runs on `device`.

    Left to itself: Triton on a CUDA GPU, if the kernel has it and Triton is installed. `backend`,
    else the variable PAPERCUTS_KERNELS, forces one. Raises `LookupError` for an unknown kernel,
    `UsageError` for an unknown backend or for Triton on a device that it cannot run on, and
    `MissingError` where Triton is forced and there is none.
    """
    kernel = _find(name)
    kind = str(device).partition(":")[0]
    forced = backend or os.environ.get(VARIABLE) or "auto"
    if forced not in ("auto", "reference", "triton"):
        source = "the argument backend" if backend else VARIABLE
        raise UsageError(f"{source} is {forced!r} (expected reference or triton)")
    if forced == "triton":
        _require_triton(name, kernel, kind)
        return "triton"
    usable = kind == "cuda" and kernel.triton is not None and find_spec("triton") is not None
    return "triton" if usable and forced == "auto" else "reference"


def get(
    name: str, device: torch.device | str = "cpu", backend: Backend | None = None
) -> Callable[..., Any]:
    """Give the implementation that `choose` names, importing it if need be."""
    kernel = _find(name)
    chosen = kernel.triton if choose(name, device, backend) == "triton" else kernel.reference
    return _load(chosen) if isinstance(chosen, str) else cast("Callable[..., Any]", chosen)


def call(
    name: str,
    *args: Any,
    device: torch.device | str | None = None,
    backend: Backend | None = None,
    **kwargs: Any,
) -> Any:
    """Run a kernel on its arguments, on the device of the first argument that has one.

    `device` names it instead; neither is passed on. Raises as `choose` does, and `ValueError` when
    no argument has a device.
    """
    if device is None:
        device = next((arg.device for arg in args if hasattr(arg, "device")), None)
        if device is None:
            raise ValueError(f"kernel {name!r}: no argument is on a device, so name the device")
    return get(name, device, backend)(*args, **kwargs)


def _find(name: str) -> _Kernel:
    if name not in _kernels:
        raise LookupError(f"no kernel is called {name!r} (there is {', '.join(names())})")
    return _kernels[name]


def _load(place: str) -> Callable[..., Any]:
    module, _, function = place.partition(":")
    return cast("Callable[..., Any]", getattr(import_module(module), function))


def _require_triton(name: str, kernel: _Kernel, kind: str) -> None:
    if kernel.triton is None:
        raise MissingError(f"the kernel {name!r} has no Triton version; use the reference")
    if find_spec("triton") is None:
        raise MissingError("Triton is not installed (torch for CUDA on Linux brings it)")
    if kind != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        raise UsageError(
            f"Triton does not run on the device {kind} (except slowly, with TRITON_INTERPRET=1)"
        )


register(
    "csr_mean",
    reference="papercuts.kernels.csr:mean_reference",
    triton="papercuts.kernels.csr_triton:mean_triton",
)
register(
    "dq_accumulate",
    reference="papercuts.kernels.dq:accumulate_reference",
    triton="papercuts.kernels.dq_triton:accumulate_triton",
)

"""What CPU, memory and GPU this process may use, and which device and dtype to compute with.

Nothing here imports torch, except `pick_device` and `pick_dtype`. Functions that read the system's
files take `root`, the folder in which `/proc` and `/sys` lie.
"""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from papercuts.errors import MissingError, UsageError
from papercuts.log import get_logger

if TYPE_CHECKING:
    import torch

logger = get_logger(__name__)

SimdLevel = Literal["avx512", "avx2", "avx", "sse", "sve", "neon", "none"]

_ROOT = Path("/")
_PROBE_TIMEOUT_S = 20.0
# Best first; a level holds when all of its flags are there.
_SIMD_LEVELS: tuple[tuple[SimdLevel, frozenset[str]], ...] = (
    ("avx512", frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl"})),
    ("avx2", frozenset({"avx2", "fma"})),
    ("avx", frozenset({"avx"})),
    ("sse", frozenset({"sse2"})),
    ("sve", frozenset({"sve"})),
    ("neon", frozenset({"asimd"})),
)
# Extensions that change what is worth computing with, in the kernel's spelling (x86, then ARM).
_NOTABLE = (
    *("amx_bf16", "amx_fp16", "amx_int8", "avx512_bf16", "avx512_fp16", "avx512_vnni"),
    *("avx_vnni", "fma", "f16c"),
    *("bf16", "i8mm", "sve2", "asimddp", "asimdhp"),
)
_FAST_BF16 = frozenset({"amx_bf16", "avx512_bf16"})
_FAST_BF16_CAPABILITY = (8, 0)


@dataclass(frozen=True)
class Gpu:
    """One GPU: torch's name for it, its model, memory, and CUDA compute capability ("9.0")."""

    device: str
    name: str
    memory_bytes: int
    capability: str | None


# ---- cores and memory


def cores(root: Path = _ROOT) -> int:
    """Count the cores that this process may really use, at least 1.

    The smaller of the CPU affinity and the CPU quota of the process's control group (v1 or v2) and
    of every group around it, rounded up.
    """
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
    available = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    quotas = [quota for group in _groups("cpu", root) if (quota := _cpu_quota(group)) is not None]
    return max(1, min([available, *(math.ceil(quota) for quota in quotas)]))


def memory_limit(root: Path = _ROOT) -> int | None:
    """Give the bytes of memory that this process may use; None where the system does not say.

    The smaller of the physical memory and the limits of the process's control groups.
    """
    limits = [
        limit
        for group in _groups("memory", root)
        for name in ("memory.max", "memory.limit_in_bytes")
        if (limit := _read_number(group / name)) is not None
    ]
    physical = _physical_memory()
    if physical is not None:
        # v1 writes "no limit" as a number near 2^63, which the physical memory takes care of.
        return min([physical, *limits])
    return min((limit for limit in limits if limit < 1 << 60), default=None)


def _physical_memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None


def _groups(controller: str, root: Path) -> Iterator[Path]:
    """Yield the folders of the control groups that bind this process, innermost first."""
    hierarchies = _hierarchies(root)
    for line in _lines(root / "proc/self/cgroup"):
        _, names, path = line.split(":", 2)
        # v2 is the line without controllers; its files are there only where it has the controller.
        key = controller if controller in names.split(",") else "" if names == "" else None
        if key is None or key not in hierarchies:
            continue
        mount_root, mount_point = hierarchies[key]
        top = root / mount_point.lstrip("/")
        group = top / _below(path, mount_root)
        yield group
        while group != top:
            group = group.parent
            yield group


def _hierarchies(root: Path) -> dict[str, tuple[str, str]]:
    """Map each v1 controller, and "" for v2, to its mount: (group at its root, mount point)."""
    found: dict[str, tuple[str, str]] = {}
    for line in _lines(root / "proc/self/mountinfo"):
        mount, _, filesystem = line.partition(" - ")
        fields, kind = mount.split(), filesystem.split()
        if len(fields) < 5 or len(kind) < 3 or kind[0] not in ("cgroup", "cgroup2"):
            continue
        place = (_unescape(fields[3]), _unescape(fields[4]))
        for name in [""] if kind[0] == "cgroup2" else kind[2].split(","):
            found[name] = place
    return found


def _below(path: str, mount_root: str) -> PurePosixPath:
    """Give the group's place below its mount.

    A container's mount begins at its own group; a path that does not lie below it was written for
    another view of the tree, and then only the top can be seen.
    """
    group = PurePosixPath(path)
    if ".." in group.parts or not group.is_relative_to(mount_root):
        return PurePosixPath()
    return group.relative_to(mount_root)


def _cpu_quota(group: Path) -> float | None:
    """Read how many cores a group may use at a time; None without a limit."""
    words = _read(group / "cpu.max").split()  # v2: "QUOTA PERIOD" in microseconds, or "max PERIOD"
    if len(words) == 2 and words[0].isdigit():
        quota, period = int(words[0]), int(words[1])
    else:
        quota = _read_number(group / "cpu.cfs_quota_us") or -1
        period = _read_number(group / "cpu.cfs_period_us") or 0
    return quota / period if quota > 0 and period > 0 else None


def _read(path: Path) -> str:
    """Read a system file; one that is missing or forbidden says nothing."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _lines(path: Path) -> list[str]:
    return [line for line in _read(path).splitlines() if line.strip()]


def _read_number(path: Path) -> int | None:
    text = _read(path).strip()
    return int(text) if text.isdigit() else None


def _unescape(text: str) -> str:
    """Undo mountinfo's octal escapes of white space and backslashes."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text


# ---- the processor


def cpu_name(root: Path = _ROOT) -> str:
    """Give the processor's model as the system names it, else the architecture."""
    if sys.platform == "darwin":
        return _sysctl("machdep.cpu.brand_string") or platform.machine()
    return _cpuinfo("model name", root) or platform.machine()


def cpu_flags(root: Path = _ROOT) -> frozenset[str]:
    """Give the processor's instruction-set flags, in lower case and the Linux kernel's spelling."""
    if sys.platform == "darwin":
        return _mac_flags()
    return frozenset((_cpuinfo("flags", root) or _cpuinfo("Features", root)).lower().split())


def simd_level(root: Path = _ROOT) -> SimdLevel:
    """Give the widest family of vector instructions that the processor has."""
    flags = cpu_flags(root)
    return next((level for level, needs in _SIMD_LEVELS if needs <= flags), "none")


def simd_features(root: Path = _ROOT) -> list[str]:
    """List the extensions that matter to numerical work, such as amx_bf16 and avx512_bf16."""
    flags = cpu_flags(root)
    return [name for name in _NOTABLE if name in flags]


def _cpuinfo(key: str, root: Path) -> str:
    for line in _lines(root / "proc/cpuinfo"):
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return ""


def _mac_flags() -> frozenset[str]:
    if platform.machine() == "arm64":
        features = {"hw.optional.arm.FEAT_BF16": "bf16", "hw.optional.arm.FEAT_I8MM": "i8mm"}
        return frozenset({"asimd"} | {f for key, f in features.items() if _sysctl(key) == "1"})
    words = f"{_sysctl('machdep.cpu.features')} {_sysctl('machdep.cpu.leaf7_features')}"
    # macOS writes AVX1.0 for avx.
    return frozenset(words.lower().replace("avx1.0", "avx").split())


def _sysctl(key: str) -> str:
    return _output("sysctl", "-n", key) or ""


# ---- GPUs


def gpus() -> list[Gpu]:
    """List the GPUs that this process may use, in torch's order, without importing torch.

    NVIDIA GPUs come from the CUDA driver (so CUDA_VISIBLE_DEVICES and MIG are honoured), asked in a
    process of its own; an Apple GPU shares the machine's memory. Other makes are not looked for.
    """
    if sys.platform == "darwin":
        if platform.machine() != "arm64":
            return []
        return [Gpu("mps", cpu_name(), _physical_memory() or 0, None)]
    printed = _output(sys.executable, "-I", "-S", str(Path(__file__).with_name("_cuda.py")))
    return [
        Gpu(f"cuda:{row['index']}", row["name"], row["memory_bytes"], row["capability"])
        for row in json.loads(printed or "[]")
    ]


def _output(*command: str) -> str | None:
    """Run a command that only reads, and give what it prints; None when it fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        logger.debug("%s: %s", command[0], error)
        return None
    return done.stdout.strip() if done.returncode == 0 else None


# ---- what to compute with


def pick_device(name: str = "auto") -> torch.device:
    """Choose the torch device: `auto` (CUDA, else MPS, else CPU), cpu, cuda, cuda:N or mps.

    Raises `MissingError` without torch and `UsageError` for a device that is not here.
    """
    _need_torch()
    import torch

    kind, _, index = name.partition(":")
    if kind not in ("auto", "cpu", "cuda", "mps") or (index and kind != "cuda"):
        raise UsageError(f"no device is called {name!r} (one of auto, cpu, cuda, cuda:N, mps)")
    if ":" in name and not (index.isascii() and index.isdigit()):
        raise UsageError(f"{name!r} does not number a CUDA GPU (as cuda:0 does)")
    here = {
        "cuda": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "mps": int(torch.backends.mps.is_available()),
        "cpu": 1,
    }
    if kind == "auto":
        kind = next(device for device, count in here.items() if count)
    if here[kind] <= int(index or 0):
        known = [f"cuda:{i}" for i in range(here["cuda"])] + ["mps"] * here["mps"] + ["cpu"]
        raise UsageError(f"there is no device {name} here (there is {', '.join(known)})")
    return torch.device(f"{kind}:{int(index)}" if index else kind)


def pick_dtype(name: str = "auto", device: torch.device | str = "cpu") -> torch.dtype:
    """Choose the floating-point type: `auto`, fp32, bf16 or fp16.

    `auto` is bf16 where the device multiplies it faster than fp32 (a CPU with AMX or AVX-512 BF16,
    a CUDA GPU of compute capability 8.0 or more), else fp32. Raises `MissingError` without torch
    and `UsageError` for another name.
    """
    _need_torch()
    import torch

    dtypes = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
    if name == "auto":
        name = "bf16" if _has_fast_bf16(torch.device(device)) else "fp32"
    if name not in dtypes:
        raise UsageError(f"no dtype is called {name!r} (one of auto, {', '.join(dtypes)})")
    return dtypes[name]


def _has_fast_bf16(device: torch.device) -> bool:
    import torch

    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= _FAST_BF16_CAPABILITY
    return device.type == "cpu" and bool(cpu_flags() & _FAST_BF16)


def _need_torch() -> None:
    if find_spec("torch") is None:
        raise MissingError(
            "this needs torch, which is not installed; add it to this environment: "
            f"uv pip install --python {sys.executable} torch"
        )


# ---- all of it, as records


def describe() -> list[dict[str, Any]]:
    """Give one record for the CPU and one for each GPU, all with the same keys."""
    memory = memory_limit()
    flags = cpu_flags()
    cpu = {
        "device": "cpu",
        "name": cpu_name(),
        "cores": cores(),
        "memory_mib": None if memory is None else memory >> 20,
        "simd": simd_level(),
        "features": simd_features(),
        "capability": None,
        "fast_bf16": bool(flags & _FAST_BF16),
    }
    return [cpu, *(_gpu_record(gpu) for gpu in gpus())]


def _gpu_record(gpu: Gpu) -> dict[str, Any]:
    capability = tuple(int(part) for part in (gpu.capability or "0").split("."))
    return {
        "device": gpu.device,
        "name": gpu.name,
        "cores": None,
        "memory_mib": gpu.memory_bytes >> 20,
        "simd": None,
        "features": [],
        "capability": gpu.capability,
        "fast_bf16": capability >= _FAST_BF16_CAPABILITY,
    }

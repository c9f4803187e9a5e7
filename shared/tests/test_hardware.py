"""What this process may use, read from made-up system trees and a made-up CUDA driver."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from papercuts import hardware
from papercuts.errors import MissingError, UsageError

GIB = 1 << 30
V2 = "30 24 0:26 {root} {point} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"
V1 = "33 32 0:30 {root} {point} rw,nosuid - cgroup cgroup rw,{controllers}"


@pytest.fixture
def eight_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(8)), raising=False)


@pytest.fixture
def tree(tmp_path):
    """Write a system tree: the process's groups, the mounts, and the groups' files."""

    def write(cgroup: str, mounts: list[str], files: dict[str, str]) -> Path:
        proc = tmp_path / "proc" / "self"
        proc.mkdir(parents=True)
        (proc / "cgroup").write_text(cgroup + "\n")
        ext4 = "21 1 8:1 / / rw - ext4 /dev/sda1 rw"
        (proc / "mountinfo").write_text("\n".join([ext4, *mounts]) + "\n")
        for name, text in files.items():
            path = tmp_path / "sys/fs/cgroup" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
        return tmp_path

    return write


def v2(root="/", point="/sys/fs/cgroup"):
    return [V2.format(root=root, point=point)]


def v1(controllers, root="/"):
    point = f"/sys/fs/cgroup/{controllers}"
    return [V1.format(root=root, point=point, controllers=controllers)]


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({}, 8, id="no group files"),
        pytest.param({"user/job/cpu.max": "max 100000"}, 8, id="max"),
        pytest.param({"user/job/cpu.max": "200000 100000"}, 2, id="whole quota"),
        pytest.param({"user/job/cpu.max": "250000 100000"}, 3, id="fraction rounds up"),
        pytest.param({"user/job/cpu.max": "5000 100000"}, 1, id="at least one"),
        pytest.param({"user/job/cpu.max": "1600000 100000"}, 8, id="more than the affinity"),
        pytest.param(
            {"user/job/cpu.max": "max 100000", "user/cpu.max": "300000 100000"}, 3, id="parent"
        ),
        pytest.param(
            {"user/job/cpu.max": "200000 100000", "user/cpu.max": "300000 100000"}, 2, id="child"
        ),
        pytest.param({"cpu.max": "100000 50000"}, 2, id="top of a container"),
        pytest.param({"other/cpu.max": "100000 100000"}, 8, id="another group's quota"),
        pytest.param({"user/job/cpu.max": "nonsense"}, 8, id="unreadable"),
    ],
)
def test_cores_under_cgroup_v2(tree, files, expected):
    assert hardware.cores(tree("0::/user/job", v2(), files)) == expected


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize(
    ("quota", "period", "expected"),
    [("-1", "100000", 8), ("150000", "100000", 2), ("400000", "100000", 4), ("1000", "100000", 1)],
)
def test_cores_under_cgroup_v1(tree, quota, period, expected):
    files = {
        "cpu,cpuacct/docker/ab/cpu.cfs_quota_us": quota,
        "cpu,cpuacct/docker/ab/cpu.cfs_period_us": period,
        "cpu,cpuacct/docker/cpu.cfs_quota_us": "-1",
    }
    groups = "4:memory:/docker/ab\n3:cpu,cpuacct:/docker/ab\n1:name=systemd:/x"
    assert hardware.cores(tree(groups, v1("cpu,cpuacct"), files)) == expected


@pytest.mark.usefixtures("eight_cores")
def test_a_v1_mount_that_begins_at_the_containers_own_group(tree):
    files = {"cpu/cpu.cfs_quota_us": "300000", "cpu/cpu.cfs_period_us": "100000"}
    assert hardware.cores(tree("3:cpu:/docker/ab", v1("cpu", root="/docker/ab"), files)) == 3


@pytest.mark.usefixtures("eight_cores")
def test_a_group_that_lies_outside_the_mount_shows_only_its_top(tree):
    files = {"cpu.max": "500000 100000", "elsewhere/cpu.max": "100000 100000"}
    assert hardware.cores(tree("0::/../elsewhere", v2(), files)) == 5


@pytest.mark.usefixtures("eight_cores")
def test_v1_and_v2_side_by_side(tree):
    """A hybrid system: v1 holds the controller, v2 is mounted elsewhere without it."""
    mounts = v1("cpu") + v2(point="/sys/fs/cgroup/unified")
    files = {
        "cpu/a/cpu.cfs_quota_us": "600000",
        "cpu/a/cpu.cfs_period_us": "100000",
        "unified/a/cgroup.procs": "1",
    }
    assert hardware.cores(tree("3:cpu:/a\n0::/a", mounts, files)) == 6


@pytest.mark.usefixtures("eight_cores")
def test_mount_points_with_spaces_are_unescaped(tree):
    mounts = [V2.format(root="/", point="/sys/fs/cgroup/my\\040groups")]
    assert hardware.cores(tree("0::/", mounts, {"my groups/cpu.max": "200000 100000"})) == 2


def test_cores_without_affinity_or_control_groups(monkeypatch, tmp_path):
    """As on macOS: neither /proc nor sched_getaffinity."""
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 10)
    assert hardware.cores(tmp_path) == 10
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert hardware.cores(tmp_path) == 1


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no CPU affinity here")
def test_cores_follow_the_real_affinity():
    one = min(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, {{{one}}})\n"
    code += "from papercuts.hardware import cores; print(cores())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 64 * GIB),
        ({"a/b/memory.max": "max"}, 64 * GIB),
        ({"a/b/memory.max": str(3 * GIB)}, 3 * GIB),
        ({"a/b/memory.max": "max", "a/memory.max": str(5 * GIB)}, 5 * GIB),
        ({"a/b/memory.max": str(128 * GIB)}, 64 * GIB),
    ],
)
def test_memory_under_cgroup_v2(tree, monkeypatch, files, expected):
    monkeypatch.setattr(hardware, "_physical_memory", lambda: 64 * GIB)
    assert hardware.memory_limit(tree("0::/a/b", v2(), files)) == expected


@pytest.mark.parametrize("physical", [64 * GIB, None])
@pytest.mark.parametrize("limit", [2 * GIB, 9223372036854771712])
def test_memory_under_cgroup_v1(tree, monkeypatch, physical, limit):
    monkeypatch.setattr(hardware, "_physical_memory", lambda: physical)
    files = {"memory/a/memory.limit_in_bytes": str(limit)}
    expected = limit if limit < GIB * 3 else physical
    assert hardware.memory_limit(tree("9:memory:/a", v1("memory"), files)) == expected


def test_physical_memory_is_what_the_kernel_says():
    meminfo = Path("/proc/meminfo")
    if not meminfo.exists():
        pytest.skip("no /proc here")
    kib = int(meminfo.read_text().split("MemTotal:")[1].split()[0])
    assert hardware._physical_memory() == kib * 1024


CPUS = {
    "Intel Sapphire Rapids": (
        "model name\t: Xeon\nflags\t\t: fpu sse2 avx f16c fma avx2 avx512f avx512dq avx512bw "
        "avx512vl avx512_bf16 amx_bf16 amx_tile",
        "avx512",
        ["amx_bf16", "avx512_bf16", "fma", "f16c"],
    ),
    "AVX-512 without its common parts": ("flags : sse2 avx avx2 fma avx512f", "avx2", ["fma"]),
    "AVX2 without FMA": ("flags : sse2 avx avx2", "avx", []),
    "old x86": ("flags : fpu sse sse2", "sse", []),
    "Arm Graviton 3": (
        "processor : 0\nFeatures : fp asimd asimdhp asimddp sve i8mm bf16",
        "sve",
        ["bf16", "i8mm", "asimddp", "asimdhp"],
    ),
    "Arm Cortex-A72": ("Features : fp ASIMD aes", "neon", []),
    "something else": ("cpu : POWER9", "none", []),
}


@pytest.mark.parametrize(("cpuinfo", "level", "features"), CPUS.values(), ids=CPUS)
def test_simd(tmp_path, monkeypatch, cpuinfo, level, features):
    monkeypatch.setattr(sys, "platform", "linux")
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(cpuinfo + "\n")
    assert hardware.simd_level(tmp_path) == level
    assert hardware.simd_features(tmp_path) == features


def test_a_mac_is_asked_by_sysctl(monkeypatch, tmp_path):
    answers = {
        "machdep.cpu.brand_string": "Apple M3",
        "hw.optional.arm.FEAT_BF16": "1",
        "hw.optional.arm.FEAT_I8MM": "0",
    }
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    monkeypatch.setattr(hardware, "_output", lambda *command: answers.get(command[-1]))
    monkeypatch.setattr(hardware, "_physical_memory", lambda: 16 * GIB)
    assert hardware.simd_level(tmp_path) == "neon"
    assert hardware.simd_features(tmp_path) == ["bf16"]
    assert hardware.gpus() == [hardware.Gpu("mps", "Apple M3", 16 * GIB, None)]
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    answers |= {
        "machdep.cpu.features": "FPU SSE2 AVX1.0 FMA",
        "machdep.cpu.leaf7_features": "BMI1 AVX2",
    }
    assert hardware.simd_level(tmp_path) == "avx2"
    assert hardware.gpus() == []


DRIVER = textwrap.dedent(
    """
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    int cuInit(unsigned f) {
        if (getenv("FAKE_HANG")) sleep(60);
        if (getenv("FAKE_CRASH")) abort();
        return getenv("FAKE_NONE") ? 100 : 0;
    }
    int cuDeviceGetCount(int *n) { *n = 2; return 0; }
    int cuDeviceGet(int *d, int i) { *d = 40 + i; return 0; }
    int cuDeviceGetName(char *s, int n, int d) {
        strncpy(s, d == 40 ? "Big GPU" : "Small GPU", n);
        return 0;
    }
    int cuDeviceTotalMem_v2(size_t *m, int d) {
        *m = (d == 40 ? (size_t)139 : (size_t)8) << 30;
        return 0;
    }
    int cuDeviceGetAttribute(int *v, int a, int d) {
        *v = a == 75 ? (d == 40 ? 9 : 7) : (a == 76 ? (d == 40 ? 0 : 5) : -1);
        return 0;
    }
    """
)


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """A CUDA driver with two GPUs, in a folder for LD_LIBRARY_PATH."""
    if shutil.which("cc") is None or sys.platform != "linux":
        pytest.skip("needs a C compiler on Linux")
    folder = tmp_path_factory.mktemp("driver")
    (folder / "driver.c").write_text(DRIVER)
    library, source = str(folder / "libcuda.so.1"), str(folder / "driver.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    return folder


def test_gpus_come_from_the_driver(driver, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", str(driver))
    assert hardware.gpus() == [
        hardware.Gpu("cuda:0", "Big GPU", 139 * GIB, "9.0"),
        hardware.Gpu("cuda:1", "Small GPU", 8 * GIB, "7.5"),
    ]
    cpu, big, small = hardware.describe()
    assert cpu.keys() == big.keys() == small.keys()
    assert (big["memory_mib"], big["fast_bf16"]) == (139 * 1024, True)
    assert (small["memory_mib"], small["fast_bf16"]) == (8 * 1024, False)


@pytest.mark.parametrize("fault", ["FAKE_NONE", "FAKE_CRASH", "FAKE_HANG"])
def test_a_driver_that_fails_shows_no_gpu(driver, monkeypatch, fault):
    monkeypatch.setenv("LD_LIBRARY_PATH", str(driver))
    monkeypatch.setenv(fault, "1")
    monkeypatch.setattr(hardware, "_PROBE_TIMEOUT_S", 0.5 if fault == "FAKE_HANG" else 20)
    assert hardware.gpus() == []


def test_describe_agrees_with_its_parts():
    cpu = hardware.describe()[0]
    assert cpu["cores"] == hardware.cores()
    assert cpu["memory_mib"] == hardware.memory_limit() // (1 << 20)
    assert cpu["simd"] == hardware.simd_level()


@pytest.fixture
def machine(monkeypatch):
    """Pretend that torch sees so many CUDA GPUs of a capability, and an Apple GPU or not."""
    torch = pytest.importorskip("torch")

    def pretend(cuda=0, capability=(9, 0), mps=False, cpu=()):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: capability)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
        monkeypatch.setattr(hardware, "cpu_flags", lambda: frozenset(cpu))
        return torch

    return pretend


@pytest.mark.parametrize(
    ("here", "name", "expected"),
    [
        ({}, "auto", "cpu"),
        ({"mps": True}, "auto", "mps"),
        ({"cuda": 1, "mps": True}, "auto", "cuda"),
        ({"cuda": 2}, "cuda:1", "cuda:1"),
        ({"cuda": 2}, "cuda", "cuda"),
        ({"cuda": 2}, "cpu", "cpu"),
        ({"mps": True}, "mps", "mps"),
    ],
)
def test_pick_device(machine, here, name, expected):
    torch = machine(**here)
    assert hardware.pick_device(name) == torch.device(expected)


@pytest.mark.parametrize(
    ("here", "name", "message"),
    [
        ({}, "cuda", r"no device cuda here \(there is cpu\)"),
        ({}, "mps", r"no device mps here \(there is cpu\)"),
        ({"cuda": 2}, "cuda:2", r"no device cuda:2 here \(there is cuda:0, cuda:1, cpu\)"),
        ({"cuda": 2}, "cuda:x", "does not number a CUDA GPU"),
        ({"cuda": 2}, "cuda:-1", "does not number a CUDA GPU"),
        ({"cuda": 2}, "cuda:", "does not number a CUDA GPU"),
        ({}, "gpu", "no device is called 'gpu'"),
        ({}, "cpu:0", "no device is called 'cpu:0'"),
        ({}, "", "no device is called ''"),
    ],
)
def test_a_device_that_is_not_there_is_wrong_usage(machine, here, name, message):
    machine(**here)
    with pytest.raises(UsageError, match=message):
        hardware.pick_device(name)


@pytest.mark.parametrize(
    ("here", "device", "expected"),
    [
        ({"cpu": ["avx512_bf16"]}, "cpu", "bfloat16"),
        ({"cpu": ["amx_bf16"]}, "cpu", "bfloat16"),
        ({"cpu": ["avx2", "avx512f"]}, "cpu", "float32"),
        ({"cuda": 1, "capability": (8, 0)}, "cuda", "bfloat16"),
        ({"cuda": 1, "capability": (10, 3)}, "cuda:0", "bfloat16"),
        ({"cuda": 1, "capability": (7, 5), "cpu": ["amx_bf16"]}, "cuda", "float32"),
        ({"mps": True, "cpu": ["bf16"]}, "mps", "float32"),
    ],
)
def test_auto_dtype_is_bf16_where_it_is_fast(machine, here, device, expected):
    torch = machine(**here)
    assert hardware.pick_dtype("auto", torch.device(device)) == getattr(torch, expected)


def test_named_dtypes(machine):
    torch = machine()
    named = [hardware.pick_dtype(name, "cpu") for name in ("fp32", "bf16", "fp16")]
    assert named == [torch.float32, torch.bfloat16, torch.float16]
    with pytest.raises(UsageError, match="no dtype is called 'fp8'"):
        hardware.pick_dtype("fp8", "cpu")


def test_without_torch_the_message_says_how_to_add_it(monkeypatch):
    monkeypatch.setattr(hardware, "find_spec", lambda _name: None)
    for pick in (hardware.pick_device, hardware.pick_dtype):
        with pytest.raises(MissingError, match=r"torch.*uv pip install --python .* torch"):
            pick("auto")


def test_reading_the_hardware_imports_neither_torch_nor_numpy():
    code = "import sys; from papercuts.hardware import describe; describe()\n"
    code += "print(sorted({'torch', 'numpy', 'rich'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

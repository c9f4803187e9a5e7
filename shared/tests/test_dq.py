"""`dq_accumulate`: the bits of a sum in a fixed order, in PyTorch and in Triton."""

import importlib.util
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

from papercuts.kernels.csr import NeighbourLists  # noqa: E402
from papercuts.kernels.dq import accumulate_dq  # noqa: E402

CASES_FILE = Path(__file__).with_name("dq_cases.py")
_spec = importlib.util.spec_from_file_location("dq_cases", CASES_FILE)
cases = importlib.util.module_from_spec(_spec)
sys.modules["dq_cases"] = cases  # dataclasses look their module up
_spec.loader.exec_module(cases)


def by_numpy(case):
    """Add one tile after another with numpy's fp32, each list by itself."""
    _, tiles = cases.inputs(case)
    sums = []
    for tasks in case.lists:
        total = np.zeros((case.block_m, case.width), dtype=np.float32)
        for task in tasks:
            total = total + tiles[task].float().numpy()
        sums.append(total)
    shape = (case.heads, len(case.lists) // case.heads * case.block_m, case.width)
    return torch.from_numpy(np.array(sums, dtype=np.float32).reshape(shape))


def same_bits(a, b):
    return torch.equal(a.view(torch.int32), b.view(torch.int32))


@pytest.mark.parametrize("name", cases.CASES)
def test_the_reference_adds_in_the_order_of_the_lists(name):
    case = cases.CASES[name]
    out = cases.run(case, "reference")
    assert out.dtype == torch.float32
    assert out.shape == by_numpy(case).shape
    assert same_bits(out, by_numpy(case))


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory):
    """Two runs of every case by Triton's interpreter, in a process of its own."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed")
    path = tmp_path_factory.mktemp("dq") / "runs.pt"
    done = subprocess.run(
        [sys.executable, "-W", "error", str(CASES_FILE), str(path)],
        env={**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return torch.load(path, weights_only=True)


@pytest.mark.parametrize("name", cases.CASES)
def test_triton_gives_the_bits_of_the_reference_on_every_run(interpreted, name):
    first, second = interpreted[name]
    assert same_bits(first, second)
    assert same_bits(first, cases.run(cases.CASES[name], "reference"))


def test_another_order_gives_other_bits():
    """Else the tests above would pass whatever the order."""
    case = cases.CASES["cyclic shift, full"]
    lists, tiles = cases.inputs(case)
    back = [task for tasks in case.lists for task in reversed(tasks)]
    turned = NeighbourLists(lists.indptr, torch.tensor(back), lists.sources)
    one, other = (accumulate_dq(which, tiles, 2) for which in (lists, turned))
    assert not same_bits(one, other)
    assert torch.allclose(one, other, atol=1e-5)


COMPILE = textwrap.dedent(
    """
    import sys
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from papercuts.kernels.dq_triton import _accumulate

    for value, index, capability in (("bf16", "i64", 80), ("fp32", "i32", 90), ("fp16", "i32", 75)):
        signature = {
            "out": "*fp32", "tiles": "*" + value, "indptr": "*" + index, "order": "*" + index,
            "elements": "i32", "BLOCK": "constexpr",
        }
        compiled = triton.compile(
            ASTSource(_accumulate, signature, {"BLOCK": 1024}),
            target=GPUTarget("cuda", capability, 32),
            options={"num_warps": 4, "enable_fp_fusion": False},
        )
        assert compiled.asm["cubin"]
        print(*{line.split()[0] for line in compiled.asm["ptx"].splitlines() if line.strip()})
    """
)


@pytest.mark.slow
def test_triton_compiles_for_gpus(tmp_path):
    """The interpreter takes Python that the compiler refuses, so compile; this needs no GPU."""
    pytest.importorskip("triton")
    env = {key: text for key, text in os.environ.items() if key != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-c", COMPILE],
        env={**env, "TRITON_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for instructions in done.stdout.splitlines():
        names = instructions.split()
        assert "add.f32" in names or "add.rn.f32" in names
        # No atomics, no fused multiply-add, and subnormals are kept.
        assert not [n for n in names if n.startswith(("atom", "red.", "fma", "mma", "add.ftz"))]


@pytest.mark.parametrize(
    ("tiles", "heads", "message"),
    [
        (torch.zeros(2, 4), 1, r"tiles must be \[2, block_m, width\], one tile a task, not \[2, 4"),
        (torch.zeros(3, 4, 4), 1, r"tiles must be \[2, block_m"),
        (torch.zeros(2, 4, 4, dtype=torch.float64), 1, "one of float16, bfloat16, float32, not fl"),
        (torch.zeros(2, 4, 4, device="meta"), 1, "tiles are on meta, the lists on cpu"),
        (torch.zeros(2, 4, 4), 2, "3 lists are not the same number for each of 2 heads"),
        (torch.zeros(2, 4, 4), 0, "each of 0 heads"),
    ],
)
def test_wrong_tiles(tiles, heads, message):
    lists = NeighbourLists(torch.tensor([0, 1, 1, 2]), torch.tensor([1, 0]), 2)
    with pytest.raises(ValueError, match=message):
        accumulate_dq(lists, tiles, heads)

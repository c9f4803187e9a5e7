"""The registry of kernels, and `csr_mean` against a float64 oracle, in PyTorch and in Triton."""

import importlib.util
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papercuts import kernels
from papercuts.errors import MissingError, UsageError

torch = pytest.importorskip("torch")

from papercuts.kernels.csr import (  # noqa: E402
    NeighbourLists,
    csr_mean,
    sum_by_index_add,
    sum_reference,
)

CASES_FILE = Path(__file__).with_name("csr_cases.py")
_spec = importlib.util.spec_from_file_location("csr_cases", CASES_FILE)
cases = importlib.util.module_from_spec(_spec)
sys.modules["csr_cases"] = cases  # dataclasses look their module up
_spec.loader.exec_module(cases)


# ---- csr_mean: values and gradients


@pytest.mark.parametrize("name", cases.CASES)
def test_the_reference_matches_the_oracle(name):
    case = cases.CASES[name]
    for part, error in cases.errors(case, "reference").items():
        assert error <= cases.tolerance(case), part


@pytest.fixture(scope="module")
def interpreted():
    """Errors of the Triton version, from Triton's interpreter in a process of its own."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(CASES_FILE), "triton"],
        env={**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", cases.CASES)
def test_triton_matches_the_oracle(interpreted, name):
    case = cases.CASES[name]
    allowed = cases.tolerance(case)
    if case.dtype == torch.bfloat16:
        # Triton's interpreter cuts fp32 off to bf16; a GPU rounds, which errs half as much.
        allowed *= 2
    for part, error in interpreted[name].items():
        assert error <= allowed, part


def test_the_second_derivative_matches_the_oracle(interpreted):
    assert cases.second_derivative_error("reference") < 1e-14
    assert interpreted["second derivative"]["error"] < 1e-14


COMPILE = textwrap.dedent(
    """
    import json, sys
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from papercuts.kernels.csr_triton import _sum_lists

    def instructions(value, index, given, capability):
        signature = dict.fromkeys(_sum_lists.arg_names, "i32") | {
            "out": "*" + value, "x": "*" + value, "indptr": "*" + index, "indices": "*" + index,
        }
        wide = value == "fp64"
        constants = {
            "x_column_stride": 1, "ACCUMULATOR": tl.float64 if wide else tl.float32,
            "BLOCK_EDGES": 16, "BLOCK_FEATURES": 64,
        }
        for divisor in ("row_divisor", "source_divisor"):
            if divisor == given:
                signature[divisor] = "*fp64" if wide else "*fp32"
            else:
                constants[divisor] = None
        signature |= dict.fromkeys(constants, "constexpr")
        compiled = triton.compile(
            ASTSource(_sum_lists, signature, constants),
            target=GPUTarget("cuda", capability, 32),
            options={"num_warps": 4, "enable_fp_fusion": False},
        )
        assert compiled.asm["cubin"]
        lines = compiled.asm["ptx"].splitlines()
        return sorted({line.split()[0] for line in lines if line.strip()})

    json.dump([instructions(*variant) for variant in json.loads(sys.argv[1])], sys.stdout)
    """
)
VARIANTS = [
    ("bf16", "i64", "row_divisor", 80),
    ("bf16", "i32", "source_divisor", 90),
    ("fp16", "i32", "source_divisor", 75),
    ("fp32", "i64", "source_divisor", 90),
    ("fp64", "i64", "row_divisor", 90),
]


@pytest.mark.slow
def test_triton_compiles_for_gpus(tmp_path):
    """The interpreter takes Python that the compiler refuses, so compile; this needs no GPU."""
    pytest.importorskip("triton")
    env = {key: text for key, text in os.environ.items() if key != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-c", COMPILE, json.dumps(VARIANTS)],
        env={**env, "TRITON_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for (value, *_), names in zip(VARIANTS, json.loads(done.stdout), strict=True):
        assert not [name for name in names if name.startswith(("atom", "red.", "mma", "wgmma"))]
        if value in ("bf16", "fp16"):  # the result is rounded, not cut off
            assert [name for name in names if name.startswith(f"cvt.rn.{value.replace('fp', 'f')}")]


@pytest.mark.slow
def test_the_reference_passes_gradcheck():
    case = cases.Case(cases.MIXED, 6, 3, dtype=torch.float64)
    lists = NeighbourLists(*cases.graph(case), sources=6)
    x = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: lists.mean(x).square(), (x,))
    assert torch.autograd.gradgradcheck(lambda x: lists.mean(x).square(), (x,))


@st.composite
def graphs(draw):
    sources = draw(st.integers(1, 6))
    lists = draw(st.lists(st.lists(st.integers(0, sources - 1), max_size=8), max_size=6))
    indptr = torch.tensor([0] + [len(one) for one in lists]).cumsum(0)
    indices = torch.tensor([j for one in lists for j in one], dtype=torch.int64)
    values = draw(st.lists(st.integers(-9, 9), min_size=sources, max_size=sources))
    return indptr, indices, torch.tensor(values, dtype=torch.float64)[:, None], lists


@settings(max_examples=30, deadline=None)
@given(graphs())
def test_any_graph_averages_as_python_does(graph):
    indptr, indices, x, lists = graph
    out = csr_mean(indptr, indices, x)
    expected = [sum(float(x[j, 0]) for j in one) / len(one) if one else 0.0 for one in lists]
    assert out[:, 0].tolist() == pytest.approx(expected, rel=1e-15)


@settings(max_examples=30, deadline=None)
@given(graphs())
def test_transposing_twice_gives_the_lists_sorted(graph):
    indptr, indices, x, lists = graph
    there = NeighbourLists(indptr, indices, len(x))
    back = there.transposed.transposed
    assert (there.transposed.rows, there.transposed.sources) == (len(x), len(lists))
    assert back.indptr.tolist() == indptr.tolist()
    assert back.indices.tolist() == [j for one in lists for j in sorted(one)]


def random_lists(rows=500, sources=400, edges=6000, index=torch.int64):
    generator = torch.Generator().manual_seed(3)
    owners = torch.randint(rows, (edges,), generator=generator)
    indptr = torch.cat([torch.zeros(1, dtype=index), torch.bincount(owners, minlength=rows)])
    indices = torch.randint(sources, (edges,), generator=generator).to(index)
    return NeighbourLists(indptr.cumsum(0).to(index), indices, sources)


def test_the_way_for_other_devices_gives_the_same_sums():
    lists = random_lists()
    x = torch.randn(lists.sources, 9, dtype=torch.float64)
    difference = sum_by_index_add(lists, x) - sum_reference(lists, x, None, None)
    assert float(difference.abs().max()) < 1e-13


def test_values_and_gradients_are_the_same_bits_on_any_number_of_threads():
    lists, results = random_lists(), []
    x = torch.randn(lists.sources, 32, requires_grad=True)
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 1):
            torch.set_num_threads(threads)
            out = lists.mean(x)
            (grad,) = torch.autograd.grad(out.square().sum(), x)
            results.append((out.detach(), grad))
    finally:
        torch.set_num_threads(before)
    for out, grad in results[1:]:
        assert torch.equal(out, results[0][0])
        assert torch.equal(grad, results[0][1])


def test_lists_are_transposed_once_and_only_for_a_gradient():
    lists = random_lists()
    x = torch.randn(lists.sources, 4, requires_grad=True)
    out = lists.mean(x)
    assert "transposed" not in vars(lists)
    out.sum().backward()
    kept = vars(lists)["transposed"]
    lists.mean(x).sum().backward()
    assert lists.transposed is kept


def test_int32_lists_stay_int32():
    lists = random_lists(index=torch.int32)
    assert lists.transposed.indptr.dtype == lists.transposed.indices.dtype == torch.int32


# ---- csr_mean: input that cannot be meant

INDPTR, INDICES = torch.tensor([0, 2, 3]), torch.tensor([0, 1, 1])
WRONG_LISTS = {
    "indptr must be one-dimensional and int32 or int64, not float32": (INDPTR.float(), INDICES, 2),
    "indices must be one-dimensional and int32 or int64, not int16": (INDPTR, INDICES.short(), 2),
    r"indices must be one-dimensional .* of shape \(1, 3\)": (INDPTR, INDICES[None], 2),
    "indptr must have one entry more": (INDPTR[:0], INDICES, 2),
    "number of sources cannot be -1": (INDPTR, INDICES, -1),
    "begin with 0 and end with the number of indices, 3, but goes from 0 to 2": (
        torch.tensor([0, 1, 2]),
        INDICES,
        2,
    ),
    "but goes from 1 to 3": (torch.tensor([1, 2, 3]), INDICES, 2),
    "must not decrease, but does after entry 1": (torch.tensor([0, 2, 1, 3]), INDICES, 2),
    "indices must be from 0 to 0, but one is 1": (INDPTR, INDICES, 1),
    "indices must be from 0 to 1, but one is -1": (INDPTR, INDICES - 1, 2),
}


@pytest.mark.parametrize(("message", "arguments"), WRONG_LISTS.items(), ids=range(len(WRONG_LISTS)))
def test_wrong_lists(message, arguments):
    with pytest.raises(ValueError, match=message):
        NeighbourLists(*arguments)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.zeros(3, 4), r"x must be \[2, features\], one row a source, not \[3, 4\]"),
        (torch.zeros(2), r"x must be \[2, features\]"),
        (torch.zeros(2, 4, dtype=torch.int64), "x must be one of float16, .* not int64"),
        (torch.zeros(2, 4, dtype=torch.complex64), "not complex64"),
        (torch.zeros(2, 4, device="meta"), "x is on meta, the neighbour lists on cpu"),
    ],
)
def test_wrong_x(x, message):
    with pytest.raises(ValueError, match=message):
        NeighbourLists(INDPTR, INDICES, 2).mean(x)


def test_lists_on_two_devices():
    with pytest.raises(ValueError, match="indptr is on meta, indices on cpu"):
        NeighbourLists(INDPTR.to("meta"), INDICES, 2)


def test_csr_mean_takes_the_sources_from_x():
    with pytest.raises(ValueError, match="indices must be from 0 to 0"):
        csr_mean(INDPTR, INDICES, torch.zeros(1, 3))


# ---- the registry


@pytest.fixture
def registry(monkeypatch):
    """A kernel `probe` with both versions and one `plain` with a reference only; no variables."""
    monkeypatch.setattr(kernels, "_kernels", dict(kernels._kernels))
    monkeypatch.delenv(kernels.VARIABLE, raising=False)
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    kernels.register("probe", reference=lambda x: ("ref", x), triton=lambda x: ("tri", x))
    kernels.register("plain", reference=lambda x: ("ref", x))
    have_triton(monkeypatch, True)
    return kernels


def have_triton(monkeypatch, there):
    monkeypatch.setattr(kernels, "find_spec", lambda _name: object() if there else None)


@pytest.mark.parametrize(
    ("name", "device", "variable", "backend", "expected"),
    [
        ("probe", "cpu", None, None, "reference"),
        ("probe", "mps", None, None, "reference"),
        ("probe", "cuda", None, None, "triton"),
        ("probe", "cuda:1", "", None, "triton"),
        ("probe", torch.device("cuda", 0), "auto", None, "triton"),
        ("plain", "cuda", None, None, "reference"),
        ("probe", "cuda", "reference", None, "reference"),
        ("probe", "cuda", "triton", None, "triton"),
        ("probe", "cuda", "triton", "reference", "reference"),
        ("probe", "cuda", "reference", "triton", "triton"),
    ],
)
def test_which_version_runs(registry, monkeypatch, name, device, variable, backend, expected):
    if variable is not None:
        monkeypatch.setenv(kernels.VARIABLE, variable)
    assert registry.choose(name, device, backend) == expected
    assert registry.get(name, device, backend)(7) == (expected[:3], 7)


def test_without_triton_a_gpu_runs_the_reference(registry, monkeypatch):
    have_triton(monkeypatch, False)
    assert registry.choose("probe", "cuda") == "reference"
    with pytest.raises(MissingError, match="Triton is not installed"):
        registry.choose("probe", "cuda", "triton")


def test_forcing_what_cannot_run(registry, monkeypatch):
    with pytest.raises(MissingError, match="'plain' has no Triton version"):
        registry.choose("plain", "cuda", "triton")
    with pytest.raises(UsageError, match="Triton does not run on the device cpu"):
        registry.choose("probe", "cpu", "triton")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert registry.choose("probe", "cpu", "triton") == "triton"
    assert registry.choose("probe", "cpu") == "reference"


def test_unknown_words(registry, monkeypatch):
    with pytest.raises(LookupError, match=r"no kernel is called 'prob' \(there is csr_mean, dq_"):
        registry.get("prob")
    with pytest.raises(UsageError, match="the argument backend is 'cuda'"):
        registry.choose("probe", backend="cuda")
    monkeypatch.setenv(kernels.VARIABLE, "tritn")
    with pytest.raises(UsageError, match="PAPERCUTS_KERNELS is 'tritn'"):
        registry.choose("probe")


def test_call_goes_by_the_device_of_its_arguments(registry):
    assert registry.call("probe", torch.zeros(1, device="meta"))[0] == "ref"
    assert registry.call("probe", 3, device="cuda") == ("tri", 3)
    with pytest.raises(ValueError, match="no argument is on a device"):
        registry.call("probe", 3)


def test_registering_twice(registry):
    registry.register("lazy", reference="os.path:join")
    registry.register("lazy", reference="os.path:join")
    with pytest.raises(ValueError, match="another kernel is called 'lazy' already"):
        registry.register("lazy", reference="os.path:split")
    for wrong in ("os.path", "os.path:", ":join"):
        with pytest.raises(ValueError, match="is not MODULE:FUNCTION"):
            registry.register("wrong", reference=wrong)
    assert registry.names() == ["csr_mean", "dq_accumulate", "lazy", "plain", "probe"]


def test_implementations_are_imported_upon_first_use(tmp_path):
    (tmp_path / "heavy_reference.py").write_text("def f(x): return x + 1\n")
    (tmp_path / "heavy_triton.py").write_text("raise RuntimeError('imported')\n")
    code = textwrap.dedent(
        """
        import sys
        from papercuts import kernels
        kernels.register("heavy", reference="heavy_reference:f", triton="heavy_triton:f")
        kernels.choose("heavy")
        kernels.choose("csr_mean")
        print(sorted({"torch", "triton", "heavy_reference"} & set(sys.modules)))
        print(kernels.get("heavy")(1))
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["[]", "2"]

"""Neighbour lists of every awkward kind, and how far `csr_mean` is from a float64 oracle on them.

`test_kernels.py` loads this file for the reference, and runs it as a program, with
TRITON_INTERPRET=1, for the Triton version: the interpreter must be chosen before Triton is
imported. The program prints a JSON object, case name to errors.

The oracle is the dense matrix A with A[i, j] = (how often row i lists j) / (length of list i), made
by a loop: out = A x, grad = A^T g. Errors are relative to |A| |x|, so that cancellation cannot hide
or fake one. No case uses `tl.dot`, because the kernel has none.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch

from papercuts.kernels.csr import csr_mean

# Half a unit in the last place: one rounding, of a sum that was kept in fp32 or better.
ROUNDING = {
    torch.bfloat16: 2.0**-8,
    torch.float16: 2.0**-11,
    torch.float32: 2.0**-24,
    torch.float64: 2.0**-53,
}


def plain(x: torch.Tensor) -> torch.Tensor:
    return x


def sliced(x: torch.Tensor) -> torch.Tensor:
    wide = torch.full((x.shape[0] * 2, x.shape[1] * 3), torch.nan, dtype=x.dtype)
    wide[::2, 1::3] = x
    return wide[::2, 1::3]


def turned(x: torch.Tensor) -> torch.Tensor:
    return x.t().contiguous().t()


@dataclass(frozen=True)
class Case:
    degrees: list[int]
    sources: int
    features: int
    dtype: torch.dtype = torch.float32
    index: tuple[torch.dtype, torch.dtype] = (torch.int64, torch.int64)
    layout: Callable[[torch.Tensor], torch.Tensor] = plain
    scale: float = 1.0


def tolerance(case: Case) -> float:
    """Allow one rounding to the dtype, and before it one of the accumulator for each addition."""
    accumulator = torch.float64 if case.dtype == torch.float64 else torch.float32
    return 1.01 * ROUNDING[case.dtype] + (4 + sum(case.degrees)) * ROUNDING[accumulator]


MIXED = [3, 0, 1, 7, 0, 0, 2, 5, 0]
CASES = {
    "mixed": Case(MIXED, 6, 5),
    "one row": Case([4], 9, 8),
    "one edge": Case([1], 1, 1),
    "empty rows only": Case([0, 0, 0], 4, 3),
    "no rows": Case([], 4, 3),
    "no sources": Case([0, 0], 0, 3),
    "no features": Case(MIXED, 6, 0),
    "one feature": Case(MIXED, 6, 1),
    "odd features": Case(MIXED, 6, 33),
    "two blocks of features": Case([2, 0, 5], 4, 130),
    "a long list among short ones": Case([1, 700, 0, 2], 7, 6),
    "a source listed often": Case([300], 1, 3),
    "lists of a block's length": Case([4, 8, 16, 32, 33], 7, 4),
    "int32": Case(MIXED, 6, 5, index=(torch.int32, torch.int32)),
    "int32 and int64": Case(MIXED, 6, 5, index=(torch.int32, torch.int64)),
    "sliced x": Case(MIXED, 6, 5, layout=sliced),
    "transposed x": Case(MIXED, 6, 5, layout=turned),
    "bf16": Case([*MIXED, 64], 6, 17, dtype=torch.bfloat16),
    "fp16": Case([*MIXED, 64], 6, 17, dtype=torch.float16),
    # The sum of 200 such values is past fp16's largest number, 65504; their mean is not.
    "fp16 near its limit": Case([200], 5, 4, dtype=torch.float16, scale=10_000.0),
    "fp64": Case([*MIXED, 64], 6, 17, dtype=torch.float64),
    "bf16 sliced": Case(MIXED, 6, 5, dtype=torch.bfloat16, layout=sliced),
}


def graph(case: Case, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw neighbour lists of the case's degrees."""
    generator = torch.Generator().manual_seed(seed)
    indptr = torch.tensor([0, *case.degrees]).cumsum(0)
    indices = torch.randint(max(1, case.sources), (sum(case.degrees),), generator=generator)
    return indptr.to(case.index[0]), indices.to(case.index[1])


def dense(indptr: torch.Tensor, indices: torch.Tensor, sources: int) -> torch.Tensor:
    """Make the oracle's matrix, [rows, sources] in float64."""
    matrix = torch.zeros(len(indptr) - 1, sources, dtype=torch.float64)
    for row in range(len(indptr) - 1):
        neighbours = indices[int(indptr[row]) : int(indptr[row + 1])].tolist()
        for source in neighbours:
            matrix[row, source] += 1 / len(neighbours)
    return matrix


def relative_error(got: torch.Tensor, matrix: torch.Tensor, values: torch.Tensor) -> float:
    """Largest error of `got` against matrix @ values, relative to |matrix| @ |values|."""
    exact = matrix @ values.double()
    scale = matrix @ values.double().abs()
    error = (got.double() - exact).abs()
    if bool((error[scale == 0] != 0).any()) or bool(error.isnan().any()):
        return float("inf")
    return max((error / scale)[scale > 0].tolist(), default=0.0)


def errors(case: Case, backend: str) -> dict[str, float]:
    """Run a case forward and backward, with a dense gradient and with an expanded one."""
    generator = torch.Generator().manual_seed(1)
    indptr, indices = graph(case)
    matrix = dense(indptr, indices, case.sources)
    shape = (case.sources, case.features)
    drawn = torch.randn(shape, generator=generator, dtype=torch.float64) + 0.5
    x = case.layout((drawn * case.scale).to(case.dtype)).detach().requires_grad_()
    out = csr_mean(indptr, indices, x, backend=backend)
    assert out.shape == (len(case.degrees), case.features)
    assert out.dtype == case.dtype
    grad = torch.randn(out.shape, generator=generator, dtype=torch.float64).to(case.dtype)
    ones = torch.ones(1, 1, dtype=case.dtype).expand(out.shape)
    # Scalars, because torch imports all of sympy for the gradient of anything else.
    (back,) = torch.autograd.grad((out * grad).sum(), x, retain_graph=True)
    (back_ones,) = torch.autograd.grad(out.sum(), x)  # this hands in an expanded gradient
    assert back.dtype == case.dtype
    return {
        "forward": relative_error(out.detach(), matrix, x.detach()),
        "backward": relative_error(back, matrix.t(), grad),
        "backward of ones": relative_error(back_ones, matrix.t(), ones),
    }


def second_derivative_error(backend: str) -> float:
    """Take the Hessian of sum(w * out**2) / 2 times a vector v: it is A^T (w * (A v))."""
    case = Case(MIXED, 6, 3, dtype=torch.float64)
    indptr, indices = graph(case)
    matrix = dense(indptr, indices, case.sources)
    generator = torch.Generator().manual_seed(2)
    x, v = torch.randn(2, 6, 3, dtype=torch.float64, generator=generator).unbind()
    w = torch.rand(len(MIXED), 3, dtype=torch.float64, generator=generator)
    x.requires_grad_()
    out = csr_mean(indptr, indices, x, backend=backend)
    (grad,) = torch.autograd.grad((w * out.square()).sum() / 2, x, create_graph=True)
    (product,) = torch.autograd.grad((grad * v).sum(), x)
    exact = matrix.t() @ (w * (matrix @ v))
    return float((product - exact).abs().max() / exact.abs().max())


def main(backend: str) -> None:
    result: dict[str, object] = {name: errors(case, backend) for name, case in CASES.items()}
    result["second derivative"] = {"error": second_derivative_error(backend)}
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])

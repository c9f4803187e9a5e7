"""The torch path gives NumPy's numbers, given NumPy's random numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from papercuts.errors import DataError, UsageError
from zoprox.proposal import draw_components
from zoprox.sampler import one_round
from zoprox.settings import Settings

torch = pytest.importorskip("torch")


class NumpyNoise:
    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def normal(self, *shape: int) -> Any:
        return torch.from_numpy(self.rng.standard_normal(shape))

    def components(self, probabilities: Any, draws: int) -> Any:
        return torch.from_numpy(draw_components(self.rng, probabilities.numpy(), draws))


def wells(points: np.ndarray) -> np.ndarray:
    f = (points[:, 0] ** 2 - 1) ** 2 + 0.5 * points[:, 1] ** 2
    return np.where(points[:, 1] > -1, f, np.inf)


def torch_wells(points: Any) -> Any:
    f = (points[:, 0] ** 2 - 1) ** 2 + 0.5 * points[:, 1] ** 2
    return torch.where(points[:, 1] > -1, f, math.inf)


@pytest.mark.parametrize("method", ["ensemble", "single"])
def test_a_round_is_numpys(method: Any) -> None:
    from zoprox.torch_path import torch_round

    settings = Settings(6, 2, 0.4, 4, 30, 1, 0.01, method=method)
    start = np.random.default_rng(0).normal(size=(6, 2)) * 3  # some see nothing allowed
    ours = one_round(wells, settings, start, np.random.default_rng(1))
    points, ess, value, outside = torch_round(
        torch_wells, settings, torch.from_numpy(start), NumpyNoise(1)
    )
    np.testing.assert_allclose(points.numpy(), ours.points, rtol=1e-9)
    np.testing.assert_allclose(ess.numpy(), ours.ess, rtol=1e-9)
    assert value == pytest.approx(ours.values_mean)
    assert outside == ours.outside > 0


@pytest.mark.slow
def test_a_run_depends_on_the_seed_alone_and_goes_on_from_any_round() -> None:
    from zoprox.torch_path import sample_rounds_torch

    settings = Settings(5, 2, 0.4, 3, 20, 3, seed=4)
    whole = list(sample_rounds_torch(torch_wells, settings, np.zeros((5, 2))))
    tail = list(sample_rounds_torch(torch_wells, settings, whole[0].points, first=2))
    assert tail[-1].points.tobytes() == whole[-1].points.tobytes()
    assert sum(r.evaluations for r in whole) == settings.evaluations
    single = list(sample_rounds_torch(torch_wells, settings, np.zeros((5, 2)), dtype=torch.float32))
    assert np.isfinite(single[-1].points).all()


def test_wrong_answers_are_named() -> None:
    from zoprox.torch_path import sample_rounds_torch

    settings = Settings(2, 2, 0.4, 1, 5, 1)
    for answer, message in (
        (lambda p: p[:, 0] * math.nan, "NaN at all of 10 points"),
        (lambda p: p[:, 0] * 0 - math.inf, "f = -inf"),
        (lambda p: p, r"shape \(10, 2\) to 10 points"),
    ):
        with pytest.raises(DataError, match=message):
            list(sample_rounds_torch(answer, settings, np.zeros((2, 2))))
    refused = Settings(2, 2, 0.4, 1, 5, 1, method="rejection")
    with pytest.raises(UsageError, match="NumPy only"):
        list(sample_rounds_torch(torch_wells, refused, np.zeros((2, 2))))

import os
from pathlib import Path

import pytest

# Two threads spin for each other at every operation on the tiny networks of these tests.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def checkpoint():
    """A tiny network whose weights are random, so that it says something about every formula."""
    import torch

    from satguide.checkpoint import Checkpoint
    from satguide.network import GuidanceNetwork, Shape

    network = GuidanceNetwork(Shape(width=8, layers=2))
    random = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(0.4 * torch.randn(parameter.shape, generator=random))
    network.eval().requires_grad_(False)
    return Checkpoint(network, sigma=0.1)


@pytest.fixture(scope="session")
def pigeons():
    """From holes to the formula of one pigeon more: unsatisfiable, hard for every CDCL solver."""
    from satguide.cnf import CNF

    def formula(holes):
        place = [[a * holes + h + 1 for h in range(holes)] for a in range(holes + 1)]
        pairs = [
            [-place[a][h], -place[b][h]]
            for h in range(holes)
            for a in range(holes + 1)
            for b in range(a)
        ]
        return CNF.from_clauses((holes + 1) * holes, [*place, *pairs])

    return formula


@pytest.fixture(scope="session")
def checkpoint_file(checkpoint, tmp_path_factory) -> Path:
    from satguide.checkpoint import write

    path = tmp_path_factory.mktemp("checkpoint") / "tiny.safetensors"
    write(str(path), checkpoint)
    return path


@pytest.fixture(scope="module")
def one_thread():
    """Keep torch to one thread: for small networks the second only waits, and costs its time."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def small_bench(checkpoint, monkeypatch):
    """Make `satguide bench` quick: a few tiny formulas and a tiny network."""
    from satguide import speed
    from satguide.families import threesat
    from satguide.trainer import Settings

    sizes = {"formulas": 2, "samples": 2, "steps": 1, "minibatch": 2}
    monkeypatch.setattr(speed, "_SOLVES", 2)
    monkeypatch.setattr(speed, "_READ_VARIABLES", 50)
    monkeypatch.setattr(speed, "load", lambda _: checkpoint)
    monkeypatch.setattr(speed, "Settings", lambda seed: Settings(seed=seed, **sizes))
    monkeypatch.setattr(
        speed, "_formulas", lambda *given: [threesat.generate(12, i) for i in range(given[-1])]
    )

"""Ordered maps: same results however they are computed, and no hang whatever a worker does."""

import functools
import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from papercuts import parallel
from papercuts.errors import DataError, MissingError, PapercutsError, UsageError
from papercuts.parallel import WorkerDiedError, ordered_map, seed_for

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import workloads  # noqa: E402


@pytest.fixture(autouse=True)
def _light_workers(monkeypatch):
    """Spare the workers the import of pytest, which is this process's `__main__`."""
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))


@pytest.fixture(scope="module", autouse=True)
def _no_workers_left():
    parallel.close()
    yield
    parallel.close()


def dead(pid: int) -> bool:
    """A zombie that nobody has reaped yet counts as dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_for(condition, seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


@pytest.mark.parametrize("chunk", [1, 3, 100])
@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_order_and_results_do_not_depend_on_jobs(jobs, chunk):
    items = list(range(20))
    result = list(ordered_map(workloads.slow_when_small, items, jobs=jobs, chunk=chunk))
    assert result == [i * i for i in items]


def test_seeds_make_randomness_independent_of_jobs():
    expected = [workloads.draw(i) for i in range(12)]
    assert len(set(expected)) == 12
    for jobs in (1, 2):
        assert list(ordered_map(workloads.draw, range(12), jobs=jobs)) == expected


def test_seed_for_is_fixed_for_ever_and_spread_out():
    # `printf 0:0 | b2sum -l 64` says d56c9c7e6769d062.
    assert seed_for(0, 0) == int.from_bytes(bytes.fromhex("d56c9c7e6769d062"), "little") >> 1
    seeds = {seed_for(seed, index) for seed in range(50) for index in range(200)}
    assert len(seeds) == 50 * 200
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert seed_for(1, 23) != seed_for(12, 3)
    # Fair bits: each of the 63 is set in about half of 10,000 seeds (six standard deviations).
    for bit in range(63):
        assert abs(sum(seed >> bit & 1 for seed in seeds) - 5000) < 300


def test_an_empty_input_starts_nothing():
    assert list(ordered_map(abs, [], jobs=2)) == []


def test_endless_items_are_taken_lazily():
    taken = 0

    def endless():
        nonlocal taken
        while True:
            taken += 1
            yield taken

    results = ordered_map(workloads.slow_when_small, endless(), jobs=2, chunk=2)
    assert taken == 0
    assert list(itertools.islice(results, 10)) == [i * i for i in range(1, 11)]
    assert taken <= 10 + (2 * parallel._WINDOW_PER_WORKER + 1) * 2
    results.close()


def test_a_slow_item_does_not_let_the_others_pile_up():
    taken = 0

    def source():
        nonlocal taken
        yield 1.0
        while True:
            taken += 1
            yield 0.0

    results = ordered_map(time.sleep, source(), jobs=2)
    next(results)
    assert 10 < taken <= 2 * parallel._WINDOW_PER_WORKER + 1
    results.close()


@pytest.mark.parametrize("chunk", [1, 4])
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_exception_comes_in_its_place_with_its_type(jobs, chunk):
    got = []
    with pytest.raises(DataError) as caught:
        got.extend(ordered_map(workloads.fail_at_three, range(10), jobs=jobs, chunk=chunk))
    assert got == [0, 1, 2]
    assert str(caught.value) == "in.jsonl:4: bad (expected good)"
    assert caught.value.__notes__ == ["raised by item 3"]
    assert caught.value.line == 4
    if jobs == 2:
        assert "fail_at_three" in str(caught.value.__cause__)


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_exception_of_the_items_comes_after_their_results(jobs):
    def items():
        yield from range(5)
        raise DataError("torn", path="x", line=6)

    got = []
    with pytest.raises(DataError, match="torn"):
        got.extend(ordered_map(abs, items(), jobs=jobs, chunk=3))
    assert got == [0, 1, 2, 3, 4]


def test_an_exception_that_cannot_be_pickled_is_told_in_words():
    with pytest.raises(PapercutsError, match="AwkwardError: 0 and 0"):
        list(ordered_map(workloads.fail_awkwardly, range(2), jobs=2))


@pytest.mark.parametrize(
    ("fn", "how"),
    [
        (workloads.die_at_three, "item 3 exited with status 17"),
        (workloads.killed_at_three, r"item 3 was killed \(SIGKILL\).*memory"),
    ],
)
def test_a_worker_that_dies_is_an_error_that_names_the_item(fn, how):
    got = []
    with pytest.raises(WorkerDiedError, match=how):
        got.extend(ordered_map(fn, range(10), jobs=2))
    assert got == [0, 1, 2]
    assert list(ordered_map(abs, [-1, -2], jobs=2)) == [1, 2]  # the next map is none the worse


def test_what_cannot_be_sent_is_a_clear_error():
    with pytest.raises((AttributeError, TypeError)) as caught:
        list(ordered_map(lambda x: x, range(2), jobs=2))
    assert "function must be picklable" in caught.value.__notes__[0]
    with pytest.raises((AttributeError, TypeError)) as caught:
        list(ordered_map(abs, [lambda: None], jobs=2))
    assert "items must be picklable" in caught.value.__notes__[0]
    with pytest.raises((AttributeError, TypeError)) as caught:
        list(ordered_map(workloads.unpicklable, [0], jobs=2))
    assert "results must be picklable" in caught.value.__notes__[0]


def test_workers_have_one_thread_and_are_used_again(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    parallel.close()
    assert set(ordered_map(workloads.threads, range(4), jobs=2)) == {"1"}
    assert os.environ["OMP_NUM_THREADS"] == "5"
    first = set(ordered_map(workloads.pid, range(6), jobs=2))
    assert len(first) == 2
    assert os.getpid() not in first
    assert set(ordered_map(workloads.pid, range(6), jobs=2)) == first
    parallel.close()
    assert all(dead(pid) for pid in first)


def test_maps_may_be_interleaved_and_nested():
    one = ordered_map(abs, range(-5, 0), jobs=2)
    other = ordered_map(str, range(5), jobs=2)
    assert list(zip(one, other, strict=True)) == list(zip([5, 4, 3, 2, 1], "01234", strict=True))
    assert list(ordered_map(workloads.nested, [1, 2], jobs=2)) == [[1, 1], [2, 2]]


def test_closing_early_kills_what_is_busy():
    results = ordered_map(time.sleep, [0.0, 600.0, 600.0], jobs=2)
    next(results)
    start = time.monotonic()
    results.close()
    assert time.monotonic() - start < 5


def test_bad_arguments():
    with pytest.raises(UsageError, match="--jobs 0"):
        ordered_map(abs, [], jobs=0)
    with pytest.raises(ValueError, match="chunk"):
        ordered_map(abs, [], jobs=1, chunk=0)


def test_ray_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingError, match=r"--ray needs Ray.*\[ray\]"):
        ordered_map(abs, [1], ray="local")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_worker_outlives_the_command(tmp_path, how):
    """Killed, interrupted or terminated: workers and the programs they started end too."""
    script = tmp_path / "command"
    script.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(HERE)!r})\n"
        "from workloads import main\n"
        "if __name__ == '__main__':\n"
        f"    main({str(tmp_path)!r})\n"
    )
    command = subprocess.Popen([sys.executable, script], stderr=subprocess.PIPE)
    try:
        assert wait_for(lambda: len(list(tmp_path.glob("*.pids"))) == 2)
        command.send_signal(how)
        _, errors = command.communicate(timeout=20)
    finally:
        command.kill()
    pids = [int(p) for mark in tmp_path.glob("*.pids") for p in mark.read_text().split()]
    assert len(pids) == 4
    assert wait_for(lambda: all(dead(pid) for pid in pids))
    assert b"Process SpawnProcess" not in errors  # no worker told of the signal


def test_no_worker_can_be_interrupted_while_it_starts():
    """Nor the first one, before which multiprocessing starts a process that changes the mask."""
    code = (
        "import signal\n"
        "from multiprocessing import popen_spawn_posix\n"
        "from papercuts.parallel import ordered_map\n"
        "real = popen_spawn_posix.util.spawnv_passfds\n"
        "def spawn(path, args, fds):\n"
        "    held = signal.pthread_sigmask(signal.SIG_BLOCK, [])\n"
        "    print(sorted(each.name for each in held))\n"
        "    return real(path, args, fds)\n"
        "popen_spawn_posix.util.spawnv_passfds = spawn\n"
        "print(list(ordered_map(abs, [-1, -2], jobs=2)))\n"
    )
    done = subprocess.run([sys.executable], input=code, capture_output=True, text=True, timeout=60)
    *masks, result = done.stdout.splitlines()
    assert masks == ["['SIGINT', 'SIGTERM']"] * 3  # the tracker of resources, and two workers
    assert result == "[1, 2]", done.stderr


def test_the_tracker_of_resources_may_have_been_killed():
    code = (
        "import os, signal, warnings\n"
        "from multiprocessing import resource_tracker\n"
        "from papercuts.parallel import ordered_map\n"
        "warnings.simplefilter('error')\n"
        "resource_tracker.ensure_running()\n"
        "os.kill(resource_tracker._resource_tracker._pid, signal.SIGKILL)\n"
        "tracker = resource_tracker._resource_tracker._pid\n"
        "os.waitid(os.P_PID, tracker, os.WEXITED | os.WNOWAIT)\n"
        "print(list(ordered_map(abs, [-1, -2], jobs=2)))\n"
    )
    done = subprocess.run([sys.executable], input=code, capture_output=True, text=True, timeout=60)
    assert done.stdout == "[1, 2]\n", done.stderr


def test_a_script_on_stdin_may_map():
    code = (
        "from papercuts.parallel import ordered_map\n"
        "print(list(ordered_map(abs, [-1, -2], jobs=2)))\n"
    )
    done = subprocess.run([sys.executable], input=code, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[1, 2]\n", "")


def test_one_torch_thread_in_process_too(monkeypatch):
    torch = ModuleType("torch")
    torch.threads = 4
    torch.get_num_threads = lambda: torch.threads
    torch.set_num_threads = functools.partial(setattr, torch, "threads")
    monkeypatch.setitem(sys.modules, "torch", torch)
    results = ordered_map(lambda _: torch.threads, range(2), jobs=1)
    assert next(results) == 1
    assert torch.threads == 4


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_real_local_ray_agrees(monkeypatch):
    import ray

    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    handler = signal.getsignal(signal.SIGTERM)
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    try:
        for chunk in (1, 3):
            mapped = ordered_map(workloads.draw, range(12), ray="local", jobs=2, chunk=chunk)
            assert list(mapped) == [workloads.draw(i) for i in range(12)]
        assert signal.getsignal(signal.SIGTERM) is handler
        got = []
        with pytest.raises(DataError, match=r"in.jsonl:4: bad") as caught:
            got.extend(ordered_map(workloads.fail_at_three, range(9), ray="local", jobs=2))
        assert got == [0, 1, 2]
        assert caught.value.__notes__ == ["raised by item 3"]
        with pytest.raises(WorkerDiedError, match="Ray worker at item 3 was lost"):
            list(ordered_map(workloads.die_at_three, range(9), ray="local", jobs=2))
        endless = ordered_map(workloads.pid, itertools.count(), ray="local", jobs=2)
        assert os.getpid() not in set(itertools.islice(endless, 4))
        endless.close()
    finally:
        ray.shutdown()


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_ray_address_without_a_cluster():
    with pytest.raises(MissingError, match=r"--ray 127.0.0.1:1: no cluster there"):
        ordered_map(abs, [1], ray="127.0.0.1:1")
    with pytest.raises(UsageError, match=r"HOST:PORT"):
        ordered_map(abs, [1], ray="somewhere")

"""The backward pass in tiles: its gradients, and its bits under every schedule.

All of it is in the slow suite, for torch takes longer to import than the fast tests of a subject
may cost; test_execution.py holds every order to its bits without torch.
"""

import importlib.util
import json
import os
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import pytest

from bitsched.cli import app
from bitsched.masks import make_shape
from bitsched.planfile import write_plan
from bitsched.planning import NAMED, make_plan
from bitsched.schema import schema
from bitsched.tokens import tokens_of
from papercuts.errors import NegativeResult, UsageError

pytestmark = pytest.mark.slow


def with_torch():
    """Import what needs torch when a test runs, so that a fast run does not."""
    torch = pytest.importorskip("torch")
    from bitsched import backward, bits
    from papercuts.kernels.dq import accumulate_dq

    found = {name: getattr(backward, name) for name in backward_names}
    found |= {name: getattr(bits, name) for name in ("compare_bits", "plans_to_run")}
    return SimpleNamespace(torch=torch, accumulate_dq=accumulate_dq, **found)


backward_names = (
    "autograd", "backward", "dq_lists", "dq_tiles", "forward", "largest_error",
)  # fmt: skip


@pytest.fixture(autouse=True)
def t():
    """What needs torch, with one thread: torch's own would spin beside those of the plans."""
    found = with_torch()
    before = found.torch.get_num_threads()
    found.torch.set_num_threads(1)
    yield found
    found.torch.set_num_threads(before)


def plans(t, mask="causal", seqlen=128, block="16", heads=2, kv_heads=None, sms=None):
    return t.plans_to_run(None, None, mask, seqlen, block, heads, kv_heads, sms, 0)


# ---- gradients


def by_torch(t, saved):
    """Take the gradients of torch's own attention, in fp64."""
    q, k, v = (x.double().requires_grad_() for x in (saved.q, saved.k, saved.v))
    grouped = (x.repeat_interleave(saved.group, 0) for x in (k, v))
    out = t.torch.nn.functional.scaled_dot_product_attention(q, *grouped, attn_mask=saved.seen)
    return t.torch.autograd.grad((out * saved.out_grad.double()).sum(), (q, k, v))


SHAPES = {
    "full": {"mask": "full"},
    "causal": {"mask": "causal"},
    "grouped queries": {"mask": "causal", "heads": 4, "kv_heads": 2},
    "a window": {"mask": "window:40,0"},
    "a window to both sides": {"mask": "window:10,25"},
    "two Q tiles a KV tile": {"mask": "causal", "block": "16x32"},
    "a last tile that is not full": {"mask": "causal", "seqlen": 120},
    "fewer SMs than tiles": {"mask": "full", "sms": 3},
}


@pytest.mark.parametrize("name", SHAPES)
def test_gradients_equal_those_of_torch(t, name):
    plan, *_ = plans(t, **SHAPES[name])
    saved = t.forward(plan, width=32, precision="fp32", seed=0)
    made = t.backward(plan, saved, threads=3)
    for got, exact in zip(made.tensors(), by_torch(t, saved), strict=True):
        assert got.dtype == t.torch.float32
        assert float((got - exact).abs().max()) < 1e-5
        assert float(exact.abs().max()) > 0.1
    assert t.largest_error(made, t.autograd(saved)) < 1e-5


def test_more_keys_than_queries(t):
    plan = make_plan(make_shape("causal", seqlen="64x128", block="16"), "asc")
    saved = t.forward(plan, width=16, precision="fp32", seed=0)
    assert saved.seen.shape == (64, 128)
    # The last query sees every key, the first those up to its own place.
    assert saved.seen.sum(1).tolist() == list(range(65, 129))
    made = t.backward(plan, saved, threads=2)
    for got, exact in zip(made.tensors(), by_torch(t, saved), strict=True):
        assert float((got - exact).abs().max()) < 1e-5


def test_a_query_that_sees_nothing_has_no_gradient(t, tmp_path):
    rows = tmp_path / "blocks"
    rows.write_text("110\n000\n011\n")
    plan = make_plan(make_shape(f"file:{rows}"), "list")
    saved = t.forward(plan, seqlen=48, width=16, precision="fp32", seed=0)
    made, exact = t.backward(plan, saved, threads=2), t.autograd(saved)
    assert not made.dq[:, 16:32].any()
    assert t.largest_error(made, exact) < 1e-5
    assert all(bool(x.isfinite().all()) for x in exact.tensors())
    first, *_ = t.plans_to_run(None, "asc", f"file:{rows}", 48, "64", 1, None, None, 0)
    assert (first.tasks, tokens_of(first, 48).block_q) == (4, 16)


def test_bf16_errs_by_its_rounding(t):
    plan, *_ = plans(t)
    saved = t.forward(plan, width=32, precision="bf16", seed=0)
    made = t.backward(plan, saved, threads=2)
    assert made.dq.dtype == t.torch.bfloat16
    assert 1e-4 < t.largest_error(made, t.autograd(saved)) < 2**-7 * 4


# ---- bits


@pytest.mark.parametrize("mask", ["causal", "full"])
def test_every_order_gives_one_result_and_no_order_gives_several(t, mask):
    """Sheet check 5, with few runs: see the slow test for 50."""
    compared = [
        t.compare_bits(plan, width=32, runs=4, threads=8, delay_us=100) for plan in plans(t, mask)
    ]
    names = [one.schedule for one in compared]
    assert names == [n for n in NAMED if n != ("shift" if mask == "causal" else "sym")] + ["atomic"]
    *ordered, atomic = compared
    assert [one.hashes for one in ordered] == [1] * 5
    assert [one.deviation for one in ordered] == [0] * 5
    assert atomic.hashes > 1
    assert 0 < atomic.deviation < 1e-5
    assert (atomic.verdict, atomic.fault) == ("no", None)
    assert max(one.max_error for one in compared) < 1e-5
    assert len({one.hash for one in ordered}) > 1  # the order does decide the bits


def test_the_bits_do_not_depend_on_the_threads(t):
    plan = make_plan(make_shape("causal", seqlen="96", block="16", heads=2), "asc")
    hashes = {
        t.compare_bits(plan, width=16, runs=1, threads=threads, delay_us=0).hash
        for threads in (1, 2, 7)
    }
    assert len(hashes) == 1


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("mask", ["causal", "full"])
def test_fifty_runs(t, mask, dtype):
    """Sheet check 5."""
    # bf16 rounds most differences of the fp32 sums away: more heads, so that some are left.
    *ordered, free = plans(t, mask, seqlen=512, block="64")
    if dtype == "bf16":
        free = plans(t, mask, seqlen=512, block="64", heads=8)[-1]
    for plan in (*ordered, free):
        one = t.compare_bits(plan, dtype=dtype, runs=50, threads=8)
        assert one.hashes == 1 if plan.ordered else one.hashes > 1
        assert one.fault is None
        if dtype == "fp32":
            assert one.max_error < 1e-5


# ---- the kernel of the shared registry


def same_bits(t, a, b):
    return t.torch.equal(a.view(t.torch.int32), b.view(t.torch.int32))


@pytest.mark.parametrize("mask", ["causal", "full"])
def test_the_kernel_sums_to_the_bits_of_the_threads(t, mask):
    for plan in plans(t, mask)[:-1]:
        saved = t.forward(plan, width=16, precision="fp32", seed=0)
        dq = t.accumulate_dq(t.dq_lists(plan), t.dq_tiles(plan, saved), heads=2)
        assert same_bits(t, dq, t.backward(plan, saved, threads=4).dq)


def test_the_kernel_needs_an_order(t):
    with pytest.raises(UsageError, match="no order"):
        t.dq_lists(plans(t)[-1])


INTERPRETED = textwrap.dedent(
    """
    import torch
    from bitsched.backward import dq_lists, dq_tiles, forward
    from bitsched.bits import plans_to_run
    from papercuts.kernels.dq import accumulate_dq

    for mask in ("causal", "full"):
        for plan in plans_to_run(None, None, mask, 96, "16", 2, None, None, 0)[:-1]:
            saved = forward(plan, width=16, precision="fp32", seed=0)
            lists, tiles = dq_lists(plan), dq_tiles(plan, saved)
            once, twice = (accumulate_dq(lists, tiles, 2, backend="triton") for _ in range(2))
            plain = accumulate_dq(lists, tiles, 2, backend="reference")
            bits = [x.view(torch.int32) for x in (once, twice, plain)]
            print(plan.about["schedule"], torch.equal(bits[0], bits[1]), torch.equal(*bits[1:]))
    """
)


def test_the_kernel_in_triton_on_every_schedule():
    if importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed")
    done = subprocess.run(
        [sys.executable, "-c", INTERPRETED],
        env={**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 10
    assert {line.partition(" ")[0] for line in lines} == set(NAMED)
    assert all(line.endswith(" True True") for line in lines)


# ---- the command


SMALL = ["--seqlen", "64", "--block", "16", "--width", "16", "--runs", "3", "--delay-us", "50"]


def test_the_command(capsys):
    assert app.run(["bits", *SMALL, "--schedule", "sym,atomic", "--threads", "4"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for record in records:
        pytest.importorskip("jsonschema").validate(record, schema()["$defs"]["bits"])
    assert [r["schedule"] for r in records] == ["sym", "atomic"]
    assert [r["ordered"] for r in records] == [True, False]
    assert (records[0]["hashes"], records[0]["verdict"]) == (1, "yes")
    assert (records[0]["n_kv"], records[0]["seqlen"], records[0]["runs"]) == (4, 64, 3)


def test_a_plan_from_a_file(capsys, tmp_path):
    path = tmp_path / "plan.jsonl"
    write_plan(make_plan(make_shape("causal", n="4", heads=2), "sym"), path)
    assert app.run(["bits", str(path), "--seqlen", "64", "--width", "8", "--runs", "2"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["schedule"], record["n_q"], record["seqlen"]) == ("sym", 4, 64)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--schedule", "shift"], "the cyclic shift is for the full mask"),
        (["--schedule", "asc,"], "no schedule ''"),
        (["--schedule", "naive"], "no schedule 'naive'"),
        (["--mask", "diagonal"], "no mask 'diagonal'"),
        (["--block", "0"], "--block '0' is not N or QxKV"),
    ],
)
def test_wrong_usage(capsys, arguments, message):
    assert app.run(["bits", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_lengths_that_do_not_fit_and_a_plan_with_a_schedule(capsys, tmp_path):
    path = tmp_path / "plan.jsonl"
    write_plan(make_plan(make_shape("full", n="3"), "asc"), path)
    assert app.run(["bits", str(path), "--seqlen", "64"]) == 2
    assert "3 Q tiles, so take a multiple of 3" in capsys.readouterr().err
    assert app.run(["bits", str(path), "--schedule", "asc"]) == 2
    assert "name one of the two" in capsys.readouterr().err


def broken(change):
    plan = make_plan(make_shape("full", n="3"), "shift")
    change(plan)
    return plan


def reverse_the_sums(plan):
    """Let every SM begin with the share that is added last."""
    plan.rank[:] = 2 - plan.rank


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda plan: plan.rank.__setitem__(0, 5), "ranks of 1 dQ tile are not 0, 1, 2"),
        (lambda plan: plan.rank.__setitem__(0, -1), "in no fixed order"),
        (lambda plan: plan.q.__setitem__(0, 1), "missing"),
        (reverse_the_sums, "deadlock"),
    ],
)
def test_a_plan_that_is_not_valid_is_refused_before_it_runs(t, change, message):
    with pytest.raises(NegativeResult, match=message):
        t.compare_bits(broken(change), width=8, runs=1)


def test_a_plan_whose_heads_are_damaged_is_a_no(t, capsys, tmp_path):
    """Without a mask nobody can check its tiles; two of four heads then have none."""
    path = tmp_path / "plan.jsonl"
    plan = make_plan(make_shape("full", n="2"), "asc")
    plan.about.clear()
    plan.about.update({"heads": 4, "kv_heads": 2})
    write_plan(plan, path)
    assert app.run(["bits", str(path), "--width", "8", "--runs", "2", "--delay-us", "0"]) == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["verdict"] == "no"
    assert "wrong gradients: off by" in said.err


def test_a_broken_promise_is_exit_1(t, capsys, monkeypatch):
    from bitsched import bits

    noise = iter(range(99))

    def noisy(plan, saved, **options):
        made = t.backward(plan, saved, **options)
        made.dq[0, 0, 0] += next(noise)
        return made

    monkeypatch.setattr(bits, "backward", noisy)
    assert app.run(["bits", *SMALL, "--schedule", "asc"]) == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["hashes"] == 3
    assert "asc: 3 results in 3 runs of a fixed order" in said.err
    assert "wrong gradients: off by" in said.err
    assert app.run(["bits", *SMALL, "--schedule", "atomic"]) == 1
    assert "atomic: wrong gradients: off by" in capsys.readouterr().err


@pytest.mark.parametrize("harm", [1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("part", ["dq", "dk", "dv"])
def test_wrong_gradients_are_a_no_however_often_they_come(t, capsys, monkeypatch, harm, part):
    """The same wrong bits in every run: NaN once passed as an error of 0."""
    from bitsched import bits

    def damaged(plan, saved, **options):
        made = t.backward(plan, saved, **options)
        getattr(made, part)[0, 0, 0] += harm
        return made

    monkeypatch.setattr(bits, "backward", damaged)
    assert app.run(["bits", *SMALL, "--schedule", "asc"]) == 1
    said = capsys.readouterr()
    (record,) = map(json.loads, said.out.splitlines())
    pytest.importorskip("jsonschema").validate(record, schema()["$defs"]["bits"])
    assert (record["hashes"], record["verdict"]) == (1, "no")
    how = "off by 1" if harm == 1 else "not finite"
    assert f"asc: wrong gradients: {how}" in said.err

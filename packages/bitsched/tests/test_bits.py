"""The backward pass in tiles: its gradients, and its bits under every schedule."""

import importlib.util
import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from bitsched.backward import autograd, backward, dq_lists, dq_tiles, forward, largest_error  # noqa: E402
from bitsched.bits import compare_bits, plans_to_run  # noqa: E402
from bitsched.cli import app  # noqa: E402
from bitsched.masks import make_shape  # noqa: E402
from bitsched.planfile import write_plan  # noqa: E402
from bitsched.planning import NAMED, make_plan  # noqa: E402
from bitsched.schema import schema  # noqa: E402
from bitsched.tokens import seen, tokens_of  # noqa: E402
from papercuts.errors import NegativeResult, UsageError  # noqa: E402
from papercuts.kernels.dq import accumulate_dq  # noqa: E402


@pytest.fixture(autouse=True)
def _one_torch_thread():
    """Let torch's threads not spin beside those of the plans."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def plans(mask="causal", seqlen=128, block="16", heads=2, kv_heads=None, sms=None):
    return plans_to_run(None, None, mask, seqlen, block, heads, kv_heads, sms, 0)


# ---- gradients


def by_torch(saved):
    """Take the gradients of torch's own attention, in fp64."""
    q, k, v = (x.double().requires_grad_() for x in (saved.q, saved.k, saved.v))
    grouped = (x.repeat_interleave(saved.group, 0) for x in (k, v))
    out = torch.nn.functional.scaled_dot_product_attention(q, *grouped, attn_mask=saved.seen)
    return torch.autograd.grad((out * saved.out_grad.double()).sum(), (q, k, v))


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
def test_gradients_equal_those_of_torch(name):
    plan, *_ = plans(**SHAPES[name])
    saved = forward(plan, width=32, precision="fp32", seed=0)
    made = backward(plan, saved, threads=3)
    for got, exact in zip(made.tensors(), by_torch(saved), strict=True):
        assert got.dtype == torch.float32
        assert float((got - exact).abs().max()) < 1e-5
        assert float(exact.abs().max()) > 0.1
    assert largest_error(made, autograd(saved)) < 1e-5


def test_more_keys_than_queries():
    plan = make_plan(make_shape("causal", seqlen="64x128", block="16"), "asc")
    saved = forward(plan, width=16, precision="fp32", seed=0)
    assert saved.seen.shape == (64, 128)
    # The last query sees every key, the first those up to its own place.
    assert saved.seen.sum(1).tolist() == list(range(65, 129))
    made = backward(plan, saved, threads=2)
    for got, exact in zip(made.tensors(), by_torch(saved), strict=True):
        assert float((got - exact).abs().max()) < 1e-5


def test_a_query_that_sees_nothing_has_no_gradient(tmp_path):
    rows = tmp_path / "blocks"
    rows.write_text("110\n000\n011\n")
    plan = make_plan(make_shape(f"file:{rows}"), "list")
    saved = forward(plan, seqlen=48, width=16, precision="fp32", seed=0)
    made, exact = backward(plan, saved, threads=2), autograd(saved)
    assert not made.dq[:, 16:32].any()
    assert largest_error(made, exact) < 1e-5
    assert all(bool(x.isfinite().all()) for x in exact.tensors())
    first, *_ = plans_to_run(None, "asc", f"file:{rows}", 48, "64", 1, None, None, 0)
    assert (first.tasks, tokens_of(first, 48).block_q) == (4, 16)


def test_bf16_errs_by_its_rounding():
    plan, *_ = plans()
    saved = forward(plan, width=32, precision="bf16", seed=0)
    made = backward(plan, saved, threads=2)
    assert made.dq.dtype == torch.bfloat16
    assert 1e-4 < largest_error(made, autograd(saved)) < 2**-7 * 4


# ---- tokens


def test_tokens_of_a_plan_in_tiles_or_in_tokens():
    tiles = make_plan(make_shape("causal", n="4", stride=2), "asc")
    assert tokens_of(tiles).length_q == 8 * 64
    assert (tokens_of(tiles, 80).block_q, tokens_of(tiles, 80).block_kv) == (10, 20)
    tokens = make_plan(make_shape("causal", seqlen="100", block="32"), "asc")
    assert (tokens_of(tokens).length_q, tokens_of(tokens, 256).block_q) == (100, 64)
    with pytest.raises(UsageError, match=r"--seqlen 90: .* 4 Q tiles, .* multiple of 128, or 100"):
        tokens_of(tokens, 90)


@pytest.mark.parametrize("mask", ["causal", "window:3,0", "window:2,1"])
def test_scaled_tiles_hide_no_token_that_the_mask_shows(mask):
    """Every row sees as many keys as the mask says, so no tile of it is missing in the plan."""
    plan = make_plan(make_shape(mask, n="6"), "asc")
    found = seen(plan, tokens_of(plan, 24))
    query, key = np.arange(24)[:, None], np.arange(24)
    left, right = {"causal": (24, 0), "window:3,0": (12, 0), "window:2,1": (8, 4)}[mask]
    assert np.array_equal(found, (key <= query + right) & (key >= query - left))


# ---- bits


@pytest.mark.parametrize("mask", ["causal", "full"])
def test_every_order_gives_one_result_and_no_order_gives_several(mask):
    """Sheet check 5, with few runs: see the slow test for 50."""
    compared = [
        compare_bits(plan, width=32, runs=4, threads=8, delay_us=100) for plan in plans(mask)
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


def test_the_bits_do_not_depend_on_the_threads():
    plan = plans()[0]
    hashes = {compare_bits(plan, width=32, runs=1, threads=t, delay_us=0).hash for t in (1, 2, 7)}
    assert len(hashes) == 1


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("mask", ["causal", "full"])
def test_fifty_runs(mask, dtype):
    """Sheet check 5."""
    # bf16 rounds most differences of the fp32 sums away: more heads, so that some are left.
    *ordered, free = plans(mask, seqlen=512, block="64")
    if dtype == "bf16":
        free = plans(mask, seqlen=512, block="64", heads=8)[-1]
    for plan in (*ordered, free):
        one = compare_bits(plan, dtype=dtype, runs=50, threads=8)
        assert one.hashes == 1 if plan.ordered else one.hashes > 1
        assert one.fault is None
        if dtype == "fp32":
            assert one.max_error < 1e-5


# ---- the kernel of the shared registry


def same_bits(a, b):
    return torch.equal(a.view(torch.int32), b.view(torch.int32))


@pytest.mark.parametrize("mask", ["causal", "full"])
def test_the_kernel_sums_to_the_bits_of_the_threads(mask):
    for plan in plans(mask)[:-1]:
        saved = forward(plan, width=16, precision="fp32", seed=0)
        dq = accumulate_dq(dq_lists(plan), dq_tiles(plan, saved), heads=2)
        assert same_bits(dq, backward(plan, saved, threads=4).dq)


def test_the_kernel_needs_an_order():
    with pytest.raises(UsageError, match="no order"):
        dq_lists(plans()[-1])


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


@pytest.mark.slow
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
def test_a_plan_that_is_not_valid_is_refused_before_it_runs(change, message):
    with pytest.raises(NegativeResult, match=message):
        compare_bits(broken(change), width=8, runs=1)


def test_a_broken_promise_is_exit_1(capsys, monkeypatch):
    from bitsched import bits

    noise = iter(range(99))

    def noisy(plan, saved, **options):
        made = backward(plan, saved, **options)
        made.dq[0, 0, 0] += next(noise)
        return made

    monkeypatch.setattr(bits, "backward", noisy)
    assert app.run(["bits", *SMALL, "--schedule", "asc"]) == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["hashes"] == 3
    assert "asc: 3 results in 3 runs of a fixed order" in said.err
    assert app.run(["bits", *SMALL, "--schedule", "atomic"]) == 1
    assert "atomic: off by" in capsys.readouterr().err


def test_without_the_extra(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert app.run(["bits"]) == 69
    assert "add the extra 'torch'" in capsys.readouterr().err

"""`SeesawBatchSampler` against the permutation it is defined by, split and resumed in every way."""

import dataclasses
import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader, TensorDataset

from papercuts.errors import DataError, UsageError
from seesaw.baseline import BaseSchedule
from seesaw.planner import make_plan
from seesaw.sampler import SeesawBatchSampler

# 8 sequences to 72, in multiples of 4.
PLAN = make_plan(lr=1e-3, batch=8, seq_len=16, tokens=40_000, multiple_of=4)
SEQUENCES = PLAN.tokens // 16 + 5


def flat(lists: Iterable[list[int]]) -> list[int]:
    return [index for one in lists for index in one]


def expected_batches(seed: int) -> list[list[int]]:
    order = np.random.default_rng([seed, 0]).permutation(SEQUENCES).tolist()
    edges = [0]
    for step in PLAN.walk():
        edges.append(edges[-1] + step.batch)
    return [order[a:b] for a, b in pairwise(edges)]


def test_steps_take_the_permutation_in_order_once():
    batches = list(SeesawBatchSampler(SEQUENCES, PLAN, seed=3))
    assert batches == expected_batches(3)
    assert [len(batch) for batch in batches] == [step.batch for step in PLAN.walk()]
    seen = flat(batches)
    assert len(set(seen)) == len(seen) == PLAN.tokens // 16


def test_seeds_differ():
    assert expected_batches(0) != expected_batches(1)
    assert list(SeesawBatchSampler(SEQUENCES, PLAN, seed=1)) == expected_batches(1)


@pytest.mark.parametrize("world_size", [2, 4])
def test_ranks_parts_are_the_batch_of_one_process(world_size: int):
    parts = [
        list(SeesawBatchSampler(SEQUENCES, PLAN, rank=rank, world_size=world_size, seed=3))
        for rank in range(world_size)
    ]
    joined = [flat(ranks) for ranks in zip(*parts, strict=True)]
    assert joined == expected_batches(3)


def test_micro_batches_are_the_plans_grad_accum():
    plan = make_plan(lr=1e-3, batch=8, seq_len=16, tokens=40_000, micro_batch=2, gpus=2)
    whole = list(SeesawBatchSampler(SEQUENCES + 99, plan, rank=1, world_size=2))
    sampler = SeesawBatchSampler(SEQUENCES + 99, plan, rank=1, world_size=2, micro_batch=2)
    assert len(sampler) == sum(phase.steps * phase.grad_accum for phase in plan.phases)
    items = list(sampler)
    for step, expected in enumerate(whole):
        accum = plan.phase_at_step(step).grad_accum
        taken, items = items[:accum], items[accum:]
        assert [len(item) for item in taken] == [2] * accum
        assert flat(taken) == expected
    assert items == []


@settings(max_examples=25, deadline=None)
@given(stop=st.integers(0, PLAN.steps), world=st.sampled_from([1, 2, 4]), seed=st.integers(0, 9))
def test_resume_at_any_step_gives_the_same_remaining_batches(stop: int, world: int, seed: int):
    def make(**start: int) -> SeesawBatchSampler:
        return SeesawBatchSampler(
            SEQUENCES, PLAN, rank=world - 1, world_size=world, seed=seed, **start
        )

    sampler = make()
    batches = iter(sampler)
    for _ in range(stop):
        next(batches)
    state = json.dumps(sampler.state_dict())
    rest = list(batches)
    assert len(rest) == PLAN.steps - stop

    resumed = make()
    resumed.load_state_dict(json.loads(state))
    assert len(resumed) == len(rest)
    assert json.dumps(list(resumed)).encode() == json.dumps(rest).encode()
    assert list(make(start_step=stop)) == rest
    assert list(make(start_token=PLAN.tokens_before_step(stop))) == rest


def test_resume_between_micro_batches():
    sampler = SeesawBatchSampler(SEQUENCES, PLAN, micro_batch=4)
    items = iter(sampler)
    for _ in range(3):
        next(items)
    assert sampler.position == (1, 1)
    resumed = SeesawBatchSampler(SEQUENCES, PLAN, micro_batch=4)
    resumed.load_state_dict(sampler.state_dict())
    assert len(resumed) == len(sampler)
    assert list(resumed) == list(items)


def test_resume_with_another_number_of_processes_only_at_a_steps_edge():
    sampler = SeesawBatchSampler(SEQUENCES, PLAN, micro_batch=4)
    items = iter(sampler)
    next(items), next(items)
    other = SeesawBatchSampler(SEQUENCES, PLAN, rank=0, world_size=2)
    other.load_state_dict(sampler.state_dict())
    assert next(iter(other)) == expected_batches(0)[1][:4]
    next(items)
    with pytest.raises(UsageError, match="world_size"):
        other.load_state_dict(sampler.state_dict())


def test_repeat_makes_a_fresh_permutation_of_every_pass():
    base = BaseSchedule.of(make_plan(lr=1e-3, batch=6, seq_len=4, tokens=24 * 11))
    seen = flat(SeesawBatchSampler(22, base, seed=5, repeat=True))
    passes = [seen[i : i + 22] for i in range(0, 66, 22)]
    assert [sorted(one) for one in passes] == [list(range(22))] * 3
    assert passes[0] != passes[1] != passes[2]
    resumed = SeesawBatchSampler(22, base, seed=5, repeat=True, start_step=4)
    assert flat(resumed) == seen[24:]


def test_works_as_a_data_loaders_batch_sampler():
    data = TensorDataset(torch.arange(SEQUENCES))
    loader = DataLoader(data, batch_sampler=SeesawBatchSampler(data, PLAN, seed=3))
    assert [batch.tolist() for (batch,) in loader] == expected_batches(3)


def test_batches_that_processes_cannot_share_are_refused():
    with pytest.raises(UsageError, match=r"no multiple of 3 \(3 processes\).*multiple-of 3"):
        SeesawBatchSampler(SEQUENCES, PLAN, world_size=3)
    with pytest.raises(UsageError, match=r"no multiple of 8 \(2 processes x micro-batch 4\)"):
        SeesawBatchSampler(SEQUENCES, PLAN, world_size=2, micro_batch=4)
    base = BaseSchedule.of(PLAN)
    assert len(SeesawBatchSampler(SEQUENCES, base, world_size=2, micro_batch=4)) == base.steps
    with pytest.raises(UsageError, match="no multiple of 16"):
        SeesawBatchSampler(SEQUENCES, base, world_size=4, micro_batch=4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 2, "world_size": 2}, "rank 2"),
        ({"rank": -1}, "rank -1"),
        ({"micro_batch": 0}, "micro-batch is 0"),
        ({"start_step": 10_000}, "start step 10000"),
        ({"start_step": 1, "start_token": 128}, "not both"),
        ({"start_token": 130}, "no step begins at token 130 .*128"),
        ({"start_token": 10**9}, "no step begins"),
    ],
)
def test_starts_that_mean_nothing_are_refused(options: dict[str, int], message: str):
    with pytest.raises(UsageError, match=message):
        SeesawBatchSampler(SEQUENCES, PLAN, **options)


def test_data_set_shorter_than_the_plan_is_refused():
    needed = PLAN.tokens // 16
    assert len(SeesawBatchSampler(needed, PLAN)) == PLAN.steps
    with pytest.raises(DataError, match=f"{needed} sequences .* {needed - 1}"):
        SeesawBatchSampler(needed - 1, PLAN)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"dataset": SEQUENCES + 1},
        {"plan": dataclasses.replace(PLAN, warmup_tokens=PLAN.warmup_tokens + 1)},
    ],
)
def test_state_of_another_order_is_refused(change: dict[str, Any]):
    state = SeesawBatchSampler(SEQUENCES, PLAN).state_dict()
    other = SeesawBatchSampler(**{"dataset": SEQUENCES, "plan": PLAN, **change})
    with pytest.raises(UsageError, match="saved"):
        other.load_state_dict(state)

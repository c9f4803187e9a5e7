"""`ByteModel` against PyTorch's own attention, the closed form of its size, and causality."""

import math

import pytest
import torch
from torch.nn import functional

from papercuts.errors import UsageError
from seesaw.model import ByteModel, ModelShape, causal_attention, next_byte_loss

TINY = ModelShape(width=16, layers=2, heads=2)


def some_bytes(*shape: int) -> torch.Tensor:
    return torch.randint(256, shape, generator=torch.Generator().manual_seed(0))


def test_attention_is_pytorchs():
    query, key, value = torch.randn(
        3, 2, 3, 9, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )
    expected = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    torch.testing.assert_close(causal_attention(query, key, value), expected)


def test_no_byte_sees_a_later_one():
    model = ByteModel(TINY, 12, seed=1)
    tokens = some_bytes(1, 12)
    changed = tokens.clone()
    changed[0, 7] = (changed[0, 7] + 1) % 256
    with torch.no_grad():
        before, after = model(tokens), model(changed)
    torch.testing.assert_close(before[:, :7], after[:, :7], rtol=0, atol=0)
    assert not torch.allclose(before[:, 7], after[:, 7])


@pytest.mark.parametrize(
    ("shape", "seq_len", "count"), [(ModelShape(), 64, 948_096), (TINY, 12, 10_592)]
)
def test_size_in_closed_form(shape: ModelShape, seq_len: int, count: int):
    width, layers = shape.width, shape.layers
    closed = layers * (12 * width**2 + 4 * width) + 2 * width + (256 + seq_len) * width
    assert ByteModel(shape, seq_len).count_parameters() == closed == count


def test_untrained_model_is_nearly_uniform():
    tokens = some_bytes(16, 33)
    loss = next_byte_loss(ByteModel(ModelShape(), 32)(tokens[:, :-1]), tokens[:, 1:])
    assert loss.item() == pytest.approx(math.log(256), abs=0.08)


def test_loss_is_the_mean_negative_log_probability():
    logits = torch.randn(2, 3, 256, generator=torch.Generator().manual_seed(2)).double()
    targets = some_bytes(2, 3)
    expected = -sum(
        math.log(math.exp(logits[i, j, targets[i, j]]) / logits[i, j].exp().sum())
        for i in range(2)
        for j in range(3)
    )
    assert next_byte_loss(logits, targets).item() == pytest.approx(expected / 6, rel=1e-6)


def test_weights_depend_on_the_seed_alone():
    torch.manual_seed(1)
    first = ByteModel(TINY, 8, seed=5).state_dict()
    torch.manual_seed(2)
    second, other = ByteModel(TINY, 8, seed=5).state_dict(), ByteModel(TINY, 8, seed=6).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["embedding.weight"], other["embedding.weight"])


def test_standard_deviations_at_the_start():
    block = ByteModel(ModelShape(), 64, seed=0).blocks[0]
    assert block.mlp_in.weight.std().item() == pytest.approx(0.02, rel=0.02)
    assert block.mlp_out.weight.std().item() == pytest.approx(0.01, rel=0.02)
    assert block.attention_out.weight.std().item() == pytest.approx(0.01, rel=0.02)


@pytest.mark.parametrize("sizes", [{"width": 10, "heads": 3}, {"layers": 0}, {"heads": -1}])
def test_sizes_that_make_no_model_are_refused(sizes: dict[str, int]):
    with pytest.raises(UsageError):
        ModelShape(**sizes)

"""A small byte-level language model: a decoder-only transformer with pre-normalization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (PyTorch's own convention)

from papercuts.errors import UsageError

VOCABULARY = 256


@dataclass(frozen=True)
class ModelShape:
    """The size of a `ByteModel`; `width` must be a multiple of `heads`."""

    width: int = 192
    layers: int = 2
    heads: int = 3
    mlp_ratio: int = 4

    def __post_init__(self) -> None:
        """Refuse sizes that make no model."""
        if min(self.width, self.layers, self.heads, self.mlp_ratio) < 1:
            raise UsageError(f"every size of the model must be 1 or more: {self}")
        if self.width % self.heads:
            raise UsageError(f"width {self.width} is no multiple of the {self.heads} heads")


def causal_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Mix each value with those before it: three (batch, heads, length, width) to one.

    Written out, because at the short sequences of this model the fused kernel that PyTorch has for
    CPUs makes a whole training step 1.5 to 2 times as long.
    """
    length, width = query.shape[-2:]
    scores = (query * width**-0.5) @ key.transpose(-1, -2)
    later = torch.ones(length, length, dtype=torch.bool, device=query.device).triu(1)
    mixed: Tensor = scores.masked_fill(later, float("-inf")).softmax(-1).to(value.dtype) @ value
    return mixed


class Block(nn.Module):
    """Causal self-attention and a GELU MLP, each added to the residual stream."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        width, inner = shape.width, shape.mlp_ratio * shape.width
        self.heads = shape.heads
        self.norm_attention = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.attention_out = nn.Linear(width, width, bias=False)
        self.norm_mlp = nn.LayerNorm(width)
        self.mlp_in = nn.Linear(width, inner, bias=False)
        self.mlp_out = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, length, width) to the same shape."""
        batch, length, width = x.shape
        qkv = self.qkv(self.norm_attention(x)).view(batch, length, 3, self.heads, -1)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = causal_attention(query, key, value)
        x = x + self.attention_out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + cast("Tensor", self.mlp_out(F.gelu(self.mlp_in(self.norm_mlp(x)))))


class ByteModel(nn.Module):
    """Predict the next byte; the output layer shares the embedding's weights.

    Learned positions, no dropout and no biases in the linear layers. The weights depend on `seed`
    alone: normal with standard deviation 0.02, divided by sqrt(2 * layers) in the two layers that
    write to the residual stream.
    """

    def __init__(self, shape: ModelShape, seq_len: int, *, seed: int = 0) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(VOCABULARY, shape.width)
        self.positions = nn.Embedding(seq_len, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width)
        self._initialize(torch.Generator().manual_seed(seed))

    @torch.no_grad()
    def _initialize(self, generator: torch.Generator) -> None:
        into_residual = 0.02 / (2 * self.shape.layers) ** 0.5
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                deviation = into_residual if name.endswith("_out.weight") else 0.02
                parameter.normal_(0.0, deviation, generator=generator)

    def forward(self, tokens: Tensor) -> Tensor:
        """Give the logits: int64 (batch, length) to (batch, length, 256)."""
        x = self.embedding(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.embedding.weight)

    def count_parameters(self) -> int:
        """Count the trained numbers, those of the shared embedding once."""
        return sum(parameter.numel() for parameter in self.parameters())


def next_byte_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Give the mean cross-entropy in nats, in float32: (batch, length, 256), (batch, length)."""
    return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())

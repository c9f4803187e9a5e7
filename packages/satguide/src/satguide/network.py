"""The graph network that looks at a formula once (paper, architecture section and its code).

Node feature log(1 + degree); one encoder for literals and clauses; then, layer by layer,

    c <- LN(c + MLP_c[c ; mean of its literals])
    l <- LN(l + MLP_l[l ; its negation ; mean of its clauses, the new ones])

and for each variable two numbers from [not-v ; v]: rho, the logit of "try true first", clamped to
[-8, 8], and mu, the mean of log w.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from papercuts.kernels.csr import NeighbourLists
from satguide.graph import Batch

RHO_LIMIT = 8.0
WHITE = 1e-4  # of the largest variance, added to each before it is made 1
BLOCK = 1 << 16  # nodes that inference updates together


@dataclass(frozen=True)
class Shape:
    """The size of a network: features per node, and rounds of message passing.

    With `symmetric`, not in the paper, the read-out looks at [not-v ; v] and [v ; not-v]: mu is the
    mean of both and rho half their difference, so that negating a variable turns its polarity and
    leaves its weight, by construction.
    """

    width: int = 32
    layers: int = 4
    symmetric: bool = False

    def __post_init__(self) -> None:
        if self.width < 1 or self.layers < 0:
            raise ValueError(f"no network has width {self.width} and {self.layers} layers")

    def as_dict(self) -> dict[str, int]:
        """Give the fields by name."""
        return asdict(self)


class GuidanceNetwork(nn.Module):
    """Maps a batch of formulas to (rho, mu), each [variables].

    A new network says rho = mu = 0 for every variable: the last layer begins at zero.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        d = shape.width
        self.encode = nn.Sequential(
            nn.Linear(1, 2 * d), nn.SiLU(), nn.Linear(2 * d, d), nn.LayerNorm(d)
        )
        self.rounds = nn.ModuleList(Round(d) for _ in range(shape.layers))
        self.read_out = nn.Sequential(nn.Linear(2 * d, 2 * d), nn.SiLU(), nn.Linear(2 * d, 2))
        last = self.read_out[-1]
        nn.init.zeros_(last.weight)  # type: ignore[arg-type]
        nn.init.zeros_(last.bias)  # type: ignore[arg-type]

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Compute (rho, mu), both [variables] fp32, for all formulas of a batch."""
        literals = self._encoded(batch.clauses_of.indptr.diff())
        clauses = self._encoded(batch.literals_of.indptr.diff())
        for message in self.rounds:
            literals, clauses = message(batch, literals, clauses)
        return self._answer(literals)

    @torch.no_grad()
    def infer(self, batch: Batch, *, rows: int = BLOCK) -> tuple[Tensor, Tensor]:
        """Compute `forward` without gradient, `rows` nodes at a time, up to rounding.

        Beside the graph and three rows of features a literal and one a clause, memory does not grow
        with the formula.
        """
        literals = self._encoded_by_degree(batch.clauses_of, rows)
        clauses = self._encoded_by_degree(batch.literals_of, rows)
        for message in self.rounds:
            literals, clauses = cast("Round", message).infer(batch, literals, clauses, rows)
        rows += rows % 2
        starts = range(0, max(1, len(literals)), rows)
        rho, mu = zip(*(self._answer(literals[i : i + rows]) for i in starts), strict=True)
        return torch.cat(rho), torch.cat(mu)

    def _encoded(self, degrees: Tensor) -> Tensor:
        """Encode nodes by their degrees: [nodes] to [nodes, width]."""
        return cast("Tensor", self.encode(torch.log1p(degrees.to(torch.float32))[:, None]))

    def _encoded_by_degree(self, lists: NeighbourLists, rows: int) -> Tensor:
        """Encode all rows into [rows, width], where there are few degrees each degree once."""
        degrees = lists.indptr.diff()
        top = int(degrees.max()) if lists.rows else 0
        if top < min(rows, lists.rows):
            table = self._encoded(torch.arange(top + 1, device=lists.device))
            return table[degrees]
        out = torch.empty(lists.rows, self.shape.width, device=lists.device)
        for first in range(0, lists.rows, rows):
            out[first : first + rows] = self._encoded(degrees[first : first + rows])
        return out

    @torch.no_grad()
    def whiten(self, batch: Batch, generator: torch.Generator) -> None:
        """Begin the read-out with a rotation of whitened features of these formulas.

        Mean aggregation leaves the features of all variables nearly the same: in a new network the
        tenth direction has 1/500 of the first one's spread, and a read-out from it takes for ever
        to learn. `WHITE` bounds what the smallest are enlarged by.
        """
        first = cast("nn.Linear", self.read_out[0])
        inputs: list[Tensor] = []
        handle = first.register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
        try:
            self(batch)
        finally:
            handle.remove()
        x = torch.cat(inputs).double()
        mean = x.mean(0)
        values, vectors = torch.linalg.eigh((x - mean).T @ (x - mean) / len(x))
        scale = (values.clamp(min=0) + WHITE * values[-1].clamp(min=1e-12)).rsqrt()
        noise = torch.randn(x.shape[1], x.shape[1], generator=generator, dtype=torch.float64)
        # Twice: SiLU halves what is near zero.
        weight = 2 * torch.linalg.qr(noise).Q @ (vectors * scale).T
        first.weight.copy_(weight)
        first.bias.copy_(-(weight @ mean))

    def look(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Compute (rho, mu) and what the last layer reads them from: [variables, 2 width]."""
        hidden: list[Tensor] = []
        handle = self.read_out[-1].register_forward_pre_hook(lambda _, args: hidden.append(args[0]))
        try:
            rho, mu = self(batch)
        finally:
            handle.remove()
        return rho, mu, torch.stack(hidden).mean(0)

    def _answer(self, literals: Tensor) -> tuple[Tensor, Tensor]:
        # Literal 2(v - 1) is not-v, and 2(v - 1) + 1 is v: a row of two literals is [not-v ; v].
        width = 2 * self.shape.width
        out = self.read_out(literals.reshape(-1, width))
        if self.shape.symmetric:
            swapped = self.read_out(_negations(literals).reshape(-1, width))
            signs = torch.tensor([-1.0, 1.0], device=out.device)
            out = (out + signs * swapped) / 2
        return out[:, 0].clamp(-RHO_LIMIT, RHO_LIMIT), out[:, 1]


class Round(nn.Module):
    """One exchange of messages: literals to clauses and back."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.clause = nn.Sequential(nn.Linear(2 * d, d), nn.SiLU(), nn.Linear(d, d))
        self.literal = nn.Sequential(nn.Linear(3 * d, d), nn.SiLU(), nn.Linear(d, d))
        self.clause_norm = nn.LayerNorm(d)
        self.literal_norm = nn.LayerNorm(d)

    def forward(self, batch: Batch, literals: Tensor, clauses: Tensor) -> tuple[Tensor, Tensor]:
        """Update the literals [2 variables, d] and the clauses [clauses, d]."""
        clauses = self._clauses(clauses, batch.literals_of.mean(literals))
        literals = self._literals(literals, _negations(literals), batch.clauses_of.mean(clauses))
        return literals, clauses

    def infer(
        self, batch: Batch, literals: Tensor, clauses: Tensor, rows: int
    ) -> tuple[Tensor, Tensor]:
        """Compute `forward` in blocks of rows; the clauses are updated in place.

        A product with [own ; heard] is the sum of two, and one with a mean is the mean of products:
        so nothing is concatenated, and messages are multiplied at the side that has fewer nodes.
        """
        d = literals.shape[1]
        weight, bias = _linear(self.clause[0])
        said = functional.linear(literals, weight[:, d:])
        for first, lists in _blocks(batch.literals_of, rows):
            own = clauses[first : first + lists.rows]
            hidden = functional.linear(own, weight[:, :d], bias).add_(lists.mean(said))
            own.copy_(_updated(self.clause, self.clause_norm, own, hidden))
        weight, bias = _linear(self.literal[0])
        mine, other = weight[:, :d], weight[:, d : 2 * d]
        # Both literals of a variable at once, each the other's negation.
        pair = torch.cat([torch.cat([mine, other], 1), torch.cat([other, mine], 1)])
        updated = torch.empty_like(literals)
        for first, lists in _blocks(batch.clauses_of, rows):
            block = slice(first, first + lists.rows)
            own = literals[block]
            both = functional.linear(own.reshape(-1, 2 * d), pair, torch.cat([bias, bias]))
            heard = functional.linear(lists.mean(clauses), weight[:, 2 * d :])
            hidden = heard.add_(both.reshape(-1, d))
            updated[block] = _updated(self.literal, self.literal_norm, own, hidden)
        return updated, clauses

    def _clauses(self, clauses: Tensor, heard: Tensor) -> Tensor:
        update: Tensor = self.clause(torch.cat([clauses, heard], 1))
        return cast("Tensor", self.clause_norm(clauses + update))

    def _literals(self, literals: Tensor, negations: Tensor, heard: Tensor) -> Tensor:
        update: Tensor = self.literal(torch.cat([literals, negations, heard], 1))
        return cast("Tensor", self.literal_norm(literals + update))


def _linear(layer: nn.Module) -> tuple[Tensor, Tensor]:
    """Give weight and bias of a linear layer."""
    linear = cast("nn.Linear", layer)
    return linear.weight, linear.bias


def _updated(update: nn.Module, norm: nn.Module, own: Tensor, hidden: Tensor) -> Tensor:
    """Finish an update from what its first layer gave, which is overwritten."""
    last = cast("nn.Sequential", update)[-1]
    return cast("Tensor", norm(last(functional.silu(hidden, inplace=True)).add_(own)))


def parameters(network: nn.Module) -> int:
    """Count the numbers that training sets."""
    return sum(p.numel() for p in network.parameters())


def _negations(literals: Tensor) -> Tensor:
    """Swap the rows of each literal and its negation."""
    return literals.reshape(-1, 2, literals.shape[1]).flip(1).reshape(literals.shape)


def _blocks(lists: NeighbourLists, rows: int) -> Iterator[tuple[int, NeighbourLists]]:
    """Cut neighbour lists into pieces of an even number of rows, each with its first row."""
    rows += rows % 2
    if lists.rows <= rows:
        yield 0, lists
        return
    for first in range(0, lists.rows, rows):
        indptr = lists.indptr[first : first + rows + 1]
        start, end = int(indptr[0]), int(indptr[-1])
        part = lists.indices[start:end]
        yield first, NeighbourLists(indptr - start, part, lists.sources, check=False)

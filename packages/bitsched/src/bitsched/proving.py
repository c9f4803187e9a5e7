"""Whether the closed form of the least makespan holds: the record of `prove`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from bitsched.costs import Costs
from bitsched.exact import find_optimum
from bitsched.plan import Plan
from bitsched.planning import make_plan
from bitsched.shape import Shape, causal, full


@dataclass(frozen=True)
class Proof:
    """The least makespan that a solver found, and how far down it proved that none is less.

    `verdict` says whether the makespan is proved to be the least; `gap` is makespan / bound.
    `closed_form` is the paper's: m (n + 1)(c + r) / 2 under a causal mask, m n (c + r) without
    one, all work spread over n processors without a gap. Times have the unit of `c` and `r`.
    `schedule` is the named one whose plan it is, or `exact` where the solver found a faster one.
    """

    mask: str
    n: int
    heads: int
    processors: int
    c: float
    r: float
    makespan: float
    bound: float
    gap: float
    verdict: Literal["yes", "undecided"]
    closed_form: float
    equal: bool
    schedule: str
    from_scratch: bool
    wall_s: float
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """Give the record."""
        return asdict(self)

    def sentence(self) -> str:
        """Say it for a person."""
        words = f"{self.makespan:g} is the least makespan"
        if self.verdict != "yes":
            words = f"the least makespan lies between {self.bound:g} and {self.makespan:g}"
        formula = "m(n+1)(c+r)/2" if self.mask == "causal" else "mn(c+r)"
        relation = "equal to" if self.equal else "not" if self.verdict == "yes" else "against"
        return f"{words}, {relation} the closed form {formula} = {self.closed_form:g}"


def prove(
    n: int,
    heads: int,
    mask: Literal["causal", "full"],
    costs: Costs,
    *,
    processors: int | None = None,
    from_scratch: bool = False,
    time_limit_s: float = 60.0,
    seed: int = 0,
) -> tuple[Proof, Plan]:
    """Find the least makespan of n KV by n Q tiles and prove it; give the plan too.

    On n processors where no number is named. The search begins at the best named schedule and
    may count tiles; `from_scratch` leaves both out. Raises as `bitsched.exact.find_optimum`.
    """
    count = n if processors is None else processors
    shape = Shape(heads, causal(n, n) if mask == "causal" else full(n, n), mask=mask)
    found = find_optimum(
        shape,
        count,
        compute=costs.compute,
        reduce=costs.reduce,
        hint=None if from_scratch else make_plan(shape, "auto", count, costs),
        count_tiles=not from_scratch,
        time_limit_s=time_limit_s,
        seed=seed,
    )
    closed = closed_form(n, heads, mask, costs)
    proof = Proof(
        mask=mask,
        n=n,
        heads=heads,
        processors=count,
        c=costs.compute,
        r=costs.reduce,
        makespan=found.makespan,
        bound=found.bound,
        gap=found.makespan / found.bound if found.bound else 1.0,
        verdict="yes" if found.proved else "undecided",
        closed_form=closed,
        equal=found.proved and abs(found.makespan - closed) <= 1e-9 * closed,
        schedule=str(found.plan.about["schedule"]),
        from_scratch=from_scratch,
        wall_s=round(found.wall_s, 3),
        seed=seed,
    )
    return proof, found.plan


def closed_form(n: int, heads: int, mask: str, costs: Costs) -> float:
    """Give the paper's optimum on n processors (sheet items 7 and 8)."""
    tile = costs.compute + costs.reduce
    return heads * (n + 1) * tile / 2 if mask == "causal" else heads * n * tile

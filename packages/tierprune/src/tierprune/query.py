"""A causal query, and the band of tiers that it needs (Propositions 3.2, 3.5 and 3.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from papercuts.errors import UsageError
from tierprune.quoting import split_list
from tierprune.spelling import did_you_mean
from tierprune.tiers import Tiers


@dataclass(frozen=True)
class Query:
    """P(outcome | do(treatment), given), by the names of the variables."""

    treatment: tuple[str, ...]
    outcome: tuple[str, ...]
    given: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise `ValueError` for an empty side, a name twice, and a name on two sides."""
        if not self.treatment or not self.outcome:
            raise ValueError("a query needs at least one treatment and one outcome")
        sides = {"treatment": self.treatment, "outcome": self.outcome, "given": self.given}
        seen: dict[str, str] = {}
        for side, names in sides.items():
            for name in names:
                if name in seen:
                    where = "twice in" if seen[name] == side else f"in {seen[name]} and in"
                    raise ValueError(f"{name} is {where} {side}")
                seen[name] = side

    def __str__(self) -> str:
        conditions = [f"do({', '.join(self.treatment)})", *self.given]
        return f"P({', '.join(self.outcome)} | {', '.join(conditions)})"

    @property
    def names(self) -> tuple[str, ...]:
        """All variables of the query."""
        return self.treatment + self.outcome + self.given

    def check(self, known: Sequence[str], where: str) -> None:
        """Raise `ValueError` for the first name that is not among `known`; `where` says of what."""
        have = set(known)
        for name in self.names:
            if name not in have:
                raise ValueError(f"{name} is not in {where}{did_you_mean(name, known, ' ({})')}")


@dataclass(frozen=True)
class Band:
    """The tiers first..last whose components a query needs (none where first > last).

    `rule` is the proposition that allows to drop the others: 3.2 without conditions, 3.5 where all
    of them lie before the treatments, else 3.6.
    """

    first: int
    last: int
    rule: str

    def __contains__(self, tier: object) -> bool:
        return isinstance(tier, int) and self.first <= tier <= self.last


def band_of(query: Query, tiers: Tiers, *, force_tight: bool = False) -> Band:
    """Give the band of `query`, whose names must be in `tiers`.

    `force_tight` takes the band of Proposition 3.2 for every query. That is wrong where 3.6 is
    required: it may turn a query that is not identifiable into one that seems to be.
    """
    of = tiers.of
    first = min(of[name] for name in query.treatment)
    last = max(of[name] for name in query.outcome)
    latest_given = max((of[name] for name in query.given), default=0)
    if not query.given:
        return Band(first, last, "3.2")
    if latest_given < first:
        return Band(first, last, "3.5")
    if force_tight:
        return Band(first, last, "3.2")
    return Band(1, max(last, latest_given), "3.6")


def split_names(given: Sequence[str] | None, known: Sequence[str]) -> tuple[str, ...]:
    """Read the names of an option: it may be repeated, and each time list names by commas.

    A value that is a known name as a whole is that name; names with commas in a list stand in
    double quotes, with quotes inside as in JSON (as an edge list has them) or doubled as in CSV.
    """
    have, names = set(known), []
    for value in given or ():
        names += [value] if value in have else split_list(value, have)
    return tuple(name for name in names if name)


def make_query(
    do: Sequence[str], outcome: Sequence[str], given: Sequence[str] | None, known: Sequence[str]
) -> Query:
    """Make the query of the options --do, --outcome and --given about the variables `known`.

    Raises `UsageError` for an empty or overlapping side and for an unknown name.
    """
    try:
        query = Query(*(split_names(side, known) for side in (do, outcome, given)))
        query.check(known, "the variables")
    except ValueError as error:
        raise UsageError(str(error)) from None
    return query

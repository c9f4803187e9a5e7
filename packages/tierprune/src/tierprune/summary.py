"""What commands say to a person, beside the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tierprune.admg import ADMG
from tierprune.components import edge_texts, t_components
from tierprune.needed import Needed
from tierprune.pruning import Pruned, count_edges
from tierprune.query import Band, Query
from tierprune.tiers import Tiers

if TYPE_CHECKING:
    from tierprune.assumption import Finding

_WHY = {
    "3.2": "nothing is observed",
    "3.5": "all that is observed lies before the treatments",
    "3.6": "something observed lies in a treatment's tier or later",
}
_MOST = 20  # names in one line


def describe_pruned(pruned: Pruned, query: Query) -> Iterator[str]:
    """Say by which rule which edges stay, and what need not be known at all."""
    forced = bool(query.given) and pruned.band.rule == "3.2"
    yield f"{query}: {describe_band(pruned.band, forced=forced)}"
    yield f"{counted(pruned.kept, 'edge')} kept, {pruned.dropped} dropped"
    yield f"never needed: {listed(pruned.never_needed)}"


def describe_components(graph: ADMG, tiers: Tiers, band: Band) -> Iterator[str]:
    """List the edges of each T-component, and say which are kept."""
    for tier, part in enumerate(t_components(graph, tiers), 1):
        word = "kept" if tier in band else "dropped"
        edges = ", ".join(edge_texts(part)) or "no edges"
        yield f"T-component {tier} ({word}, {counted(count_edges(part), 'edge')}): {edges}"


def describe_needed(need: Needed) -> Iterator[str]:
    """Say by which rule how many pairs are left to judge, and how many are saved."""
    yield f"{need.query}: {describe_band(need.band)}"
    saved = need.all_pairs - need.pairs
    share = f" ({saved / need.all_pairs:.1%})" if need.all_pairs else ""
    yield f"{counted(need.pairs, 'pair')} to judge of {need.all_pairs}, {saved} saved{share}"
    yield f"never needed: {listed(need.never_needed)}"


def describe_band(band: Band, *, forced: bool = False) -> str:
    """Say which tiers' components are kept, and why."""
    why = "forced, which can be wrong" if forced else _WHY[band.rule]
    rule = f"Proposition {band.rule} ({why})"
    if band.first > band.last:
        return f"no component is needed by {rule}: the outcomes come before the treatments"
    if band.first == band.last:
        return f"edges into tier {band.first} are needed by {rule}"
    return f"edges into tiers {band.first} to {band.last} are needed by {rule}"


def describe_unused(columns: Sequence[str], tiers: Tiers) -> Iterator[str]:
    """Name the columns of the data that have no tier: to the method they are latent variables."""
    unused = [name for name in columns if name not in tiers.of]
    if unused:
        are = "is" if len(unused) == 1 else "are"
        yield f"{counted(len(unused), 'column')} {are} in no tier and not used: {listed(unused)}"


def finding_row(found: Finding) -> dict[str, Any]:
    """Give what a table of `check` shows of an edge; the records have all."""
    evidence = found.evidence
    return {
        "early": found.early,
        "late": found.late,
        "verdict": found.verdict,
        "p": found.p_adjusted,
        "witness": None if evidence is None else evidence.witness,
    }


def listed(names: Sequence[str]) -> str:
    """List names, the first of many only."""
    if not names:
        return "none"
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more


def counted(number: int, what: str) -> str:
    """Give a number and what it counts, in the plural where there is not one."""
    return f"{number} {what}{'' if number == 1 else 's'}"

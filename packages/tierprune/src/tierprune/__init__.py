"""Which edges does this causal question still need? Pruning, identification and discovery.

from tierprune import ADMG, Query, Tiers

graph = ADMG.from_edges(["age", "drug", "stroke"], [("age", "drug"), ("drug", "stroke")])
tiers = Tiers((("age",), ("drug",), ("stroke",)))
query = Query(("drug",), ("stroke",))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tierprune.adjustment import Adjustment, adjust_admg, adjust_pag
    from tierprune.admg import ADMG
    from tierprune.assumption import Finding, check_assumption
    from tierprune.components import check_tiers, t_components
    from tierprune.dataset import Coded, Table, read_table
    from tierprune.discovery import Discovered, discover, restricted
    from tierprune.estimation import Counts, Difference, Estimate, estimate
    from tierprune.expression import Estimand
    from tierprune.graphfile import GraphFile
    from tierprune.identification import Hedge, Identified, identify, identify_pruned
    from tierprune.independence import make_test
    from tierprune.independence.base import Independence
    from tierprune.independence.contingency import Contingency
    from tierprune.independence.fisherz import FisherZ
    from tierprune.independence.oracle import Oracle
    from tierprune.members import Members, list_members
    from tierprune.needed import Needed, needed_pairs
    from tierprune.pag import PAG, Mark
    from tierprune.plot import plot_pag, plot_pruned
    from tierprune.pruning import Pruned, prune
    from tierprune.query import Band, Query, band_of
    from tierprune.rendering import to_json, to_latex, to_text, to_y0
    from tierprune.scoring import Score, score, true_pag
    from tierprune.separation import m_connected, m_separated
    from tierprune.simulation import (
        DiscreteModel,
        GaussianModel,
        random_graph,
        random_model,
        sample,
    )
    from tierprune.tiers import Tiers, read_tiers

__all__ = [
    "ADMG",
    "PAG",
    "Adjustment",
    "Band",
    "Coded",
    "Contingency",
    "Counts",
    "Difference",
    "Discovered",
    "DiscreteModel",
    "Estimand",
    "Estimate",
    "Finding",
    "FisherZ",
    "GaussianModel",
    "GraphFile",
    "Hedge",
    "Identified",
    "Independence",
    "Mark",
    "Members",
    "Needed",
    "Oracle",
    "Pruned",
    "Query",
    "Score",
    "Table",
    "Tiers",
    "adjust_admg",
    "adjust_pag",
    "band_of",
    "check_assumption",
    "check_tiers",
    "discover",
    "estimate",
    "identify",
    "identify_pruned",
    "list_members",
    "m_connected",
    "m_separated",
    "make_test",
    "needed_pairs",
    "plot_pag",
    "plot_pruned",
    "prune",
    "random_graph",
    "random_model",
    "read_table",
    "read_tiers",
    "restricted",
    "sample",
    "score",
    "t_components",
    "to_json",
    "to_latex",
    "to_text",
    "to_y0",
    "true_pag",
]

_HOMES = {
    "Contingency": "independence.contingency",
    "FisherZ": "independence.fisherz",
    "Independence": "independence.base",
    "Oracle": "independence.oracle",
    "ADMG": "admg",
    "Adjustment": "adjustment",
    "Band": "query",
    "Coded": "dataset",
    "Counts": "estimation",
    "Difference": "estimation",
    "Discovered": "discovery",
    "DiscreteModel": "simulation",
    "Estimand": "expression",
    "Estimate": "estimation",
    "Finding": "assumption",
    "GaussianModel": "simulation",
    "GraphFile": "graphfile",
    "Hedge": "identification",
    "Identified": "identification",
    "Mark": "pag",
    "Members": "members",
    "Needed": "needed",
    "PAG": "pag",
    "Pruned": "pruning",
    "Query": "query",
    "Score": "scoring",
    "Table": "dataset",
    "Tiers": "tiers",
    "adjust_admg": "adjustment",
    "adjust_pag": "adjustment",
    "band_of": "query",
    "check_assumption": "assumption",
    "check_tiers": "components",
    "discover": "discovery",
    "estimate": "estimation",
    "identify": "identification",
    "identify_pruned": "identification",
    "list_members": "members",
    "m_connected": "separation",
    "m_separated": "separation",
    "make_test": "independence",
    "needed_pairs": "needed",
    "plot_pag": "plot",
    "plot_pruned": "plot",
    "prune": "pruning",
    "random_graph": "simulation",
    "random_model": "simulation",
    "read_table": "dataset",
    "read_tiers": "tiers",
    "restricted": "discovery",
    "sample": "simulation",
    "score": "scoring",
    "t_components": "components",
    "to_json": "rendering",
    "to_latex": "rendering",
    "to_text": "rendering",
    "to_y0": "rendering",
    "true_pag": "scoring",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)

"""The JSON Schema of the records that `tierprune` writes, one under `$defs` for each command."""

from __future__ import annotations

from typing import Any

_WHOLE = {"type": "integer", "minimum": 0}
_REAL = {"type": "number"}
_REAL_OR_NULL = {"type": ["number", "null"]}
_TEXT = {"type": "string"}
_TEXT_OR_NULL = {"type": ["string", "null"]}
_NAMES = {"type": "array", "items": _TEXT}
_NAMES_OR_NULL = {"anyOf": [_NAMES, {"type": "null"}]}
_FLAG = {"type": "boolean"}
_VERDICT = {"enum": ["yes", "no", "undecided"]}


def schema() -> dict[str, Any]:
    """Give a schema that each record matches in at least one of its alternatives."""
    records = {
        "id": _id(),
        "id_learned": _id_learned(),
        "estimate": _estimate(),
        "need": _need(),
        "discover": _discover(),
        "discover_compare": _discover_compare(),
        "score": _score(),
        "check": _check(),
        "bench": _bench(),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "a record of tierprune",
        "$defs": records,
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in records],
    }


def _object(
    title: str, properties: dict[str, Any], optional: tuple[str, ...] = ()
) -> dict[str, Any]:
    return {
        "title": title,
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def _score() -> dict[str, Any]:
    return _object(
        "tierprune score: one part of a graph against the truth",
        {
            "part": {"enum": ["adjacency", "arrowhead", "tail", "circle"]},
            "tier": {"type": ["integer", "null"], "description": "null is over all tiers"},
            "found": {**_WHOLE, "description": "in the learned graph"},
            "true": {**_WHOLE, "description": "in the true graph"},
            "both": _WHOLE,
            "precision": {**_REAL_OR_NULL, "description": "null where nothing was found"},
            "recall": {**_REAL_OR_NULL, "description": "null where there is nothing to find"},
            "f1": _REAL_OR_NULL,
        },
    )


def _check() -> dict[str, Any]:
    return _object(
        "tierprune check: one edge between tiers",
        {
            "early": _TEXT,
            "late": _TEXT,
            "tier_early": _WHOLE,
            "tier_late": _WHOLE,
            "verdict": {**_VERDICT, "description": "a latent cause confounds the two"},
            "capped": {
                "type": "boolean",
                "description": "evidence left aside: sets that may refute it were not tried",
            },
            "p_adjusted": {**_REAL_OR_NULL, "description": "p by Holm's method"},
            "witness": {**_TEXT_OR_NULL, "description": "has an edge with the earlier one only"},
            "separated_by": {**_NAMES_OR_NULL, "description": "separates witness and later one"},
            "p_separated": {**_REAL_OR_NULL, "description": "of that independence"},
            "p_joined": {**_REAL_OR_NULL, "description": "of the two, the earlier one given too"},
            "p": {**_REAL_OR_NULL, "description": "largest p-value of the dependences"},
        },
    )


def _bench() -> dict[str, Any]:
    return _object(
        "tierprune bench: one task, over its runs",
        {
            "task": _TEXT,
            "size": _TEXT,
            "runs": _WHOLE,
            "wall_s": {**_REAL, "description": "median"},
            "wall_s_min": _REAL,
            "wall_s_max": _REAL,
            "tests": {"type": ["integer", "null"], "description": "of independence, median"},
        },
    )


def _need() -> dict[str, Any]:
    tier = {"type": "integer", "minimum": 1}
    possible = {"enum": ["-> <- <-> none", "-> none"], "description": "kinds of edge from a to b"}
    return _object(
        "tierprune need: a pair of variables to judge",
        {"a": _TEXT, "b": _TEXT, "tier_a": tier, "tier_b": tier, "possible": possible},
    )


def _formula() -> dict[str, Any]:
    return {
        "formula": {**_TEXT_OR_NULL, "description": "null where there is none, or it is long"},
        "estimand": {
            "type": ["object", "null"],
            "description": "p and given; product; quotient; sum and of; ref (see definitions)",
        },
        "variables": {**_NAMES_OR_NULL, "description": "what must be measured"},
        "arbitrary": {**_NAMES_OR_NULL, "description": "the formula is the same at every value"},
        "expressions": {"type": ["integer", "null"], "minimum": 1},
    }


def _id() -> dict[str, Any]:
    hedge = _object(
        "two c-forests with the same roots, which prove that effect is not identifiable",
        {"effect": _TEXT, "larger": _NAMES, "smaller": _NAMES, "roots": _NAMES},
    )
    return _object(
        "tierprune id: the answer to a query",
        {
            "query": _TEXT,
            "verdict": {"enum": ["yes", "no"]},
            "rule": {"enum": ["3.2", "3.5", "3.6", None], "description": "null with --full"},
            "kept_edges": _WHOLE,
            "dropped_edges": _WHOLE,
            **_formula(),
            "hedge": {"anyOf": [hedge, {"type": "null"}]},
        },
    )


def _id_learned() -> dict[str, Any]:
    members = _object(
        "what ID finds in the graphs that a learned graph stands for",
        {
            "read": _WHOLE,
            "total": {**_WHOLE, "type": ["integer", "null"]},
            "complete": _FLAG,
            "identified": _WHOLE,
            "not_identified": _WHOLE,
            "open": _WHOLE,
            "formulas": _WHOLE,
            "answer": {"enum": ["all", "some", "none", "no graph"]},
        },
    )
    return _object(
        "tierprune id: the answer to a query about a learned graph",
        {
            "query": _TEXT,
            "verdict": _VERDICT,
            "by": {"enum": ["adjustment", "no effect", "members", "nothing"]},
            "criterion": _TEXT,
            "adjust_for": _NAMES_OR_NULL,
            "other_sets": {"type": "array", "items": _NAMES},
            "canonical_set": _NAMES_OR_NULL,
            "conditional_on": _NAMES,
            "undecided_edge": _NAMES_OR_NULL,
            "members": {"anyOf": [members, {"type": "null"}]},
            "notes": _NAMES,
            **_formula(),
        },
    )


def _estimate() -> dict[str, Any]:
    values = {"type": "object", "additionalProperties": _TEXT}
    thinnest = _object(
        "the cell with the fewest rows that the formula conditions on",
        {"cell": values, "effective_n": _REAL},
    )
    side = {
        "outcome": values,
        "do": values,
        "given": values,
        "estimate": _REAL,
        "low": {**_REAL_OR_NULL, "description": "95 % bootstrap interval"},
        "high": _REAL_OR_NULL,
        "standard_error": _REAL_OR_NULL,
        "thinnest": {"anyOf": [thinnest, {"type": "null"}]},
        "held_at": {**values, "description": "of variables on which the value does not depend"},
        "undefined_resamples": _WHOLE,
    }
    difference = {
        "versus": _object("the same under another intervention", side),
        "difference": _REAL,
        "difference_low": _REAL_OR_NULL,
        "difference_high": _REAL_OR_NULL,
        "difference_standard_error": _REAL_OR_NULL,
    }
    return _object(
        "tierprune estimate: one combination of outcome values",
        {
            "query": _TEXT,
            "verdict": {"enum": ["yes", "undecided"]},
            **side,
            **difference,
            "rows": _WHOLE,
            "dropped_rows": _WHOLE,
            "bootstrap": _WHOLE,
            "smooth": _REAL,
            "seed": _WHOLE,
            "members": {
                "type": ["integer", "null"],
                "description": "graphs of a learned class that have this formula (--enumerate); "
                "null: it holds in all",
            },
            "formula": _TEXT_OR_NULL,
        },
        optional=tuple(difference),
    )


def _discovery_head() -> dict[str, Any]:
    return {
        "query": {**_TEXT_OR_NULL, "description": "null where all tiers are learnt without one"},
        "first_tier": {"type": "integer", "minimum": 1},
        "last_tier": {"type": "integer", "minimum": 1},
        "rule": {"enum": ["3.2", "3.5", "3.6", "all"], "description": "the proposition used"},
        "test": {"enum": ["fisherz", "gsq", "chisq", "kci", "oracle"]},
        "alpha": _REAL_OR_NULL,
        "max_cond": {"type": ["integer", "null"], "description": "largest set allowed; null: any"},
    }


def _discover() -> dict[str, Any]:
    cost = {
        "tier": {"type": "integer", "minimum": 1},
        "tests": _WHOLE,
        "computed": _WHOLE,
        "wall_s": _REAL,
    }
    edge = {"a": _TEXT, "b": _TEXT, "edge": _TEXT, "tier": {"type": "integer", "minimum": 1}}
    conflict = {
        "rule": _TEXT,
        "a": _TEXT,
        "b": _TEXT,
        "at": _TEXT_OR_NULL,
        "wanted": {**_TEXT, "description": "what the rule wanted at that end"},
    }
    properties = {
        **_discovery_head(),
        "capped": {**_FLAG, "description": "max_cond left out larger sets"},
        "tests": {**_WHOLE, "description": "asked for, in order, one after another"},
        "computed": {**_WHOLE, "description": "of these, not answered by an earlier one"},
        "wall_s": {**_REAL, "description": "without reading the data"},
        "tiers": {"type": "array", "items": _object("what a tier cost", cost)},
        "variables": {**_NAMES, "description": "of the tiers up to the last one learnt"},
        "edges": {"type": "array", "items": _object("an edge", edge)},
        "sepsets": {
            "type": "array",
            "items": _object("what separates a pair", {"a": _TEXT, "b": _TEXT, "given": _NAMES}),
        },
        "contradictions": {"type": "array", "items": _object("tests that disagree", conflict)},
    }
    return _object("tierprune discover: what was learnt", properties)


def _discover_compare() -> dict[str, Any]:
    both = {"query": _REAL, "full": _REAL}
    ratio = _object("of both searches", {**both, "ratio": _REAL_OR_NULL})
    properties = {
        **_discovery_head(),
        "tests": ratio,
        "computed": ratio,
        "wall_s": ratio,
        "edges": _object("edges learnt", {"query": _WHOLE, "full": _WHOLE}),
        "same_edges": {**_FLAG, "description": "the query's edges are those of the full graph"},
    }
    return _object("tierprune discover --compare: a query's tiers and all tiers", properties)

"""The JSON Schema of the records that `satguide` writes, one for each command."""

from __future__ import annotations

from typing import Any

_WHOLE = {"type": "integer", "minimum": 0}
_WHOLE_OR_NULL = {"type": ["integer", "null"], "minimum": 0}
_REAL = {"type": "number"}
_REAL_OR_NULL = {"type": ["number", "null"]}
_TEXT = {"type": "string"}
_TEXT_OR_NULL = {"type": ["string", "null"]}
_YES_OR_NULL = {"type": ["boolean", "null"]}
_VERDICT = {"enum": ["yes", "no", "undecided"]}

_ABOUT = {
    "type": "object",
    "properties": {"version": _TEXT, "model": _TEXT_OR_NULL},
    "required": ["version", "model"],
    "additionalProperties": False,
}
_CONTEST: dict[str, Any] = {
    "type": "object",
    "properties": {
        "version": _TEXT,
        "model": _TEXT,
        "backend": _TEXT,
        "polarity": {"enum": ["persistent", "none"]},
        "limit": _WHOLE_OR_NULL,
        "timeout_s": _REAL_OR_NULL,
        "seed": _WHOLE,
    },
    "required": ["version", "model", "backend", "polarity", "limit", "timeout_s", "seed"],
    "additionalProperties": False,
}


def schema() -> dict[str, Any]:
    """Give a schema that each record matches in exactly one of its alternatives."""
    evaluated = (_eval(), _eval_formula())
    records = (_train(), _weights(), *evaluated, _explain(), _explain_variable(), _bench())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "a record of satguide",
        "oneOf": list(records),
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


def _train() -> dict[str, Any]:
    validated = {
        "validation": {**_REAL_OR_NULL, "description": "mean cost of the validation formulas"},
        "ratio": {**_REAL_OR_NULL, "description": "validation over the better baseline"},
        "baseline_plain": _REAL_OR_NULL,
        "baseline_unit": _REAL_OR_NULL,
    }
    properties = {
        "iteration": _WHOLE,
        "cost": {**_REAL, "description": "mean cost of the sampled settings"},
        "unfinished": {**_WHOLE, "description": "solves that hit the limit"},
        "mu_std": {**_REAL_OR_NULL, "description": "spread of mu over all variables"},
        "positive": {**_REAL_OR_NULL, "description": "share of variables with p = 1 at the mode"},
        "kl": {**_REAL, "description": "KL(new || old) a formula, at the last step"},
        "clipped": {**_REAL, "description": "share of samples with a clipped ratio, last step"},
        "grad_norm": {**_REAL, "description": "before clipping, last step"},
        "solve_s": _REAL,
        "learn_s": _REAL,
        "wall_s": {**_REAL, "description": "since the beginning, over all resumed runs"},
        **validated,
    }
    return _object("satguide train: one iteration", properties, tuple(validated))


def _weights() -> dict[str, Any]:
    properties = {
        "variable": {"type": "integer", "minimum": 1},
        "weight": {"type": "number", "exclusiveMinimum": 0},
        "polarity": {**_YES_OR_NULL, "description": "null where only weights were learnt"},
    }
    return _object("satguide weights: one variable", properties)


def _eval() -> dict[str, Any]:
    properties = {
        "arm": {**_TEXT, "description": "guided, plain, unit, or a solver of --versus"},
        "solver": _TEXT,
        "formulas": _WHOLE,
        "solved": _WHOLE,
        "sat": _WHOLE,
        "unsat": _WHOLE,
        "unsolved": {**_WHOLE, "description": "runs that a limit or a failure ended"},
        "decisions_mean": _REAL_OR_NULL,
        "decisions_median": _REAL_OR_NULL,
        "decisions_geomean": {**_REAL_OR_NULL, "description": "of decisions + 1, less 1"},
        "conflicts_mean": _REAL_OR_NULL,
        "wall_mean_s": _REAL_OR_NULL,
        "par2_s": _REAL_OR_NULL,
        "network_mean_s": _REAL_OR_NULL,
        "baseline": {**_TEXT_OR_NULL, "description": "what the guided record is compared with"},
        "ratio": {**_REAL_OR_NULL, "description": "guided mean decisions over this arm's"},
        "ratio_low": _REAL_OR_NULL,
        "ratio_high": _REAL_OR_NULL,
        "change_percent": _REAL_OR_NULL,
        "t": _REAL_OR_NULL,
        "p": _REAL_OR_NULL,
        "wall_ratio": {**_REAL_OR_NULL, "description": "guided mean time over this arm's"},
        "wall_ratio_low": _REAL_OR_NULL,
        "wall_ratio_high": _REAL_OR_NULL,
        "par2_ratio": _REAL_OR_NULL,
        "satguide": _CONTEST,
    }
    return _object("satguide eval: one arm", properties)


def _eval_formula() -> dict[str, Any]:
    run = {
        "verdict": {**_VERDICT, "description": "is it satisfiable?"},
        "sound": {"type": "boolean", "description": "false: a model leaves a clause false"},
        "decisions": _WHOLE_OR_NULL,
        "conflicts": _WHOLE_OR_NULL,
        "wall_s": _REAL,
        "error": {**_TEXT_OR_NULL, "description": "how the solver failed"},
    }
    properties = {
        "formula": _TEXT,
        "variables": _WHOLE,
        "clauses": _WHOLE,
        "network_s": _REAL,
        "outside": {**_TEXT_OR_NULL, "description": "what of it training has not seen"},
        "runs": {"type": "object", "additionalProperties": _object("one run", run)},
        "satguide": _CONTEST,
    }
    return _object("satguide eval --runs: one formula", properties)


def _explain() -> dict[str, Any]:
    member = ("variables", "weight_mean", "rest_weight_mean", "correlation", "auc")
    properties: dict[str, Any] = {
        "formula": _TEXT,
        "variables": _WHOLE,
        "clauses": _WHOLE,
        "verdict": {**_VERDICT, "description": "is it satisfiable?"},
        "weight_min": _REAL_OR_NULL,
        "weight_median": _REAL_OR_NULL,
        "weight_max": _REAL_OR_NULL,
        "polarity_true_share": _REAL_OR_NULL,
        "degree_pearson": _REAL_OR_NULL,
        "degree_spearman": _REAL_OR_NULL,
        "core_clauses": _WHOLE_OR_NULL,
    }
    for kind in ("core", "backbone"):
        properties |= {f"{kind}_{name}": _REAL_OR_NULL for name in member}
        properties[f"{kind}_variables"] = _WHOLE_OR_NULL
    properties["backbone_polarity_agreement"] = _REAL_OR_NULL
    properties["satguide"] = _ABOUT
    return _object("satguide explain: one formula", properties)


def _explain_variable() -> dict[str, Any]:
    properties = {
        "formula": _TEXT,
        "variable": {"type": "integer", "minimum": 1},
        "weight": {"type": "number", "exclusiveMinimum": 0},
        "polarity": _YES_OR_NULL,
        "degree": _WHOLE,
        "core": _YES_OR_NULL,
        "backbone": {"enum": [1, 0, -1, None]},
    }
    return _object("satguide explain --variables: one variable", properties)


def _bench() -> dict[str, Any]:
    properties = {
        "job": _TEXT,
        "size": _WHOLE,
        "unit": _TEXT,
        "repeats": _WHOLE,
        "wall_s": {**_REAL, "description": "median of the repeats"},
        "wall_s_min": _REAL,
        "wall_s_max": _REAL,
        "per_s": {**_REAL, "description": "units a second, at the median"},
    }
    return _object("satguide bench: one job", properties)

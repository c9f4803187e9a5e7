"""The JSON Schema of the records."""

from __future__ import annotations

from typing import Any


def _object(properties: dict[str, Any], *, optional: tuple[str, ...] = ()) -> dict[str, Any]:
    required = sorted(properties.keys() - set(optional))
    return {"type": "object", "properties": properties, "required": required}


_INTEGER = {"type": "integer", "minimum": 0}
_NUMBER = {"type": "number"}
_MAYBE = {"type": ["number", "null"]}
_COUNT = {"type": "integer", "minimum": 1}
_TEXT = {"type": "string"}

_DRAW = _object(
    {
        "round": _COUNT,
        "particle": _INTEGER,
        "x": {"type": "array", "items": _NUMBER, "description": "a coordinate each"},
        "zoprox": {"type": "object", "description": "how the draws were made; the same in all"},
    }
)
_DISTANCES = {
    "mean_error": _MAYBE | {"description": "(mean - mean of --ref) / sd of --ref"},
    "sd_error": _MAYBE | {"description": "sd / sd of --ref - 1"},
    "kl": _MAYBE | {"description": "kNN estimate of KL(draws | --ref), k = 4, in nats"},
    "sliced_w2": _MAYBE | {"description": "sliced Wasserstein distance, in sd of --ref"},
    "mmd2": _MAYBE | {"description": "unbiased squared MMD, median heuristic"},
    "kl_floor": _MAYBE | {"description": "the same of independent draws of --ref itself"},
    "sliced_w2_floor": _MAYBE,
    "mmd2_floor": _MAYBE,
}
_DIAGNOSIS = _object(
    {
        "parameter": _TEXT | {"description": "all: the worst of ESS, R-hat and errors"},
        **dict.fromkeys(("draws", "chains", "runs"), _COUNT),
        **dict.fromkeys(("mean", "sd", "ess_bulk", "ess_tail", "mcse_mean"), _MAYBE),
        "r_hat": _MAYBE | {"description": "rank-normalised, split; a particle's rounds a chain"},
        "r_hat_rounds": _MAYBE | {"description": "a round a chain: far from 1, they drift"},
        "r_hat_runs": _MAYBE | {"description": "a run (file) a chain"},
        **_DISTANCES,
    },
    optional=tuple(_DISTANCES),
)
_BUDGET = _object(
    {
        "evaluations": _INTEGER | {"description": "all; the three that follow added"},
        "round_evaluations": _INTEGER | {"description": "K T N M"},
        "correction_evaluations": _INTEGER | {"description": "N M + N for each kept round"},
        "pilot_evaluations": _INTEGER | {"description": "of --step auto"},
        "exact": {"type": "boolean", "description": "false for rejection: at most so many"},
        "points_a_sub_step": _INTEGER,
        "sub_steps": _INTEGER,
        "draws": _INTEGER,
        "evaluation_s": _NUMBER | {"description": "one value of the target, in a batch"},
        "target_s": _NUMBER | {"description": "all evaluations, without the sampler's own time"},
    },
    optional=("evaluation_s", "target_s"),
)
_DEMO = _object(
    {
        "measure": {"enum": ["kl", "gaussian_share", "near_torus_share", "far_torus_share"]},
        "round": _COUNT,
        **dict.fromkeys(("method", "corrected", "no_interaction", "rejection"), _MAYBE),
        "exact": _MAYBE | {"description": "of exact draws"},
    }
)
_BENCH = _object(
    {
        **dict.fromkeys(("particles", "sub_steps", "draws", "dim"), _COUNT),
        "seconds_a_round": _NUMBER,
        "evaluations_a_second": _NUMBER,
        "ratio_to_bare": _NUMBER | {"description": "to bare NumPy of the same shapes; median"},
        "ratio_low": _NUMBER | {"description": "lower quartile"},
        "ratio_high": _NUMBER | {"description": "upper quartile"},
    }
)


def schema() -> dict[str, Any]:
    """Give one schema with a definition for the record of each command."""
    definitions: dict[str, Any] = {
        "sample": _DRAW,
        "uniform": _DRAW,
        "diag": _DIAGNOSIS,
        "budget": _BUDGET,
        "demo": _DEMO,
        "bench": _BENCH,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Records of zoprox",
        "$defs": definitions,
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in definitions],
    }

"""The JSON Schema of the records."""

from __future__ import annotations

from typing import Any


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": sorted(properties)}


_INTEGER = {"type": "integer", "minimum": 0}
_NUMBER = {"type": "number"}
_MAYBE = {"type": ["number", "null"]}
_TEXT = {"type": ["string", "null"]}
_TILE = {"type": "array", "items": _INTEGER}
_TILES = {"type": "array", "items": _TILE, "description": "[head, KV tile, Q tile]"}
_VERDICT = {"enum": ["yes", "no", "undecided"]}
_MAYBE_COUNT = {"type": ["integer", "null"]}

_PLAN = _object(
    {
        "processor": _INTEGER,
        "tasks": {
            "type": "array",
            "items": {
                "type": "array",
                "items": {"type": "integer", "minimum": -1},
                "minItems": 4,
                "maxItems": 4,
            },
            "description": "[head, KV tile, Q tile, rank in the sum of (head, Q tile)], in order; "
            "rank -1: no fixed order",
        },
        "bitsched": {"type": "object", "description": "how the plan was made"},
    }
)
_SIMULATION = _object(
    {
        **dict.fromkeys(("schedule", "assign", "mask"), _TEXT),
        **dict.fromkeys(("heads", "kv_heads", "n_kv", "n_q"), _MAYBE_COUNT),
        **dict.fromkeys(("processors", "tasks"), _INTEGER),
        "deterministic": {"type": "boolean"},
        **dict.fromkeys(("c", "r"), _NUMBER),
        "verdict": _VERDICT | {"description": "no: a deadlock; then there are no times"},
        **dict.fromkeys(
            ("makespan", "gap", "bound", "idle_share", "stalled_share"),
            _MAYBE,
        ),
        **dict.fromkeys(
            ("work_bound", "chain_bound", "reduction_bound", "load_bound"),
            _MAYBE,
        ),
        "bound_by": {"enum": ["work", "chain", "reduction", "load", None]},
        "path_tasks": _MAYBE_COUNT,
        "waiting": _TILES,
    }
)
_PROCESSOR = _object(
    {
        **dict.fromkeys(("processor", "tasks"), _INTEGER),
        **dict.fromkeys(("busy", "stalled", "idle", "idle_share", "end"), _NUMBER),
    }
)
_TASK = _object(
    {
        **dict.fromkeys(("processor", "head", "kv", "q"), _INTEGER),
        "rank": {"type": "integer", "minimum": -1},
        **dict.fromkeys(("start", "compute_end", "reduce_start", "end"), _NUMBER),
    }
)
_FINDING = _object(
    {
        "name": {"enum": ["tiles", "chains", "order", "deadlock", "lemma"]},
        "verdict": _VERDICT,
        "message": {"type": "string"},
        "count": _INTEGER,
        "tiles": _TILES,
        "edges": {
            "type": "array",
            "items": _TILE,
            "description": "[head, Q tile, KV tile that adds first, KV tile that adds next]",
        },
    }
)
_PROOF = _object(
    {
        "mask": {"enum": ["causal", "full"]},
        **dict.fromkeys(("n", "heads", "processors", "seed"), _INTEGER),
        **dict.fromkeys(("c", "r", "makespan", "wall_s"), _NUMBER),
        "bound": _NUMBER | {"description": "proved: no plan takes less"},
        "gap": _NUMBER | {"description": "makespan / bound"},
        "verdict": {"enum": ["yes", "undecided"], "description": "makespan is proved the least"},
        "closed_form": _NUMBER | {"description": "the paper's least makespan on n SMs"},
        "equal": {"type": "boolean", "description": "proved, and equal to the closed form"},
        "schedule": {"type": "string", "description": "whose plan it is; exact: the solver's"},
        "from_scratch": {"type": "boolean"},
    }
)
_BITS = _object(
    {
        **{key: {"type": "string"} for key in ("schedule", "mask", "hash")},
        "verdict": {
            "enum": ["yes", "no"],
            "description": "all runs gave the same bits, and those of right gradients",
        },
        "ordered": {"type": "boolean", "description": "the plan fixes the order of each sum"},
        **dict.fromkeys(("heads", "kv_heads", "n_kv", "n_q", "processors"), _INTEGER),
        **dict.fromkeys(("seqlen", "width", "threads", "runs", "seed"), _INTEGER),
        "dtype": {"enum": ["fp32", "bf16"]},
        "hashes": _INTEGER | {"description": "distinct results of all runs"},
        "deviation": _MAYBE | {"description": "largest difference of two runs; null: not finite"},
        "max_error": _MAYBE | {"description": "largest difference to autograd; null: not finite"},
        "tolerance": _NUMBER | {"description": "the largest max_error allowed"},
        **dict.fromkeys(("delay_us", "wall_s"), _NUMBER),
    }
)
_COMPARISON = _object(
    {
        **{key: {"type": "string"} for key in ("mask", "schedule")},
        **dict.fromkeys(("n", "heads", "batch", "processors"), _INTEGER),
        **dict.fromkeys(("makespan", "bound", "gap"), _NUMBER),
        "fastest": {"type": "boolean", "description": "of the schedules with an order"},
        "throughput": _NUMBER | {"description": "share of all SMs' time that is work"},
        "speedup": _MAYBE | {"description": "makespan of asc / makespan"},
        "overhead": _MAYBE | {"description": "makespan / makespan of atomic - 1"},
    }
)
_FIT = _object(
    {
        "schedule": {"type": "string"},
        "time": {"type": ["number", "string"]},
        "bitsched": _object(
            {
                "predicted": _NUMBER | {"description": "in the unit of time"},
                "relative_error": _NUMBER,
                **dict.fromkeys(("c", "r", "latency"), _NUMBER),
            }
        ),
    }
)
_GRAPH = _object(
    {
        **dict.fromkeys(("tasks", "processors", "accumulators", "critical_path_tasks"), _INTEGER),
        "schedule": {"enum": ["list", "fifo", "given"]},
        **dict.fromkeys(("makespan", "bound", "gap"), _NUMBER),
        **dict.fromkeys(("work_bound", "path_bound", "reduction_bound", "load_bound"), _NUMBER),
        "idle_share": _NUMBER,
        "critical_path": {
            "type": ["array", "null"],
            "items": {"type": "string"},
            "description": "ids; null past 200 tasks",
        },
    }
)
_GRAPH_TASK = _object(
    {
        "id": {"type": ["string", "integer"]},
        "bitsched": _object(
            {
                "processor": _INTEGER,
                **dict.fromkeys(("start", "compute_end", "end"), _NUMBER),
                "rank": _MAYBE_COUNT | {"description": "place in its sum"},
                "critical": {"type": "boolean"},
            }
        ),
    }
)
_BENCH = _object(
    {
        "job": {"type": "string"},
        **dict.fromkeys(("tasks", "repeats"), _INTEGER),
        **dict.fromkeys(("wall_s", "wall_s_min", "wall_s_max", "tasks_per_s"), _NUMBER),
    }
)


def schema() -> dict[str, Any]:
    """Give one schema with a definition for the record of each command."""
    definitions: dict[str, Any] = {
        "plan": _PLAN,
        "simulation": _SIMULATION,
        "simulation_processor": _PROCESSOR,
        "simulation_task": _TASK,
        "check": _FINDING,
        "prove": _PROOF,
        "bits": _BITS,
        "compare": _COMPARISON,
        "fit": _FIT,
        "graph": _GRAPH,
        "graph_task": _GRAPH_TASK,
        "bench": _BENCH,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Records of bitsched",
        "$defs": definitions,
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in definitions],
    }

"""The JSON Schema of the records that `seesaw` writes, one for each command."""

from __future__ import annotations

from typing import Any

_WHOLE = {"type": "integer", "minimum": 0}
_REAL = {"type": "number"}
_REAL_OR_NULL = {"type": ["number", "null"]}
_TEXT = {"type": "string"}
_VERDICT = {"enum": ["yes", "no", "undecided"]}


def schema() -> dict[str, Any]:
    """Give a schema that each record matches in exactly one of its alternatives."""
    records = (_plan(), _check(), _noise(), _simulate(), _reproduce(), _bench(), *_train())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "a record of seesaw",
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


def _plan() -> dict[str, Any]:
    whole = ("phase", "start_token", "start_step", "batch", "grad_accum", "steps", "tokens")
    provenance = {
        "version": _TEXT,
        "base": {**_TEXT, "description": "spec of the base schedule"},
        "cut": _REAL,
        "alpha": {**_REAL, "description": "divides lr at each cut"},
        "beta": {**_REAL, "description": "multiplies batch at each cut"},
        "optimizer": {"enum": ["adam", "sgd"]},
        "seq_len": {**_WHOLE, "description": "tokens in a sequence"},
        "total_tokens": _WHOLE,
        "warmup_tokens": _WHOLE,
        "start_ratio": _REAL,
        "final_ratio": _REAL,
        "micro_batch": {**_WHOLE, "description": "sequences; 0 where none was named"},
        "gpus": _WHOLE,
    }
    properties: dict[str, Any] = dict.fromkeys(whole, _WHOLE)
    properties["batch"] = {**_WHOLE, "description": "sequences, over all devices"}
    properties["lr"] = {**_REAL, "description": "learning rate of the phase, after warmup"}
    properties["base_lr"] = {**_REAL, "description": "that of the base schedule at the phase's cut"}
    properties["seesaw"] = _object("provenance", provenance)
    return _object("seesaw plan, seesaw convert: one phase", properties)


def _check() -> dict[str, Any]:
    properties = {
        "name": _TEXT,
        "verdict": _VERDICT,
        "value": _REAL_OR_NULL,
        "limit": _REAL_OR_NULL,
        "message": _TEXT,
    }
    return _object("seesaw check: one finding", properties)


def _noise() -> dict[str, Any]:
    properties: dict[str, Any] = {
        "verdict": _VERDICT,
        "noise_scale": {**_REAL_OR_NULL, "description": "S/|G|^2 in sequences"},
        "noise_scale_low": _REAL_OR_NULL,
        "noise_scale_high": _REAL_OR_NULL,
        "noise_scale_tokens": _REAL_OR_NULL,
        "noise_trace": {**_REAL, "description": "S"},
        "grad_sq": {**_REAL, "description": "|G|^2"},
        "at_batch": _REAL,
        "mean_share": _REAL_OR_NULL,
        "batches": {"type": "array", "items": _REAL},
        "records": _WHOLE,
        "first_step": _REAL_OR_NULL,
        "last_step": _REAL_OR_NULL,
        "message": _TEXT,
    }
    return _object("seesaw noise: one estimate", properties)


def _simulate() -> dict[str, Any]:
    phase = {
        "phase": _WHOLE,
        "steps": _WHOLE,
        "lr": _REAL,
        "batch": _REAL,
        "risk": _REAL_OR_NULL,
        "mean_share": _REAL_OR_NULL,
    }
    properties: dict[str, Any] = {
        "risk_base": {**_REAL_OR_NULL, "description": "null where the run diverged"},
        "risk_plan": _REAL_OR_NULL,
        "risk_ratio": _REAL_OR_NULL,
        "initial_risk": _REAL,
        "steps_base": _WHOLE,
        "steps_plan": _WHOLE,
        "mean_share": _REAL_OR_NULL,
        "base_mean_share": _REAL_OR_NULL,
        "diverged": {"type": "boolean"},
        "base_diverged": {"type": "boolean"},
        "optimizer": {"enum": ["adam", "sgd"]},
        "dim": _WHOLE,
        "sigma": _REAL,
        "eta": _REAL,
        "batch": _REAL,
        "staircase": {"type": "boolean"},
        "phases": {"type": "array", "items": _object("phase", phase)},
    }
    return _object("seesaw simulate", properties)


def _reproduce() -> dict[str, Any]:
    properties: dict[str, Any] = {
        "kind": {"enum": ["seesaw", "ramp"]},
        "model": _TEXT,
        "batch": _WHOLE,
        "cut": _REAL,
        "beta": _REAL,
        "cosine_steps": _WHOLE,
        "cosine_steps_published": _WHOLE,
        "steps": _WHOLE,
        "steps_published": _WHOLE,
        "tokens": _WHOLE,
        "tokens_published": {"type": ["integer", "null"]},
        "saving": _REAL,
        "verdict": _VERDICT,
    }
    return _object("seesaw reproduce: one published run", properties)


def _bench() -> dict[str, Any]:
    properties: dict[str, Any] = {
        "job": _TEXT,
        "size": _WHOLE,
        "unit": _TEXT,
        "repeats": _WHOLE,
        "wall_s": {**_REAL, "description": "median"},
        "wall_s_min": _REAL,
        "wall_s_max": _REAL,
    }
    return _object("seesaw bench: one job", properties)


def _train() -> tuple[dict[str, Any], ...]:
    run = {"run": {"enum": ["base", "seesaw"]}, "seed": _WHOLE}
    step = {
        **run,
        "step": {**_WHOLE, "description": "optimizer steps done, this one included"},
        "tokens": _WHOLE,
        "lr": _REAL,
        "batch": _WHOLE,
        "loss": {**_REAL_OR_NULL, "description": "nats a byte, mean over the batch"},
        "grad_norm": _REAL_OR_NULL,
    }
    norms = {**run, "step": _WHOLE, "batch": _WHOLE, "grad_norm_sq": _REAL_OR_NULL}
    end = {
        "event": {"const": "end"},
        **run,
        "steps": _WHOLE,
        "tokens": _WHOLE,
        "validation_loss": _REAL_OR_NULL,
        "validation_tokens": _WHOLE,
    }
    comparison = {
        "event": {"const": "comparison"},
        "seeds": _WHOLE,
        "base_loss": _REAL_OR_NULL,
        "base_loss_sd": _REAL_OR_NULL,
        "seesaw_loss": _REAL_OR_NULL,
        "difference": {**_REAL_OR_NULL, "description": "Seesaw minus base, nats a byte"},
        "difference_low": _REAL_OR_NULL,
        "difference_high": _REAL_OR_NULL,
        "base_steps": _WHOLE,
        "seesaw_steps": _WHOLE,
        "steps_saved": _REAL,
    }
    return (
        _object("seesaw train: one step", step),
        _object("seesaw train: gradient norms for seesaw noise", norms),
        _object("seesaw train: a run's end", end),
        _object("seesaw train: the comparison", comparison),
    )

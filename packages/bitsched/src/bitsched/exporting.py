"""A plan as tables that a kernel includes or loads: C header, safetensors, JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bitsched.checking import check, faults
from bitsched.masks import MOST_TASKS
from bitsched.plan import Plan
from bitsched.taskgraph import chains
from papercuts.errors import DataError, NegativeResult

Form = Literal["c-header", "torch", "json"]

MEANINGS = {
    "starts": "processor p runs the tasks starts[p] to starts[p + 1] - 1, in this order",
    "head": "query head of a task (with batches: batch * heads + head)",
    "kv": "KV tile of a task, counted from 0",
    "q": "Q tile of a task, counted from 0",
    "rank": (
        "place of the task's share in the sum of dQ of (head, q), counted from 0: wait until "
        "turn[head][q] == rank, add, then set turn[head][q] = rank + 1 (turn starts at 0); "
        "-1: no order is fixed"
    ),
    "chain": (
        "bit 0: first task of its chain (load K and V, set dK and dV to 0); bit 1: last task of "
        "its chain (store dK and dV)"
    ),
    "shares": "number of shares in the sum of dQ of (head, q): the last one has rank shares - 1",
}
"""What each table holds; `shares` is [heads, n_q], `starts` [processors + 1], others [tasks]."""


def tables(plan: Plan) -> dict[str, NDArray[np.int32]]:
    """Give the tables of `MEANINGS`, all int32.

    A chain is a run of tasks of one KV tile of one KV head on one processor. Raises `DataError`
    for a plan whose numbers are too large for a table.
    """
    chain_of, processor = chains(plan), plan.processor()
    change = (chain_of[1:] != chain_of[:-1]) | (processor[1:] != processor[:-1])
    edge = np.ones(min(1, plan.tasks), dtype=bool)
    chain = np.concatenate([edge, change]) + 2 * np.concatenate([change, edge])
    heads, n_q = int(plan.head.max(initial=-1)) + 1, int(plan.q.max(initial=-1)) + 1
    if heads * n_q > MOST_TASKS:
        raise DataError(
            f"the plan names head {heads - 1} and Q tile {n_q - 1}: its table of sums has no room",
            expected=f"at most {MOST_TASKS} sums",
        )
    shares = np.zeros((heads, n_q), dtype=np.int32)
    np.add.at(shares, (plan.head, plan.q), 1)
    made = {
        "starts": plan.starts,
        "head": plan.head,
        "kv": plan.kv,
        "q": plan.q,
        "rank": plan.rank,
        "chain": chain,
        "shares": shares,
    }
    return {name: np.ascontiguousarray(table, dtype=np.int32) for name, table in made.items()}


def warnings(plan: Plan) -> Iterator[str]:
    """Say what a kernel that follows the tables must know: no fixed order, tiles that are amiss.

    Raises `NegativeResult` for a plan under which a kernel would wait for ever.
    """
    if not plan.ordered:
        yield "no order of the sums is fixed (rank -1): the bits may change from run to run"
    for fault in faults(plan, check(plan)):
        if fault.name == "order" and not plan.ordered:
            continue  # said above
        if fault.name in ("order", "deadlock"):
            raise NegativeResult(f"not exported, a kernel would wait for ever: {fault.message}")
        yield f"{fault.name}: {fault.message}"


def export_plan(plan: Plan, form: Form) -> bytes:
    """Write the tables of a plan as one file.

    `c-header` compiles as C99 and C++; `torch` is a safetensors file of int32 tensors whose
    metadata hold the meanings; `json` is one document.
    """
    made = tables(plan)
    if form == "c-header":
        return _c_header(plan, made).encode()
    if form == "torch":
        return _safetensors(plan, made)
    document = {
        "format": 1,
        **_sizes(plan, made),
        "meaning": MEANINGS,
        "about": plan.about,
        **{name: table.tolist() for name, table in made.items()},
    }
    return (json.dumps(document, separators=(",", ":"), default=str) + "\n").encode()


def loading_line(form: Form, path: str) -> str:
    """Give the line of code that loads the file."""
    name = "FILE" if path == "-" else path
    if form == "c-header":
        return f'#include "{name}"'
    if form == "torch":
        return f"plan = safetensors.torch.load_file({name!r}, device='cuda')"
    return f"plan = json.load(open({name!r}))"


def _sizes(plan: Plan, made: dict[str, NDArray[np.int32]]) -> dict[str, Any]:
    heads, n_q = made["shares"].shape
    return {
        "processors": plan.processors,
        "tasks": plan.tasks,
        "heads": heads,
        "n_kv": int(plan.kv.max(initial=-1)) + 1,
        "n_q": n_q,
        "ordered": plan.ordered,
    }


def _c_header(plan: Plan, made: dict[str, NDArray[np.int32]]) -> str:
    about = json.dumps(plan.about, default=str).replace("*/", "* /")
    lines = [
        "/* A schedule for a deterministic attention backward pass, made by bitsched.",
        f" * {about}",
        " * To place the tables in GPU memory, define before including this file:",
        " *   #define BITSCHED_TABLE static __device__ const int32_t",
        " */",
        "#ifndef BITSCHED_PLAN_H",
        "#define BITSCHED_PLAN_H",
        "",
        "#include <stdint.h>",
        "",
        "#ifndef BITSCHED_TABLE",
        "#define BITSCHED_TABLE static const int32_t",
        "#endif",
        "",
    ]
    for name, value in _sizes(plan, made).items():
        lines.append(f"#define BITSCHED_{name.upper()} {int(value)}")
    extents = {
        "starts": "[BITSCHED_PROCESSORS + 1]",
        "shares": "[BITSCHED_HEADS * BITSCHED_N_Q]",
    }
    for name, table in made.items():
        note = MEANINGS[name] + (" (row by row)" if name == "shares" else "")
        lines += ["", f"/* {note} */"]
        lines.append(f"BITSCHED_TABLE bitsched_{name}{extents.get(name, '[BITSCHED_TASKS]')} = {{")
        values = table.reshape(-1).tolist()
        lines += [
            "  " + ", ".join(map(str, values[k : k + 16])) + "," for k in range(0, len(values), 16)
        ]
        lines.append("};")
    return "\n".join([*lines, "", "#endif", ""])


def _safetensors(plan: Plan, made: dict[str, NDArray[np.int32]]) -> bytes:
    """Write the format of safetensors 0.x: header length, JSON header, the tensors' bytes.

    By hand, because the base install has no library for it; a test reads it with the library.
    """
    texts = {**_sizes(plan, made), "about": plan.about, "meaning": MEANINGS}
    metadata = {name: json.dumps(value, default=str) for name, value in texts.items()}
    header: dict[str, Any] = {"__metadata__": {"format": "1", **metadata}}
    data = b""
    for name, table in made.items():
        raw = table.astype("<i4").tobytes()
        header[name] = {
            "dtype": "I32",
            "shape": list(table.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data

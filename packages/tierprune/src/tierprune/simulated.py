"""Simulated data as files: a CSV of the sample, the true graph, and the tiers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papercuts.errors import UsageError
from papercuts.streams import check_output, open_output
from tierprune import formats
from tierprune.graphfile import GraphFile, edges_of
from tierprune.simulation import Kind, random_graph, random_model, sample
from tierprune.tiers import Tiers

_ROWS = 1 << 15  # written together
_DECIMALS = 6


def write_simulation(
    sizes: Sequence[int],
    *,
    samples: int,
    seed: int,
    data: str,
    truth: str | None = None,
    tiers_out: str | None = None,
    kind: Kind = "discrete",
    states: tuple[int, int] = (2, 3),
    max_parents: int = 5,
    max_neighbours: int = 4,
    bidirected: float = 0.3,
    force: bool = False,
) -> tuple[int, int, str | None]:
    """Draw a graph, a model and a sample, and write them.

    The tiers go to `tiers_out`, by default beside a data file (`d.csv`: `d.tiers.json`). Gives the
    numbers of directed and bidirected edges, and where the tiers are. Raises `UsageError` for
    numbers out of range and two outputs of one name, `OutputError` before anything is drawn where
    a file could not be written.
    """
    if tiers_out is None and data != "-":
        tiers_out = beside(data)
    places = [place for place in (data, truth, tiers_out) if place is not None]
    if len({os.path.realpath(place) for place in places}) < len(places):
        raise UsageError("data, truth and tiers need a place each")
    for place in places:
        check_output(place, force=force)
    rng = np.random.default_rng(seed)
    try:
        graph, tiers = random_graph(
            sizes,
            rng,
            max_parents=max_parents,
            max_neighbours=max_neighbours,
            bidirected=bidirected,
        )
        model = random_model(graph, rng, kind=kind, states=states)
    except ValueError as error:
        raise UsageError(str(error)) from None
    edges = list(edges_of(graph))
    if truth is not None:
        format_ = "edges" if truth == "-" else formats.detect("", truth)
        file = GraphFile([*graph.names], edges, "dot" if format_ == "bif" else format_)
        formats.write(file, truth, force=force)
    if tiers_out is not None:
        with open_output(tiers_out, force=force) as out:
            out.write(tiers_text(tiers).encode())
    with open_output(data, force=force) as out:
        for piece in csv_pieces(graph.names, sample(model, samples, rng)):
            out.write(piece)
    count = sum(mask.bit_count() for mask in graph.parents)
    return count, len(edges) - count, tiers_out


def beside(data: str) -> str:
    """Give the name of the tiers file that belongs to a data file."""
    name = data
    for suffix in (".gz", ".xz", ".zst", ".csv"):
        name = name.removesuffix(suffix)
    return f"{name}.tiers.json"


def tiers_text(tiers: Tiers) -> str:
    """Write tiers as JSON, a tier a line."""
    lines = ",\n  ".join(json.dumps([*group], ensure_ascii=False) for group in tiers.groups)
    return f'{{"tiers": [\n  {lines}\n]}}\n'


def csv_pieces(names: Sequence[str], rows: NDArray[Any]) -> Iterator[bytes]:
    """Write a matrix as CSV, piece by piece: int8 states from 0 to 9, or reals to 6 decimals.

    Whole arrays of digits are made at once: a number at a time would take minutes.
    """
    yield (",".join(names) + "\n").encode()
    write = _states if rows.dtype == np.int8 else _reals
    for start in range(0, len(rows), _ROWS):
        yield write(rows[start : start + _ROWS])


def _states(rows: NDArray[Any]) -> bytes:
    text = np.full((len(rows), 2 * rows.shape[1]), ord(","), dtype=np.uint8)
    text[:, ::2] = rows + ord("0")
    text[:, -1] = ord("\n")
    return text.tobytes()


def _reals(rows: NDArray[Any]) -> bytes:
    scaled = np.rint(np.abs(rows) * 10**_DECIMALS).astype(np.int64)
    whole = len(str(int(scaled.max()) // 10**_DECIMALS))
    width = 1 + whole + 1 + _DECIMALS + 1
    text = np.zeros((*rows.shape, width), dtype=np.uint8)
    text[..., 0] = np.where((rows < 0) & (scaled > 0), ord("-"), 0)
    for place in range(width - 2, 0, -1):
        if place == 1 + whole:
            text[..., place] = ord(".")
            continue
        scaled, digit = np.divmod(scaled, 10)
        text[..., place] = digit + ord("0")
    for place in range(1, whole):  # no leading zeros
        blank = (text[..., 1 : place + 1] <= ord("0")).all(axis=-1)
        text[..., place] = np.where(blank, 0, text[..., place])
    text[..., -1] = ord(",")
    text[:, -1, -1] = ord("\n")
    flat = text.reshape(-1)
    return flat[flat > 0].tobytes()

"""Draws: what a run leaves and `diag` reads, and their files.

A file's kind is told by its first bytes when it is read (stdin has no name) and by its suffix, or
`--format`, when it is written:

csv     columns round, particle and one for each parameter
npy     an array [rounds, particles, dim]; a flat [draws, dim] is read as one chain
json    JSON Lines, {"round": k, "particle": i, "x": [...], "zoprox": {...}} each
netcdf  ArviZ InferenceData (see `zoprox.netcdf`)

CSV files of other samplers are read too: `chain` and `draw` (also `.chain`, `.iteration`) for
particle and round, neither for one chain; comments in `#` and columns that end in `__` (CmdStan's)
are left out; a first line of numbers is data, not names.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from papercuts.compression import SUFFIXES
from papercuts.errors import DataError, UsageError
from papercuts.files import open_input, open_output
from papercuts.jsontext import dumps

DrawsFormat = Literal["csv", "npy", "json", "netcdf"]
FORMATS: tuple[DrawsFormat, ...] = ("csv", "npy", "json", "netcdf")
_BY_SUFFIX: dict[str, DrawsFormat] = {
    ".csv": "csv",
    ".npy": "npy",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".nc": "netcdf",
    ".netcdf": "netcdf",
}


@dataclass(frozen=True)
class Draws:
    """Draws of a run: `points` [rounds, particles, dim], all finite.

    A particle's places over the rounds are a chain. `names` [dim] are the parameters', `numbers`
    [rounds] the rounds' (1, 2, ... when left out), `about` says how the draws were made. Raises
    `ValueError` for shapes that do not fit.
    """

    points: NDArray[np.float64]
    names: tuple[str, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)
    numbers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.points.ndim != 3 or not self.points.size:
            raise ValueError(
                f"draws have shape [rounds, particles, dim], not {list(self.points.shape)}"
            )
        rounds, _, dim = self.points.shape
        object.__setattr__(self, "names", self.names or default_names(dim))
        object.__setattr__(self, "numbers", self.numbers or tuple(range(1, rounds + 1)))
        if len(self.names) != dim or len(set(self.names)) != dim:
            raise ValueError(f"{len(set(self.names))} different names for {dim} parameters")
        if len(self.numbers) != rounds:
            raise ValueError(f"{len(self.numbers)} numbers for {rounds} rounds")

    @property
    def dim(self) -> int:
        """How many parameters there are."""
        return int(self.points.shape[2])

    def pooled(self) -> NDArray[np.float64]:
        """Give all draws in one table, round by round: [rounds * particles, dim]."""
        return self.points.reshape(-1, self.dim)


def default_names(dim: int) -> tuple[str, ...]:
    """Give x1, x2, ..., as expressions name the coordinates."""
    return tuple(f"x{i}" for i in range(1, dim + 1))


def draws_format(path: str | Path, format_name: str | None = None) -> DrawsFormat:
    """Tell how draws are written to `path`: as asked for, else by the suffix, else CSV.

    Raises `UsageError` for a format that is none.
    """
    if format_name is not None:
        if format_name not in FORMATS:
            raise UsageError(f"--format {format_name}: draws are {', '.join(FORMATS)}")
        return next(known for known in FORMATS if known == format_name)
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in SUFFIXES:
        suffixes.pop()
    return _BY_SUFFIX.get(suffixes[-1] if suffixes else "", "csv")


def write_draws(
    draws: Draws, path: str | Path = "-", *, format_name: str | None = None, force: bool = False
) -> None:
    """Write draws to a file, whole or not at all, or to stdout (`-`).

    The digits are those that give the same numbers back. npy has no place for names and
    provenance, CSV none for provenance. Raises `OutputError`, `UsageError` for an unknown format,
    `MissingError` for netCDF without the extra.
    """
    chosen = draws_format(path, format_name)
    if chosen == "netcdf":
        from zoprox.netcdf import encoded

        data = encoded(draws)
        with open_output(path, force=force) as out:
            out.write(data)
        return
    with open_output(path, force=force) as out:
        if chosen == "npy":
            image = io.BytesIO()  # numpy asks the file for its place, which a pipe has not
            np.save(image, draws.points, allow_pickle=False)
            out.write(image.getvalue())
        elif chosen == "csv":
            heads = [_cell(name) for name in ("round", "particle", *draws.names)]
            out.write((",".join(heads) + "\n").encode())
            for number, points in zip(draws.numbers, draws.points.tolist(), strict=True):
                lines = (
                    f"{number},{particle},{','.join(map(repr, point))}\n"
                    for particle, point in enumerate(points)
                )
                out.write("".join(lines).encode())
        else:
            about = {**draws.about, "names": list(draws.names)}
            for number, points in zip(draws.numbers, draws.points.tolist(), strict=True):
                for particle, point in enumerate(points):
                    head = {"round": number, "particle": particle, "x": point}
                    out.write(dumps(head | {"zoprox": about}))


def read_draws(path: str | Path) -> Draws:
    """Read the draws of a file; `-` is stdin.

    Raises `InputError` for a file that cannot be read, and `DataError`, with the line where there
    is one, for what are no draws: no numbers, values that are not finite, rounds that lack a
    particle; `MissingError` for netCDF without the extra.
    """
    with open_input(path) as file:
        data = file.read()
    if data.startswith(b"\x93NUMPY"):
        return _from_npy(data, path)
    if data.startswith((b"\x89HDF", b"CDF")):
        from zoprox.netcdf import decoded

        return decoded(data, str(path))
    from zoprox.drawstext import parsed

    return parsed(data, str(path))


def from_array(values: NDArray[Any], path: str | Path) -> Draws:
    """Take an array [rounds, particles, dim], [draws, dim] or [draws] for draws.

    Raises `DataError`, naming `path`, for another shape, no numbers, or values not finite.
    """
    if values.dtype.kind not in "fiub":
        raise DataError(f"an array of {values.dtype}", path=path, expected="numbers")
    points = np.asarray(values, dtype=np.float64)
    if points.ndim == 1:
        points = points[:, None]
    if points.ndim == 2:
        points = points[:, None, :]
    if points.ndim != 3 or not points.size:
        raise DataError(
            f"an array of shape {list(values.shape)}",
            path=path,
            expected="[rounds, particles, dim] or [draws, dim]",
        )
    bad = int(np.count_nonzero(~np.isfinite(points)))
    if bad:
        raise DataError(f"{bad} of {points.size} values are not finite", path=path)
    return Draws(points)


def _from_npy(data: bytes, path: str | Path) -> Draws:
    try:
        values = np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError, OSError, SyntaxError, MemoryError) as error:
        # A pickled array is refused here, before anything of it is run.
        raise DataError(f"not a readable .npy file: {error}", path=path) from error
    return from_array(values, path)


def _cell(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\r\n') else text

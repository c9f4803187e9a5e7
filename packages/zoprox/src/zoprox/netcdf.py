"""Draws as ArviZ InferenceData: netCDF with a group `posterior`, a chain for each particle.

A particle's places over the rounds are a chain, and `draw` is the round. Every parameter is a
variable of its own. Needs the extra `netcdf`.
"""

from __future__ import annotations

import io
import json
import warnings
from typing import Any

import numpy as np

from papercuts.app import need
from papercuts.errors import DataError
from zoprox.draws import Draws, from_array

_ABOUT = "zoprox"  # the attribute of the group that keeps how the draws were made


def _xarray() -> Any:
    for module in ("h5py", "h5netcdf"):
        need(module, tool="zoprox", extra="netcdf")
    return need("xarray", tool="zoprox", extra="netcdf")


def encoded(draws: Draws) -> bytes:
    """Give the bytes of the netCDF file.

    Raises `DataError` for a name that netCDF cannot have, `MissingError` without the extra.
    """
    arviz = need("arviz_base", tool="zoprox", extra="netcdf")
    _xarray()
    bad = next((n for n in draws.names if "/" in n or n in ("chain", "draw") or n != n.strip()), "")
    if bad:
        raise DataError(f"a parameter in netCDF cannot be named {bad!r}")
    chains = np.moveaxis(draws.points, 0, 1)
    with warnings.catch_warnings():
        # Particles are mostly more than kept rounds, which arviz takes for swapped dimensions.
        warnings.filterwarnings("ignore", message="Found chain dimension to be longer")
        tree = arviz.from_dict(
            {"posterior": {name: chains[:, :, i] for i, name in enumerate(draws.names)}},
            coords={"draw": list(draws.numbers)},
            attrs={"posterior": {_ABOUT: json.dumps(dict(draws.about))}},
        )
    tree["posterior"].attrs.pop("created_at", None)  # the same draws give the same bytes
    image = io.BytesIO()
    tree.to_netcdf(image, engine="h5netcdf")
    return image.getvalue()


def decoded(data: bytes, path: str) -> Draws:
    """Read the group `posterior` of a netCDF file, also one that another sampler wrote.

    A variable of more than one value becomes several parameters, `theta[0]`, `theta[1]`, ...
    Raises `DataError`, naming `path`, for what is no such file.
    """
    xarray = _xarray()
    try:
        dataset = xarray.open_dataset(io.BytesIO(data), engine="h5netcdf", group="posterior")
        with dataset:
            dataset.load()
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise DataError(
            f"no InferenceData: {' '.join(str(error).split())[:200]}",
            path=path,
            expected="netCDF (HDF5) with a group posterior",
        ) from error
    names: list[str] = []
    columns = []
    for name, variable in dataset.data_vars.items():
        if not {"chain", "draw"} <= set(variable.dims):
            continue
        values = variable.transpose("draw", "chain", ...).values
        inner = values.shape[2:]
        for index in np.ndindex(*inner):
            names.append(f"{name}[{','.join(map(str, index))}]" if inner else str(name))
            columns.append(values[(slice(None), slice(None), *index)])
    if not columns:
        raise DataError("no variable over chain and draw in the group posterior", path=path)
    found = from_array(np.stack(columns, axis=2), path)
    numbers = dataset["draw"].values if "draw" in dataset.coords else np.arange(len(found.points))
    return Draws(found.points, tuple(names), _about(dataset.attrs.get(_ABOUT)), _whole(numbers))


def _whole(numbers: Any) -> tuple[int, ...]:
    kept = numbers.astype(int) if numbers.dtype.kind in "iuf" else np.arange(len(numbers))
    return tuple(int(number) for number in kept)


def _about(text: Any) -> dict[str, Any]:
    try:
        about = json.loads(text) if isinstance(text, str) else {}
    except ValueError:
        return {}
    return about if isinstance(about, dict) else {}

"""Profiles on disk: one NetCDF file holding an xarray DataTree, with the fitted rows and spec sheets beside it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayesperf import plugins
from bayesperf.errors import InputError, UnsupportedFileError
from bayesperf.inference.diagnostics import Check
from bayesperf.inference.infer import Inference
from bayesperf.model import PerformanceModel
from bayesperf.prediction.digests import ATTRIBUTE, digests
from bayesperf.schema import SCHEMA_VERSION, validate
from bayesperf.store import PROVENANCE, atomic_write, provenance_of

__all__ = ["miscoded", "read_profile", "write_profile"]

_OURS = ("measurements", "spec_sheets")

_DENSITIES = ("log_likelihood", "log_prior")
"""Groups that fill most of a file and can be computed again: single precision is plenty for comparing them."""


def write_profile(inference: Inference, path: Path) -> None:
    """Write a fit, atomically."""
    if path.suffix != ".nc":
        raise InputError(f"{path}: profiles are NetCDF files; name it *.nc")
    groups = {name: _writable(node.to_dataset()) for name, node in inference.tree.children.items()}
    groups |= {name: groups[name].astype(np.float32) for name in _DENSITIES if name in groups}
    groups["measurements"] = _to_dataset(inference.rows, "measurement")
    if inference.targets is not None:
        groups["spec_sheets"] = _to_dataset(inference.targets.reset_index(), "device_row")
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = {
        "schema_version": SCHEMA_VERSION,
        "bayesperf_kind": "profile",
        "converged": int(all(check.passed for check in inference.checks)),
        "gate": json.dumps([check.to_dict() for check in inference.checks]),
        "facts": json.dumps(inference.facts, sort_keys=True),
        "evidence_ids": json.dumps(list(inference.rows["measurement_id"])),
        PROVENANCE: json.dumps(provenance_of(inference.rows), sort_keys=True),
    }
    tree.attrs[ATTRIBUTE] = json.dumps(digests(tree))
    atomic_write(path, lambda temporary: tree.to_netcdf(temporary, engine="h5netcdf"))


def _writable(data: xr.Dataset) -> xr.Dataset:
    """Labels as plain strings: NetCDF has no object type."""
    coords = {name: data[name].astype(str) for name in data.coords if data[name].dtype == object}
    return data.assign_coords(coords)


def _to_dataset(table: pd.DataFrame, dim: str) -> xr.Dataset:
    columns: dict[str, Any] = {}
    for name in table.columns:
        values = table[name]
        if pd.api.types.is_bool_dtype(values):
            columns[str(name)] = (dim, values.to_numpy(dtype=np.int8))
        elif pd.api.types.is_numeric_dtype(values):
            columns[str(name)] = (dim, values.to_numpy(dtype=float, na_value=np.nan))
        elif not any(isinstance(value, list | tuple | np.ndarray) for value in values):
            text = ["" if value is None or value is pd.NA or value != value else str(value) for value in values]
            columns[str(name)] = (dim, np.array(text, dtype=str))
    return xr.Dataset(columns)


def _from_dataset(data: xr.Dataset) -> pd.DataFrame:
    columns = {}
    for name, values in data.data_vars.items():
        if values.dtype.kind in "OUS":
            text = [str(value) or None for value in values.values]
            columns[str(name)] = pd.Series(text, dtype=object)
        else:
            columns[str(name)] = pd.Series(values.values)
    return pd.DataFrame(columns)


def read_profile(path: Path, *, as_fitted: bool = True) -> Inference:
    """Read a fit; its rows are coded again, as coding is deterministic.

    With `as_fitted`, one whose rows are not coded to the observations that were fitted is refused.

    Raises
    ------
    InputError
        No such file.
    UnsupportedFileError
        Foreign, truncated, or of a newer version.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        with xr.open_datatree(path, engine="h5netcdf") as opened:
            tree = opened.load()
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnsupportedFileError(f"{path}: not a NetCDF file, or truncated: {reason}") from error
    if tree.attrs.get("bayesperf_kind") != "profile":
        raise UnsupportedFileError(f"{path}: a NetCDF file, but not a bayesperf profile")
    with _read_whole(path):
        found = int(tree.attrs["schema_version"])
    if found > SCHEMA_VERSION:
        raise UnsupportedFileError(
            f"{path}: written by a newer bayesperf (schema {found}, this one reads up to {SCHEMA_VERSION}); upgrade"
        )
    with _read_whole(path):
        facts = json.loads(tree.attrs["facts"])
        name, version = facts["model"], facts["model_version"]
        measured = _from_dataset(tree["measurements"].to_dataset())
        provenance = json.loads(tree.attrs[PROVENANCE])
        checks = [Check(**check) for check in json.loads(tree.attrs["gate"])]
        targets = None
        if "spec_sheets" in tree.children:
            targets = _from_dataset(tree["spec_sheets"].to_dataset()).set_index("device")
    model = plugins.load("model", name)()
    if model.version != version:
        raise UnsupportedFileError(
            f"{path}: fitted by version {version} of model {model.name!r}, installed is {model.version}; fit again, or "
            "install that version"
        )
    rows = validate(measured, source=str(path))
    rows.attrs = {PROVENANCE: provenance}
    groups = {name: node.to_dataset() for name, node in tree.children.items() if name not in _OURS}
    encoded = _encode(model, rows, targets, [update["rows"] for update in facts.get("updates", [])])
    if as_fitted and (reason := miscoded(groups.get("observed_data"), model.observations(encoded))):
        raise UnsupportedFileError(
            f"{path}: {reason}: rows were changed, or another version of the model wrote it; fit again"
        )
    return Inference(xr.DataTree.from_dict(groups), model, encoded, rows, targets, checks, facts)


def miscoded(fitted: xr.Dataset | None, coded: pd.DataFrame) -> str:
    """Say how the observations that were fitted differ from those that the rows are coded to; empty when they do not.

    Draws are kept by position: those of other observations would be taken for other cells.
    """
    if fitted is None or "observation" not in fitted.sizes:
        return ""
    n = fitted.sizes["observation"]
    same = n == len(coded)
    # Updates keep no names. Names that changed are for digests to tell; here it is their order.
    if same and "observation" in fitted.coords:
        now, then = ([str(ids[0]) for ids in coded["measurement_ids"]], [str(v) for v in fitted["observation"].values])
        same = now == then or sorted(now) != sorted(then)
    return "" if same else f"its rows make other observations ({len(coded)}) than were fitted ({n})"


@contextmanager
def _read_whole(path: Path) -> Iterator[None]:
    """Say of a file that lacks a part, or has one in another form than it is written, that it is damaged."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        lacking = f"{error} is missing" if isinstance(error, KeyError) else str(error).splitlines()[0]
        raise UnsupportedFileError(f"{path}: a bayesperf profile, but damaged ({lacking}); fit again") from error


def _encode(model: PerformanceModel, rows: pd.DataFrame, targets: pd.DataFrame | None, updates: list[int]) -> Any:
    """Rows of the fit are coded together, those of each update behind them."""
    ends = np.cumsum([len(rows) - sum(updates), *updates])
    encoded = model.encode(rows.iloc[: ends[0]].reset_index(drop=True), targets)
    for start, end in itertools.pairwise(ends):
        encoded = model.extend(encoded, rows.iloc[start:end].reset_index(drop=True), targets)
    return encoded

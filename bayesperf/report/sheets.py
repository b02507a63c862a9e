"""A posterior beside the spec sheet: what share of the stated peak or bandwidth is attained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from bayesperf.report.document import Attained, Interval
from bayesperf.specs import spec_of

__all__ = ["attained"]


def attained(row: Mapping[str, Any], rows: pd.DataFrame, sheets: pd.DataFrame | None) -> Attained | None:
    """Compare a parameter with its device's sheet; None where no sheet says anything of it.

    Parameters
    ----------
    row
        Of `Profile.parameters`: unit, median, lower, upper.
    rows
        The measurements it rests on. They say the device, the element type, how many devices, and for bandwidths
        whether the working sets exceed the cache: a cache's bandwidth has no line in a sheet.
    sheets
        Spec sheets by device.
    """
    if sheets is None or not len(rows) or row["unit"] not in ("FLOP/s", "B/s"):
        return None
    device = _only(rows, "device") or _only(rows, "target")
    spec = spec_of(sheets, str(device)) if device else {}
    dtype = _only(rows, "dtype")
    if row["unit"] == "FLOP/s":
        column, words = f"peak_flops_{dtype}", f"peak {dtype}"
    elif _exceeds_cache(rows, spec):
        column, words = "bandwidth_bytes_per_s", "stated bandwidth"
    else:
        return None
    if column not in spec:
        return None
    value = spec[column] * _devices(rows)
    share = Interval(**{name: float(row[name]) / value for name in ("median", "lower", "upper")})
    return Attained(column=column, words=words, value=value, share=share, source=_source(sheets, str(device), column))


def _source(sheets: pd.DataFrame, device: str, column: str) -> str | None:
    """Where a sheet has a value from; None where it does not say."""
    name = f"{column}_source"
    told = sheets.at[device, name] if name in sheets else None
    return told if isinstance(told, str) and told else None


def _only(rows: pd.DataFrame, column: str) -> str | None:
    """The one value of a column, None where it has several or none."""
    if column not in rows:
        return None
    values = rows[column].dropna().unique()
    return str(values[0]) if len(values) == 1 else None


def _devices(rows: pd.DataFrame) -> float:
    """Devices whose rates add up in a row; collectives state those of one rank."""
    if "n_devices" not in rows or ("message_bytes" in rows and rows["message_bytes"].notna().any()):
        return 1.0
    counts = rows["n_devices"].dropna().unique()
    return float(counts[0]) if len(counts) == 1 else 1.0


def _exceeds_cache(rows: pd.DataFrame, spec: Mapping[str, float]) -> bool:
    if "cache_bytes" not in spec:
        return False
    moved = rows["bytes"].to_numpy(float)
    footprint = rows["working_set_bytes"].to_numpy(float) if "working_set_bytes" in rows else moved
    footprint = np.where(np.isfinite(footprint), footprint, moved)
    return bool((footprint > spec["cache_bytes"] * _devices(rows)).all())

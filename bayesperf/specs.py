"""Spec sheets: what vendors say of a device. Priors and ceilings, never results."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayesperf.errors import CeilingError, TableError, UnknownNameError
from bayesperf.schema import add_flag, as_frame, as_numbers, as_text, is_excluded, is_heldout, is_missing
from bayesperf.store import read_table

__all__ = [
    "above_ceiling",
    "check_targets",
    "flag_above_ceiling",
    "read_targets",
    "refuse_above_ceiling",
    "slug",
    "spec_of",
]

NUMERIC = ("bandwidth_bytes_per_s", "memory_bytes", "cache_bytes", "parallel_units", "tdp_w", "year")

CEILING_SLACK = 1.02
"""A rate counts as above the ceiling from 2 % over the sheet: sheets are rounded, clocks boost a little."""


def slug(name: str) -> str:
    """Lower-case key of a device or target name: letters, digits and dots, joined by hyphens."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower().replace("(r)", " ").replace("(tm)", " ")).strip("-")


def read_targets(path: str | Path) -> pd.DataFrame:
    """Read a spec-sheet table (CSV or Parquet), one row per device, indexed by ``device``.

    Columns: ``peak_flops_<dtype>`` (dense, FLOP/s), ``bandwidth_bytes_per_s``, ``memory_bytes``, ``cache_bytes``,
    ``parallel_units``, ``tdp_w``, ``year``, and ``<column>_source``; any of them may be missing.

    Raises
    ------
    TableError, InputError
        Names the file, row and column.
    """
    table, first_row = read_table(path, comment="#")
    return check_targets(table, source=str(path), first_row=first_row)


def check_targets(table: pd.DataFrame, *, source: str = "targets", first_row: int = 0) -> pd.DataFrame:
    """Check a spec-sheet table and index it by ``device``; a key column called ``target`` is accepted.

    Raises
    ------
    TableError
        Names source, row and column.
    """
    table = as_frame(table, source)
    have = pd.Index([str(name) for name in table.columns])
    if have.duplicated().any():
        raise TableError("this column appears twice", source=source, column=have[have.duplicated()][0])
    if "device" not in table and "target" in table:
        table = table.rename(columns={"target": "device"})
    if "device" not in table:
        raise TableError("the key column 'device' (or 'target') is missing", source=source)
    table = table.reset_index(drop=True).copy()
    for name in [c for c in table.columns if c in NUMERIC or _is_peak(c)]:
        numbers = as_numbers(table[name])
        bad = (numbers.isna() & ~is_missing(table[name])) | (numbers <= 0) | np.isinf(numbers)
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            problem = f"{table[name].iloc[at]!r} is not a positive number"
            raise TableError(problem, source=source, row=first_row + at, column=name)
        table[name] = numbers
    absent = is_missing(table["device"])
    table["device"] = table["device"].astype(object).map(as_text).astype(object)
    repeated = absent | table["device"].isna() | table["device"].duplicated()
    if repeated.any():
        at = int(np.flatnonzero(repeated)[0])
        problem = f"{table['device'].iloc[at]!r} is missing or given twice"
        raise TableError(problem, source=source, row=first_row + at, column="device")
    return table.set_index("device")


def _is_peak(column: Any) -> bool:
    return str(column).startswith("peak_flops_") and not str(column).endswith("_source")


def spec_of(targets: pd.DataFrame | None, device: str, *, required: bool = False) -> dict[str, float]:
    """Numbers known of one device, as a dict; empty where nothing is known.

    Raises
    ------
    UnknownNameError
        If `required` and the device has no spec sheet.
    """
    if targets is None or device not in targets.index:
        if required:
            raise UnknownNameError("spec sheet", device, [] if targets is None else list(targets.index))
        return {}
    numbers = targets[[c for c in targets.columns if c in NUMERIC or _is_peak(c)]].loc[[device]].astype("float64")
    return {str(name): float(value) for name, value in numbers.iloc[0].items() if np.isfinite(value)}


def above_ceiling(table: pd.DataFrame, targets: pd.DataFrame | None) -> list[str | None]:
    """Say of each row why its rate is physically impossible, or None; length n_rows.

    A FLOP rate above ``peak_flops_<dtype>`` times ``n_devices``; a byte rate above the bandwidth while the working
    set exceeds ``cache_bytes`` (points that may live in cache are exempt, and unknown ceilings judge nothing).
    """
    reasons: list[str | None] = [None] * len(table)
    if targets is None:
        return reasons
    # pandas copies attributes (provenance: thousands of records) deeply into every row it hands out.
    table = table.copy(deep=False)
    table.attrs = {}
    device = table["target"].where(table["device"].isna(), table["device"]) if "device" in table else table["target"]
    for name in device.unique():
        spec = spec_of(targets, name)
        if spec:
            for at in _candidates(table, np.flatnonzero(device == name), spec):
                reasons[at] = _row_above(table.iloc[at], spec)
    return reasons


def _candidates(table: pd.DataFrame, rows: np.ndarray, spec: dict[str, float]) -> np.ndarray:
    # Few rows of a large table are above anything: only those are looked at, and worded, one by one.
    part = table.iloc[rows]
    time = part["time_s"].to_numpy("float64")
    peak = np.full(len(part), np.inf)
    if "dtype" in part:
        peak = part["dtype"].map(lambda d: spec.get(f"peak_flops_{d}", np.inf)).to_numpy("float64")
    with np.errstate(over="ignore"):  # an absurd time overflows to a limit of infinity, which nothing is above
        most_flops, most_bytes = time * peak, time * spec.get("bandwidth_bytes_per_s", np.inf)
    suspect: np.ndarray = part["flops"].to_numpy("float64") > most_flops
    footprint = part["bytes"].to_numpy("float64")
    if "working_set_bytes" in part:
        footprint = part["working_set_bytes"].fillna(part["bytes"]).to_numpy("float64")
    suspect |= (part["bytes"].to_numpy("float64") > most_bytes) & (footprint > spec.get("cache_bytes", np.inf))
    return np.asarray(rows[suspect])


def _row_above(row: pd.Series, spec: dict[str, float]) -> str | None:
    count = row.get("n_devices")
    count = float(count) if count is not None and pd.notna(count) and _aggregates(row) else 1.0
    time, limit = float(row["time_s"]), CEILING_SLACK * count
    flops, moved = float(row["flops"]), float(row["bytes"])
    peak = spec.get(f"peak_flops_{row.get('dtype')}")
    if peak and flops / time > limit * peak:
        return f"{flops / time:.3g} FLOP/s is above the peak of {count * peak:.3g} FLOP/s ({row.get('dtype')})"
    bandwidth, cache = spec.get("bandwidth_bytes_per_s"), spec.get("cache_bytes")
    footprint = row.get("working_set_bytes")
    footprint = float(footprint) if footprint is not None and pd.notna(footprint) else moved
    if bandwidth and cache and footprint > cache * count and moved / time > limit * bandwidth:
        return f"{moved / time:.3g} B/s is above the bandwidth of {count * bandwidth:.3g} B/s"
    return None


def _aggregates(row: pd.Series) -> bool:
    # Collectives state bytes per rank; their rates are per device already.
    message = row.get("message_bytes")
    return message is None or pd.isna(message)


def refuse_above_ceiling(
    table: pd.DataFrame, targets: pd.DataFrame | None, *, source: str = "table", first_row: int = 0
) -> None:
    """Refuse a table one of whose rows to fit is physically impossible; held-out and excluded rows are not judged.

    Parameters
    ----------
    table
        Checked rows.
    targets
        Spec sheets.
    source, first_row
        As for `bayesperf.schema.validate`.

    Raises
    ------
    CeilingError
        Names file, row and column.
    """
    judged = np.flatnonzero(~(is_heldout(table) | is_excluded(table)))
    for at, reason in zip(judged, above_ceiling(table.iloc[judged], targets), strict=True):
        if reason:
            row = table.iloc[at]
            raise CeilingError(
                f"{source}, row {first_row + at}, column time_s: {row['op']} on {row['target']}: {reason}. Check its "
                "units, its flops or bytes formula, and the spec sheet; `import` marks such rows and leaves them out"
            )


def flag_above_ceiling(table: pd.DataFrame, targets: pd.DataFrame | None) -> pd.DataFrame:
    """Mark rows above a physical ceiling with the flag ``above-ceiling``."""
    reasons = above_ceiling(table, targets)
    old = table["flags"] if "flags" in table else [None] * len(table)
    flags = [
        add_flag(f if isinstance(f, str) else None, "above-ceiling") if r else f
        for f, r in zip(old, reasons, strict=True)
    ]
    return table.assign(flags=pd.Series(flags, dtype=object, index=table.index))

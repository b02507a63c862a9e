"""Suspicious unit scales: ns, us, ms and s taken for each other, GB for GiB.

Three views, each robust (medians, no fitted model): a group's best rate against the ceiling; the same workloads in two
groups of rows; each row against its neighbours in size within one curve.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd

from bayesperf.quality.findings import Finding
from bayesperf.quality.keys import groups, key_columns, key_hash, series_of
from bayesperf.specs import spec_of

__all__ = ["against_ceilings", "against_each_other", "against_neighbours"]

THOUSANDS = (3.0, 6.0, 9.0)
NEAR = 0.3
"""Decades within which a factor counts as a power of 1000."""

BINARY = {"kB and KiB": 1.024, "MB and MiB": 1.048576, "GB and GiB": 1.073741824, "TB and TiB": 1.099511627776}
BINARY_EXACT = 3e-4
"""Only one measurement written in two units differs so exactly; two machines may well differ by seven per cent."""

FEWEST, MAX_GROUPS, MAX_CELLS = 5, 40, 5_000_000
SLOW = 2e-3
"""Share of the ceiling below which even large workloads make a unit suspicious."""

LARGE_S = 1e-3
"""Time at the ceiling from which launch overhead cannot explain a slow rate."""


def _near_thousands(decades: float) -> float | None:
    return next((p for p in THOUSANDS if abs(abs(decades) - p) <= NEAR), None)


def against_ceilings(table: pd.DataFrame, targets: pd.DataFrame | None) -> list[Finding]:
    """Groups whose largest workloads all stay a thousandfold below the ceiling."""
    if targets is None:
        return []
    device = table["target"].where(table["device"].isna(), table["device"]) if "device" in table else table["target"]
    findings = []
    dtype = table["dtype"].astype(object).map(str) if "dtype" in table else pd.Series("", index=table.index)
    for (name, target, op, kind), rows in table.groupby([device, "target", "op", dtype], sort=True):
        spec = spec_of(targets, str(name))
        ideal = np.zeros(len(rows))
        for column, limit in (("flops", f"peak_flops_{kind}"), ("bytes", "bandwidth_bytes_per_s")):
            if limit in spec:
                ideal = np.maximum(ideal, rows[column].to_numpy() / spec[limit])
        large = ideal >= LARGE_S
        if large.sum() < FEWEST:
            continue
        share = ideal[large] / rows["time_s"].to_numpy()[large]
        if share.max() < SLOW:
            message = (
                f"the best of the large workloads reaches {share.max():.1e} of the ceiling: "
                "is time_s in seconds, and are the sizes in bytes?"
            )
            group = {"target": str(target), "op": str(op)}
            findings.append(Finding("unit-scale", "warning", group, int(large.sum()), len(rows), message))
    return findings


def against_each_other(table: pd.DataFrame) -> list[Finding]:
    """Groups of rows whose times on shared workloads differ by a power of 1000, or by exactly GB over GiB."""
    where = groups(table)
    if not 2 <= where.nunique() <= MAX_GROUPS:
        return []
    rows = pd.DataFrame({"key": key_hash(table, key_columns(table, where=False)), "where": where,
                         "op": table["op"].astype(str), "log": np.log10(table["time_s"])})  # fmt: skip
    findings = []
    for op, part in rows.groupby("op", sort=True):
        middle = part.groupby(["key", "where"], sort=False)["log"].median()
        shared = middle.index.get_level_values("key").nunique()
        names = sorted(part["where"].unique())
        if len(names) < 2 or shared * len(names) > MAX_CELLS:
            continue
        wide = middle.unstack("where")
        for first, second in itertools.combinations(names, 2):
            difference = (wide[first] - wide[second]).dropna().to_numpy()
            if len(difference) >= FEWEST:
                findings += _difference(str(op), first, second, difference)
    return findings


def _difference(op: str, first: str, second: str, difference: np.ndarray) -> list[Finding]:
    middle = float(np.median(difference))
    spread = float(np.median(np.abs(difference - middle)))
    group, count = {"target": first, "op": op}, len(difference)
    power = _near_thousands(middle)
    if power is not None and spread < NEAR:
        side = "longer" if middle > 0 else "shorter"
        message = (
            f"times are about 1e{power:.0f} {side} than those of {second} on {count} shared workloads: ns, us, ms or s?"
        )
        return [Finding("unit-scale", "warning", group, count, count, message)]
    ratio = 10 ** abs(middle)
    for units, factor in BINARY.items():
        if abs(ratio / factor - 1) <= BINARY_EXACT and math.log(10) * spread <= BINARY_EXACT:
            message = f"times differ from those of {second} by {ratio:.4f} throughout: {units} taken for each other?"
            return [Finding("binary-units", "warning", group, count, count, message)]
    return []


def against_neighbours(table: pd.DataFrame) -> tuple[list[Finding], np.ndarray]:
    """Rows that are a power of 1000 off their neighbours in size.

    Returns
    -------
    findings
    suspects
        Boolean, shape (n_rows,).
    """
    suspects = np.zeros(len(table), dtype=bool)
    size = np.maximum(table["flops"].to_numpy(), table["bytes"].to_numpy())
    if "message_bytes" in table:
        size = np.maximum(size, table["message_bytes"].fillna(0).to_numpy())
    order = pd.DataFrame({"series": series_of(table), "size": size, "log": np.log10(table["time_s"].to_numpy())})
    order = order[order["size"] > 0].sort_values(["series", "size"], kind="stable")
    grouped = order.groupby("series", sort=False)["log"]
    # Nine neighbours: a few wrong rows side by side do not move their median.
    running = grouped.transform(lambda values: values.rolling(9, center=True, min_periods=5).median())
    away = (order["log"] - running).abs()
    spread = away.groupby(order["series"]).transform("median")
    near = np.zeros(len(order), dtype=bool)
    for power in THOUSANDS:
        near |= (away - power).abs().to_numpy() <= NEAR
    near &= (spread < NEAR).to_numpy()
    suspects[order.index.to_numpy()[near]] = True
    findings = []
    for (target, op), rows in table[suspects].groupby(["target", "op"], sort=True):
        total = int(((table["target"] == target) & (table["op"] == op)).sum())
        examples = tuple(f"time_s {t:.4g} for {b:.4g} bytes, {f:.4g} FLOP"
                         for t, b, f in rows[["time_s", "bytes", "flops"]].head(3).itertuples(index=False))  # fmt: skip
        message = "times are a power of 1000 off those of neighbouring sizes: a unit mixed up within the table?"
        findings.append(
            Finding(
                "scale-jump", "warning", {"target": str(target), "op": str(op)}, len(rows), total, message, examples
            )
        )
    return findings, suspects

"""Targets of one device that do not run alike: a throttled fleet, a co-tenant, another clock."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bayesperf.quality.findings import Finding
from bayesperf.quality.keys import groups, key_columns, key_hash

__all__ = ["unlike_its_device"]

FEWEST_ROWS, FACTOR, MAX_GROUPS = 8, 1.5, 200
"""Rows that make a difference more than an accident, and the factor from which one is named."""


def unlike_its_device(table: pd.DataFrame) -> list[Finding]:
    """Groups whose times differ by more than `FACTOR` from those of the other groups of the same device.

    Compared on the same workloads, by medians. Messages are left out: how far they travel is part of the target.
    """
    if "device" not in table:
        return []
    local = table["device"].notna().to_numpy()
    if "message_bytes" in table:
        local = local & table["message_bytes"].isna().to_numpy()
    rows = pd.DataFrame(
        {
            "device": table["device"].astype(object).map(str),
            "where": groups(table),
            "op": table["op"].astype(str),
            "key": key_hash(table, key_columns(table, where=False)),
            "log": np.log(table["time_s"].to_numpy()),
        }
    )[local]
    findings = []
    for (device, op), part in rows.groupby(["device", "op"], sort=True):
        names = part["where"].nunique()
        if not 2 <= names <= MAX_GROUPS:
            continue
        # One median per group and workload, so that a group with many rows is not its own reference.
        cells = part.groupby(["key", "where"], sort=False)["log"].agg(["median", "size"]).reset_index()
        cells = cells[cells["key"].duplicated(keep=False)]
        cells["away"] = cells["median"] - cells.groupby("key")["median"].transform("median")
        for where, own in cells.groupby("where", sort=True):
            count, away = int(own["size"].sum()), float(own["away"].median())
            if count < FEWEST_ROWS or abs(away) < np.log(FACTOR):
                continue
            # Between two groups nobody can say which is the odd one; their middle would hide half the difference.
            side = "slower" if away > 0 else "faster"
            message = (
                f"{np.exp(abs(away)):.2g} times {side} than the other targets of device {device}: "
                "throttled, shared, or another device? Name what differs in the target"
            )
            group = {"target": str(where), "op": str(op)}
            findings.append(Finding("unlike-its-device", "warning", group, count, len(part), message))
    return findings

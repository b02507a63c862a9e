"""Measured slowdowns of a table's rows, and what multiplying pairs would predict of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayesperf.configurations import records
from bayesperf.models.contention import slowdown
from bayesperf.models.contention.encode import victim_keys

__all__ = ["multiplied", "with_slowdowns"]


def with_slowdowns(table: pd.DataFrame) -> pd.DataFrame:
    """Rows beside others with ``alone`` (time of the victim alone, around it or else in the same campaign, s),
    ``measured`` (time over that), ``error`` (its relative standard error) and ``victim`` (its name).

    Rows whose victim was not measured alone in their campaign are left out.
    """
    table = table.drop(columns=["samples_s", "samples_iterations"], errors="ignore")
    beside = table["corunners"].notna().to_numpy()
    keys = victim_keys(table)
    time = table["time_s"].to_numpy(float)
    known = table["time_se_s"].to_numpy(float) if "time_se_s" in table else np.zeros(len(table))
    relative = np.nan_to_num(known / time)
    alone: dict[tuple[object, ...], list[int]] = {}
    for at in np.flatnonzero(~beside):
        alone.setdefault(keys[at], []).append(int(at))
    found = np.array([np.median(time[alone[key]]) if key in alone else np.nan for key in keys])
    error = np.array(
        [np.sqrt(np.mean(relative[alone[key]] ** 2) / len(alone[key])) if key in alone else np.nan for key in keys]
    )
    if "alone_s" in table:
        around, around_error = (table[name].to_numpy(float, na_value=np.nan) for name in ("alone_s", "alone_se_s"))
        there = np.isfinite(around)
        found, error = np.where(there, around, found), np.where(there, around_error / around, error)
    named = [" ".join(part for part in key[:-2] if part) for key in keys]
    rows = table.assign(alone=found, measured=time / found, error=np.hypot(relative, error), victim=named)[beside]
    return rows[rows["measured"].notna()].reset_index(drop=True)


def multiplied(profile: Any, rows: pd.DataFrame) -> npt.NDArray[np.float64]:
    """Product of the model's predictions of every victim beside each of its aggressors alone, (row,)."""
    parts: list[dict[str, object]] = []
    owner: list[int] = []
    for at, row in enumerate(records(rows.drop(columns=["time_s", "measurement_id"], errors="ignore"))):
        for corunners, shape, cpus in _single(row):
            parts.append({**row, "corunners": corunners, "corunner_shapes": shape, "corunner_cpus": cpus})
            owner.append(at)
    found = slowdown(profile, pd.DataFrame(parts), draws=500)["slowdown"].to_numpy(float)
    product = np.zeros(len(rows))
    np.add.at(product, owner, np.log(found))
    return np.exp(product)


def _single(row: Mapping[str, Any]) -> list[tuple[str, str | None, str | None]]:
    """Each aggressor of a row by itself: label, shape, processors."""
    counts = dict(part.rsplit(":", 1) for part in str(row["corunners"]).split("+"))
    text, places = row.get("corunner_shapes"), row.get("corunner_cpus")
    shapes = text.split("; ") if isinstance(text, str) else [f"op={op}" for op in counts]
    single: list[tuple[str, str | None]] = []
    for shape in shapes:
        op = shape.split()[0].removeprefix("op=")
        same = sum(other.split()[0] == f"op={op}" for other in shapes)
        single += [(f"{op}:1", shape if isinstance(text, str) else None)] * (int(counts[op]) // same)
    cpus = places.split("; ") if isinstance(places, str) else [None] * len(single)
    return [(label, shape, place) for (label, shape), place in zip(single, cpus, strict=True)]

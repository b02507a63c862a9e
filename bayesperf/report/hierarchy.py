"""Bandwidth over the working set: the predicted curve of each target's best-swept operation, and its plateaus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bayesperf.report.basis import Bases
from bayesperf.report.bottlenecks import fitted_rows, footprints, undescribed
from bayesperf.report.document import Interval, Plateau

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile

__all__ = ["Sweep", "plateaus", "predicted_times", "sweep"]

POINTS = 60
"""Points of a predicted curve."""

FLAT = 0.15
"""Largest slope of log bandwidth over log working set that counts as flat."""

WIDE = 2.0
"""Least ratio of the ends of a plateau."""

STREAMS = 0.2
"""Least share of the predicted bandwidth at its sizes of an operation that is drawn beside the one predicted."""


@dataclass(frozen=True)
class Sweep:
    """A predicted curve of bandwidth and what was measured of it.

    Parameters
    ----------
    ops
        Operations that stream, the one whose curve is predicted first.
    rows
        Their measurements, with ``working_set_bytes`` and ``rate`` (B/s).
    x
        Working sets, (point,), bytes.
    low, mid, high
        Predictive 90 % band and median of bandwidth, (point,), B/s.
    """

    ops: list[str]
    rows: pd.DataFrame
    x: np.ndarray
    low: np.ndarray
    mid: np.ndarray
    high: np.ndarray


def sweep(profile: Profile, target: str, *, seed: int, most: int) -> Sweep | None:
    """Predict the bandwidth of a target over the working set; None where no operation was swept.

    Parameters
    ----------
    profile, target
        Whose.
    seed
        Of the predictive draws.
    most
        Operations to keep beside the one predicted.
    """
    unknown = undescribed(profile)
    table = fitted_rows(profile)
    rows = table[(table["target"] == target) & (table["bytes"] > 0)]
    # Operations that stream: at most one operation per byte or so, alone, and between no ranks.
    rows = rows[(rows["flops"] <= rows["bytes"]) & ~rows["op"].isin(unknown)]
    for column in ("corunners", "message_bytes"):
        if column in rows:
            rows = rows[rows[column].isna()]
    rows = rows.assign(working_set_bytes=footprints(rows), rate=rows["bytes"] / rows["time_s"])
    swept = rows.groupby("op")["working_set_bytes"].nunique().sort_values(ascending=False, kind="stable")
    if swept.empty or swept.iloc[0] < 3:
        return None
    first = str(swept.index[0])
    x, low, mid, high = _curve(profile, target, rows[rows["op"] == first], seed)
    # An operation measured at one size says nothing of a sweep; one far below the curve at its sizes does not stream.
    beside = rows["rate"] / np.exp(np.interp(np.log(rows["working_set_bytes"]), np.log(x), np.log(mid)))
    share = beside.groupby(rows["op"]).median()
    ops = [first, *(str(op) for op in swept.index[1:] if swept[op] > 1 and share[op] >= STREAMS)][:most]
    return Sweep(ops, rows[rows["op"].isin(ops)], x, low, mid, high)


def _curve(profile: Profile, target: str, rows: pd.DataFrame, seed: int) -> tuple[np.ndarray, ...]:
    footprint = rows["working_set_bytes"]
    x = np.geomspace(footprint.min(), footprint.max(), POINTS)
    moved = x * float((rows["bytes"] / footprint).median())
    workloads = {
        "op": rows["op"].iloc[0],
        "flops": moved * float((rows["flops"] / rows["bytes"]).median()),
        "bytes": moved,
        "working_set_bytes": x,
    }
    for name in ("dtype", "n_devices"):
        if name in rows and rows[name].notna().any():
            workloads[name] = rows[name].mode().iloc[0]
    rate = moved / predicted_times(profile, target, pd.DataFrame(workloads), seed)
    low, mid, high = np.quantile(rate, [0.05, 0.5, 0.95], axis=0)
    return x, low, mid, high


def predicted_times(profile: Profile, target: str, workloads: pd.DataFrame, seed: int) -> np.ndarray:
    """Predictive draws of time without campaign effect, shape (draw, workload), s."""
    # An unconverged profile is drawn too: its report says at the top what it is.
    predicted = profile.predict(workloads, target, mean=True, draws=2000, seed=seed, allow_unconverged=True)
    return np.asarray(predicted.draws.transpose("draw", "workload"))


def plateaus(target: str, found: Sweep, bases: Bases) -> list[Plateau]:
    """Stretches over which the predicted median stays the same, from the smallest working set.

    A plateau is where the curve's slope stays below `FLAT` over a factor of `WIDE`; its bandwidth is that in the
    middle.
    """
    slope = np.abs(np.diff(np.log(found.mid)) / np.diff(np.log(found.x)))
    edges = np.flatnonzero(np.diff(np.concatenate([[0], (slope < FLAT).astype(int), [0]])))
    rows = found.rows[found.rows["op"] == found.ops[0]]
    size = rows["working_set_bytes"].to_numpy(float)
    entries = []
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        low, high = float(found.x[start]), float(found.x[end])
        inside = rows[(size >= low / 1.001) & (size <= high * 1.001)]
        if high < WIDE * low or inside.empty:
            continue
        middle = (start + end) // 2
        median, lower, upper = (float(v[middle]) for v in (found.mid, found.low, found.high))
        entries.append(
            Plateau(
                target=target,
                op=found.ops[0],
                from_bytes=low,
                to_bytes=high,
                bandwidth=Interval(median=median, lower=lower, upper=upper),
                basis=bases.of_rows(inside),
            )
        )
    return entries

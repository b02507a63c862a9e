"""Workloads beside others, and among ranks: what was measured of contention and of collectives, beside the model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayesperf.collectives import COLLECTIVES, SENT_BETWEEN_TWO, bus_factor
from bayesperf.configurations import records
from bayesperf.model import Floats
from bayesperf.report.basis import Bases
from bayesperf.report.bottlenecks import undescribed, workload_columns
from bayesperf.report.document import Collective, Interval, Slowdown, Unmodelled
from bayesperf.report.words import configuration, quantity
from bayesperf.schema import SHAPE_COLUMNS

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile

__all__ = ["collectives", "slowdowns", "unmodelled"]

DRAWS = 400

_ALONE = (
    *("target", "op", "dtype", "flops", "bytes", "working_set_bytes", "n_devices", "campaign", "stack", "condition"),
    *SHAPE_COLUMNS,
)
"""What a workload beside others and the same alone have in common."""


def slowdowns(profile: Profile, table: pd.DataFrame, bases: Bases, *, seed: int) -> list[Slowdown]:
    """Time beside co-runners over time alone, of every workload that was measured both ways.

    Where the work was measured alone around its mixes (``alone_s``), each row has a ratio of its own: given are the
    median and the extremes of those. Else the ratio is of the medians over processes, its bounds are the extremes over
    pairs of processes: with a few processes each there is no honest interval.
    """
    if "corunners" not in table or table["corunners"].isna().all():
        return []
    keys = [name for name in _ALONE if name in table]
    group = table.groupby(keys, dropna=False, sort=False).ngroup().to_numpy()
    alone = table["corunners"].isna().to_numpy()
    time = table["time_s"].to_numpy(float)
    solo = {int(code): alone & (group == code) for code in np.intersect1d(group[alone], group[~alone])}
    around = table["alone_s"].to_numpy(float, na_value=np.nan) if "alone_s" in table else np.full(len(table), np.nan)
    beside = table[~alone & (np.isin(group, list(solo)) | np.isfinite(around))]
    entries: list[dict[str, Any]] = []
    pairs = []
    company = [name for name in ("corunners", "corunner_shapes") if name in beside]
    for _, rows in beside.groupby([*keys, *company], dropna=False, sort=False):
        here, own = rows["time_s"].to_numpy(float), around[rows.index]
        without = solo.get(int(group[rows.index[0]]))
        if without is None or np.isfinite(own).all():
            measured, without = _spread((here / own)[np.isfinite(own)]), np.zeros(len(table), dtype=bool)
        else:
            measured = _ratio(here, time[without])
        row = records(rows.head(1))[0]
        entries.append(
            {
                "target": str(row["target"]),
                "victim": configuration({**row, "corunners": None, "condition": None}),
                "beside": str(row["corunners"]),
                "measured": measured,
                "basis": bases.of([*rows["measurement_id"], *table["measurement_id"].to_numpy()[without]]),
            }
        )
        pairs.append(rows.head(1))
    predicted = _predicted(profile, pd.concat(pairs) if pairs else beside, seed)
    return [Slowdown(**entry, predicted=ratio) for entry, ratio in zip(entries, predicted, strict=True)]


def _spread(ratios: Floats) -> Interval:
    return Interval(median=float(np.median(ratios)), lower=float(ratios.min()), upper=float(ratios.max()))


def _ratio(here: Floats, there: Floats) -> Interval:
    """Ratio of what was measured by different processes."""
    return Interval(
        median=float(np.median(here) / np.median(there)),
        lower=float(here.min() / there.max()),
        upper=float(here.max() / there.min()),
    )


def _predicted(profile: Profile, rows: pd.DataFrame, seed: int) -> list[Interval | None]:
    """Noiseless ratio of beside to alone by the same draws; None where the model does not predict it."""
    if not profile.model.predicts_corunners or rows.empty:
        return [None] * len(rows)
    known = ~rows["op"].isin(undescribed(profile)).to_numpy() & rows["target"].isin(profile.targets).to_numpy()
    found: list[Interval | None] = [None] * len(rows)
    if not known.any():
        return found
    beside = workload_columns(rows[known])
    both = pd.concat([beside, beside.assign(corunners=None)], ignore_index=True)
    both["corunners"] = both["corunners"].astype(object)
    parts = profile.predict(both, mean=True, draws=DRAWS, seed=seed, allow_unconverged=True).parts
    ratio = np.exp(parts.log_time[:, : len(beside)] - parts.log_time[:, len(beside) :])
    for at, column in zip(np.flatnonzero(known), ratio.T, strict=True):
        lower, median, upper = np.quantile(column, [0.05, 0.5, 0.95])
        found[at] = Interval(median=float(median), lower=float(lower), upper=float(upper))
    return found


def collectives(table: pd.DataFrame, bases: Bases) -> list[Collective]:
    """Bus bandwidth of every collective measured, by message size: medians over processes and campaigns."""
    if "message_bytes" not in table:
        return []
    rows = table[(table["message_bytes"] > 0)]
    if "corunners" in rows:
        rows = rows[rows["corunners"].isna()]
    if rows.empty:
        return []
    rows = rows.assign(n_devices=rows["n_devices"]) if "n_devices" in rows else rows.assign(n_devices=np.nan)
    entries = []
    for (target, op, ranks, size), some in rows.groupby(
        ["target", "op", "n_devices", "message_bytes"], dropna=False, sort=True
    ):
        n, sent = float(str(ranks)), float(str(size))
        time = float(some["time_s"].median())
        entries.append(
            Collective(
                target=str(target),
                op=str(op),
                n_devices=n if math.isfinite(n) else None,
                message_bytes=sent,
                time_s=time,
                bus_bytes_per_s=_bus(str(op), some, n, sent / time),
                basis=bases.of_rows(some),
            )
        )
    return entries


def _bus(op: str, rows: pd.DataFrame, n: float, algorithm: float) -> float:
    """Bus bandwidth: as stated, else by the factor of the collective, else the algorithm's."""
    if "busbw_bytes_per_s" in rows and rows["busbw_bytes_per_s"].notna().any():
        return float(rows["busbw_bytes_per_s"].median())
    name = SENT_BETWEEN_TWO.get(op, op)
    if name in COLLECTIVES and math.isfinite(n) and n > 1:
        return algorithm * bus_factor(name, int(n))
    return algorithm


def unmodelled(profile: Profile, table: pd.DataFrame, bases: Bases) -> list[Unmodelled]:
    """Operations that were measured alone and that the model does not describe, by target."""
    rows = table[table["op"].isin(undescribed(profile))]
    if "corunners" in rows:
        rows = rows[rows["corunners"].isna()]
    entries = []
    for (target, op), some in rows.groupby(["target", "op"], sort=True):
        time = some["time_s"].to_numpy(float)
        entries.append(
            Unmodelled(
                target=str(target),
                op=str(op),
                time_s=Interval(median=float(np.median(time)), lower=float(time.min()), upper=float(time.max())),
                rate=_best_rate(some, time),
                basis=bases.of_rows(some),
            )
        )
    return entries


def _best_rate(rows: pd.DataFrame, time: np.ndarray) -> str:
    found: list[Any] = []
    for name, unit in (("flops", "FLOP/s"), ("bytes", "B/s")):
        best = float((rows[name].to_numpy(float) / time).max())
        if best > 0:
            found.append(f"up to {quantity(best, unit)}")
    return ", ".join(found)

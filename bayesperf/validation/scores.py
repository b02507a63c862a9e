"""Proper scores of predictions of log time, beside a baseline that anybody could build from the same rows."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.stats

from bayesperf.configurations import Configurations, configurations
from bayesperf.model import Floats

if TYPE_CHECKING:
    import scoringrules
else:
    # With Numba in sight it compiles kernels at import, five seconds that every run would pay; we use NumPy's.
    hidden = {"numba": None} if "scoringrules" not in sys.modules else {}
    shown = {name: sys.modules.pop(name) for name in hidden if name in sys.modules}
    sys.modules.update(hidden)
    try:
        import scoringrules
    finally:
        for name in hidden:
            del sys.modules[name]
        sys.modules.update(shown)

__all__ = ["baseline", "score_table"]


def baseline(fitted: pd.DataFrame, workloads: pd.DataFrame) -> tuple[Floats, Floats]:
    """A plain roofline: best rates seen on the target, one factor, log-normal noise, all from the fitted rows.

    Parameters
    ----------
    fitted
        Fitted rows.
    workloads
        Rows to predict, each with a ``target``.

    Returns
    -------
    tuple
        Median log time and its standard deviation, (row,) each; targets without fitted rows are given the mean
        factor and spread over all.
    """
    summary = configurations(fitted)
    known = summary.first.assign(log_time=summary.log_time)
    work = known[(known["flops"] > 0) | (known["bytes"] > 0)]
    work = work if len(work) else known
    rates = {target: _rates(part) for target, part in work.groupby("target")}
    overall = _rates(work)
    error = work["log_time"].to_numpy() - _roofline(work, rates, overall)
    by_target = pd.DataFrame({"target": work["target"].to_numpy(), "error": error}).groupby("target")["error"]
    centre, spread = by_target.median(), by_target.std(ddof=1)
    target = workloads["target"]
    location = _roofline(workloads, rates, overall) + target.map(centre).fillna(float(np.median(error))).to_numpy(float)
    pooled = float(np.std(error)) or 1.0
    return location, np.maximum(target.map(spread).fillna(pooled).to_numpy(float), 1e-3)


def _rates(part: pd.DataFrame) -> dict[str, float]:
    time = np.exp(part["log_time"].to_numpy(float))
    dtype = part["dtype"].fillna("") if "dtype" in part else pd.Series("", index=part.index)
    flops = pd.Series(part["flops"].to_numpy(float) / time).groupby(dtype.to_numpy()).max().to_dict()
    moved = part["bytes"].to_numpy(float)
    # Main memory: the largest transfers say what it gives.
    large = moved >= 0.25 * moved.max()
    return {**{str(k): float(v) for k, v in flops.items()}, " bytes": float((moved / time)[large].max())}


def _roofline(table: pd.DataFrame, rates: dict[Any, dict[str, float]], overall: dict[str, float]) -> Floats:
    dtype = table["dtype"].fillna("") if "dtype" in table else pd.Series("", index=table.index)
    times = []
    for target, kind, flops, moved in zip(table["target"], dtype, table["flops"], table["bytes"], strict=True):
        rate = rates.get(target, overall)
        compute = rate.get(kind) or max(v for k, v in rate.items() if k != " bytes")
        time = max(flops / compute if flops and compute else 0.0, moved / rate[" bytes"] if rate[" bytes"] else 0.0)
        times.append(np.log(max(time, 1e-9)))
    return np.array(times)


def score_table(
    fitted: pd.DataFrame, summary: Configurations, group: npt.NDArray[Any], values: Floats, probability: float
) -> pd.DataFrame:
    """Mean scores of log time by group and over all; lower is better.

    Parameters
    ----------
    fitted
        Fitted rows, for the baseline.
    summary
        Held-out configurations.
    group
        Their groups, (row,).
    values
        Predictive draws of log time, (draw, row).
    probability
        Of the interval that the interval score judges.

    Returns
    -------
    DataFrame
        Columns group, n_rows, crps, crps_baseline, interval_score, interval_score_baseline; the last row is
        ``all``. CRPS: Gneiting and Raftery (2007); interval score: the same, section 6.2.
    """
    tail = (1 - probability) / 2
    lower, upper = np.quantile(values, [tail, 1 - tail], axis=0)
    centre, spread = baseline(fitted, summary.first)
    z = float(scipy.stats.norm.ppf(1 - tail))
    y, alpha = summary.log_time, 1 - probability
    scores = pd.DataFrame(
        {
            "crps": scoringrules.crps_ensemble(y, values.T, backend="numpy"),
            "crps_baseline": scoringrules.crps_normal(y, centre, spread, backend="numpy"),
            "interval_score": scoringrules.interval_score(y, lower, upper, alpha, backend="numpy"),
            "interval_score_baseline": scoringrules.interval_score(
                y, centre - z * spread, centre + z * spread, alpha, backend="numpy"
            ),
        }
    )
    by = scores.groupby(group, sort=False)
    table = by.mean().assign(n_rows=by.size()).rename_axis("group").reset_index()
    total = scores.mean().to_frame().T.assign(group="all", n_rows=len(scores))
    return pd.concat([table, total], ignore_index=True)[["group", "n_rows", *scores.columns]]

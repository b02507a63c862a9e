"""Variance in parts: within a process, between fresh processes, between campaigns, on the scale of log time.

A configuration i measured in campaign c by process p has log time

    y_icp = mu_i + a_ic + b_icp + e_icp,   var a = s_c^2,  var b = s_p^2,  var e = w_icp = (time_se_s / time_s)^2

so standard deviations are relative ones: 0.03 is 3 %. The spreads are those of a whole group of configurations (a
probe on a target), by the analysis of variance of unbalanced nested designs (method of moments with known error
variances, as DerSimonian and Laird 1986 for one level; Searle, Casella and McCulloch 1992, chapter 5):

    within    = mean of w over all rows
    between processes, from the m_ic processes of a campaign, with sample variance S^2_ic:
        s_p^2 = max(0, sum (m_ic - 1) (S^2_ic - mean w_ic) / sum (m_ic - 1))
    between campaigns, from the C_i campaigns' means, with sample variance S^2_i:
        s_c^2 = max(0, sum (C_i - 1) (S^2_i - mean over c of (s_p^2 + mean w_ic) / m_ic) / sum (C_i - 1))

Both are unbiased but for the cut at zero. Intervals are those of a chi-square variance (Satterthwaite), less the parts
that are subtracted: of sum (m_ic - 1) degrees of freedom for processes, and for campaigns of the number of campaigns
less one, as all configurations of a campaign may share its effect (wider than needed where they do not).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from bayesperf.configurations import KEYS

__all__ = ["variance_parts"]

Level = Literal["process", "campaign"]


def variance_parts(table: pd.DataFrame, *, interval: float = 0.9) -> pd.DataFrame:
    """Relative standard deviations within processes, between processes and between campaigns.

    Parameters
    ----------
    table
        Measurement table; rows alike in all but ``campaign`` and ``process`` are repeats of one configuration.
    interval
        Probability of the intervals.

    Returns
    -------
    DataFrame
        One row per target and probe (op, where a table names no probe): ``target``, ``probe``, ``configurations``,
        ``rows``, ``campaigns``, then relative standard deviations: ``within``, ``process`` with ``process_lower`` and
        ``process_upper``, ``campaign`` with ``campaign_lower`` and ``campaign_upper``. NaN is unknown: no time had a
        standard error, no configuration a second process, or no second campaign.
    """
    table = table.reset_index(drop=True)
    keys = [name for name in KEYS if name in table and name != "campaign"]
    named = table["probe"] if "probe" in table else table["op"]
    rows = pd.DataFrame(
        {
            "target": table["target"],
            "probe": named.where(named.notna(), table["op"]),
            "configuration": table.groupby(keys, dropna=False, sort=False).ngroup(),
            "campaign": table["campaign"].fillna("") if "campaign" in table else "",
            "y": np.log(table["time_s"].to_numpy(float)),
            "w": _error_variance(table),
        }
    )
    parts = [
        {"target": target, "probe": probe, **_parts(group, interval)}
        for (target, probe), group in rows.groupby(["target", "probe"], sort=True)
    ]
    return pd.DataFrame(parts)


def _error_variance(table: pd.DataFrame) -> np.ndarray:
    if "time_se_s" not in table:
        return np.full(len(table), np.nan)
    relative: np.ndarray = table["time_se_s"].to_numpy(float) / table["time_s"].to_numpy(float)
    return relative**2


def _parts(rows: pd.DataFrame, interval: float) -> dict[str, float]:
    known = rows["w"].notna()
    within = float(rows.loc[known, "w"].mean()) if known.any() else np.nan
    # An unknown error cannot be told from the spread between processes: it is counted there.
    rows = rows.assign(w=rows["w"].fillna(0.0))
    cells = rows.groupby(["configuration", "campaign"], sort=False).agg(
        mean=("y", "mean"), square=("y", "var"), w=("w", "mean"), m=("y", "size")
    )
    process, process_df = _between(cells["square"], cells["w"], cells["m"])
    noise = ((process if np.isfinite(process) else 0.0) + cells["w"]) / cells["m"]
    across = cells.assign(noise=noise).groupby(level=0, sort=False).agg(
        square=("mean", "var"), noise=("noise", "mean"), m=("mean", "size")
    )  # fmt: skip
    campaign, _ = _between(across["square"], across["noise"], across["m"])
    campaigns = rows["campaign"].nunique()
    return {
        "configurations": len(across), "rows": len(rows), "campaigns": campaigns, "within": np.sqrt(within),
        **_described("process", process, cells["w"], cells["m"], process_df, interval),
        **_described("campaign", campaign, across["noise"], across["m"], campaigns - 1, interval),
    }  # fmt: skip


def _between(square: pd.Series, noise: pd.Series, members: pd.Series) -> tuple[float, float]:
    """Variance between the members of groups, over what noise explains, and its degrees of freedom."""
    weight = members - 1.0
    freedom = float(weight.sum())
    if not freedom:
        return np.nan, 0.0
    return max(0.0, float((weight * (square.fillna(0.0) - noise)).sum()) / freedom), freedom


def _described(
    level: Level, variance: float, noise: pd.Series, members: pd.Series, freedom: float, interval: float
) -> dict[str, float]:
    """Standard deviation of a level and its interval."""
    names = (level, f"{level}_lower", f"{level}_upper")
    if not np.isfinite(variance) or freedom < 1:
        return dict.fromkeys(names, np.nan)
    # Quantiles of chi-square: scipy.stats would take a second to load.
    from scipy.special import gammaincinv

    weight = members - 1.0
    explained = float((weight * noise).sum() / weight.sum())
    tails = 2.0 * gammaincinv(freedom / 2, np.array([(1 + interval) / 2, (1 - interval) / 2]))
    low, high = (max(0.0, (variance + explained) * freedom / tail - explained) for tail in tails)
    return dict(zip(names, np.sqrt([variance, low, high]).tolist(), strict=True))

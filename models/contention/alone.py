"""What victims take alone: around what they took beside others, where that was measured; else in their own campaign,
steadied by what other campaigns measured of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bayesperf.configurations import KEYS, Configurations
from bayesperf.model import Floats
from bayesperf.models.roofline.priors import PRIORS

__all__ = ["CIRCUMSTANCES", "Alone", "Solo", "alone_around", "paired"]

CIRCUMSTANCES = ("campaign", "stack")
"""What the keys of victims end with."""

REPEAT, CAMPAIGN = float(np.exp(2 * PRIORS.repeat[0])), float(2 * np.exp(2 * PRIORS.campaign[0]))
"""Variances of log time between repeats, and between two campaigns, at the roofline's priors: to weigh by, no more."""

FAR = 3.0
"""Standard deviations from which another campaign measured something else."""


def paired(table: pd.DataFrame) -> pd.DataFrame:
    """Rows beside others with their times as they would be, had each alone taken what is typical of its repeats.

    Machines drift; what a mix costs shows beside the same work alone, in one process and at one time (``alone_s``).
    Configurations of which some row lacks that are left as they are, without it.
    """
    if "alone_s" not in table:
        return table
    keys = table.groupby([name for name in KEYS if name in table], dropna=False, sort=False).ngroup()
    log_alone = pd.Series(np.log(table["alone_s"].to_numpy(float, na_value=np.nan)), index=table.index)
    known = log_alone.notna().groupby(keys).transform("all")
    typical = np.exp(log_alone.groupby(keys).transform("median")).where(known)
    time = table["time_s"] * (typical / table["alone_s"]).where(known, 1.0)
    relative = [
        (table[error] / table[value]).fillna(0.0) if error in table else 0.0
        for value, error in (("time_s", "time_se_s"), ("alone_s", "alone_se_s"))
    ]
    error = time * np.hypot(relative[0], np.where(known, relative[1], 0.0))
    return table.assign(time_s=time, time_se_s=error, alone_s=typical)


def alone_around(first: pd.DataFrame) -> Floats:
    """Log time alone of configurations that `paired` could pair, (configuration,); NaN of the others."""
    if "alone_s" not in first:
        return np.full(len(first), np.nan)
    return np.log(first["alone_s"].to_numpy(float, na_value=np.nan))


@dataclass(frozen=True)
class Solo:
    """A victim alone: log time, its known variance, its weight of the variance between repeats, and the processors that
    it keeps busy.
    """

    log_time: float
    known: float
    weight: float
    threads: float

    @property
    def variance(self) -> float:
        """Of the log time, roughly."""
        return self.known + REPEAT * self.weight


class Alone:
    """Victims that were measured alone.

    Parameters
    ----------
    keys
        What each configuration is, the circumstances last.
    solo
        Configurations.
    threads
        Processors that each keeps busy, (configuration,).
    """

    def __init__(self, keys: Sequence[tuple[Any, ...]], solo: Configurations, threads: Any):
        self._by_campaign: dict[tuple[Any, ...], dict[tuple[Any, ...], Solo]] = {}
        for at, key in enumerate(keys):
            weight = float(solo.weight[at])
            entry = Solo(float(solo.log_time[at]), float(solo.within[at]) * weight, weight, float(threads[at]))
            work, campaign = _split(key)
            self._by_campaign.setdefault(work, {})[campaign] = entry

    def find(self, key: tuple[Any, ...]) -> Solo | None:
        """Find a victim: as its own campaign and those that agree with it measured it, weighted by their variances."""
        work, campaign = _split(key)
        found = self._by_campaign.get(work)
        if not found:
            return None
        own = found.get(campaign)
        others = [solo for name, solo in found.items() if name != campaign]
        if own is None:
            middle = float(np.median([solo.log_time for solo in others]))
            own = min(others, key=lambda solo: abs(solo.log_time - middle))
            others = [solo for solo in others if solo is not own]
            return _joined(own, others, CAMPAIGN)
        return _joined(own, others, 0.0)


def _split(key: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    return key[: -len(CIRCUMSTANCES)], key[-len(CIRCUMSTANCES) :]


def _joined(own: Solo, others: Sequence[Solo], away: float) -> Solo:
    """One estimate of several; `away` is the variance by which `own` itself may differ from the campaign wanted."""
    close = [
        solo
        for solo in others
        if abs(solo.log_time - own.log_time) <= FAR * np.sqrt(solo.variance + own.variance + CAMPAIGN)
    ]
    members = [own, *close]
    shifts = np.array([away, *([CAMPAIGN] * len(close))])
    weights = 1.0 / (np.array([solo.variance for solo in members]) + shifts)
    weights /= weights.sum()
    return Solo(
        log_time=float(weights @ [solo.log_time for solo in members]),
        known=float(weights**2 @ (np.array([solo.known for solo in members]) + shifts)),
        weight=float(weights**2 @ [solo.weight for solo in members]),
        threads=float(np.median([solo.threads for solo in members])),
    )

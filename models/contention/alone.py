"""What victims take alone: around what they took beside others, where that was measured; else in their own campaign,
steadied by what other campaigns measured of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bayesperf.configurations import Configurations
from bayesperf.errors import InputError, TableError
from bayesperf.model import Floats
from bayesperf.models.common.labels import Index
from bayesperf.models.roofline.priors import PRIORS
from bayesperf.schema import validate, with_ids

__all__ = ["BESIDE", "CIRCUMSTANCES", "Alone", "Solo", "alone_around", "alone_rows", "check_around", "paired"]

CIRCUMSTANCES = ("campaign", "stack")
"""What the keys of victims end with."""

REPEAT, CAMPAIGN = float(np.exp(2 * PRIORS.repeat[0])), float(2 * np.exp(2 * PRIORS.campaign[0]))
"""Variances of log time between repeats, and between two campaigns, at the roofline's priors: to weigh by, no more."""

BESIDE = ("corunners", "corunner_shapes", "corunner_cpus", "corunner_how")
"""Columns that a row that runs alone has not."""

_AROUND = {
    "time_s": "alone_s", "time_se_s": "alone_se_s", "samples_s": "alone_samples_s",
    "samples_iterations": "alone_samples_iterations",
}  # fmt: skip
"""Columns of a row, and those of the same work alone around it."""

FAR = 3.0
"""Standard deviations from which another campaign measured something else."""

DOUBTFUL, IMPOSSIBLE = 2.0, 100.0
"""Ratios of two times of the same work alone: which a note tells of, and which no machine does (ms for s, say)."""


def paired(table: pd.DataFrame, code: Index) -> pd.DataFrame:
    """Rows beside others with their times as they would be, had each alone taken what is typical of its repeats.

    Machines drift; what a mix costs shows beside the same work alone, in one process and at one time (``alone_s``).
    Configurations of which some row lacks that are left as they are, without it.

    Parameters
    ----------
    table
        Rows beside others.
    code
        Configuration of each, (row,).
    """
    if "alone_s" not in table:
        return table
    keys = pd.Series(code, index=table.index)
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


def alone_rows(table: pd.DataFrame) -> pd.DataFrame:
    """What rows beside others say of their victims alone (``alone_s``), as rows that ran alone, with ids of their own.

    For tables of mixes in which nothing else ran alone: ``bp.concat([table, alone_rows(table)])`` can be fitted.

    Raises
    ------
    InputError
        No row has an ``alone_s``.
    """
    rows = table[table["alone_s"].notna()] if "alone_s" in table else table.iloc[:0]
    if not len(rows):
        raise InputError("no row has an alone_s, the time of the same work alone in seconds")
    taken = {ours: rows[theirs] for ours, theirs in _AROUND.items() if theirs in rows}
    kept = rows.drop(
        columns=[name for name in (*BESIDE, *_AROUND, *_AROUND.values(), "measurement_id") if name in rows]
    )
    return with_ids(validate(kept.assign(**taken)), source="alone_s")


def check_around(log_alone: Floats, log_around: Floats) -> list[str]:
    """Notes on times alone around mixes that rows alone contradict.

    Parameters
    ----------
    log_alone, log_around
        Log seconds of the same work from rows alone, and from ``alone_s``, (configuration,); NaN where there is none.

    Raises
    ------
    TableError
        They are further apart than any machine drifts.
    """
    away = np.exp(np.abs(log_around - log_alone))
    worst = int(np.argmax(np.nan_to_num(away))) if len(away) else 0
    if len(away) and away[worst] >= IMPOSSIBLE:
        there, here = np.exp(log_around[worst]), np.exp(log_alone[worst])
        raise TableError(
            f"{there:.3g} s alone, where a row without corunners says {here:.3g} s of the same work; both are seconds",
            source="table", column="alone_s",
        )  # fmt: skip
    doubtful = int((away >= DOUBTFUL).sum())
    if not doubtful:
        return []
    return [
        f"{doubtful} mixes have an alone_s that differs by a factor of {DOUBTFUL:g} or more from what the same work "
        "took in rows alone; slowdowns are relative to alone_s"
    ]


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

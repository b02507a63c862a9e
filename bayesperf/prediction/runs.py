"""What a target's rows say about one run of a program as a whole: the moment that its kernels share, and its wake-up.

**A moment.** Processes that measured the same configurations differ: some of it is noise of each point, some holds for
all points of a process, because the machine was slower or faster while it ran. A program runs in one process at one
time, so that its kernels share this part, and it does not average out over them. It is the variance of the processes'
mean residuals beyond what the points' own scatter explains, over all targets of the table (a target has a handful of
processes).

**A wake-up.** The intercepts of chained points are what a launch costs beside its work: where the host sleeps until the
result is there, and the processors have gone idle meanwhile, that is more than the launch of an empty program, whose
result comes before anybody falls asleep. Runs shorter than `IDLE_S` cost the latter, long ones the former.

**A hand-over.** A kernel that the compiler cuts into parts is handed to a pool of threads and waited for. Probes keep a
thread on each device and show none of it. Assumed, within a factor of 2.3 either way (90 %).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayesperf.configurations import configurations
from bayesperf.model import Floats

__all__ = ["HAND_OVER_S", "IDLE_S", "Moment", "Wake", "hand_over", "moment_of", "wake_of"]

HAND_OVER_S = 9e-6
HAND_OVER_SPREAD = 0.5

IDLE_S = 5e-4
"""Length of a run over which its host falls asleep, s: hypervisors and kernels poll for some 200 us before a processor
that has nothing to do is put to rest. Assumed."""

LEAST_POINTS = 8
"""Configurations from which the scatter of a process, or the intercept of a target, is told."""

LAUNCHED = ("dispatch", "allocation")


@dataclass(frozen=True, slots=True)
class Moment:
    """The part of the scatter between processes that all kernels of a run share.

    Parameters
    ----------
    sd
        Its standard deviation, of log time; 0 where it was not seen.
    dof
        Degrees of freedom that it was told from.
    """

    sd: float
    dof: float

    def draws(self, n: int, seed: int) -> Floats:
        """Log factors of `n` runs: Student-t, since few processes tell the scale."""
        if self.sd <= 0.0:
            return np.zeros(n)
        return np.asarray(self.sd * np.random.default_rng((seed, 11)).standard_t(max(self.dof, 3.0), n))


@dataclass(frozen=True, slots=True)
class Wake:
    """Cost of a launch that is waited for, where the run is long.

    Parameters
    ----------
    median_s
        Median of the intercepts of a target's configurations, s.
    spread
        Standard deviation of their logs.
    """

    median_s: float
    spread: float

    def beyond(self, launch_s: Floats, busy_s: Floats, seed: int) -> Floats:
        """What a wake-up adds to launches of runs that are busy for so long, (draw,), s."""
        normal = np.random.default_rng((seed, 12)).standard_normal(len(launch_s))
        whole = self.median_s * np.exp(self.spread * normal)
        return np.asarray(np.maximum(whole - launch_s, 0.0) * -np.expm1(-busy_s / IDLE_S))


def hand_over(n: int, seed: int) -> Floats:
    """What handing one kernel to a pool of threads costs in each of `n` draws, s."""
    return np.asarray(HAND_OVER_S * np.exp(HAND_OVER_SPREAD * np.random.default_rng((seed, 13)).standard_normal(n)))


def moment_of(table: pd.DataFrame) -> Moment:
    """The shared scatter of a measurement table's processes.

    Parameters
    ----------
    table
        Fitted rows with their column ``process``.
    """
    known = table[table["process"].notna()].reset_index(drop=True) if "process" in table else table.iloc[:0]
    if not len(known):
        return Moment(0.0, 0.0)
    seen = configurations(known)
    code = seen.code
    repeats = seen.count[code]
    log_time = np.log(known["time_s"].to_numpy(float))
    mean = np.bincount(code, log_time) / seen.count
    # A mean over n repeats takes a share 1/n of each with it.
    residual = (log_time - mean[code]) / np.sqrt(1.0 - 1.0 / np.maximum(repeats, 2.0))
    usable = (repeats > 1) & ~known["op"].isin(LAUNCHED).to_numpy()
    together = [name for name in ("target", "campaign") if name in known]
    frame = known.loc[usable, [*together, "process"]].assign(residual=residual[usable])
    square = below = 0.0
    processes = dof = 0
    for _, rows in frame.groupby(together, dropna=False, sort=False):
        found = rows.groupby("process", sort=False)["residual"].agg(["mean", "var", "count"])
        found = found[found["count"] >= LEAST_POINTS]
        if len(found) > 1:
            square += float((found["mean"] ** 2).sum())
            below += float((found["var"] / found["count"]).sum())
            processes += len(found)
            dof += len(found) - 1
    return Moment(float(np.sqrt(max(square - below, 0.0) / processes)) if processes else 0.0, float(dof))


def wake_of(table: pd.DataFrame, target: str) -> Wake | None:
    """What launches cost in long runs of a target; None where too few intercepts were measured.

    Parameters
    ----------
    table
        Fitted rows with their column ``intercept_s``.
    target
        Which target's.
    """
    if "intercept_s" not in table or "statistic" not in table:
        return None
    chained = (table["target"] == target) & (table["statistic"] == "slope") & ~table["op"].isin(LAUNCHED)
    rows = table[chained & table["intercept_s"].notna()]
    if not len(rows):
        return None
    seen = configurations(rows)
    intercepts: npt.NDArray[np.float64] = (
        pd.Series(rows["intercept_s"].to_numpy(float)).groupby(seen.code).median().to_numpy()
    )
    logs = np.log(intercepts[intercepts > 0])
    if len(logs) < LEAST_POINTS:
        return None
    low, middle, high = np.quantile(logs, [0.16, 0.5, 0.84])
    return Wake(float(np.exp(middle)), float(high - low) / 2.0)

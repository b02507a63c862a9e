"""A predictive distribution over the times of workloads: draws, and what people ask of them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayesperf.errors import InputError, check_between
from bayesperf.model import LIMITS, Floats, Predicted
from bayesperf.prediction.support import Support

__all__ = ["Prediction", "in_order", "levels_of", "limit_probabilities", "quantiles_of", "student"]

PORTION = 65_536
"""Pairs of a draw and a workload that are worked on at a time: what one step leaves is in the cache for the next."""


def student(rng: np.random.Generator, tail: Floats, n: int) -> Floats:
    """Student-t numbers, (draw, n), of the degrees of freedom of each draw, (draw,).

    One coordinate of a spherical pair (Bailey 1994): a radius that two uniform numbers give in closed form, in a sixth
    of the time of a normal over the root of a gamma.
    """
    found = np.empty((len(tail), n))
    step = max(1, PORTION // max(n, 1))
    turns = np.empty((min(step, len(tail)), n), dtype=np.float32)
    for start in range(0, len(tail), step):
        part, freedom = found[start : start + step], tail[start : start + step, None]
        turn = turns[: len(part)]
        # From 1 down to, but not at, 0; in place, as fresh memory takes longer than the arithmetic.
        rng.random(out=part)
        np.log(np.subtract(1.0, part, out=part), out=part)
        np.expm1(np.multiply(part, -2.0 / freedom, out=part), out=part)
        np.sqrt(np.multiply(part, freedom, out=part), out=part)
        rng.random(out=turn, dtype=np.float32)
        part *= np.cos(np.multiply(turn, np.float32(2.0 * np.pi), out=turn), out=turn)
    return found


def limit_probabilities(predicted: Predicted) -> Floats:
    """Probability that each workload is bound by each of `LIMITS`, (workload, limit)."""
    values = np.zeros((predicted.log_time.shape[1], len(LIMITS)))
    names = [name for name in LIMITS if name in predicted.terms]
    largest = np.argmax(np.stack([predicted.terms[name] for name in names]), axis=0)
    for at, name in enumerate(names):
        values[:, LIMITS.index(name)] = (largest == at).mean(axis=0)
    return values


def levels_of(q: float | Sequence[float]) -> Floats:
    """Levels of quantiles as an array.

    Raises
    ------
    InputError
        One of them is no number from 0 to 1, there is none, or they are no plain sequence.
    """
    try:
        levels = np.asarray(q, dtype=float)
    except (TypeError, ValueError):
        levels = np.array(np.nan)
    if levels.ndim > 1 or not levels.size or not ((levels >= 0) & (levels <= 1)).all():
        raise InputError(f"quantiles are numbers between 0 and 1, one or a list of them, not {q!r:.60}")
    return levels


def in_order(draws: Floats) -> Floats:
    """Draws (draw, workload) of each workload in ascending order, (workload, draw)."""
    return np.sort(np.ascontiguousarray(draws.T), axis=1)


def quantiles_of(ordered: Floats, levels: Floats) -> Floats:
    """Quantiles by linear interpolation between order statistics, (level, workload) or (workload,), from `in_order`."""
    at = levels * (ordered.shape[1] - 1)
    low = np.floor(at).astype(int)
    below, above = ordered[:, low], ordered[:, np.ceil(at).astype(int)]
    return np.asarray((below + (above - below) * (at - low)).T, dtype=np.float64)


class Prediction:
    """Predictive distribution of the execution time of each workload.

    Every method returns named dims: ``workload`` (position in the table given), ``draw``, ``quantile``, ``limit``.
    Times are in seconds. Draws share parameters across workloads, so sums and ratios of columns keep their
    correlation.
    """

    def __init__(self, workloads: pd.DataFrame, predicted: Predicted, support: Support, rng: np.random.Generator):
        self.workloads = workloads
        self.parts = predicted
        self.support = support
        noise = student(rng, predicted.tail, predicted.log_time.shape[1])
        step = max(1, PORTION // max(noise.shape[1], 1))
        for at in (slice(start, start + step) for start in range(0, len(noise), step)):
            part = noise[at]
            part *= np.sqrt(predicted.misfit[at] ** 2 + predicted.repeat[at] ** 2)
            part += predicted.log_time[at]
            np.exp(part, out=part)
        self._draws = noise

    @functools.cached_property
    def _sorted(self) -> Floats:
        """Sorted once, asked often."""
        return in_order(self._draws)

    def _quantiles(self, levels: Floats) -> Floats:
        return quantiles_of(self._sorted, levels)

    def _array(self, values: Any, *dims: str, **coords: Sequence[object]) -> xr.DataArray:
        return xr.DataArray(values, dims=dims, coords={"workload": self.workloads.index.to_numpy(), **coords})

    @property
    def draws(self) -> xr.DataArray:
        """Times of one execution in a fresh process, noise included, (draw, workload), s."""
        return self._array(self._draws, "draw", "workload").assign_attrs(units="s")

    @property
    def notes(self) -> tuple[str, ...]:
        """What was assumed, such as the spread between campaigns."""
        return tuple(self.parts.notes)

    def median(self) -> xr.DataArray:
        """Predictive median, (workload,), s."""
        return self._array(self._quantiles(np.asarray(0.5)), "workload").assign_attrs(units="s")

    def quantile(self, q: float | Sequence[float]) -> xr.DataArray:
        """Predictive quantiles, (quantile, workload), or (workload,) for a single one, s."""
        levels = levels_of(q)
        values = self._quantiles(levels)
        if levels.ndim == 0:
            return self._array(values, "workload").assign_attrs(units="s")
        return self._array(values, "quantile", "workload", quantile=list(levels)).assign_attrs(units="s")

    def interval(self, probability: float = 0.9) -> xr.DataArray:
        """Equal-tailed predictive interval, (bound, workload) with bounds ``lower`` and ``upper``, s."""
        check_between(0, 1, interval=probability)
        tail = (1.0 - probability) / 2.0
        values = self._quantiles(np.array([tail, 1.0 - tail]))
        array = self._array(values, "bound", "workload", bound=["lower", "upper"])
        return array.assign_attrs(units="s", probability=probability)

    def cdf(self, time_s: float | Floats | pd.Series | xr.DataArray) -> xr.DataArray:
        """Probability that a workload takes at most `time_s` (a number, or one per workload), (workload,)."""
        try:
            times = np.asarray(time_s, dtype=float)
        except (TypeError, ValueError):
            times = np.array(np.nan)
        if np.isnan(times).any():
            raise InputError(f"times are numbers of seconds, not {time_s!r:.60}")
        if times.ndim and times.shape != (len(self.workloads),):
            raise InputError(
                f"give one time, or one for each of the {len(self.workloads)} workloads, not {times.shape}"
            )
        return self._array((self._draws <= times).mean(axis=0), "workload").assign_attrs(units="1")

    @property
    def limits(self) -> xr.DataArray:
        """Probability that each workload is bound by each limit, (workload, limit)."""
        values = limit_probabilities(self.parts)
        return self._array(values, "workload", "limit", limit=list(LIMITS)).assign_attrs(units="1")

    @property
    def supported(self) -> xr.DataArray:
        """Whether each workload lies inside the measured support of its target, (workload,)."""
        return self._array(self.support.inside, "workload")

    @property
    def support_distance(self) -> xr.DataArray:
        """Log factor by which each workload lies outside, 0 inside, infinite where nothing compares, (workload,)."""
        return self._array(self.support.distance, "workload").assign_attrs(units="1")

    @property
    def unsupported_features(self) -> list[list[str]]:
        """Features that lie outside, by workload."""
        return self.support.features

    def to_frame(self, interval: float = 0.9) -> pd.DataFrame:
        """Workloads' own columns, in their order, then the columns of the contract."""
        bounds, limits = self.interval(interval), self.limits
        columns: dict[str, Any] = {
            "median_s": self.median().values,
            "lower_s": bounds.sel(bound="lower").values,
            "upper_s": bounds.sel(bound="upper").values,
            "interval": interval,
            **{f"p_{name}": limits.sel(limit=name).values for name in LIMITS},
            "supported": self.support.inside,
            "support_distance": self.support.distance,
            "unsupported_features": ["+".join(names) for names in self.support.features],
        }
        frame = self.workloads.drop(columns=[name for name in columns if name in self.workloads])
        return frame.assign(**columns)

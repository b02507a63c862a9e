"""The slope of time over iterations: what one iteration costs, apart from what a launch costs.

Samples come in rounds; in each round every iteration count is timed once, in random order. Each round gives one
least-squares line; the estimate is the median of the rounds' slopes, its standard error comes from their spread.
A slow change of the machine's speed thus moves a whole round, not the slope within it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bayesperf.errors import MeasurementError

__all__ = ["Limits", "Round", "SlopeFit", "fit_slope", "robust_spread", "round_slopes", "standard_error"]

# Croux and Rousseeuw (1992): corrections that make 1.4826 MAD unbiased in small normal samples.
_MAD_CORRECTION = {2: 1.196, 3: 1.495, 4: 1.363, 5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129, 9: 1.107}


@dataclass(frozen=True, slots=True)
class Round:
    """One round: iteration counts and the seconds each took, in the order they were timed."""

    iterations: tuple[int, ...]
    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """When a slope is refused.

    Parameters
    ----------
    growth
        The longest count takes at least this multiple of the shortest's time (three or four times its iterations).
    z
        Standard errors by which a departure must exceed chance.
    curvature
        Departure from a straight line, as a share of the longest time, that is allowed beyond chance.
    drift
        Change of the slope from the first to the last rounds, as a share of it, that is allowed when the change is
        monotone beyond chance.
    drift_p, drift_tau
        A trend counts as monotone beyond chance when its chance (Kendall) is below `drift_p` and its rank correlation
        with time above `drift_tau`: bursts of other work also leave a chance trend, but seldom a monotone one.
    """

    growth: float = 1.25
    z: float = 4.0
    curvature: float = 0.08
    drift: float = 0.15
    drift_p: float = 0.002
    drift_tau: float = 0.75


@dataclass(frozen=True, slots=True)
class SlopeFit:
    """What the rounds say.

    Attributes
    ----------
    slope_s, slope_se_s
        Time of one iteration and its standard error in s.
    intercept_s, intercept_se_s
        Time of a launch and its standard error in s; below zero where noise exceeds it.
    rounds
        Number of rounds.
    outliers
        Rounds whose slope is more than five robust standard deviations away; they are kept.
    """

    slope_s: float
    slope_se_s: float
    intercept_s: float
    intercept_se_s: float
    rounds: int
    outliers: int


def fit_slope(rounds: Sequence[Round], limits: Limits = Limits()) -> SlopeFit:
    """Slope and intercept of timed rounds, each of at least three different iteration counts.

    Raises
    ------
    MeasurementError
        ``too-few-samples``, ``does-not-grow`` (more work takes no more time: it was folded away, or the timer is
        broken), ``nonlinear`` (time is no straight line in the work) or ``drift`` (the slope moves steadily).
    """
    if len(rounds) < 3 or any(len(set(r.iterations)) < 3 for r in rounds):
        raise MeasurementError(
            "too-few-samples", f"{len(rounds)} rounds; a slope needs 3 rounds of 3 different iteration counts"
        )
    slopes, intercepts = round_slopes(rounds)
    slope, slope_se = float(np.median(slopes)), standard_error(slopes)
    _refuse_flat(rounds, slope, limits)
    _refuse_curved(rounds, limits)
    _refuse_drifting(slopes, limits)
    spread = robust_spread(slopes)
    outliers = int(np.sum(np.abs(slopes - slope) > 5 * spread)) if spread > 0 else 0
    intercept, intercept_se = float(np.median(intercepts)), standard_error(intercepts)
    return SlopeFit(slope, slope_se, intercept, intercept_se, len(rounds), outliers)


def round_slopes(rounds: Sequence[Round]) -> tuple[np.ndarray, np.ndarray]:
    """Least-squares slope and intercept of each round; two arrays of shape (rounds,), in s."""
    slopes, intercepts = np.empty(len(rounds)), np.empty(len(rounds))
    for at, one in enumerate(rounds):
        n, t = np.asarray(one.iterations, dtype=float), np.asarray(one.seconds)
        centred = n - n.mean()
        slopes[at] = centred @ t / (centred @ centred)
        intercepts[at] = t.mean() - slopes[at] * n.mean()
    return slopes, intercepts


def robust_spread(values: np.ndarray) -> float:
    """Standard deviation of a sample by its median absolute deviation, corrected for its size."""
    count = len(values)
    if count < 2:
        return math.inf
    correction = _MAD_CORRECTION.get(count, count / (count - 0.8))
    return float(1.4826 * correction * np.median(np.abs(values - np.median(values))))


def standard_error(values: np.ndarray) -> float:
    """Standard error of a sample's median; infinite for fewer than two values.

    sqrt(pi/2) s / sqrt(n); s is the larger of the robust spread and a third of the plain one, so that neither one wild
    round nor a coincidence of most rounds decides alone.
    """
    if len(values) < 2:
        return math.inf
    spread = max(robust_spread(values), float(np.std(values, ddof=1)) / 3)
    return math.sqrt(math.pi / 2) * spread / math.sqrt(len(values))


def _refuse_flat(rounds: Sequence[Round], slope: float, limits: Limits) -> None:
    shortest = float(np.median([r.seconds[int(np.argmin(r.iterations))] for r in rounds]))
    longest = float(np.median([r.seconds[int(np.argmax(r.iterations))] for r in rounds]))
    if slope > 0 and longest > limits.growth * shortest:
        return
    fewest, most = min(rounds[0].iterations), max(rounds[0].iterations)
    raise MeasurementError(
        "does-not-grow",
        f"time does not grow with the work: {fewest} iterations take {shortest:.3g} s, {most} take {longest:.3g} s; "
        f"the work is folded away, the clock is too coarse, or the machine is far too busy",
    )


def _refuse_curved(rounds: Sequence[Round], limits: Limits) -> None:
    departures = np.array([_departure(r) for r in rounds])
    departure, error = float(np.median(departures)), standard_error(departures)
    longest = float(np.median([max(r.seconds) for r in rounds]))
    beyond = abs(departure) - limits.z * error
    if beyond > limits.curvature * longest:
        raise MeasurementError(
            "nonlinear",
            f"time is no straight line in the iterations: the middle count is off by {departure:.3g} +- {error:.2g} s "
            f"where the longest takes {longest:.3g} s; the clock or the machine's speed changes with the load",
        )


def _departure(one: Round) -> float:
    """Time of the middle count less the straight line between the shortest and the longest, in s."""
    order = np.argsort(one.iterations)
    n, t = np.asarray(one.iterations, dtype=float)[order], np.asarray(one.seconds)[order]
    middle = len(n) // 2
    line = t[0] + (t[-1] - t[0]) * (n[middle] - n[0]) / (n[-1] - n[0])
    return float(t[middle] - line)


def _refuse_drifting(slopes: np.ndarray, limits: Limits) -> None:
    third = max(1, len(slopes) // 3)
    first, last = float(np.median(slopes[:third])), float(np.median(slopes[-third:]))
    change = (last - first) / float(np.median(slopes))
    chance, tau = _trend(slopes)
    if abs(change) > limits.drift and chance < limits.drift_p and abs(tau) >= limits.drift_tau:
        raise MeasurementError(
            "drift",
            f"the time of one iteration moves steadily, by {change:+.0%} over {len(slopes)} rounds; the clock drifts "
            f"or the device is still warming up or throttling: let it settle, or measure it as sustained",
        )


def _trend(values: np.ndarray) -> tuple[float, float]:
    """Two-sided chance of a trend at least as monotone by Kendall's S, and his tau.

    Normal approximation of S; exact for a perfect trend, where small samples need it.
    """
    count = len(values)
    score = sum(float(np.sign(b - a)) for a, b in itertools.combinations(values, 2))
    tau = score / (count * (count - 1) / 2)
    if abs(tau) == 1:
        return 2 / math.factorial(count), tau
    deviation = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    return math.erfc(max(0.0, abs(score) - 1) / deviation / math.sqrt(2)), tau

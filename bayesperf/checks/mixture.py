"""Whether residuals fall into two groups: two kernels, or two conditions, that share one name.

A bimodal operation is not described by a wider interval: half of its predictions are wrong one way, half the other.
The statistic is twice the log likelihood ratio of two Student-t components of one scale against a single one, referred
to its own distribution under a single component by simulation (a parametric bootstrap: McLachlan 1987), as no
chi-squared law holds for it. Location, scale and tail are fitted to each sample, so that neither a wide nor a
heavy-tailed operation is called two. That skewed residuals are better described by two components is no second mode:
there must be a valley between the two as well.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.special

from bayesperf.model import Floats

__all__ = ["LEAST", "Modes", "repeat_modes", "two_modes"]

LEAST = 8
"""Residuals below which nothing is tested."""

LEAST_MEMBERS = 3
"""Residuals that the smaller mode must hold: fewer are outliers."""

VALLEY = 0.2
"""Density between two modes over that of the lower one, from which they are not two."""

TAILS = (1.5, 4.0, 30.0)
"""Degrees of freedom tried: far heavier than what is measured alone, typical of it, nearly normal."""

STEPS = 20
"""Iterations of expectation and maximisation; the same for data and for reference, so that the test stays exact."""

STAGES = (100, 500)
"""Simulated references; a sample that 10 of them exceed is not simulated any further (Besag and Clifford 1991)."""

ENOUGH = 10

TAIL = 0.1
"""Share of the references that tell how their distribution ends, for p-values below what they could count."""

SIZES = (8, 9, 10, 12, 14, 16, 20, 25, 32, 40)
"""Sample sizes for which references are kept; the next smaller one serves, and the largest for all beyond: quantiles of
the statistic hardly depend on the size (with a tail of 4, the 95 % quantile is 7 to 9 from 8 to 200 values)."""

BATCH = 10_000
"""Values simulated at a time."""


@dataclass(frozen=True)
class Modes:
    """What was found of one sample of residuals.

    Parameters
    ----------
    p
        Probability of a likelihood ratio at least as large when there is one component; NaN when not tested.
    gap
        Distance of the two components, in the residuals' unit (log time).
    share
        Share of the smaller component.
    separate
        Whether a valley lies between them and the smaller one has members enough.
    """

    p: float
    gap: float
    share: float
    separate: bool


UNTESTED = Modes(np.nan, np.nan, np.nan, False)


def two_modes(residual: Floats) -> Modes:
    """Test whether residuals of different configurations fall into two groups.

    Parameters
    ----------
    residual
        Log of measured over predicted, (configuration,).
    """
    x = np.asarray(residual, dtype=float)
    if len(x) < LEAST or np.ptp(x) == 0.0:
        return UNTESTED
    size = max(s for s in SIZES if s <= len(x))
    return _judge(x, len(x), (1,) * size, symmetric=False)


def repeat_modes(repeats: Sequence[Floats]) -> Modes:
    """Test whether repeats of configurations jump between two levels, as when each process picks a kernel.

    Parameters
    ----------
    repeats
        Log times of the repeats of each configuration; those with fewer than two say nothing.
    """
    # By count, as the reference is simulated.
    several = sorted((np.asarray(r, dtype=float) for r in repeats if len(r) > 1), key=len)
    x = np.concatenate([_from_median(r[None, :])[0] for r in several]) if several else np.empty(0)
    if len(x) < LEAST or np.ptp(x) == 0.0:
        return UNTESTED
    counts = [len(r) for r in several]
    # As for sizes: of a large sample, a reference of the largest size with the same mix of counts.
    most = max(1, int(len(counts) * min(1.0, SIZES[-1] / len(x))))
    kept = np.linspace(0, len(counts) - 1, most).round().astype(int)
    # A jump shows in both deviations of a pair.
    return _judge(x, len(x) - counts.count(2), tuple(counts[at] for at in kept), symmetric=True)


def _judge(x: Floats, members: int, design: tuple[int, ...], *, symmetric: bool) -> Modes:
    fit = _Fit(x[None, :], symmetric)
    statistic, tail = float(fit.statistic[0]), float(fit.tail[0])
    for stage in range(len(STAGES)):
        reference = _reference(design, symmetric, tail, stage)
        above = int((reference >= statistic).sum())
        if above >= ENOUGH:
            break
    p = (1 + above) / (1 + len(reference)) if above >= ENOUGH else _beyond(statistic, reference)
    gap, share = float(fit.gap[0]), float(fit.share[0])
    smaller = min(share, 1.0 - share)
    separate = bool(fit.valley()[0] <= VALLEY and smaller * members > LEAST_MEMBERS - 0.5)
    return Modes(p, gap, smaller, separate)


def _beyond(statistic: float, reference: Floats) -> float:
    """P-value beyond the references, whose upper end is exponential, as that of any chi-squared-like statistic.

    Knijnenburg, Wessels, Reinders and Shmulevich (2009) fit permutation tails so, with a free shape.
    """
    start = float(np.quantile(reference, 1 - TAIL))
    excess = float((reference[reference > start] - start).mean())
    return TAIL * float(np.exp(-(statistic - start) / excess))


@functools.lru_cache(maxsize=512)
def _reference(design: tuple[int, ...], symmetric: bool, tail: float, stage: int) -> Floats:
    """Statistics of samples with one component, (simulation,): those of all stages up to this one."""
    rng = np.random.default_rng([stage, len(design), sum(design)])
    before = _reference(design, symmetric, tail, stage - 1) if stage else np.empty(0)
    parts, lacking = [before], STAGES[stage] - len(before)
    while lacking > 0:
        some = min(lacking, max(1, BATCH // sum(design)))
        x = rng.standard_t(tail, size=(some, sum(design)))
        parts.append(_Fit(_deviations(x, design) if symmetric else x, symmetric).statistic)
        lacking -= some
    return np.concatenate(parts)


def _deviations(x: Floats, design: tuple[int, ...]) -> Floats:
    """Deviations of repeats (sample, repeat) from the median of their configuration, configurations sorted by count."""
    parts, start = [], 0
    for count in sorted(set(design)):
        width = count * design.count(count)
        block = x[:, start : start + width].reshape(-1, count)
        parts.append(_from_median(block).reshape(len(x), -1))
        start += width
    return np.concatenate(parts, axis=1)


def _from_median(x: Floats) -> Floats:
    """Deviations of each row's values from their median; the median itself, of an odd number, says nothing."""
    ordered = np.sort(x, axis=1)
    centre = np.median(ordered, axis=1, keepdims=True)
    n = x.shape[1]
    return np.asarray(np.delete(ordered, n // 2, axis=1) if n % 2 else ordered) - centre


class _Fit:
    """One and two components fitted to each of several samples (sample, value), by maximum likelihood.

    Plain: components at two free places. Symmetric: one at 0 and one at the same distance on either side of it, which
    is what deviations from a configuration's median do when its repeats have two levels. All tails and starting points
    run side by side, as further samples.
    """

    def __init__(self, x: Floats, symmetric: bool):
        self.symmetric = symmetric
        spread = np.subtract(*np.quantile(x, [0.84, 0.16], axis=1)) / 2
        self._spread = np.maximum(spread, 1e-9 + 1e-6 * np.ptp(x, axis=1))
        tails = np.repeat(TAILS, len(x))
        single = self._single(np.tile(x, (len(TAILS), 1)), tails).reshape(len(TAILS), -1)
        # The tail of a single component is the one to simulate from.
        self.tail = np.array(TAILS)[single.argmax(axis=0)]
        starts = self._starts(x)
        every = len(starts) * len(TAILS)
        low, high = (np.concatenate([np.tile(start[at], len(TAILS)) for start in starts]) for at in (0, 1))
        tails = np.tile(tails, len(starts))
        total, *found = self._two(np.tile(x, (every, 1)), tails, low, high)
        best = total.reshape(every, -1).argmax(axis=0) * len(x) + np.arange(len(x))
        self.statistic = np.maximum(2 * (total[best] - single.max(axis=0)), 0.0)
        self._low, self._high, self._scale, self._share = (values[best] for values in found)
        self._tail = tails[best]

    @property
    def gap(self) -> Floats:
        """Distance of the components, (sample,)."""
        return np.asarray(self._high - self._low)

    @property
    def share(self) -> Floats:
        """Share of the upper (symmetric: outer) component, (sample,)."""
        return np.asarray(self._share)

    def valley(self) -> Floats:
        """Least density between the components over that of the lower one, (sample,); 1 where there is no valley."""
        place = self._low[:, None] + np.linspace(0.0, 1.0, 41) * self.gap[:, None]
        density = np.exp(_mixed(self._components(place, self._tail, self._low, self._high, self._scale, self._share)))
        return np.asarray(density.min(axis=1) / np.minimum(density[:, 0], density[:, -1]))

    def _starts(self, x: Floats) -> list[tuple[Floats, Floats]]:
        """Places of the components to start from: either side of the widest gap, and quantiles."""
        ordered = np.sort(np.abs(x) if self.symmetric else x, axis=1)
        n = ordered.shape[1]
        at = np.diff(ordered, axis=1)[:, 1 : n - 2].argmax(axis=1) + 1
        below = np.cumsum(ordered, axis=1)[np.arange(len(x)), at]
        split = (below / (at + 1), (ordered.sum(axis=1) - below) / (n - at - 1))
        pairs = [(0.25, 0.75), (0.45, 0.95)] if self.symmetric else [(0.25, 0.75), (0.1, 0.6), (0.4, 0.9)]
        quantiles = [tuple(np.quantile(ordered, pair, axis=1)) for pair in pairs]
        return [(np.zeros(len(x)) if self.symmetric else low, high) for low, high in (split, *quantiles)]

    def _single(self, x: Floats, tail: Floats) -> Floats:
        """Log likelihood of one component, (sample,)."""
        place = np.zeros((len(x), 1)) if self.symmetric else np.median(x, axis=1, keepdims=True)
        tail, scale = tail[:, None], self._widened(x)[:, None]
        for _ in range(STEPS):
            weight = (tail + 1) / (tail + ((x - place) / scale) ** 2)
            if not self.symmetric:
                place = (weight * x).sum(axis=1, keepdims=True) / weight.sum(axis=1, keepdims=True)
            scale = self._floored(np.sqrt((weight * (x - place) ** 2).mean(axis=1)))[:, None]
        return np.asarray(_log_t(x, place, scale, tail).sum(axis=1))

    def _widened(self, x: Floats) -> Floats:
        return np.tile(self._spread, len(x) // len(self._spread))

    def _floored(self, scale: Floats) -> Floats:
        # Values that agree to the last digit of a clock must not make a density without bounds.
        return np.asarray(np.maximum(scale, 0.05 * self._widened(scale)))

    def _components(self, x: Floats, tail: Floats, low: Floats, high: Floats, scale: Floats, share: Floats) -> Floats:
        """Log density of each component times its share, (component, sample, value)."""
        tail, low, high, scale, share = (v[:, None] for v in (tail, low, high, scale, share))
        lower = np.log1p(-share) + _log_t(x, low, scale, tail)
        if not self.symmetric:
            return np.stack([lower, np.log(share) + _log_t(x, high, scale, tail)])
        outer = np.log(share / 2)
        return np.stack([lower, outer + _log_t(x, high, scale, tail), outer + _log_t(x, -high, scale, tail)])

    def _two(self, x: Floats, tail: Floats, low: Floats, high: Floats) -> tuple[Floats, ...]:
        """Log likelihood, lower and upper place, scale and share of the upper component, (sample,) each."""
        scale, share = self._widened(x) / 2, np.full(len(x), 0.4)
        for _ in range(STEPS):
            parts = self._components(x, tail, low, high, scale, share)
            member = np.exp(parts - _mixed(parts))
            away = x - self._places(low, high)
            weight = member * (tail[:, None] + 1) / (tail[:, None] + (away / scale[:, None]) ** 2)
            if self.symmetric:
                outer = np.maximum(weight[1:].sum(axis=(0, 2)), 1e-12)
                high = np.abs(((weight[1] - weight[2]) * x).sum(axis=1)) / outer
            else:
                low, high = (weight * x).sum(axis=2) / np.maximum(weight.sum(axis=2), 1e-12)
            away = x - self._places(low, high)
            scale = self._floored(np.sqrt((weight * away**2).sum(axis=0).mean(axis=1)))
            share = np.clip(member[1:].sum(axis=0).mean(axis=1), 1e-6, 1 - 1e-6)
        total = _mixed(self._components(x, tail, low, high, scale, share)).sum(axis=1)
        swapped = low > high
        lower, upper = np.where(swapped, high, low), np.where(swapped, low, high)
        return total, lower, upper, scale, np.where(swapped, 1.0 - share, share)

    def _places(self, low: Floats, high: Floats) -> Floats:
        """Place of each component, (component, sample, 1)."""
        return np.stack([low, high, -high] if self.symmetric else [low, high])[:, :, None]


def _log_t(x: Floats, place: Floats, scale: Floats, tail: float | Floats) -> Floats:
    norm = scipy.special.gammaln((tail + 1) / 2) - scipy.special.gammaln(np.asarray(tail) / 2)
    z2 = ((x - place) / scale) ** 2
    return np.asarray(norm - 0.5 * np.log(np.pi * tail) - np.log(scale) - (tail + 1) / 2 * np.log1p(z2 / tail))


def _mixed(parts: Floats) -> Floats:
    """Log density of a mixture from its components', (component, ...)."""
    top = parts.max(axis=0)
    return np.asarray(top + np.log(np.exp(parts - top).sum(axis=0)))

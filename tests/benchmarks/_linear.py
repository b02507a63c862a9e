"""A roofline made linear, whose posterior is known in closed form: thousands of fits a minute.

    log t = s_compute c + s_memory b + s_overhead o + campaign + noise,

with known sensitivities s of every row, independent normal priors of c, b and o, and campaigns of a known spread: one
effect in common, and one of each term. The three parameters are estimated by generalised least squares, which is their
exact posterior where the noise is normal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesperf.model import Floats
from bayesperf.validation.grouptest import Replicates, family_wise, group_statistics, replicate
from bayesperf.validation.weighing import Evidence

__all__ = ["BELIEVED", "LIMITS", "Held", "Linear"]

LIMITS = ("compute", "memory", "overhead")
PRIOR, NOISE, POINTS = 0.5, 0.05, 12
"""Spread of parameters, scale of the noise, points of each campaign that are fitted."""

BELIEVED = 5.0
"""Degrees of freedom that the fit and the prediction believe."""

DRAWS = 500


def sensitivities(rng: np.random.Generator, counts: tuple[int, int, int]) -> Floats:
    """Sensitivities of so many points of each regime, (row, term)."""
    shares = rng.dirichlet([0.3] * 3, size=sum(counts))
    shares[np.arange(len(shares)), np.repeat(np.arange(3), counts)] += 4.0
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Held:
    """Held-out rows of a later campaign, predicted.

    Parameters
    ----------
    shares
        Sensitivities, (row, term).
    regime
        Term that bounds each row, (row,).
    observed
        Log times, (row,).
    signal
        Draws of them without campaign and noise, (draw, row).
    campaign
        Draws of a fresh campaign's effect, (draw, row).
    """

    shares: Floats
    regime: Floats
    observed: Floats
    signal: Floats
    campaign: Floats

    def adjusted(self, rng: np.random.Generator, tolerance: float) -> Floats:
        """Adjusted p-values of the regimes that there are, as `Profile.validate` computes them, (group,)."""
        shape = self.signal.shape
        found: Replicates = replicate(
            self.signal + self.campaign, np.full(shape, NOISE), np.full(shape[0], BELIEVED), rng
        )
        residual = self.observed - found.mean
        low, high = np.quantile(found.values, [0.05, 0.95], axis=0) - found.mean
        results = []
        for regime in np.unique(self.regime):
            rows = np.flatnonzero(self.regime == regime)
            directions = [np.ones(len(rows)), *(s for s in self.shares[rows].T if np.linalg.norm(s) > 0.05)]
            bounds, granted = (low[rows], high[rows]), float(np.log1p(tolerance))
            results.append(group_statistics(residual[rows], found, rows, directions, bounds, granted))
        return family_wise(results)

    @property
    def evidence(self) -> Evidence:
        """What they show of what moved."""
        mean = self.signal.mean(axis=0)
        order = np.argsort(np.arange(len(mean)) % 7)
        half = (order < len(mean) / 2).astype(float)
        return Evidence(
            residual=self.observed - mean,
            signal=self.signal - mean,
            campaign=self.campaign,
            shares=dict(zip(LIMITS, self.shares.T, strict=True)),
            scale=np.full(self.signal.shape, NOISE),
            tail=np.full(len(self.signal), BELIEVED),
            subsets={"some shapes": half, "other shapes": 1.0 - half},
        )


@dataclass(frozen=True)
class Linear:
    """A world: campaigns that are fitted, their spread, and the noise's degrees of freedom."""

    campaigns: int
    spread: float
    tail: float = BELIEVED

    def _effect(self, rng: np.random.Generator, shares: Floats, draws: int) -> Floats:
        common = self.spread * rng.standard_normal((draws, 1))
        return common + 0.5 * self.spread * rng.standard_normal((draws, 3)) @ shares.T

    def _noise(self, rng: np.random.Generator, n: int) -> Floats:
        return np.asarray(NOISE * rng.standard_t(self.tail, size=n))

    def held(
        self, rng: np.random.Generator, counts: tuple[int, int, int], moved: int | None = None, by: float = 0.0
    ) -> Held:
        """Fit, and measure points of each regime in a later campaign, one term of which may take longer."""
        truth = PRIOR * rng.standard_normal(3)
        variance = NOISE**2 * BELIEVED / (BELIEVED - 2.0)
        precision, score = np.eye(3) / PRIOR**2, np.zeros(3)
        for _ in range(self.campaigns):
            shares = sensitivities(rng, (POINTS // 3,) * 3)
            y = shares @ truth + self._effect(rng, shares, 1)[0] + self._noise(rng, POINTS)
            shared = self.spread**2 * (1.0 + 0.25 * shares @ shares.T)
            weighted = np.linalg.solve(shared + variance * np.eye(POINTS), shares)
            precision, score = precision + shares.T @ weighted, score + weighted.T @ y
        covariance = np.linalg.inv(precision)
        draws = rng.multivariate_normal(covariance @ score, covariance, size=DRAWS)
        shares = sensitivities(rng, counts)
        shifted = truth + by * (np.arange(3) == moved)
        observed = shares @ shifted + self._effect(rng, shares, 1)[0] + self._noise(rng, sum(counts))
        regime = np.repeat(np.arange(3.0), counts)
        return Held(shares, regime, observed, draws @ shares.T, self._effect(rng, shares, DRAWS))

"""Evidence of explanations of a group's rows, with campaign and shift integrated inside the likelihood.

Each explanation shifts the log times y of the rows along a direction d by delta ~ N(0, 0.2^2)::

    y = m + K c + d delta + sigma t_nu,      c ~ N(0, 1)

m and sigma are a draw of the posterior; K c is a fresh campaign's effect, with the covariance that the model predicts
for it. Campaign and shift are integrated by Laplace's method around their mode (a few numbers, a Gaussian prior; the
noise's expected information), and the result is averaged over the posterior's draws. Where few draws carry that average
(Pareto k above 0.7: Vehtari, Simpson, Gelman, Yao and Gabry 2024), the parameters' uncertainty is put into the Gaussian
part as well: their principal directions join K, and one integral takes the place of the average. Where neither is
finite, nothing is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from arviz_stats.base import array_stats
from scipy.special import gammaln, logsumexp

from bayesperf.model import Floats
from bayesperf.validation.explanations import SHIFT, Candidate

__all__ = ["Evidence", "Method", "Weight", "weigh"]

Method = Literal["draws", "laplace", "not computed"]

MAX_K = 0.7
STEPS, SETTLED, LOST = 50, 1e-3, 1e-2
"""Steps to a mode at most; the last one, in standard deviations of the prior, of a mode that is found, or is not."""

CAMPAIGN, PARAMETERS, SMALL = 12, 16, 0.03
"""Principal directions of campaigns and of parameters at most, and how small against the largest one may be. What they
leave joins the noise."""

BEHIND = 6.0
"""Log factor behind the best explanation from which one is not averaged over draws: at 0.25 % it does not matter."""


@dataclass(frozen=True)
class Evidence:
    """What rows of one campaign show.

    Parameters
    ----------
    residual
        Log measured time less the posterior mean, (row,).
    signal
        Draws of log time less the posterior mean, without a campaign's effect, (draw, row).
    campaign
        Draws of what a fresh campaign adds, (draw, row); zeros where the rows belong to a fitted one.
    shares
        Sensitivities to the log of each term, by limit, (row,) each.
    scale, tail
        Scale of the noise, (draw, row), and its degrees of freedom, (draw,).
    subsets
        Indicators of subsets of rows, by their description, (row,) each.
    """

    residual: Floats
    signal: Floats
    campaign: Floats
    shares: Mapping[str, Floats]
    scale: Floats
    tail: Floats
    subsets: Mapping[str, Floats]


@dataclass(frozen=True)
class Weight:
    """Log evidence of one explanation, and mean and standard deviation of its shift, log time (NaN without one)."""

    log_evidence: float
    shift: float
    spread: float


def weigh(evidence: Evidence, candidates: Sequence[Candidate]) -> tuple[Method, float, list[Weight]]:
    """Weigh explanations.

    Returns
    -------
    method, pareto_k, weights
        How it was computed; the largest Pareto k of the averages over draws; one weight for each candidate, none where
        nothing could be computed.
    """
    given = (evidence.residual, evidence.signal, evidence.campaign, evidence.scale, evidence.tail)
    if not all(np.isfinite(values).all() for values in given):
        return "not computed", np.nan, []
    campaign, beside = _principal(evidence.campaign, CAMPAIGN)
    parameters, left = _principal(evidence.signal, PARAMETERS)
    joint = _Rows(
        error=evidence.residual[None],
        scale=np.sqrt(np.mean(evidence.scale**2, axis=0) + beside + left)[None],
        tail=np.median(evidence.tail, keepdims=True),
        shared=np.column_stack([campaign, parameters]),
    )
    screened = [_averaged(*_integrated(joint, c)) for c in candidates]
    values = np.array([found.log_evidence for found in screened])
    if not np.isfinite(values).all():
        return "not computed", np.nan, []
    by_draw = _Rows(
        error=evidence.residual - evidence.signal,
        scale=np.sqrt(evidence.scale**2 + beside),
        tail=evidence.tail,
        shared=campaign,
    )
    averaged: dict[int, Weight] = {}
    k = -np.inf
    for at in np.argsort(-values, kind="stable"):
        if values[at] < values.max() - BEHIND:
            break
        parts = _integrated(by_draw, candidates[at])
        averaged[int(at)], k = _averaged(*parts), max(k, _pareto_k(parts[0]))
        if not k <= MAX_K:
            return "laplace", k, screened
    # Both estimates of one evidence differ by much the same for all: those far behind stay as far behind.
    offset = max(w.log_evidence for w in averaged.values()) - values.max()
    behind = {at: Weight(w.log_evidence + offset, w.shift, w.spread) for at, w in enumerate(screened)}
    return "draws", k, [averaged.get(at, behind[at]) for at in range(len(candidates))]


@dataclass(frozen=True)
class _Rows:
    """Errors and scales, (draw, row), tails, (draw,), and what rows share with a standard normal prior, (row, k)."""

    error: Floats
    scale: Floats
    tail: Floats
    shared: Floats


def _principal(draws: Floats, most: int) -> tuple[Floats, Floats]:
    """Principal directions of draws (draw, row) times their deviations, (row, k), and variances left, (row,)."""
    centred = (draws - draws.mean(axis=0)) / np.sqrt(max(len(draws) - 1, 1))
    _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    keep = np.flatnonzero(sizes > max(SMALL * sizes.max(initial=0.0), 1e-9))[:most]
    directions = np.asarray((axes[keep] * sizes[keep, None]).T)
    return directions, np.maximum((centred**2).sum(axis=0) - (directions**2).sum(axis=1), 0.0)


def _integrated(rows: _Rows, candidate: Candidate) -> tuple[Floats, Floats, Floats]:
    """Log evidence of each draw, and mean and deviation of its shift in log time, (draw,) each."""
    design = np.column_stack([rows.shared, candidate.direction])
    n, k = design.shape
    scale = np.hypot(rows.scale * np.exp(candidate.wider), candidate.own)
    tail = rows.tail[:, None]
    squares = (design[:, :, None] * design[:, None, :]).reshape(n, k * k)
    draws = len(rows.error)

    def precision(weight: Floats) -> Floats:
        return (weight @ squares).reshape(draws, k, k) + np.eye(k)

    mode, step = np.zeros((draws, k)), np.zeros((draws, k))
    for _ in range(STEPS):
        left = (rows.error - mode @ design.T) / scale
        weight = (tail + 1) / (tail + left**2) / scale**2
        step = np.linalg.solve(precision(weight), ((weight * rows.error) @ design)[..., None])[..., 0] - mode
        mode = mode + step
        if np.abs(step).max(initial=0.0) < SETTLED:
            break
    left = (rows.error - mode @ design.T) / scale
    density = gammaln((tail + 1) / 2) - gammaln(tail / 2) - 0.5 * np.log(np.pi * tail) - np.log(scale)
    density = (density - (tail + 1) / 2 * np.log1p(left**2 / tail)).sum(axis=1)
    # What a row is expected to tell: its curvature at the mode may have any sign.
    curvature = precision((tail + 1) / (tail + 3) / scale**2)
    value = density - 0.5 * (mode**2).sum(axis=1) - 0.5 * np.linalg.slogdet(curvature)[1] + candidate.log_prior
    # A mode that was not found is no evidence.
    value = np.where(np.abs(step).max(axis=1, initial=0.0) < LOST, value, np.nan)
    if candidate.direction.shape[1] != 1:
        return value, np.full(draws, np.nan), np.full(draws, np.nan)
    return value, SHIFT * mode[:, -1], SHIFT * np.sqrt(np.linalg.inv(curvature)[:, -1, -1])


def _pareto_k(log_weights: Floats) -> float:
    if len(log_weights) < 100 or not np.isfinite(log_weights).all():
        return np.inf
    # ArviZ takes log likelihoods, of which leave-one-out's weights are the inverse.
    return 0.0 if np.ptp(log_weights) < 1e-9 else float(array_stats.psislw(-log_weights)[1])


def _averaged(value: Floats, mean: Floats, spread: Floats) -> Weight:
    """The mean evidence, and the shift's moments over draws weighted by it."""
    total = float(logsumexp(value) - np.log(len(value)))
    weight = np.exp(value - logsumexp(value))
    centre = float(weight @ mean)
    return Weight(total, centre, float(np.sqrt(weight @ (spread**2 + (mean - centre) ** 2))))

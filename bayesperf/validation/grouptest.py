"""The joint test of groups of held-out measurements that share parameters and a campaign.

Rows of a group are dependent through what they share, so no row-wise test holds its level. Here whole held-out sets
are replicated from the joint posterior predictive, one effect per campaign for all groups, and the family-wise error
over groups is controlled on the same replicates by step-down minP (Westfall and Young 1993).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg

from bayesperf.model import Floats
from bayesperf.prediction.predictive import student

__all__ = ["GroupResult", "Replicates", "family_wise", "group_statistics", "replicate"]


@dataclass(frozen=True)
class Replicates:
    """Joint posterior predictive of held-out rows.

    Parameters
    ----------
    mean
        Posterior mean of log time, (row,).
    signal
        Log times without noise, parameters and campaign effects as drawn, (replicate, row).
    scale
        Scale of each row's noise, (replicate, row).
    tail
        Degrees of freedom of the noise, (replicate,).
    values
        Replicated observations, (replicate, row).
    """

    mean: Floats
    signal: Floats
    scale: Floats
    tail: Floats
    values: Floats

    def noise_variance(self, rows: npt.NDArray[np.intp]) -> Floats:
        """Mean variance of the noise of rows, (row,)."""
        inflation = (self.tail / (self.tail - 2.0))[:, None]
        return np.asarray(np.mean(self.scale[:, rows] ** 2 * inflation, axis=0))

    def shared(self, rows: npt.NDArray[np.intp]) -> Floats:
        """What the observations of rows share, as Z, (replicate, row): their covariance is Z'Z and the noise's."""
        centred = self.signal[:, rows] - self.mean[rows]
        return np.asarray(centred / np.sqrt(len(centred) - 1))


def replicate(signal: Floats, scale: Floats, tail: Floats, rng: np.random.Generator) -> Replicates:
    """Draw one replicated held-out set per draw of parameters."""
    values = signal + scale * student(rng, tail, signal.shape[1])
    return Replicates(signal.mean(axis=0), signal, scale, tail, values)


@dataclass(frozen=True)
class GroupResult:
    """Test statistics of one group.

    Parameters
    ----------
    observed
        Statistic of the held-out rows.
    replicated
        The same of every replicated set, (replicate,).
    """

    observed: float
    replicated: Floats


def group_statistics(
    residual: Floats,
    replicates: Replicates,
    rows: npt.NDArray[np.intp],
    directions: Sequence[Floats],
    bounds: tuple[Floats, Floats],
    tolerance: float,
    steps: int = 9,
) -> GroupResult:
    """Largest standardised deviation of a group, after shifts of up to +- `tolerance` (log) are granted.

    The components are the projections on `directions` (a common shift, and the sensitivities to compute, memory and
    overhead), the log mean square of what they leave, and the number of rows outside their interval; each is
    standardised by its replicates.

    Parameters
    ----------
    residual
        Observed log time minus the posterior mean, of the group's rows, (row,).
    replicates
        Of all held-out rows.
    rows
        Positions of the group's rows.
    directions
        Vectors (row,), zero vectors left out by the caller.
    bounds
        Ends of each row's predictive interval as residuals, (row,) each.
    tolerance
        Log shift granted.
    steps
        Grid of granted shifts; the most favourable counts.
    """
    projector = _Projector(_whitener(replicates.noise_variance(rows), replicates.shared(rows)), directions)
    simulated = replicates.values[:, rows] - replicates.mean[rows]
    reference = projector.components(simulated, bounds)
    centre, spread = reference.mean(axis=0), reference.std(axis=0)
    spread = np.where(spread > 1e-12, spread, np.inf)
    replicated = _largest((reference - centre) / spread)
    granted = np.linspace(-tolerance, tolerance, steps)
    shifted = projector.components(residual[None, :] - granted[:, None], bounds)
    observed = np.min(_largest((shifted - centre) / spread))
    return GroupResult(float(observed), replicated)


def _largest(components: Floats) -> Floats:
    """Largest deviation of each set, (set,): shifts either way, but residuals only when too large or too often out.

    A group predicted better than promised is no failure.
    """
    signed = np.concatenate([np.abs(components[:, :-2]), components[:, -2:]], axis=1)
    return np.asarray(signed.max(axis=1))


def _whitener(noise: Floats, shared: Floats) -> Callable[[Floats], Floats]:
    """Maps vectors, (row, vector), so that their products are those in the metric of the covariance of rows.

    Parameters
    ----------
    noise
        Variance of each row's noise, (row,).
    shared
        From `Replicates.shared`, (replicate, row).
    """
    if len(noise) <= len(shared):
        factor = np.linalg.cholesky(shared.T @ shared + np.diag(noise))
        return lambda vectors: np.asarray(scipy.linalg.solve_triangular(factor, vectors, lower=True))
    # More rows than replicates: the covariance, too large to be formed, is the noise's along all other directions.
    scale = 1.0 / np.sqrt(noise)[:, None]
    spread = shared.T * scale
    squares, turns = np.linalg.eigh(spread.T @ spread)
    there = squares > 1e-12 * max(squares[-1], 1.0)
    axes = spread @ turns[:, there] / np.sqrt(squares[there])
    shrink = 1.0 / np.sqrt(1.0 + squares[there])[:, None] - 1.0

    def whiten(vectors: Floats) -> Floats:
        plain = vectors * scale
        return np.asarray(plain + axes @ (shrink * (axes.T @ plain)))

    return whiten


class _Projector:
    """Projections of residuals in the metric of their covariance."""

    def __init__(self, whiten: Callable[[Floats], Floats], directions: Sequence[Floats]):
        self._whiten = whiten
        whitened = whiten(np.stack(directions, axis=1))
        # Directions of a small group may coincide: an orthonormal basis of what they span is taken out of the rest.
        left, sizes, _ = np.linalg.svd(whitened, full_matrices=False)
        self._unit = whitened / np.linalg.norm(whitened, axis=0)
        self._basis = left[:, sizes > 1e-8 * sizes[0]]

    def components(self, residuals: Floats, bounds: tuple[Floats, Floats]) -> Floats:
        """Components of residuals (set, row): one column per direction, then rest and outside; (set, component)."""
        white = self._whiten(residuals.T).T
        along = white @ self._unit
        rest = white - white @ self._basis @ self._basis.T
        left_over = max(rest.shape[1] - self._basis.shape[1], 1)
        square = np.log(np.sum(rest**2, axis=1) / left_over + 1e-12)
        if rest.shape[1] <= self._basis.shape[1]:
            square = np.zeros(len(residuals))
        outside = ((residuals < bounds[0]) | (residuals > bounds[1])).sum(axis=1)
        return np.column_stack([along, square, outside])


def family_wise(results: Sequence[GroupResult]) -> Floats:
    """Adjusted p-values of the groups, (group,): step-down minP over the shared replicates.

    The chance that any group of a family without shifts has an adjusted p-value below alpha is at most about alpha,
    however the groups depend on each other.
    """
    n = len(results[0].replicated)
    raw = np.array([(1 + np.sum(r.replicated >= r.observed)) / (n + 1) for r in results])
    # p-value of every replicate within its own group's replicates.
    ranks = np.empty((n, len(results)))
    for column, result in enumerate(results):
        order = np.sort(result.replicated)
        ranks[:, column] = (n - np.searchsorted(order, result.replicated, side="left")) / n
    adjusted = np.empty(len(results))
    ascending = np.argsort(raw, kind="stable")
    floor = 0.0
    for position, group in enumerate(ascending):
        smallest = ranks[:, ascending[position:]].min(axis=1)
        floor = max(floor, (1 + np.sum(smallest <= raw[group])) / (n + 1))
        adjusted[group] = floor
    return adjusted

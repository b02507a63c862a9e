"""Tempered sequential Monte Carlo over many particles at once, in JAX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bayesperf.errors import InferenceError
from bayesperf.model import Floats

__all__ = ["Tempered", "temper"]

KEEP = 0.7
"""Effective share of particles that one step of the temperature leaves."""

STEPS = 12
"""Leapfrog steps of one trajectory, at most."""

TRAJECTORIES, LAST = 2, 16
"""Trajectories of every particle after each step of the temperature, and after the last."""

ACCEPTED = 0.8
"""Share of trajectories to be accepted, which sets the length of a leapfrog step."""

EXCHANGES = 2
"""Draws of the pool that each particle is offered after a trajectory."""

MOST_STAGES = 200


@dataclass(frozen=True)
class Tempered:
    """Particles at the end.

    Parameters
    ----------
    z
        Numbers of each particle, (particle, dimension).
    ancestors
        Draw of the pool that each belongs to, (particle,).
    stages
        Steps of the temperature.
    accepted
        Share of trajectories accepted after the last step.
    carried_over
        Largest rank correlation over dimensions between particles before and after the last trajectories: near one,
        they hardly moved.
    """

    z: Floats
    ancestors: npt.NDArray[np.intp]
    stages: int
    accepted: float
    carried_over: float

    @property
    def survivors(self) -> float:
        """Effective number of draws of the pool that are left."""
        counts = np.bincount(self.ancestors)
        return float(counts.sum() ** 2 / (counts.astype(float) ** 2).sum())


class Target(Protocol):
    """What is sampled: numbers z of every particle, beside a draw of a pool that belongs to it."""

    def log_prior(self, z: Any) -> Any:
        """Of numbers, (particle, dimension), to (particle,)."""

    def log_likelihood(self, z: Any, drawn: Any) -> Any:
        """Of numbers and each particle's draw, to (particle,)."""

    def exchange(self, z: Any, drawn: Any, other: Any) -> tuple[Any, Any, Any, Any]:
        """Numbers under another draw that mean the same; likelihood there; log prior of the meaning there and here."""


def temper(
    target: Target, start: Floats, pool: Any, rng: np.random.Generator, progress: Callable[[float], None]
) -> Tempered:
    """Bring particles from the prior to the posterior.

    Parameters
    ----------
    target
        What is sampled.
    start
        Draws of the numbers from the prior, (particle, dimension).
    pool
        Draws that particles may belong to, one of each to begin with: a tree of arrays whose first axis is the draw.
    rng
        Of resampling and moves.
    progress
        Called with the temperature as it rises.

    Raises
    ------
    InferenceError
        No particle explains the data at all.
    """
    mover = _Mover(target, pool, rng)
    state = _State(np.array(start), np.arange(len(start)), np.zeros(len(start)))
    state.likelihood = mover.likelihood(state)
    beta, stages, step, accepted, before = 0.0, 0, 0.3, 0.0, state.z
    while beta < 1.0:
        if not np.isfinite(state.likelihood).any() or stages >= MOST_STAGES:
            raise InferenceError("no draw of the fit explains the new rows; fit them together with the old ones")
        rise = _next(state.likelihood, 1.0 - beta)
        state = state.at(_resample(state.likelihood * rise, rng))
        beta = min(1.0, beta + rise)
        stages += 1
        before = state.z
        for _ in range(LAST if beta >= 1.0 else TRAJECTORIES):
            accepted = mover.move(state, beta, step)
            step *= np.exp(accepted - ACCEPTED)
            for _ in range(EXCHANGES):
                mover.exchange(state, beta)
        progress(beta)
    return Tempered(state.z, state.drawn, stages, accepted, _carried_over(before, state.z))


@dataclass
class _State:
    z: Floats
    drawn: npt.NDArray[np.intp]
    likelihood: Floats

    def at(self, chosen: npt.NDArray[np.intp]) -> _State:
        return _State(self.z[chosen], self.drawn[chosen], self.likelihood[chosen])

    def take(self, which: npt.NDArray[np.bool_], z: Floats, likelihood: Floats) -> None:
        self.z = np.where(which[:, None], z, self.z)
        self.likelihood = np.where(which, likelihood, self.likelihood)


def _carried_over(before: Floats, after: Floats) -> float:
    from scipy.stats import spearmanr

    pairs = zip(before.T, after.T, strict=True)
    return max((abs(float(spearmanr(a, b).statistic)) for a, b in pairs), default=0.0)


class _Mover:
    """Compiled moves of all particles."""

    def __init__(self, target: Target, pool: Any, rng: np.random.Generator):
        import jax

        def both(z: Any, drawn: Any, beta: Any) -> Any:
            explained = target.log_likelihood(z, drawn)
            density = target.log_prior(z) + beta * explained
            return density.sum(), (density, explained)

        self._likelihood = jax.jit(target.log_likelihood)
        self._gradient = jax.jit(jax.grad(both, has_aux=True))
        self._exchange = jax.jit(target.exchange)
        self._take = jax.jit(lambda pool, at: jax.tree.map(lambda values: values[at], pool))
        self._pool, self._rng = jax.tree.map(jax.numpy.asarray, pool), rng
        self._size = len(jax.tree.leaves(pool)[0])

    def _at(self, drawn: npt.NDArray[np.intp]) -> Any:
        return self._take(self._pool, drawn)

    def likelihood(self, state: _State) -> Floats:
        return np.nan_to_num(np.asarray(self._likelihood(state.z, self._at(state.drawn))), nan=-np.inf)

    def move(self, state: _State, beta: float, step: float) -> float:
        """One Hamiltonian trajectory of each; returns the share accepted."""
        drawn = self._at(state.drawn)
        # The particles' own covariance preconditions; one step length for all, jittered against resonance.
        root = _root(state.z)
        length = step * self._rng.uniform(0.6, 1.2, size=(len(state.z), 1))
        momentum = self._rng.standard_normal(state.z.shape)
        gradient, density, explained = self._evaluate(state.z, drawn, beta)
        energy = density - 0.5 * (momentum**2).sum(axis=1)
        z, p = state.z, momentum
        for _ in range(int(self._rng.integers(STEPS // 2, STEPS + 1))):
            p = p + 0.5 * length * (gradient @ root)
            z = z + length * (p @ root.T)
            gradient, density, explained = self._evaluate(z, drawn, beta)
            p = p + 0.5 * length * (gradient @ root)
        probability = _probability(density - 0.5 * (p**2).sum(axis=1) - energy)
        state.take(self._rng.uniform(size=len(z)) < probability, z, explained)
        return float(probability.mean())

    def exchange(self, state: _State, beta: float) -> None:
        """Offer each particle another draw of the pool."""
        other = self._rng.integers(self._size, size=len(state.z))
        offered = self._exchange(state.z, self._at(state.drawn), self._at(other))
        z, explained, there, here = (np.asarray(values) for values in offered)
        probability = _probability(there - here + beta * (explained - state.likelihood))
        accepted = self._rng.uniform(size=len(z)) < probability
        state.take(accepted, z, explained)
        state.drawn = np.where(accepted, other, state.drawn)

    def _evaluate(self, z: Floats, drawn: Any, beta: float) -> tuple[Floats, Floats, Floats]:
        gradient, (density, explained) = self._gradient(z, drawn, beta)
        # A particle flung out of all bounds must be refused, not spread NaN.
        return np.nan_to_num(np.asarray(gradient)), np.asarray(density), np.asarray(explained)


def _root(z: Floats) -> Floats:
    """Root of the covariance, drawn to its diagonal where there are few particles for so many dimensions."""
    covariance = np.atleast_2d(np.cov(z, rowvar=False))
    spread = np.diag(np.maximum(np.diag(covariance), 1e-6))
    alone = min(1.0, z.shape[1] / len(z))
    return np.asarray(np.linalg.cholesky((1.0 - alone) * covariance + alone * spread))


def _probability(log_ratio: Floats) -> Floats:
    return np.exp(np.minimum(np.nan_to_num(log_ratio, nan=-np.inf), 0.0))


def _next(likelihood: Floats, most: float) -> float:
    """The largest rise of the temperature that leaves `KEEP` of the particles, at most `most`."""

    def effective(rise: float) -> float:
        weights = np.exp(rise * (likelihood - likelihood.max()))
        return float(weights.sum() ** 2 / (weights**2).sum() / len(weights))

    if effective(most) >= KEEP:
        return most
    low, high = 0.0, most
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if effective(middle) >= KEEP else (low, middle)
    return max(low, 1e-12)


def _resample(log_weights: Floats, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Systematic resampling."""
    weights = np.exp(log_weights - log_weights.max())
    ends = np.cumsum(weights / weights.sum())
    at = (rng.uniform() + np.arange(len(weights))) / len(weights)
    return np.minimum(np.searchsorted(ends, at), len(weights) - 1)

"""Tempered particles against a posterior that is known exactly."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from bayesperf.errors import InferenceError
from bayesperf.models.roofline.tempering import temper

OBSERVED, NOISE = np.array([1.5, -0.5, 0.7]), 0.2


class Gaussian:
    """z ~ N(0, I) beside a draw m ~ N(0, 1) of the pool; observed: m + z, with noise."""

    def log_prior(self, z: Any) -> Any:
        return -0.5 * (z**2).sum(axis=1)

    def log_likelihood(self, z: Any, drawn: Any) -> Any:
        return -0.5 * (((drawn["m"][:, None] + z - OBSERVED) / NOISE) ** 2).sum(axis=1)

    def exchange(self, z: Any, drawn: Any, other: Any) -> tuple[Any, Any, Any, Any]:
        there = z + drawn["m"][:, None] - other["m"][:, None]
        return there, self.log_likelihood(there, other), self.log_prior(there), self.log_prior(z)


def test_particles_and_their_draws_have_the_exact_moments() -> None:
    rng = np.random.default_rng(4)
    n = 4000
    pool = {"m": rng.standard_normal(n)}
    reached: list[float] = []
    with jax.enable_x64(True):
        found = temper(Gaussian(), rng.standard_normal((n, 3)), pool, rng, reached.append)
    # m given the observations: precision 1 + 3 / (1 + NOISE^2).
    variance = 1.0 / (1.0 + 3.0 / (1.0 + NOISE**2))
    m = pool["m"][found.ancestors]
    error = np.sqrt(variance / found.survivors)
    assert m.mean() == pytest.approx(variance * OBSERVED.sum() / (1.0 + NOISE**2), abs=4 * error)
    assert m.var() == pytest.approx(variance, rel=4 * np.sqrt(2 / found.survivors))
    total = m[:, None] + found.z
    share = 1.0 / (1.0 + NOISE**2)
    assert total.mean(axis=0) == pytest.approx(share * OBSERVED + (1 - share) * m.mean(), abs=0.03)
    assert found.survivors > 200
    assert found.carried_over < 0.6
    assert reached == sorted(reached)
    assert reached[-1] == pytest.approx(1.0)


def test_data_that_nothing_explains_are_refused() -> None:
    class Impossible(Gaussian):
        def log_likelihood(self, z: Any, drawn: Any) -> Any:
            return z[:, 0] * np.nan

    rng = np.random.default_rng(1)
    with pytest.raises(InferenceError, match="no draw"):
        temper(Impossible(), rng.standard_normal((50, 2)), {"m": rng.standard_normal(50)}, rng, lambda _: None)

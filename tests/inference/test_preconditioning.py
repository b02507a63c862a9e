"""Other coordinates change what sampling costs, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytest

from bayesperf.inference import preconditioning
from bayesperf.inference.mapped import Map, mapped
from bayesperf.inference.preconditioning import precondition
from bayesperf.inference.sampling import SamplerSettings, compile_model, sample

SIZE = 12


@pytest.fixture(scope="module")
def correlated() -> tuple[pm.Model, Any, np.ndarray]:
    """A ridge fifty times longer than wide, and a scale beside it; its covariance."""
    rng = np.random.default_rng(5)
    axes = np.linalg.qr(rng.normal(size=(SIZE, SIZE)))[0]
    covariance = (axes * np.geomspace(0.02, 50.0, SIZE)) @ axes.T
    with pm.Model() as model:
        pm.MvNormal("x", np.arange(SIZE), cov=covariance, shape=SIZE)
        scale = pm.LogNormal("scale", 0.0, 0.3)
        pm.Deterministic("double", 2.0 * scale)
    return model, compile_model(model), covariance


def test_a_map_and_its_inverse_and_the_gradient_behind_it(correlated: Any) -> None:
    _, compiled, _ = correlated
    rng, n = np.random.default_rng(1), SIZE + 1
    vectors = np.linalg.qr(rng.normal(size=(n, n)))[0][:3]
    there = Map(rng.normal(size=n), np.exp(rng.normal(size=n)), vectors, np.array([0.5, -0.3, 2.0]))
    y = rng.normal(size=(4, n))
    assert np.allclose(there.inverse(there(y)), y)
    # d log density / dy = L' d log density / dx, with L the columns of the linear map.
    linear = (there(np.eye(n)) - there(np.zeros(n))).T
    inner, outer = preconditioning._gradient(compiled), preconditioning._gradient(mapped(compiled, there))
    above, below = outer(y[0]), inner(there(y[0]))
    assert above is not None
    assert below is not None
    assert np.allclose(above, linear.T @ below, rtol=1e-9)


def test_a_gradient_that_is_not_finite_is_none(correlated: Any) -> None:
    _, compiled, _ = correlated
    assert preconditioning._gradient(compiled)(np.full(SIZE + 1, np.nan)) is None


def test_the_posterior_stays_and_trajectories_get_short(correlated: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, compiled, covariance = correlated
    settings = SamplerSettings(draws=1000, tune=300, chains=2)
    plain = sample(model, compiled, settings, seed=3, progress=False)
    monkeypatch.setattr(preconditioning, "LARGE", 1)
    trees = [sample(model, compiled, settings, seed=3, progress=False) for _ in range(2)]
    for name in ("x", "scale", "double"):
        assert np.array_equal(trees[0]["posterior"][name], trees[1]["posterior"][name]), "the same seed, other draws"
    steps, before = (float(tree["sample_stats"]["n_steps"].mean()) for tree in (trees[0], plain))
    assert steps < 0.5 * before
    draws = np.asarray(trees[0]["posterior"]["x"]).reshape(-1, SIZE) - np.arange(SIZE)
    # In the posterior's own axes both have variance one; 3,000 draws, nearly independent.
    white = draws @ np.linalg.inv(np.linalg.cholesky(covariance)).T
    assert np.abs(white.mean(axis=0)).max() < 0.1
    assert np.abs(np.cov(white.T) - np.eye(SIZE)).max() < 0.15
    scale = np.log(np.asarray(trees[0]["posterior"]["scale"]))
    assert abs(scale.mean()) < 0.03
    assert abs(scale.std() - 0.3) < 0.03
    assert np.allclose(trees[0]["posterior"]["double"], 2.0 * trees[0]["posterior"]["scale"])


def test_small_and_huge_models_are_left_as_they_are(correlated: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, compiled, _ = correlated
    assert precondition(compiled, chains=2, seed=1, cores=None) is compiled
    monkeypatch.setattr(preconditioning, "LARGE", 1)
    monkeypatch.setattr(preconditioning, "LARGEST", 2)
    assert precondition(compiled, chains=2, seed=1, cores=None) is compiled

"""Independent parts of a model: sampled one by one, joined, and repeated exactly."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest
import xarray as xr

from bayesperf.inference.diagnostics import gate
from bayesperf.inference.factors import sample_again, sample_until_passed
from bayesperf.inference.sampling import SamplerSettings

SETTINGS = SamplerSettings(draws=300, tune=200, chains=2)


def _normal(name: str, location: float) -> pm.Model:
    with pm.Model(coords={f"{name}_dim": ["a", "b"]}) as model:
        pm.Normal(name, location, 1.0, dims=f"{name}_dim")
    return model


@pytest.fixture(scope="module")
def factors() -> list[pm.Model]:
    return [_normal("x", 0.0), _normal("y", 5.0)]


def test_factors_are_joined_and_do_not_move_together(factors: list[pm.Model]) -> None:
    tree, checks, settings, attempt = sample_until_passed(factors, SETTINGS, seed=3, progress=False, attempts=1)
    posterior = tree["posterior"].to_dataset()
    assert {"x", "y"} <= set(posterior.data_vars)
    assert (settings, attempt) == (SETTINGS, 0)
    assert dict(tree["sample_stats"]["diverging"].sizes) == {"factor": 2, "chain": 2, "draw": 300}
    assert [check.name for check in checks][:2] == ["R-hat", "bulk ESS"]
    x, y = (posterior[name].to_numpy().reshape(-1, 2) for name in ("x", "y"))
    # Alike but for their location: the same random numbers would give the same draws.
    assert np.all(np.abs(np.corrcoef(x, y, rowvar=False)[:2, 2:]) < 0.2)
    again, _ = sample_again(factors, settings, seed=3, attempt=attempt, progress=False)
    assert np.array_equal(again["posterior"]["y"], posterior["y"])


def test_all_are_sampled_longer_where_one_fails(factors: list[pm.Model]) -> None:
    with pm.Model() as hard:
        # Of a funnel so few draws never pass.
        scale = pm.Normal("scale", 0.0, 3.0)
        pm.Normal("z", 0.0, pm.math.exp(scale / 2.0), shape=5)
    few = SamplerSettings(draws=250, tune=100, chains=2)
    tree, _, settings, attempt = sample_until_passed([factors[0], hard], few, seed=1, progress=False, attempts=2)
    assert attempt == 1
    assert settings.draws > few.draws
    assert tree["posterior"].sizes["draw"] == settings.draws // settings.thin
    assert tree["sample_stats"].sizes["draw"] == settings.draws


def test_the_draws_of_one_factor_do_not_dilute_divergences_of_another(factors: list[pm.Model]) -> None:
    tree, _, _, _ = sample_until_passed(factors, SETTINGS, seed=3, progress=False, attempts=1)
    stats = tree["sample_stats"].to_dataset()
    stats["diverging"] = xr.zeros_like(stats["diverging"])
    stats["diverging"][{"factor": 1, "chain": 0, "draw": 0}] = True
    groups = {"posterior": tree["posterior"].to_dataset(), "sample_stats": stats}
    found = {check.name: check for check in gate(xr.DataTree.from_dict(groups), ["x", "y"])}["divergences"]
    # One of 600 is more than one in a thousand; of 1,200 it would not be.
    assert not found.passed

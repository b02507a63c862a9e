from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from arviz_stats.ecdf_utils import compute_ecdf, ecdf_pit

from bayesperf.checks import sbc
from bayesperf.checks.calibration import _smallest_tails, band_p
from bayesperf.errors import InputError, UnknownNameError
from bayesperf.inference.sampling import sample
from tests.checks.toy import Levels, array, toy_table


def test_the_band_is_the_one_that_arviz_draws() -> None:
    """A sample leaves ArviZ's 90 % band when its p-value is below 10 %, but for simulation error."""
    rng = np.random.default_rng(1)
    reference = _smallest_tails(rng.uniform(size=(4000, 100)))
    points, _, lower, upper = ecdf_pit(rng.uniform(size=100), 0.9, 1000)
    agree = []
    for power in np.linspace(0.6, 1.6, 30):
        pit = rng.uniform(size=100) ** power
        ecdf = compute_ecdf(pit, points)
        outside = bool(((ecdf < lower) | (ecdf > upper)).any())
        agree.append(outside == (band_p(pit, reference) < 0.1))
    assert np.mean(agree) >= 0.9


def test_uniform_ranks_leave_the_band_as_often_as_they_should() -> None:
    rng = np.random.default_rng(2)
    reference = _smallest_tails(rng.uniform(size=(4000, 200)))
    p = np.array([band_p(rng.uniform(size=200), reference) for _ in range(400)])
    for level in (0.05, 0.5):
        assert np.mean(p <= level) == pytest.approx(level, abs=3 * np.sqrt(level * (1 - level) / 400))


@pytest.mark.parametrize("distort", [lambda u: 0.5 + 0.6 * (u - 0.5), lambda u: u**1.5, lambda u: np.round(u)])
def test_ranks_that_are_not_uniform_leave_it(distort: object) -> None:
    rng = np.random.default_rng(3)
    reference = _smallest_tails(rng.uniform(size=(4000, 200)))
    assert band_p(distort(rng.uniform(size=200)), reference) < 0.01  # type: ignore[operator]


def test_a_model_that_is_right_passes() -> None:
    """The toy with the shipped sampler, few simulations: mechanics, not power."""
    table = toy_table(1, targets=("a",), configurations=5)
    found = sbc(Levels(), table, simulations=10, draws=100, tune=100, chains=1, keep=50, seed=4)
    assert list(found.table["parameter"]) == ["level", "level", "log_likelihood"]
    assert list(found.table["member"]) == ["a|matmul", "a|softmax", ""]
    assert found.failed() == []
    assert found.table["p"].between(0, 1).all()
    ranks = array(found.tree, "prior_sbc", "level")
    assert ranks.sizes["draw"] == 10
    assert ((ranks > 0) & (ranks < 1)).all()


@pytest.mark.slow
def test_a_posterior_that_is_wrong_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws twice as close to each other as they should be: the truth lies outside too often."""

    def narrow(*args: Any, **options: Any) -> xr.DataTree:
        tree = sample(*args, **options)
        level = array(tree, "posterior", "level")
        centre = level.mean(("chain", "draw")).values
        level.values[:] = centre + 0.4 * (level.values - centre)
        return tree

    monkeypatch.setattr("bayesperf.checks.calibration.sample", narrow)
    table = toy_table(1, targets=("a",), configurations=5)
    found = sbc(Levels(), table, simulations=60, draws=100, tune=200, chains=1, keep=50, seed=5)
    assert set(found.failed()) >= {"level[a|matmul]", "level[a|softmax]"}
    assert (found.table["spread_pit"].iloc[:2] > 1.2).all()


def test_what_cannot_be_simulated_is_refused() -> None:
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("x"), 1.0, observed=[1.0, 2.0])
    with pytest.raises(InputError, match=r"pm\.Data"):
        sbc(model, simulations=8)
    with pytest.raises(InputError, match="table"):
        sbc(Levels(), simulations=8)
    with pytest.raises(UnknownNameError, match="level"):
        sbc(Levels(), toy_table(1), simulations=8, names=["levels"])

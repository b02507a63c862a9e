from __future__ import annotations

import arviz_stats as azs
import numpy as np
import pandas as pd
import pytest
import scipy.stats

from bayesperf.checks import posterior_predictive, prior_above_peak, prior_predictive
from bayesperf.errors import InputError
from bayesperf.prediction.profile import Profile
from bayesperf.specs import check_targets
from tests.checks.toy import PRIOR, TAIL, array, toy_profile, toy_table


def test_replicates_are_what_the_model_says(profile: Profile) -> None:
    tree = posterior_predictive(profile, draws=None, seed=2)
    values = array(tree, "posterior_predictive", "log_time")
    assert values.dims == ("chain", "draw", "observation")
    assert values.shape == (4, 250, 48)
    level = array(profile.tree, "posterior", "level").values[..., profile.inference.encoded.code]
    # Noise of the stated scale and tail around the level of the same draw.
    noise = ((values.values - level) / 0.1).ravel()
    assert scipy.stats.kstest(noise, scipy.stats.t(TAIL).cdf).pvalue > 1e-3
    observed = array(tree, "observed_data", "log_time")
    np.testing.assert_allclose(observed.values, np.log(profile.table["time_s"]))
    assert list(observed["target"].values) == list(profile.table["target"])
    assert observed["observation"].values[0] == profile.table["measurement_id"].iloc[0]


def test_replicates_are_thinned_evenly_and_repeat_with_their_seed(profile: Profile) -> None:
    first, again, other = (
        array(posterior_predictive(profile, draws=100, seed=seed), "posterior_predictive", "log_time")
        for seed in (1, 1, 2)
    )
    assert dict(first.sizes) == {"chain": 4, "draw": 25, "observation": 48}
    assert first.equals(again)
    assert not first.equals(other)
    with pytest.raises(InputError, match="draws"):
        posterior_predictive(profile, draws=0)


def test_blocks_change_nothing(profile: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = posterior_predictive(profile, seed=1)["posterior_predictive"]["log_time"].mean(("chain", "draw"))
    monkeypatch.setattr("bayesperf.checks.observed.MOST_VALUES", 5000)
    parts = posterior_predictive(profile, seed=1)["posterior_predictive"]["log_time"].mean(("chain", "draw"))
    np.testing.assert_allclose(parts, whole, atol=0.05)


def test_arviz_takes_the_trees(profile: Profile) -> None:
    tree = posterior_predictive(profile)
    metric = azs.metrics(tree, kind="rmse")
    assert metric.mean == pytest.approx(float(profile.tree["observed_data"]["log_time"].std()), rel=0.2)


def test_the_prior_predictive_is_that_of_the_fit(profile: Profile) -> None:
    tree = prior_predictive(profile)
    values = array(tree, "prior_predictive", "log_time")
    assert values.sizes["draw"] == 500
    assert set(tree.children) == {"observed_data", "prior", "prior_predictive"}
    assert list(values["op"].values) == list(profile.table["op"])
    assert float(values.mean()) == pytest.approx(PRIOR[0], abs=0.3)


def test_what_the_prior_says_above_the_peak() -> None:
    """Rate of the largest configuration: log normal with the prior's location and spread, known in closed form."""
    table = toy_table(1)
    rate = np.log(table["flops"].max()) - PRIOR[0]
    sheets = check_targets(pd.DataFrame({"device": ["a"], "peak_flops_float32": [np.exp(rate + PRIOR[1])]}))
    found = prior_above_peak(toy_profile(table, sheets))
    # One standard deviation above the median; the device without a sheet has no peak.
    assert list(found["target"]) == ["a", "a"]
    np.testing.assert_allclose(found["above"], scipy.stats.norm.sf(1.0), atol=0.06)
    assert prior_above_peak(toy_profile(table)).empty

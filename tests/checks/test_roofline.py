"""Every check on real fits of the shipped model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import bayesperf as bp
from bayesperf import checks
from bayesperf.report.capability import capability_page
from bayesperf.specs import check_targets
from tests.checks.toy import array
from tests.tables import BANDWIDTH, RATE, roofline_table

pytestmark = pytest.mark.slow

DAYS = ("monday", "tuesday", "wednesday")


@pytest.fixture(scope="module")
def profile() -> bp.Profile:
    sheets = {"device": ["box"], "peak_flops_float32": [3 * RATE], "bandwidth_bytes_per_s": [1.5 * BANDWIDTH]}
    table = roofline_table(21, campaigns=DAYS)
    return bp.fit(table, targets=check_targets(pd.DataFrame({**sheets, "cache_bytes": [1e6]})), seed=6)


def test_replicates_are_those_of_pymc(profile: bp.Profile) -> None:
    """The same distribution from the model's own graph: quantiles of every configuration agree."""
    ours = array(checks.posterior_predictive(profile, draws=None), "posterior_predictive", "log_time")
    with profile.model.build(profile.inference.encoded):
        tree = pm.sample_posterior_predictive(profile.tree, var_names=["log_time"], random_seed=1, progressbar=False)
    drawn = array(tree, "posterior_predictive", "log_time")
    spread = ours.std(("chain", "draw")).values
    for level in (0.05, 0.5, 0.95):
        difference = ours.quantile(level, ("chain", "draw")).values - drawn.quantile(level, ("chain", "draw")).values
        assert np.abs(difference / spread).max() < 0.15


def test_a_profile_of_the_same_physics_is_well_described(profile: bp.Profile) -> None:
    assert checks.poor_fits(profile) == []
    pit = checks.loo_pit(profile)
    assert pit.p > 1e-3
    assert pit.pit.sizes["observation"] == len(profile.model.observations(profile.inference.encoded))
    assert np.isfinite(checks.loo(profile).elpd.elpd)


def test_two_kernels_are_told_in_the_report() -> None:
    table = roofline_table(23, campaigns=DAYS)
    jumps = (table["op"] == "stream_copy") & (np.random.default_rng(1).random(len(table)) < 0.3)
    slow = table.assign(time_s=table["time_s"] * np.where(jumps, 1.5, 1.0)).drop(columns="measurement_id")
    profile = bp.fit(slow, seed=7)
    lines = checks.poor_fits(profile)
    assert any("stream_copy on box" in line for line in lines)
    assert not any("matmul" in line for line in lines)
    page = capability_page(profile)
    assert "Fitted, but not described" in page
    assert "stream_copy on box" in page


def test_the_prior_leaves_little_above_the_peak(profile: bp.Profile) -> None:
    found = checks.prior_above_peak(profile)
    assert set(found["parameter"]) == {"compute_rate", "bandwidth"}
    assert (found["above"].to_numpy(float) < 0.2).all()


def test_sensitivity_names_what_the_table_taught(profile: bp.Profile) -> None:
    found = checks.sensitivity(profile)
    rate = found[found["label"] == "matmul float32"].iloc[0]
    assert rate["likelihood"] > rate["prior"]
    assert (found["prior_noise"] > 0).all()


def test_campaigns_are_predicted_without_having_been_seen(profile: bp.Profile) -> None:
    found = checks.leave_out(profile, by="campaign", draws=500, tune=500)
    assert list(found.groups["group"]) == list(DAYS)
    assert found.scores["mean"].to_dict()["coverage"] > 0.8
    # The simulated campaigns do not differ: predicted as fresh ones, each is within a few per cent.
    assert (np.abs(found.groups["shift"]) < 0.05).all()
    table = checks.stack({"roofline": found, "again": found})
    assert table["weight"].sum() == pytest.approx(1.0, abs=1e-6)

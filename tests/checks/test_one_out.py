from __future__ import annotations

import arviz_stats as azs
import numpy as np
import pytest
import scipy.stats

from bayesperf.checks import loo, loo_pit
from bayesperf.prediction.profile import Profile
from tests.checks.toy import TAIL, Levels, array, toy_profile, toy_table


def test_the_score_is_that_of_refits(profile: Profile) -> None:
    """Leaving one of twelve out by hand: the toy's posterior without it is known."""
    found = loo(profile)
    y, code = profile.inference.encoded.summary.log_time, profile.inference.encoded.code
    level = array(profile.tree, "posterior", "level").values.reshape(-1, 4)
    for at in (0, 20, 47):
        density = np.exp(scipy.stats.t.logpdf(y[at], TAIL, level[:, code[at]], 0.1))
        # Exact identity: the density without a row is the harmonic mean over draws of the density with it.
        exact = -np.log(np.mean(1.0 / density))
        assert float(found.elpd.elpd_i[at]) == pytest.approx(exact, abs=0.05)
    assert found.elpd.elpd == pytest.approx(azs.loo(profile.tree).elpd)
    assert list(found.groups["n"]) == [12] * 4
    assert (found.groups["bad_k"] == 0).all()
    assert (found.groups["elpd"] * found.groups["n"]).sum() == pytest.approx(found.elpd.elpd)
    assert any("integrated out" in note for note in found.notes)


def test_configurations_that_decide_alone_are_named() -> None:
    table = toy_table(2, configurations=1, targets=("a", "b", "c"))
    profile = toy_profile(table)
    # As where a prior leaves the only row of a cell to decide: the posterior without it is far away.
    array(profile.tree, "log_likelihood", "log_time").values[:] *= 60
    found = loo(profile)
    assert found.elpd.warning
    assert found.groups["bad_k"].sum() >= 1
    assert any("Pareto k above" in note for note in found.notes)
    assert any("Estimated shape parameter" in note for note in found.notes), "ArviZ's own warning is passed on"


def test_calibrated_predictions_have_uniform_pit(profile: Profile) -> None:
    found = loo_pit(profile)
    assert found.pit.dims == ("observation",)
    assert found.p > 0.01
    assert scipy.stats.kstest(found.pit, "uniform").pvalue > 0.01
    assert list(found.groups["n"]) == [12] * 4
    assert any("Row-wise" in note for note in found.notes)


@pytest.mark.parametrize("scale", [0.03, 0.5])
def test_intervals_too_narrow_or_too_wide_are_seen(scale: float) -> None:
    found = loo_pit(toy_profile(toy_table(3), model=Levels(scale)))
    assert found.p < 1e-3
    spread = float(np.std(found.pit)) * np.sqrt(12)
    assert spread > 1.2 if scale < 0.1 else spread < 0.8


def test_groups_too_small_to_test_are_left_out_of_the_table() -> None:
    found = loo_pit(toy_profile(toy_table(3, configurations=3)))
    assert found.groups.empty
    assert np.isfinite(found.p)

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from bayesperf.checks import poor_fits, residuals
from bayesperf.errors import InputError
from bayesperf.prediction.profile import Profile
from tests.checks.toy import TAIL, Levels, array, toy_profile, toy_table


def _group(profile: Profile, target: str, op: str) -> pd.Series:
    groups = residuals(profile).groups
    return groups[(groups["target"] == target) & (groups["op"] == op)].iloc[0]


def _shifted(table: pd.DataFrame, rows: pd.Series, log_factor: float) -> pd.DataFrame:
    return table.assign(time_s=table["time_s"] * np.exp(np.where(rows, log_factor, 0.0)))


def test_a_fit_that_fits_has_nothing_to_tell(profile: Profile) -> None:
    found = residuals(profile)
    assert list(found.groups["n"]) == [12] * 4
    assert found.groups["outside"].sum() <= 2
    np.testing.assert_allclose(found.groups["expected"], 0.12)
    assert poor_fits(profile) == []


def test_profiles_that_fit_seldom_have_lines() -> None:
    """Profiles whose model is right: each of four kinds of line comes with at most 5 %; all together are counted."""
    told = [bool(poor_fits(toy_profile(toy_table(seed, configurations=10, ops=("matmul",))))) for seed in range(40)]
    assert np.mean(told) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / len(told))


def test_residuals_and_intervals_are_those_of_the_posterior(profile: Profile) -> None:
    rows = residuals(profile, probability=0.5).rows
    level = array(profile.tree, "posterior", "level").values.reshape(-1, 4)
    code = profile.inference.encoded.code
    y = np.log(profile.table["time_s"].to_numpy())
    np.testing.assert_allclose(rows["residual"], y - level.mean(axis=0)[code])
    pit = scipy.stats.t.cdf(y, TAIL, level[:, code], 0.1).mean(axis=0)
    np.testing.assert_allclose(rows["pit"], pit, rtol=1e-6)
    np.testing.assert_array_equal(rows["inside"], np.abs(pit - 0.5) <= 0.25)
    # Half of them inside, as promised; they were fitted, so rather more.
    assert 0.35 <= rows["inside"].mean() <= 0.75
    np.testing.assert_allclose(rows["measured_s"], profile.table["time_s"])


def test_configurations_that_the_model_does_not_describe_are_counted() -> None:
    table = toy_table(4)
    wrong = (table["target"] == "a") & (table["op"] == "matmul") & (table["flops"] <= 3e6)
    profile = toy_profile(_shifted(table, wrong, 1.5))
    assert _group(profile, "a", "matmul")["outside"] == 3
    (line,) = [line for line in poor_fits(profile) if "lie outside" in line]
    assert line.startswith("3 of 12 fitted configurations of matmul on a lie outside their own 99 % interval")
    assert "times as long as predicted" in line


def test_one_configuration_far_out_is_enough() -> None:
    table = toy_table(5)
    profile = toy_profile(_shifted(table, table["measurement_id"] == table["measurement_id"].iloc[0], np.log(20.0)))
    (line,) = poor_fits(profile)
    assert line.startswith("1 of 12 fitted configurations of matmul on a")
    assert line.endswith("18 times as long as predicted."), "20 times its own time, which was short"


def test_two_kernels_under_one_name_are_told_and_not_absorbed() -> None:
    """A model whose noise is wide enough for both: nothing lies outside, and it is told all the same."""
    table = toy_table(6, noise=0.02, configurations=24)
    slow = (table["target"] == "b") & (table["op"] == "softmax") & (table["flops"] > 1.6e7)
    profile = toy_profile(_shifted(table, slow, 0.25), model=Levels(scale=0.15))
    group = _group(profile, "b", "softmax")
    assert group["outside"] == 0
    assert group["two_modes"]
    assert group["modes_gap"] == pytest.approx(0.25, abs=0.05)
    assert group["modes_share"] == pytest.approx(1 / 3, abs=0.05)
    (line,) = poor_fits(profile)
    assert "softmax on b fall into two groups" in line


def test_repeats_that_jump_between_two_levels_are_told() -> None:
    table = toy_table(7, repeats=3, configurations=15, repeat_noise=0.005, targets=("a",))
    rng = np.random.default_rng(8)
    jumps = (table["op"] == "matmul") & (rng.random(len(table)) < 0.25)
    profile = toy_profile(_shifted(table, jumps, 0.2))
    found = residuals(profile).groups.set_index("op")
    assert found["two_levels"].to_dict() == {"matmul": True, "softmax": False}
    assert found.loc["matmul", "repeats_gap"] == pytest.approx(0.2, abs=0.03)
    assert any("Repeats of matmul on a jump between two levels" in line for line in poor_fits(profile))


def test_a_bias_is_told_with_its_interval() -> None:
    profile = toy_profile(toy_table(9))
    posterior = array(profile.tree, "posterior", "level")
    # As when other rows of a hierarchy pull a cell away from its own.
    posterior.values[..., 1] -= 0.2
    group = _group(profile, "a", "softmax")
    assert group["bias_lower"] < group["bias"] < group["bias_upper"]
    assert group["bias"] == pytest.approx(0.2, abs=0.06)
    assert any("softmax on a take 1.2" in line and "on average" in line for line in poor_fits(profile))


@pytest.mark.parametrize("probability", [0.0, 1.0, 99.0])
def test_a_probability_that_is_none_is_refused(profile: Profile, probability: float) -> None:
    with pytest.raises(InputError, match="between 0 and 1"):
        residuals(profile, probability)

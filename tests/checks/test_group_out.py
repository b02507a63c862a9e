from __future__ import annotations

from typing import Any

import arviz_stats as azs
import numpy as np
import pandas as pd
import pytest

from bayesperf.checks import leave_out, stack
from bayesperf.checks.adjust import clustered_mean, holm
from bayesperf.checks.group_out import LeftOut
from bayesperf.errors import InputError
from bayesperf.prediction.profile import Profile
from bayesperf.specs import check_targets
from tests.checks.toy import Levels, toy_profile, toy_table

DAYS = ("monday", "tuesday", "wednesday", "thursday")


@pytest.fixture(autouse=True)
def fits(monkeypatch: pytest.MonkeyPatch) -> list[pd.DataFrame]:
    """Fit the toy in place of sampling; returns the tables that were fitted."""
    fitted: list[pd.DataFrame] = []

    def fit(table: pd.DataFrame, targets: Any = None, model: Any = None, **options: Any) -> Profile:
        fitted.append(table)
        return toy_profile(table, targets, model, **options)

    monkeypatch.setattr("bayesperf.checks.group_out.fit", fit)
    return fitted


def _score(found: LeftOut, name: str, column: str = "mean") -> float:
    return float(found.scores[column].to_dict()[name])


@pytest.fixture
def days() -> pd.DataFrame:
    return toy_table(1, campaigns=DAYS, campaign=0.05, noise=0.05)


@pytest.fixture
def by_day(days: pd.DataFrame) -> LeftOut:
    return leave_out(days, by="campaign", model=Levels(0.05))


def test_every_campaign_is_predicted_by_a_fit_of_the_others(days: pd.DataFrame, fits: list[pd.DataFrame]) -> None:
    found = leave_out(days, by="campaign", model=Levels(0.05))
    whole, *others = fits
    assert len(whole) == len(days)
    for day, fitted in zip(DAYS, others, strict=True):
        assert set(fitted["campaign"]) == set(DAYS) - {day}
    assert list(found.rows["group"]) == list(days["campaign"])
    assert [ids[0] for ids in found.rows["measurement_ids"]] == list(days["measurement_id"])
    np.testing.assert_allclose(found.rows["measured_s"], days["time_s"])
    assert list(found.groups["n"]) == [48] * 4
    assert found.groups["converged"].all()


def test_a_left_out_campaign_is_predicted_as_a_fresh_one(by_day: LeftOut) -> None:
    """With its effect in the prediction the 90 % intervals hold; four campaigns are few, so the range is wide."""
    assert 0.8 <= _score(by_day, "coverage", "mean") <= 0.98
    width = np.log(by_day.rows["upper_s"].to_numpy(float) / by_day.rows["lower_s"].to_numpy(float))
    # Noise of 0.05 and a campaign of 0.05: 2 x 1.645 x 0.08; noise alone would be half of it.
    assert np.median(width) == pytest.approx(0.28, abs=0.05)


def test_scores_agree_with_arviz_and_are_clustered(by_day: LeftOut) -> None:
    assert by_day.rows["log_density"].sum() == pytest.approx(by_day.elpd.elpd)
    assert isinstance(by_day.elpd, azs.ELPDDataLOOKFold)
    assert _score(by_day, "log_density", "n_groups") == 4
    groups = by_day.rows.groupby("group")["log_density"].mean()
    # Groups of equal size: the error of a mean of four means.
    assert _score(by_day, "log_density", "se") == pytest.approx(groups.std(ddof=1) / 2)
    crps = by_day.groups
    assert _score(by_day, "crps_gain", "mean") == pytest.approx((crps["crps_baseline"] - crps["crps"]).mean())


def test_a_target_is_predicted_from_its_spec_sheet_or_refused(fits: list[pd.DataFrame]) -> None:
    table = toy_table(2, targets=("a", "b"))
    with pytest.raises(InputError, match="spec sheet"):
        leave_out(table, by="target", model=Levels())
    assert not fits, "refused before anything was fitted"
    sheets = pd.DataFrame({"device": ["a", "b"], "peak_flops_float32": 1e12})
    found = leave_out(table, by="target", targets=check_targets(sheets), model=Levels())
    assert list(found.groups["group"]) == ["a", "b"]
    # The toy knows nothing of an unseen target but its vague prior.
    assert found.rows["inside"].all()
    assert (found.rows["upper_s"] > 20 * found.rows["lower_s"]).all()


def test_a_profile_saves_the_fit_of_everything(days: pd.DataFrame, fits: list[pd.DataFrame]) -> None:
    leave_out(toy_profile(days, model=Levels(0.05)), by="campaign")
    assert len(fits) == 4


def test_an_operation_of_a_measured_campaign_is_predicted_in_it(days: pd.DataFrame) -> None:
    found = leave_out(days, by=["target", "op"], model=Levels(0.05))
    assert list(found.groups["group"]) == ["a / matmul", "a / softmax", "b / matmul", "b / softmax"]


def test_groups_that_do_not_make_sense_are_refused(days: pd.DataFrame) -> None:
    with pytest.raises(InputError, match="no column 'weekday'"):
        leave_out(days, by="weekday", model=Levels())
    with pytest.raises(InputError, match="two groups or more"):
        leave_out(toy_table(1), by="campaign", model=Levels())
    with pytest.raises(InputError, match="predict each other"):
        leave_out(toy_table(1, repeats=2), by="process", model=Levels())
    with pytest.raises(InputError, match="between 0 and 1"):
        leave_out(days, by="campaign", probability=90.0)


# Stacking.


def test_stacking_prefers_what_predicts_better(days: pd.DataFrame) -> None:
    good, narrow, wide = (toy_profile(days, model=Levels(scale)) for scale in (0.08, 0.02, 1.0))
    table = stack({"good": good, "narrow": narrow, "wide": wide})
    assert table.index[0] == "good"
    assert float(table["weight"].to_dict()["good"]) > 0.8
    assert table["weight"].sum() == pytest.approx(1.0, abs=1e-6)
    assert "dse_clustered" not in table


def test_stacking_takes_scores_of_left_out_campaigns(days: pd.DataFrame) -> None:
    scores = {f"{scale}": leave_out(days, by="campaign", model=Levels(scale)) for scale in (0.05, 0.8)}
    table = stack(scores)
    assert table.index[0] == "0.05"
    assert float(table["dse_clustered"].to_dict()["0.05"]) == 0.0
    assert float(table["dse_clustered"].to_dict()["0.8"]) > 0.0


def test_what_cannot_be_compared_is_refused(days: pd.DataFrame, by_day: LeftOut) -> None:
    profile = toy_profile(days, model=Levels(0.05))
    for few in ({"a": profile}, {"a": profile, "b": by_day}):
        with pytest.raises(InputError, match="two or more"):
            stack(few)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="same measurements"):
        stack({"a": profile, "b": toy_profile(days.iloc[:-1])})


# What they rest on.


def test_holm_adjusts_and_leaves_out_what_was_not_tested() -> None:
    np.testing.assert_allclose(holm([0.01, np.nan, 0.04, 0.03]), [0.03, np.nan, 0.06, 0.06])
    assert holm([]).size == 0


def test_a_clustered_error_grows_with_what_rows_share() -> None:
    rng = np.random.default_rng(3)
    cluster = np.repeat(np.arange(30), 20)
    errors, means = [], []
    for _ in range(200):
        values = rng.standard_normal(30)[cluster] + rng.standard_normal(600)
        mean, se, n = clustered_mean(values, cluster)
        errors.append(se)
        means.append(mean)
    assert n == 30
    # The error that is stated is the one that is made; rows taken as independent would state 0.058.
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.15)
    assert np.isnan(clustered_mean(np.ones(3), ["a"] * 3)[1])

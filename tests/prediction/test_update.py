"""A profile and a few new rows: the update agrees with fitting all of them, and says where it cannot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesperf as bp
from bayesperf.errors import InputError
from bayesperf.prediction.profile import Profile
from tests.tables import roofline_table

SPEEDS = {"a": 0.0, "b": 0.3, "c": -0.4, "d": 0.6}
WORK = pd.DataFrame(
    {
        "op": ["matmul", "stream_copy", "stream_triad"],
        "dtype": "float32",
        "flops": [2e10, 0.0, 1e6],
        "bytes": [1e7, 3e7, 8e6],
    }
)


def table() -> pd.DataFrame:
    rows = roofline_table(3, targets=tuple(SPEEDS))
    return rows.assign(time_s=rows["time_s"] * np.exp(rows["target"].map(SPEEDS)))


@pytest.fixture(scope="module")
def fitted() -> Profile:
    rows = table()
    return bp.fit(rows[rows["target"] != "d"], seed=1, draws=500, tune=500, attempts=1)


def bounds(profile: Profile) -> np.ndarray:
    prediction = profile.predict(WORK, target="d", allow_unconverged=True, campaign="monday")
    return np.log(prediction.interval(0.9).to_numpy())


@pytest.mark.slow
def test_update_agrees_with_fitting_everything(fitted: Profile) -> None:
    rows = table()
    updated = fitted.update(rows[rows["target"] == "d"], seed=2, draws=1000, allow_unconverged=True)
    full = bp.fit(rows, seed=1, draws=500, tune=500, attempts=1)
    width = np.diff(bounds(full), axis=0)
    assert (np.abs(bounds(updated) - bounds(full)) < 0.25 * width).all()


def test_a_new_target_is_learned_and_survives_the_disk(fitted: Profile, tmp_path: Path) -> None:
    rows = table()
    updated = fitted.update(rows[rows["target"] == "d"], seed=2, draws=1000, allow_unconverged=True)
    assert updated.targets == list(SPEEDS)
    assert {c.name: c.passed for c in updated.gate if c.name == "update_accepted"} == {"update_accepted": True}
    learned = updated.parameters().query("target == 'd' and label == 'matmul float32'").iloc[0]
    assert learned["lower"] < 2e11 * np.exp(-0.6) < learned["upper"]
    assert learned["evidence"]
    assert any("added by an update" in said for said in updated.facts["caveats"])
    path = tmp_path / "updated.nc"
    updated.save(path)
    again = bp.load_profile(path)
    np.testing.assert_allclose(bounds(again), bounds(updated))
    assert len(again.table) == len(rows)


def test_a_second_campaign_is_inferred_beside_the_first(fitted: Profile) -> None:
    rows = roofline_table(5, campaigns=("tuesday",))
    rows = rows.assign(target="a", time_s=rows["time_s"] * np.exp(0.05))
    updated = fitted.update(rows.drop(columns="measurement_id"), seed=2, draws=1000, allow_unconverged=True)
    work = WORK.iloc[:1]
    monday, tuesday = (
        float(np.log(updated.predict(work, target="a", campaign=c, allow_unconverged=True).median().item()))
        for c in ("monday", "tuesday")
    )
    assert tuesday - monday == pytest.approx(0.05, abs=0.02)
    fresh = updated.predict(work, target="a", allow_unconverged=True).interval(0.9).to_numpy()
    known = updated.predict(work, target="a", campaign="monday", allow_unconverged=True).interval(0.9).to_numpy()
    assert np.ptp(np.log(fresh)) > np.ptp(np.log(known))


def test_what_cannot_be_added_is_refused(fitted: Profile) -> None:
    with pytest.raises(InputError, match="fitted already"):
        fitted.update(fitted.table.iloc[:2], allow_unconverged=True)
    rows = table()
    only = rows[rows["target"] == "d"].assign(role="heldout")
    with pytest.raises(InputError, match="no rows to fit"):
        fitted.update(only, allow_unconverged=True)

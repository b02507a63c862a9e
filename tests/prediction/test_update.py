"""A profile and a few new rows: the update agrees with fitting all of them, and says where it cannot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import bayesperf as bp
from bayesperf.errors import InputError
from bayesperf.inference.infer import Inference
from bayesperf.inference.sampling import sample_prior
from bayesperf.models.roofline.model import Roofline
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
    return bp.fit(rows[rows["target"] != "d"], seed=1, attempts=1)


def bounds(profile: Profile) -> np.ndarray:
    prediction = profile.predict(WORK, target="d", allow_unconverged=True, campaign="monday")
    return np.log(prediction.interval(0.9).to_numpy())


@pytest.fixture(scope="module")
def unfitted() -> Profile:
    """Draws of the prior: of what all targets share, nothing is known, and the new rows tell of it."""
    rows, model = table(), Roofline()
    rows = rows[rows["target"] != "d"].reset_index(drop=True)
    encoded = model.encode(rows, None)
    prior = sample_prior(model.build(encoded), draws=400, seed=1)["prior"].to_dataset()
    tree = xr.DataTree.from_dict({"posterior": prior, "prior": prior})
    facts = {"model": model.name, "model_version": model.version, "caveats": []}
    return Profile(Inference(tree, model, encoded, rows, None, [], facts))


def test_a_new_target_is_learned_and_survives_the_disk(unfitted: Profile, tmp_path: Path) -> None:
    rows = table()
    updated = unfitted.update(rows[rows["target"] == "d"], seed=2, draws=400)
    assert updated.targets == list(SPEEDS)
    learned = updated.parameters().query("target == 'd' and label == 'matmul float32'").iloc[0]
    assert learned["lower"] < 2e11 * np.exp(-0.6) < learned["upper"] < 1.3 * learned["lower"]
    assert learned["evidence"]
    assert any("added by an update" in said for said in updated.facts["caveats"])
    # From draws of the prior the rows leave few: they tell of what all targets share, and a refit is due.
    (check,) = (c for c in updated.gate if c.name == "update_survivors")
    assert not check.passed
    assert "bayesperf fit OLD NEW" in check.remedy
    path = tmp_path / "updated.nc"
    updated.save(path)
    again = bp.load_profile(path)
    np.testing.assert_allclose(bounds(again), bounds(updated))
    assert len(again.table) == len(rows)


def test_what_cannot_be_added_is_refused(unfitted: Profile) -> None:
    with pytest.raises(InputError, match="fitted already"):
        unfitted.update(unfitted.table.iloc[:2])
    rows = table()
    only = rows[rows["target"] == "d"].assign(role="heldout")
    with pytest.raises(InputError, match="no rows to fit"):
        unfitted.update(only)


@pytest.mark.slow
def test_update_agrees_with_fitting_everything(fitted: Profile) -> None:
    rows = table()
    updated = fitted.update(rows[rows["target"] == "d"], seed=2, allow_unconverged=True)
    assert {c.name: c.passed for c in updated.gate if c.name.startswith("update")} == {
        "update_survivors": True,
        "update_accepted": True,
        "update_carried_over": True,
    }
    full = bp.fit(rows, seed=1, attempts=1)
    width = np.diff(bounds(full), axis=0)
    assert (np.abs(bounds(updated) - bounds(full)) < 0.25 * width).all()


@pytest.mark.slow
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

"""Fits of simulated fabrics: what was put in comes out, with intervals that say how far it was not measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesperf as bp
from tests.messages import BUS, LAUNCH, SIZES, STEP, messages_table, true_time

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def profile() -> bp.Profile:
    """Two and four ranks of two targets, one with links of its own for each rank, one with a link that all share."""
    own = messages_table(3, targets=("switch",), ranks=(2, 4))
    shared = messages_table(4, targets=("bus",), ranks=(2, 4), growth=1.0)
    return bp.fit([own, shared], model="communication", seed=5)


def _truth(rows: pd.DataFrame, growth: float) -> np.ndarray:
    return np.array(
        [true_time(op, s, int(n), growth) for op, s, n in zip(rows.op, rows.message_bytes, rows.n_devices, strict=True)]
    )


@pytest.mark.parametrize(("target", "growth"), [("switch", 0.0), ("bus", 1.0)])
def test_sizes_and_ranks_that_were_not_measured(profile: bp.Profile, target: str, growth: float) -> None:
    assert profile.converged, profile.gate
    between = [1.7 * size for size in SIZES[:-1]]
    for ranks, worst in ((4, 0.1), (8, 0.25)):
        rows = messages_table(6, targets=(target,), ranks=(ranks,), sizes=between, processes=1)
        found = profile.predict(rows.drop(columns="time_s"), campaign="monday")
        truth = _truth(rows, growth)
        error = np.abs(found.median().values / truth - 1)
        lower, upper = found.interval(0.9).values
        assert error.mean() < worst
        assert ((lower <= truth) & (truth <= upper)).mean() > 0.8
        # Four ranks were measured; eight are a doubling away, which still counts as near.
        assert found.supported.values.all()
    wide, narrow = (
        profile.predict(rows.iloc[[0]].assign(n_devices=n), campaign="monday").interval(0.9).values for n in (64, 4)
    )
    assert np.log(wide[1] / wide[0]) > 2 * np.log(narrow[1] / narrow[0])


def test_parameters_are_those_of_the_fabric(profile: bp.Profile) -> None:
    found = profile.parameters().set_index(["parameter", "target", "label"])
    rate = found.loc[("bus_bandwidth", "switch", "all_gather, 4 ranks"), :]
    assert rate["learned"]
    assert rate["median"] == pytest.approx(BUS, rel=0.15)
    latency = found.loc[("message_latency", "switch", "all_gather, 2 ranks"), :]
    assert latency["median"] == pytest.approx(LAUNCH + STEP, rel=0.15)
    scaling = found.loc["link_scaling"]["median"]
    assert scaling["bus"].iloc[0] == pytest.approx(0.5, rel=0.25)
    assert scaling["switch"].iloc[0] == pytest.approx(1.0, rel=0.15)


def test_limits_and_verdicts(profile: bp.Profile) -> None:
    limits = profile.predict(messages_table(6, targets=("switch",), ranks=(4,), sizes=(64.0, 2.0**30))).limits
    small, large = limits.sel(limit="overhead").values, limits.sel(limit="communication").values
    assert small[0] == 1.0
    assert large[2] == 1.0
    held = messages_table(8, targets=("switch",), ranks=(4,), sizes=[1.7 * s for s in SIZES[:-1]])
    report = profile.validate(held)
    assert set(report.groups["regime"]) == {"overhead, inside", "communication, inside"}
    assert "fails" not in set(report.groups["verdict"])


def test_a_profile_on_disk_predicts_the_same(profile: bp.Profile, tmp_path: Path) -> None:
    profile.save(tmp_path / "p.nc")
    row = {"op": "all_reduce", "dtype": "float32", "flops": 0, "bytes": 0, "message_bytes": 1e6, "n_devices": 8}
    again = bp.load_profile(tmp_path / "p.nc")
    np.testing.assert_array_equal(
        profile.predict(row, "bus").median().values, again.predict(row, "bus").median().values
    )


def test_few_rows_are_fitted_with_wide_intervals() -> None:
    few = messages_table(2, ops=("all_gather",), ranks=(2,), sizes=(1e3, 1e8), processes=1)
    profile = bp.fit(few, model="communication", seed=3)
    assert profile.converged, profile.gate
    row = {"op": "all_gather", "flops": 0, "bytes": 0, "message_bytes": 1e8}
    near, far = (profile.predict({**row, "n_devices": n}, mean=True).interval(0.9).values for n in (2, 16))
    truth = true_time("all_gather", 1e8, 2)
    assert near[0] < truth < near[1]
    assert np.log(far[1] / far[0]) > np.log(near[1] / near[0])

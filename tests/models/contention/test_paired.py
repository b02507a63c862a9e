"""What a mix costs is read off the same work alone around it, so that a machine may drift."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bayesperf.models.contention.alone import alone_around, paired
from bayesperf.models.contention.encode import encode
from bayesperf.schema import validate, with_ids

SLOWDOWN = 1.5
DRIFT = (1.0, 1.3, 0.8)


def drifting(*, around: bool) -> pd.DataFrame:
    """A victim alone once, and beside another three times while the machine drifts."""
    one = {"target": "box", "op": "matmul", "dtype": "float32", "flops": 2e8, "bytes": 3e6, "working_set_bytes": 3e6}
    beside = [
        {**one, "time_s": 1e-3 * drift * SLOWDOWN, "corunners": "matmul:1", "alone_s": 1e-3 * drift, "alone_se_s": 1e-5}
        for drift in DRIFT
    ]
    table = pd.DataFrame([{**one, "time_s": 1e-3}, *beside]).assign(time_se_s=1e-6)
    table = table if around else table.drop(columns=["alone_s", "alone_se_s"])
    return with_ids(validate(table), source="test")


def test_drift_cancels_where_victims_were_measured_around() -> None:
    coded = encode(drifting(around=True), None).beside
    assert np.exp(coded.log_time - coded.base) == pytest.approx([SLOWDOWN])
    assert coded.scatter.square == pytest.approx([0.0], abs=1e-6)
    # What is known of the time alone is as uncertain as its standard error.
    assert coded.within > 1e-6
    plain = encode(drifting(around=False), None).beside
    assert plain.scatter.square[0] > 0.05


def test_a_configuration_of_which_some_row_lacks_it_is_left_as_it_is() -> None:
    table = drifting(around=True)
    table.loc[2, "alone_s"] = np.nan
    beside = table[table["corunners"].notna()].reset_index(drop=True)
    found = paired(beside)
    assert found["time_s"].tolist() == pytest.approx(beside["time_s"].tolist())
    assert np.isnan(alone_around(found)).all()

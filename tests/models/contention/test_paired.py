"""What a mix costs is read off the same work alone around it, so that a machine may drift."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from bayesperf.errors import InputError, TableError
from bayesperf.model import Draws
from bayesperf.models.contention import alone_rows
from bayesperf.models.contention.alone import alone_around, paired
from bayesperf.models.contention.build import build_contention
from bayesperf.models.contention.coded import Encoded
from bayesperf.models.contention.encode import encode
from bayesperf.models.contention.predict import slowdowns
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
    found = paired(beside, np.zeros(len(beside), dtype=np.intp))
    assert found["time_s"].tolist() == pytest.approx(beside["time_s"].tolist())
    assert np.isnan(alone_around(found)).all()


def test_errors_of_one_time_alone_are_shared_and_of_ratios_none_is() -> None:
    plain, around = (encode(drifting(around=value), None) for value in (False, True))
    assert not plain.paired
    assert around.paired == {"box"}
    assert plain.beside.alone_weight == pytest.approx([1.0])
    assert around.beside.alone_weight + around.beside.alone_known == pytest.approx([0.0])
    assert "alone_error" in {variable.name for variable in build_contention(plain).free_RVs}


def test_mixes_that_share_a_victim_share_its_error() -> None:
    rows = drifting(around=False)
    mixes = pd.Series([None, "matmul:1", "matmul:2", "matmul:3"], dtype=object)
    coded = encode(rows.assign(corunners=mixes), None).beside
    assert coded.alone.tolist() == [0, 0, 0]
    days = [rows.assign(corunners=mixes, campaign=day).drop(columns="measurement_id") for day in ("a", "b")]
    both = with_ids(validate(pd.concat(days, ignore_index=True)), source="test")
    assert encode(both, None).beside.alone.tolist() == [0, 0, 0, 1, 1, 1]


def test_victims_measured_only_around_their_mixes_are_kept() -> None:
    rows = drifting(around=True)
    rows.loc[0, "op"] = "stream_triad"
    encoded = encode(rows, None)
    assert not encoded.left_out
    assert np.exp(encoded.beside.log_time - encoded.beside.base) == pytest.approx([SLOWDOWN])
    nobody = rows[1:].reset_index(drop=True)
    with pytest.raises(InputError, match="alone_rows"):
        encode(nobody, None)
    made = pd.concat([nobody, alone_rows(nobody)], ignore_index=True)
    assert made["measurement_id"].is_unique
    assert np.exp(encode(made, None).solo.log_time) == pytest.approx([1e-3])
    with pytest.raises(InputError, match="alone_s"):
        alone_rows(nobody.drop(columns="alone_s"))


def test_times_alone_that_contradict_each_other_are_told_or_refused() -> None:
    rows = drifting(around=True)
    assert not any("alone_s" in note for note in encode(rows, None).notes)
    assert any("factor of 2" in note for note in encode(rows.assign(alone_s=rows["alone_s"] * 3), None).notes)
    with pytest.raises(TableError, match="both are seconds"):
        encode(rows.assign(alone_s=rows["alone_s"] * 1000), None)
    rows.loc[2, "alone_s"] = np.nan
    assert any("lack alone_s" in note for note in encode(rows, None).notes)


@pytest.mark.parametrize("around", [True, False])
def test_noise_of_a_ratio_counts_once_where_it_is_that_of_ratios(
    prior_draws: Callable[[Encoded, int], Draws], around: bool
) -> None:
    encoded = encode(drifting(around=around), None)
    work = drifting(around=False).iloc[1:2].drop(columns=["time_s"])
    found = slowdowns(encoded, prior_draws(encoded, 5), work, np.log([1e-3]), np.random.default_rng(0))
    assert (found.alone == 0).all() == around
    assert np.all(found.alone <= found.noise)

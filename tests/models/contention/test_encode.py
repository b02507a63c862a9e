"""Rows beside others are set against the same work alone; what cannot be is left out by name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from _contention import KERNELS, Target, pairs, table

from bayesperf.errors import InputError
from bayesperf.models.contention import Contention
from bayesperf.models.contention.encode import encode
from bayesperf.schema import with_ids

PAIRS = list(pairs(KERNELS[:2]))


def simulated(noise: float = 0.0, campaigns: int = 2) -> pd.DataFrame:
    return table(Target("box"), PAIRS, 1, noise=noise, campaigns=campaigns)


def test_every_mix_has_its_base() -> None:
    rows = simulated()
    encoded = encode(rows, None)
    beside = encoded.beside
    assert len(beside.log_time) == 2 * len(PAIRS)
    assert len(encoded.pairs) == len(PAIRS)
    expected = [Target("box").slowdown(mix) for mix in PAIRS]
    np.testing.assert_allclose(np.exp(beside.log_time - beside.base)[: len(PAIRS)], expected, rtol=1e-9)
    seen = Contention().observations(encoded)
    assert len(seen) == len(rows)
    assert sorted(name for ids in seen["measurement_ids"] for name in ids) == sorted(rows["measurement_id"])


def test_a_victim_is_compared_within_its_campaign_else_with_the_others_median() -> None:
    rows = simulated()
    slow = rows["campaign"] == "day 1"
    rows.loc[slow, "time_s"] *= 3.0
    np.testing.assert_allclose(*_slowdowns(rows), rtol=1e-9)
    # Without its own, the other campaign's: three times as fast.
    alone, matched = _slowdowns(rows[~(slow & rows["corunners"].isna())].reset_index(drop=True))
    np.testing.assert_allclose(matched, np.where(np.arange(len(alone)) < len(PAIRS), 1.0, 3.0) * alone, rtol=1e-9)


def test_campaigns_that_agree_steady_each_other() -> None:
    rows = simulated(campaigns=3)
    rows["time_se_s"] = 0.1 * rows["time_s"]
    off = (rows["campaign"] == "day 1") & rows["corunners"].isna()
    rows.loc[off, "time_s"] *= 1.1
    beside = encode(rows, None).beside
    day = np.repeat(np.arange(3), len(PAIRS))
    wrong = np.exp(beside.log_time - beside.base) / np.array([Target("box").slowdown(mix) for mix in PAIRS] * 3)
    # An error of one standard deviation is shared out among all three.
    assert np.all((wrong[day == 1] > 0.94) & (wrong[day == 1] < 0.99))
    assert np.all((wrong[day != 1] > 0.96) & (wrong[day != 1] < 0.99))
    assert np.all(beside.within < 1.01 * 0.1**2)
    assert np.all(beside.alone_known < 0.1**2 / 2)


def _slowdowns(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    beside = encode(rows, None).beside
    return np.array([Target("box").slowdown(mix) for mix in PAIRS] * 2), np.exp(beside.log_time - beside.base)


def test_victims_that_were_not_measured_alone_are_left_out_and_counted() -> None:
    rows = simulated()
    lacking = rows[~((rows["op"] == "matmul") & rows["corunners"].isna())].reset_index(drop=True)
    encoded = encode(lacking, None)
    assert list(encoded.left_out.values()) == [4]
    assert all("not measured alone" in what for what in encoded.left_out)
    said = " ".join(Contention().caveats(encoded))
    assert "Left out: 4 rows beside co-runners" in said
    assert "average" in said


@pytest.mark.parametrize(("kept", "says"), [("alone", "roofline"), ("beside", "alone"), ("others", "same work")])
def test_tables_without_contention_are_refused_with_the_remedy(kept: str, says: str) -> None:
    rows = simulated()
    alone = rows["corunners"].isna()
    chosen = {"alone": alone, "beside": ~alone, "others": (rows["op"] == "matmul") != alone}[kept]
    with pytest.raises(InputError, match=says):
        encode(rows[chosen].reset_index(drop=True), None)


def test_repeats_become_one_row_with_their_scatter() -> None:
    rows = simulated(noise=0.02, campaigns=1)
    twice = pd.concat([rows, rows.assign(time_s=rows["time_s"] * 1.02)], ignore_index=True)
    twice = with_ids(twice.drop(columns="measurement_id"), source="twice")
    beside = encode(twice, None).beside
    assert len(beside.log_time) == len(PAIRS)
    np.testing.assert_allclose(beside.scatter.square, np.log(1.02) ** 2 / 2, rtol=1e-6)
    np.testing.assert_allclose(beside.repeat_weight, 0.5)
    np.testing.assert_allclose(beside.alone_weight, 0.5)


def test_placed_targets_are_known_by_their_columns() -> None:
    rows = simulated()
    shared = rows["corunners"].notna()
    placed = rows.assign(cpus="0", corunner_cpus=pd.Series("0", index=rows.index).where(shared, None), cpu_threads=1.0)
    encoded = encode(placed, None)
    assert encoded.placed == {"box"}
    assert (encoded.beside.mix.capacity == 1.0).all()
    assert not encode(rows, None).placed

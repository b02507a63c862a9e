"""Rows that were left out of a measured table are missed: its plan says what was to be measured."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from bayesperf.store import read_measurements, write_failures
from bayesperf.verification.plans import check_plan

SHIPPED = Path(__file__).parents[2] / "datasets" / "own" / "xeon-2-core-2026-11-30-quick.parquet"


@pytest.fixture(scope="module")
def measured() -> pd.DataFrame:
    """A table as it was measured, with its plan."""
    return read_measurements(SHIPPED)


def without(table: pd.DataFrame, rows: list[int]) -> pd.DataFrame:
    left = table.drop(index=rows).reset_index(drop=True)
    left.attrs = table.attrs
    return left


def test_every_point_of_a_complete_table_is_found(measured: pd.DataFrame) -> None:
    (found,) = check_plan(SHIPPED, measured)
    assert found.status == "passed"
    assert "each of its 330 points is a row" in found.detail


def test_held_out_rows_that_were_left_out_are_named(measured: pd.DataFrame) -> None:
    chosen = [int(at) for at in measured.index[measured["role"] == "heldout"][:2]]
    (found,) = check_plan(SHIPPED, without(measured, chosen))
    assert found.status == "failed"
    assert "2 of 330 points are missing" in found.detail
    assert "failures.parquet, which is not there" in found.detail
    assert [measured["point_id"].iloc[at] in " ".join(found.places) for at in chosen] == [True, True]


def test_points_that_could_not_be_measured_are_no_gap(measured: pd.DataFrame, tmp_path: Path) -> None:
    failures = pd.DataFrame({"point_id": [measured["point_id"].iloc[3]], "op": ["matmul"], "reason": ["timeout"]})
    write_failures(failures, tmp_path / "host.failures.parquet")
    (found,) = check_plan(tmp_path / "host.parquet", without(measured, [3]))
    assert found.status == "passed"
    assert "one of 1 that could not be measured" in found.detail
    (found,) = check_plan(tmp_path / "host.parquet", without(measured, [3, 4]))
    assert "1 of 330 points are missing: neither a row nor in host.failures.parquet" in found.detail


def test_a_plan_that_was_shortened_with_its_rows_is_another_plan(measured: pd.DataFrame) -> None:
    left = without(measured, [7])
    plan = json.loads(measured.attrs["facts"]["plan"])
    plan["points"] = [point for point in plan["points"] if point["id"] != measured["point_id"].iloc[7]]
    left.attrs = {**measured.attrs, "facts": {**measured.attrs["facts"], "plan": json.dumps(plan)}}
    (found,) = check_plan(SHIPPED, left)
    assert (found.status, found.detail) == ("failed", "another plan than the one that was measured")


@pytest.mark.parametrize("plan", ["{", "[]", '{"points": [{"id": 1}]}', '{"points": 3}', "null"])
def test_a_damaged_plan_is_no_plan(measured: pd.DataFrame, plan: str) -> None:
    table = measured.copy(deep=False)
    table.attrs = {**measured.attrs, "facts": {"plan": plan}}
    (found,) = check_plan(SHIPPED, table)
    assert (found.status, found.detail) == ("failed", "the plan in the file is damaged")


def test_a_table_without_a_plan_is_not_asked_for_one(measured: pd.DataFrame) -> None:
    table = measured.copy(deep=False)
    table.attrs = {}
    assert check_plan(SHIPPED, table) == []

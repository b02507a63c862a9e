"""Support is decided feature by feature, per target, before any outcome."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from bayesperf.prediction.support import support_of
from tests.tables import roofline_table


def _support(**changes: Any) -> tuple[bool, list[str]]:
    table = roofline_table(1)
    workload = table.iloc[[4]].reset_index(drop=True).assign(**changes)
    support = support_of(table, workload)
    return bool(support.inside[0]), support.features[0]


def test_a_measured_workload_is_inside() -> None:
    assert _support() == (True, [])


def test_each_feature_is_named() -> None:
    inside, features = _support(flops=1e15)
    assert not inside
    assert features == ["flops", "intensity"]
    assert _support(working_set_bytes=1e12) == (False, ["working_set_bytes"])
    assert _support(dtype="float8") == (False, ["dtype"])
    assert _support(target="elsewhere") == (False, ["target"])


def test_a_dtype_is_outside_where_no_dtype_was_measured() -> None:
    table = roofline_table(1)
    workload = table.iloc[[4]].reset_index(drop=True)
    for fitted in (table.drop(columns="dtype"), table.assign(dtype=None)):
        assert support_of(fitted, workload).features == [["dtype"]]
        # Rows of no dtype are what was measured there; and copies are bytes, whatever their type.
        assert support_of(fitted, workload.drop(columns="dtype")).features == [[]]
        assert support_of(fitted, table[table["op"] == "stream_copy"].head(1).reset_index(drop=True)).features == [[]]


def test_circumstances_never_fitted_are_outside() -> None:
    assert _support(corunners="matmul:8") == (False, ["corunners"])
    assert _support(condition="cold") == (False, ["condition"])


def test_a_factor_of_two_beyond_is_still_inside() -> None:
    largest = roofline_table(1)["working_set_bytes"].max()
    assert _support(working_set_bytes=1.9 * largest)[0]
    assert not _support(working_set_bytes=2.1 * largest)[0]


def test_distance_grows_with_the_factor_outside() -> None:
    table = roofline_table(1)
    workloads = pd.concat([table.iloc[[4]]] * 2, ignore_index=True).assign(working_set_bytes=[1e10, 1e12])
    distance = support_of(table, workloads).distance
    np.testing.assert_allclose(distance[1] - distance[0], np.log(100))


def test_a_feature_never_measured_is_outside() -> None:
    assert _support(message_bytes=1e6) == (False, ["message_bytes"])

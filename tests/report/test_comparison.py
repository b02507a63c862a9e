"""Comparisons by class: probabilities follow from the draws, and every class says what it rests on."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bayesperf.prediction.compare import Comparison
from bayesperf.report.comparison import comparison_page
from tests.exact import PRIOR, World, exact_profile
from tests.report.test_capability import Page

WORKLOADS = pd.DataFrame(
    {
        "op": ["copy", "copy", "scan"],
        "flops": 0.0,
        "bytes": [1e7, 1e8, 1e7],
        "count": [3.0, 1.0, 0.0],
    }
)


def compare(workloads: pd.DataFrame) -> Comparison:
    table = World().measure(
        np.random.default_rng(4), {"old": PRIOR[0], "new": PRIOR[0] + 0.6}, campaigns=["monday", "tuesday"]
    )
    return exact_profile(World(), table, 4).compare(["old", "new"], workloads)


def test_a_class_is_its_workloads_as_often_as_they_are_executed() -> None:
    compared = compare(WORKLOADS)
    found = compared.classes()
    assert list(found["class"]) == ["copy"], "a class that is never executed has no ratio"
    ratio = compared.times.sel(target="old") / compared.times.sel(target="new")
    assert found["ratio"].iloc[0] == pytest.approx(np.exp(0.6), rel=0.1)
    assert found["workloads"].iloc[0] == 2
    assert found["faster"].iloc[0] == "new"
    weighted = (3 * compared.times.isel(workload=0) + compared.times.isel(workload=1)).transpose("draw", "target")
    exact = np.median(weighted.sel(target="old") / weighted.sel(target="new"))
    assert found["ratio"].iloc[0] == pytest.approx(float(exact))
    assert ratio.sizes["workload"] == 3


def test_classes_may_be_named() -> None:
    named = WORKLOADS.assign(count=1.0, **{"class": ["small", "large", "small"]})
    found = compare(named).classes()
    assert list(found["class"]) == ["small", "large"]
    assert list(found["workloads"]) == [2, 1]


def test_limits_are_probabilities_of_each_target() -> None:
    limits = compare(WORKLOADS).limits
    assert limits.dims == ("target", "workload", "limit")
    assert np.allclose(limits.sum("limit"), 1.0)


def test_the_page_says_why_and_from_which_measurements() -> None:
    page = Page(comparison_page(compare(WORKLOADS.assign(count=1.0))))
    assert {target.removeprefix("#") for target in page.targets} <= set(page.ids)
    assert page.text.index("By class of workloads") < page.text.index("Why, and from which measurements")
    assert "memory (100 %)" in page.text
    assert "24 rows of 24 configurations; 1 stack, 2 campaigns" in page.text
    assert "not measured there: predicted from other operations and targets" in page.text
    assert "monday-0" in page.text, "the appendix names the measurements"

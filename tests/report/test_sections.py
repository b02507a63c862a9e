"""What a profile says beyond its parameters: sections, spec sheets, bottlenecks, company, effective numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayesperf.report import company, company_figures
from bayesperf.report.basis import Bases, basis_words
from bayesperf.report.bottlenecks import bottlenecks
from bayesperf.report.document import Interval, Parameter
from bayesperf.report.evidence import Evidence
from bayesperf.report.forest import forests
from bayesperf.report.hierarchy import Sweep, plateaus
from bayesperf.report.sections import section_of
from bayesperf.report.sheets import attained

Make = Callable[..., Any]


def bases_of(table: pd.DataFrame) -> Bases:
    return Bases(Evidence(table))


@pytest.mark.parametrize(
    ("name", "unit", "model", "section"),
    [
        ("compute_rate", "FLOP/s", "roofline", "compute"),
        ("bandwidth", "B/s", "roofline", "memory"),
        ("overhead", "s", "roofline", "overhead"),
        ("campaign_spread", "1", "roofline", "variability"),
        ("misfit", "1", "communication", "variability"),
        ("sharpness", "1", "roofline", "other"),
        ("link_bandwidth", "B/s", "anything", "interconnect"),
        ("bus_rate", "B/s", "anything", "interconnect"),
        ("transfer_bandwidth", "B/s", "anything", "movement"),
        ("bandwidth_efficiency_loss", "1", "contention", "memory"),
        ("shared_capacity", "B/s", "contention", "contention"),
        ("efficiency", "1", "contention", "contention"),
        ("efficiency", "1", "communication", "interconnect"),
        ("unheard_of", "FLOP/s", "mine", "compute"),
        ("unheard_of", "furlong", "mine", "other"),
    ],
)
def test_parameters_of_any_model_find_their_section(name: str, unit: str, model: str, section: str) -> None:
    assert section_of(name, unit, model) == section


# Spec sheets.

SHEETS = pd.DataFrame(
    {"peak_flops_bfloat16": [1e12], "bandwidth_bytes_per_s": [1e11], "cache_bytes": [1e6]}, index=["gpu"]
)


def row(unit: str, median: float) -> dict[str, Any]:
    return {"unit": unit, "median": median, "lower": 0.9 * median, "upper": 1.1 * median}


def rows(**columns: Any) -> pd.DataFrame:
    base: dict[str, Any] = {"target": "gpu", "dtype": "bfloat16", "bytes": 1e7, "n_devices": 2.0}
    return pd.DataFrame({**base, **columns}, index=[0, 1])


def test_a_rate_is_a_share_of_the_peak_of_its_type_and_all_devices() -> None:
    found = attained(row("FLOP/s", 1.42e12), rows(), SHEETS)
    assert found is not None
    assert found.column == "peak_flops_bfloat16"
    assert found.share.median == pytest.approx(0.71)
    assert found.value == 2e12


def test_what_no_sheet_states_is_not_compared() -> None:
    assert attained(row("FLOP/s", 1e12), rows(), None) is None
    assert attained(row("FLOP/s", 1e12), rows(dtype=["bfloat16", "float32"]), SHEETS) is None
    assert attained(row("FLOP/s", 1e12), rows(dtype="int4"), SHEETS) is None
    assert attained(row("FLOP/s", 1e12), rows(target="other"), SHEETS) is None
    assert attained(row("s", 1e-6), rows(), SHEETS) is None
    found = attained(row("FLOP/s", 1e12), rows(target="slug-of-gpu", device="gpu"), SHEETS)
    assert found is not None


def test_only_bandwidth_beyond_the_cache_is_compared_with_that_of_memory() -> None:
    found = attained(row("B/s", 1.5e11), rows(), SHEETS)
    assert found is not None
    assert found.share.median == pytest.approx(0.75)
    assert attained(row("B/s", 1.5e11), rows(bytes=[1e5, 1e7]), SHEETS) is None
    assert attained(row("B/s", 1.5e11), rows(working_set_bytes=1e5), SHEETS) is None
    assert attained(row("B/s", 1.5e11), rows(), SHEETS.drop(columns="cache_bytes")) is None


# Effective numbers.


def test_effective_numbers_count_members_not_rows() -> None:
    table = pd.DataFrame(
        {
            "measurement_id": list("abcdef"),
            "target": ["x"] * 6,
            "op": ["matmul"] * 4 + ["copy"] * 2,
            "flops": [1.0, 1.0, 1.0, 2.0, 0.0, 0.0],
            "bytes": 1.0,
            "campaign": ["monday", "tuesday", None, "monday", "monday", "monday"],
        }
    )
    basis = bases_of(table).of(list("abcd"))
    assert (basis.measurements, basis.configurations, basis.campaigns, basis.stacks) == (4, 2, 3, 1)
    assert basis_words(basis) == "4 rows of 2 configurations; 1 stack, 3 campaigns"
    assert basis.evidence == "E1"


# Bottlenecks and plateaus.


def test_bottlenecks_are_told_by_class_and_size(table: pd.DataFrame, make_profile: Make) -> None:
    profile = make_profile(table)
    found = {b.workloads: b for b in bottlenecks(profile, table, bases_of(table), profile.targets, seed=0)}
    assert {"matmul float32", "matmul bfloat16", "stream_copy float32"} <= set(found)
    stream = found["stream_copy float32"]
    assert sum(stream.limits.values()) == pytest.approx(1.0)
    assert [r.limit for r in stream.ranges] == ["overhead", "memory"]
    assert stream.ranges[0].to_bytes < stream.ranges[1].from_bytes
    assert sum(r.configurations for r in stream.ranges) == stream.basis.configurations == 12


def test_a_plateau_is_flat_and_wide() -> None:
    x = np.geomspace(1e4, 1e9, 60)
    mid = np.where(x < 1e6, 1e11, np.where(x > 1e7, 1e10, 1e11 * (x / 1e6) ** -1.0))
    table = pd.DataFrame(
        {"measurement_id": [f"m{at}" for at in range(60)], "target": "t", "op": "copy", "flops": 0.0, "bytes": x}
    )
    sweep = Sweep(["copy"], table.assign(working_set_bytes=x, rate=mid), x, 0.9 * mid, mid, 1.1 * mid)
    found = plateaus("t", sweep, bases_of(table))
    assert [p.bandwidth.median for p in found] == [1e11, 1e10]
    assert found[0].to_bytes == pytest.approx(1e6, rel=0.3)
    assert found[1].from_bytes == pytest.approx(1e7, rel=0.3)
    assert found[0].basis.measurements + found[1].basis.measurements < 60


# Company.


def beside(table: pd.DataFrame, factor: float) -> pd.DataFrame:
    """The table with one stream alone in three processes, and beside another in three."""
    solo = table[table["op"] == "stream_triad"].head(1)
    alone = pd.concat([solo.assign(process=str(at), time_s=t) for at, t in enumerate((1.0, 1.1, 0.9))])
    others = alone.assign(corunners="stream_triad:2", time_s=alone["time_s"] * factor)
    both = pd.concat([alone.assign(corunners=None), others], ignore_index=True)
    return both.assign(measurement_id=[f"c{at}" for at in range(len(both))])


@pytest.mark.parametrize("predicts", [True, False])
def test_slowdowns_are_of_the_same_workload_alone(table: pd.DataFrame, make_profile: Make, predicts: bool) -> None:
    rows = beside(table, 1.5)
    stranger = rows.tail(1).assign(bytes=123.0, measurement_id="z")
    rows = pd.concat([rows, stranger], ignore_index=True)
    profile = make_profile(table, predicts_corunners=predicts)
    (found,) = company.slowdowns(profile, rows, bases_of(rows), seed=0)
    assert found.measured.median == pytest.approx(1.5)
    assert found.measured.lower == pytest.approx(1.35 / 1.1)
    assert found.measured.upper == pytest.approx(1.65 / 0.9)
    assert found.basis.measurements == 6
    assert (found.predicted is not None) is predicts
    assert company_figures.contention([found]) is not None
    assert company.slowdowns(profile, table, bases_of(table), seed=0) == []


def test_slowdowns_are_of_the_same_work_around_the_mix_where_that_was_measured(
    table: pd.DataFrame, make_profile: Make
) -> None:
    rows = beside(table, 1.5)
    drift = rows["corunners"].notna()
    rows.loc[drift, "time_s"] *= 2.0
    rows["alone_s"] = (rows["time_s"] / 1.5).where(drift)
    profile = make_profile(table, predicts_corunners=False)
    (found,) = company.slowdowns(profile, rows, bases_of(rows), seed=0)
    assert found.measured.lower == pytest.approx(1.5)
    assert found.measured.upper == pytest.approx(1.5)
    assert found.basis.measurements == 3
    # Nobody else need have measured it alone.
    (alone,) = company.slowdowns(profile, rows[drift].reset_index(drop=True), bases_of(rows), seed=0)
    assert alone.measured.median == pytest.approx(1.5)


def test_a_cell_is_the_median_of_its_campaigns(table: pd.DataFrame, make_profile: Make) -> None:
    days = [beside(table, f).assign(campaign=f"day {f}") for f in (1.2, 3.0, 1.4)]
    rows = pd.concat(days, ignore_index=True)
    rows["measurement_id"] = [f"d{at}" for at in range(len(rows))]
    found = company.slowdowns(make_profile(table), rows, bases_of(rows), seed=0)
    assert len(found) == 3
    figure = company_figures.contention(found)
    assert figure is not None
    assert [text.get_text() for text in figure.axes[0].texts] == ["1.40"]


def test_collectives_have_their_bus_bandwidth() -> None:
    base = {"target": "t", "op": "all_reduce", "flops": 0.0, "bytes": 2.0, "n_devices": 4.0, "campaign": "monday"}
    table = pd.DataFrame(
        [{**base, "message_bytes": size, "time_s": size / 1e9, "measurement_id": f"{size}-{at}"}
         for size in (1e3, 1e6) for at in range(2)]
    )  # fmt: skip
    found = company.collectives(table, bases_of(table))
    assert [c.message_bytes for c in found] == [1e3, 1e6]
    assert found[0].bus_bytes_per_s == pytest.approx(1e9 * 2 * 3 / 4)
    assert found[0].basis.measurements == 2
    assert company_figures.collectives(found) is not None
    assert company_figures.collectives(found[:1]) is None
    stated = table.assign(busbw_bytes_per_s=7e8)
    assert company.collectives(stated, bases_of(stated))[0].bus_bytes_per_s == 7e8


def test_what_the_model_does_not_describe_is_listed_as_measured(table: pd.DataFrame, make_profile: Make) -> None:
    profile = make_profile(table, undescribed=["matmul"])
    (found,) = company.unmodelled(profile, table[table["role"] != "heldout"], bases_of(table))
    assert found.op == "matmul"
    assert found.basis.measurements == 12
    assert "FLOP/s" in found.rate


# Forests.


def test_a_forest_needs_several_targets() -> None:
    basis = Bases(Evidence(pd.DataFrame({"measurement_id": ["a"], "target": "t"}))).of(["a"])

    def entry(target: str, learned: bool) -> Parameter:
        interval = Interval(median=1e9, lower=9e8, upper=1.1e9)
        return Parameter(
            section="compute", parameter="compute_rate", target=target, label="matmul", unit="FLOP/s",
            posterior=interval, prior=interval, contraction=0.9, learned=learned, attained=None, sensitivity=None,
            basis=basis,
        )  # fmt: skip

    assert forests([entry("a", True)]) == []
    ((title, figure, tags, unit),) = forests([entry("a", True), entry("b", False)])
    assert (title, unit) == ("compute rate: matmul", "FLOP/s")
    assert tags == ["E1"]
    legend = figure.axes[0].get_legend()
    assert legend is not None
    labels = {text.get_text() for text in legend.get_texts()}
    assert labels == {"learned", "prior, not learned"}

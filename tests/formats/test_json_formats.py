from __future__ import annotations

import json
from typing import Any

import pytest

from bayesperf.errors import UnsupportedFileError
from bayesperf.formats import import_files
from bayesperf.store import provenance_of


def test_google_benchmark(read: Any) -> None:
    result = read("google-benchmark", "google_benchmark.json")
    table, skipped = result.table, result.report.files[0].skipped
    assert len(table) == 4
    copy = table.iloc[0]
    assert copy["op"] == "bm_copy"
    assert copy["time_s"] == pytest.approx(12.5e-6)
    # The rate is over CPU time.
    assert copy["bytes"] == 8192
    assert copy["arg0"] == 4096
    gemm = table.iloc[2]
    assert gemm["flops"] == 2 * 64 * 64 * 32
    assert (gemm["arg_m"], gemm["arg_k"]) == (64, 32)
    only = table.iloc[3]
    assert (only["statistic"], only["time_s"]) == ("median", pytest.approx(3e-9))
    assert only["time_se_s"] == pytest.approx(0.3e-9 / 3)
    assert only["flags"] == "excluded+work-unknown"
    assert {reason: entry["count"] for reason, entry in skipped.items()} == {
        "aggregate": 1,
        "error": 1,
        "complexity fit": 1,
    }
    written = json.dumps(provenance_of(table)) + table.to_csv()
    assert "secret-host" not in written
    assert "someone" not in written


def test_google_benchmark_units(read_text: Any) -> None:
    entries = [
        {"name": f"BM_{unit}", "iterations": 1, "real_time": 2, "cpu_time": 2, "time_unit": unit}
        for unit in ("ns", "us", "ms", "s", "h")
    ]
    document = {"context": {"cpu_scaling_enabled": False}, "benchmarks": entries}
    result = read_text("google-benchmark", json.dumps(document))
    assert result.table["time_s"].tolist() == pytest.approx([2e-9, 2e-6, 2e-3, 2.0])
    assert result.report.files[0].skipped["unreadable row"]["count"] == 1


def test_google_benchmark_samples(sample: Any) -> None:
    result = import_files("google-benchmark", [sample("google-benchmark/test1_run1.json")])
    table = result.table.set_index("benchmark")
    assert len(table) == 14
    assert table.loc["BM_NotBadTimeUnit", "time_s"] == 0.4
    assert table.loc["BM_100xFaster", "time_s"] == pytest.approx(1e-5)
    assert result.report.files[0].skipped["complexity fit"]["count"] == 2
    other = import_files("auto", [sample("google-benchmark/test3_run0.json")])
    assert other.table["benchmark"].tolist() == ["BM_Two", "BM_Two", "medium", "medium"]
    assert other.report.files[0].skipped["unnamed aggregate"]["count"] == 3


def test_nvbench(read: Any) -> None:
    result = read("nvbench", "nvbench.json")
    table = result.table
    assert table["condition"].tolist() == ["cold", "hot", "cold"]
    cold, hot, single = (table.iloc[at] for at in range(3))
    assert cold["bytes"] == hot["bytes"] == 2 * 4 * 2**26
    assert cold["time_s"] == 1.28e-4
    assert cold["time_se_s"] == pytest.approx(0.02 * 1.28e-4 / 20)
    assert cold["dtype"] == "float32"
    assert cold["axis_elements"] == 2**26
    assert hot["time_s"] == 1.25e-4
    assert single["flags"] == "excluded+work-unknown"
    assert result.report.files[0].skipped["skipped"]["examples"] == [
        "copy_type_sweep [Device=0 T=F64 Elements=2^40]: too large"
    ]
    # The report states the device's own bandwidth, so the ceiling is checked.
    assert result.report.quality.unchecked == []


def test_nvbench_of_a_later_version_is_refused(read_text: Any, fixture_file: Any) -> None:
    document = json.loads(fixture_file("nvbench.json").read_text())
    document["meta"]["version"]["json"] = {"major": 2, "string": "2.0.0"}
    with pytest.raises(UnsupportedFileError, match=r"2\.0\.0"):
        read_text("nvbench", json.dumps(document))


def test_pyperf(read: Any) -> None:
    result = read("pyperf", "pyperf.json")
    table, skipped = result.table, result.report.files[0].skipped
    assert table["process"].tolist() == ["1", "2"]
    assert table["time_s"].tolist() == pytest.approx([0.0101, 0.0111])
    assert table["samples_s"].iloc[0].tolist() == pytest.approx([0.64, 0.6528, 0.6464])
    assert table["samples_iterations"].iloc[0].tolist() == [64, 64, 64]
    assert table["stack"].iloc[0] == "cpython-3.13.1"
    assert {reason: entry["count"] for reason, entry in skipped.items()} == {"calibration": 1, "not a time": 1}
    assert "secret-host" not in json.dumps(provenance_of(table)) + table.to_csv()


def test_pyperf_of_2016(read: Any) -> None:
    table = read("pyperf", "pyperf_v5.json").table
    assert table["time_s"].tolist() == [0.55]
    assert table["samples_s"].iloc[0].tolist() == [1.0, 1.2]


def test_pyperf_of_an_unknown_version_is_refused(read_text: Any, fixture_file: Any) -> None:
    document = json.loads(fixture_file("pyperf.json").read_text()) | {"version": "2.0"}
    with pytest.raises(UnsupportedFileError, match=r"2\.0"):
        read_text("pyperf", json.dumps(document))


@pytest.mark.parametrize("form", ["google-benchmark", "nvbench", "pyperf"])
def test_json_of_something_else_is_refused_by_what_was_looked_for(read_text: Any, form: str) -> None:
    with pytest.raises(UnsupportedFileError, match="looked for"):
        read_text(form, '{"benchmarks": [], "a": 1}')

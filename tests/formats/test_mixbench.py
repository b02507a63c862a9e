from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bayesperf.formats import import_files


def test_precisions_ratios_and_missing_halves(read: Any) -> None:
    result = read("mixbench", "mixbench.csv")
    table = result.table
    assert table.groupby("dtype").size().to_dict() == {"float16": 8, "float32": 16, "float64": 16, "int32": 16}
    assert result.report.files[0].skipped["not measured"]["count"] == 8
    row = table[(table["dtype"] == "float16") & (table["compute_iterations"] == 64)].iloc[0]
    assert row["bytes"] == 2**27
    assert row["flops"] == (1 + 2 * 64) * 2**27 / 4 * 2
    assert row["target"] == "nvidia-test-gpu"
    assert sorted(set(table["process"])) == ["1", "2"]


def test_short_times_are_recovered_from_the_finer_rate(read: Any) -> None:
    table = read("mixbench", "mixbench.csv").table
    row = table[(table["dtype"] == "float32") & (table["compute_iterations"] == 0)].iloc[0]
    # Printed: 0.32 ms at 422.00 GB/sec of 128 MiB.
    assert row["time_s"] == pytest.approx(2**27 / 422e9, rel=2e-5)
    assert row["time_source"] == "rate"
    assert np.allclose(table["bytes"] / table["time_s"], table["rate_bytes_per_s"], rtol=6e-3)


def test_the_older_columns(read: Any) -> None:
    table = read("mixbench", "mixbench_old.csv").table
    assert len(table) == 9
    row = table.iloc[1]
    assert row["time_s"] == pytest.approx(0.230)
    assert row["bytes"] == pytest.approx(144.73e9 * 0.230)
    assert row["flops"] == pytest.approx(9.34e9 * 0.230)
    assert row["statistic"] == "single"
    # The all-compute line moves no bytes and is a measurement all the same.
    assert table.iloc[2]["bytes"] == 0
    assert "flags" not in table or table["flags"].isna().all()


def test_ceilings_of_the_header_serve_devices_without_a_sheet(read_text: Any, fixture_file: Any) -> None:
    text = fixture_file("mixbench.csv").read_text().replace("448.06 GB/sec", "300.00 GB/sec")
    result = read_text("mixbench", text)
    flagged = result.table["flags"].fillna("").str.contains("above-ceiling")
    assert flagged.any()
    assert result.report.quality.unchecked == []


def test_contradicting_cells_are_flagged(read_text: Any, fixture_file: Any) -> None:
    text = fixture_file("mixbench.csv").read_text()
    line = next(row for row in text.splitlines() if row.lstrip().startswith("32,"))
    cells = line.split(",")
    cells[3] = f"{float(cells[3]) * 10:.2f}"
    result = read_text("mixbench", text.replace(line, ",".join(cells), 1))
    assert (result.table["flags"] == "excluded+inconsistent").sum() == 1


def test_sample_of_mixed_lines(sample: Any) -> None:
    result = import_files("mixbench", [sample("mixbench/csv_concat_multi_run.csv")], target="node")
    table = result.table
    assert len(table) == 128 * 4
    first = table[table["dtype"] == "float32"].iloc[0]
    assert first["bytes"] == 2**27
    assert first["flops"] == 2**25
    assert first["time_s"] == pytest.approx(5.55e-3, abs=5e-6)
    assert first["time_s"] == pytest.approx(2**27 / 24.19e9)
    half = table[(table["dtype"] == "float16") & (table["compute_iterations"] == 15)]
    assert half["flops"].iloc[0] == 15.5 * 2**27
    assert "several runs" in result.report.files[0].notes
    assert table["repetition"].max() == 8
    assert "process" not in table
    assert not table["flags"].fillna("").str.contains("inconsistent").any() if "flags" in table else True


def test_alternating_kernels_move_less_as_they_compute_more(read_text: Any) -> None:
    text = (
        "mixbench/alternating (v0.02-7-g91ceeeb)\nBuffer size:          64MB\n"
        "Experiment ID, Single Precision ops,,,,              Double precision ops,,,,\n"
        "Compute iters, Flops/byte, ex.time,  GFLOPS, GB/sec, Flops/byte, ex.time,  GFLOPS, GB/sec\n"
        "            0,      0.000,   47.64,    0.00, 180.31,      0.000,  111.52,    0.00, 154.05\n"
        "            1,      0.129,   45.56,   23.57, 182.64,      0.065,  108.58,    9.89, 153.27\n"
        "           31,    124.000,    7.33, 4541.31,  36.62,     62.000,  226.28,  147.10,   2.37\n"
        "           32,        inf,    7.65, 4491.89,   0.00,        inf,  234.20,  146.71,   0.00\n"
    )
    table = read_text("mixbench", text).table
    assert len(table) == 8
    assert "flags" not in table or table["flags"].isna().all()
    last = table[(table["dtype"] == "float64") & (table["compute_iterations"] == 31)].iloc[0]
    assert last["flops"] == pytest.approx(147.10e9 * 0.22628)
    assert last["bytes"] == pytest.approx(2.37e9 * 0.22628)

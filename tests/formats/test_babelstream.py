from __future__ import annotations

from typing import Any

import pytest

from bayesperf.errors import UnsupportedFileError
from bayesperf.formats import import_files


def test_text_in_mib(read: Any) -> None:
    result = read("babelstream", "babelstream_mib.txt")
    table = result.table.set_index("op")
    assert len(table) == 5
    assert table.loc["stream_dot", "bytes"] == 2 * 8 * 2**25
    assert table.loc["stream_dot", "flops"] == 2 * 2**25
    assert table.loc["stream_copy", "rate_bytes_per_s"] == pytest.approx(2 * 8 * 2**25 / 0.00125)
    assert table.loc["stream_copy", "time_min_s"] == pytest.approx(0.00125, rel=1e-6)
    assert table.loc["stream_scale", "time_s"] == 0.00129
    assert set(table["device"]) == {"nvidia-h200"}
    assert result.report.files[0].skipped["phase"]["count"] == 2
    assert result.report.files[0].tool_version == "5.0"


def test_csv(read: Any) -> None:
    result = read("babelstream", "babelstream.csv")
    table = result.table.set_index("op")
    assert len(table) == 5
    assert table.loc["stream_triad", "bytes"] == 3 * 8 * 33554432
    assert table.loc["stream_triad", "time_max_s"] == pytest.approx(0.001991)
    assert table.loc["stream_triad", "repetitions"] == 100
    assert set(table["dtype"]) == {"float64"}
    assert set(table["process"]) == {"1"}


@pytest.mark.parametrize("name", ["babelstream_triad_only.csv", "babelstream_triad_only.txt"])
def test_triad_only_prints_all_repetitions_together(read: Any, name: str) -> None:
    table = read("babelstream", name).table
    assert len(table) == 1
    row = table.iloc[0]
    assert row["time_s"] == pytest.approx(0.0009)
    assert row["bytes"] == 3 * 4 * 2**25
    assert row["flags"] is None if "flags" in table else True
    assert row["rate_bytes_per_s"] == pytest.approx(row["bytes"] / row["time_s"], rel=1e-5)


def test_mib_read_as_mb_is_a_contradiction(read_text: Any, fixture_file: Any) -> None:
    text = fixture_file("babelstream.csv").read_text().replace("max_mbytes_per_sec,min", "max_mibytes_per_sec,min")
    table = read_text("babelstream", text).table
    assert set(table["flags"]) == {"excluded+inconsistent"}


def test_decimal_commas_are_refused_not_shifted(read_text: Any, fixture_file: Any) -> None:
    text = fixture_file("babelstream.csv").read_text()
    shifted = "\n".join(
        line.replace("0.00", "0,00") if line.startswith(("Copy", "Mul")) else line for line in text.splitlines()
    )
    report = read_text("babelstream", shifted).report
    assert report.rows == 3
    assert "decimal comma" in report.files[0].skipped["unreadable row"]["examples"][0]


def test_a_header_alone_is_no_measurement(sample: Any) -> None:
    with pytest.raises(UnsupportedFileError, match="a header only"):
        import_files("babelstream", [sample("babelstream/csv_header_only.txt")])


def test_sample(sample: Any) -> None:
    result = import_files("auto", [sample("babelstream/text_v2_knl_omp.txt")])
    table = result.table.set_index("op")
    assert len(table) == 4
    assert table.loc["stream_add", "bytes"] == 3 * 8 * 2**25
    assert table.loc["stream_copy", "rate_bytes_per_s"] == pytest.approx(355432.548e6)
    assert table.loc["stream_copy", "time_s"] == 0.00154
    assert table.loc["stream_copy", "time_min_s"] == pytest.approx(2 * 8 * 2**25 / 355432.548e6)
    assert "flags" not in table or table["flags"].isna().all()

from __future__ import annotations

from typing import Any

import pytest

from bayesperf.errors import InputError, UnsupportedFileError
from bayesperf.formats import import_files


def row_of(result: Any, op: str) -> Any:
    rows = result.table[result.table["op"] == op]
    assert len(rows) == 1
    return rows.iloc[0]


def test_a_table_of_the_former_columns(read: Any) -> None:
    result = read("stream", "stream_old.txt")
    triad = row_of(result, "stream_triad")
    assert triad["time_s"] == 0.0455
    assert triad["statistic"] == "mean"
    assert triad["bytes"] == 3 * 8 * 20_000_000
    assert triad["write_allocate_bytes"] == 4 * 8 * 20_000_000
    assert triad["byte_convention"] == "compulsory"
    assert triad["flops"] == 2 * 20_000_000
    assert triad["rate_bytes_per_s"] == pytest.approx(10666.6667e6)
    assert triad["dtype"] == "float64"
    assert triad["threads"] == 4
    assert triad["working_set_bytes"] == 480_000_000


def test_the_best_time_comes_from_the_finer_rate(read: Any) -> None:
    scale = row_of(read("stream", "stream_old.txt", statistic="min"), "stream_scale")
    assert scale["statistic"] == "min"
    assert scale["time_source"] == "rate"
    # The time is printed as 0.0324.
    assert scale["time_s"] == pytest.approx(0.0324, rel=1e-6)
    assert scale["time_mean_s"] == 0.033


def test_a_statistic_that_is_not_printed_is_refused(read: Any) -> None:
    with pytest.raises(InputError, match=r"mean, min, max"):
        read("stream", "stream_old.txt", statistic="median")


def test_two_runs_stay_apart_and_failed_validation_excludes(read: Any) -> None:
    result = read("stream", "stream_two_runs.txt")
    assert result.table["process"].tolist() == ["1"] * 4 + ["2"] * 4
    assert result.table["flags"].tolist() == [None] * 4 + ["excluded+wrong-results"] * 4


def test_a_wrong_array_size_shows_as_a_contradiction(read_text: Any, fixture_file: Any) -> None:
    text = fixture_file("stream_old.txt").read_text().replace("20000000", "2000000")
    result = read_text("stream", text)
    assert set(result.table["flags"]) == {"excluded+inconsistent"}
    assert result.report.files[0].notes["rate and time disagree"]["count"] == 4


def test_gib_and_gb_are_told_apart(read: Any, read_text: Any, fixture_file: Any) -> None:
    copy = row_of(read("cuda-stream", "cuda_stream_si.txt"), "stream_copy")
    assert copy["rate_bytes_per_s"] == pytest.approx(805.5088e9)
    assert copy["bytes"] == 2 * 8 * 2**26
    # The same numbers read as GiB/s contradict their times by 7 %.
    text = fixture_file("cuda_stream_si.txt").read_text().replace("(GB/s) ", "(GiB/s)")
    assert set(read_text("cuda-stream", text).table["flags"]) == {"excluded+inconsistent"}


def test_the_formats_do_not_claim_each_other(fixture_file: Any) -> None:
    assert import_files("auto", [fixture_file("stream_old.txt")]).report.files[0].format == "stream"
    assert import_files("auto", [fixture_file("cuda_stream_si.txt")]).report.files[0].format == "cuda-stream"


def test_a_truncated_table_is_noted(read_text: Any, fixture_file: Any) -> None:
    text = fixture_file("stream_old.txt").read_text()
    header_only = text[: text.index("Copy:")]
    with pytest.raises(UnsupportedFileError, match="without any measurement"):
        read_text("stream", header_only)
    report = read_text("stream", text + header_only).report
    assert report.files[0].notes["cut off"]["count"] == 1


def test_sample_of_stream(sample: Any) -> None:
    result = import_files("stream", [sample("stream-mccalpin/zen.txt")], target="zen")
    assert len(result.table) == 4
    triad = row_of(result, "stream_triad")
    assert triad["time_s"] == 0.026599
    assert triad["time_min_s"] == pytest.approx(0.026431, abs=5e-7)
    assert triad["bytes"] == 9.6e9
    assert triad["rate_bytes_per_s"] == pytest.approx(363208.7e6)
    assert triad["threads"] == 32
    assert set(result.table["target"]) == {"zen"}


def test_sample_of_cuda_stream(sample: Any) -> None:
    result = import_files("cuda-stream", [sample("cuda-stream/google_v100_gib.txt")], device="tesla-v100-sxm2-16gb")
    table = result.table
    assert len(table) == 12
    assert sorted(set(table["process"])) == ["1", "2", "3"]
    copy = table.iloc[0]
    assert copy["rate_bytes_per_s"] == pytest.approx(750.1885 * 2**30)
    assert copy["time_min_s"] == pytest.approx(0.00133300, abs=5e-9)
    assert copy["time_s"] == 0.00133511
    assert copy["bytes"] / copy["time_min_s"] == pytest.approx(750.1885 * 2**30, rel=1e-6)
    assert result.report.files[0].notes["cut off"]["count"] == 1

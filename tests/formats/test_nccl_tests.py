from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bayesperf.errors import InputError, UnsupportedFileError
from bayesperf.formats.collectives import bus_factor
from bayesperf.store import provenance_of


def one(table: Any, **where: Any) -> Any:
    for name, value in where.items():
        table = table[table[name] == value]
    assert len(table) == 1
    return table.iloc[0]


def test_text_of_current_releases(read: Any) -> None:
    result = read("nccl-tests", "nccl_new.txt")
    assert len(result.table) == 8
    row = one(result.table, message_bytes=2**26, placement="in-place")
    assert row["op"] == "all_reduce"
    assert row["time_s"] == pytest.approx(478.64e-6)
    assert row["n_devices"] == 4
    assert row["bytes"] == 2 * 2**26
    assert row["flops"] == 0
    assert row["busbw_bytes_per_s"] / row["algbw_bytes_per_s"] == pytest.approx(1.5, abs=1e-3)
    assert row["target"] == "nvidia-h200-x4"
    assert row["device"] == "nvidia-h200"
    assert row["redop"] == "sum"
    assert row["statistic"] == "mean"
    assert result.report.files[0].tool_version == "2.17.6"
    assert not result.report.files[0].skipped


def test_rank_labels_of_mpirun_are_taken_off(read: Any) -> None:
    plain, labelled = read("nccl-tests", "nccl_new.txt").table, read("nccl-tests", "nccl_labelled.txt").table
    assert labelled["time_s"].tolist() == plain["time_s"].tolist()
    assert set(labelled["target"]) == {"nvidia-h200-x4"}


def test_a_collective_is_told_by_its_columns_and_factors(read: Any) -> None:
    table = read("nccl-tests", "nccl_reduce_scatter_mid.txt").table
    assert set(table["op"]) == {"reduce_scatter"}
    assert set(table["dtype"]) == {"float16"}
    # Send buffer read, one nth of it written.
    assert table["bytes"].iloc[0] == 1024 * 1.25


def test_a_blank_reduction_is_all_to_all(read: Any) -> None:
    table = read("nccl-tests", "nccl_old_blank_redop.txt").table
    assert set(table["op"]) == {"all_to_all"}
    assert len(table) == 6
    row = one(table, message_bytes=16777216, placement="in-place")
    assert row["time_s"] == pytest.approx((20 + 16777216 / 6e4) * 1e-6, abs=1e-8)


def test_json_has_the_same_rows_and_no_host_names(read: Any) -> None:
    result = read("nccl-tests", "nccl.json")
    table = result.table
    assert len(table) == 6
    assert set(table["op"]) == {"all_gather"}
    row = one(table, message_bytes=2**22, placement="out-of-place")
    assert row["time_s"] == pytest.approx((25 + 2**22 / 2.5e5) * 1e-6)
    assert row["n_devices"] == 8
    assert row["bytes"] == pytest.approx(2**22 * (1 + 1 / 8))
    assert row["stack"] == "nccl-2.28.3"
    assert row["time_se_s"] == pytest.approx(row["time_s"] * 0.01 / 20**0.5)
    assert row["campaign"] == "2026-02-03"
    written = json.dumps(provenance_of(table)) + table.to_csv()
    assert "secret-host" not in written
    assert "someone" not in written


def test_an_ambiguous_collective_is_refused_by_naming_the_candidates(read_text: Any, fixture_file: Any) -> None:
    document = json.loads(fixture_file("nccl.json").read_text())
    document["args"] = []
    for result in document["results"]:
        del result["experiment_name"]
    with pytest.raises(InputError, match=r"all_gather, all_to_all.*op"):
        read_text("nccl-tests", json.dumps(document), "results.json")
    assert set(read_text("nccl-tests", json.dumps(document), "r.json", op="alltoall").table["op"]) == {"all_to_all"}
    assert set(read_text("nccl-tests", json.dumps(document), "alltoall.json").table["op"]) == {"all_to_all"}


def test_a_name_that_the_table_contradicts_is_reported(read: Any) -> None:
    report = read("nccl-tests", "nccl_reduce_scatter_mid.txt", op="all_reduce").report
    assert "collective contradicted" in report.files[0].notes
    assert "bus factor" in report.files[0].notes


def test_a_rate_that_contradicts_its_time_is_flagged_and_left_out(read_text: Any, fixture_file: Any) -> None:
    text = fixture_file("nccl_new.txt").read_text()
    line = next(at for at, row in enumerate(text.splitlines()) if row.lstrip().startswith("67108864"))
    lines = text.splitlines()
    cells = lines[line].split()
    lines[line] = lines[line].replace(cells[5], f"{float(cells[5]) / 10:.2f}", 1)
    result = read_text("nccl-tests", "\n".join(lines))
    row = one(result.table, message_bytes=2**26, placement="out-of-place")
    assert row["flags"] == "excluded+inconsistent"
    assert result.report.files[0].notes["rate and time disagree"]["count"] == 1


def test_wrong_results_and_zero_sizes_are_left_out_by_rule(read_text: Any, fixture_file: Any) -> None:
    lines = fixture_file("nccl_new.txt").read_text().splitlines()
    at = next(i for i, row in enumerate(lines) if row.lstrip().startswith("1048576"))
    cells = lines[at].split()
    cells[8] = "17"
    lines[at] = "  ".join(cells)
    lines.insert(at, "0 0 float sum -1 8.50 0.00 0.00 0 8.25 0.00 0.00 0")
    result = read_text("nccl-tests", "\n".join(lines))
    flags = result.table["flags"].tolist()
    assert flags[:4] == ["excluded+zero-size", "excluded+zero-size", "excluded+wrong-results", None]
    assert {rule["flag"] for rule in result.report.quality.rules} == {"zero-size", "wrong-results"}
    record = next(iter(provenance_of(result.table).values()))
    assert {rule["flag"]: rule["rows"] for rule in record["rules"]} == {"zero-size": 2, "wrong-results": 1}


def test_launch_times_are_not_taken_for_times(read_text: Any, fixture_file: Any) -> None:
    text = fixture_file("nccl_new.txt").read_text().replace("    time   algbw", " cputime   algbw")
    table = read_text("nccl-tests", text).table
    row = one(table, message_bytes=2**26, placement="out-of-place")
    assert row["time_source"] == "rate"
    assert row["time_s"] == pytest.approx(2**26 / row["algbw_bytes_per_s"])
    assert row["launch_s"] == pytest.approx(477.89e-6)


def test_torn_lines_are_tallied(read_text: Any, fixture_file: Any) -> None:
    text = fixture_file("nccl_new.txt").read_text()
    torn = text[: text.index("# Out of bounds") - 40]
    report = read_text("nccl-tests", torn).report
    assert report.rows == 6
    assert report.files[0].skipped["unreadable row"]["count"] == 1


def test_what_was_looked_for_is_named(read_text: Any) -> None:
    with pytest.raises(UnsupportedFileError, match=r"size  count  type"):
        read_text("nccl-tests", "hello\n")


def test_per_iteration_columns(read_text: Any) -> None:
    text = (
        "# nThread 1 nGpus 2 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 1 iters: 16 agg iters: 1 validation: 1"
        "\n"
        "#  Rank  0 Group  0 Pid 1 on h device  0 [0000:01:00] NVIDIA T4\n"
        "#  Rank  1 Group  0 Pid 1 on h device  1 [0000:02:00] NVIDIA T4\n"
        "# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv%"
        " time algbw busbw #wrong i_min i_max i_p99 i_cv%\n"
        "1000000 250000 float sum -1 100.00 10.00 10.00 0 90.00 120.00 118.00 4.00"
        " 200.00 5.00 5.00 0 190.00 220.00 218.00 2.00\n"
    )
    table = read_text("nccl-tests", text, "all_reduce.txt").table
    assert table["time_s"].tolist() == pytest.approx([100e-6, 200e-6])
    assert table["time_min_s"].tolist() == pytest.approx([90e-6, 190e-6])
    assert table["time_se_s"].tolist() == pytest.approx([1e-6, 1e-6])


def test_bus_factors_are_those_of_nccl_tests() -> None:
    assert bus_factor("all_reduce", 8) == 1.75
    assert bus_factor("all_gather", 8) == bus_factor("reduce_scatter", 8) == bus_factor("all_to_all", 8) == 0.875
    assert bus_factor("broadcast", 8) == bus_factor("send_recv", 8) == 1


def test_samples(sample: Any) -> None:
    from bayesperf.formats import import_files

    files: list[Path] = [sample(f"nccl-tests/nccl_{name}.txt") for name in ("allreduce", "allgather", "broadcast")]
    result = import_files("nccl-tests", files, campaign="one evening")
    table = result.table
    assert table.groupby("op").size().to_dict() == {"all_reduce": 68, "all_gather": 68, "broadcast": 68}
    assert set(table["campaign"]) == {"one evening"}
    row = one(table, op="all_reduce", message_bytes=8589934592, placement="out-of-place")
    assert row["time_s"] == pytest.approx(63896e-6)
    assert row["algbw_bytes_per_s"] == pytest.approx(134.44e9)
    assert row["busbw_bytes_per_s"] == pytest.approx(235.26e9)
    assert row["n_devices"] == 8
    row = one(table, op="all_gather", message_bytes=8589934592, placement="in-place")
    assert row["time_s"] == pytest.approx(32669e-6)
    row = one(table, op="broadcast", message_bytes=4, placement="in-place")
    assert row["time_s"] == pytest.approx(33.80e-6)
    assert row["root"] == 0
    assert not table["flags"].fillna("").str.contains("inconsistent").any()


def test_the_tests_of_nccl_1_print_milliseconds(read_text: Any) -> None:
    text = (
        "# Using devices\n#   Rank  0 uses device  0 [0x0a] GeForce GTX TITAN X\n"
        "#                                                 out-of-place                    in-place\n"
        "#      bytes             N    type      op     time  algbw  busbw      res     time  algbw  busbw      res\n"
        "    10000000      10000000    char     sum    1.628   6.14  10.75    0e+00    1.932   5.18   9.06    0e+00\n"
    )
    table = read_text("nccl-tests", text, "all_reduce.txt", n_devices=8).table
    assert table["time_s"].tolist() == pytest.approx([1.628e-3, 1.932e-3])
    assert set(table["op"]) == {"all_reduce"}
    assert "flags" not in table or table["flags"].isna().all()

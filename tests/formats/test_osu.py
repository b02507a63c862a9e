from __future__ import annotations

from typing import Any

import pytest

from bayesperf.errors import UnsupportedFileError
from bayesperf.formats import import_files


def test_every_kind_of_test(read: Any) -> None:
    result = read("osu", "osu_many.txt")
    table = result.table
    assert table.groupby("op").size().to_dict() == {
        "send_recv": 3,
        "send_recv_window": 2,
        "all_gather": 2,
        "barrier": 1,
        "send_recv_bidirectional": 2,
        "send_recv_multi": 1,
        "all_to_all_nonblocking": 1,
    }
    window = table[(table["op"] == "send_recv_window") & (table["message_bytes"] == 2**20)].iloc[0]
    assert window["time_s"] == pytest.approx(2**20 / 12000e6)
    assert window["time_source"] == "rate"
    gathered = table[(table["op"] == "all_gather") & (table["message_bytes"] == 1024)].iloc[0]
    assert gathered["time_s"] == pytest.approx(11.5e-6)
    assert gathered["time_min_s"] == pytest.approx(10.25e-6)
    assert gathered["dtype"] == "int8"
    assert gathered["library"] == "MPI-CUDA"
    assert table[table["op"] == "barrier"].iloc[0]["time_s"] == pytest.approx(3.5e-6)
    assert table[table["op"] == "all_to_all_nonblocking"].iloc[0]["time_s"] == pytest.approx(5.18e-6)
    multi = table[table["op"] == "send_recv_multi"].iloc[0]
    assert (multi["pairs"], multi["window"]) == (15, 64)
    failed = table[table["flags"] == "excluded+wrong-results"]
    assert failed["message_bytes"].tolist() == [131072]
    assert "ranks unknown" in result.report.files[0].notes


def test_ranks_make_the_message_the_larger_buffer(read: Any) -> None:
    table = read("osu", "osu_many.txt", n_devices=16).table
    gathered = table[table["op"] == "all_gather"].iloc[1]
    assert gathered["message_bytes"] == 1024 * 16
    assert gathered["n_devices"] == 16


def test_another_statistic(read_text: Any) -> None:
    text = (
        "# OSU MPI Broadcast Latency Test v7.0\n# Size  Avg Latency(us)  Min Latency(us)  Max Latency(us)  Iterations\n"
    )
    table = read_text("osu", text + "1 86.56 21.32 126.27 1000\n", statistic="max").table
    assert table["time_s"].tolist() == [pytest.approx(126.27e-6)]
    assert table["repetitions"].tolist() == [1000]


def test_columns_that_are_not_known_are_not_guessed(read_text: Any) -> None:
    text = "# OSU MPI Latency Test v9.0\n# Size  Latency (fortnights)\n1 2.0\n"
    with pytest.raises(UnsupportedFileError, match="Avg Latency"):
        read_text("osu", text)


def test_sample(sample: Any) -> None:
    result = import_files("osu", [sample("osu/allreduce.txt")], n_devices=64, target="cluster")
    table = result.table
    assert len(table) == 19
    assert set(table["op"]) == {"all_reduce"}
    assert table["time_s"].iloc[0] == pytest.approx(1843.35e-6)
    assert table["message_bytes"].iloc[-1] == 1048576
    assert table["time_s"].iloc[-1] == pytest.approx(7660.03e-6)
    assert result.report.files[0].tool_version == "5.8"


@pytest.mark.parametrize(
    ("title", "op"),
    [
        ("MPI_Put Latency", "put"),
        ("MPI_Get_accumulate latency", "get_accumulate"),
        ("MPI_Put Bandwidth", "put_window"),
        ("MPI_Put Bi-directional Bandwidth", "put_bidirectional"),
        ("MPI Reduce_scatter Latency", "reduce_scatter"),
        ("MPI-ROCM Non-blocking Allreduce Latency", "all_reduce_nonblocking"),
        ("MPI Multi Latency", "send_recv_multi_latency"),
        ("MPI Congestion Bandwidth", "congestion_bandwidth"),
    ],
)
def test_titles(read_text: Any, title: str, op: str) -> None:
    unit = "Bandwidth (MB/s)" if "andwidth" in title else "Avg Latency(us)"
    table = read_text("osu", f"# OSU {title} Test v7.0\n# Size  {unit}\n8 2.00\n", n_devices=4).table
    assert table["op"].tolist() == [op]

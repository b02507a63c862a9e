from __future__ import annotations

import json
from typing import Any

import pytest

from bayesperf.formats import import_files
from bayesperf.store import provenance_of

GIB_HALF = 512 * 2**20


def test_text_of_current_releases(read: Any) -> None:
    result = read("nvbandwidth", "nvbandwidth_new.txt")
    table, notes = result.table, result.report.files[0].notes
    assert table.groupby("op").size().to_dict() == {
        "copy_h2d": 4,
        "copy_p2p": 6,
        "copy_d2h": 2,
        "copy_d2d": 2,
        "pointer_chase_host": 2,
    }
    h2d = table[table["testcase"] == "host_to_device_memcpy_ce"].iloc[1]
    assert h2d["rate_bytes_per_s"] == 55.25e9
    assert h2d["time_s"] == pytest.approx(GIB_HALF / 55.25e9)
    assert h2d["time_source"] == "rate"
    assert h2d["stack"] == "cuda-12080-driver-570.124.06"
    both = table[table["testcase"] == "host_to_device_bidirectional_memcpy_ce"]
    assert set(both["corunners"]) == {"copy_d2h:1"}
    chase = table[table["op"] == "pointer_chase_host"].iloc[0]
    assert chase["time_s"] == pytest.approx(772.5e-9)
    assert chase["time_source"] == "time"
    local = table[table["op"] == "copy_d2d"].iloc[0]
    # One copy inside a device reads and writes its memory.
    assert local["bytes"] / local["time_s"] == pytest.approx(2 * 1519e9)
    assert "buffer size" in notes
    assert notes["sum disagrees"]["count"] == 1
    assert set(table.loc[table["testcase"] == "all_to_host_memcpy_ce", "flags"]) == {"sum-disagrees"}
    skipped = result.report.files[0].skipped
    assert {reason: entry["count"] for reason, entry in skipped.items()} == {
        "not measured": 6,
        "sum of two": 1,
        "waived": 1,
    }
    assert "cut off" not in notes


def test_all_to_host_runs_beside_the_other_devices(read: Any) -> None:
    table = read("nvbandwidth", "nvbandwidth_new.txt").table
    assert set(table.loc[table["op"] == "copy_d2h", "corunners"]) == {"copy_d2h:1"}


def test_old_releases_default_to_64_mib_and_a_zero_diagonal(read: Any) -> None:
    table = read("nvbandwidth", "nvbandwidth_old.txt").table
    assert len(table) == 2
    assert table["time_s"].iloc[0] == pytest.approx(64 * 2**20 / 276.07e9)
    assert table["n_devices"].tolist() == [2, 2]


def test_the_buffer_size_can_be_given(read: Any) -> None:
    result = read("nvbandwidth", "nvbandwidth_old.txt", buffer_bytes=2**20)
    assert set(result.table["bytes"]) == {2**20}
    assert "buffer size" not in result.report.files[0].notes


def test_json(read: Any) -> None:
    result = read("nvbandwidth", "nvbandwidth.json")
    table = result.table
    assert len(table) == 2
    assert table["time_s"].iloc[0] == pytest.approx(GIB_HALF / 55.6235e9)
    assert table["target"].iloc[0] == "nvidia-h200"
    assert result.report.files[0].skipped["waived"]["count"] == 1
    assert result.report.files[0].skipped["error"]["count"] == 1
    assert "secret-host" not in json.dumps(provenance_of(table)) + table.to_csv()


def test_sample(sample: Any) -> None:
    result = import_files("nvbandwidth", [sample("nvbandwidth/text_v0.6_gh200.txt")])
    table = result.table
    assert len(table) == 21
    assert set(table["device"]) == {"nvidia-gh200-480gb"}
    first = table.iloc[0]
    assert first["rate_bytes_per_s"] == 369.36e9
    assert first["time_s"] == pytest.approx(GIB_HALF / 369.36e9)
    assert table.iloc[-1]["op"] == "pointer_chase_host"
    assert table.iloc[-1]["time_s"] == pytest.approx(772.58e-9)
    assert result.report.files[0].skipped["waived"]["count"] == 17
    assert result.report.files[0].tool_version == "0.6"


def test_several_nodes(read_text: Any) -> None:
    text = (
        "[node0:00025] MCW rank 6 bound to socket 0[core 2[hwt 0]]: [././B/.][./././.]\n"
        "nvbandwidth Version: v0.7\nMPI version: Open MPI v4.1.4\nDriver Version: 570.124.06\n\n"
        "Process 0 (node-with-a-name-0): device 0: HGX GB200 (00000008:01:00)\n"
        "Process 1 (node-with-a-name-1): device 0: HGX GB200 (00000008:01:00)\n\n"
        "Running multinode_device_to_device_memcpy_read_ce.\n"
        "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n           0         1\n"
        "[node0:00025] some warning\n 0       N/A    822.16\n 1    822.18       N/A\n\n"
        "SUM multinode_device_to_device_memcpy_read_ce 1644.34\n"
    )
    result = read_text("nvbandwidth", text)
    assert result.table["rate_bytes_per_s"].tolist() == [822.16e9, 822.18e9]
    assert set(result.table["target"]) == {"hgx-gb200-x2"}
    assert "node-with-a-name" not in json.dumps(provenance_of(result.table)) + result.table.to_csv()
    assert set(result.report.files[0].skipped) == {"not measured"}
    assert "sum disagrees" not in result.report.files[0].notes

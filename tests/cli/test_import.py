"""``bayesperf import``: what it prints, writes and refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bayesperf.store import read_measurements

Cli = Callable[..., Any]
FIXTURES = Path(__file__).parents[1] / "formats" / "fixtures"


def test_a_table_is_written_and_told_about(cli: Cli, tmp_path: Path) -> None:
    result = cli("import", "stream", FIXTURES / "stream_two_runs.txt", "--target", "t", "--out", "x.parquet")
    assert result.code == 0
    assert "stream_two_runs.txt: 8 rows (STREAM (McCalpin) 5.10)" in result.out
    assert "rule: wrong-results: 4 rows left out of fits" in result.out
    assert result.out.endswith("x.parquet: 8 rows of 1 target(s) (4 left out of fits)\n")
    assert set(read_measurements(tmp_path / "x.parquet")["target"]) == {"t"}


def test_several_files_recognised_by_themselves(cli: Cli, tmp_path: Path) -> None:
    files = [FIXTURES / "nccl_new.txt", FIXTURES / "nvbandwidth_new.txt"]
    result = cli("import", "auto", *files, "--campaign", "monday", "--out", "x.parquet", "--json")
    assert result.code == 0
    document = json.loads(result.out)
    assert document["rows"] == 24
    assert [file["format"] for file in document["files"]] == ["nccl-tests", "nvbandwidth"]
    assert set(read_measurements(tmp_path / "x.parquet")["campaign"]) == {"monday"}


def test_the_shipped_spec_sheets_give_the_ceilings(cli: Cli) -> None:
    result = cli("import", "stream", FIXTURES / "stream_old.txt", "--device", "nvidia-h200", "--out", "x.parquet")
    assert result.code == 0
    assert "no spec sheet" not in result.out


def test_a_mapping(cli: Cli) -> None:
    arguments = ("import", "generic", FIXTURES / "generic.csv", "--out", "x.parquet")
    assert cli(*arguments, "--mapping", FIXTURES / "generic.toml").code == 0
    refused = cli(*arguments)
    assert refused.code == 2
    assert "mapping" in refused.err


def test_refusals_leave_nothing_behind(cli: Cli, tmp_path: Path) -> None:
    for arguments, message in (
        (("nccl", FIXTURES / "nccl_new.txt"), "nccl-tests"),
        (("stream", FIXTURES / "nccl_new.txt"), "looked for"),
        (("stream", "absent.txt"), "no such file"),
    ):
        result = cli("import", *arguments, "--out", "x.parquet")
        assert result.code == 2
        assert message in result.err
        assert "Traceback" not in result.err
    assert not list(tmp_path.glob("*.parquet*"))

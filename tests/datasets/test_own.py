"""Our own measurements, from a folder made up by the test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import bayesperf as bp
from bayesperf.datasets.own import data as own
from bayesperf.errors import InputError
from bayesperf.store import provenance_of, with_provenance, write_failures, write_measurements


def test_files_are_joined_with_their_provenance(
    make_table: Callable[..., pd.DataFrame], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = {"kind": "run", "cpu": "some"}
    cpu = with_provenance(make_table(2, target="cpu", provenance_id="p1"), {"p1": record})
    write_measurements(cpu, tmp_path / "cpu.parquet")
    write_measurements(make_table(3, target="gpu"), tmp_path / "gpu.parquet")
    write_failures(pd.DataFrame({"reason": ["timeout"]}), tmp_path / "gpu.failures.parquet")
    monkeypatch.setattr(own, "_folder", lambda: tmp_path)
    assert list(own.measurement_files()) == ["cpu", "gpu"]
    assert bp.datasets.load("own")["target"].tolist() == ["cpu"] * 2 + ["gpu"] * 3
    only = bp.datasets.load("own", names="cpu")
    assert set(only["target"]) == {"cpu"}
    assert provenance_of(only)[only["provenance_id"].iloc[0]] == record
    with pytest.raises(InputError, match="names: 'tpu' is not among: cpu, gpu"):
        bp.datasets.load("own", names="tpu")


def test_what_is_shipped_is_loaded() -> None:
    table = bp.datasets.load("own", names="xeon-2-core-2026-11-30-quick")
    assert len(table) == 330
    assert set(table["target"]) == {"intel-xeon-processor-2-core-x1", "intel-xeon-processor-2-core-x2"}
    assert table["samples_s"].notna().all()
    assert set(provenance_of(table)) >= set(table["provenance_id"])

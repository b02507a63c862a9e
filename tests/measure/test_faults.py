"""What a run must survive, with real workers: memory, dtypes, disks, kills at any moment, and guests in hiding."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayesperf.errors import InputError
from bayesperf.measure.journal import journal_path
from bayesperf.measure.run import failures_path, measure, repeat
from bayesperf.schema import has_flag

MakeSuite = Callable[..., Path]


def done(out: Path) -> dict[str, Any]:
    """Entries of the journal's measured points, by id; a last line cut short is left out."""
    path = journal_path(out)
    lines = path.read_bytes().split(b"\n")[1:-1] if path.exists() else []
    return {e["point"]: e for e in map(json.loads, lines) if e["type"] == "done"}


def test_memory_and_dtypes_are_typed_failures_with_their_identity(fault_suite: MakeSuite, tmp_path: Path) -> None:
    out = tmp_path / "m.parquet"
    table = measure(fault_suite("huge", "memory", "dtype", "fine"), out=out, seed=0, progress=False, campaign="c")
    assert list(table["op"]) == ["fine"]
    failures = pd.read_parquet(failures_path(out)).set_index("op")
    assert failures["reason"].to_dict() == {"huge": "too-large", "memory": "out-of-memory", "dtype": "unsupported"}
    assert "no such type" in failures["detail"]["dtype"]
    assert (failures["campaign"] == "c").all()
    assert (failures["target"] == table["target"].iloc[0]).all()


def test_full_disk_ends_the_run_and_room_lets_it_go_on(
    fault_suite: MakeSuite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, suite = tmp_path / "m.parquet", fault_suite("fine", n=6)
    real, calls = os.fsync, 0

    def full(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls > 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(InputError, match="make room"):
            measure(suite, out=out, seed=5, progress=False)
    kept = done(out)
    assert 1 <= len(kept) < 6
    table = measure(suite, out=out, progress=False).set_index("point_id")
    assert len(table) == 6
    for identity, entry in kept.items():
        assert table.loc[identity, "time_s"] == entry["record"]["slope_s"], "a point was measured twice"


def test_full_disk_at_the_very_end_keeps_the_journal(
    fault_suite: MakeSuite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, suite = tmp_path / "m.parquet", fault_suite("fine", n=2)

    def full(table: Any, where: Any, **options: Any) -> None:
        Path(where).write_bytes(b"PAR1")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("pyarrow.parquet.write_table", full)
        with pytest.raises(InputError, match=r"No space left.*nothing is measured again"):
            measure(suite, out=out, seed=5, progress=False)
    assert not out.exists()
    assert [path for path in tmp_path.iterdir() if path.suffix == ".parquet"] == []
    kept = done(out)
    assert len(kept) == 2
    began = time.monotonic()
    table = measure(suite, out=out, progress=False)
    assert time.monotonic() - began < 2.0
    assert sorted(table["time_s"]) == sorted(e["record"]["slope_s"] for e in kept.values())


RUN = """
import sys
from bayesperf.measure.run import measure
measure(sys.argv[1], out=sys.argv[2], seed=5, progress=False)
"""


def test_kill_at_any_moment_loses_at_most_the_point_in_flight(fault_suite: MakeSuite, tmp_path: Path) -> None:
    out, suite = tmp_path / "m.parquet", fault_suite("slow", n=6)
    rng = np.random.default_rng(1)
    kept: dict[str, Any] = {}
    for _ in range(4):
        process = subprocess.Popen([sys.executable, "-c", RUN, str(suite), str(out)], stderr=subprocess.DEVNULL)
        # Anywhere: while it starts, in mid-point, while it writes.
        with_luck = rng.uniform(1.0, 6.0)
        deadline = time.monotonic() + with_luck
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        process.kill()
        process.wait()
        if out.exists():
            break
        now = done(out)
        assert kept.items() <= now.items(), "what had been measured was lost"
        kept = now
    table = measure(suite, out=out, progress=False)
    assert len(table) == 6
    assert table["point_id"].is_unique
    times = dict(zip(table["point_id"], table["time_s"], strict=True))
    assert all(times[identity] == entry["record"]["slope_s"] for identity, entry in kept.items())
    assert not journal_path(out).exists()


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="the system does not tell")
def test_a_victim_with_a_hidden_co_runner_is_flagged(fault_suite: MakeSuite) -> None:
    burn = "import time\nend = time.time() + 60\nwhile time.time() < end: pass"
    burners = [subprocess.Popen([sys.executable, "-c", burn]) for _ in range(os.cpu_count() or 1)]
    try:
        table = measure(fault_suite("fine", n=3), seed=0, progress=False)
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    assert has_flag(table, "disturbed").all()
    assert (table["others_share"] > 0.05).all()


@pytest.mark.slow
def test_repeat_of_a_contention_plan_has_the_same_points(fault_suite: MakeSuite, tmp_path: Path) -> None:
    suite = fault_suite("fine", aggressors=["slow"], mode=["threads"])
    first = measure(suite, out=tmp_path / "a.parquet", seed=7, progress=False)
    second = repeat(tmp_path / "a.parquet", out=tmp_path / "b.parquet", campaign="b", progress=False)
    assert list(second["point_id"]) == list(first["point_id"])
    assert second["corunners"].fillna("").tolist() == first["corunners"].fillna("").tolist()

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cli = Callable[..., Any]


def test_unknown_suites_list_what_exists_nearest_first(cli: Cli) -> None:
    result = cli("measure", "--suite", "quik", "--out", "x.parquet")
    assert result.code == 2
    assert "quik" in result.err
    assert result.err.index("quick") < result.err.index("tiny")


def test_ctrl_c_keeps_what_was_measured(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bayesperf", "measure", "--suite", "tiny", "--out", "host.parquet"]
    running = subprocess.Popen(
        command, cwd=tmp_path, env={**os.environ}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip

    def points() -> int:
        return sum(path.read_text().count('"done"') for path in tmp_path.glob("*.jsonl"))

    deadline = time.monotonic() + 120
    while points() < 2 and time.monotonic() < deadline and running.poll() is None:
        time.sleep(0.1)
    # As a terminal does: to the whole group, workers included.
    os.killpg(running.pid, signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert "Traceback" not in err
    assert err.splitlines()[-1] == "interrupted"
    assert points() >= 2
    assert not (tmp_path / "host.parquet").exists()


def test_a_dry_run_warns_of_points_that_memory_does_not_hold(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {"platform": "cpu", "device_kind": "cpu", "local_devices": 1, "jax": "0", "jaxlib": "0"}
    monkeypatch.setattr("bayesperf.measure.run.describe", lambda: facts)
    monkeypatch.setattr("bayesperf.measure.run.memory_limit_bytes", lambda: 64 * 2.0**20)
    result = cli("measure", "--suite", "tiny", "--dry-run")
    assert result.code == 0
    assert "would fail as too-large" in result.err
    assert "the suite allows 26 MiB, 40% of the memory at hand; choose smaller sizes" in result.err
    plan = json.loads(cli("measure", "--suite", "tiny", "--dry-run", "--json").out)["plan"]
    assert {point["too_large"] for point in plan} == {True, False}
    assert all(point["too_large"] == (point["memory_bytes"] > 0.4 * 64 * 2**20) for point in plan)
    monkeypatch.setattr("bayesperf.measure.run.memory_limit_bytes", lambda: 2.0**50)
    assert cli("measure", "--suite", "tiny", "--dry-run").err == ""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

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

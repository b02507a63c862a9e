"""The repeatability benchmark on made-up runs: agreeing ones pass, moved ones do not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesperf as bp

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "repeatability.py"


def table(seed: int, campaign: str, moved: float = 0.0, processes: int = 3) -> pd.DataFrame:
    """Forty configurations with 5 % between processes and 1 % within."""
    rng = np.random.default_rng(seed)
    rows = []
    for k in range(40):
        for process in range(processes):
            time = 1e-4 * (k + 1) * np.exp(moved + 0.05 * rng.standard_normal() + 0.01 * rng.standard_normal())
            rows.append(
                {
                    "target": "t", "op": "matmul", "probe": "matmul", "dtype": "float32", "flops": 1e6 * (k + 1),
                    "bytes": 1.0, "time_s": time, "time_se_s": 0.01 * time, "campaign": campaign,
                    "process": f"all-{process}",
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


def compare(folder: Path, first: pd.DataFrame, second: pd.DataFrame) -> subprocess.CompletedProcess[str]:
    paths = [folder / "a.parquet", folder / "b.parquet"]
    for path, each in zip(paths, (first, second), strict=True):
        bp.write_measurements(each, path)
    command = [sys.executable, "-W", "error", str(BENCHMARK), "--tables", *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_runs_that_agree_pass(tmp_path: Path) -> None:
    done = compare(tmp_path, table(1, "a"), table(2, "b"))
    assert done.returncode == 0, done.stderr
    assert "of 40 points agree" in done.stdout


@pytest.mark.parametrize("moved", [0.3, -0.3])
def test_a_machine_that_moved_is_found(moved: float, tmp_path: Path) -> None:
    done = compare(tmp_path, table(1, "a"), table(2, "b", moved))
    assert done.returncode == 1, done.stdout
    assert "90% are wanted" in done.stdout


def test_one_process_is_not_enough(tmp_path: Path) -> None:
    done = compare(tmp_path, table(1, "a", processes=1), table(2, "b"))
    assert done.returncode == 1
    assert "one process only" in done.stderr

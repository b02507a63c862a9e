"""The parts of variance on the command line: shown where there is something to tell, unknown where not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayesperf as bp

Cli = Callable[..., Any]


def campaign(folder: Path, name: str, moved: float) -> Path:
    """Ten configurations in three processes, in one campaign."""
    rng = np.random.default_rng(len(name))
    rows = [
        {
            "target": "t", "op": "matmul", "probe": "matmul", "flops": 1e6 * (k + 1), "bytes": 1.0,
            "time_s": 1e-4 * (k + 1) * np.exp(moved + 0.03 * rng.standard_normal()), "time_se_s": 1e-7 * (k + 1),
            "campaign": name, "process": f"all-{process}",
        }
        for k in range(10)
        for process in range(3)
    ]  # fmt: skip
    path = folder / f"{name}.parquet"
    bp.write_measurements(pd.DataFrame(rows), path)
    return path


def test_merging_campaigns_shows_what_they_differ_by(cli: Cli, tmp_path: Path) -> None:
    files = [campaign(tmp_path, "monday", 0.0), campaign(tmp_path, "friday+", 0.2)]
    shown = cli("merge", *files, "--out", tmp_path / "both.parquet")
    assert shown.code == 0
    assert "between campaigns" in shown.out
    (part,) = json.loads(cli("merge", *files, "--out", tmp_path / "both.parquet", "--json").out)["variance"]
    assert part["campaign"] == pytest.approx(0.2 / np.sqrt(2), rel=0.2)
    assert part["process"] == pytest.approx(0.03, rel=0.4)
    assert part["campaign_lower"] < part["campaign"] < part["campaign_upper"]


def test_one_campaign_says_nothing_of_campaigns(cli: Cli, tmp_path: Path) -> None:
    file = campaign(tmp_path, "monday", 0.0)
    shown = cli("merge", file, "--out", tmp_path / "m.parquet")
    assert "between campaigns" not in shown.out
    (part,) = json.loads(cli("merge", file, "--out", tmp_path / "m.parquet", "--json").out)["variance"]
    assert part["campaign"] is None

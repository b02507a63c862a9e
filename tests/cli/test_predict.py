"""What `predict` refuses before it loads a profile, and the columns that it adds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bayesperf.cli.predict import ADDED
from tests.known import known_profile

Cli = Callable[..., Any]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with workloads, and a file in the place of a profile."""
    (tmp_path / "p.nc").touch()
    (tmp_path / "w.csv").write_text("op,flops,bytes\nmatmul,1e9,1e6\n")
    return tmp_path


def test_no_folder_is_made_for_the_output(cli: Cli, here: Path) -> None:
    result = cli("predict", "p.nc", "w.csv", "--out", "typo/x.csv")
    assert result.code == 2
    assert "there is no folder typo; make it, or correct the path" in result.err
    assert not (here / "typo").exists()


def test_columns_of_the_user_are_not_replaced(cli: Cli, here: Path) -> None:
    (here / "w.csv").write_text("op,flops,bytes,median_s,supported,mine\nmatmul,1e9,1e6,1,yes,2\n")
    result = cli("predict", "p.nc", "w.csv", "--out", "x.csv")
    assert result.code == 2
    assert "w.csv: its columns median_s, supported would be replaced" in result.err
    assert "rename or drop them" in result.err


def test_the_columns_named_are_those_that_a_prediction_adds() -> None:
    workload = {"op": "matmul", "flops": 1e9, "bytes": 1e6}
    frame = known_profile().predict(workload, draws=10).to_frame()
    assert tuple(name for name in frame if name not in (*workload, "target")) == ADDED

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import bayesperf as bp

Cli = Callable[..., Any]
MakeTable = Callable[..., pd.DataFrame]


@pytest.fixture
def two(make_table: MakeTable, tmp_path: Path) -> tuple[Path, Path]:
    """Two files of different days; one of them CSV."""
    bp.write_measurements(make_table(campaign="mon"), tmp_path / "mon.parquet")
    make_table(campaign="tue", note="x").to_csv(tmp_path / "tue.csv", index=False)
    return tmp_path / "mon.parquet", tmp_path / "tue.csv"


def test_tables_are_joined(cli: Cli, two: tuple[Path, Path], tmp_path: Path) -> None:
    result = cli("merge", *two, "--out", tmp_path / "both.parquet")
    assert result.code == 0
    assert "6 rows of 1 target(s)" in result.out
    joined = bp.read_measurements(tmp_path / "both.parquet")
    assert joined["campaign"].tolist() == ["mon"] * 3 + ["tue"] * 3


def test_a_shared_row_is_said_to_be_kept_once(cli: Cli, two: tuple[Path, Path], tmp_path: Path) -> None:
    result = cli("merge", two[0], two[0], "--out", tmp_path / "both.parquet", "--json")
    document = json.loads(result.out)
    parts = document.pop("variance")
    assert document == {"out": str(tmp_path / "both.parquet"), "rows": 3, "given": 6, "targets": ["a"]}
    assert [part["target"] for part in parts] == ["a"]
    assert "3 that several files share" in cli("merge", two[0], two[0], "--out", tmp_path / "b.parquet").out


def test_quiet_says_nothing(cli: Cli, two: tuple[Path, Path], tmp_path: Path) -> None:
    result = cli("merge", *two, "--out", tmp_path / "both.parquet", "--quiet")
    assert (result.code, result.out, result.err) == (0, "", "")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("target,op,flops,bytes,time_s\na,m,1,1,-1\n", "row 2, column time_s: -1 is not greater than 0 s"),
        ("target,op,flops,bytes,time_s\na,m,1,1,\n", "row 2, column time_s: the value is missing (NaN)"),
        ("target,op,flops,bytes\na,m,1,1\n", "required column(s) missing: time_s"),
        ("target,op,flops,bytes,time_s,measurement_id\na,m,1,1,1,x\na,m,1,1,1,x\n", "'x' is given twice"),
        ("PAR1 but not really", "damaged"),
        ("", "cannot be read as CSV"),
    ],
)
def test_bad_input_is_one_line_that_names_the_place(
    cli: Cli, two: tuple[Path, Path], tmp_path: Path, content: str, problem: str
) -> None:
    (tmp_path / "bad.csv").write_text(content)
    result = cli("merge", two[0], tmp_path / "bad.csv", "--out", tmp_path / "both.parquet")
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert "bad.csv" in result.err
    assert problem in result.err
    assert not (tmp_path / "both.parquet").exists()


def test_the_output_may_not_be_csv(cli: Cli, two: tuple[Path, Path], tmp_path: Path) -> None:
    result = cli("merge", *two, "--out", tmp_path / "both.csv")
    assert result.code == 2
    assert "*.parquet" in result.err


def test_an_input_may_be_the_output(cli: Cli, two: tuple[Path, Path]) -> None:
    assert cli("merge", *two, "--out", two[0]).code == 0
    assert len(bp.read_measurements(two[0])) == 6

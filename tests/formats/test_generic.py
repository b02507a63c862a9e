from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayesperf.errors import InputError, TableError, UnsupportedFileError
from bayesperf.formats import import_files
from bayesperf.formats.formula import evaluate


def test_a_table_described_by_a_mapping(read: Any) -> None:
    result = read("generic", "generic.csv", mapping="generic.toml")
    table = result.table
    assert len(table) == 2
    assert table["time_s"].tolist() == [0.25e-3, 0.5e-3]
    assert table["flops"].tolist() == [2 * 1024 * 512 * 256, 2 * 2048 * 512 * 256]
    assert table["bytes"].iloc[0] == 2 * (1024 * 256 + 256 * 512 + 1024 * 512)
    assert table["node"].tolist() == ["n1", "n2"]
    assert table["dtype"].tolist() == ["float16", "float16"]
    assert result.report.files[0].skipped["no time"]["count"] == 1


def test_time_from_a_rate(read: Any) -> None:
    table = read("generic", "generic.csv", mapping="generic_rate.toml").table
    assert table["time_s"].tolist() == pytest.approx([1 / 120.5, 1 / 3])
    assert table["target"].tolist() == ["n1", "n2"]


def write(tmp_path: Path, mapping: str, content: str = "a,b\n1,2\n") -> Any:
    (tmp_path / "t.csv").write_text(content)
    (tmp_path / "m.toml").write_text(mapping)
    return import_files("generic", [tmp_path / "t.csv"], mapping=tmp_path / "m.toml")


HEAD = '[constants]\nop = "x"\nflops = 1\nbytes = 1\n[columns]\n'


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ("", "columns"),
        ("[columns]\n[colums]\n", "unknown section"),
        ("not toml", "not a TOML"),
        (HEAD + "time_s = 'c'", "no column 'c'; it has: a, b"),
        (HEAD + "time_s = { column = 'a', unit = 'lightyears' }", "time unit"),
        (HEAD + "time_s = { unit = 's' }", "either column or formula"),
        (HEAD + "time_s = { column = 'a', scale = 2 }", "unknown key 'scale'"),
        ("[columns]\ntime_s = 'a'", "no entry for op, flops, bytes"),
        (HEAD + "time_s = { column = 'a', of = 'bytes' }", "its unit is needed"),
        (HEAD + "time_s = { column = 'a', unit = 'GB/s', of = 'nothing' }", "no entry for 'nothing'"),
        (HEAD + "time_s = { formula = '__import__(\"os\")' }", "only arithmetic"),
        (HEAD + "time_s = { formula = 'x.y' }", "only arithmetic"),
        (HEAD + "time_s = { formula = '2 **' }", "not a formula"),
        (HEAD + "time_s = { formula = '9 ** 99' }", "exponent above"),
        (HEAD + "time_s = { formula = 'q + 1' }", "no numeric column 'q'"),
    ],
)
def test_a_mapping_that_does_not_fit_says_why(tmp_path: Path, mapping: str, message: str) -> None:
    with pytest.raises(InputError, match=message.replace("**", r"\*\*").replace("(", r"\(")):
        write(tmp_path, mapping)


def test_cells_that_are_no_numbers_are_named_by_row_and_column(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"row 3, column a.*comma"):
        write(tmp_path, '[table]\nseparator = ";"\n' + HEAD + "time_s = 'a'", "a;b\n1;2\n0,5;2\n")
    with pytest.raises(TableError, match=r"row 3.*3 cells under 2 columns"):
        write(tmp_path, HEAD + "time_s = 'a'", "a,b\n1,2\n0,5,2\n")
    with pytest.raises(TableError, match=r"row 4, column time_s"):
        write(tmp_path, HEAD + "time_s = 'a'", "a,b\n1,2\n,2\n-1,2\n")


def test_parquet(tmp_path: Path) -> None:
    frame = pd.DataFrame({"us": [10.0, np.nan, 30.0], "size": [1, 2, 3]})
    frame.to_parquet(tmp_path / "t.parquet")
    (tmp_path / "m.toml").write_text(
        '[constants]\nop="copy"\nflops=0\n[columns]\ntime_s={column="us",unit="us"}\nbytes={column="size",unit="float32"}'
    )
    result = import_files("generic", [tmp_path / "t.parquet"], mapping=tmp_path / "m.toml")
    assert result.table["time_s"].tolist() == pytest.approx([1e-5, 3e-5])
    assert result.table["bytes"].tolist() == [4, 12]
    broken = (tmp_path / "t.parquet").read_bytes()[:-40]
    (tmp_path / "broken.parquet").write_bytes(broken)
    with pytest.raises(UnsupportedFileError, match="damaged"):
        import_files("generic", [tmp_path / "broken.parquet"], mapping=tmp_path / "m.toml")


def test_a_mapping_is_needed(read: Any) -> None:
    with pytest.raises(InputError, match="mapping"):
        read("generic", "generic.csv")


def test_formulas_know_arithmetic_only() -> None:
    columns = {"m": np.array([2.0, 3.0])}
    assert evaluate("2*m**2 - ceil(m/2) + max(m, 2.5)", columns, "x").tolist() == [9.5, 19.0]
    assert np.isnan(evaluate("1/(m-m)", columns, "x")).all()

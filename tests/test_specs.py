from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bayesperf import schema, specs
from bayesperf.errors import BayesperfError, InputError, TableError, UnknownNameError

MakeTable = Callable[..., pd.DataFrame]
Read = Callable[[str], pd.DataFrame]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read a spec-sheet file of this content."""

    def write_and_read(text: str) -> pd.DataFrame:
        (tmp_path / "specs.csv").write_text(text)
        return specs.read_targets(tmp_path / "specs.csv")

    return write_and_read


@pytest.mark.parametrize("key", ["device", "target"])
def test_a_sheet_is_indexed_by_device(read: Read, key: str) -> None:
    table = read(f"# source: vendor\n{key},peak_flops_float32,tdp_w,tdp_w_source\nx100,1e13,,brochure\n")
    assert table.index.tolist() == ["x100"]
    assert table.index.name == "device"
    assert specs.spec_of(table, "x100") == {"peak_flops_float32": 1e13}


def test_device_names_stay_text(read: Read) -> None:
    assert read("device,tdp_w\n0100,1\n").index.tolist() == ["0100"]
    table = specs.check_targets(pd.DataFrame({"device": [1, 2.0], "tdp_w": [1, 2]}))
    assert table.index.tolist() == ["1", "2"]


@pytest.mark.parametrize("name", ["device", "target"])
def test_an_indexed_frame_is_taken_too(name: str) -> None:
    frame = pd.DataFrame({"tdp_w": [1, 2]}, index=pd.Index(["a", "b"], name=name))
    assert specs.check_targets(frame).index.tolist() == ["a", "b"]
    assert specs.check_targets(specs.check_targets(frame)).index.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "row", "column", "problem"),
    [
        ("name,tdp_w\na,1\n", None, None, "key column"),
        ("device,tdp_w\na,1\na,2\n", 3, "device", "given twice"),
        ("device,tdp_w\n,1\n", 2, "device", "missing"),
        ("device,tdp_w,tdp_w\na,1,2\n", None, "tdp_w", "appears twice"),
        ("device,tdp_w\na,0\n", 2, "tdp_w", "not a positive number"),
        ("device,peak_flops_bfloat16\na,1e12\nb,-1\n", 3, "peak_flops_bfloat16", "not a positive number"),
        ("device,bandwidth_bytes_per_s\na,fast\n", 2, "bandwidth_bytes_per_s", "not a positive number"),
        ("device,cache_bytes\na,inf\n", 2, "cache_bytes", "not a positive number"),
    ],
)
def test_errors_name_row_and_column(read: Read, text: str, row: int | None, column: str | None, problem: str) -> None:
    with pytest.raises(TableError, match=problem) as caught:
        read(text)
    assert (caught.value.row, caught.value.column) == (row, column)
    assert "specs.csv" in caught.value.source


@pytest.mark.parametrize("value", [True, 1j, "x", pd.Timestamp("2024-01-01")], ids=str)
def test_what_is_no_number(value: Any) -> None:
    with pytest.raises(TableError, match="not a positive number"):
        specs.check_targets(pd.DataFrame({"device": ["a"], "tdp_w": [value]}))


def test_foreign_and_missing_files(read: Read, tmp_path: Path) -> None:
    for text in ("", "\0\0\0\0", "device,tdp_w\na,1,2\n"):
        with pytest.raises(BayesperfError):
            read(text)
    with pytest.raises(InputError, match="no such file"):
        specs.read_targets(tmp_path / "nope.csv")
    with pytest.raises(InputError, match="is a folder"):
        specs.read_targets(tmp_path)
    with pytest.raises(TableError, match="a pandas DataFrame is needed"):
        specs.check_targets(5)  # type: ignore[arg-type]


def test_unknown_device_knows_nothing_or_says_what_exists() -> None:
    table = specs.check_targets(pd.DataFrame({"device": ["x100", "y200"], "tdp_w": [1, 2]}))
    assert specs.spec_of(table, "z") == {}
    assert specs.spec_of(None, "x100") == {}
    with pytest.raises(UnknownNameError, match="there are: x100, y200"):
        specs.spec_of(table, "x101", required=True)


def test_slugs() -> None:
    assert specs.slug("Intel(R) Xeon(R) Platinum 8488C") == "intel-xeon-platinum-8488c"
    assert specs.slug("NVIDIA A100-SXM4-40GB") == "nvidia-a100-sxm4-40gb"
    assert specs.slug("  ??  ") == ""


# Ceilings.

SHEET = {"device": ["d"], "peak_flops_float32": [1e12], "bandwidth_bytes_per_s": [1e11], "cache_bytes": [1e6]}


@pytest.mark.parametrize(
    ("columns", "above"),
    [
        ({"flops": 0.99e12, "dtype": "float32"}, False),
        ({"flops": 1.01e12, "dtype": "float32"}, False),
        ({"flops": 1.03e12, "dtype": "float32"}, True),
        ({"flops": 1.03e12, "dtype": "bfloat16"}, False),
        ({"flops": 1.03e12}, False),
        ({"flops": 1.5e12, "dtype": "float32", "n_devices": 2}, False),
        ({"flops": 2.1e12, "dtype": "float32", "n_devices": 2}, True),
        ({"flops": 1.5e12, "dtype": "float32", "n_devices": 2, "message_bytes": 8}, True),
        ({"bytes": 0.99e11, "working_set_bytes": 1e7}, False),
        ({"bytes": 1.1e11, "working_set_bytes": 1e7}, True),
        ({"bytes": 1.1e11, "working_set_bytes": 1e5}, False),
        # Without a footprint the traffic of one execution stands for it.
        ({"bytes": 1.1e11}, True),
    ],
    ids=str,
)
def test_ceilings(make_table: MakeTable, columns: dict[str, Any], above: bool) -> None:
    work = {"target": "t", "device": "d", "flops": 0.0, "bytes": 0.0, "time_s": 1.0}
    table = make_table(2, **{**work, **columns})
    reasons = specs.above_ceiling(table, specs.check_targets(pd.DataFrame(SHEET)))
    assert [reason is not None for reason in reasons] == [above, above]


def test_the_target_is_the_key_where_no_device_is_given(make_table: MakeTable) -> None:
    sheet = specs.check_targets(pd.DataFrame(SHEET))
    table = make_table(
        target=["d", "other", "other"], device=[None, None, "d"], dtype="float32", flops=2e12, time_s=1.0
    )
    assert [reason is not None for reason in specs.above_ceiling(table, sheet)] == [True, False, True]


def test_flagging_keeps_other_flags(make_table: MakeTable) -> None:
    sheet = specs.check_targets(pd.DataFrame(SHEET))
    flags = ["outlier", None, "x"]
    table = schema.validate(make_table(target="d", dtype="float32", flops=[2e12, 2e12, 1], time_s=1.0, flags=flags))
    flagged = specs.flag_above_ceiling(table, sheet)
    assert flagged["flags"].tolist() == ["above-ceiling+outlier", "above-ceiling", "x"]
    assert specs.flag_above_ceiling(table, None)["flags"].tolist() == flags

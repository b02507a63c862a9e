from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bayesperf import schema, store
from bayesperf.errors import BayesperfError, InputError, TableError, UnsupportedFileError

MakeTable = Callable[..., pd.DataFrame]
HEADER = "target,op,flops,bytes,time_s\n"


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str | bytes], pd.DataFrame]:
    """Read a CSV file of this content."""

    def write_and_read(content: str | bytes) -> pd.DataFrame:
        path = tmp_path / "table.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return store.read_measurements(path)

    return write_and_read


def write_new(path: Path) -> None:
    """Write a word."""
    path.write_text("new")


def round_trip(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    store.write_measurements(table, path)
    return store.read_measurements(path)


# Round trips.


def test_what_is_written_is_read(make_table: MakeTable, tmp_path: Path) -> None:
    table = make_table(
        role=["fit", None, "heldout"],
        samples_s=[[1e-3, 2e-3], None, [3e-3]],
        samples_iterations=[[1, 2], None, [3]],
        note=[1, 2, 3],
    )
    back = round_trip(table, tmp_path / "a.parquet")
    assert back["role"].tolist() == ["fit", None, "heldout"]
    assert back["samples_s"][0].tolist() == [1e-3, 2e-3]
    assert back["samples_s"][1] is None
    assert back["samples_iterations"][2].tolist() == [3]
    assert back["note"].tolist() == [1, 2, 3]
    assert back["measurement_id"].nunique() == 3


def test_ids_survive_rewriting_and_csv(make_table: MakeTable, tmp_path: Path) -> None:
    once = round_trip(make_table(), tmp_path / "a.parquet")
    twice = round_trip(once, tmp_path / "b.parquet")
    once.to_csv(tmp_path / "c.csv", index=False)
    text = store.read_measurements(tmp_path / "c.csv")
    assert once["measurement_id"].tolist() == twice["measurement_id"].tolist() == text["measurement_id"].tolist()


def test_provenance_and_facts_travel(make_table: MakeTable, tmp_path: Path) -> None:
    table = store.with_provenance(make_table(provenance_id="p1"), {"p1": {"seed": 3, "flags": None}})
    store.write_measurements(table, tmp_path / "a.parquet", extra={"plan": {"suite": "tiny"}})
    back = store.read_measurements(tmp_path / "a.parquet")
    assert store.provenance_of(back) == {"p1": {"seed": 3, "flags": None}}
    assert back.attrs["facts"]["plan"] == {"suite": "tiny"}
    assert back.attrs["facts"]["schema_version"] == schema.SCHEMA_VERSION


def test_provenance_ids_are_content_hashes() -> None:
    assert store.provenance_id({"a": 1, "b": 2}) == store.provenance_id({"b": 2.0, "a": 1})
    assert store.provenance_id({"a": 1}) != store.provenance_id({"a": 2})


@pytest.mark.parametrize(
    ("values", "back"),
    [
        ([1, "a", None], ["1", "a", None]),
        ([{1}, "a", None], ["{1}", "a", None]),
        ([[1], ["a"], None], ["[1]", "['a']", None]),
        ([{}, {}, None], ["{}", "{}", None]),
        ([10**30, 1, None], [str(10**30), "1", None]),
        ([None, None, None], [None, None, None]),
    ],
)
def test_unknown_columns_of_mixed_kinds_are_kept_as_text(
    make_table: MakeTable, tmp_path: Path, values: list[Any], back: list[Any]
) -> None:
    table = make_table(note=pd.Series(values, dtype=object))
    read = round_trip(table, tmp_path / "a.parquet")["note"].tolist()
    assert [None if v is None or v is np.nan else v for v in read] == back


def test_names_in_any_script(make_table: MakeTable, tmp_path: Path) -> None:
    back = round_trip(make_table(target="машина-机器", **{"größe 😀": [1, 2, 3]}), tmp_path / "ü.parquet")
    assert back["target"][0] == "машина-机器"
    assert "größe 😀" in back


# CSV as people write it.


@pytest.mark.parametrize("separator", [",", ";", "\t", ", ", " ; "])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_csv_dialects(read: Callable[..., pd.DataFrame], separator: str, newline: str, mark: str) -> None:
    text = f"{HEADER}a,matmul,1e9,10,0.5\n".replace(",", separator).replace("\n", newline)
    table = read(mark + text)
    assert table.iloc[0][["target", "op", "flops", "bytes", "time_s"]].tolist() == ["a", "matmul", 1e9, 10.0, 0.5]


def test_labels_that_look_like_numbers_stay_labels(read: Callable[..., pd.DataFrame]) -> None:
    table = read("target,op,flops,bytes,time_s,campaign,measurement_id\n007,1e3,1,1,1,2024,12345678e1234567\n")
    row = table.iloc[0]
    assert (row["target"], row["op"], row["campaign"]) == ("007", "1e3", "2024")
    assert row["measurement_id"] == "12345678e1234567"


def test_unknown_and_nameless_columns_are_kept(read: Callable[..., pd.DataFrame]) -> None:
    # The index that pandas writes unless told otherwise has no name.
    table = read(",target,op,flops,bytes,time_s,extra\n0,a,m,1,1,1,x\n")
    assert table["extra"].tolist() == ["x"]
    assert table["target"].tolist() == ["a"]


@pytest.mark.parametrize(
    ("text", "row", "column"),
    [
        (HEADER + "a,m,1,1,1\na,m,1,1,-1\n", 3, "time_s"),
        (HEADER + "\n\na,m,1,1,1\n\na,m,1,1,-1\n", 6, "time_s"),
        (HEADER + '"a\nb",m,1,1,1\na,m,1,1,-1\n', 4, "time_s"),
        (HEADER.replace(",", ";") + "\na;m;x;1;1\n", 3, "flops"),
        (HEADER + "a,m,1,1\n", 2, "time_s"),
        (HEADER + "a,,1,1,1\n", 2, "op"),
        ("\ufeff" + HEADER + "a,m,nan,1,1\n", 2, "flops"),
        (HEADER.replace(",", ";") + "a;m;1;1;0,5\n", 2, "time_s"),
    ],
)
def test_errors_name_the_line(read: Callable[..., pd.DataFrame], text: str, row: int, column: str) -> None:
    with pytest.raises(TableError) as caught:
        read(text)
    assert (caught.value.row, caught.value.column) == (row, column)
    assert "table.csv" in caught.value.source


@pytest.mark.parametrize(
    ("content", "error", "problem"),
    [
        (b"", UnsupportedFileError, "cannot be read as CSV"),
        (HEADER, TableError, "no rows"),
        ("target,op,op,flops,bytes,time_s\na,m,n,1,1,1\n", TableError, "column op: this column appears twice"),
        # pandas makes an index of the first column when every row has one field too many.
        (HEADER + "a,m,1,1,1,7\n", UnsupportedFileError, "more fields than the header"),
        (HEADER + "a,m,1,1,1\na,m,1,1,1,7\n", UnsupportedFileError, "Expected 5 fields in line 3, saw 6"),
        (HEADER + 'a,"m,1,1,1\n', UnsupportedFileError, "EOF inside string"),
        ((HEADER + "ä,m,1,1,1\n").encode("latin-1"), UnsupportedFileError, "UTF-8"),
        ((HEADER + "a,m,1,1,1\n").encode("utf-16"), UnsupportedFileError, "neither UTF-8 text"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", UnsupportedFileError, "neither UTF-8 text"),
        (b"\x1f\x8b\x08\0\0\0\0", UnsupportedFileError, "neither UTF-8 text"),
        ("<html><body>hello</body></html>\n", TableError, "required column"),
        ('{"a": [1, 2]}\n', TableError, "required column"),
    ],
)
def test_foreign_files(
    read: Callable[..., pd.DataFrame], content: str | bytes, error: type[Exception], problem: str
) -> None:
    with pytest.raises(error, match=problem):
        read(content)


@pytest.mark.parametrize(("path", "problem"), [("nope.csv", "no such file"), (".", "is a folder")])
def test_paths_that_hold_no_file(tmp_path: Path, path: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        store.read_measurements(tmp_path / path)


def test_a_device_is_no_file() -> None:
    with pytest.raises(InputError, match="is not a regular file"):
        store.read_measurements("/dev/null")


def test_workloads_are_read_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "w.csv"
    path.write_text("op,flops,bytes\n\nmatmul,1,\n")
    with pytest.raises(TableError) as caught:
        store.read_workloads(path)
    assert (caught.value.row, caught.value.column) == (3, "bytes")
    path.write_text("op,flops,bytes\nmatmul,1,2\n")
    assert store.read_workloads(path)["bytes"].tolist() == [2.0]


# Parquet as other programs write it.


@pytest.mark.parametrize("how", ["index", "slice", "category", "nullable", "text"])
def test_pandas_parquet(make_table: MakeTable, tmp_path: Path, how: str) -> None:
    table = make_table()
    changed = {
        "index": table.set_index(["target", "op"]),
        "slice": table.iloc[1:],
        "category": table.astype({"op": "category"}),
        "nullable": table.convert_dtypes(),
        "text": table.astype({"flops": str}),
    }[how]
    changed.to_parquet(tmp_path / "p.parquet")
    assert store.read_measurements(tmp_path / "p.parquet")["flops"].tolist()[-1] == 3e9


def test_a_parquet_file_in_a_folder_of_others_is_read_alone(make_table: MakeTable, tmp_path: Path) -> None:
    folder = tmp_path / "target=elsewhere"
    store.write_measurements(make_table(), folder / "a.parquet")
    assert store.read_measurements(folder / "a.parquet")["target"].tolist() == ["a"] * 3


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ({b"pandas": b"{not json"}, "damaged"),
        ({b"pandas": b'{"index_columns":["zzz"],"columns":[],"column_indexes":[]}'}, "damaged"),
        ({b"bayesperf": b"{not json"}, "metadata is damaged"),
        ({b"bayesperf": b"[1]"}, "metadata is damaged"),
        ({b"bayesperf": b"\xff\xfe"}, "metadata is damaged"),
        ({b"bayesperf": b"{}"}, "metadata is damaged"),
        ({b"bayesperf": b'{"schema_version": 1, "provenance": [1]}'}, "metadata is damaged"),
        ({b"bayesperf": b'{"schema_version": 1, "provenance": {"a": 1}}'}, "metadata is damaged"),
        ({b"bayesperf": b'{"schema_version": 99}'}, "newer bayesperf"),
    ],
)
def test_damaged_metadata(make_table: MakeTable, tmp_path: Path, metadata: dict[bytes, bytes], problem: str) -> None:
    pq.write_table(pa.Table.from_pandas(make_table()).replace_schema_metadata(metadata), tmp_path / "p.parquet")
    with pytest.raises(UnsupportedFileError, match=problem):
        store.read_measurements(tmp_path / "p.parquet")


def test_a_column_twice_in_parquet(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_arrays([pa.array(["a"])] * 2, names=["op", "op"]), tmp_path / "p.parquet")
    with pytest.raises(TableError, match="appears twice"):
        store.read_measurements(tmp_path / "p.parquet")


def test_a_text_file_named_parquet(tmp_path: Path) -> None:
    (tmp_path / "p.parquet").write_text(HEADER)
    with pytest.raises(UnsupportedFileError, match="not a Parquet file"):
        store.read_measurements(tmp_path / "p.parquet")


def test_parquet_without_its_suffix_is_recognised(make_table: MakeTable, tmp_path: Path) -> None:
    store.write_measurements(make_table(), tmp_path / "a.parquet")
    (tmp_path / "a.parquet").rename(tmp_path / "a.csv")
    assert len(store.read_measurements(tmp_path / "a.csv")) == 3


def test_truncated_and_bit_flipped_files_never_escape_as_tracebacks(make_table: MakeTable, tmp_path: Path) -> None:
    store.write_measurements(make_table(), tmp_path / "a.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    random = np.random.default_rng(20)
    damaged = [whole[:cut] for cut in range(0, len(whole), 101)]
    for _ in range(150):
        flipped = bytearray(whole)
        for at in random.integers(0, len(whole), 3):
            flipped[at] ^= int(random.integers(1, 256))
        damaged.append(bytes(flipped))
    refused = 0
    for content in damaged:
        (tmp_path / "d.parquet").write_bytes(content)
        try:
            store.read_measurements(tmp_path / "d.parquet")
        except BayesperfError:
            refused += 1
    assert refused > 0.9 * len(damaged)


# Writing.


def test_a_bad_table_leaves_nothing_behind(make_table: MakeTable, tmp_path: Path) -> None:
    with pytest.raises(TableError):
        store.write_measurements(make_table(time_s=[1, -1, 1]), tmp_path / "a.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail(temporary: Path) -> None:
        temporary.write_text("half")
        raise RuntimeError("disk on fire")

    with pytest.raises(RuntimeError, match="disk on fire"):
        store.atomic_write(path, fail)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_missing_folders_are_made(tmp_path: Path) -> None:
    store.atomic_write(tmp_path / "x" / "y" / "a.txt", write_new)
    assert (tmp_path / "x" / "y" / "a.txt").read_text() == "new"


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("real")
    store.atomic_write(tmp_path / "link", write_new)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_written_files_are_readable_by_others(tmp_path: Path) -> None:
    store.atomic_write(tmp_path / "a", write_new)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o644


def test_places_where_nothing_can_be_written(make_table: MakeTable, tmp_path: Path) -> None:
    (tmp_path / "folder.parquet").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="is a folder"):
        store.write_measurements(make_table(), tmp_path / "folder.parquet")
    with pytest.raises(InputError, match="cannot be written"):
        store.write_measurements(make_table(), tmp_path / "file" / "a.parquet")
    with pytest.raises(InputError, match=r"name the file \*\.parquet"):
        store.write_measurements(make_table(), tmp_path / "a.csv")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder(make_table: MakeTable, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(InputError, match="cannot be written: Permission denied"):
            store.write_measurements(make_table(), tmp_path / "a.parquet")
    finally:
        tmp_path.chmod(0o700)


def test_failures_have_a_file_of_their_own(tmp_path: Path) -> None:
    failures = pd.DataFrame({"probe": ["matmul"], "reason": ["timeout"], "log": ["..."]})
    store.write_failures(failures, tmp_path / "a.failures.parquet")
    assert pq.read_table(tmp_path / "a.failures.parquet").to_pandas()["reason"].tolist() == ["timeout"]
    facts = json.loads(pq.read_metadata(tmp_path / "a.failures.parquet").metadata[b"bayesperf"])
    assert facts["kind"] == "failures"


# Joining.


def test_rows_of_several_tables_are_joined_with_their_provenance(make_table: MakeTable) -> None:
    first = store.with_provenance(make_table(campaign="mon"), {"a": {"x": 1}})
    second = store.with_provenance(make_table(campaign=None, note="n"), {"b": {"x": 2}})
    joined = store.concat([first, second])
    assert joined["campaign"].tolist() == ["mon"] * 3 + [None] * 3
    assert store.provenance_of(joined) == {"a": {"x": 1}, "b": {"x": 2}}
    assert joined["measurement_id"].nunique() == 6


def test_a_shared_row_is_kept_once(make_table: MakeTable, tmp_path: Path) -> None:
    table = round_trip(make_table(), tmp_path / "a.parquet")
    assert len(store.concat([table, table, table.iloc[:1]])) == 3
    # A column that says nothing makes no other content.
    assert len(store.concat([table, table.assign(extra=np.nan)])) == 3


def test_measured_twice_is_not_shared(make_table: MakeTable) -> None:
    assert len(store.concat([make_table(), make_table()])) == 6


def test_one_id_with_two_contents(make_table: MakeTable, tmp_path: Path) -> None:
    table = round_trip(make_table(), tmp_path / "a.parquet")
    with pytest.raises(TableError, match="given twice, with different contents"):
        store.concat([table, table.assign(time_s=2.0)])


def test_joined_tables_of_different_dtypes_can_be_written(make_table: MakeTable, tmp_path: Path) -> None:
    joined = store.concat([make_table(note=1), make_table(note="a").astype({"op": "category"})])
    assert round_trip(joined, tmp_path / "m.parquet")["note"].tolist() == ["1"] * 3 + ["a"] * 3


def test_nothing_to_join() -> None:
    with pytest.raises(InputError, match="at least one table"):
        store.concat([])

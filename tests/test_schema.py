from __future__ import annotations

import datetime
import decimal
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesperf import schema
from bayesperf.errors import TableError

MakeTable = Callable[..., pd.DataFrame]

REQUIRED = ["target", "op", "flops", "bytes", "time_s"]


# What is accepted.


def test_a_minimal_table_comes_back_with_plain_types(make_table: MakeTable) -> None:
    checked = schema.validate(make_table())
    assert list(checked.columns) == REQUIRED
    assert [str(checked[c].dtype) for c in ("flops", "bytes", "time_s")] == ["float64"] * 3
    assert checked["target"].tolist() == ["a", "a", "a"]


def test_the_input_is_left_alone(make_table: MakeTable) -> None:
    table = make_table(role=["fit", None, " heldout "])
    before = table.copy(deep=True)
    schema.validate(table)
    pd.testing.assert_frame_equal(table, before)


def test_unknown_columns_are_kept_untouched(make_table: MakeTable) -> None:
    table = make_table(note=[1, 2, 3], weird=[{"x": 1}, None, "y"])
    checked = schema.validate(table)
    assert checked["note"].tolist() == [1, 2, 3]
    assert checked["weird"].tolist() == [{"x": 1}, None, "y"]


def test_shapes_are_numbers_and_stay_as_they_were_given(make_table: MakeTable) -> None:
    checked = schema.validate(make_table(m=[1, 2, 3], n=["8", "", None], k=[1.5, np.nan, 2.0]))
    assert checked["m"].tolist() == [1, 2, 3]
    assert checked["m"].dtype == np.int64
    np.testing.assert_array_equal(checked["n"], [8.0, np.nan, np.nan])
    for bad in (["3x3", "1", "1"], [-1, 1, 1], [np.inf, 1.0, 1.0]):
        with pytest.raises(TableError, match="row 0, column kernel_size"):
            schema.validate(make_table(kernel_size=bad))


def test_columns_of_several_levels_are_refused(make_table: MakeTable) -> None:
    table = make_table()
    table.columns = pd.MultiIndex.from_product([table.columns, ["x"]])
    with pytest.raises(TableError, match="several levels"):
        schema.validate(table)


def test_attributes_travel(make_table: MakeTable) -> None:
    table = make_table()
    table.attrs["provenance"] = {"p": {"x": 1}}
    assert schema.validate(table).attrs == {"provenance": {"p": {"x": 1}}}


@pytest.mark.parametrize("dtype", ["category", "string", object])
def test_text_dtypes(make_table: MakeTable, dtype: Any) -> None:
    checked = schema.validate(make_table().astype({"target": dtype, "op": dtype}))
    assert checked["op"].tolist() == ["matmul"] * 3
    assert checked["op"].dtype == object


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "int32", "float32", "category", str, object])
def test_number_dtypes(make_table: MakeTable, dtype: Any) -> None:
    checked = schema.validate(make_table(bytes=[8, 16, 24]).astype({"bytes": dtype}))
    assert checked["bytes"].tolist() == [8.0, 16.0, 24.0]


def test_pandas_nullable_columns_with_gaps(make_table: MakeTable) -> None:
    checked = schema.validate(
        make_table(
            time_se_s=pd.array([1e-5, None, 2e-5], dtype="Float64"),
            n_devices=pd.array([1, None, 2], dtype="Int64"),
            campaign=pd.array(["x", None, "y"], dtype="string"),
        )
    )
    assert math.isnan(checked["time_se_s"][1])
    assert checked["n_devices"].tolist()[::2] == [1.0, 2.0]
    assert checked["campaign"].tolist() == ["x", None, "y"]


@pytest.mark.parametrize("value", [1, "1", "1e0", decimal.Decimal(1), np.float32(1)])
def test_numbers_in_mixed_columns(make_table: MakeTable, value: Any) -> None:
    flops = pd.Series([value, "2e9", 3.0], dtype=object)
    assert schema.validate(make_table(flops=flops))["flops"].tolist() == [1.0, 2e9, 3.0]


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([2024, "b", 2024.0], ["2024", "b", "2024"]),
        ([2024.0, math.nan, 2.5], ["2024", None, "2.5"]),
        ([True, False, True], ["True", "False", "True"]),
        ([" x ", "", "  "], ["x", None, None]),
        ([b"x", "y", None], ["x", "y", None]),
    ],
)
def test_labels_of_any_type_become_text(make_table: MakeTable, values: list[Any], labels: list[Any]) -> None:
    checked = schema.validate(make_table(campaign=pd.Series(values, dtype=object)))
    assert checked["campaign"].tolist() == labels


def test_a_named_index_is_a_column(make_table: MakeTable) -> None:
    checked = schema.validate(make_table().set_index(["target", "op"]))
    assert checked["target"].tolist() == ["a"] * 3
    assert checked["op"].tolist() == ["matmul"] * 3


def test_repeated_index_labels_do_no_harm(make_table: MakeTable) -> None:
    checked = schema.validate(make_table().set_index(pd.Index([5, 5, 5])))
    assert checked.index.tolist() == [0, 1, 2]


def test_zero_work_is_allowed_but_zero_time_is_not(make_table: MakeTable) -> None:
    schema.validate(make_table(flops=[0, 0, 0]))
    schema.validate(make_table(bytes=[0, 0, 0]))
    with pytest.raises(TableError, match="0 is not greater than 0 s"):
        schema.validate(make_table(time_s=[1, 0, 1]))


def test_samples_may_be_lists_arrays_json_or_absent(make_table: MakeTable) -> None:
    samples = pd.Series([[1, 2.5], np.array([3.0]), None], dtype=object)
    counts = pd.Series(["[10, 20]", (5,), math.nan], dtype=object)
    checked = schema.validate(make_table(samples_s=samples, samples_iterations=counts))
    assert [None if v is None else v.tolist() for v in checked["samples_s"]] == [[1.0, 2.5], [3.0], None]
    assert [None if v is None else v.tolist() for v in checked["samples_iterations"]] == [[10, 20], [5], None]


# What is refused, and how.


@pytest.mark.parametrize("missing", REQUIRED)
def test_each_required_column_is_required(make_table: MakeTable, missing: str) -> None:
    with pytest.raises(TableError, match=rf"missing: {missing}; the table has: "):
        schema.validate(make_table().drop(columns=missing), source="mine.csv")


@pytest.mark.parametrize("column", REQUIRED)
def test_each_required_value_is_required(make_table: MakeTable, column: str) -> None:
    table = make_table().astype(object)
    table.loc[1, column] = None
    with pytest.raises(TableError, match="missing") as caught:
        schema.validate(table, source="mine.csv", first_row=2)
    assert (caught.value.source, caught.value.row, caught.value.column) == ("mine.csv", 3, column)


@pytest.mark.parametrize("column", [c.name for c in schema.COLUMNS if c.kind == "number"])
@pytest.mark.parametrize(
    "value",
    ["abc", "1,5", "1_000", "0x10", math.inf, "inf", "-inf", "1e999", 10**400, 1j, True, [1.0], {"a": 1}, b"1",
     pd.Timestamp("2024-01-01"), datetime.timedelta(seconds=1), datetime.date(2024, 1, 1)],
    ids=str,
)  # fmt: skip
def test_no_number_column_takes_what_is_no_finite_number(make_table: MakeTable, column: str, value: Any) -> None:
    table = make_table(**{column: pd.Series([1.0, value, 1.0], dtype=object)})
    with pytest.raises(TableError) as caught:
        schema.validate(table)
    assert (caught.value.row, caught.value.column) == (1, column)


@pytest.mark.parametrize(
    "values",
    [
        pd.to_datetime(["2024-01-01"] * 3),
        pd.to_timedelta([1, 2, 3], unit="s"),
        np.array([True, False, True]),
        np.array([1j, 2j, 3j]),
        pd.array([True, None, True], dtype="boolean"),
    ],
    ids=lambda v: str(v.dtype),
)
def test_typed_columns_that_pandas_would_turn_into_numbers(make_table: MakeTable, values: Any) -> None:
    # pd.to_numeric makes nanoseconds since 1970 of a date, in silence.
    with pytest.raises(TableError, match="is not a number"):
        schema.validate(make_table(time_s=values))


@pytest.mark.parametrize("column", [c for c in schema.COLUMNS if c.lower is not None], ids=lambda c: c.name)
def test_bounds(make_table: MakeTable, column: schema.Column) -> None:
    assert column.lower is not None
    below = make_table(**{column.name: [column.lower + 1, column.lower - 1, column.lower + 1]})
    with pytest.raises(TableError) as caught:
        schema.validate(below)
    assert (caught.value.row, caught.value.column) == (1, column.name)
    at = make_table(**{column.name: [column.lower] * 3})
    if column.strict:
        with pytest.raises(TableError):
            schema.validate(at)
    else:
        assert schema.validate(at)[column.name].tolist() == [column.lower] * 3


@pytest.mark.parametrize("value", [[1], {"a": 1}, ("x",), b"\xff"], ids=str)
def test_no_label_is_made_of_what_is_no_text(make_table: MakeTable, value: Any) -> None:
    with pytest.raises(TableError, match="is not text") as caught:
        schema.validate(make_table(op=pd.Series(["a", value, "b"], dtype=object)))
    assert (caught.value.row, caught.value.column) == (1, "op")


def test_role_is_one_of_two(make_table: MakeTable) -> None:
    with pytest.raises(TableError, match="'held-out' is none of: fit, heldout"):
        schema.validate(make_table(role=["fit", "held-out", None]))


@pytest.mark.parametrize(
    "ids", [["a", "a", "b"], [1, 1.0, 2], pd.Series([1, "1", 2], dtype=object), ["x", " x", "y"]], ids=str
)
def test_an_id_given_twice(make_table: MakeTable, ids: Any) -> None:
    with pytest.raises(TableError, match="given twice") as caught:
        schema.validate(make_table(measurement_id=ids))
    assert (caught.value.row, caught.value.column) == (1, "measurement_id")


def test_a_column_given_twice(make_table: MakeTable) -> None:
    table = make_table()
    with pytest.raises(TableError, match="appears twice"):
        schema.validate(pd.concat([table, table[["op"]]], axis=1))
    with pytest.raises(TableError, match="appears twice"):
        schema.validate(table.assign(**{"0": 1}).assign(x=2).rename(columns={"x": 0}))


def test_no_rows(make_table: MakeTable) -> None:
    with pytest.raises(TableError, match="no rows"):
        schema.validate(make_table(0))


@pytest.mark.parametrize("thing", [None, {"a": 1}, [1], "file.csv", pd.Series([1])], ids=lambda v: type(v).__name__)
def test_not_a_table(thing: Any) -> None:
    with pytest.raises(TableError, match="a pandas DataFrame is needed"):
        schema.validate(thing)
    with pytest.raises(TableError, match="a pandas DataFrame is needed"):
        schema.validate_workloads(thing)


@pytest.mark.parametrize(
    ("samples", "counts", "problem"),
    [
        ([1.0, -1.0], [1, 2], "element 1, -1.0, is not a positive number"),
        ([1.0, math.nan], [1, 2], "element 1, nan, is not a positive number"),
        ([1.0, math.inf], [1, 2], "element 1, inf, is not a positive number"),
        ([1.0, 0.0], [1, 2], "element 1, 0.0, is not a positive number"),
        ([1.0, 2.0], [1, 2.5], "element 1, 2.5, is not a count"),
        ([1.0, 2.0], [1, -2], "element 1, -2, is not a count"),
        (["x"], [1], "not a list of numbers"),
        ([[1.0]], [1], "not a list of numbers"),
        ("1.0 2.0", [1], "not a list of numbers"),
        ({1.0}, [1], "not a list of numbers"),
        ([1.0, 2.0], [1], "2 samples but 1 iteration counts"),
        ([1.0], None, "1 samples but 0 iteration counts"),
    ],
)
def test_raw_samples_are_checked(make_table: MakeTable, samples: Any, counts: Any, problem: str) -> None:
    table = make_table(
        samples_s=pd.Series([None, samples, None], dtype=object),
        samples_iterations=pd.Series([None, counts, None], dtype=object),
    )
    with pytest.raises(TableError, match=problem) as caught:
        schema.validate(table)
    assert caught.value.row == 1


def test_a_long_value_is_shortened_in_the_message(make_table: MakeTable) -> None:
    with pytest.raises(TableError) as caught:
        schema.validate(make_table(flops=["x" * 10_000, "1", "1"]))
    assert len(str(caught.value)) < 200


# Workloads.


def test_workloads_need_neither_target_nor_time(make_table: MakeTable) -> None:
    workloads = make_table().drop(columns=["target", "time_s"])
    assert list(schema.validate_workloads(workloads).columns) == ["op", "flops", "bytes"]


def test_workloads_may_leave_target_and_time_blank(make_table: MakeTable) -> None:
    checked = schema.validate_workloads(make_table(target=[None, "a", ""], time_s=[None, 1.0, None]))
    assert checked["target"].tolist() == [None, "a", None]


def test_workloads_are_checked(make_table: MakeTable) -> None:
    with pytest.raises(TableError, match="missing: flops"):
        schema.validate_workloads(make_table().drop(columns="flops"))
    with pytest.raises(TableError, match="the value is missing"):
        schema.validate_workloads(make_table(flops=[1.0, math.nan, 1.0]))


# Roles and flags.


@pytest.mark.parametrize("good", ["hot", "cold+burst", "burst+cold", "sustained", "hot+sustained", None])
def test_conditions_that_are_known(make_table: MakeTable, good: str | None) -> None:
    assert schema.validate(make_table(condition=good))["condition"].tolist() == [good] * 3


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("warm", "'warm' is no condition; there are: "),
        ("cold+brust", "'brust' is no condition; there are: burst, "),
        ("hot+cold", "contradicts or repeats itself"),
        ("hot+hot", "contradicts or repeats itself"),
        ("hot+", "'' is no condition"),
        ("heiß", "'heiß' is no condition"),
    ],
)
def test_conditions_that_nobody_knows_are_refused(make_table: MakeTable, bad: str, words: str) -> None:
    for values in (["hot", bad, "hot"], [None, bad, None]):
        with pytest.raises(TableError, match=f"row 1, column condition: .*{re.escape(words)}"):
            schema.validate(make_table(condition=values))
    workloads = make_table(condition=["hot", bad, "hot"]).drop(columns=["target", "time_s"])
    with pytest.raises(TableError, match="column condition"):
        schema.validate_workloads(workloads)


def test_rows_without_a_role_are_for_fitting(make_table: MakeTable) -> None:
    table = schema.validate(make_table(role=["fit", "heldout", None]))
    assert len(schema.rows_for(table, "fit")) == 2
    assert len(schema.rows_for(table, "heldout")) == 1
    plain = schema.validate(make_table())
    assert len(schema.rows_for(plain, "fit")) == 3
    assert len(schema.rows_for(plain, "heldout")) == 0


def test_flags_are_labels_joined_by_plus(make_table: MakeTable) -> None:
    assert schema.add_flag(None, "outlier") == "outlier"
    assert schema.add_flag("outlier", "disturbed") == "disturbed+outlier"
    assert schema.add_flag("disturbed+outlier", "outlier") == "disturbed+outlier"
    table = make_table(flags=["disturbed+outlier", None, "disturbed-ish"])
    assert schema.has_flag(table, "disturbed").tolist() == [True, False, False]
    assert schema.has_flag(make_table(), "disturbed").tolist() == [False] * 3


# Content ids.


def test_ids_are_stable_and_unique(make_table: MakeTable) -> None:
    table = make_table(5)
    first, second = (schema.with_ids(table, source="s")["measurement_id"].tolist() for _ in range(2))
    assert first == second
    assert len(set(first)) == 5


def test_equal_rows_of_one_source_get_different_ids(make_table: MakeTable) -> None:
    ids = schema.with_ids(make_table(3, flops=1e9), source="s")["measurement_id"]
    assert ids.nunique() == 3


def test_the_id_depends_on_content_and_source_only(make_table: MakeTable) -> None:
    base = schema.with_ids(make_table(), source="s")["measurement_id"].tolist()
    reordered = schema.with_ids(make_table()[["time_s", "op", "target", "bytes", "flops"]], source="s")
    assert reordered["measurement_id"].tolist() == base
    assert schema.with_ids(make_table(extra=None), source="s")["measurement_id"].tolist() == base
    assert schema.with_ids(make_table(flops=[1, 2e9, 3e9]), source="s")["measurement_id"].tolist()[1:] == base[1:]
    assert not set(schema.with_ids(make_table(), source="t")["measurement_id"]) & set(base)


def test_given_ids_stay(make_table: MakeTable) -> None:
    table = schema.validate(make_table(measurement_id=["x", None, ""]))
    ids = schema.with_ids(table, source="s")["measurement_id"].tolist()
    assert ids[0] == "x"
    assert all(len(i) == 16 for i in ids[1:])


@given(
    st.dictionaries(
        st.text(max_size=5), st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5), max_size=5
    )
)
def test_canonical_text_is_one_per_record(record: dict[str, Any]) -> None:
    shuffled = dict(reversed(record.items()))
    assert schema.canonical(record) == schema.canonical(shuffled)
    padded = {**record, "absent-absent": None}
    assert schema.canonical(padded) == schema.canonical(record)


def test_canonical_does_not_tell_3_from_3_0_but_true_from_1() -> None:
    assert schema.canonical({"a": 3.0}) == schema.canonical({"a": np.int32(3)}) == '{"a":3}'
    assert schema.canonical({"a": True}) != schema.canonical({"a": 1})
    assert schema.canonical({"a": math.nan, "b": pd.NA, "c": pd.NaT}) == "{}"
    assert schema.canonical({"a": math.inf}) != schema.canonical({"a": -math.inf})


def test_with_flags_marks_rows_and_keeps_what_was_there(make_table: MakeTable) -> None:
    table = schema.validate(make_table(flags=["x", None, "y"]))
    marked = schema.with_flags(table, np.array([True, True, False]), "b", "a")
    assert marked["flags"].tolist() == ["a+b+x", "a+b", "y"]
    assert table["flags"].tolist() == ["x", None, "y"]
    assert schema.with_flags(make_table(), np.array([False, True, False]), "a")["flags"].tolist() == [None, "a", None]


def test_excluded_is_a_flag(make_table: MakeTable) -> None:
    table = schema.with_flags(make_table(), np.array([False, True, False]), schema.EXCLUDED)
    assert schema.is_excluded(table).tolist() == [False, True, False]

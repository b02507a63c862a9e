"""The measurement table: its checks, roles, flags and content ids; what its columns are says `bayesperf.columns`."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd

from bayesperf import corunners
from bayesperf.columns import COLUMNS, SHAPE_COLUMNS, Column
from bayesperf.errors import TableError, nearest_first

__all__ = [
    "COLUMNS",
    "EXCLUDED",
    "SCHEMA_VERSION",
    "SHAPE_COLUMNS",
    "Column",
    "add_flag",
    "as_frame",
    "as_numbers",
    "as_text",
    "canonical",
    "has_flag",
    "is_excluded",
    "is_heldout",
    "is_missing",
    "rows_for",
    "validate",
    "validate_workloads",
    "with_flags",
    "with_ids",
]

SCHEMA_VERSION = 1

_BY_NAME = {column.name: column for column in COLUMNS}

_SHAPES = {name: Column(name, "number", "", "an extent of the workload's shape", lower=0.0) for name in SHAPE_COLUMNS}


def validate(table: pd.DataFrame, *, source: str = "table", first_row: int = 0) -> pd.DataFrame:
    """Check a measurement table against the contract and return it with normalised types.

    Parameters
    ----------
    table
        Columns as in `COLUMNS`; unknown columns are kept untouched.
    source
        Name for error messages, such as the file's path.
    first_row
        Number of the first row as the user sees it (2 for a CSV file, whose first line is the header).

    Raises
    ------
    TableError
        Names source, row and column of the first thing that is wrong.
    """
    table = as_frame(table, source)
    _require(table, [c.name for c in COLUMNS if c.required], source)
    return _checked(table, source, first_row, optional=frozenset())


def validate_workloads(table: pd.DataFrame, *, source: str = "workloads", first_row: int = 0) -> pd.DataFrame:
    """Check a table of workloads to predict: like `validate`, but without target and time.

    Raises
    ------
    TableError
        Names source, row and column of the first thing that is wrong.
    """
    table = as_frame(table, source)
    _require(table, ["op", "flops", "bytes"], source)
    return _checked(table, source, first_row, optional=frozenset({"target", "time_s"}))


def as_frame(table: Any, source: str) -> pd.DataFrame:
    """Check that `table` is a DataFrame, and make named index levels columns.

    Raises
    ------
    TableError
        It is something else.
    """
    if not isinstance(table, pd.DataFrame):
        raise TableError(f"a pandas DataFrame is needed, this is a {type(table).__name__}", source=source)
    if table.columns.nlevels > 1:
        raise TableError("its columns have several levels; name each by one word", source=source)
    # A key that was made the index (`set_index("target")`, then `to_parquet`) is a column of the table all the same.
    levels = [n for n in table.index.names if n is not None and n not in table.columns]
    return table.reset_index(level=levels) if levels else table


def _require(table: pd.DataFrame, names: Iterable[str], source: str) -> None:
    columns = pd.Index([str(name) for name in table.columns])
    duplicated = columns[columns.duplicated()]
    if len(duplicated):
        raise TableError("this column appears twice", source=source, column=str(duplicated[0]))
    missing = [name for name in names if name not in table.columns]
    if missing:
        have = ", ".join(map(str, table.columns[:20])) or "none"
        raise TableError(f"required column(s) missing: {', '.join(missing)}; the table has: {have}", source=source)


def _checked(table: pd.DataFrame, source: str, first_row: int, optional: frozenset[str]) -> pd.DataFrame:
    if not len(table):
        raise TableError("the table has no rows", source=source)
    attrs, table = table.attrs, table.reset_index(drop=True)
    columns: dict[str, Any] = {str(name): table[name] for name in table.columns}
    for name in columns:
        spec = _BY_NAME.get(name)
        if spec is not None:
            required = spec.required and name not in optional
            columns[name] = _check_column(columns[name], spec, required, source, first_row)
        elif name in _SHAPES:
            numbers, dtype = _check_column(columns[name], _SHAPES[name], False, source, first_row), columns[name].dtype
            # Counts stay counts, as they were given.
            columns[name] = columns[name] if isinstance(dtype, np.dtype) and dtype.kind in "iuf" else numbers
    if "corunners" in columns:
        columns["corunners"] = _in_one_spelling(columns, source, first_row)
    checked = pd.DataFrame(columns)
    _check_unique_ids(checked, source, first_row)
    _check_samples(checked, source, first_row)
    checked.attrs = attrs
    return checked


def _check_column(values: pd.Series, spec: Column, required: bool, source: str, first_row: int) -> pd.Series:
    if spec.kind in ("numbers", "integers"):
        return _check_lists(values, spec, source, first_row)
    good = _as_it_should_be(values, spec)
    if good is not None:
        return good
    if spec.kind == "text":
        return _check_text(values, spec, required, source, first_row)
    missing = is_missing(values)
    numbers = as_numbers(values)
    at = _first(numbers.isna() & ~missing)
    if at is not None:
        _fail(f"{_shown(values.iloc[at])} is not a number", spec, source, first_row, at)
    at = _first(missing) if required else None
    if at is not None:
        _fail("the value is missing (NaN)", spec, source, first_row, at)
    at = _first(np.isinf(numbers))
    if at is not None:
        _fail(f"{_shown(values.iloc[at])} is not finite", spec, source, first_row, at)
    if spec.lower is not None:
        at = _first(numbers <= spec.lower if spec.strict else numbers < spec.lower)
        if at is not None:
            bound = "greater than" if spec.strict else "at least"
            least = f"{spec.lower:g} {spec.unit}".rstrip()
            _fail(f"{numbers.iloc[at]:.6g} is not {bound} {least}", spec, source, first_row, at)
    return numbers


def _as_it_should_be(values: pd.Series, spec: Column) -> pd.Series | None:
    """The column as it should be, if nothing in it needs a second look: nearly every column, and much faster."""
    if spec.kind == "text":
        labels = values.tolist()
        # Non-ASCII text may hold what UTF-8 cannot.
        plain = all(type(v) is str and v and v.isascii() and v == v.strip() for v in labels)
        if plain and (not spec.choices or set(labels) <= set(spec.choices)) and not _mislabelled(set(labels), spec):
            return pd.Series(labels, index=values.index, dtype=object, name=values.name)
    elif values.dtype == np.float64 or values.dtype == np.int64:
        numbers = values.to_numpy(dtype=np.float64)
        low = -np.inf if spec.lower is None else spec.lower
        if np.isfinite(numbers).all() and ((numbers > low) if spec.strict else (numbers >= low)).all():
            return values.astype("float64")
    return None


def is_missing(values: pd.Series) -> pd.Series:
    """Boolean per row: no value, or blank text."""
    if pd.api.types.is_numeric_dtype(values.dtype):
        return values.isna()
    if isinstance(values.dtype, pd.StringDtype):
        return values.isna() | (values.str.strip() == "").fillna(False).astype(bool)
    plain = values.astype(object)
    return values.isna() | plain.map(lambda v: isinstance(v, str) and not v.strip()).astype(bool)


def as_numbers(values: pd.Series) -> pd.Series:
    """Values as float64, NaN where they are not numbers; a date, a truth value or a complex number is none."""
    if pd.api.types.is_float_dtype(values.dtype) or pd.api.types.is_integer_dtype(values.dtype):
        return values.astype("float64")
    return values.astype(object).map(_number).astype("float64")


def _number(value: Any) -> float:
    if isinstance(value, bool | np.bool_ | bytes | complex) or value is None or value is pd.NA:
        return math.nan
    if isinstance(value, str) and "_" in value:
        # Python's float() takes 1_000; no data file means that.
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        return math.nan


def _check_text(values: pd.Series, spec: Column, required: bool, source: str, first_row: int) -> pd.Series:
    missing = is_missing(values)
    at = _first(missing) if required else None
    if at is not None:
        _fail("the value is missing", spec, source, first_row, at)
    if isinstance(values.dtype, pd.StringDtype):
        # Few labels, many rows: each label is looked at once.
        text = values.map({label: as_text(label) for label in values.dropna().unique()}).astype(object)
    else:
        text = values.astype(object).map(as_text).astype(object)
    at = _first(~missing & text.isna())
    if at is not None:
        _fail(f"{_shown(values.iloc[at])} is not text", spec, source, first_row, at)
    text = text.where(~missing, None)
    if spec.choices:
        at = _first(~missing & ~text.isin(spec.choices))
        if at is not None:
            _fail(f"{_shown(text.iloc[at])} is none of: {', '.join(spec.choices)}", spec, source, first_row, at)
    wrong = _mislabelled(set(text[~missing]), spec)
    at = _first(text.isin(list(wrong))) if wrong else None
    if at is not None:
        _fail(wrong[text.iloc[at]], spec, source, first_row, at)
    return text


def _mislabelled(values: set[str], spec: Column) -> dict[str, str]:
    """What is wrong with values of a column whose labels are known, by value; empty where nothing is."""
    problems = {}
    for value in values if spec.labels else ():
        words = value.split("+")
        unknown = [word for word in words if not any(word in names for names in spec.labels)]
        if unknown:
            known = nearest_first(unknown[0], [name for names in spec.labels for name in names])
            problems[value] = f"{_shown(unknown[0])} is no {spec.name}; there are: {', '.join(known)}, joined by +"
        elif any(sum(word in names for word in words) > 1 for names in spec.labels):
            problems[value] = f"{_shown(value)} contradicts or repeats itself: give one of each pair, such as hot+burst"
    return problems


def _check_lists(values: pd.Series, spec: Column, source: str, first_row: int) -> pd.Series:
    """Lists of positive numbers (or of counts, for integers); None where there is none."""
    lists: list[Any] = []
    for at, value in enumerate(values.astype(object)):
        absent = value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))
        if absent or (isinstance(value, str) and not value.strip()):
            lists.append(None)
            continue
        try:
            numbers = np.asarray(json.loads(value) if isinstance(value, str) else value)
        except ValueError:
            numbers = np.array("")
        if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iuf"):
            _fail("not a list of numbers; in CSV write it as [1.5, 2.5]", spec, source, first_row, at)
        wrong = ~np.isfinite(numbers) | (numbers < 0 if spec.kind == "integers" else numbers <= 0)
        if spec.kind == "integers":
            wrong |= numbers != np.floor(numbers)
        if wrong.any():
            what = "a count" if spec.kind == "integers" else "a positive number"
            _fail(
                f"its element {int(np.argmax(wrong))}, {numbers[wrong][0]}, is not {what}", spec, source, first_row, at
            )
        lists.append(numbers.astype("int64" if spec.kind == "integers" else "float64"))
    return pd.Series(lists, index=values.index, dtype=object)


def as_text(value: Any) -> str | None:
    """One cell as a label, stripped; None if it is no text: a list, a mapping, what UTF-8 cannot hold."""
    try:
        value = value.decode() if isinstance(value, bytes) else value
        str(value).encode()
    except UnicodeError:
        return None
    if isinstance(value, Mapping | list | tuple | set | np.ndarray) or value is None:
        return None
    # 2024.0 read from a column with gaps means the label 2024.
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _in_one_spelling(columns: Mapping[str, Any], source: str, first_row: int) -> pd.Series:
    """The column ``corunners`` with one label for one mix."""
    values: pd.Series = columns["corunners"]
    canonical: dict[str, str] = {}
    for label in values.dropna().unique():
        try:
            canonical[label] = corunners.canonical(label)
        except ValueError as error:
            at = int(np.flatnonzero((values == label).to_numpy(bool))[0])
            _fail(str(error), _BY_NAME["corunners"], source, first_row, at)
    if all(label == spelled for label, spelled in canonical.items()):
        return values
    # Where each runs is told in the order of the shapes; without them, in that of the label.
    told, shapes = (
        columns.get(name, pd.Series(None, index=values.index)) for name in ("corunner_cpus", "corunner_shapes")
    )
    ordered = told.notna().to_numpy() & shapes.isna().to_numpy()
    spelled: pd.Series = values.map(canonical).astype(object)
    return spelled.where(~ordered & values.notna().to_numpy(), values)


def _check_unique_ids(table: pd.DataFrame, source: str, first_row: int) -> None:
    if "measurement_id" in table:
        ids = table["measurement_id"]
        at = _first(ids.notna() & ids.duplicated())
        if at is not None:
            _fail(f"{_shown(ids.iloc[at])} is given twice", _BY_NAME["measurement_id"], source, first_row, at)


def _check_samples(table: pd.DataFrame, source: str, first_row: int) -> None:
    if not {"samples_s", "samples_iterations"} <= set(table.columns):
        return
    for at, (samples, counts) in enumerate(zip(table["samples_s"], table["samples_iterations"], strict=True)):
        if _length(samples) != _length(counts):
            problem = f"{_length(samples)} samples but {_length(counts)} iteration counts"
            _fail(problem, _BY_NAME["samples_s"], source, first_row, at)


def _shown(value: Any) -> str:
    """A cell as an error message shows it: short, and without NumPy's wrapping."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _length(value: Any) -> int:
    return len(value) if hasattr(value, "__len__") and not isinstance(value, str) else 0


def _first(mask: Any) -> int | None:
    where = np.flatnonzero(np.asarray(mask, dtype=bool))
    return int(where[0]) if len(where) else None


def _fail(problem: str, spec: Column, source: str, first_row: int, at: int) -> None:
    raise TableError(problem, source=source, row=first_row + at, column=spec.name)


def rows_for(table: pd.DataFrame, role: Literal["fit", "heldout"]) -> pd.DataFrame:
    """Rows of one role; an absent role means ``fit``. Keeps ``attrs``."""
    if "role" not in table:
        return table if role == "fit" else table.iloc[:0]
    held = is_heldout(table)
    return table[held if role == "heldout" else ~held].reset_index(drop=True)


def is_heldout(table: pd.DataFrame) -> np.ndarray:
    """Boolean per row, shape (n_rows,): whether the row is left for validation."""
    if "role" not in table:
        return np.zeros(len(table), dtype=bool)
    return np.asarray((table["role"] == "heldout").to_numpy(dtype=bool))


# Flags: labels joined by "+".

EXCLUDED = "excluded"
"""Label beside the reason's own label: a recorded rule leaves this row out of fits."""


def add_flag(flags: str | None, label: str) -> str:
    """Add a label to a flags cell; labels stay unique and sorted."""
    return "+".join(sorted({*(flags.split("+") if flags else ()), label}))


def has_flag(table: pd.DataFrame, label: str) -> np.ndarray:
    """Boolean per row, shape (n_rows,): whether the row carries `label`."""
    if "flags" not in table:
        return np.zeros(len(table), dtype=bool)
    return np.array([isinstance(f, str) and label in f.split("+") for f in table["flags"]], dtype=bool)


def with_flags(table: pd.DataFrame, mask: np.ndarray, *labels: str) -> pd.DataFrame:
    """Add labels to the flags of the rows where `mask` (boolean, shape (n_rows,)) holds; a shallow copy."""
    old = table["flags"] if "flags" in table else [None] * len(table)
    flags = [f if isinstance(f, str) and f else None for f in old]
    for at in np.flatnonzero(mask):
        for label in labels:
            flags[at] = add_flag(flags[at], label)
    return table.assign(flags=pd.Series(flags, dtype=object, index=table.index))


def is_excluded(table: pd.DataFrame) -> np.ndarray:
    """Boolean per row, shape (n_rows,): whether a recorded rule leaves the row out of fits."""
    return has_flag(table, EXCLUDED)


# Content ids.


def with_ids(table: pd.DataFrame, *, source: str) -> pd.DataFrame:
    """Give every row without one its ``measurement_id``: a hash of its content, its source and its ordinal.

    Equal rows of one source differ by their ordinal, so nothing measured twice is merged by accident.
    """
    table = table.copy(deep=False)
    old = table["measurement_id"] if "measurement_id" in table else pd.Series([None] * len(table), dtype=object)
    names = [str(n) for n in table.columns if n != "measurement_id"]
    seen: dict[str, int] = {}
    ids = []
    for existing, row in zip(old, _records(table, names), strict=True):
        if isinstance(existing, str):
            ids.append(existing)
            continue
        content = canonical(row)
        ordinal = seen[content] = seen.get(content, -1) + 1
        ids.append(hashlib.sha256(f"{content}|{source}|{ordinal}".encode(errors="backslashreplace")).hexdigest()[:16])
    table["measurement_id"] = pd.Series(ids, dtype=object, index=table.index)
    return table


def _records(table: pd.DataFrame, names: list[str]) -> Iterator[dict[str, Any]]:
    for values in zip(*(table[name] for name in names), strict=True):
        yield dict(zip(names, values, strict=True))


def canonical(record: Mapping[str, Any]) -> str:
    """Canonical JSON of a record: sorted keys, shortest float repr, absent values left out."""
    return json.dumps(_plain(record), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        plain = {str(k): _plain(v) for k, v in value.items()}
        return {k: v for k, v in plain.items() if v is not None}
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, float):
        if math.isnan(value):
            return None
        # 3.0 and 3 are one value, whichever file format it came through.
        return (
            int(value) if value.is_integer() and abs(value) < 2**53 else value if math.isfinite(value) else repr(value)
        )
    return value if isinstance(value, bool | int | str) else str(value)

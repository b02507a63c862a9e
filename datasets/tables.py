"""Reading the sources' files, with errors that name the file."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bayesperf.dataset import SourceFile
from bayesperf.datasets.fetch import refuse_pointer
from bayesperf.errors import TableError, UnsupportedFileError
from bayesperf.schema import as_numbers, is_missing

__all__ = ["numbers", "read_csv", "read_parquet", "require"]

Array = NDArray[np.float64]

LARGEST = 1e30
"""Far beyond any size or time, and small enough that the work of a shape cannot overflow."""


def read_csv(file: SourceFile, columns: Iterable[str] | None = None) -> pd.DataFrame:
    """Read a source's CSV; of `columns` those that are there, None: all.

    Raises
    ------
    UnsupportedFileError, TableError
        Not CSV, a Git LFS pointer, or without rows.
    """
    refuse_pointer(file)
    wanted = None if columns is None else frozenset(columns)
    try:
        with warnings.catch_warnings():
            # Rows longer than the header: pandas would cut them, or shift every column by one.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table: pd.DataFrame = pd.read_csv(file.local, index_col=False, low_memory=False)
    except (ValueError, OSError, pd.errors.ParserWarning) as error:
        raise UnsupportedFileError(f"{file.path}: cannot be read as CSV: {_first_line(error)}") from error
    _has_rows(table, file)
    if wanted is not None:
        table = table[[name for name in table.columns if name in wanted]]
    return table


def read_parquet(file: SourceFile) -> pd.DataFrame:
    """Read a source's Parquet file.

    Raises
    ------
    UnsupportedFileError, TableError
        Damaged, not Parquet, a Git LFS pointer, or without rows.
    """
    refuse_pointer(file)
    try:
        table: pd.DataFrame = pq.read_table(file.local).to_pandas(ignore_metadata=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UnsupportedFileError(f"{file.path}: cannot be read as Parquet: {_first_line(error)}") from error
    _has_rows(table, file)
    return table


def _has_rows(table: pd.DataFrame, file: SourceFile) -> None:
    if not len(table):
        raise TableError("the file has no rows", source=file.path)


def require(table: pd.DataFrame, columns: Iterable[str], file: SourceFile) -> None:
    """Refuse a file that lacks columns: the source's schema is what makes a local copy acceptable.

    Raises
    ------
    TableError
        Names the file and the missing columns.
    """
    missing = [name for name in columns if name not in table.columns]
    if missing:
        have = ", ".join(map(str, table.columns[:20]))
        raise TableError(f"column(s) missing: {', '.join(missing)}; the file has: {have}", source=file.path)


def numbers(table: pd.DataFrame, column: str, file: SourceFile, *, missing: bool = False) -> Array:
    """Column of a source's file as float64; with `missing`, absent values are NaN.

    Raises
    ------
    TableError
        A cell is no number, or beyond any size or time: names file, row (the line of a CSV file) and column.
    """
    values = table[column]
    found = as_numbers(values)
    bad = found.isna() & ~is_missing(values) if missing else found.isna()
    bad |= found.abs() > LARGEST
    if bad.any():
        at = int(np.flatnonzero(bad.to_numpy())[0])
        first = 2 if file.path.endswith(".csv") else 0
        cell = values.iloc[at]
        shown = str(cell.item() if isinstance(cell, np.generic) else cell)[:60]
        problem = f"{shown!r} is not a number up to {LARGEST:g}"
        raise TableError(problem, source=file.path, row=int(str(values.index[at])) + first, column=column)
    converted: Array = found.to_numpy("float64")
    return converted


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__

"""Reading the sources' files, with errors that name the file."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bayesperf.dataset import SourceFile
from bayesperf.datasets.fetch import refuse_pointer
from bayesperf.errors import TableError, UnsupportedFileError

__all__ = ["numbers", "read_csv", "read_parquet", "require"]

Array = NDArray[np.float64]


def read_csv(file: SourceFile, columns: Iterable[str] | None = None) -> pd.DataFrame:
    """Read a source's CSV; of `columns` those that are there, None: all.

    Raises
    ------
    UnsupportedFileError
        Not CSV, or a Git LFS pointer.
    """
    refuse_pointer(file)
    wanted = None if columns is None else frozenset(columns)
    try:
        return pd.read_csv(file.local, usecols=None if wanted is None else lambda name: name in wanted)
    except (ValueError, OSError) as error:
        raise UnsupportedFileError(f"{file.path}: cannot be read as CSV: {_first_line(error)}") from error


def read_parquet(file: SourceFile) -> pd.DataFrame:
    """Read a source's Parquet file.

    Raises
    ------
    UnsupportedFileError
        Damaged, not Parquet, or a Git LFS pointer.
    """
    refuse_pointer(file)
    try:
        table: pd.DataFrame = pq.read_table(file.local).to_pandas(ignore_metadata=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UnsupportedFileError(f"{file.path}: cannot be read as Parquet: {_first_line(error)}") from error
    return table


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
        A cell is not a number: names file, row (the line of a CSV file) and column.
    """
    values = table[column]
    found = pd.to_numeric(values, errors="coerce")
    bad = found.isna() & values.notna() if missing else found.isna()
    bad |= np.isinf(found.astype("float64"))
    if bad.any():
        at = int(np.flatnonzero(bad.to_numpy())[0])
        first = 2 if file.path.endswith(".csv") else 0
        cell = values.iloc[at]
        problem = f"{cell.item() if isinstance(cell, np.generic) else cell!r} is not a finite number"
        raise TableError(problem, source=file.path, row=int(str(values.index[at])) + first, column=column)
    converted: Array = found.to_numpy("float64")
    return converted


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__

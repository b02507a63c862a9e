"""Reading the sources' files, with errors that name the file."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from bayesperf.dataset import SourceFile
from bayesperf.datasets.fetch import refuse_pointer
from bayesperf.errors import TableError, UnsupportedFileError

__all__ = ["read_csv", "read_parquet", "require"]


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


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__

"""Reading the table that a mapping describes: CSV as text cells, or Parquet, both with bounds."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from bayesperf.errors import InputError, TableError, UnsupportedFileError
from bayesperf.formats.source import Line, Source

__all__ = ["MAX_CELLS", "read"]

MAX_COLUMNS = 2_000
MAX_CELLS = 20_000_000
"""Cells of one table, Parquet's counted before anything is decompressed."""


def read(source: Source, settings: dict[str, Any]) -> tuple[pd.DataFrame, int]:
    """Read a table; CSV cells stay text.

    Returns
    -------
    table
        The file's columns under their own names.
    first_row
        Number of the first row as the user sees it: a line of the CSV file, 0 for Parquet.

    Raises
    ------
    TableError, UnsupportedFileError
        Damaged, too large, or a line with another number of cells than the header.
    """
    if source.head[:4] == b"PAR1":
        return _parquet(source), 0
    if source.path.suffix == ".parquet":
        raise UnsupportedFileError(f"{source.path}: not a Parquet file, or truncated")
    return _csv(source, settings)


def _parquet(source: Source) -> pd.DataFrame:
    try:
        metadata = pq.read_metadata(source.path)
        if metadata.num_rows * max(metadata.num_columns, 1) > MAX_CELLS or metadata.num_columns > MAX_COLUMNS:
            raise UnsupportedFileError(
                f"{source.path}: {metadata.num_rows} rows of {metadata.num_columns} columns are more than "
                f"{MAX_CELLS} cells: split it"
            )
        size = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
        if size > 2**31:
            raise UnsupportedFileError(f"{source.path}: {size} bytes when decompressed: split it")
        arrow = pq.read_table(source.path)
        flat = [f.name for f in arrow.schema if not pa.types.is_nested(f.type)]
        table: pd.DataFrame = arrow.select(flat).replace_schema_metadata(None).to_pandas()
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = str(error).splitlines()[0][:200]
        raise UnsupportedFileError(f"{source.path}: truncated or damaged Parquet file: {reason}") from error
    if table.columns.duplicated().any():
        raise UnsupportedFileError(
            f"{source.path}: the column {table.columns[table.columns.duplicated()][0]!r} appears twice"
        )
    return table


def _csv(source: Source, settings: dict[str, Any]) -> tuple[pd.DataFrame, int]:
    skip, comment = settings.get("skip_lines", 0), settings.get("comment")
    if not isinstance(skip, int) or isinstance(skip, bool) or skip < 0:
        raise InputError("mapping: [table] skip_lines must be a whole number")
    if comment is not None and (not isinstance(comment, str) or not comment):
        raise InputError("mapping: [table] comment must be text")
    lines = _content(source, skip, comment)
    header = next(lines, None)
    if header is None:
        raise UnsupportedFileError(f"{source.path}: no header line")
    separator = settings.get("separator") or max(",;\t|", key=header.text.count)
    if not isinstance(separator, str) or len(separator) != 1:
        raise InputError("mapping: [table] separator must be one character")
    names = [name.strip() for name in _cells(source, header, separator)]
    if len(names) > MAX_COLUMNS:
        raise UnsupportedFileError(f"{source.path}: {len(names)} columns are more than {MAX_COLUMNS}")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UnsupportedFileError(f"{source.path}: the column {twice!r} appears twice in line {header.number}")
    columns: list[list[str | None]] = [[] for _ in names]
    first, count = header.number + 1, 0
    for line in lines:
        cells = _cells(source, line, separator)
        if len(cells) != len(names):
            problem = f"{len(cells)} cells under {len(names)} columns (a decimal comma, or a quoted line break?)"
            raise TableError(problem, source=str(source.path), row=line.number)
        if not count:
            first = line.number
        count += 1
        if count * len(names) > MAX_CELLS:
            raise UnsupportedFileError(f"{source.path}: more than {MAX_CELLS} cells: split it")
        for column, cell in zip(columns, cells, strict=True):
            column.append(cell.strip() or None)
    if source.noise:
        # A row must not vanish because its line is long.
        raise UnsupportedFileError(
            f"{source.path}: {source.noise.examples['long line'][0]}; not a table of measurements"
        )
    if not count:
        raise TableError("the table has no rows", source=str(source.path))
    return pd.DataFrame(dict(zip(names, (pd.Series(c, dtype=object) for c in columns), strict=True))), first


def _content(source: Source, skip: int, comment: str | None) -> Iterator[Line]:
    for line in itertools.islice(source.lines(log=False), skip, None):
        if line.text.strip() and not (comment and line.text.lstrip().startswith(comment)):
            yield line


def _cells(source: Source, line: Line, separator: str) -> list[str]:
    try:
        return next(csv.reader([line.text], delimiter=separator, strict=True), [])
    except (csv.Error, TypeError, ValueError) as error:
        raise UnsupportedFileError(f"{source.path}: line {line.number} cannot be read as CSV: {error}") from None

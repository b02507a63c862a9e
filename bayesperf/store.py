"""Tables on disk: Parquet with provenance, written atomically; reading, verifying, joining."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from bayesperf.errors import InputError, TableError, UnsupportedFileError
from bayesperf.schema import COLUMNS, SCHEMA_VERSION, canonical, validate, validate_workloads, with_ids

__all__ = [
    "atomic_write",
    "concat",
    "provenance_id",
    "provenance_of",
    "read_measurements",
    "read_table",
    "read_workloads",
    "with_provenance",
    "write_failures",
    "write_measurements",
]

_TEXT = frozenset(column.name for column in COLUMNS if column.kind == "text")

METADATA_KEY = b"bayesperf"
PROVENANCE = "provenance"
"""Key in ``DataFrame.attrs`` under which provenance records travel: {provenance_id: record}."""


def atomic_write(path: str | Path, write: Callable[[Path], None]) -> None:
    """Write a file so that readers see the old or the new one, never a half.

    Parameters
    ----------
    path
        Where the file ends up.
    write
        Called with a temporary path in the same folder; what it leaves there is flushed, then renamed.

    Raises
    ------
    InputError
        The path is a folder, or lies where nothing can be written.
    """
    # Through a symbolic link, so that the link stays one.
    path = Path(path).resolve()
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name a file in it")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name[:64]}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error
    os.close(handle)
    temporary = Path(name)
    try:
        temporary.chmod(0o644)
        write(temporary)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Provenance.


def provenance_id(record: Mapping[str, Any]) -> str:
    """Content hash of a provenance record."""
    return hashlib.sha256(canonical(record).encode()).hexdigest()[:16]


def provenance_of(table: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Provenance records that travel with a table: {provenance_id: record}."""
    return dict(table.attrs.get(PROVENANCE, {}))


def with_provenance(table: pd.DataFrame, records: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Attach provenance records to a table (a shallow copy)."""
    table = table.copy(deep=False)
    table.attrs = {**table.attrs, PROVENANCE: {**provenance_of(table), **records}}
    return table


# Writing.


def write_measurements(table: pd.DataFrame, path: str | Path, *, extra: Mapping[str, Any] | None = None) -> None:
    """Write a measurement table as Parquet, atomically, with its provenance records and ids.

    Parameters
    ----------
    table
        A valid measurement table; rows without a ``measurement_id`` are given one.
    path
        Ends in ``.parquet``.
    extra
        Further JSON-able facts for the file's metadata, such as the plan.

    Raises
    ------
    TableError
        The table breaks the contract; nothing is written.
    """
    path = _parquet(path)
    # What the ids were made with, for whoever makes them again: `bayesperf verify`.
    made = {} if "measurement_id" in table else {"source": path.name}
    table = with_ids(validate(table, source=str(path)), source=path.name)
    _write(table, path, {"kind": "measurements", **made, **(extra or {})})


def write_failures(table: pd.DataFrame, path: str | Path) -> None:
    """Write the failures table of a measurement file (``<name>.failures.parquet`` beside it), atomically."""
    _write(table, _parquet(path), {"kind": "failures"})


def _parquet(path: str | Path) -> Path:
    path = Path(path)
    if path.suffix != ".parquet":
        raise InputError(f"{path}: measurements are written as Parquet; name the file *.parquet")
    return path


def _write(table: pd.DataFrame, path: Path, facts: Mapping[str, Any]) -> None:
    facts = {"schema_version": SCHEMA_VERSION, PROVENANCE: provenance_of(table), **facts}
    columns = {str(name): _arrow(table[name]) for name in table.columns}
    arrow = pa.table(columns) if columns else pa.table({})
    metadata = {**(arrow.schema.metadata or {}), METADATA_KEY: json.dumps(facts, sort_keys=True).encode()}
    arrow = arrow.replace_schema_metadata(metadata)
    atomic_write(path, lambda temporary: pq.write_table(arrow, temporary, compression="zstd"))


def _arrow(values: pd.Series) -> pa.Array:
    try:
        array = pa.Array.from_pandas(values)
        if not (pa.types.is_struct(array.type) and not array.type.num_fields):
            return array
    except (pa.ArrowException, OverflowError, UnicodeError):
        pass
    # An unknown column of mixed kinds, such as 1 and "a": kept as the text of its values.
    text = [None if pd.api.types.is_scalar(v) and pd.isna(v) else str(v) for v in values]
    return pa.array([t and t.encode(errors="backslashreplace").decode() for t in text], pa.string())


# Reading.


def read_measurements(path: str | Path) -> pd.DataFrame:
    """Read a measurement table, CSV or Parquet, ours or anybody's that has the required columns.

    Returns
    -------
    DataFrame
        Checked against the contract; every row has a ``measurement_id``; provenance records are in
        ``attrs["provenance"]``, further facts of our own files in ``attrs["facts"]``.

    Raises
    ------
    TableError
        Names file, row and column.
    UnsupportedFileError
        Truncated, foreign, or of a newer version.
    """
    return with_ids(_read_checked(Path(path), validate), source=Path(path).name)


def read_workloads(path: str | Path) -> pd.DataFrame:
    """Read a table of workloads to predict, CSV or Parquet: like `read_measurements`, but without target and time.

    Raises
    ------
    TableError, UnsupportedFileError
        As `read_measurements`.
    """
    return _read_checked(Path(path), validate_workloads)


def _read_checked(path: Path, check: Callable[..., pd.DataFrame]) -> pd.DataFrame:
    table, first_row = read_table(path)
    try:
        return check(table, source=str(path), first_row=first_row)
    except TableError as error:
        if first_row == 0 or error.row is None:
            raise
        line = _line_of(path, error.row - first_row)
        raise TableError(error.problem, source=error.source, row=line, column=error.column) from None


def read_table(path: str | Path, *, comment: str | None = None) -> tuple[pd.DataFrame, int]:
    """Read CSV or Parquet without checking its columns; also returns the number of its first row for messages.

    CSV is UTF-8 text with a header line, separated by commas, semicolons or tabs; numbers have a decimal point.

    Parameters
    ----------
    path
        The file.
    comment
        Character that starts a comment in CSV, or None.

    Raises
    ------
    InputError, UnsupportedFileError
        The file does not exist or is neither.
    """
    path = Path(path)
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "is not a regular file" if path.exists() else "no such file"
        raise InputError(f"{path}: {what}")
    with path.open("rb") as file:
        start = file.read(4096)
    if start[:4] == b"PAR1":
        return _read_parquet(path), 0
    if path.suffix == ".parquet":
        raise UnsupportedFileError(f"{path}: not a Parquet file (it starts with {start[:4]!r}), or truncated")
    if b"\0" in start:
        raise UnsupportedFileError(f"{path}: neither UTF-8 text (CSV) nor Parquet; it starts with {start[:4]!r}")
    return _read_csv(path, comment), 2


def _read_csv(path: Path, comment: str | None) -> pd.DataFrame:
    try:
        separator = _separator(path, comment)
        options: dict[str, Any] = {"sep": separator, "skipinitialspace": True, "comment": comment}
        header = pd.read_csv(path, header=None, nrows=1, dtype=str, encoding="utf-8-sig", **options)
        names = [f"Unnamed: {at}" if pd.isna(name) else name.strip() for at, name in enumerate(header.iloc[0])]
        repeated = [name for name in names if names.count(name) > 1]
        if repeated:
            raise TableError("this column appears twice", source=str(path), column=repeated[0])
        # As text: an id of digits and an "e" is no number, and the label 007 is not 7.
        texts = {at: str for at, name in enumerate(names) if name in _TEXT}
        with warnings.catch_warnings():
            # Rows longer than the header: pandas would cut them, or shift every column by one.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table: pd.DataFrame = pd.read_csv(
                path, header=0, names=names, index_col=False, dtype=texts, low_memory=False, **options
            )
    except (ValueError, UnicodeDecodeError, pd.errors.ParserWarning) as error:
        if isinstance(error, InputError):
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, pd.errors.ParserWarning):
            reason = "rows have more fields than the header"
        raise UnsupportedFileError(f"{path}: cannot be read as CSV (UTF-8 text with a header): {reason}") from error
    return table


def _separator(path: Path, comment: str | None) -> str:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        lines = (line for line in file if line.strip() and not (comment and line.startswith(comment)))
        header = next(lines, "")
    return max(",;\t", key=header.count)


def _line_of(path: Path, record: int) -> int:
    """Line on which a 0-based record of a CSV file starts: blank lines and quoted line breaks count."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=_separator(path, None))
        seen, start = -2, 1
        for fields in reader:
            if any(fields):
                seen += 1
                if seen == record:
                    break
            start = reader.line_num + 1
    return start


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        # One file, whatever else lies in its folder; in full, because damaged text would only show later.
        arrow = pq.ParquetFile(path).read()
        arrow.validate(full=True)
        index_free = {k: v for k, v in (arrow.schema.metadata or {}).items() if k == b"pandas"}
        table: pd.DataFrame = arrow.replace_schema_metadata(index_free).to_pandas()
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise UnsupportedFileError(f"{path}: truncated or damaged Parquet file: {reason}") from error
    facts = _facts(arrow.schema.metadata or {}, path)
    table.attrs = {PROVENANCE: facts.pop(PROVENANCE, {}), "facts": facts}
    return table


def _facts(metadata: Mapping[bytes, bytes], path: Path) -> dict[str, Any]:
    if METADATA_KEY not in metadata:
        return {}
    try:
        facts = json.loads(metadata[METADATA_KEY])
        version = int(facts["schema_version"])
        records = facts.setdefault(PROVENANCE, {})
        if not isinstance(records, dict) or not all(isinstance(record, dict) for record in records.values()):
            raise ValueError("provenance is not a table of records")
    except (ValueError, KeyError, TypeError) as error:
        raise UnsupportedFileError(f"{path}: its bayesperf metadata is damaged: {error}") from error
    if version > SCHEMA_VERSION:
        raise UnsupportedFileError(
            f"{path}: written by a newer bayesperf (schema {version}, this one reads up to {SCHEMA_VERSION}); upgrade"
        )
    return dict(facts)


# Joining.


def concat(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Join measurement tables of several hosts or days, with their provenance.

    A row that is in two of them with the same id and content is kept once.

    Raises
    ------
    TableError
        One id with two contents.
    """
    tables = [with_ids(validate(t, source=f"table {i}"), source=f"table {i}") for i, t in enumerate(tables, 1)]
    if not tables:
        raise InputError("nothing to join: give at least one table")
    records: dict[str, dict[str, Any]] = {}
    for table in tables:
        records.update(provenance_of(table))
        table.attrs = {}
    joined = pd.concat(tables, ignore_index=True)
    repeated = joined["measurement_id"].duplicated(keep=False)
    content: dict[str, str] = {}
    for at, row in joined[repeated].iterrows():
        text = canonical({str(k): v for k, v in row.items()})
        if content.setdefault(row["measurement_id"], text) != text:
            problem = f"id {row['measurement_id']!r} is given twice, with different contents"
            raise TableError(problem, source="joined tables", row=int(str(at)), column="measurement_id")
    joined = joined.drop_duplicates("measurement_id", ignore_index=True)
    joined.attrs = {PROVENANCE: records}
    return joined

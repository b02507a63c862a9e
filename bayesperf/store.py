"""Tables on disk: Parquet with provenance, written atomically; reading, verifying, joining."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from bayesperf.errors import InputError, TableError, UnsupportedFileError
from bayesperf.schema import SCHEMA_VERSION, canonical, validate, with_ids

__all__ = [
    "atomic_write",
    "concat",
    "provenance_id",
    "provenance_of",
    "read_measurements",
    "read_table",
    "with_provenance",
    "write_failures",
    "write_measurements",
]

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
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
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
    table = with_ids(validate(table, source=str(path)), source=path.name)
    _write(table, path, {"kind": "measurements", **(extra or {})})


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
    plain = table.copy(deep=False)
    plain.attrs = {}
    for name in plain.columns:
        if name in ("samples_s", "samples_iterations"):
            lists = [v if isinstance(v, Iterable) and not isinstance(v, str) else None for v in plain[name]]
            plain[name] = pd.Series(lists, dtype=object, index=plain.index)
    arrow = pa.Table.from_pandas(plain, preserve_index=False)
    metadata = {**(arrow.schema.metadata or {}), METADATA_KEY: json.dumps(facts, sort_keys=True).encode()}
    arrow = arrow.replace_schema_metadata(metadata)
    atomic_write(path, lambda temporary: pq.write_table(arrow, temporary, compression="zstd"))


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
    path = Path(path)
    table, first_row = read_table(path)
    return with_ids(validate(table, source=str(path), first_row=first_row), source=path.name)


def read_table(path: str | Path) -> tuple[pd.DataFrame, int]:
    """Read CSV or Parquet without checking its columns; also returns the number of its first row for messages.

    Raises
    ------
    InputError, UnsupportedFileError
        The file does not exist or is neither.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    with path.open("rb") as file:
        magic = file.read(4)
    if magic == b"PAR1":
        return _read_parquet(path), 0
    if path.suffix == ".parquet" or b"\0" in magic:
        raise UnsupportedFileError(f"{path}: not a Parquet file (it starts with {magic!r}), or truncated")
    try:
        return pd.read_csv(path), 2
    except (ValueError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnsupportedFileError(f"{path}: cannot be read as CSV: {reason}") from error


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        arrow = pq.read_table(path)
        index_free = {k: v for k, v in (arrow.schema.metadata or {}).items() if k == b"pandas"}
        table: pd.DataFrame = arrow.replace_schema_metadata(index_free).to_pandas()
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
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

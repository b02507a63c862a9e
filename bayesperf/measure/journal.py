"""The journal of a run: one JSON line per finished point, flushed to disk before the next begins."""

from __future__ import annotations

import errno
import fcntl
import io
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from bayesperf.errors import InputError, UnsupportedFileError

__all__ = ["Journal", "exclusive", "journal_path", "lock_path", "read_journal"]

MAGIC = "bayesperf-journal"
JOURNAL_VERSION = 1


def journal_path(out: Path) -> Path:
    """Journal of a measurement file."""
    return out.with_name(f"{out.name}.journal.jsonl")


def lock_path(out: Path) -> Path:
    """Lock of a measurement file."""
    return out.with_name(f"{out.name}.lock")


@contextmanager
def exclusive(out: Path) -> Iterator[None]:
    """Hold the only right to write `out`; the system gives it back when the process ends, however it ends.

    Raises
    ------
    InputError
        Another run holds it, or its folder cannot be written.
    """
    path = lock_path(out)
    while True:
        with _opened(path, out) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise InputError(f"{out}: another run is writing it; wait for it or name another file") from error
            if not _same_file(path, file):
                continue  # its last holder deleted it between our opening and locking it
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def _opened(path: Path, out: Path) -> IO[str]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("a")
    except OSError as error:
        raise InputError(f"{out}: cannot be written: {error.strerror}") from error


def _same_file(path: Path, file: IO[str]) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def read_journal(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]], int] | None:
    """Header, entries, and the length in byte of what is intact; None if there is no journal yet.

    A last line that a crash cut short is left out: its point was in flight.

    Raises
    ------
    UnsupportedFileError
        Not a journal, of a newer version, or damaged before its end.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    whole = content[: content.rfind(b"\n") + 1]
    if not whole:
        return None
    lines = whole.splitlines()
    records = [_record(line, path, number, last=number == len(lines)) for number, line in enumerate(lines, 1)]
    intact = len(whole)
    if records[-1] is None and len(records) > 1:
        intact -= len(lines[-1]) + 1
        records.pop()
    header = records[0]
    if header is None or header.get("kind") != MAGIC:
        raise UnsupportedFileError(f"{path}: not a bayesperf journal; move it away or name another output file")
    if int(header.get("version", 0)) > JOURNAL_VERSION:
        raise UnsupportedFileError(f"{path}: written by a newer bayesperf; upgrade, or name another output file")
    return header, [r for r in records[1:] if r is not None], intact


def _record(line: bytes, path: Path, number: int, last: bool) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
        if isinstance(record, dict):
            return record
    except (ValueError, UnicodeDecodeError):
        pass
    if last:
        return None
    raise UnsupportedFileError(f"{path}, line {number}: damaged; move the journal away to start anew")


class Journal:
    """Appends to a journal; every entry is on disk when `append` returns.

    Parameters
    ----------
    path
        File, made if absent; what a crash left half-written at its end is cut off.
    header
        Facts of the first line, such as the plan, used when the file is made.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]):
        self.path = path
        found = read_journal(path)
        self.header: dict[str, Any]
        self.entries: list[dict[str, Any]]
        path.parent.mkdir(parents=True, exist_ok=True)
        if found is None:
            self.header, self.entries = {"kind": MAGIC, "version": JOURNAL_VERSION, **header}, []
            self._file: io.FileIO = path.open("wb", buffering=0)
            self._write(self.header)
        else:
            self.header, self.entries, intact = found
            self._file = path.open("r+b", buffering=0)
            self._file.truncate(intact)
            self._file.seek(intact)

    def append(self, entry: Mapping[str, Any]) -> None:
        """Add one entry.

        Raises
        ------
        InputError
            The disk is full or gone; what was written before stays.
        """
        self._write(entry)
        self.entries.append(dict(entry))

    def close(self) -> None:
        """Close the file; it stays on disk."""
        self._file.close()

    def remove(self) -> None:
        """Close and delete the file: its content has been merged."""
        self.close()
        self.path.unlink(missing_ok=True)

    def _write(self, entry: Mapping[str, Any]) -> None:
        line = json.dumps(entry, allow_nan=False).encode() + b"\n"
        at = self._file.tell()
        try:
            if self._file.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.truncate(at)
            self._file.seek(at)
            raise InputError(
                f"{self.path}: cannot be written ({error.strerror}); make room, then run the same command to go on"
            ) from error

"""What jobs read: tables and spec sheets as plain files, each with the hash of what is in it."""

from __future__ import annotations

import functools
import glob
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bayesperf import plugins
from bayesperf.batch.config import SHIPPED, Data
from bayesperf.errors import BayesperfError, InputError, UnknownNameError

__all__ = ["File", "Library", "Source", "matching", "sha256_of"]


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class File:
    """A file that a job reads.

    Parameters
    ----------
    path
        Where it lies on this machine, absolute.
    sha256
        Hash of its content.
    """

    path: str
    sha256: str

    @property
    def name(self) -> str:
        """Its name without folders; ids of measurements depend on it."""
        return Path(self.path).name

    def to_dict(self) -> dict[str, str]:
        """Plain values, for a task."""
        return {"path": self.path, "name": self.name, "sha256": self.sha256}


@dataclass(frozen=True, slots=True)
class Source:
    """Measurements that a job may be fitted to.

    Parameters
    ----------
    label
        Its name in the configuration.
    tables, heldout
        Files to join, and files to validate against (none: rows of `tables` with that role).
    specs
        Spec sheets, or None.
    problem
        Why it cannot be read, if that is known already: its jobs fail with this reason, the others run.
    """

    label: str
    tables: tuple[File, ...]
    heldout: tuple[File, ...] = ()
    specs: File | None = None
    problem: str | None = None


def matching(pattern: str, folder: Path, where: str) -> list[Path]:
    """Files that a path or a pattern names, sorted; relative ones are inside `folder`.

    Raises
    ------
    InputError
        There is none.
    """
    path = folder / pattern
    if path.is_file():
        return [path]
    found = sorted(Path(p) for p in glob.glob(str(path), recursive=True))
    # Beside a measured file lies the table of what failed, which nobody means by a pattern.
    found = [p for p in found if p.is_file() and not p.name.endswith(".failures.parquet")]
    if not found:
        what = "is a folder; name its files, such as folder/*.parquet" if path.is_dir() else "no such file"
        raise InputError(f"{where}: {pattern}: {what} (looked in {folder})")
    return found


class Library:
    """Resolves sources; each file is hashed once, each data set loaded once.

    Parameters
    ----------
    folder
        What relative paths are relative to.
    copies
        Folder that data sets, and the shipped spec sheets, are written into as plain files.
    """

    def __init__(self, folder: Path, copies: Path):
        self.folder, self.copies = folder, copies
        self.file = functools.cache(self._file)
        self.targets = functools.cache(self._targets)
        self._datasets: dict[str, tuple[tuple[File, ...], str | None]] = {}

    def _file(self, path: Path) -> File:
        return File(str(path.resolve()), sha256_of(path))

    def files(self, patterns: Iterable[str], where: str) -> tuple[File, ...]:
        """Files that patterns name, in their order, each once."""
        paths = [path for pattern in patterns for path in matching(pattern, self.folder, where)]
        return tuple(dict.fromkeys(self.file(path) for path in paths))

    def specs(self, named: str | None, where: str) -> File | None:
        """Spec sheets by the value of the key ``specs``."""
        if named is None:
            return None
        if named != SHIPPED:
            return self.files([named], where)[0]
        from bayesperf import datasets
        from bayesperf.store import atomic_write

        path = self.copies / "spec-sheets.csv"
        atomic_write(path, lambda temporary: datasets.targets().reset_index().to_csv(temporary, index=False))
        return self.file(path)

    def source(self, label: str, data: Data, where: str) -> Source:
        """Resolve a named source.

        Raises
        ------
        InputError
            It names a file or a data set that does not exist. A data set that exists but cannot be loaded is no
            error here: it becomes the source's `problem`.
        """
        heldout = self.files(data.heldout, f"{where}, key heldout")
        specs = self.specs(data.specs, f"{where}, key specs")
        if data.dataset is None:
            return Source(label, self.files(data.tables, f"{where}, key tables"), heldout, specs)
        if data.dataset not in plugins.available("dataset"):
            known = plugins.available("dataset")
            raise InputError(f"{where}, key dataset: {UnknownNameError('dataset', data.dataset, known)}")
        if label not in self._datasets:
            self._datasets[label] = self._load(label, data)
        tables, problem = self._datasets[label]
        return Source(label, tables, heldout, specs, problem)

    def _load(self, label: str, data: Data) -> tuple[tuple[File, ...], str | None]:
        from bayesperf import datasets
        from bayesperf.specs import slug
        from bayesperf.store import write_measurements

        assert data.dataset is not None
        path = self.copies / f"{slug(label) or 'dataset'}.parquet"
        try:
            write_measurements(datasets.load(data.dataset, flagged=data.flagged, **data.options), path)
        except BayesperfError as error:
            return (), f"data set {data.dataset}: {error}"
        return (self.file(path),), None

    def _targets(self, tables: tuple[File, ...], to_fit: bool) -> tuple[str, ...]:
        """Targets in alphabetical order: those that have rows `to_fit`, or all."""
        from bayesperf.schema import is_excluded, rows_for
        from bayesperf.store import read_measurements

        found: set[Any] = set()
        for file in tables:
            rows = read_measurements(file.path)
            rows = rows_for(rows, "fit") if to_fit else rows
            found |= set(rows.loc[~is_excluded(rows), "target"])
        return tuple(sorted(found))

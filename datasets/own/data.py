"""Our own measurements: Parquet files in this folder, as ``bayesperf measure`` wrote them, provenance included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import resources
from importlib.resources.abc import Traversable

import pandas as pd

from bayesperf.dataset import Dataset, Files, Source, choose
from bayesperf.datasets.fetch import read_card
from bayesperf.errors import InputError
from bayesperf.store import concat, read_measurements

__all__ = ["Own", "measurement_files"]

PACKAGE = "bayesperf.datasets.own"


def measurement_files() -> dict[str, Traversable]:
    """Measurement files shipped in this folder, {name without suffix: file}; failures tables are none."""
    return dict(sorted(_parquets(_folder())))


def _folder() -> Traversable:
    return resources.files(PACKAGE)


def _parquets(folder: Traversable) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.name.endswith(".parquet") and not entry.name.endswith(".failures.parquet"):
            yield entry.name.removesuffix(".parquet"), entry


class Own(Dataset):
    """Measurements made with this project's probes."""

    name = "own"
    source = Source(
        repository="", commit="", licence="Apache-2.0", citation="this project (CITATION.cff)", folder="own"
    )

    def card(self) -> str:
        """Text of the card."""
        return read_card(PACKAGE)

    def rows(self, files: Files, *, names: Iterable[str] | str | None = None) -> pd.DataFrame:
        """Rows of the shipped files.

        Parameters
        ----------
        files
            Not used: the data are shipped with the package.
        names
            Names of the files without suffix, one per machine and day; None: all.
        """
        there = measurement_files()
        if not there:
            raise InputError("this version ships no measurements of its own; make some with `bayesperf measure`")
        tables = []
        for name in choose("names", names, there):
            with resources.as_file(there[name]) as path:
                tables.append(read_measurements(path))
        return concat(tables)

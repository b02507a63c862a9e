"""From a data set's rows to a checked, flagged, traceable measurement table."""

from __future__ import annotations

import functools
import logging
from importlib import resources
from typing import Any

import pandas as pd

from bayesperf import plugins, schema, specs
from bayesperf.dataset import Dataset, Rule, SourceFile, apply_rules
from bayesperf.datasets.fetch import SourceTree
from bayesperf.errors import InputError
from bayesperf.store import PROVENANCE, provenance_id, provenance_of

__all__ = ["dataset", "load", "targets"]

LOG = logging.getLogger("bayesperf")


def dataset(name: str) -> Dataset:
    """Return the data set of that name.

    Raises
    ------
    UnknownNameError
        No such data set; lists those that are installed.
    InputError
        The plug-in is there but is no data set.
    """
    found = plugins.load("dataset", name)
    instance = found() if isinstance(found, type) else found
    if not isinstance(instance, Dataset):
        raise InputError(f"data set {name!r}: {found!r} is not a bayesperf.dataset.Dataset; correct its entry point")
    return instance


def load(name: str, *, flagged: str = "keep", options: dict[str, Any] | None = None) -> pd.DataFrame:
    """Load a data set; see `bayesperf.datasets.load`."""
    if flagged not in ("keep", "drop"):
        raise InputError(f"flagged={flagged!r}: give 'keep' (mark bad rows) or 'drop' (leave them out)")
    data, options = dataset(name), options or {}
    known = data.options()
    unknown = [option for option in options if option not in known]
    if unknown:
        listing = ", ".join(known) or "none"
        raise InputError(f"data set {name!r} has no option {unknown[0]!r}; it has: flagged, {listing}")
    files = _Recorded(SourceTree(data.source, data.registry()))
    table = schema.validate(data.rows(files, **options), source=f"data set {name}")
    table, rules = _flag(table, data)
    table = _trace(table, data, files.used, rules)
    _say(name, rules)
    table = _ordered(table)
    if flagged == "drop":
        attrs = table.attrs
        table = table[~schema.is_excluded(table)].reset_index(drop=True)
        table.attrs = attrs
    if not len(table):
        raise InputError(f"data set {name!r}: no rows are left with these options; widen them, or keep flagged rows")
    return table


def _say(name: str, rules: list[dict[str, Any]]) -> None:
    """Print what the rules found: rows a fit will not see are said even to those who configured no logging."""
    for rule in rules:
        level, effect = (logging.WARNING, ", left out of fits") if rule["excluded"] else (logging.INFO, "")
        LOG.log(level, "data set %s: %d rows %s%s: %s", name, rule["rows"], rule["flag"], effect, rule["why"])


def _ordered(table: pd.DataFrame) -> pd.DataFrame:
    """Contract columns first, in its order; the data set's own after them."""
    known = [column.name for column in schema.COLUMNS if column.name in table]
    attrs = table.attrs
    table = table[[*known, *(name for name in table.columns if name not in known)]]
    table.attrs = attrs
    return table


class _Recorded:
    """Files, with a record of which were used."""

    def __init__(self, tree: SourceTree):
        self._tree = tree
        self.used: dict[str, SourceFile] = {}

    def paths(self, *patterns: str) -> list[str]:
        return self._tree.paths(*patterns)

    def get(self, path: str) -> SourceFile:
        self.used[path] = file = self._tree.get(path)
        return file


def _flag(table: pd.DataFrame, data: Dataset) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    sheets = targets()

    def above(rows: pd.DataFrame) -> Any:
        return pd.Series(specs.above_ceiling(rows, sheets), dtype=object).notna().to_numpy()

    why = f"a rate more than {specs.CEILING_SLACK - 1:.0%} above the device's spec sheet is an error of data or formula"
    return apply_rules(table, [*data.rules(), Rule("above-ceiling", why, above)])


def _trace(
    table: pd.DataFrame, data: Dataset, used: dict[str, SourceFile], rules: list[dict[str, Any]]
) -> pd.DataFrame:
    source = data.source.record()
    records = provenance_of(table)
    ids: dict[str, str] = {}
    for path, file in used.items():
        record = {
            "kind": "dataset",
            "dataset": data.name,
            **source,
            "file": path,
            "sha256": file.sha256,
            "matches_source": file.matches_source,
        }
        ids[path] = provenance_id(record)
        records[ids[path]] = record
        if file.matches_source is False:
            LOG.info("data set %s: the local copy of %s is not the source's own file", data.name, path)
    applied = {"kind": "rules", "dataset": data.name, "rules": rules}
    records[provenance_id(applied)] = applied
    if "file" in table:
        table = table.assign(provenance_id=table["file"].map(ids).astype(object)).drop(columns="file")
    table.attrs = {**table.attrs, PROVENANCE: records, "dataset": {"name": data.name, **source}, "rules": rules}
    return table


@functools.cache
def _sheets() -> pd.DataFrame:
    with resources.as_file(resources.files("bayesperf.datasets") / "targets.csv") as path:
        return specs.read_targets(path)


def targets() -> pd.DataFrame:
    """Spec sheets, indexed by ``device``; a copy of its own for every caller."""
    return _sheets().copy()

"""Do measurement tables hold the rows that a profile says it was fitted to, unchanged since they were measured?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayesperf.columns import SAMPLES
from bayesperf.schema import canonical, is_excluded, is_heldout, with_ids
from bayesperf.store import read_measurements
from bayesperf.verification.contents import check_provenance
from bayesperf.verification.plans import check_plan
from bayesperf.verification.result import Finding, judged

__all__ = ["check_tables", "same_ids"]

USUAL_NAME = "measurements.parquet"
"""What `bayesperf characterize` calls its table: ids are made with the name of the file first written."""

MOST_NEAR = 5
"""Missing rows for which the nearest row of the tables is looked for."""


def check_tables(fitted: pd.DataFrame, paths: Sequence[Path]) -> list[Finding]:
    """Check tables by themselves, then the fitted rows against them.

    Parameters
    ----------
    fitted
        The rows that a profile embeds.
    paths
        Measurement tables, CSV or Parquet.
    """
    findings, read = [], []
    for path in paths:
        table = read_measurements(path)
        read.append((path, table))
        findings += [_check_ids(path, table)]
        if path.suffix == ".parquet":
            findings += [check_provenance(table, path.name), *check_plan(path, table)]
    return [*findings, *_check_fitted(fitted, read)]


# A table by itself.


def same_ids(table: pd.DataFrame, source: str) -> np.ndarray:
    """Boolean per row, (row,): whether its id is the hash of its content as measured into the file `source`."""
    bare = table.drop(columns="measurement_id")
    bare.attrs = {}
    return np.asarray(with_ids(bare, source=source)["measurement_id"].to_numpy() == table["measurement_id"].to_numpy())


def _check_ids(path: Path, table: pd.DataFrame) -> Finding:
    what = f"ids of {path.name}"
    facts = table.attrs.get("facts", {})
    if path.suffix != ".parquet" and "measurement_id" not in _header(path):
        return Finding(what, "passed", f"{len(table)} ids made from the rows as they are")
    stated = facts.get("source")
    names = [str(stated)] if stated else list(dict.fromkeys([path.name, USUAL_NAME]))
    matches = max((same_ids(table, name) for name in names), key=np.count_nonzero)
    n = int(matches.sum())
    # A table of one run was given all of its ids at once; of a joined one, every file gave its own.
    once = bool(stated) or "plan" in facts or not facts
    if n == len(table):
        return Finding(what, "passed", f"{n} ids are the hashes of their rows")
    if not once or (n == 0 and not stated):
        reason = (
            f"{n} of {len(table)} ids can be made again: other files gave the others, or this one was renamed; give "
            "the files that were measured"
        )
        return Finding(what, "not checked", reason)
    ids, first = table["measurement_id"], _first_row(path)
    places = [f"row {first + at} of {path.name} ({ids.iloc[at]})" for at in np.flatnonzero(~matches)]
    return judged(what, places, "", "the content is not what its id was made of")


def _header(path: Path) -> str:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        return next((line for line in file if line.strip() and not line.startswith("#")), "")


def _first_row(path: Path) -> int:
    """Number of the first row as people see it: the second line of a CSV file, 0 in Parquet."""
    return 0 if path.suffix == ".parquet" else 2


# Fitted rows against tables.


def _check_fitted(fitted: pd.DataFrame, read: Sequence[tuple[Path, pd.DataFrame]]) -> list[Finding]:
    known: dict[str, tuple[Path, int, dict[str, Any]]] = {}
    for path, table in read:
        for at, row in enumerate(_records(table)):
            known.setdefault(str(row["measurement_id"]), (path, at, row))
    missing, places = [], []
    for at, row in enumerate(_records(fitted)):
        if str(row["measurement_id"]) not in known:
            missing.append((at, row))
            continue
        path, where, other = known[str(row["measurement_id"])]
        places += [
            f"row {_first_row(path) + where} of {path.name} ({row['measurement_id']}), column {name}: {theirs}, "
            f"the profile was fitted to {ours}"
            for name, ours, theirs in _differences(row, other)
        ]
    fitted_ids = {str(name) for name in fitted["measurement_id"]}
    spare = {name: found for name, found in known.items() if name not in fitted_ids}
    absent = [
        f"fitted row {at} ({row['measurement_id']}) is in no table{_nearest(row, spare) if n < MOST_NEAR else ''}"
        for n, (at, row) in enumerate(missing)
    ]
    found = len(fitted) - len(missing)
    return [
        judged("fitted rows are in the tables", absent, f"all {found} are", f"{len(absent)} of {len(fitted)} are not"),
        judged(
            "fitted rows are as in the tables",
            places,
            f"{found} compared, column by column",
            f"{len(places)} values differ",
        ),
        _left_out(fitted_ids, read),
    ]


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    plain = table.drop(columns=list(SAMPLES), errors="ignore")
    return [{str(k): _plain(v) for k, v in row.items()} for row in plain.to_dict(orient="records")]


def _plain(value: Any) -> Any:
    """A cell as a profile's file keeps it: no missing kinds, truth values as numbers, whole numbers as such."""
    if isinstance(value, bool | np.bool_):
        return int(value)
    if value is None or value is pd.NA or value == "" or (isinstance(value, float) and np.isnan(value)):
        return None
    return value


def _differences(ours: dict[str, Any], theirs: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    return [
        (name, value, theirs.get(name))
        for name, value in ours.items()
        if name in theirs and not _same(value, theirs[name])
    ]


def _same(one: Any, other: Any) -> bool:
    if canonical({"v": one}) == canonical({"v": other}):
        return True
    # Columns of mixed kinds are kept as the text of their values.
    return one is not None and other is not None and str(one) == str(other)


def _nearest(row: dict[str, Any], spare: dict[str, tuple[Path, int, dict[str, Any]]]) -> str:
    """Say which row of the tables it may have been: the one that differs in the fewest columns, if these are few."""
    best: tuple[int, str] | None = None
    for path, at, other in spare.values():
        differing = [d for d in _differences(row, other) if d[0] != "measurement_id"]
        if len(differing) <= 2 and differing and (best is None or len(differing) < best[0]):
            words = ", ".join(f"{name} {theirs} for {ours}" for name, ours, theirs in differing)
            best = (len(differing), f"; nearest: row {_first_row(path) + at} of {path.name}, with {words}")
    return best[1] if best else ""


def _left_out(fitted: set[str], read: Sequence[tuple[Path, pd.DataFrame]]) -> Finding:
    what = "rows of the tables that were not fitted"
    n = 0
    for _, table in read:
        eligible = ~(is_heldout(table) | is_excluded(table))
        n += int((eligible & ~table["measurement_id"].isin(fitted).to_numpy()).sum())
    if n:
        detail = f"{n} rows are neither held out nor excluded, and the profile does not hold them"
        return Finding(what, "not checked", detail)
    return Finding(what, "passed", "only those held out or excluded by a recorded rule")

"""Copied tables and columns without content: things no rule can repair, but a reader must know."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from bayesperf.quality.findings import Finding
from bayesperf.quality.keys import groups, key_columns, key_hash, time_columns

__all__ = ["copied_tables", "identical_columns"]

FEWEST = 5
"""Equal times that make a copy, if nearly all shared workloads are equal."""

NEARLY_ALL, SOME, MANY = 0.9, 0.3, 30


def copied_tables(table: pd.DataFrame) -> list[Finding]:
    """Pairs of targets (or campaigns) whose times are equal, to the last digit, on the workloads they share."""
    where = groups(table)
    if where.nunique() < 2:
        return []
    names = key_columns(table, where=False)
    rows = pd.DataFrame(
        {"key": key_hash(table, names), "time": table["time_s"], "where": where, "op": table["op"].astype(str)}
    )
    rows = rows.drop_duplicates(["key", "time", "where"])
    equal = rows[rows.duplicated(["key", "time"], keep=False)]
    if equal.empty:
        return []
    pairs: dict[tuple[str, str], int] = {}
    for members in equal.groupby(["key", "time"], sort=False)["where"].agg(list):
        for first, second in itertools.combinations(sorted(members), 2):
            pairs[first, second] = pairs.get((first, second), 0) + 1
    findings = []
    for (first, second), count in sorted(pairs.items(), key=lambda item: -item[1]):
        if count >= FEWEST:
            findings += _pair(rows, equal, first, second)
    return findings


def _pair(rows: pd.DataFrame, equal: pd.DataFrame, first: str, second: str) -> list[Finding]:
    findings = []
    one, other = rows[rows["where"] == first], rows[rows["where"] == second]
    common = equal[equal["where"] == first].merge(equal[equal["where"] == second], on=["key", "time", "op"])
    for op, part in common.groupby("op", sort=True):
        shared = len(np.intersect1d(one.loc[one["op"] == op, "key"], other.loc[other["op"] == op, "key"]))
        share, count = len(part) / max(shared, 1), len(part)
        # A constant column, or times printed to two digits, agree by chance.
        if part["time"].nunique() < FEWEST or not (share >= NEARLY_ALL or (share >= SOME and count >= MANY)):
            continue
        what = "copied-table" if share >= NEARLY_ALL else "partly-copied-table"
        message = f"equal to {second}, to the last digit, on {count} of {shared} shared workloads: one is a copy"
        examples = tuple(f"time_s {value!r} in both" for value in part["time"].head(3))
        findings.append(Finding(what, "error" if share >= NEARLY_ALL else "warning",
                                {"target": first, "op": str(op)}, count, shared, message, examples))  # fmt: skip
    return findings


def identical_columns(table: pd.DataFrame) -> list[Finding]:
    """Time columns of one table that are equal in every row, such as a minimum that is the mean."""
    findings = []
    names = time_columns(table)
    for first, second in itertools.combinations(names, 2):
        both = table[first].notna() & table[second].notna()
        count = int(both.sum())
        if count < FEWEST or table.loc[both, first].nunique() < 2:
            continue
        if (table.loc[both, first] == table.loc[both, second]).all():
            message = f"{first} and {second} are equal in every row: one sample each, or one column written twice"
            findings.append(
                Finding("identical-columns", "warning", {"columns": f"{first}, {second}"}, count, len(table), message)
            )
    return findings

"""Copied tables and columns without content: things no rule can repair, but a reader must know."""

from __future__ import annotations

import itertools

import pandas as pd

from bayesperf.quality.findings import Finding, Severity
from bayesperf.quality.keys import groups, key_columns, key_hash, time_columns

__all__ = ["copied_tables", "identical_columns"]

FEWEST = 5
"""Equal times that make a copy, if nearly all shared workloads are equal."""

NEARLY_ALL, SOME, MANY = 0.9, 0.3, 30


def copied_tables(table: pd.DataFrame) -> list[Finding]:
    """Pairs of targets (or campaigns) whose times are equal, to the last digit, on the workloads they share.

    A workload that was repeated counts as equal only if all its repeats are: among thousands of repeats some agree by
    chance.
    """
    where = groups(table)
    if where.nunique() < 2:
        return []
    rows = pd.DataFrame(
        {
            "key": key_hash(table, key_columns(table, where=False)),
            "where": where,
            "op": table["op"].astype(str),
            "time": table["time_s"],
            "print": pd.util.hash_array(table["time_s"].to_numpy("float64")),
        }
    )
    # The sum of hashes is that of the repeats in any order.
    cells = rows.groupby(["key", "where", "op"], sort=False).agg(
        print=("print", "sum"), size=("print", "size"), time=("time", "median")
    )
    cells = cells.reset_index()
    equal = cells[cells.duplicated(["key", "print", "size"], keep=False)]
    pairs: dict[tuple[str, str], int] = {}
    for members in equal.groupby(["key", "print", "size"], sort=False)["where"].agg(list):
        for pair in itertools.combinations(sorted(members), 2):
            pairs[pair] = pairs.get(pair, 0) + 1
    findings = []
    for (first, second), count in sorted(pairs.items(), key=lambda item: -item[1]):
        if count >= FEWEST:
            findings += _pair(cells, first, second)
    return findings


def _pair(cells: pd.DataFrame, first: str, second: str) -> list[Finding]:
    findings = []
    one, other = cells[cells["where"] == first], cells[cells["where"] == second]
    shared = one.merge(other, on=["key", "op"], suffixes=("", "_other"))
    same = (shared["print"] == shared["print_other"]) & (shared["size"] == shared["size_other"])
    for op, part in shared.groupby("op", sort=True):
        equal = part[same.loc[part.index]]
        share, count = len(equal) / len(part), len(equal)
        # A constant column, or times printed to two digits, agree by chance.
        if equal["time"].nunique() < FEWEST or not (share >= NEARLY_ALL or (share >= SOME and count >= MANY)):
            continue
        whole = share >= NEARLY_ALL
        message = f"equal to {second}, to the last digit, on {count} of {len(part)} shared workloads: one is a copy"
        examples = tuple(f"time_s {value:.12g} in both" for value in equal["time"].head(3))
        what, group = "copied-table" if whole else "partly-copied-table", {"target": first, "op": str(op)}
        severity: Severity = "error" if whole else "warning"
        findings.append(Finding(what, severity, group, count, len(part), message, examples))
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

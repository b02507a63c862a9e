"""Rules that several data sets share. Each marks rows by what the table shows; what no table shows is on the cards."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from bayesperf.dataset import Rule

__all__ = ["copied_table", "repeated_key", "too_short", "zero_size"]

COPY_SHARE = 0.9
COPY_ROWS = 20
SHORTEST_S = 1e-6


def zero_size(columns: Sequence[str]) -> Rule:
    """Rows with a dimension of zero: nothing was computed, whatever was timed."""

    def test(table: pd.DataFrame) -> np.ndarray:
        empty = np.zeros(len(table), dtype=bool)
        for name in columns:
            if name in table:
                empty |= (table[name] == 0).to_numpy()
        return empty

    return Rule("zero-size", f"a dimension ({', '.join(columns)}) is 0: nothing was computed", test)


def too_short() -> Rule:
    """Times below a microsecond: shorter than any kernel launch, so not a measurement of one."""
    why = f"a time below {SHORTEST_S * 1e6:.0f} us is shorter than a launch"
    return Rule("too-short", why, lambda table: (table["time_s"] < SHORTEST_S).to_numpy())


def repeated_key(columns: Sequence[str]) -> Rule:
    """Rows whose key was given before in the same file: two runs in one table, no telling which is which."""

    def test(table: pd.DataFrame) -> np.ndarray:
        keys = [name for name in ("file", *columns) if name in table]
        return table.duplicated(keys, keep="first").to_numpy()

    why = f"the same file already has a row of this key ({', '.join(columns)}): two runs in one table"
    return Rule("repeated-key", why, test)


def copied_table(columns: Sequence[str]) -> Rule:
    """Files of two different targets whose times agree to the last digit: one is a copy of the other.

    A pair counts as copied when it shares at least 20 keys and 90 % of the times at shared keys are equal. Which of the
    two is the original the table cannot say, so both are marked.
    """

    def test(table: pd.DataFrame) -> np.ndarray:
        keys = [name for name in columns if name in table]
        part = table[["file", "target", "time_s", *keys]].drop_duplicates(["file", *keys])
        return table["file"].isin(_copied_files(part, keys)).to_numpy()

    share = f"{COPY_SHARE:.0%}"
    why = f"at least {share} of its times equal those of another target's table to the last digit: one is a copy"
    return Rule("copied-table", why, test)


def _copied_files(table: pd.DataFrame, keys: list[str]) -> set[str]:
    """Files that are copies of one another. Only pairs with enough equal times are compared key by key."""
    key = pd.util.hash_pandas_object(table[keys], index=False)
    both = pd.util.hash_pandas_object(table[[*keys, "time_s"]], index=False)
    equal = both.duplicated(keep=False).to_numpy()
    counts: Counter[tuple[str, str]] = Counter()
    for files in table["file"][equal].groupby(both.to_numpy()[equal], sort=False).agg(list):
        counts.update(itertools.combinations(sorted(files), 2))
    keys_of = {file: key[rows.index].to_numpy() for file, rows in table.groupby("file")["file"]}
    target_of = {file: frozenset(names) for file, names in table.groupby("file")["target"]}
    copied: set[str] = set()
    for (one, other), count in counts.items():
        shared = len(np.intersect1d(keys_of[one], keys_of[other]))
        if count >= max(COPY_ROWS, COPY_SHARE * shared) and target_of[one] != target_of[other]:
            copied |= {one, other}
    return copied

"""The rules that leave rows out of fits. Each is explicit, recorded with the table, and printed when it applies."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd

from bayesperf.dataset import Rule
from bayesperf.quality.keys import groups, key_columns, key_hash, scalar_columns
from bayesperf.schema import SHAPE_COLUMNS, has_flag
from bayesperf.specs import above_ceiling

__all__ = ["duplicated_rows", "impossible_times", "rules_for", "zero_sizes"]

SIZELESS = ("barrier", "pointer_chase", "latency", "empty", "launch", "dispatch")
"""Operations (by the beginning of their names) that move nothing by design."""

CHANCE_DIGITS = 7
"""Significant digits that repeats may share by chance; the more repeats of one key, the more (birthdays)."""

NEARLY_ALL, FEWEST = 0.9, 5
"""Share of exact copies among the further rows of keys, and different times, that mean a block was copied."""

SHORTEST_S = 1e-9
"""No execution of anything takes less: three clock cycles."""


def rules_for(targets: pd.DataFrame | None) -> tuple[Rule, ...]:
    """Rules of the gate, with the ceilings of `targets`."""
    return (
        Rule("above-ceiling", "a rate above what the spec sheet allows", functools.partial(_above, targets=targets)),
        Rule("zero-size", "a size of zero: nothing was done, so nothing was measured", zero_sizes),
        Rule("impossible-time", f"a time below {SHORTEST_S:g} s: no execution is so short", impossible_times),
        Rule(
            "duplicate-row", "every column repeats an earlier row to the last of many digits: a copy", duplicated_rows
        ),
        Rule(
            "wrong-results", "the tool found its own results wrong", functools.partial(_carries, label="wrong-results")
        ),
        Rule(
            "inconsistent",
            "numbers of one row contradict each other",
            functools.partial(_carries, label="inconsistent"),
        ),
        Rule(
            "work-unknown",
            "bytes and FLOP are unknown, and 0 would be wrong: set the tool's counters, or map the table (generic)",
            functools.partial(_carries, label="work-unknown"),
        ),
    )


def _carries(table: pd.DataFrame, *, label: str) -> np.ndarray:
    return has_flag(table, label)


def _above(table: pd.DataFrame, *, targets: pd.DataFrame | None) -> np.ndarray:
    return np.array([reason is not None for reason in above_ceiling(table, targets)], dtype=bool)


def zero_sizes(table: pd.DataFrame) -> np.ndarray:
    """Rows whose message or any shape is zero, shape (n_rows,); operations without a size are exempt."""
    names = [n for n in ("message_bytes", *SHAPE_COLUMNS) if n in table]
    zero = np.zeros(len(table), dtype=bool)
    for name in names:
        if pd.api.types.is_numeric_dtype(table[name]):
            zero |= (table[name] == 0).to_numpy()
    return zero & ~table["op"].astype(str).str.startswith(SIZELESS).to_numpy()


def impossible_times(table: pd.DataFrame) -> np.ndarray:
    """Rows whose time is below a nanosecond, shape (n_rows,)."""
    return np.asarray(table["time_s"] < SHORTEST_S, dtype=bool)


def duplicated_rows(table: pd.DataFrame) -> np.ndarray:
    """Later rows that equal an earlier one in every column but bookkeeping, shape (n_rows,)."""
    plain = table[[n for n in scalar_columns(table) if n not in ("flags", "measurement_id", "provenance_id")]]
    repeated = plain.duplicated(keep="first").to_numpy().copy()
    if repeated.any() and "samples_s" in table:
        repeated = _with_equal_samples(plain, table["samples_s"])
    if not repeated.any():
        return repeated
    keys = pd.Series(key_hash(table, key_columns(table, where=True)))
    repeats = keys.map(keys.value_counts()).to_numpy()
    certain = repeated & (_digits(table) >= CHANCE_DIGITS + 2 * np.log10(repeats))
    return np.asarray(certain | _wholesale(table, keys, repeated), dtype=bool)


def _with_equal_samples(plain: pd.DataFrame, samples: pd.Series) -> np.ndarray:
    """Later rows that equal an earlier one in their raw samples too, shape (n_rows,)."""
    repeated, seen = np.zeros(len(plain), dtype=bool), set()
    rows = key_hash(plain, [str(name) for name in plain.columns])
    for at in np.flatnonzero(plain.duplicated(keep=False).to_numpy()):
        values = samples.iloc[at]
        content = (rows[at], tuple(values) if isinstance(values, list | tuple | np.ndarray) else None)
        repeated[at] = content in seen
        seen.add(content)
    return repeated


def _wholesale(table: pd.DataFrame, keys: pd.Series, repeated: np.ndarray) -> np.ndarray:
    """Repeated rows of groups in which nearly every further row of a key is an exact copy, shape (n_rows,)."""
    rows = pd.DataFrame({"where": groups(table), "copy": repeated, "again": keys.duplicated(), "time": table["time_s"]})
    again = rows[rows["again"]]
    share = again.groupby("where")["copy"].mean()
    kinds = again[again["copy"]].groupby("where")["time"].nunique()
    guilty = share.index[(share >= NEARLY_ALL) & (kinds.reindex(share.index, fill_value=0) >= FEWEST)]
    return np.asarray(repeated & rows["where"].isin(guilty).to_numpy(), dtype=bool)


def _digits(table: pd.DataFrame) -> np.ndarray:
    """Significant digits of each row's time, shape (n_rows,)."""
    digits = table["time_s"].map(lambda t: len(f"{t:.12g}".split("e")[0].replace(".", "").strip("0"))).to_numpy()
    if "time_resolution_s" in table:
        step = table["time_resolution_s"].to_numpy(dtype="float64", na_value=np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            steps = table["time_s"].to_numpy() / step
            # Unit factors add digits that were never printed; the printed step decides where it is known.
            digits = np.where(np.isfinite(steps), np.log10(steps) + 1, digits)
    return np.asarray(digits, dtype="float64")


def repeated_keys(table: pd.DataFrame) -> np.ndarray:
    """Rows whose key another row of the same process has, with other values, shape (n_rows,)."""
    keys, found = key_columns(table, where=True), np.zeros(len(table), dtype=bool)
    once = np.flatnonzero(~duplicated_rows(table))
    if keys:
        found[once] = table.iloc[once].duplicated(subset=keys, keep=False).to_numpy()
    return found

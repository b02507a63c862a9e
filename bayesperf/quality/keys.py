"""Which columns say what was measured, and which say how it came out."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

__all__ = ["groups", "key_columns", "key_hash", "scalar_columns", "series_of", "time_columns"]

_VALUE = re.compile(
    r"(?:^|_)(?:time|rate|bw|bandwidth|algbw|busbw|mean|median|min|max|avg|std|stdev|p[0-9]{2}|cv|se|latency|duration|"
    r"elapsed|gflops|tflops|throughput|samples|iterations|repetitions|energy|power|temperature|clock|resolution|load"
    r")(?:_|$)"
    r"|_(?:s|us|ms|ns|per_s)$|_per_second$"
)
BOOKKEEPING = {"flags", "measurement_id", "provenance_id", "stop_reason", "role", "file", "label", "statistic"}
PROVENANCE = {"target", "device", "campaign", "process", "stack", "repetition"}
"""Columns that say where and when, not what."""

WORKLOAD = {"compute_iterations"}


def scalar_columns(table: pd.DataFrame) -> list[str]:
    """Columns whose cells are single values; lists such as raw samples cannot be compared as keys."""
    return [str(name) for name in table.columns if table[name].dtype != object or not _has_lists(table[name])]


def _has_lists(values: pd.Series) -> bool:
    # Inference in C settles all but mixed columns.
    if not pd.api.types.infer_dtype(values, skipna=True).startswith("mixed"):
        return False
    return any(isinstance(value, list | tuple | dict | set | np.ndarray) for value in values)


def key_columns(table: pd.DataFrame, *, where: bool) -> list[str]:
    """Columns that identify a measurement; with `where`, also the target, campaign, process and stack it is of."""
    keys = []
    for name in scalar_columns(table):
        if name in BOOKKEEPING:
            continue
        if not where and name in PROVENANCE:
            continue
        if _VALUE.search(name) and name not in WORKLOAD:
            continue
        keys.append(name)
    return keys


def time_columns(table: pd.DataFrame) -> list[str]:
    """Numeric columns that hold a time of the same execution: ``time_s``, ``time_min_s``, ..."""
    return [
        str(name)
        for name in table.columns
        if re.fullmatch(r"time_(?:\w+_)?s|(?:min|max|mean|median|avg)_s", str(name))
        and str(name) not in ("time_se_s", "time_resolution_s")
        and pd.api.types.is_numeric_dtype(table[name])
    ]


def key_hash(table: pd.DataFrame, names: list[str]) -> np.ndarray:
    """Hash of each row's key, shape (n_rows,), uint64; equal keys are equal, absent values included."""
    if not names:
        return np.zeros(len(table), dtype="uint64")
    plain = pd.DataFrame({name: _plain(table[name]) for name in names})
    return pd.util.hash_pandas_object(plain, index=False).to_numpy()


def _plain(values: pd.Series) -> pd.Series:
    if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
        return values.astype("float64")
    return values.astype(object).map(lambda v: "" if v is None or v is pd.NA or v != v else str(v))


def groups(table: pd.DataFrame) -> pd.Series:
    """Where each row is from, shape (n_rows,): its target and campaign."""
    target = table["target"].astype(str)
    if "campaign" not in table:
        return target
    campaign = table["campaign"].astype(object).map(lambda v: v if isinstance(v, str) else "")
    return target.where(campaign == "", target + " (" + campaign + ")")


def series_of(table: pd.DataFrame) -> pd.Series:
    """Label of the rows that form one curve: target, operation, type, and other text that tells them apart."""
    label = groups(table) + "|" + table["op"].astype(str)
    for name in ("dtype", "corunners", "condition", "placement", "testcase", "n_devices", "process"):
        if name in table:
            label = label + "|" + table[name].astype(object).map(str)
    return label

"""Repeats of one configuration, summarised: what fresh processes agree on, and how much they scatter.

Repeats share whatever a model gets wrong about their configuration, so treating them as independent rows would
count one error several times. Fitting and validation both work on these summaries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayesperf.schema import SHAPE_COLUMNS

__all__ = ["KEYS", "Configurations", "configurations", "records"]

KEYS = (
    *("target", "op", "dtype", "flops", "bytes", "working_set_bytes", "parallelism", "message_bytes", "n_devices"),
    *("campaign", "stack", "condition", "corunners", "corunner_shapes", "statistic", "role", *SHAPE_COLUMNS),
)

_CLOCK_VARIANCE = 1e-8
"""Repeats that agree to the last digit of a clock do not prove a scatter of zero: at least 0.01 % each."""


@dataclass(frozen=True)
class Configurations:
    """Summaries, one entry per configuration, in order of first appearance.

    Parameters
    ----------
    first
        The first row of each configuration.
    code
        Configuration of each row of the table, (row,).
    ids
        Measurement ids of each configuration's rows.
    log_time
        Median over repeats of log time, (configuration,), log seconds.
    count
        Repeats, (configuration,).
    weight
        Variance of that median over the variance of one repeat, (configuration,).
    square
        Sum of squared deviations of the repeats' log times from their mean, (configuration,).
    within
        Mean squared relative standard error inside a process, (configuration,).
    """

    first: pd.DataFrame
    code: npt.NDArray[np.intp]
    ids: list[list[str]]
    log_time: npt.NDArray[np.float64]
    count: npt.NDArray[np.float64]
    weight: npt.NDArray[np.float64]
    square: npt.NDArray[np.float64]
    within: npt.NDArray[np.float64]


def configurations(table: pd.DataFrame, code: npt.NDArray[np.intp] | None = None) -> Configurations:
    """Summarise the repeats of a checked measurement table that carries ids.

    Parameters
    ----------
    table
        Measurements.
    code
        Configuration of each row, 0 to n - 1, (row,); rows that agree in all of `KEYS` when None.
    """
    # Without attributes: pandas copies them (provenance: thousands of records) deeply with every group.
    table = table.copy(deep=False)
    table.attrs = {}
    table = table.reset_index(drop=True)
    if code is None:
        keys = [name for name in KEYS if name in table]
        code = np.asarray(table.groupby(keys, dropna=False, sort=False).ngroup(), dtype=np.intp)
    log_time = np.log(table["time_s"].to_numpy(float))
    by = pd.Series(log_time).groupby(code, sort=True)
    count = by.count().to_numpy(float)
    relative = np.zeros(len(table))
    if "time_se_s" in table:
        relative = np.nan_to_num(table["time_se_s"].to_numpy(float) / table["time_s"].to_numpy(float)) ** 2
    square = by.var(ddof=1).fillna(0.0).to_numpy(float) * (count - 1.0)
    return Configurations(
        first=table.iloc[np.unique(code, return_index=True)[1]].reset_index(drop=True),
        code=code.astype(np.intp),
        ids=table["measurement_id"].groupby(code, sort=True).agg(list).tolist(),
        log_time=np.asarray(by.median(), dtype=np.float64),
        count=np.asarray(count, dtype=np.float64),
        # 1 and 1/2 for one and two normal values, close to pi / (2 n + 1.14) beyond (within 2 %).
        weight=np.where(count <= 2, 1.0 / count, np.pi / (2.0 * count + 1.14)),
        square=np.maximum(square, _CLOCK_VARIANCE * np.maximum(count - 1.0, 0.0)),
        within=np.asarray(pd.Series(relative).groupby(code, sort=True).mean(), dtype=np.float64),
    )


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a table, by column name."""
    names = [str(name) for name in table.columns]
    # By columns: `DataFrame.to_dict` takes milliseconds for each row of a wide table that is asked for by itself.
    columns = [column.tolist() for _, column in table.items()]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]

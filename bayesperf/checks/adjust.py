"""Many tests at once, and errors of means of rows that are not independent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayesperf.model import Floats

__all__ = ["clustered_mean", "holm"]


def holm(p: npt.ArrayLike) -> Floats:
    """Adjusted p-values (Holm 1979): when nothing is to be found, any is below alpha with a chance of at most alpha.

    Parameters
    ----------
    p
        P-values, (test,); NaN where nothing was tested, which counts as no test and stays NaN.
    """
    values = np.asarray(p, dtype=float)
    adjusted = np.full(len(values), np.nan)
    tested = np.flatnonzero(~np.isnan(values))
    order = tested[np.argsort(values[tested], kind="stable")]
    floor = 0.0
    for position, at in enumerate(order):
        floor = max(floor, min(1.0, values[at] * (len(order) - position)))
        adjusted[at] = floor
    return adjusted


def clustered_mean(values: Floats, cluster: npt.NDArray[Any] | Sequence[Any]) -> tuple[float, float, int]:
    """Mean over rows and its standard error when rows of one cluster depend on each other.

    Parameters
    ----------
    values
        One value a row, (row,).
    cluster
        What each row belongs to, (row,): a campaign, a target.

    Returns
    -------
    tuple
        Mean, standard error (linearised ratio of cluster sums, Cochran 1977, section 9A; NaN for a single cluster), and
        the number of clusters.
    """
    by = pd.Series(np.asarray(values, dtype=float)).groupby(np.asarray(cluster, dtype=object), sort=False)
    total, size = by.sum().to_numpy(), by.size().to_numpy()
    mean = float(total.sum() / size.sum())
    n = len(total)
    if n < 2:
        return mean, float("nan"), n
    return mean, float(np.sqrt(n / (n - 1) * np.sum((total - size * mean) ** 2)) / size.sum()), n

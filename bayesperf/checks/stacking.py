"""Weights of model forms by how well they predict what was left out (stacking: Yao, Vehtari, Simpson, Gelman 2018)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import arviz_stats as azs
import numpy as np
import pandas as pd

from bayesperf.checks.adjust import clustered_mean
from bayesperf.checks.group_out import LeftOut
from bayesperf.checks.one_out import loo
from bayesperf.errors import InputError

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile

__all__ = ["stack"]


def stack(profiles: Mapping[str, Profile] | Mapping[str, LeftOut]) -> pd.DataFrame:
    """Weigh model forms.

    Parameters
    ----------
    profiles
        By name, fits of the same measurements by different models: scored by row-wise LOO, which judges how each fits
        the campaigns it has seen. Or results of `leave_out` with the same groups: then the weights are for predicting
        the next campaign (or target), which is what a profile is used for.

    Returns
    -------
    DataFrame
        ArviZ's comparison, best first: rank, elpd, p, elpd_diff, weight, se, dse and its diagnoses. Of `leave_out`
        results also ``dse_clustered``, the error of elpd_diff when rows of one left-out group depend on each other.

    Raises
    ------
    InputError
        Fewer than two, of both kinds, or of different measurements.
    """
    items: dict[str, Any] = dict(profiles)
    kinds = {isinstance(item, LeftOut) for item in items.values()}
    if len(items) < 2 or len(kinds) > 1:
        raise InputError("stack compares two or more profiles, or two or more results of leave_out; not both kinds")
    seen = {name: _observed(item) for name, item in items.items()}
    first, *others = seen
    for name in others:
        if seen[name] != seen[first]:
            raise InputError(
                f"{name} and {first} were not scored on the same measurements in the same groups: fit both to one table"
            )
    elpd = {name: item.elpd if isinstance(item, LeftOut) else loo(item).elpd for name, item in items.items()}
    table: pd.DataFrame = azs.compare(elpd, method="stacking", round_to="none")
    if kinds == {True}:
        table["dse_clustered"] = _clustered(table, items)
    return table


def _observed(item: Any) -> list[Any]:
    if isinstance(item, LeftOut):
        return list(zip(item.rows["group"], item.rows["measurement_ids"].map(tuple), strict=True))
    return [tuple(ids) for ids in item.model.observations(item.inference.encoded)["measurement_ids"]]


def _clustered(table: pd.DataFrame, items: Mapping[str, Any]) -> list[float]:
    best = items[str(table.index[0])].rows
    errors = []
    for name in table.index:
        difference = items[str(name)].rows["log_density"].to_numpy() - best["log_density"].to_numpy()
        errors.append(len(difference) * clustered_mean(np.asarray(difference), best["group"].to_numpy())[1])
    return errors
